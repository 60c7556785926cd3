import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { digestOf } from "./engine.ts";

/** One line for each random scenario; the native build writes it (make test-playground). */
const FILE = new URL("../../../target/playground/digests.jsonl", import.meta.url);

interface Native {
  seed: string;
  toml: string;
  digest: string;
}

test.skipIf(!existsSync(FILE))("200 random scenarios have the digests of the native engine", () => {
  const lines = readFileSync(FILE, "utf8").trim().split("\n");
  const natives = lines.map((line) => JSON.parse(line) as Native);
  expect(natives).toHaveLength(200);
  const differ = natives.filter(({ seed, toml, digest }) => digestOf(toml, "soak.toml", BigInt(seed)) !== digest);
  expect(differ.map(({ seed }) => seed)).toEqual([]);
  expect(new Set(natives.map(({ digest }) => digest)).size).toBe(200);
});
