// The sessions of a page: one, or two side by side. This is the worker without its messages, so that
// tests can run it in Node.

import { Session } from "./module/engine.js";
import type { Frame, Measured, Opened, Schema, Setting, Source, State, TableName } from "./protocol.ts";
import { GROWING, TABLES, WHOLE } from "./protocol.ts";

/** Virtual time of one step in ns, to begin with, at least and at most. */
const SLICE = { first: 1e6, least: 1e3, most: 200e6 };
/** A step should take this many ms, so that a run that is slow stays responsive. */
const STEP_MS = 4;
/** A capture in the memory of a page must stay small. */
const CAPTURE_BYTES = 256e6;
/** The events of one call. */
const EVENTS = 20_000;

/** A session, and the rows of its tables that the page already has. */
class ShownSession {
  readonly session: Session;
  private sent = new Map<TableName, number>();

  constructor(source: Source) {
    this.session = new Session(source.toml, source.file, BigInt(source.seed));
  }

  /** The session for the page, which has no rows of its tables yet. */
  opened(): Opened {
    this.sent.clear();
    return this.described();
  }

  described(): Opened {
    return {
      scenario: this.session.scenario(),
      toml: this.session.toml(),
      end: this.session.end(),
      schemas: schemas(this.session),
    };
  }

  restart(): void {
    this.session.restart();
    this.sent.clear();
  }

  frame(full: boolean): Frame {
    const { session } = this;
    const tables: Frame["tables"] = {};
    if (full) {
      for (const name of WHOLE) tables[name] = session.rows(name, 0);
      for (const name of GROWING) {
        const from = this.sent.get(name) ?? 0;
        const rows = session.rows(name, from);
        const columns = (JSON.parse(session.schema(name)) as Schema).columns.length;
        this.sent.set(name, from + rows.length / columns);
        tables[name] = rows;
      }
    }
    return {
      state: JSON.parse(session.state()) as State,
      packets: session.packets(),
      tables,
      digest: session.digest(),
      over: session.isOver(),
    };
  }
}

/** Let other messages have their turn. Browsers would delay a timer by 4 ms. */
async function turn(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    port1.onmessage = resolve;
    port2.postMessage(null);
  });
  port1.close();
}

function schemas(session: Session): Record<TableName, Schema> {
  const entries = TABLES.map((name) => [name, JSON.parse(session.schema(name)) as Schema]);
  return Object.fromEntries(entries) as Record<TableName, Schema>;
}

/** Advances sessions in steps that are short in real time, whatever the scenario. */
class Stepper {
  private slice = SLICE.first;

  step(sessions: Session[], until: number): void {
    const now = Math.min(...sessions.map((session) => session.now()));
    const target = Math.min(until, now + this.slice);
    const begun = performance.now();
    for (const session of sessions) session.stepUntil(target);
    const took = performance.now() - begun;
    if (took > STEP_MS) this.slice = Math.max(SLICE.least, this.slice / 2);
    else if (took < STEP_MS / 4) this.slice = Math.min(SLICE.most, this.slice * 2);
  }
}

export class Sessions {
  private all: ShownSession[] = [];
  private stepper = new Stepper();
  /** Measurements so far, and stops. A measurement ends when another one or a stop follows it. */
  private attempts = 0;

  open(sources: Source[]): Opened[] {
    const all = sources.map((source) => new ShownSession(source));
    this.free();
    this.all = all;
    return all.map((shown) => shown.opened());
  }

  advance(until: number | null, budget: number, full: boolean): Frame[] {
    const begun = performance.now();
    // The engine's clock has whole nanoseconds.
    const target = Math.floor(Math.min(until ?? Infinity, this.end()));
    while (this.now() < target || (target === this.end() && !this.isOver())) {
      this.stepper.step(this.sessions(), target);
      if (performance.now() - begun >= budget) break;
    }
    return this.frames(full);
  }

  events(count: number): Frame[] {
    const [first, ...others] = this.sessions();
    if (first === undefined) return [];
    for (let left = count; left > 0; ) {
      const executed = first.stepEvents(Math.min(left, EVENTS));
      if (executed === 0) break;
      left -= executed;
    }
    for (const other of others) other.stepUntil(first.now());
    return this.frames(true);
  }

  restart(): Frame[] {
    for (const shown of this.all) shown.restart();
    return this.frames(true);
  }

  /** Change a path of every session, because they share their network. */
  change(path: number, change: Record<string, unknown>): Opened[] {
    const text = JSON.stringify(change);
    for (const { session } of this.all) session.change(path, text);
    return this.all.map((shown) => shown.described());
  }

  set(session: number | null, settings: Setting[]): Opened[] {
    const text = JSON.stringify(settings);
    const changed = this.all.filter((_, index) => session === null || session === index);
    for (const shown of changed) shown.session.set(text);
    for (const shown of this.all) shown.restart();
    return this.all.map((shown) => shown.opened());
  }

  csv(session: number, table: string): string {
    return this.at(session).csv(table);
  }

  pcapng(session: number): Uint8Array {
    return this.at(session).pcapng(CAPTURE_BYTES);
  }

  /** Run a scenario of its own to the end. Pauses now and then, so that `stop` gets a turn. */
  async measure(source: Source, settings: Setting[]): Promise<Measured> {
    const session = new Session(source.toml, source.file, BigInt(source.seed));
    try {
      if (settings.length > 0) session.set(JSON.stringify(settings));
      const attempt = (this.attempts += 1);
      const begun = performance.now();
      const stepper = new Stepper();
      for (let paused = begun; !session.isOver(); ) {
        stepper.step([session], session.end());
        if (performance.now() - paused < 50) continue;
        await turn();
        if (this.attempts !== attempt) throw new Error("the run was stopped");
        paused = performance.now();
      }
      const milliseconds = performance.now() - begun;
      const tables = Object.fromEntries(TABLES.map((name) => [name, session.rows(name, 0)]));
      return {
        scenario: session.scenario(),
        schemas: schemas(session),
        tables: tables as Record<TableName, Float64Array>,
        digest: session.digest(),
        now: session.now(),
        segments: session.segments(),
        milliseconds,
      };
    } finally {
      session.free();
    }
  }

  /** Give up what `measure` is running. */
  stop(): null {
    this.attempts += 1;
    return null;
  }

  private frames(full: boolean): Frame[] {
    return this.all.map((shown) => shown.frame(full));
  }

  private sessions(): Session[] {
    return this.all.map((shown) => shown.session);
  }

  private at(index: number): Session {
    const shown = this.all[index];
    if (shown === undefined) throw new Error("there is no such session");
    return shown.session;
  }

  private now(): number {
    return Math.min(...this.sessions().map((session) => session.now()));
  }

  private end(): number {
    return Math.max(0, ...this.sessions().map((session) => session.end()));
  }

  private isOver(): boolean {
    return this.sessions().every((session) => session.isOver());
  }

  private free(): void {
    for (const { session } of this.all) session.free();
  }
}
