import toml from "../scenarios/path_dies.toml?raw";
import { number } from "../model/words.ts";
import type { Lesson } from "./lesson.ts";

const DOWN = "path.wifi.change";

export const pathDies: Lesson = {
  id: "path-dies",
  title: "A path that dies",
  summary: "Handover, with and without notice",
  text: [
    "WiFi goes down after 10 s and comes back at 20 s. The sender gets no notice in A: packets on WiFi vanish, and acknowledgements stop.",
    "After a retransmission timeout, the engine treats the subflow as potentially failed, and reinjects its data on LTE. In B the phone notices that its interface is down, and tells the server at once.",
    "Click on a path in the picture to break it yourself. Click again to repair it.",
  ],
  runs: [
    { name: "without notice", toml, settings: [] },
    {
      name: "with notice",
      toml,
      settings: [
        [
          DOWN,
          [
            { at: "10s", state: "down", noticed: true },
            { at: "20s", state: "up", noticed: true },
          ],
        ],
      ],
    },
  ],
  shown: 2,
  start: 9.5e9,
  question: {
    ask: "Without notice, how long does the application wait without a byte?",
    choices: ["Less than a quarter of a second", "Between a quarter of a second and two seconds", "Ten seconds, until WiFi is back"],
    answer: (runs) => {
      const gaps = runs.map((run) => run.connections[0]?.longestGap ?? NaN);
      const [silent = NaN, noticed = NaN] = gaps;
      const reinjected = runs[0]?.connections[0]?.reinjections ?? NaN;
      return {
        choice: silent < 0.25 ? 0 : silent < 2 ? 1 : 2,
        text:
          `The longest pause is ${number(silent)} s without notice and ${number(noticed)} s with notice ` +
          `(sampled every 50 ms). Without notice, the engine reinjects ${String(reinjected)} segments on LTE.`,
      };
    },
  },
  tries: [
    {
      label: "Start over LTE alone",
      settings: [["connection.download.paths", ["lte"]]],
      expect: "With one path there is no handover, and nothing breaks: the price is WiFi's capacity.",
    },
  ],
  closing: "A connection survives its paths. The retransmission timeout of the dead path decides how long the pause is.",
  source: "Paasch et al., CellNet 2012; scenario of this project",
};
