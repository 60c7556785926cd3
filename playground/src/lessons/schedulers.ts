import toml from "../scenarios/schedulers.toml?raw";
import { listed, number } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";
import { best, meanDelays } from "./lesson.ts";

const NAMES = ["round robin", "lowest RTT", "ECF", "BLEST"];
const KINDS = ["round_robin", "min_rtt", "ecf", "blest"];
/** The two on the page come first. */
const ORDER = [1, 2, 0, 3];

export const schedulers: Lesson = {
  id: "schedulers",
  title: "Four schedulers and the end of a burst",
  summary: "Round robin, lowest RTT, ECF, BLEST",
  text: [
    "Once a second, the server sends a burst of 256 KiB over WiFi (8 Mbit/s) and 3G (1 Mbit/s). The burst is done when its last byte has arrived in order.",
    "The scheduler picks a subflow for each segment. Round robin takes turns. Lowest RTT prefers WiFi, and uses 3G as soon as WiFi's congestion window is full. ECF compares: is it sooner to wait for WiFi, or to send over 3G now? BLEST avoids 3G if its data would block the window.",
    "A uses the lowest RTT and B uses ECF. Slow down, and look at the end of a burst.",
  ],
  runs: ORDER.map((index) => ({
    name: NAMES[index] ?? "",
    toml,
    settings: [["connection.download.scheduler", KINDS[index]]],
  })),
  shown: 2,
  question: {
    ask: "Which scheduler delivers a burst soonest, on average?",
    choices: NAMES,
    answer: (runs) => {
      const shown = meanDelays(runs);
      const delays = NAMES.map((_, index) => shown[ORDER.indexOf(index)] ?? NaN);
      return {
        choice: best(delays, "smallest"),
        text: `Mean time of a burst: ${listed(NAMES.map((name, index) => `${number(delays[index] ?? NaN)} ms with ${name}`))}.`,
      };
    },
  },
  tries: [
    {
      label: "Make both paths equal",
      settings: [
        ["path.3g.rate", "8Mbit/s"],
        ["path.3g.delay", "10ms"],
        ["path.3g.limit", "54packets"],
      ],
      expect: "With equal paths, waiting never pays, and the schedulers come close to each other.",
    },
  ],
  closing: "A segment on the slow path at the end of a burst delays the whole burst. Knowing when to wait is the art.",
  source: "Paasch et al., CSWS 2014; Lim et al., CoNEXT 2017; Ferlin et al., Networking 2016; scenario of this project",
};
