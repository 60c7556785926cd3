import toml from "../scenarios/bufferbloat.toml?raw";
import { number } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";
import { goodputs } from "./lesson.ts";

export const bufferbloat: Lesson = {
  id: "bufferbloat",
  title: "Bufferbloat, and a cap on it",
  summary: "A queue of two seconds, and MPT-BM",
  text: [
    "The queue of 3G holds two seconds of data. Loss-based congestion control fills it, because it slows down only when the queue overflows.",
    "Each packet on 3G then waits in that queue, while everything from WiFi waits for it at the receiver. MPT-BM (B) caps the data in flight on a bloated subflow: its smoothed round-trip time may grow to 1.5 times the minimum.",
  ],
  runs: [
    { name: "no cap", toml, settings: [] },
    { name: "MPT-BM", toml, settings: [["connection.download.remedies", { mpt_bm: true }]] },
  ],
  shown: 2,
  question: {
    ask: "The cap takes data in flight away from 3G. What happens to the goodput of the connection?",
    choices: ["It falls, because 3G carries less", "It stays about the same", "It rises"],
    answer: (runs) => {
      const [without = NaN, capped = NaN] = goodputs(runs);
      const ratio = capped / without;
      const rtts = runs.map((run) => run.connections[0]?.meanRtt["3g"] ?? NaN).map(number);
      const wifi = runs.map((run) => (run.connections[0]?.shares["wifi"] ?? NaN) * 100);
      return {
        choice: ratio < 0.95 ? 0 : ratio < 1.05 ? 1 : 2,
        text:
          `Goodput: ${number(without)} Mbit/s without, ${number(capped)} Mbit/s with the cap. Mean ` +
          `round-trip time of 3G: ${rtts[0] ?? ""} and ${rtts[1] ?? ""} ms. WiFi carries ` +
          `${number(wifi[0] ?? NaN)} % and ${number(wifi[1] ?? NaN)} % of the data.`,
      };
    },
  },
  tries: [
    {
      label: "Shorten the queue of 3G to 150 ms",
      settings: [["path.3g.limit", "150ms"]],
      expect: "A queue of one round trip makes the cap unnecessary.",
    },
    {
      label: "Manage the queue of 3G with CoDel",
      settings: [["path.3g.queue", { kind: "codel" }]],
      expect: "Active queue management drops early, so the congestion window stays small.",
    },
  ],
  closing: "Less data in the queue of the slow path frees the buffers for the fast one.",
  source: "Ferlin et al., IWQoS 2014; scenario of this project",
};
