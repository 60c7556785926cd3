// Takes the screenshots of the documentation, if PLAYGROUND_PICTURES names their folder.

import { mkdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { hasChromium, launch, open, serve } from "./browser.ts";

const folder = process.env["PLAYGROUND_PICTURES"];
const LESSONS = (process.env["PLAYGROUND_LESSONS"] ?? "slow-3g").split(",");
const SIZES = [
  { width: 390, height: 844 },
  { width: 800, height: 1000 },
  { width: 1400, height: 900 },
];

test.skipIf(folder === undefined || !hasChromium)("pictures", async () => {
  await mkdir(folder ?? "", { recursive: true });
  const { server, address } = await serve();
  const browser = await launch();
  for (const lesson of LESSONS) {
    for (const theme of ["light", "dark"]) {
      for (const size of SIZES) {
        const { page, errors } = await open(browser, `${address}?theme=${theme}#lesson=${lesson}`, size);
        await page.waitForTimeout(2500);
        const full = process.env["PLAYGROUND_FULL"] !== undefined;
        await page.screenshot({ path: `${folder ?? ""}/${lesson}-${size.width}-${theme}.png`, fullPage: full });
        expect(errors).toEqual([]);
        await page.close();
      }
    }
  }
  await browser.close();
  server.close();
});
