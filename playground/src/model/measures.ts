// Numbers of a whole run, for the answers of lessons.

import type { Measured } from "../engine/protocol.ts";
import { findings, goodput } from "./explain.ts";
import type { Scenario } from "./scenario.ts";
import { flowOf, nanoseconds } from "./scenario.ts";
import { emptyTables, type Tables } from "./table.ts";

export interface ConnectionMeasures {
  name: string;
  /** Mbit/s. */
  goodput: number;
  /** ms; NaN without blocks. */
  meanDelay: number;
  p95Delay: number;
  /** Share of the payload by path. */
  shares: Record<string, number>;
  /** Highest and mean smoothed round-trip time by path after the warm-up, in ms. */
  maxRtt: Record<string, number>;
  meanRtt: Record<string, number>;
  reinjections: number;
  windowLimited: number;
  timeouts: number;
  /** Longest time in s without a byte for the application, after the first byte. */
  longestGap: number;
  finding: string[];
}

export interface Measures {
  connections: ConnectionMeasures[];
  digest: string;
}

export function measures(measured: Measured, scenario: Scenario): Measures {
  const tables = emptyTables(measured.schemas);
  for (const [name, rows] of Object.entries(measured.tables)) {
    tables[name as keyof Tables].replace(rows);
  }
  const found = findings(tables, scenario);
  const connections = scenario.connection.map((_, index) => ofConnection(tables, scenario, index, found));
  return { connections, digest: measured.digest };
}

function ofConnection(tables: Tables, scenario: Scenario, index: number, found: string[][]): ConnectionMeasures {
  const flow = flowOf(scenario, index);
  const totals = tables.connections.objects()[flow] ?? {};
  const delays = blockDelays(tables, flow, nanoseconds(scenario.warm_up));
  const subflows = tables.subflows.objects().filter((row) => row["connection"] === flow);
  const names = scenario.path.map((path) => path.name);
  const received = byPath(subflows.map((row) => [row["path"] ?? 0, row["bytes_received"] ?? 0]), names);
  const all = Object.values(received).reduce((sum, each) => sum + each, 0);
  const shares = Object.entries(received).map(([name, bytes]) => [name, all > 0 ? bytes / all : 0]);
  const rtts = roundTripTimes(tables, flow, names, nanoseconds(scenario.warm_up));
  const measuredNs = totals["measured_ns"] ?? 0;
  return {
    name: scenario.connection[index]?.name ?? "",
    goodput: goodput(tables, flow).mbps,
    meanDelay: mean(delays),
    p95Delay: quantile(delays, 0.95),
    shares: Object.fromEntries(shares) as Record<string, number>,
    maxRtt: mapValues(rtts, (values) => Math.max(...values)),
    meanRtt: mapValues(rtts, mean),
    reinjections: totals["reinjections"] ?? 0,
    windowLimited: measuredNs > 0 ? (totals["window_limited_ns"] ?? 0) / measuredNs : 0,
    timeouts: subflows.reduce((sum, row) => sum + (row["timeouts"] ?? 0), 0),
    longestGap: longestGap(tables, flow),
    finding: found[flow] ?? [],
  };
}

export interface Block {
  /** When the stack took it from the sending application, and when the receiving one had all of it, in ns. */
  accepted: number;
  delivered: number;
  /** ms. */
  delay: number;
}

/** The delivered blocks of a flow, in the order of their delivery. */
export function blocksOf(tables: Tables, flow: number): Block[] {
  const [flows, accepted, delivered] = ["connection", "accepted_ns", "delivered_ns"].map((name) => tables.blocks.column(name));
  const found: Block[] = [];
  for (const [row, each] of flows?.entries() ?? []) {
    const [from, until] = [accepted?.[row] ?? NaN, delivered?.[row] ?? NaN];
    if (each === flow) found.push({ accepted: from, delivered: until, delay: (until - from) / 1e6 });
  }
  return found;
}

/** The delays of a flow's blocks in ms, of those that the stack accepted after the warm-up. */
export function blockDelays(tables: Tables, flow: number, warmUp: number): number[] {
  return blocksOf(tables, flow).filter(({ accepted }) => accepted >= warmUp).map(({ delay }) => delay);
}

function roundTripTimes(
  tables: Tables,
  flow: number,
  names: string[],
  warmUp: number,
): Record<string, number[]> {
  const found: Record<string, number[]> = {};
  for (const row of tables.subflow_samples.objects()) {
    const rtt = row["srtt_ns"] ?? 0;
    if (row["connection"] !== flow || (row["time_ns"] ?? 0) < warmUp || rtt <= 0) continue;
    (found[names[row["path"] ?? 0] ?? ""] ??= []).push(rtt / 1e6);
  }
  return found;
}

function longestGap(tables: Tables, flow: number): number {
  let longest = 0;
  let last: { time: number; bytes: number } | null = null;
  for (const row of tables.connection_samples.objects()) {
    if (row["connection"] !== flow) continue;
    const [time, bytes] = [row["time_ns"] ?? 0, row["bytes_delivered"] ?? 0];
    if (last !== null && bytes === last.bytes && bytes > 0) longest = Math.max(longest, time - last.time);
    else last = { time, bytes };
  }
  return longest / 1e9;
}

function byPath(pairs: [number, number][], names: string[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [path, value] of pairs) {
    const name = names[path] ?? "";
    sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}

function mapValues<T>(all: Record<string, T>, of: (value: T) => number): Record<string, number> {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, of(value)]));
}

export function mean(values: readonly number[]): number {
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN;
}

/** Linear interpolation between the two nearest values. */
export function quantile(values: readonly number[], at: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((one, other) => one - other);
  const place = at * (sorted.length - 1);
  const below = sorted[Math.floor(place)] ?? NaN;
  const above = sorted[Math.ceil(place)] ?? NaN;
  return below + (above - below) * (place - Math.floor(place));
}
