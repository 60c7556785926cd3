// A lesson is data: what runs, what the reader is asked, and how the answer follows from the runs.

import type { Setting } from "../engine/protocol.ts";
import type { Measures } from "../model/measures.ts";

export interface Run {
  name: string;
  toml: string;
  settings: Setting[];
}

export interface Answer {
  /** Index of the choice that the runs confirm. */
  choice: number;
  text: string;
}

export interface Question {
  ask: string;
  choices: string[];
  /** The answer, from one measurement of each run. */
  answer: (runs: Measures[]) => Answer;
}

/** A thing to try: settings for the sessions on the page. */
export interface Try {
  label: string;
  settings: Setting[];
  /** The session that changes; all by default. */
  session?: number;
  expect: string;
}

export interface Lesson {
  id: string;
  title: string;
  /** In a list of lessons. */
  summary: string;
  text: string[];
  /** The first one or two are on the page. All are measured for the answer. */
  runs: Run[];
  shown: number;
  /** Virtual time in ns at which the lesson begins; soon after the warm-up by default. */
  start?: number;
  question: Question;
  tries: Try[];
  closing: string;
  source: string;
}

export function goodputs(runs: Measures[]): number[] {
  return runs.map((run) => run.connections[0]?.goodput ?? NaN);
}

export function meanDelays(runs: Measures[]): number[] {
  return runs.map((run) => run.connections[0]?.meanDelay ?? NaN);
}

/** The index of the best run: the largest value, or the smallest. */
export function best(values: number[], is: "largest" | "smallest"): number {
  const wanted = is === "largest" ? Math.max(...values) : Math.min(...values);
  return values.indexOf(wanted);
}
