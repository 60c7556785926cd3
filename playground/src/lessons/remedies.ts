import toml from "../scenarios/wifi_3g.toml?raw";
import { number } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";
import { goodputs, meanDelays } from "./lesson.ts";

const BUFFER = ["connection.download.receive_buffer", "200KiB"] as [string, unknown];

export const remedies: Lesson = {
  id: "remedies",
  title: "Two remedies: reinject and penalise",
  summary: "Opportunistic retransmission and penalisation",
  text: [
    "The paths are those of the first lesson, with 200 KiB in both buffers. A has no remedy. B has two.",
    "Opportunistic retransmission (M1): when the window is full, the sender reinjects the data that blocks it on the faster subflow. Look for packets with a white core.",
    "Penalisation (M2): the sender also halves the congestion window of the subflow that blocks, so that it blocks less often. The window bar of 3G shows a mark at each penalty.",
  ],
  runs: [
    { name: "no remedy", toml, settings: [BUFFER] },
    {
      name: "both remedies",
      toml,
      settings: [
        BUFFER,
        ["connection.download.remedies", { opportunistic_retransmission: true, penalisation: "conext13" }],
      ],
    },
    {
      name: "reinjection alone",
      toml,
      settings: [BUFFER, ["connection.download.remedies", { opportunistic_retransmission: true }]],
    },
    {
      name: "penalisation alone",
      toml,
      settings: [BUFFER, ["connection.download.remedies", { penalisation: "conext13" }]],
    },
  ],
  shown: 2,
  question: {
    ask: "Which of the two remedies brings most of the gain here?",
    choices: ["Reinjection (M1)", "Penalisation (M2)", "Neither alone: only both together"],
    answer: (runs) => {
      const [none = NaN, both = NaN, m1 = NaN, m2 = NaN] = goodputs(runs);
      const delays = meanDelays(runs).map((ms) => `${number(ms)} ms`);
      const gain = both - none;
      const choice = m1 - none > gain / 2 ? 0 : m2 - none > gain / 2 ? 1 : 2;
      return {
        choice,
        text:
          `Goodput in Mbit/s: ${number(none)} with neither, ${number(m1)} with M1, ${number(m2)} ` +
          `with M2, ${number(both)} with both. A block takes ${delays[0] ?? ""} with neither and ` +
          `${delays[1] ?? ""} with both.`,
      };
    },
  },
  tries: [
    {
      label: "Penalise as in 2012",
      settings: [
        ["connection.download.remedies", { opportunistic_retransmission: true, penalisation: "nsdi12" }],
      ],
      session: 1,
      expect: "The form of 2012 also lowers ssthresh, so 3G leaves slow start.",
    },
    {
      label: "Shrink the receive buffer to 64 KiB",
      settings: [["connection.download.receive_buffer", "64KiB"]],
      expect: "WiFi's congestion window alone fills so small a window. Nothing is left for 3G.",
    },
  ],
  closing: "Reinjection unblocks the window once. Penalisation keeps the slow path from blocking it again.",
  source: "Raiciu et al., NSDI 2012, §4.2; Paasch et al., CoNEXT 2013",
};
