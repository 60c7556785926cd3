// Settings of paths and connections. Those of paths change while the sessions run, where the engine
// can. The others begin again.

import type { Player, Shown } from "../model/player.ts";
import type { Setting } from "../engine/protocol.ts";
import { policyName, quantity, type Connection, type Path } from "../model/scenario.ts";
import { fill, h } from "./dom.ts";
import { PATHS } from "./theme.ts";

export const SCHEDULERS = ["min_rtt", "round_robin", "ecf", "blest", "redundant", "otias", "sttf", "daps", "linux", "mptcp_org"];
export const CONGESTION_CONTROLS = ["lia", "olia", "balia", "wvegas", "new_reno", "cubic", "cubic_linux", "bbr", "bbr3"];
export const REMEDIES: [key: string, label: string][] = [
  ["opportunistic_retransmission", "M1: opportunistic retransmission"],
  ["penalisation", "M2: penalisation"],
  ["buffer_autotuning", "M3: buffer autotuning"],
  ["cwnd_cap", "M4: cap of the window"],
  ["mpt_bm", "MPT-BM: cap of the round-trip time"],
];
export const WORKLOADS: Record<string, Record<string, unknown>> = {
  blocks: { kind: "blocks", block_size: "8KiB" },
  bulk: { kind: "bulk" },
  on_off: { kind: "on_off", burst_size: "256KiB", interval: "1s" },
};

/** A value that a slider moves over: its ends, and how to write it. */
interface Range {
  low: number;
  high: number;
  /** Equal steps multiply instead of adding. */
  log: boolean;
  write: (value: number) => string;
}

const round = (value: number): number => Number(value.toPrecision(2));
const RATE: Range = { low: 1e5, high: 1e8, log: true, write: (bps) => (bps >= 1e6 ? `${round(bps / 1e6)}Mbit/s` : `${round(bps / 1e3)}kbit/s`) };
const DELAY: Range = { low: 1e6, high: 5e8, log: true, write: (ns) => `${round(ns / 1e6)}ms` };
const JITTER: Range = { low: 0, high: 2e8, log: false, write: (ns) => `${Math.round(ns / 1e6)}ms` };
const LOSS: Range = { low: 0, high: 0.1, log: false, write: (share) => `${Math.round(share * 1000) / 10}%` };

type Key = "rate" | "delay" | "jitter" | "loss";
const SLIDERS: [Key, string, Range][] = [
  ["rate", "Rate", RATE],
  ["delay", "Delay, one way", DELAY],
  ["loss", "Loss", LOSS],
  ["jitter", "Jitter", JITTER],
];

const STEPS = 100;

export class Controls {
  readonly element = h("section", { class: "controls", "aria-label": "Settings" });
  private built = "";

  constructor(private player: Player) {}

  /** Build the controls again if the scenarios have changed. */
  show(connection: number): void {
    const { sessions } = this.player;
    const key = JSON.stringify([sessions.map(({ scenario }) => scenario), connection]);
    if (key === this.built) return;
    this.built = key;
    const inputs = (): Element[] => [...this.element.querySelectorAll("input, select, button, summary")];
    const focused = inputs().indexOf(document.activeElement ?? this.element);
    const open = new Set([...this.element.querySelectorAll("details[open]")].map((each) => each.id));
    const [first] = sessions;
    if (first === undefined) return;
    const paths = first.scenario.path.map((path, index) => this.path(path, index));
    const connections = sessions.map((shown, session) => this.connection(shown, session, connection));
    fill(this.element, h("h2", {}, "Settings"), ...paths, ...connections);
    for (const details of this.element.querySelectorAll("details")) {
      if (open.has(details.id)) details.open = true;
    }
    const again = inputs()[focused];
    if (again instanceof HTMLElement) again.focus();
  }

  private path(path: Path, index: number): HTMLElement {
    const last = (key: Key): string | undefined =>
      path.change.findLast((change) => change[key] !== undefined)?.[key] ?? path[key];
    const sliders = SLIDERS.flatMap(([key, label, range]) => {
      const value = last(key);
      return value === undefined ? [] : [this.slider(path, index, key, label, value, range)];
    });
    const isDown = path.change.findLast((change) => change.state !== undefined)?.state === "down";
    const breaker = h(
      "button",
      { type: "button", click: () => void this.player.change(index, { state: isDown ? "up" : "down" }) },
      isDown ? "Repair the path" : "Break the path",
    );
    const limit = text("Queue", path.limit, (value) => this.set(null, [[`path.${path.name}.limit`, value]]));
    const swatch = h("i", { class: `swatch path-${index % PATHS.length}` });
    const summary = h("summary", {}, swatch, path.name);
    return h("details", { id: `path-${index}` }, summary, ...sliders, limit, breaker);
  }

  private slider(path: Path, index: number, key: Key, label: string, value: string, range: Range): HTMLElement {
    const output = h("output", {}, value);
    const input = h("input", {
      type: "range",
      min: 0,
      max: STEPS,
      step: 1,
      value: toStep(quantity(value), range),
      "aria-label": `${label} of ${path.name}`,
      "aria-valuetext": value,
      input: () => {
        output.textContent = range.write(fromStep(Number(input.value), range));
        input.setAttribute("aria-valuetext", output.textContent);
      },
      change: () => void this.player.change(index, { [key]: range.write(fromStep(Number(input.value), range)) }),
    });
    return h("label", { class: "slider" }, h("span", {}, label), input, output);
  }

  private connection(shown: Shown, session: number, number: number): HTMLElement {
    const connection = shown.scenario.connection[number];
    if (connection === undefined) return h("div");
    const key = (name: string): string => `connection.${connection.name}.${name}`;
    const set = (name: string, value: unknown): void => this.set(session, [[key(name), value]]);
    const heading = this.player.sessions.length > 1 ? `${"AB"[session] ?? ""}: ${shown.label}` : connection.name;
    const policies =
      connection.protocol === "mptcp"
        ? [
            select("Scheduler", SCHEDULERS, policyName(connection.scheduler), (value) => set("scheduler", value)),
            ...REMEDIES.map(([name, label]) => remedy(connection, name, label, (value) => set("remedies", value))),
          ]
        : [];
    return h(
      "details",
      { id: `session-${session}` },
      h("summary", {}, heading),
      ...policies,
      select("Congestion control", CONGESTION_CONTROLS, policyName(connection.congestion_control), (value) => set("congestion_control", value)),
      text("Send buffer", connection.send_buffer, (value) => set("send_buffer", value)),
      text("Receive buffer", connection.receive_buffer, (value) => set("receive_buffer", value)),
      select("Workload", Object.keys(WORKLOADS), connection.workload.kind, (value) => set("workload", WORKLOADS[value])),
    );
  }

  private set(session: number | null, settings: Setting[]): void {
    void this.player.set(session, settings);
  }
}

function toStep(value: number, { low, high, log }: Range): number {
  const part = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.round(Math.min(1, Math.max(0, part)) * STEPS);
}

function fromStep(step: number, { low, high, log }: Range): number {
  const part = step / STEPS;
  return log ? low * (high / low) ** part : low + (high - low) * part;
}

function text(label: string, value: string, change: (value: string) => void): HTMLElement {
  const input = h("input", { type: "text", value, spellcheck: "false", change: () => change(input.value) });
  return h("label", { class: "field" }, h("span", {}, label), input);
}

function select(label: string, names: string[], value: string, change: (value: string) => void): HTMLElement {
  const all = names.includes(value) ? names : [value, ...names];
  const input = h(
    "select",
    { change: () => change(input.value) },
    ...all.map((name) => h("option", { value: name, selected: name === value }, name)),
  );
  return h("label", { class: "field" }, h("span", {}, label), input);
}

function remedy(
  connection: Connection,
  name: string,
  label: string,
  change: (remedies: Record<string, unknown>) => void,
): HTMLElement {
  const others = { ...connection.remedies };
  const isOn = name in others && others[name] !== false;
  const input = h("input", {
    type: "checkbox",
    checked: isOn,
    change: () => change({ ...others, [name]: input.checked }),
  });
  return h("label", { class: "check" }, input, h("span", {}, label));
}
