// The engine in Node.

import { readFileSync } from "node:fs";
import { initSync } from "../../src/engine/module/engine.js";

const MODULE = new URL("../../src/engine/module/engine_bg.wasm", import.meta.url);
initSync({ module: readFileSync(MODULE) });

export { Session, digestOf } from "../../src/engine/module/engine.js";

export function scenarioFile(name: string): string {
  return readFileSync(new URL(`../../src/scenarios/${name}.toml`, import.meta.url), "utf8");
}
