// The text of a lesson, its question, and the answer that its runs give.

import type { Engine } from "../engine/client.ts";
import { LESSONS } from "../lessons/all.ts";
import type { Lesson } from "../lessons/lesson.ts";
import { measures, type Measures } from "../model/measures.ts";
import { readScenario } from "../model/scenario.ts";
import type { Player } from "../model/player.ts";
import { fill, h } from "./dom.ts";

export class LessonPanel {
  readonly intro = h("section", { class: "intro", "aria-label": "Lesson" });
  readonly quiz = h("section", { class: "quiz", "aria-label": "Question" });

  constructor(
    private engine: Engine,
    private player: Player,
    private openLesson: (id: string) => void,
  ) {}

  /** Show a lesson; in brief, with its first paragraph only. */
  show(lesson: Lesson, isBrief: boolean): void {
    const number = LESSONS.indexOf(lesson) + 1;
    const next = LESSONS[number];
    fill(
      this.intro,
      h("p", { class: "kicker" }, `Lesson ${number} of ${LESSONS.length}`),
      h("h1", {}, lesson.title),
      ...lesson.text.slice(0, isBrief ? 1 : undefined).map((paragraph) => h("p", {}, paragraph)),
    );
    fill(
      this.quiz,
      this.question(lesson),
      this.tries(lesson),
      h("p", { class: "source" }, lesson.source, "."),
      isBrief || next === undefined
        ? null
        : h("button", { type: "button", class: "next", click: () => this.openLesson(next.id) }, `Next: ${next.title} →`),
    );
  }

  /** A scenario without a lesson. */
  showScenario(title: string, description: string): void {
    fill(
      this.intro,
      h("p", { class: "kicker" }, "Scenario"),
      h("h1", {}, title),
      h("p", {}, description),
      h("p", { class: "soft" }, "Change settings while it runs, or click on a path to break it."),
    );
    fill(this.quiz);
  }

  private question(lesson: Lesson): HTMLElement {
    const { question } = lesson;
    const verdict = h("div", { class: "verdict", role: "status" });
    const buttons = question.choices.map((choice, index) =>
      h("button", { type: "button", class: "choice", click: () => void choose(index) }, choice),
    );
    const choose = async (chosen: number): Promise<void> => {
      for (const button of buttons) button.disabled = true;
      fill(verdict, h("p", {}, "The runs are being measured …"));
      try {
        const answer = question.answer(await this.measure(lesson));
        buttons[chosen]?.classList.add(chosen === answer.choice ? "right" : "wrong");
        buttons[answer.choice]?.classList.add("right");
        const words = chosen === answer.choice ? "Right." : `The measured answer: ${question.choices[answer.choice] ?? ""}.`;
        fill(verdict, h("p", {}, h("b", {}, words), " ", answer.text), h("p", {}, lesson.closing));
        verdict.dataset["choice"] = String(answer.choice);
      } catch (error) {
        fill(verdict, h("p", {}, String(error)));
      }
      for (const button of buttons) button.disabled = false;
    };
    return h("div", { class: "question" }, h("h2", {}, question.ask), ...buttons, verdict);
  }

  private tries(lesson: Lesson): HTMLElement {
    const items = lesson.tries.map(({ label, settings, session, expect }) => {
      const note = h("p", { class: "soft", hidden: true }, expect);
      const apply = async (): Promise<void> => {
        const isAlone = this.player.sessions.length === 1;
        if (await this.player.set(isAlone ? null : (session ?? null), settings)) {
          note.hidden = false;
          this.player.play();
        }
      };
      return h("div", { class: "try" }, h("button", { type: "button", click: () => void apply() }, label), note);
    });
    return h("div", {}, h("h2", {}, "Try it"), ...items);
  }

  private async measure(lesson: Lesson): Promise<Measures[]> {
    const all: Measures[] = [];
    for (const { toml, settings } of lesson.runs) {
      const source = { toml, file: `${lesson.id}.toml`, seed: "1" };
      const measured = await this.engine.ask("measure", { source, settings });
      all.push(measures(measured, readScenario(measured.scenario)));
    }
    return all;
  }
}
