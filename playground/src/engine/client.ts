// The page's end of the messages.

import type { Kind, Replies, Reply, Request, Requests } from "./protocol.ts";

interface Waiting {
  resolve: (body: never) => void;
  reject: (error: Error) => void;
}

/** The engine in its worker. A request that fails rejects with the engine's one-line message. */
export class Engine {
  private worker = this.start();
  private waiting = new Map<number, Waiting>();
  private last = 0;

  ask<K extends Kind>(kind: K, body: Requests[K]): Promise<Replies[K]> {
    this.last += 1;
    const request: Request<K> = { id: this.last, kind, body };
    return new Promise<Replies[K]>((resolve, reject) => {
      this.waiting.set(request.id, { resolve, reject });
      this.worker.postMessage(request);
    });
  }

  private start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<Reply>) => this.settle(event.data));
    worker.addEventListener("error", (event) => this.fail(event.message));
    return worker;
  }

  private settle(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if (reply.ok) waiting?.resolve(reply.body as never);
    else waiting?.reject(new Error(reply.error));
  }

  private fail(message: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(message));
    this.waiting.clear();
  }
}
