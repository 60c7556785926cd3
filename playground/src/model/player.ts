// The sessions on the page and their common clock. Knows nothing about the document.

import type { Engine } from "../engine/client.ts";
import type { Frame, Opened, Setting, Source } from "../engine/protocol.ts";
import type { Scenario } from "./scenario.ts";
import { readScenario } from "./scenario.ts";
import { addFrame, emptyTables, type Tables } from "./table.ts";

/** A session as the page shows it. */
export interface Shown {
  label: string;
  source: Source;
  scenario: Scenario;
  toml: string;
  end: number;
  tables: Tables;
  frame: Frame | null;
}

/** Packets that a link lost since the last frame. */
export interface Drop {
  session: number;
  path: number;
  count: number;
  inQueue: boolean;
}

export interface Listener {
  /** Sessions were opened, changed or restarted. */
  opened: () => void;
  /** There is a new frame; a full one has new rows of tables. */
  frame: (drops: Drop[], full: boolean) => void;
  failed: (message: string) => void;
}

/** How often the page is drawn: the time in ms that the worker spends on a frame at most, and the interval in ms between frames with tables. */
interface Pace {
  budget: number;
  fullEvery: number;
}

const PLAYING: Pace = { budget: 14, fullEvery: 200 };
/** At full speed. Frames and tables take time from the engine where both share a core. */
const JUMPING: Pace = { budget: 100, fullEvery: 500 };
/** One frame, with tables. */
const STILL: Pace = { budget: 0, fullEvery: 0 };

export class Player {
  sessions: Shown[] = [];
  isPlaying = false;
  /** Virtual seconds per second. */
  speed = 0.1;
  /** The time to which the sessions run at full speed. */
  private goal: number | null = null;
  private isBusy = false;
  /** Frames that the worker makes while the page draws the frames before. */
  private ahead: Promise<Frame[]> | null = null;
  private lastTick = 0;
  private lastFull = 0;

  constructor(
    private engine: Engine,
    private listener: Listener,
  ) {}

  get now(): number {
    return this.sessions[0]?.frame?.state.now ?? 0;
  }

  get end(): number {
    return this.sessions[0]?.end ?? 1;
  }

  get isOver(): boolean {
    return this.sessions.length > 0 && this.sessions.every(({ frame }) => frame?.over === true);
  }

  async open(sources: Source[], labels: string[], settings: Setting[][] = []): Promise<boolean> {
    return this.attempt(async () => {
      const opened = await this.engine.ask("open", { sources });
      const shown = sources.map((source, index) => fresh(source, labels[index] ?? "", opened[index]));
      for (const [session, own] of settings.entries()) {
        if (own.length === 0) continue;
        const again = await this.engine.ask("set", { session, settings: own });
        for (const [index, each] of shown.entries()) refresh(each, again[index]);
      }
      this.sessions = shown;
      this.goal = null;
      this.listener.opened();
      await this.show(STILL);
    });
  }

  play(): void {
    if (this.isOver) void this.seek(0);
    this.isPlaying = true;
    this.lastTick = performance.now();
  }

  pause(): void {
    this.isPlaying = false;
    this.goal = null;
    void this.attempt(() => this.show(STILL));
  }

  /** Go to a time, forward or back. To go back, the sessions run again from the start. */
  async seek(to: number): Promise<void> {
    if (to < this.now) await this.attempt(() => this.restart());
    this.goal = to;
    this.lastTick = performance.now();
  }

  async stepEvent(): Promise<void> {
    this.isPlaying = false;
    await this.attempt(async () => this.take(await this.engine.ask("events", { count: 1 })));
  }

  async stepBack(): Promise<void> {
    this.isPlaying = false;
    const events = this.sessions[0]?.frame?.state.events ?? 0;
    await this.attempt(async () => {
      await this.restart();
      this.take(await this.engine.ask("events", { count: Math.max(0, events - 1) }));
    });
  }

  /** Change a path now, in all sessions. The change becomes part of the scenario. */
  async change(path: number, change: Record<string, unknown>): Promise<boolean> {
    return this.attempt(async () => {
      const opened = await this.engine.ask("change", { path, change });
      for (const [index, each] of this.sessions.entries()) describe(each, opened[index]);
      this.listener.opened();
    });
  }

  /** Set keys of the scenario and begin again; of all sessions, or of one. */
  async set(session: number | null, settings: Setting[]): Promise<boolean> {
    const to = this.now;
    return this.attempt(async () => {
      const opened = await this.engine.ask("set", { session, settings });
      for (const [index, each] of this.sessions.entries()) refresh(each, opened[index]);
      this.listener.opened();
      await this.show(STILL);
      if (to > 0 && !this.isPlaying) this.goal = to;
    });
  }

  /** One animation frame. */
  async tick(time: number): Promise<void> {
    if (this.isBusy || this.sessions.length === 0) return;
    if (!this.isPlaying && this.goal === null) return;
    const elapsed = Math.min(100, time - this.lastTick);
    this.lastTick = time;
    const isJump = this.goal !== null;
    const atFull = !Number.isFinite(this.speed);
    const target = this.goal ?? (atFull ? null : this.now + elapsed * 1e6 * this.speed);
    if (isJump || atFull) await this.attempt(() => this.showAhead(target), true);
    else await this.attempt(() => this.show(PLAYING, target));
    if (this.goal !== null && this.now >= Math.min(this.goal, this.end)) {
      this.goal = null;
      await this.attempt(() => this.show(STILL));
    }
    if (this.isPlaying && this.isOver) this.pause();
  }

  private async show(pace: Pace, until: number | null = this.now): Promise<void> {
    this.take(await this.advance(pace, until));
  }

  /** Show frames, and let the worker go on meanwhile. */
  private async showAhead(until: number | null): Promise<void> {
    const frames = await (this.takeAhead() ?? this.advance(JUMPING, until));
    this.ahead = this.advance(JUMPING, until);
    this.ahead.catch(() => undefined); // whoever takes it gets the error
    this.take(frames);
  }

  private takeAhead(): Promise<Frame[]> | null {
    const { ahead } = this;
    this.ahead = null;
    return ahead;
  }

  private advance({ budget, fullEvery }: Pace, until: number | null): Promise<Frame[]> {
    const full = performance.now() - this.lastFull >= fullEvery;
    if (full) this.lastFull = performance.now();
    return this.engine.ask("advance", { until, budget, full });
  }

  private async restart(): Promise<void> {
    const frames = await this.engine.ask("restart", {});
    for (const each of this.sessions) clear(each);
    this.take(frames);
  }

  private take(frames: Frame[]): void {
    const drops: Drop[] = [];
    for (const [session, shown] of this.sessions.entries()) {
      const frame = frames[session];
      if (frame === undefined) continue;
      drops.push(...dropsBetween(session, shown.frame, frame));
      shown.frame = frame;
      addFrame(shown.tables, frame.tables);
    }
    this.listener.frame(drops, frames.some(({ tables }) => Object.keys(tables).length > 0));
  }

  /** Do one thing at a time. Frames of the future are taken first, because they have rows of tables. */
  private async attempt(action: () => Promise<void>, goesOn = false): Promise<boolean> {
    while (this.isBusy) await new Promise((resolve) => setTimeout(resolve, 5));
    this.isBusy = true;
    try {
      const ahead = goesOn ? null : this.takeAhead();
      if (ahead !== null) this.take(await ahead);
      await action();
      return true;
    } catch (error) {
      this.isPlaying = false;
      this.goal = null;
      this.listener.failed(error instanceof Error ? error.message : String(error));
      return false;
    } finally {
      this.isBusy = false;
    }
  }
}

function fresh(source: Source, label: string, opened: Opened | undefined): Shown {
  if (opened === undefined) throw new Error("the engine opened no session");
  return {
    label,
    source,
    scenario: readScenario(opened.scenario),
    toml: opened.toml,
    end: opened.end,
    tables: emptyTables(opened.schemas),
    frame: null,
  };
}

function describe(shown: Shown, opened: Opened | undefined): void {
  if (opened === undefined) return;
  shown.scenario = readScenario(opened.scenario);
  shown.toml = opened.toml;
  shown.end = opened.end;
}

function clear(shown: Shown): void {
  const schemas = Object.entries(shown.tables).map(([name, table]) => [name, table.schema]);
  shown.tables = emptyTables(Object.fromEntries(schemas) as Parameters<typeof emptyTables>[0]);
  shown.frame = null;
}

function refresh(shown: Shown, opened: Opened | undefined): void {
  describe(shown, opened);
  clear(shown);
}

function dropsBetween(session: number, before: Frame | null, after: Frame): Drop[] {
  const drops: Drop[] = [];
  for (const [path, { forward, reverse }] of after.state.paths.entries()) {
    const earlier = before?.state.paths[path];
    if (earlier === undefined) continue;
    const inQueue = forward.dropped - earlier.forward.dropped;
    const onLink =
      forward.lost + forward.cut + reverse.lost + reverse.cut -
      (earlier.forward.lost + earlier.forward.cut + earlier.reverse.lost + earlier.reverse.cut); // prettier-ignore
    if (inQueue > 0) drops.push({ session, path, count: inQueue, inQueue: true });
    if (onLink > 0) drops.push({ session, path, count: onLink, inQueue: false });
  }
  return drops;
}
