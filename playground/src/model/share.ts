// A session in the fragment of an address. Nothing is sent anywhere: the part after # stays in the
// browser.

import type { Source } from "../engine/protocol.ts";

/** A lesson by its name, a scenario of the gallery by its name, or one or two scenarios. */
export type Shared = { lesson: string } | { gallery: string } | { sources: Source[] };

const UNREADABLE = "the address of this page holds no session that can be read";

/** Longest scenario that a page takes, in characters. */
export const LONGEST = 1_000_000;

export async function toFragment(sources: Source[]): Promise<string> {
  const text = JSON.stringify(sources.map(({ toml, file, seed }) => [toml, file, seed]));
  return `#run=${base64(await through(new CompressionStream("deflate-raw"), encoder.encode(text)))}`;
}

/** The session of a fragment; `null` if it names none. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  const found = /^#(run|lesson|scenario)=(.+)$/.exec(fragment);
  const [, kind, value] = found ?? [];
  if (value === undefined) return null;
  if (kind === "lesson") return { lesson: decodeURIComponent(value) };
  if (kind === "scenario") return { gallery: decodeURIComponent(value) };
  const bytes = await through(new DecompressionStream("deflate-raw"), bytesOf(value));
  const list: unknown = JSON.parse(decoder.decode(bytes));
  if (!Array.isArray(list) || list.length === 0 || list.length > 2) throw new Error(UNREADABLE);
  return { sources: list.map(source) };
}

function source(item: unknown): Source {
  if (!Array.isArray(item) || item.length !== 3 || item.some((part) => typeof part !== "string")) {
    throw new Error(UNREADABLE);
  }
  const [toml, file, seed] = item as [string, string, string];
  if (!/^\d{1,20}$/.test(seed)) throw new Error(UNREADABLE);
  return { toml, file, seed };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

async function through(
  stream: { readable: ReadableStream; writable: WritableStream },
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const writer = stream.writable.getWriter();
  const write = async (): Promise<void> => {
    await writer.write(bytes);
    await writer.close();
  };
  const reader = (stream.readable as ReadableStream<Uint8Array>).getReader();
  const [all] = await Promise.all([joined(reader), write()]);
  return all;
}

async function joined(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > 4 * LONGEST) throw new Error("the session in the address is too long");
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function base64(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}
