// Messages between the page and the worker that holds the engine.

/** A scenario to run. */
export interface Source {
  toml: string;
  /** Name in error messages. */
  file: string;
  seed: string;
}

/** A key of the scenario and its new value. */
export type Setting = [key: string, value: unknown];

/** One link of a path. */
export interface LinkState {
  rate: number;
  delay: number;
  up: boolean;
  queued: number;
  limit: number | null;
  delivered: number;
  dropped: number;
  lost: number;
  cut: number;
}

export interface SubflowState {
  slot: number;
  path: number;
  cwnd: number;
  ssthresh: number | null;
  inFlight: number;
  mss: number;
  srtt: number | null;
  recovering: boolean;
  backup: boolean;
  activity: string;
  behind: number | null;
  retransmitted: number;
  reinjected: number;
  timeouts: number;
  penalties: number;
  penalised: number | null;
}

export interface ConnectionState {
  sender: "client" | "server";
  mptcp: boolean;
  send: { acknowledged: number; sent: number; written: number; capacity: number };
  receive: { read: number; delivered: number; capacity: number; outOfOrder: [number, number][] };
  window: number;
  /** Path of the subflow that carries the oldest unacknowledged data. */
  blocking: number | null;
  reinjections: number;
  subflows: SubflowState[];
}

export interface State {
  now: number;
  events: number;
  segments: number;
  paths: { forward: LinkState; reverse: LinkState }[];
  connections: (ConnectionState | null)[];
}

/** Columns of a table, and the names behind the numbers of some of them. */
export interface Schema {
  columns: string[];
  names: Record<string, string[]>;
}

/** The tables of which every full frame brings the new rows. */
export const GROWING = ["subflow_samples", "connection_samples", "activities"] as const;
/** The tables that every full frame brings whole. The rows of blocks are in the order of the flows. */
export const WHOLE = ["activities_open", "blocks", "capacity", "connections", "subflows"] as const;
export const TABLES = [...GROWING, ...WHOLE] as const;
export type TableName = (typeof TABLES)[number];

/** A session at a moment. */
export interface Frame {
  state: State;
  packets: Float64Array;
  /** New rows of growing tables, all rows of the others. Absent from light frames. */
  tables: Partial<Record<TableName, Float64Array>>;
  digest: string;
  over: boolean;
}

/** A session after it has begun. */
export interface Opened {
  scenario: string;
  toml: string;
  end: number;
  schemas: Record<TableName, Schema>;
}

/** The tables of a run from begin to end. */
export interface Measured {
  scenario: string;
  schemas: Record<TableName, Schema>;
  tables: Record<TableName, Float64Array>;
  digest: string;
  now: number;
  segments: number;
  milliseconds: number;
}

export interface Requests {
  open: { sources: Source[] };
  /** Run until `until` for at most `budget` ms. `full` asks for tables. */
  advance: { until: number | null; budget: number; full: boolean };
  /** Execute events of the first session; the others follow to the same time. */
  events: { count: number };
  restart: Record<string, never>;
  change: { path: number; change: Record<string, unknown> };
  set: { session: number | null; settings: Setting[] };
  csv: { session: number; table: string };
  pcapng: { session: number };
  measure: { source: Source; settings: Setting[] };
  stop: Record<string, never>;
  digest: { source: Source };
}

export interface Replies {
  open: Opened[];
  advance: Frame[];
  events: Frame[];
  restart: Frame[];
  change: Opened[];
  set: Opened[];
  csv: string;
  pcapng: Uint8Array;
  measure: Measured;
  stop: null;
  digest: string;
}

export type Kind = keyof Requests;

export interface Request<K extends Kind = Kind> {
  id: number;
  kind: K;
  body: Requests[K];
}

export type Reply = { id: number; ok: true; body: unknown } | { id: number; ok: false; error: string };
