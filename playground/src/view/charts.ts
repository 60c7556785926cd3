// The time series below the picture.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Shown } from "../model/player.ts";
import { delayCdfs, delaysOverTime, overTime, type Chart, type Quantity } from "../model/series.ts";
import { h } from "./dom.ts";
import { pathColour, theme, type Theme } from "./theme.ts";

const HEIGHT = 150;
const QUANTITIES: [Quantity, string, string][] = [
  ["goodput", "Goodput by path", "Mbit/s"],
  ["rtt", "Smoothed round-trip time", "ms"],
  ["cwnd", "Congestion window", "packets"],
];
/** The second of two sessions is dashed. */
const DASH = [5, 4];

interface Line {
  label: string;
  colour: string;
  dashed: boolean;
}

/** A chart that is built again when its lines change. */
class Plot {
  private plot: uPlot | null = null;
  private built = "";
  readonly element: HTMLElement;
  private place = h("div", { class: "plot" });

  constructor(
    title: string,
    unit: string,
    private xUnit: string,
  ) {
    const caption = h("figcaption", {}, h("b", {}, title), " ", h("span", {}, unit));
    this.element = h("figure", { class: "chart" }, caption, this.place);
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  show(lines: Line[], data: uPlot.AlignedData, colours: Theme): void {
    const key = JSON.stringify([lines, colours.ink]);
    if (key !== this.built || this.plot === null) {
      this.built = key;
      this.plot?.destroy();
      this.plot = new uPlot(this.options(lines, colours), data, this.place);
    } else {
      this.plot.setData(data);
    }
  }

  private options(lines: Line[], colours: Theme): uPlot.Options {
    const axis = {
      stroke: colours.soft,
      grid: { stroke: colours.faint, width: 1 },
      ticks: { show: false },
      font: "11px 'IBM Plex Mono', monospace",
    };
    const xUnit = this.xUnit;
    return {
      width: Math.max(120, this.place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { size: 5 } },
      scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, Math.max(high * 1.08, 1e-3)] } },
      axes: [
        { ...axis, size: 26, values: (_plot, ticks) => ticks.map((tick) => `${tick}${xUnit}`) },
        { ...axis, size: 46 },
      ],
      series: [
        {},
        ...lines.map(({ label, colour, dashed }) => ({
          label,
          stroke: colour,
          width: 1.6,
          spanGaps: false,
          points: { show: false },
          ...(dashed ? { dash: DASH } : {}),
        })),
      ],
    };
  }

  private resize(): void {
    this.plot?.setSize({ width: Math.max(120, this.place.clientWidth), height: HEIGHT });
  }
}

export class Charts {
  private plots = QUANTITIES.map(([of, title, unit]) => ({ of, plot: new Plot(title, unit, " s") }));
  private delays = new Plot("Longest delay of blocks", "ms", " s");
  private cdf = new Plot("Delay of blocks", "share of blocks", " ms");
  readonly element = h(
    "section",
    { class: "charts", "aria-label": "Time series" },
    ...this.plots.map(({ plot }) => plot.element),
    this.delays.element,
    this.cdf.element,
  );

  show(sessions: Shown[], connection: number): void {
    const colours = theme();
    for (const { of, plot } of this.plots) {
      const chart = overTime(sessions, connection, of);
      plot.show(linesOf(chart, colours), [chart.times, ...chart.series.map(({ values }) => values)], colours);
    }
    this.showDelays(sessions, connection, colours);
  }

  private showDelays(sessions: Shown[], connection: number, colours: Theme): void {
    const curves = delayCdfs(sessions, connection);
    const isEmpty = curves.every(({ delays }) => delays.length === 0);
    for (const { element } of [this.delays, this.cdf]) element.hidden = isEmpty;
    if (isEmpty) return;
    const lines = sessions.map(({ label }, session) => ({ label, colour: session > 0 ? colours.accent : colours.ink, dashed: session > 0 }));
    const { times, delays } = delaysOverTime(sessions, connection);
    this.delays.show(lines, [times, ...delays], colours);
    const tables = curves.map(({ delays, shares }) => [delays, shares] as uPlot.AlignedData);
    this.cdf.show(lines, uPlot.join(tables, tables.map(() => [1, 2])), colours);
  }
}

function linesOf(chart: Chart, colours: Theme): Line[] {
  return chart.series.map(({ session, path, label }) => ({
    label,
    colour: pathColour(colours, path),
    dashed: session > 0,
  }));
}
