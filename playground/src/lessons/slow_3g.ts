import toml from "../scenarios/wifi_3g.toml?raw";
import { number, percent } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";
import { goodputs } from "./lesson.ts";

export const slow3g: Lesson = {
  id: "slow-3g",
  title: "Why adding 3G slows WiFi",
  summary: "One receive window, two paths",
  text: [
    "A phone downloads over WiFi (8 Mbit/s). Then it adds 3G (2 Mbit/s), whose round trip is ten times as long. Both subflows share one receive buffer of 100 KiB, as RFC 8684 requires.",
    "The receiver hands data to the application in order only. Watch the receive buffer below: data from WiFi waits behind a hole that a packet on 3G must fill. While the buffer is full, the sender may not send, not even on WiFi.",
  ],
  runs: [
    {
      name: "WiFi alone",
      toml,
      settings: [
        ["connection.download.protocol", "tcp"],
        ["connection.download.paths", ["wifi"]],
      ],
    },
    { name: "WiFi and 3G", toml, settings: [] },
  ],
  shown: 2,
  question: {
    ask: "WiFi alone can carry 8 Mbit/s, and 3G 2 Mbit/s. What do both deliver together?",
    choices: ["About 10 Mbit/s, the sum", "About as much as WiFi alone", "Less than WiFi alone"],
    answer: (runs) => {
      const [alone = NaN, both = NaN] = goodputs(runs);
      const window = runs[1]?.connections[0]?.windowLimited ?? NaN;
      const ratio = both / alone;
      return {
        choice: ratio > 1.15 ? 0 : ratio > 0.95 ? 1 : 2,
        text:
          `WiFi alone: ${number(alone)} Mbit/s. Both: ${number(both)} Mbit/s. For ` +
          `${percent(window)} of the time, a subflow had room, but the receive window was full. ` +
          (runs[1]?.connections[0]?.finding[1] ?? ""),
      };
    },
  },
  tries: [
    {
      label: "Turn on two remedies",
      settings: [["connection.download.remedies", { opportunistic_retransmission: true, penalisation: "conext13" }]],
      session: 1,
      expect: "The sender repairs the hole over WiFi and halves the window of 3G. Goodput comes close to WiFi's.",
    },
    {
      label: "Give both buffers 1 MB",
      settings: [
        ["connection.download.receive_buffer", "1MB"],
        ["connection.download.send_buffer", "1MB"],
      ],
      expect: "A large buffer holds what 3G delays. Goodput rises, but each block waits longer.",
    },
    {
      label: "Give 3G the delay of WiFi",
      settings: [
        ["path.3g.delay", "10ms"],
        ["path.3g.jitter", "0ms"],
        ["path.3g.limit", "80ms"],
      ],
      expect: "Without the long round trip and the long queue, nothing holds the window up.",
    },
  ],
  closing:
    "This is head-of-line blocking in a shared window. The next lesson shows the two remedies that the authors of this experiment built into Linux.",
  source: "Raiciu et al., NSDI 2012, Figure 7; rates, delays and queues from CS244 2015; receive buffer of this project",
};
