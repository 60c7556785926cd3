import { expect, test } from "vitest";
import { Sessions } from "../../src/engine/sessions.ts";
import { LESSONS } from "../../src/lessons/all.ts";
import { measures } from "../../src/model/measures.ts";
import { readScenario } from "../../src/model/scenario.ts";
import "./engine.ts";

/** The choices that the runs confirm. They follow from the engine: a change of it may change them. */
const CONFIRMED: Record<string, number> = {
  "slow-3g": 2,
  remedies: 1,
  schedulers: 2,
  bufferbloat: 2,
  fairness: 1,
  "path-dies": 1,
  stacks: 0,
};

for (const lesson of LESSONS) {
  test(lesson.id, async () => {
    const sessions = new Sessions();
    const runs = [];
    for (const { toml, settings } of lesson.runs) {
      const measured = await sessions.measure({ toml, file: lesson.id, seed: "1" }, settings);
      runs.push(measures(measured, readScenario(measured.scenario)));
    }
    const answer = lesson.question.answer(runs);
    expect(answer.text).not.toMatch(/NaN|undefined|Infinity/);
    expect(answer.choice, answer.text).toBe(CONFIRMED[lesson.id]);
    const shown = lesson.runs.slice(0, lesson.shown);
    sessions.open(shown.map(({ toml }) => ({ toml, file: lesson.id, seed: "1" })));
    for (const [index, { settings }] of shown.entries()) sessions.set(index, settings);
    for (const { settings, session } of lesson.tries) sessions.set(session ?? null, settings);
    console.log(lesson.id, answer.text);
  });
}
