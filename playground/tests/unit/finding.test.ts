import { expect, test } from "vitest";
import { Sessions } from "../../src/engine/sessions.ts";
import { finding } from "../../src/model/explain.ts";
import { readScenario } from "../../src/model/scenario.ts";
import { emptyTables, type Tables } from "../../src/model/table.ts";
import { scenarioFile } from "./engine.ts";
import findings from "./findings.json";

// tools/generate/playground_findings.py writes what the command line says.
for (const [name, sentences] of Object.entries(findings)) {
  test(`the sentences about ${name} are those of anabranch explain`, async () => {
    const source = { toml: scenarioFile(name), file: `${name}.toml`, seed: "1" };
    const measured = await new Sessions().measure(source, []);
    const tables = emptyTables(measured.schemas);
    for (const [table, rows] of Object.entries(measured.tables)) tables[table as keyof Tables].replace(rows);
    const scenario = readScenario(measured.scenario);
    const found = scenario.connection.map((_, index) => finding(tables, scenario, index));
    expect(found).toEqual(sentences);
  });
}
