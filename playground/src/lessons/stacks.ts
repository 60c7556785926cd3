import toml from "../scenarios/wifi_3g.toml?raw";
import { listed, number } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";
import { best, goodputs } from "./lesson.ts";

const STACKS = ["mptcp.org-0.89", "rfc-8684", "linux-6.12"];
const NAMES = ["the original kernel (0.89)", "RFC 8684 to the letter", "today's Linux (6.12)"];
const NO_POLICIES = toml.replace(/^(congestion_control|scheduler) = .*\n/gm, "");

export const stacks: Lesson = {
  id: "stacks",
  title: "One experiment on three stacks",
  summary: "The original kernel, the RFC, today's Linux",
  text: [
    "The first lesson's experiment again, on three stacks. A stack sets scheduler, congestion control, remedies and the behaviour of the host.",
    "A: Multipath TCP 0.89, the original kernel, with the remedies M1 and M2. B: today's Linux, which has neither remedy, assigns data to a slow subflow in advance, and charges buffers with the memory of segments. The RFC's stack has neither remedy, and plain buffers.",
  ],
  runs: [0, 2, 1].map((index) => ({
    name: NAMES[index] ?? "",
    toml: NO_POLICIES,
    settings: [["connection.download.stack", STACKS[index]]],
  })),
  shown: 2,
  question: {
    ask: "Which stack delivers the most with a receive buffer of 100 KiB?",
    choices: NAMES,
    answer: (runs) => {
      const [original = NaN, linux = NaN, rfc = NaN] = goodputs(runs);
      const all = [original, rfc, linux];
      return {
        choice: best(all, "largest"),
        text: `Goodput: ${listed(NAMES.map((name, index) => `${number(all[index] ?? NaN)} Mbit/s with ${name}`))}.`,
      };
    },
  },
  tries: [
    {
      label: "Give both buffers 4 MB",
      settings: [
        ["connection.download.send_buffer", "4MB"],
        ["connection.download.receive_buffer", "4MB"],
      ],
      expect: "With large buffers, no stack waits for a window.",
    },
  ],
  closing: "A claim about Multipath TCP is a claim about a stack. The gallery judges its claims on all three.",
  source: "Raiciu et al., NSDI 2012, Figure 7; stacks as in the documentation's page on scenarios",
};
