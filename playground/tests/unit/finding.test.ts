import { expect, test } from "vitest";
import { Sessions } from "../../src/engine/sessions.ts";
import { findings } from "../../src/model/explain.ts";
import { readScenario } from "../../src/model/scenario.ts";
import type { Setting } from "../../src/engine/protocol.ts";
import { emptyTables, type Tables } from "../../src/model/table.ts";
import { scenarioFile } from "./engine.ts";
import cases from "./findings.json";

// tools/generate/playground_findings.py writes what the command line says.
for (const { scenario: name, settings, sentences } of cases) {
  test(`the sentences about ${name} ${JSON.stringify(settings)} are those of anabranch explain`, async () => {
    const source = { toml: scenarioFile(name), file: `${name}.toml`, seed: "1" };
    const measured = await new Sessions().measure(source, settings as Setting[]);
    const tables = emptyTables(measured.schemas);
    for (const [table, rows] of Object.entries(measured.tables)) tables[table as keyof Tables].replace(rows);
    expect(findings(tables, readScenario(measured.scenario))).toEqual(sentences);
  });
}
