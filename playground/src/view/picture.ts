// The picture: sender, paths, receiver, and every packet between them.

import type { ConnectionState, LinkState, State, SubflowState } from "../engine/protocol.ts";
import type { Drop, Shown } from "../model/player.ts";
import { CAUSES } from "../model/explain.ts";
import { prepare } from "./dom.ts";
import { pathColour, type Theme } from "./theme.ts";

/** Height of a lane. On a narrow page the words below the window bar need a line of their own. */
const LANE = { wide: 90, narrow: 110, below: 560 };
const TOP = 10;
/** Opacity of a path that no connection uses. */
const UNUSED = 0.4;
/** Real time in ms for which a lost packet falls. */
const FALL = 700;
/** Virtual time in ns for which a penalty is marked. */
const PENALTY = 400e6;
/** Numbers of a packet in a frame. */
export const PACKET = 8;
const REINJECTION = 1;
const CONTROL = 2;

interface Falling {
  path: number;
  since: number;
  inQueue: boolean;
  shift: number;
}

interface Lane {
  path: number;
  y: number;
  left: number;
  queueEnd: number;
  right: number;
}

interface Scales {
  /** Pixels of a packet in a queue. */
  packet: number;
  queueWidth: number;
  /** Bytes of the widest window bar. */
  window: number;
}

export class Picture {
  private falling: Falling[] = [];
  private lanes: Lane[] = [];
  private lane = LANE.wide;

  constructor(
    private canvas: HTMLCanvasElement,
    onPath: (path: number) => void,
  ) {
    canvas.addEventListener("click", (event) => {
      const lane = this.laneAt(event.offsetY, event.offsetX);
      if (lane !== undefined) onPath(lane.path);
    });
    canvas.addEventListener("pointermove", (event) => {
      const lane = this.laneAt(event.offsetY, event.offsetX);
      canvas.style.cursor = lane === undefined ? "default" : "pointer";
    });
  }

  addDrops(drops: Drop[]): void {
    const since = performance.now();
    for (const { path, count, inQueue } of drops) {
      for (let each = 0; each < Math.min(count, 6); each += 1) {
        this.falling.push({ path, since, inQueue, shift: each * 7 });
      }
    }
  }

  /** Lost packets still fall, also while the clock stands. */
  get isMoving(): boolean {
    return this.falling.length > 0;
  }

  draw(shown: Shown, connection: number, colours: Theme): void {
    const { frame, scenario } = shown;
    if (frame === null) return;
    this.lane = this.canvas.clientWidth < LANE.below ? LANE.narrow : LANE.wide;
    const height = TOP * 2 + scenario.path.length * this.lane;
    const { context, width } = prepare(this.canvas, height);
    const host = Math.max(60, Math.min(86, width * 0.11));
    const state = frame.state;
    const scales = scalesOf(state, width - 2 * host - 24);
    this.lanes = scenario.path.map((_, path) => {
      const left = host + 12;
      return { path, y: TOP + path * this.lane, left, queueEnd: left + scales.queueWidth, right: width - host - 12 };
    });
    const one = state.connections[connection] ?? null;
    context.textBaseline = "alphabetic";
    drawSender(context, one, host, height, colours);
    drawReceiver(context, shown, one, width - host, host, height, colours);
    const used = new Set(scenario.connection.flatMap(({ paths }) => paths));
    for (const lane of this.lanes) {
      const name = scenario.path[lane.path]?.name ?? "";
      const isVia = scenario.path.some(({ via }) => JSON.stringify(via ?? "").includes(`"${name}"`));
      context.globalAlpha = used.has(name) || isVia ? 1 : UNUSED;
      drawLane(context, lane, shown, state, connection, scales, colours);
    }
    context.globalAlpha = 1;
    // Directions have numbers: 0 is towards the client.
    const dataTowards = one?.sender === "client" ? 1 : 0;
    this.drawPackets(context, frame.packets, dataTowards, scales, colours);
    this.drawFalling(context, colours);
  }

  private laneAt(y: number, x: number): Lane | undefined {
    return this.lanes.find((lane) => y >= lane.y && y < lane.y + this.lane && x > lane.left && x < lane.right);
  }

  private drawPackets(
    context: CanvasRenderingContext2D,
    packets: Float64Array,
    dataTowards: number,
    scales: Scales,
    colours: Theme,
  ): void {
    for (let at = 0; at < packets.length; at += PACKET) {
      const lane = this.lanes[packets[at] ?? 0];
      if (lane === undefined) continue;
      const [towards = 0, place = 0, position = 0, route = 0, , kind = 0] = packets.subarray(at + 1, at + PACKET);
      context.fillStyle = pathColour(colours, route);
      const isData = kind !== CONTROL;
      const isForward = towards === dataTowards;
      const track = lane.right - lane.queueEnd;
      if (place === 0 && isForward) {
        drawPacket(context, lane.queueEnd - (position + 1) * scales.packet, lane.y + 30, scales.packet, kind);
      } else if (isForward) {
        const x = place === 1 ? lane.queueEnd + 2 : lane.queueEnd + position * (track - 4);
        if (isData) drawPacket(context, x, lane.y + 30, 4, kind);
        else context.fillRect(x, lane.y + 38, 3, 3);
      } else {
        const x = place === 2 ? lane.right - position * (lane.right - lane.left) : lane.right;
        context.fillRect(x - 2, lane.y + 60, isData ? 5 : 3, 3);
      }
    }
  }

  private drawFalling(context: CanvasRenderingContext2D, colours: Theme): void {
    const now = performance.now();
    this.falling = this.falling.filter(({ since }) => now - since < FALL);
    for (const { path, since, inQueue, shift } of this.falling) {
      const lane = this.lanes[path];
      if (lane === undefined) continue;
      const part = (now - since) / FALL;
      const x = (inQueue ? lane.left : lane.queueEnd + 24) + shift;
      const y = lane.y + 34 + part * part * 46;
      context.globalAlpha = 1 - part;
      context.strokeStyle = colours.alarm;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x - 4, y - 4);
      context.lineTo(x + 4, y + 4);
      context.moveTo(x + 4, y - 4);
      context.lineTo(x - 4, y + 4);
      context.stroke();
      context.globalAlpha = 1;
    }
  }
}

function drawPacket(context: CanvasRenderingContext2D, x: number, y: number, width: number, kind: number): void {
  const gap = width > 3 ? 1 : 0;
  context.fillRect(x, y, Math.max(0.75, width - gap), 20);
  if (kind === REINJECTION) {
    const colour = context.fillStyle;
    context.fillStyle = "#ffffff";
    context.fillRect(x + 0.5, y + 6, Math.max(0.75, width - gap - 1), 8);
    context.fillStyle = colour;
  }
}

function scalesOf(state: State, room: number): Scales {
  const queueWidth = Math.max(40, room * 0.36);
  const limits = state.paths.map(({ forward }) => Math.max(forward.limit ?? 0, forward.queued));
  const packet = Math.min(6, queueWidth / Math.max(1, ...limits));
  const windows = state.connections.flatMap((each) => each?.subflows.map((sub) => Math.max(sub.cwnd, sub.inFlight)) ?? []);
  const largest = Math.max(14_600, ...windows.filter((bytes) => bytes < 1e12));
  return { packet, queueWidth, window: 2 ** Math.ceil(Math.log2(largest)) };
}

/** The subflow on a path that the picture shows: of this connection, or of another one. */
function subflowOn(path: number, { connections }: State, connection: number): SubflowState | undefined {
  const subflows = [connections[connection], ...connections].flatMap((each) => each?.subflows ?? []);
  return subflows.find((each) => each.path === path);
}

function drawLane(
  context: CanvasRenderingContext2D,
  lane: Lane,
  shown: Shown,
  state: State,
  connection: number,
  scales: Scales,
  colours: Theme,
): void {
  const path = shown.scenario.path[lane.path];
  const links = state.paths[lane.path];
  if (path === undefined || links === undefined) return;
  const subflow = subflowOn(lane.path, state, connection);
  const link = links.forward;
  const colour = pathColour(colours, lane.path);
  drawHeading(context, lane, path.name, link, subflow?.srtt ?? null, colours);
  drawQueue(context, lane, link, scales, colours);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.setLineDash(link.up ? [] : [5, 5]);
  for (const y of [lane.y + 29.5, lane.y + 50.5]) {
    context.beginPath();
    context.moveTo(lane.queueEnd, y);
    context.lineTo(lane.right, y);
    context.stroke();
  }
  context.setLineDash([2, 4]);
  context.beginPath();
  context.moveTo(lane.left, lane.y + 61.5);
  context.lineTo(lane.right, lane.y + 61.5);
  context.stroke();
  context.setLineDash([]);
  if (!link.up) {
    context.fillStyle = colours.alarm;
    context.font = "600 12px 'IBM Plex Sans', sans-serif";
    context.fillText("down", (lane.queueEnd + lane.right) / 2 - 14, lane.y + 44);
  }
  if (subflow !== undefined) drawWindow(context, lane, subflow, state, scales, colour, colours);
}

function drawHeading(
  context: CanvasRenderingContext2D,
  lane: Lane,
  name: string,
  link: LinkState,
  rtt: number | null,
  colours: Theme,
): void {
  context.fillStyle = pathColour(colours, lane.path);
  context.font = "600 14px 'IBM Plex Sans', sans-serif";
  context.fillText(name, lane.left, lane.y + 20);
  const start = lane.left + context.measureText(name).width + 10;
  const facts = [`${round(link.rate / 1e6)} Mbit/s`, `${round(link.delay / 1e6)} ms`];
  if (rtt !== null) facts.push(`RTT ${Math.round(rtt / 1e6)} ms`);
  context.font = "12px 'IBM Plex Mono', monospace";
  context.fillStyle = colours.soft;
  while (facts.length > 1 && start + context.measureText(facts.join(" · ")).width > lane.right) facts.shift();
  context.fillText(facts.join(" · "), start, lane.y + 20);
}

function drawQueue(context: CanvasRenderingContext2D, lane: Lane, link: LinkState, scales: Scales, colours: Theme): void {
  const width = link.limit === null ? scales.queueWidth : Math.max(6, link.limit * scales.packet);
  const left = Math.max(lane.left, lane.queueEnd - width);
  context.fillStyle = colours.faint;
  context.fillRect(left, lane.y + 28, lane.queueEnd - left, 24);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(lane.queueEnd, lane.y + 27.5);
  context.lineTo(left + 0.5, lane.y + 27.5);
  if (link.limit !== null) context.lineTo(left + 0.5, lane.y + 52.5);
  else context.moveTo(left, lane.y + 52.5);
  context.lineTo(lane.queueEnd, lane.y + 52.5);
  context.stroke();
}

function drawWindow(
  context: CanvasRenderingContext2D,
  lane: Lane,
  subflow: SubflowState,
  state: State,
  scales: Scales,
  colour: string,
  colours: Theme,
): void {
  const y = lane.y + 69;
  const room = Math.min(scales.queueWidth * 1.2, (lane.right - lane.left) * 0.5);
  const pixels = (bytes: number): number => Math.min(room, (bytes / scales.window) * room);
  context.globalAlpha = 0.22;
  context.fillStyle = colour;
  context.fillRect(lane.left, y, pixels(subflow.cwnd), 9);
  context.globalAlpha = 1;
  context.fillRect(lane.left, y, pixels(Math.min(subflow.inFlight, subflow.cwnd)), 9);
  context.fillStyle = colours.ink;
  context.fillRect(lane.left + pixels(subflow.cwnd) - 1, y - 2, 2, 13);
  const mss = Math.max(1, subflow.mss);
  context.font = "11px 'IBM Plex Mono', monospace";
  context.fillStyle = colours.soft;
  const counts = `${Math.round(subflow.inFlight / mss)}/${Math.round(subflow.cwnd / mss)}`;
  const after = lane.left + pixels(subflow.cwnd) + 7;
  context.fillText(counts, after, y + 9);
  const penalised = subflow.penalised !== null && state.now - subflow.penalised < PENALTY;
  if (penalised) {
    context.fillStyle = colours.alarm;
    context.font = "600 11px 'IBM Plex Sans', sans-serif";
    context.fillText("halved", after + context.measureText(counts).width + 14, y + 9);
  }
  const busy = state.paths[lane.path]?.forward.queued ?? 0;
  const isLimitedByPath = busy > 0 && (subflow.activity === "congestion_window" || subflow.activity === "paced");
  const name = isLimitedByPath ? "sending" : subflow.activity;
  const words = CAUSES[name]?.words ?? name;
  context.font = "12px 'IBM Plex Sans', sans-serif";
  const width = context.measureText(words).width;
  // A full buffer costs no capacity while the link drains its queue.
  const hurts = busy === 0 && (name === "receive_window" || name === "send_buffer");
  context.fillStyle = hurts ? colours.alarm : colours.soft;
  if (lane.right - width > after + 60) context.fillText(words, lane.right - width, y + 9);
  else context.fillText(words, lane.left, y + 22);
}

function drawSender(
  context: CanvasRenderingContext2D,
  connection: ConnectionState | null,
  host: number,
  height: number,
  colours: Theme,
): void {
  const bar = { x: 10, y: TOP + 40, width: host - 22, height: height - TOP * 2 - 58 };
  const send = connection?.send;
  title(context, connection?.sender ?? "server", "send buffer", 10, host, colours);
  frameBar(context, bar, colours);
  if (send === undefined) return;
  const scale = bar.height / Math.max(1, send.capacity);
  const stack = (from: number, to: number, style: string, alpha: number): void => {
    const [low, high] = [Math.min(from, send.capacity) * scale, Math.min(to, send.capacity) * scale];
    context.globalAlpha = alpha;
    context.fillStyle = style;
    context.fillRect(bar.x, bar.y + bar.height - high, bar.width, high - low);
    context.globalAlpha = 1;
  };
  const unacknowledged = send.sent - send.acknowledged;
  stack(0, unacknowledged, colours.ink, 0.75);
  stack(unacknowledged, send.written - send.acknowledged, colours.ink, 0.22);
  caption(context, kib(send.capacity), bar, colours);
}

function drawReceiver(
  context: CanvasRenderingContext2D,
  shown: Shown,
  connection: ConnectionState | null,
  x: number,
  host: number,
  height: number,
  colours: Theme,
): void {
  const bar = { x: x + 10, y: TOP + 40, width: host - 22, height: height - TOP * 2 - 58 };
  const held = connection?.receive.outOfOrder.length ?? 0;
  const blocking = held > 0 ? (connection?.blocking ?? null) : null;
  const hole = blocking === null ? undefined : shown.scenario.path[blocking]?.name;
  const words = hole === undefined ? "receive buffer" : `hole: ${hole}`;
  title(context, connection?.sender === "client" ? "server" : "client", words, x + 10, host, colours);
  frameBar(context, bar, colours);
  const receive = connection?.receive;
  if (receive === undefined || connection === null) return;
  const scale = bar.height / Math.max(1, receive.capacity);
  const place = (offset: number): number => Math.min(receive.capacity, Math.max(0, offset - receive.read)) * scale;
  const fill = (from: number, to: number): void => {
    const [low, high] = [place(from), place(to)];
    context.fillRect(bar.x, bar.y + bar.height - high, bar.width, Math.max(0.75, high - low));
  };
  context.fillStyle = colours.ink;
  context.globalAlpha = 0.75;
  if (receive.delivered > receive.read) fill(receive.read, receive.delivered);
  for (const [from, to] of receive.outOfOrder) fill(from, to);
  context.globalAlpha = 1;
  const firstHeld = receive.outOfOrder[0]?.[0];
  if (firstHeld !== undefined && blocking !== null) {
    context.fillStyle = pathColour(colours, blocking);
    const [low, high] = [place(receive.delivered), place(firstHeld)];
    const y = bar.y + bar.height - high;
    const size = Math.max(3, high - low);
    context.fillRect(bar.x - 4, y, bar.width + 8, size);
  }
  caption(context, kib(receive.capacity), bar, colours);
}

interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
}

function title(
  context: CanvasRenderingContext2D,
  name: string,
  below: string,
  x: number,
  host: number,
  colours: Theme,
): void {
  context.fillStyle = colours.ink;
  context.font = "600 13px 'IBM Plex Sans', sans-serif";
  context.fillText(name, x, TOP + 14);
  context.fillStyle = colours.soft;
  context.font = "11px 'IBM Plex Sans', sans-serif";
  const isLong = context.measureText(below).width > host - 12 && !below.startsWith("hole");
  const words = isLong ? (below.split(" ")[0] ?? below) : below;
  context.fillText(words, x, TOP + 30);
}

function frameBar(context: CanvasRenderingContext2D, bar: Bar, colours: Theme): void {
  context.fillStyle = colours.faint;
  context.fillRect(bar.x, bar.y, bar.width, bar.height);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(bar.x - 0.5, bar.y - 0.5, bar.width + 1, bar.height + 1);
}

function caption(context: CanvasRenderingContext2D, text: string, bar: Bar, colours: Theme): void {
  context.font = "11px 'IBM Plex Mono', monospace";
  context.fillStyle = colours.soft;
  context.fillText(text, bar.x, bar.y + bar.height + 15);
}

function kib(bytes: number): string {
  if (bytes >= 1e6 && bytes % 1024 !== 0) return `${round(bytes / 1e6)} MB`;
  if (bytes >= 1024 * 1024) return `${round(bytes / 1024 ** 2)} MiB`;
  return bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${round(bytes / 1000)} kB`;
}

function round(value: number): string {
  return String(Number(value.toPrecision(3)));
}
