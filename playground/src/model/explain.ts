// The two sentences of `anabranch explain`, from the tables of a run so far. The rules and the words
// are those of python/anabranch/explanations; a test compares the sentences.

import causes from "./causes.json";
import type { Path, Scenario } from "./scenario.ts";
import { flows } from "./scenario.ts";
import type { Tables } from "./table.ts";
import { listed, number, percent } from "./words.ts";

export interface Cause {
  words: string;
  because: string;
  colour: string;
  idle: boolean;
  overhead: boolean;
}

export const CAUSES = causes as Record<string, Cause>;

/** Share of the capacity below which a loss is not worth a remedy. */
const SMALL = 0.02;
/** Share of a loss from which a sentence names a part of it. */
const NAMED = 0.15;

interface Loss {
  path: string;
  cause: string;
  behind: string;
  mbps: number;
}

interface Account {
  seconds: number;
  goodput: number;
  /** Mbit/s by path. */
  capacity: Map<string, number>;
  losses: Loss[];
}

/** The sentences about each flow. */
export function findings(tables: Tables, scenario: Scenario): string[][] {
  return flows(scenario).map(({ name, connection }, flow) => finding(name, accountOf(tables, scenario, connection, flow), scenario));
}

function finding(name: string, account: Account | null, scenario: Scenario): string[] {
  if (account === null) return [`${name} has not been measured yet: the warm-up lasts ${scenario.warm_up}.`];
  const capacity = sum([...account.capacity.values()]);
  const missing = capacity - account.goodput;
  const share = capacity > 0 ? (account.goodput / capacity) * 100 : 0;
  const first =
    `${name} delivered ${number(account.goodput)} of the ${number(capacity)} Mbit/s ` +
    `that its paths could carry (${share.toFixed(0)} %).`;
  const main = mainLosses(account, capacity);
  if (main.length === 0) {
    const overhead = sum(account.losses.filter((loss) => causeOf(loss).overhead).map(mbps));
    const rest = `took ${number(overhead)} of the ${number(missing)} Mbit/s missing.`;
    return [first, `Nothing held it back: headers and acknowledgements ${rest}`];
  }
  return [first, sentence(main, account, missing, scenario)];
}

/** Goodput of a connection in Mbit/s: data that arrived for the first time in the measured time. */
export function goodput(tables: Tables, flow: number): { mbps: number; seconds: number } {
  const row = tables.connections.objects().find((each) => each["connection"] === flow);
  const seconds = (row?.["measured_ns"] ?? 0) / 1e9;
  const bytes = row?.["bytes_arrived_measured"] ?? 0;
  return { mbps: seconds > 0 ? (bytes * 8e-6) / seconds : 0, seconds };
}

function accountOf(tables: Tables, scenario: Scenario, connection: number, flow: number): Account | null {
  const { mbps: delivered, seconds } = goodput(tables, flow);
  const all = tables.capacity.objects().filter((row) => row["connection"] === flow);
  if (seconds <= 0 || all.length === 0) return null;
  const names = scenario.path.map((path) => path.name);
  const toMbps = (bytes: number): number => (bytes * 8e-6) / seconds;
  const capacityOf = (path: number): number =>
    sum(all.filter((row) => row["path"] === path).map((row) => row["bytes"] ?? 0));
  const bounding = boundingPaths(scenario, connection, capacityOf);
  const pathOfSlot = slots(tables, flow, names);
  const merged = new Map<string, Loss>();
  for (const row of all) {
    const path = row["path"] ?? -1;
    const cause = tables.capacity.name("cause", row["cause"] ?? -1);
    if (!bounding.includes(path) || cause === "useful") continue;
    const behind = pathOfSlot.get(row["behind"] ?? -1) ?? "";
    const key = [path, cause, behind].join();
    const loss = merged.get(key) ?? { path: names[path] ?? "", cause, behind, mbps: 0 };
    loss.mbps += toMbps(row["bytes"] ?? 0);
    merged.set(key, loss);
  }
  const capacity = new Map(bounding.map((path) => [names[path] ?? "", toMbps(capacityOf(path))]));
  const losses = [...merged.values()].sort((one, other) => other.mbps - one.mbps);
  return { seconds, goodput: delivered, capacity, losses };
}

/** The numbers of the paths whose capacity bounds the connection. If several of its paths cross another
 * path and together are not slower than that path, it counts in their place. */
function boundingPaths(
  scenario: Scenario,
  connection: number,
  capacityOf: (path: number) => number,
): number[] {
  const own = scenario.connection[connection]?.paths ?? [];
  const numbers = new Map(scenario.path.map((path, index) => [path.name, index]));
  const behind = new Map<number, Set<string>>();
  for (const name of own) {
    for (const crossed of route(name, scenario.path)) {
      const index = numbers.get(crossed) ?? -1;
      behind.set(index, (behind.get(index) ?? new Set()).add(name));
    }
  }
  const kept = new Map(own.map((name) => [numbers.get(name) ?? -1, new Set([name])]));
  for (const [shared, users] of behind) {
    const covered = [...kept].filter(([, names]) => [...names].every((name) => users.has(name)));
    const together = sum(covered.map(([path]) => capacityOf(path)));
    if (covered.length > 0 && together >= capacityOf(shared)) {
      for (const [path] of covered) kept.delete(path);
      kept.set(shared, new Set(covered.flatMap(([, names]) => [...names])));
    }
  }
  return [...kept.keys()].sort((one, other) => one - other);
}

/** The path itself and the paths that it goes via. */
export function route(name: string, paths: readonly Path[]): string[] {
  const via = paths.find((path) => path.name === name)?.via ?? [];
  const hops = (typeof via === "string" ? [via] : via).map((hop) =>
    (typeof hop === "string" ? hop : hop.path).replace(/^-/, ""),
  );
  return [name, ...hops.flatMap((hop) => route(hop, paths))];
}

/** The name of the path of each subflow, by slot; of several in a slot, the last one. */
export function slots(tables: Tables, flow: number, names: string[]): Map<number, string> {
  const intervals = [...tables.activities.objects(), ...tables.activities_open.objects()];
  const mine = intervals.filter((row) => row["connection"] === flow && (row["subflow"] ?? -1) >= 0);
  mine.sort((one, other) => (one["generation"] ?? 0) - (other["generation"] ?? 0));
  return new Map(mine.map((row) => [row["subflow"] ?? -1, names[row["path"] ?? -1] ?? ""]));
}

function mainLosses(account: Account, capacity: number): Loss[] {
  const byCause = new Map<string, Loss[]>();
  for (const loss of account.losses) {
    if (!causeOf(loss).overhead) byCause.set(loss.cause, [...(byCause.get(loss.cause) ?? []), loss]);
  }
  const groups = [...byCause.values()];
  const largest = groups.reduce<Loss[]>((best, each) => (total(each) > total(best) ? each : best), []);
  return total(largest) < SMALL * capacity ? [] : largest;
}

function sentence(losses: Loss[], account: Account, missing: number, scenario: Scenario): string {
  const least = NAMED * total(losses);
  const paths = grouped(losses, (loss) => loss.path, least);
  let named = losses.filter((loss) => paths.includes(loss.path));
  const behind = grouped(named, (loss) => loss.behind, least);
  named = named.filter((loss) => behind.includes(loss.behind));
  const lost = total(named);
  const share = percent(lost / (sum(paths.map((path) => account.capacity.get(path) ?? 0)) || 1));
  const varying = scenario.path.filter(({ rate, change }) => rate === undefined || change.some((each) => each.rate !== undefined));
  const varies = varying.some((path) => named.some((loss) => loss.path === path.name));
  const capacity = `${share} of ${paths.length > 1 ? "their" : "its"} capacity`;
  const ends = `${number(lost)} of the ${number(missing)} Mbit/s missing`;
  const [loss] = losses;
  const cause = loss === undefined ? undefined : CAUSES[loss.cause];
  const subject = listed(paths);
  if (cause?.idle === true) {
    const others = behind.filter((name) => name !== "");
    const behindWords = others.length > 0 ? ` behind ${listed(others)}` : "";
    const idled = varies ? `left ${capacity} unused` : `idled for ${share} of the time`;
    return `${subject} ${idled} because ${cause.because}${behindWords}: ${ends}.`;
  }
  if (loss?.cause === "outage") {
    const was = paths.length > 1 ? "were" : "was";
    return `${subject} ${varies ? `lost ${capacity} while down` : `${was} down for ${share} of the time`}: ${ends}.`;
  }
  return `${share} of the capacity of ${subject} went to ${cause?.words ?? ""}: ${ends}.`;
}

/** The names whose losses are at least this large together; the largest in any case. */
function grouped(losses: Loss[], name: (loss: Loss) => string, least: number): string[] {
  const sums = new Map<string, number>();
  for (const loss of losses) sums.set(name(loss), (sums.get(name(loss)) ?? 0) + loss.mbps);
  const bound = Math.min(least, Math.max(...sums.values()));
  return [...sums].filter(([, size]) => size >= bound).map(([each]) => each);
}

function causeOf(loss: Loss): Cause {
  const cause = CAUSES[loss.cause];
  if (cause === undefined) throw new Error(`the cause ${loss.cause} has no words`);
  return cause;
}

function mbps(loss: Loss): number {
  return loss.mbps;
}

function total(losses: readonly Loss[]): number {
  return sum(losses.map(mbps));
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
