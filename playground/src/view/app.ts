// The page: assembles its parts, and passes on what happens.

import { Engine } from "../engine/client.ts";
import type { Setting, Source } from "../engine/protocol.ts";
import { LESSONS } from "../lessons/all.ts";
import type { Lesson, Run } from "../lessons/lesson.ts";
import { findings } from "../model/explain.ts";
import { GALLERY, galleryToml } from "../model/gallery.ts";
import { Player, type Drop } from "../model/player.ts";
import { nanoseconds } from "../model/scenario.ts";
import { fromFragment, LONGEST } from "../model/share.ts";
import { Charts } from "./charts.ts";
import { Controls } from "./controls.ts";
import { fill, h } from "./dom.ts";
import { Exports } from "./export.ts";
import { Lanes } from "./lanes.ts";
import { LessonPanel } from "./lesson_panel.ts";
import { PACKET, Picture } from "./picture.ts";
import { followTheme, theme, toggleTheme } from "./theme.ts";
import { Transport } from "./transport.ts";

/** Speeds of the page at first: slow enough to see packets. */
const FIRST_SPEED = 0.1;
/** Virtual time in ns from the end of the warm-up to the start of a lesson: there is something to explain. */
const MEASURED = 1.2e9;

interface Console {
  /** The digest of a scenario's run. */
  digest: (source: Source) => Promise<string>;
  /** Packets in the pictures, and the time in ms to draw them. */
  draw: () => { packets: number; milliseconds: number };
  /** Virtual time of a scenario's run over the real time that it takes. */
  speed: (source: Source) => Promise<number>;
}

declare global {
  interface Window {
    anabranch: Console;
  }
}

/** A picture with its heading, sentences and lanes. */
interface Stage {
  element: HTMLElement;
  canvas: HTMLCanvasElement;
  heading: HTMLElement;
  picture: Picture;
  sentences: HTMLElement;
  lanes: Lanes;
}

export class App {
  private engine = new Engine();
  private player = new Player(this.engine, {
    opened: () => this.onOpened(),
    frame: (drops, full) => this.onFrame(drops, full),
    failed: (message) => this.fail(message),
  });
  private stages: Stage[] = [];
  private stagePlace = h("div", { class: "stages" });
  private transport: Transport;
  private charts = new Charts();
  private controls = new Controls(this.player);
  private panel = new LessonPanel(this.engine, this.player, (id) => void this.openLesson(id));
  private lessonLinks = h("select", { "aria-label": "Lesson", change: () => this.pickLesson() });
  private gallery = h("select", { "aria-label": "Scenario of the gallery", change: () => this.pickGallery() });
  private differences = h("p", { class: "differences" });
  private error = h("p", { class: "error", role: "alert", hidden: true });
  /** Buttons for the runs of an embedded lesson. */
  private choices: HTMLElement[] = [];
  private connections = h("select", { change: () => this.pickConnection() });
  private connectionLabel = h("label", { class: "connection" }, "Picture and charts of ", this.connections);
  private connection = 0;
  private readonly isEmbedded = new URLSearchParams(location.search).has("embed");

  constructor(private place: HTMLElement) {
    this.player.speed = FIRST_SPEED;
    this.transport = new Transport(this.player);
  }

  async start(): Promise<void> {
    window.anabranch = this.console();
    followTheme(() => this.drawAll());
    this.build();
    this.offer();
    // A page of the documentation has several frames. Time goes on only in those that are in sight.
    let isInSight = true;
    new IntersectionObserver((seen) => (isInSight = seen.at(-1)?.isIntersecting ?? true)).observe(this.place);
    const draw = (time: number): void => {
      if (isInSight) void this.player.tick(time);
      if (this.stages.some(({ picture }) => picture.isMoving)) this.drawPictures();
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
    window.addEventListener("hashchange", () => void this.openFragment());
    window.addEventListener("resize", () => this.drawAll());
    await this.openFragment();
  }

  /** The engine for the browser's console, and for tests. */
  private console(): Console {
    return {
      draw: () => {
        const begun = performance.now();
        this.drawPictures();
        const milliseconds = performance.now() - begun;
        const numbers = this.player.sessions.reduce((sum, { frame }) => sum + (frame?.packets.length ?? 0), 0);
        return { packets: numbers / PACKET, milliseconds };
      },
      digest: (source) => this.engine.ask("digest", { source }),
      speed: async (source) => {
        const { now, milliseconds } = await this.engine.ask("measure", { source, settings: [] });
        return now / 1e6 / milliseconds;
      },
    };
  }

  private build(): void {
    document.documentElement.classList.toggle("embed", this.isEmbedded);
    const open = h("input", { type: "file", accept: ".toml", "aria-label": "Open a scenario", hidden: true });
    open.addEventListener("change", () => void this.openFile(open.files?.[0]));
    const exports = new Exports(this.engine, this.player, () => this.stages.map(({ canvas }) => canvas), (message) => this.fail(message));
    const header = h(
      "header",
      {},
      h("a", { class: "brand", href: "#lesson=slow-3g" }, mark(), h("b", {}, "anabranch"), h("span", {}, "playground")),
      this.lessonLinks,
      this.gallery,
      open,
      h("button", { type: "button", class: "quiet", click: () => open.click() }, "Open TOML"),
      h("button", { type: "button", class: "quiet", id: "twice", click: () => void this.twice() }, "Two at a time"),
      exports.element,
      h("button", { type: "button", class: "quiet", "aria-label": "Light or dark", title: "Light or dark", click: () => this.switchTheme() }, "◐"),
    );
    const main = h(
      "main",
      {},
      this.panel.intro,
      h("div", { class: "centre" }, this.error, this.differences, this.connectionLabel, this.stagePlace, this.transport.element, this.charts.element),
      this.panel.quiz,
      this.controls.element,
    );
    fill(this.place, header, main);
    this.acceptDrops();
  }

  private offer(): void {
    const lessons = LESSONS.map(({ id, title }, index) => h("option", { value: id }, `${index + 1}. ${title}`));
    fill(this.lessonLinks, h("option", { value: "" }, "Lessons"), ...lessons);
    const entries = GALLERY.map(({ name, title }) => h("option", { value: name }, title));
    fill(this.gallery, h("option", { value: "" }, "Gallery"), ...entries);
  }

  private async openFragment(): Promise<void> {
    try {
      const shared = (await fromFragment(location.hash)) ?? { lesson: LESSONS[0]?.id ?? "" };
      if ("lesson" in shared) await this.openLesson(shared.lesson);
      else if ("gallery" in shared) await this.openGallery(shared.gallery);
      else await this.openSources(shared.sources);
    } catch (error) {
      this.fail(error instanceof Error ? error.message : String(error));
    }
  }

  private async openLesson(id: string): Promise<void> {
    const lesson = LESSONS.find((each) => each.id === id);
    if (lesson === undefined) throw new Error(`There is no lesson "${id}".`);
    this.setFragment(`#lesson=${id}`);
    this.lessonLinks.value = id;
    this.gallery.value = "";
    this.panel.show(lesson, this.isEmbedded);
    // A small frame has room for one: first the one that the lesson is about.
    const shown = lesson.runs.slice(0, lesson.shown);
    if (this.isEmbedded) await this.openOne(lesson, shown, lesson.shown - 1);
    else await this.openRuns(lesson, shown);
  }

  /** Open one run of a lesson, with buttons for the others. */
  private async openOne(lesson: Lesson, runs: Run[], chosen: number): Promise<void> {
    const button = ({ name }: Run, index: number): HTMLElement =>
      h(
        "button",
        { type: "button", "aria-pressed": String(index === chosen), click: () => void this.openOne(lesson, runs, index) },
        h("b", {}, "AB"[index] ?? ""),
        name,
      );
    this.choices = runs.map(button);
    await this.openRuns(lesson, runs.slice(chosen, chosen + 1));
  }

  private async openRuns(lesson: Lesson, runs: Run[]): Promise<void> {
    const sources = runs.map(({ toml }) => ({ toml, file: `${lesson.id}.toml`, seed: "1" }));
    const isOpen = await this.open(sources, runs.map(({ name }) => name), runs.map(({ settings }) => settings));
    if (!isOpen) return;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const warmUp = nanoseconds(this.player.sessions[0]?.scenario.warm_up ?? "0s");
    await this.player.seek(lesson.start ?? warmUp + MEASURED);
    if (!isCalm) this.player.play();
  }

  private async openGallery(name: string): Promise<void> {
    const entry = GALLERY.find((each) => each.name === name);
    if (entry === undefined) throw new Error(`There is no scenario "${name}".`);
    this.setFragment(`#scenario=${name}`);
    this.gallery.value = name;
    await this.openSources([{ toml: await galleryToml(entry), file: `${name}.toml`, seed: "1" }]);
  }

  private async openSources(sources: Source[]): Promise<void> {
    const labels = sources.map(({ file }) => file);
    this.lessonLinks.value = "";
    if (!(await this.open(sources, labels))) return;
    const [first] = this.player.sessions;
    this.panel.showScenario(first?.scenario.name ?? "", first?.scenario.description ?? "");
    this.player.play();
  }

  private async open(sources: Source[], labels: string[], settings: Setting[][] = []): Promise<boolean> {
    this.error.hidden = true;
    this.connection = 0;
    return this.player.open(sources, labels, settings);
  }

  private async openFile(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    if (file.size > LONGEST) {
      this.fail(`${file.name}: too large for this page; run it with: anabranch run ${file.name}`);
      return;
    }
    await this.openSources([{ toml: await file.text(), file: file.name, seed: "1" }]);
  }

  private acceptDrops(): void {
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.openFile(event.dataTransfer?.files[0]);
    });
  }

  /** Show the first session twice, or alone. */
  private async twice(): Promise<void> {
    const [first] = this.player.sessions;
    if (first === undefined) return;
    const source = { ...first.source, toml: first.toml };
    const sources = this.player.sessions.length > 1 ? [source] : [source, source];
    await this.openSources(sources);
  }

  private onOpened(): void {
    this.error.hidden = true;
    const { sessions } = this.player;
    while (this.stages.length < sessions.length) this.stages.push(this.stage());
    this.stages.length = sessions.length;
    fill(this.stagePlace, ...this.stages.map(({ element }) => element));
    for (const [index, stage] of this.stages.entries()) {
      const title = sessions.length > 1 ? [h("b", {}, "AB"[index] ?? ""), sessions[index]?.label ?? ""] : this.choices;
      fill(stage.heading, ...title);
      stage.heading.hidden = title.length === 0;
    }
    const isLesson = this.lessonLinks.value !== "";
    const hasDifferences = sessions.length > 1 && !isLesson;
    this.differences.textContent = hasDifferences ? differences(sessions.map(({ scenario }) => scenario)) : "";
    const names = sessions[0]?.scenario.connection.map(({ name }) => name) ?? [];
    fill(this.connections, ...names.map((name, number) => h("option", { value: number, selected: number === this.connection }, name)));
    this.connectionLabel.hidden = names.length < 2;
    this.controls.show(this.connection);
  }

  private stage(): Stage {
    const canvas = h("canvas", { role: "img", tabindex: 0 });
    const sentences = h("div", { class: "sentences" });
    const heading = h("h2", { class: "stage-title" });
    const lanes = new Lanes();
    const picture = new Picture(canvas, (path) => void this.toggle(path));
    canvas.addEventListener("keydown", (event) => {
      const path = Number(event.key) - 1;
      if (this.player.sessions[0]?.scenario.path[path] !== undefined) void this.toggle(path);
    });
    const element = h("section", { class: "stage" }, heading, canvas, sentences, lanes.element);
    return { element, canvas, heading, picture, sentences, lanes };
  }

  private async toggle(path: number): Promise<void> {
    const isUp = this.player.sessions[0]?.frame?.state.paths[path]?.forward.up ?? true;
    if (await this.player.change(path, { state: isUp ? "down" : "up" })) {
      if (!this.player.isPlaying) await this.player.stepEvent();
    }
  }

  private onFrame(drops: Drop[], full: boolean): void {
    for (const drop of drops) this.stages[drop.session]?.picture.addDrops([drop]);
    this.drawPictures();
    this.transport.update();
    if (full) this.drawTables();
  }

  private drawPictures(): void {
    const colours = theme();
    for (const [index, shown] of this.player.sessions.entries()) {
      this.stages[index]?.picture.draw(shown, this.connection, colours);
    }
  }

  private drawTables(): void {
    const colours = theme();
    for (const [index, shown] of this.player.sessions.entries()) {
      const stage = this.stages[index];
      if (stage === undefined || shown.frame === null) continue;
      const found = findings(shown.tables, shown.scenario);
      fill(stage.sentences, ...found.map((sentences) => h("div", {}, ...sentences.map((each) => h("p", {}, each)))));
      const sentences = found.flat();
      stage.canvas.setAttribute("aria-label", `${shown.label}. ${sentences.join(" ")} Press 1 to 9 to break or repair a path.`);
      stage.lanes.show(shown, this.player.sessions, this.connection, colours);
      stage.element.dataset["digest"] = shown.frame.digest;
      stage.element.dataset["over"] = String(shown.frame.over);
    }
    if (!this.isEmbedded) this.charts.show(this.player.sessions, this.connection);
  }

  private drawAll(): void {
    this.drawPictures();
    this.drawTables();
  }

  private switchTheme(): void {
    toggleTheme();
    this.drawAll();
  }

  private pickConnection(): void {
    this.connection = Number(this.connections.value);
    this.controls.show(this.connection);
    this.drawAll();
  }

  private pickLesson(): void {
    if (this.lessonLinks.value !== "") void this.openLesson(this.lessonLinks.value);
  }

  private pickGallery(): void {
    if (this.gallery.value !== "") void this.openGallery(this.gallery.value);
  }

  private setFragment(fragment: string): void {
    if (location.hash !== fragment) history.replaceState(null, "", fragment);
  }

  private fail(message: string): void {
    this.error.textContent = message;
    this.error.hidden = false;
    this.transport.update();
  }
}

/** The keys in which two scenarios differ, with both values. */
export function differences(scenarios: unknown[]): string {
  const [one, other] = scenarios.map((scenario) => leaves(scenario));
  if (one === undefined || other === undefined) return "";
  const keys = [...new Set([...one.keys(), ...other.keys()])];
  const different = keys.filter((key) => one.get(key) !== other.get(key));
  const words = different.slice(0, 4).map((key) => `${key}: ${one.get(key) ?? "none"} (A), ${other.get(key) ?? "none"} (B)`);
  const rest = different.length - words.length;
  if (words.length === 0) return "A and B are the same.";
  return `A and B differ in ${words.join("; ")}${rest > 0 ? `; and ${rest} more` : ""}. Both have the same random numbers.`;
}

function leaves(value: unknown, key = ""): Map<string, string> {
  if (typeof value !== "object" || value === null) return new Map([[key, String(value)]]);
  const entries = Object.entries(value).flatMap(([name, inner]) => [
    ...leaves(inner, Array.isArray(value) ? `${key}[${name}]` : key === "" ? name : `${key}.${name}`),
  ]);
  return new Map(entries);
}

/** Two arms of a river that part and meet again: an anabranch. */
function mark(): HTMLElement {
  const place = h("span", { class: "mark", "aria-hidden": "true" });
  place.innerHTML =
    '<svg viewBox="0 0 32 32" width="26" height="26"><g fill="none" stroke-width="3" stroke-linecap="round">' +
    '<path d="M2 16h4c5 0 5-9 10-9s5 9 10 9h4" stroke="var(--path-0)"/>' +
    '<path d="M6 16c5 0 5 9 10 9s5-9 10-9" stroke="var(--path-1)"/></g></svg>';
  return place;
}
