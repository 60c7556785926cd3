// Scenarios with every default spelled out, as the engine writes them.

export interface Change {
  at: string;
  rate?: string;
  delay?: string;
  jitter?: string;
  loss?: string;
  state?: string;
}

export interface Path {
  name: string;
  rate?: string;
  delay: string;
  limit: string;
  jitter: string;
  loss: string;
  via?: (string | { path: string })[];
  change: Change[];
}

export interface Connection {
  name: string;
  protocol: "mptcp" | "tcp";
  paths: string[];
  start: string;
  send_buffer: string;
  receive_buffer: string;
  congestion_control: string | Record<string, unknown>;
  scheduler: string | Record<string, unknown>;
  remedies: Record<string, unknown>;
  workload: { kind: string } & Record<string, unknown>;
}

export interface Scenario {
  name: string;
  description: string;
  duration: string;
  warm_up: string;
  path: Path[];
  connection: Connection[];
  senders: ("client" | "server")[][];
}

export function readScenario(json: string): Scenario {
  return JSON.parse(json) as Scenario;
}

/** The name of a policy, with or without parameters. */
export function policyName(policy: string | Record<string, unknown>): string {
  const kind = typeof policy === "string" ? policy : policy["kind"];
  return typeof kind === "string" ? kind : "one for each path";
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

/** A duration such as "20ms" in ns. */
export function nanoseconds(text: string): number {
  const found = /^([\d.]+)(ns|us|ms|s)$/.exec(text);
  const unit = UNITS[found?.[2] ?? ""];
  if (found === null || unit === undefined) throw new Error(`${text} is not a duration`);
  return Number(found[1]) * unit;
}

/** The number of a quantity such as "8Mbit/s" in its base unit, whatever its unit. */
export function quantity(text: string): number {
  const found = /^([\d.]+)\s*(.*)$/.exec(text);
  if (found === null) return NaN;
  const factors: Record<string, number> = {
    "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9,
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3,
    ns: 1, us: 1e3, ms: 1e6, s: 1e9, "%": 0.01, packets: 1, "": 1,
  }; // prettier-ignore
  return Number(found[1]) * (factors[found[2] ?? ""] ?? NaN);
}

/** A direction of a connection in which its workload's data goes. */
export interface Flow {
  name: string;
  connection: number;
}

/** The flows, in the order in which tables number them. A connection that sends both ways has two. */
export function flows(scenario: Scenario): Flow[] {
  return scenario.connection.flatMap(({ name }, connection) => {
    const senders = scenario.senders[connection] ?? [];
    const suffix = (sender: string): string => (senders.length > 1 ? ` ${sender === "server" ? "download" : "upload"}` : "");
    return senders.map((sender) => ({ name: name + suffix(sender), connection }));
  });
}

/** The number of a connection's first flow. */
export function flowOf(scenario: Scenario, connection: number): number {
  return flows(scenario).findIndex((flow) => flow.connection === connection);
}
