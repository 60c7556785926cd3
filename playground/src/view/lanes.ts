// The causes of `explain` as a lane of colours for each path.

import type { Shown } from "../model/player.ts";
import { CAUSES } from "../model/explain.ts";
import { intervals, type Interval } from "../model/series.ts";
import { fill, h, prepare } from "./dom.ts";
import type { Theme } from "./theme.ts";

const LANE = 16;
const GAP = 6;
const LABEL = 64;
/** Share of the time from which the legend names a state. */
const SEEN = 0.01;

export class Lanes {
  private canvas = h("canvas", { role: "img", "aria-label": "States of the subflows over time" });
  private legend = h("ul", { class: "legend" });
  readonly element = h("figure", { class: "lanes" }, this.canvas, this.legend);
  private shownStates = "";

  /** Draw the lanes of a session. The legend names the states of all `sessions`, below the last one. */
  show(shown: Shown, sessions: Shown[], connection: number, colours: Theme): void {
    const found = intervals(shown, connection);
    const paths = shown.scenario.connection[connection]?.paths ?? [];
    const names = shown.scenario.path.map(({ name }) => name).filter((name) => paths.includes(name));
    const { context, width } = prepare(this.canvas, Math.max(1, names.length) * (LANE + GAP) + 16);
    const scale = (width - LABEL - 4) / shown.end;
    context.font = "12px 'IBM Plex Sans', sans-serif";
    for (const [index, name] of names.entries()) {
      const number = shown.scenario.path.findIndex((path) => path.name === name);
      const y = index * (LANE + GAP);
      context.fillStyle = colours.soft;
      context.fillText(name, 0, y + 12, LABEL - 6);
      context.fillStyle = colours.faint;
      context.fillRect(LABEL, y, shown.end * scale, LANE);
      paint(context, found.filter(({ path }) => path === number), y, scale);
    }
    context.fillStyle = colours.soft;
    context.font = "11px 'IBM Plex Mono', monospace";
    const bottom = names.length * (LANE + GAP) + 10;
    context.fillText("0 s", LABEL, bottom);
    const end = `${Number((shown.end / 1e9).toPrecision(3))} s`;
    context.fillText(end, LABEL + shown.end * scale - context.measureText(end).width, bottom);
    const isLast = shown === sessions.at(-1);
    this.showLegend(isLast ? sessions.flatMap((each) => intervals(each, connection)) : []);
  }

  private showLegend(found: Interval[]): void {
    const lengths = new Map<string, number>();
    for (const { state, from, until } of found) lengths.set(state, (lengths.get(state) ?? 0) + until - from);
    const all = [...lengths.values()].reduce((sum, length) => sum + length, 0);
    const seen = [...lengths].filter(([, length]) => length > SEEN * all);
    const states = seen.sort((one, other) => other[1] - one[1]).map(([state]) => state);
    const key = states.join();
    if (key === this.shownStates) return;
    this.shownStates = key;
    const entry = (state: string): HTMLElement => {
      const swatch = h("i", { style: `background:${CAUSES[state]?.colour ?? "#999"}` });
      return h("li", {}, swatch, CAUSES[state]?.words ?? state);
    };
    fill(this.legend, ...states.map(entry));
  }
}

/** Paint each pixel in the colour of the state that fills most of it, so that short states between two
 * pixels neither vanish nor win. */
function paint(context: CanvasRenderingContext2D, found: Interval[], y: number, scale: number): void {
  const pixels = new Map<number, Map<string, number>>();
  for (const { state, from, until } of found) {
    for (let pixel = Math.floor(from * scale); pixel <= Math.floor(until * scale); pixel += 1) {
      const part = Math.min(until * scale, pixel + 1) - Math.max(from * scale, pixel);
      const parts = pixels.get(pixel) ?? new Map<string, number>();
      parts.set(state, (parts.get(state) ?? 0) + part);
      pixels.set(pixel, parts);
    }
  }
  for (const [pixel, parts] of pixels) {
    const [most] = [...parts].reduce((one, other) => (other[1] > one[1] ? other : one));
    context.fillStyle = CAUSES[most]?.colour ?? "#999";
    context.fillRect(LABEL + pixel, y, 1, LANE);
  }
}
