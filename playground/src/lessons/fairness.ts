import toml from "../scenarios/fairness.toml?raw";
import { number } from "../model/words.ts";
import type { Measures } from "../model/measures.ts";
import type { Lesson } from "./lesson.ts";

function ratio(run: Measures | undefined): number {
  const [multipath, tcp] = run?.connections ?? [];
  return (multipath?.goodput ?? NaN) / (tcp?.goodput ?? NaN);
}

export const fairness: Lesson = {
  id: "fairness",
  title: "Two subflows, one bottleneck",
  summary: "Coupled congestion control and fairness",
  text: [
    "A connection with two subflows and a TCP connection share one link of 10 Mbit/s. If each subflow behaves like a TCP flow of its own, the connection gets two shares of three.",
    "Coupled congestion control increases the windows together. LIA (RFC 6356) aims at one share for all subflows of a connection.",
    "A runs NewReno on each subflow, uncoupled. B runs LIA.",
  ],
  runs: [
    { name: "uncoupled", toml, settings: [] },
    { name: "LIA", toml, settings: [["connection.multipath.congestion_control", "lia"]] },
    { name: "OLIA", toml, settings: [["connection.multipath.congestion_control", "olia"]] },
    { name: "BALIA", toml, settings: [["connection.multipath.congestion_control", "balia"]] },
  ],
  shown: 2,
  question: {
    ask: "How much more than the TCP connection does the multipath connection get with LIA?",
    choices: ["About twice as much, as without coupling", "A little more: up to half as much again", "About as much or less"],
    answer: (runs) => {
      const ratios = runs.map(ratio);
      const [uncoupled = NaN, lia = NaN, olia = NaN, balia = NaN] = ratios;
      return {
        choice: lia > 1.5 ? 0 : lia > 1.1 ? 1 : 2,
        text:
          `Goodput of the multipath connection over that of TCP: ${number(uncoupled)} uncoupled, ` +
          `${number(lia)} with LIA, ${number(olia)} with OLIA, ${number(balia)} with BALIA.`,
      };
    },
  },
  tries: [
    {
      label: "Let both use CUBIC",
      settings: [
        ["connection.multipath.congestion_control", "cubic"],
        ["connection.tcp.congestion_control", "cubic"],
      ],
      expect: "CUBIC is not coupled either: two subflows take two shares.",
    },
  ],
  closing: "Whoever uses two subflows over one bottleneck should not take twice as much. That is the first goal of coupling.",
  source: "Wischik et al., NSDI 2011; RFC 6356; scenario of this project",
};
