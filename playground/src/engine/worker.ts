// Holds the engine, away from the thread that draws.

import init, { digestOf } from "./module/engine.js";
import module from "./module/engine_bg.wasm?url";
import type { Kind, Replies, Reply, Request, Requests } from "./protocol.ts";
import { Sessions } from "./sessions.ts";

const sessions = new Sessions();
const ready = init({ module_or_path: module });

type Handlers = { [K in Kind]: (body: Requests[K]) => Replies[K] | Promise<Replies[K]> };

const handlers: Handlers = {
  open: ({ sources }) => sessions.open(sources),
  advance: ({ until, budget, full }) => sessions.advance(until, budget, full),
  events: ({ count }) => sessions.events(count),
  restart: () => sessions.restart(),
  change: ({ path, change }) => sessions.change(path, change),
  set: ({ session, settings }) => sessions.set(session, settings),
  csv: ({ session, table }) => sessions.csv(session, table),
  pcapng: ({ session }) => sessions.pcapng(session),
  measure: ({ source, settings }) => sessions.measure(source, settings),
  stop: () => sessions.stop(),
  digest: ({ source }) => digestOf(source.toml, source.file, BigInt(source.seed)),
};

async function answer<K extends Kind>({ id, kind, body }: Request<K>): Promise<Reply> {
  try {
    await ready;
    return { id, ok: true, body: await handlers[kind](body) };
  } catch (error) {
    return { id, ok: false, error: error instanceof Error ? error.message : String(error) };
  }
}

self.addEventListener("message", (event: MessageEvent<Request>) => {
  void answer(event.data).then((reply) => self.postMessage(reply));
});
