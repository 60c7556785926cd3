// Time series of sessions, for charts.

import type { Shown } from "./player.ts";
import { blockDelays, blocksOf } from "./measures.ts";
import { flowOf, nanoseconds } from "./scenario.ts";

export interface Series {
  session: number;
  path: number;
  label: string;
  values: (number | null)[];
}

export interface Chart {
  times: number[];
  series: Series[];
}

export type Quantity = "goodput" | "rtt" | "cwnd";

/** Time in ns over which goodput is averaged. */
const SPAN = 1e9;
/** Quantiles of a CDF. */
const POINTS = 100;

/** One quantity of each path over time, of all sessions. */
export function overTime(sessions: Shown[], connection: number, of: Quantity): Chart {
  const times = sampleTimes(sessions);
  const places = new Map(times.map((time, place) => [time, place]));
  const series = sessions.flatMap((shown, session) => {
    const flow = flowOf(shown.scenario, connection);
    const table = shown.tables.subflow_samples;
    const column = (name: string): readonly number[] => table.column(name);
    const [time, flows, path] = [column("time_ns"), column("connection"), column("path")];
    const value = column({ goodput: "bytes_received", rtt: "srtt_ns", cwnd: "cwnd" }[of]);
    return shown.scenario.path.map(({ name }, number): Series => {
      const values = new Array<number | null>(times.length).fill(null);
      for (let row = 0; row < time.length; row += 1) {
        if (flows[row] !== flow || path[row] !== number) continue;
        const place = places.get(time[row] ?? -1);
        if (place !== undefined) values[place] = value[row] ?? null;
      }
      return { session, path: number, label: name, values: convert(values, times, of) };
    });
  });
  const used = series.filter(({ values }) => values.some((value) => value !== null));
  return { times: times.map((time) => time / 1e9), series: used };
}

function convert(values: (number | null)[], times: number[], of: Quantity): (number | null)[] {
  if (of === "rtt") return values.map((value) => (value === null || value === 0 ? null : value / 1e6));
  if (of === "cwnd") return values.map((value) => (value === null || value > 1e12 ? null : value / 1460));
  let from = 0;
  return values.map((value, place) => {
    const time = times[place] ?? 0;
    while ((times[from] ?? 0) < time - SPAN) from += 1;
    const [before, since] = [values[from], times[from]];
    if (value === null || typeof before !== "number" || since === undefined || since >= time) return null;
    return ((value - before) * 8e3) / (time - since);
  });
}

/** The longest delay of the blocks that each interval between samples delivered, for each session. */
export function delaysOverTime(sessions: Shown[], connection: number): { times: number[]; delays: (number | null)[][] } {
  const times = sampleTimes(sessions);
  const delays = sessions.map((shown) => {
    const longest = new Array<number | null>(times.length).fill(null);
    let place = 0;
    for (const { delivered, delay } of blocksOf(shown.tables, flowOf(shown.scenario, connection))) {
      while ((times[place] ?? Infinity) < delivered) place += 1;
      if (place < times.length) longest[place] = Math.max(longest[place] ?? 0, delay);
    }
    return longest;
  });
  return { times: times.map((time) => time / 1e9), delays };
}

function sampleTimes(sessions: Shown[]): number[] {
  const times = new Set(sessions.flatMap((each) => each.tables.subflow_samples.column("time_ns")));
  return [...times].sort((one, other) => one - other);
}

/** The CDF of block delays of each session: delay in ms and share of the blocks. */
export function delayCdfs(sessions: Shown[], connection: number): { delays: number[]; shares: number[] }[] {
  return sessions.map((shown) => {
    const flow = flowOf(shown.scenario, connection);
    const delays = blockDelays(shown.tables, flow, nanoseconds(shown.scenario.warm_up));
    delays.sort((one, other) => one - other);
    const steps = Math.min(POINTS, delays.length);
    const at = (step: number): number => delays[Math.ceil(((step + 1) / steps) * delays.length) - 1] ?? 0;
    const places = Array.from({ length: steps }, (_, step) => step);
    return { delays: places.map(at), shares: places.map((step) => (step + 1) / steps) };
  });
}

export interface Interval {
  path: number;
  state: string;
  behind: number;
  from: number;
  until: number;
}

/** The states of a connection's subflows so far. */
export function intervals(shown: Shown, connection: number): Interval[] {
  const flow = flowOf(shown.scenario, connection);
  const { activities, activities_open: open } = shown.tables;
  const rows = [activities, open].flatMap((table) =>
    table.objects().map((row) => ({ row, state: table.name("state", row["state"] ?? -1) })),
  );
  return rows
    .filter(({ row }) => row["connection"] === flow)
    .map(({ row, state }) => ({
      path: row["path"] ?? 0,
      state,
      behind: row["behind"] ?? -1,
      from: row["from_ns"] ?? 0,
      until: row["until_ns"] ?? 0,
    }));
}
