// Play, pause, steps, speed and time.

import type { Player } from "../model/player.ts";
import { h } from "./dom.ts";

/** Virtual seconds per second. The last one is as fast as it goes. */
export const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, Infinity];

export class Transport {
  private play = button("Play", "play", "Space", () => this.toggle());
  private time = h("output", { class: "time" }, "0.000 s");
  private speedLabel = h("output", {}, "");
  private speed = h("input", {
    type: "range",
    min: 0,
    max: SPEEDS.length - 1,
    step: 1,
    "aria-label": "Speed",
    input: () => this.setSpeed(Number(this.speed.value)),
  });
  private scrub = h("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    class: "scrub",
    "aria-label": "Time",
    change: () => {
      this.isScrubbing = false;
      void this.player.seek((Number(this.scrub.value) / 1000) * this.player.end);
    },
    input: () => (this.isScrubbing = true),
  });
  private isScrubbing = false;
  readonly element = h(
    "div",
    { class: "transport", role: "group", "aria-label": "Clock" },
    button("Back to the start", "start", "Home", () => void this.player.seek(0)),
    button("Step back by an event", "back", ",", () => void this.player.stepBack()),
    this.play,
    button("Step by an event", "step", ".", () => void this.player.stepEvent()),
    this.time,
    this.scrub,
    h("label", { class: "speed" }, this.speed, this.speedLabel),
  );

  constructor(private player: Player) {
    this.setSpeed(SPEEDS.indexOf(player.speed));
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  update(): void {
    const { now, end, isPlaying } = this.player;
    setIcon(this.play, isPlaying ? "pause" : "play");
    this.play.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
    const digits = this.player.speed < 0.02 ? 6 : 3;
    this.time.textContent = `${(now / 1e9).toFixed(digits)} s`;
    if (!this.isScrubbing) this.scrub.value = String(Math.round((now / end) * 1000));
    this.scrub.setAttribute("aria-valuetext", `${(now / 1e9).toFixed(1)} of ${(end / 1e9).toFixed(0)} seconds`);
  }

  private setSpeed(index: number): void {
    const speed = SPEEDS[index] ?? 1;
    this.player.speed = speed;
    this.speed.value = String(index);
    const label = Number.isFinite(speed) ? (speed < 1 ? `1/${Math.round(1 / speed)} ×` : `${speed} ×`) : "max";
    this.speedLabel.textContent = label;
    this.speed.setAttribute("aria-valuetext", label);
  }

  private toggle(): void {
    if (this.player.isPlaying) this.player.pause();
    else this.player.play();
    this.update();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target;
    if (target instanceof HTMLElement && target.closest("input, select, textarea, button, summary, a") !== null) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = SPEEDS.indexOf(this.player.speed);
    const actions: Record<string, () => void> = {
      " ": () => this.toggle(),
      ".": () => void this.player.stepEvent(),
      ",": () => void this.player.stepBack(),
      Home: () => void this.player.seek(0),
      ArrowRight: () => void this.player.seek(this.player.now + 1e9),
      ArrowLeft: () => void this.player.seek(Math.max(0, this.player.now - 1e9)),
      "+": () => this.setSpeed(Math.min(SPEEDS.length - 1, index + 1)),
      "-": () => this.setSpeed(Math.max(0, index - 1)),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }
}

/** The shapes of the buttons in a square of 16. */
const ICONS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  start: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 3v10L4.5 8zM12 3h1.5v10H12z",
  step: "M5 3v10l6.5-5zM2.5 3H4v10H2.5z",
};

function setIcon(place: HTMLElement, icon: keyof typeof ICONS): void {
  if (place.dataset["icon"] === icon) return;
  place.dataset["icon"] = icon;
  place.innerHTML = `<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="${ICONS[icon]}" fill="currentColor"/></svg>`;
}

function button(label: string, icon: keyof typeof ICONS, key: string, click: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", "aria-label": label, title: `${label} (${key})`, click });
  setIcon(element, icon);
  return element;
}
