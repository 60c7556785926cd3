import type { Server } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LESSONS } from "../../src/lessons/all.ts";
import { hasChromium, launch, open, serve } from "./browser.ts";

let browser: Browser;
let server: Server;
let address: string;

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const DIGESTS = new URL("../../../target/playground/digests.jsonl", import.meta.url);

/** Start at the end of a run: as fast as it goes. */
async function toEnd(page: Page): Promise<void> {
  await page.getByLabel("Time", { exact: true }).fill("1000");
  await page.waitForSelector('.stage[data-over="true"]', { timeout: 60_000 });
}

describe.skipIf(!hasChromium)("in Chromium", () => {
  beforeAll(async () => {
    ({ server, address } = await serve());
    browser = await launch();
  });

  afterAll(async () => {
    await browser.close();
    server.close();
  });

  test.each(LESSONS.map((lesson) => [lesson.id, lesson] as const))("lesson %s", async (id, lesson) => {
    const { page, errors } = await open(browser, `${address}#lesson=${id}`);
    expect(await page.locator("h1").textContent()).toBe(lesson.title);
    await page.locator(".choice").first().click();
    await page.waitForSelector(".verdict[data-choice]", { timeout: 60_000 });
    const verdict = (await page.locator(".verdict").textContent()) ?? "";
    expect(verdict).toMatch(/\d/);
    expect(verdict).not.toMatch(/NaN|undefined/);
    expect(await page.locator(".choice.right").count()).toBe(1);
    await page.locator(".try button").first().click();
    await page.waitForSelector(".try p:not([hidden])");
    expect(await page.locator(".stage").count()).toBe(lesson.shown);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the page draws a first picture quickly", async () => {
    const { page } = await open(browser, address);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity);
    console.log(`first contentful paint after ${Math.round(paint)} ms`);
    expect(paint).toBeLessThan(1500);
    await page.close();
  });

  test("a path that is broken and repaired is a scenario with two changes", async () => {
    const { page, errors } = await open(browser, `${address}#scenario=nsdi12-fig7`);
    await page.locator(".stage canvas").first().focus();
    await page.keyboard.press("1");
    await page.getByRole("button", { name: "Step by an event" }).click();
    await page.locator(".stage canvas").first().focus();
    await page.keyboard.press("1");
    await page.locator("#export summary").click();
    await page.getByRole("button", { name: "Copy a link" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#run="));
    await toEnd(page);
    const digest = await page.locator(".stage").first().getAttribute("data-digest");
    const again = await open(browser, page.url());
    await toEnd(again.page);
    expect(await again.page.locator(".stage").first().getAttribute("data-digest")).toBe(digest);
    expect([...errors, ...again.errors]).toEqual([]);
    await page.close();
    await again.page.close();
  });

  test("an embedded lesson runs while it is in sight, and shows one of its runs", async () => {
    const { page, errors } = await open(browser, address);
    await page.setContent(`<div style="height:3000px"></div><iframe src="${address}?embed#lesson=path-dies" width="900" height="700"></iframe>`);
    const frame = page.frameLocator("iframe");
    const time = async (): Promise<number> => parseFloat((await frame.locator(".time").textContent()) ?? "");
    await frame.locator(".stage[data-digest]").waitFor({ state: "attached" });
    await page.waitForTimeout(1000);
    expect(await time()).toBe(0);
    await frame.locator("canvas").first().scrollIntoViewIfNeeded();
    await frame.locator(".sentences", { hasText: "delivered" }).waitFor();
    expect(await time()).toBeGreaterThan(0);
    const pressed = frame.locator('.stage-title [aria-pressed="true"]');
    expect(await pressed.textContent()).toBe("Bwith notice");
    await frame.getByRole("button", { name: "without notice" }).click();
    await frame.locator('.stage-title [aria-pressed="true"]', { hasText: "without notice" }).waitFor();
    expect(await frame.locator(".stage").count()).toBe(1);
    await page.evaluate(() => window.frames[0]?.postMessage({ theme: "dark" }, "*"));
    await frame.locator('html[data-theme="dark"]').waitFor({ state: "attached" });
    expect(errors).toEqual([]);
    await page.close();
  });

  test("a wrong scenario gets the message of the command line, and the page goes on", async () => {
    const { page } = await open(browser, address);
    const wrong = { name: "wrong.toml", mimeType: "text/plain", buffer: Buffer.from('name = "x"\nduration = "1"\n') };
    await page.locator('input[type="file"]').setInputFiles(wrong);
    await page.waitForSelector(".error:not([hidden])");
    expect(await page.locator(".error").textContent()).toMatch(/^wrong\.toml: duration: "1" has no unit/);
    expect(await page.locator(".stage").count()).toBe(2);
    const large = { name: "large.toml", mimeType: "text/plain", buffer: Buffer.alloc(1_000_001, "#") };
    await page.locator('input[type="file"]').setInputFiles(large);
    await page.waitForFunction(() => document.querySelector(".error")?.textContent.startsWith("large.toml: too large"));
    await page.close();
  });

  test("a run that would not end stays responsive and can be stopped", async () => {
    const { page, errors } = await open(browser, address);
    const toml = `name = "huge"
duration = "3600s"
path = [{ name = "a", rate = "10Gbit/s", delay = "5ms", limit = "50ms" }]
connection = [{ workload = { kind = "bulk" }, send_buffer = "50MB", receive_buffer = "50MB" }]
`;
    await page.locator('input[type="file"]').setInputFiles({ name: "huge.toml", mimeType: "text/plain", buffer: Buffer.from(toml) });
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "huge");
    await page.getByLabel("Speed").fill("10");
    await page.waitForTimeout(1500);
    const began = Date.now();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector('button[aria-label="Play"]');
    // An idle machine takes a tenth of this. Those of continuous integration are shared.
    expect(Date.now() - began).toBeLessThan(4000);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the digests of random scenarios are those of the native engine", async () => {
    if (!existsSync(DIGESTS)) return expect.fail("run make test-playground: it writes the digests");
    const natives = readFileSync(DIGESTS, "utf8").trim().split("\n").map((line) => JSON.parse(line) as { seed: string; toml: string; digest: string }); // prettier-ignore
    const { page } = await open(browser, address);
    const differ = await page.evaluate(async (all) => {
      const wrong: string[] = [];
      for (const { seed, toml, digest } of all) {
        const found = await window.anabranch.digest({ toml, file: "soak.toml", seed });
        if (found !== digest) wrong.push(seed);
      }
      return wrong;
    }, natives);
    expect(differ).toEqual([]);
    await page.close();
  });

  test("two paths at 50 Mbit/s run much faster than real time", async () => {
    const path = (name: string, delay: string): string => `[[path]]\nname = "${name}"\nrate = "25Mbit/s"\ndelay = "${delay}"\nlimit = "80ms"\n`;
    const toml = `name = "fast"\nduration = "30s"\n${path("a", "10ms")}${path("b", "20ms")}[[connection]]\nworkload = { kind = "bulk" }\n`;
    const { page } = await open(browser, address);
    await page.getByRole("button", { name: "Pause" }).click();
    const factor = await page.evaluate(async (text) => window.anabranch.speed({ toml: text, file: "fast.toml", seed: "1" }), toml);
    console.log(`${factor.toFixed(0)} times real time at 50 Mbit/s over two paths`);
    // An idle machine reaches 60 and more. Those of continuous integration are shared.
    expect(factor).toBeGreaterThan(8);
    await page.close();
  });

  test("a picture with more than 2,000 packets takes a part of a frame", async () => {
    const path = (name: string): string => `[[path]]\nname = "${name}"\nrate = "200Mbit/s"\ndelay = "80ms"\nlimit = "200ms"\n`;
    const toml = `name = "full"\nduration = "60s"\n${path("a")}${path("b")}[[connection]]\nsend_buffer = "40MB"\nreceive_buffer = "40MB"\nworkload = { kind = "bulk" }\n`;
    const { page } = await open(browser, address);
    await page.locator('input[type="file"]').setInputFiles({ name: "full.toml", mimeType: "text/plain", buffer: Buffer.from(toml) });
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "full");
    await page.getByLabel("Speed").fill("10");
    await page.waitForFunction(() => window.anabranch.draw().packets > 2000, undefined, { timeout: 60_000 });
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector('button[aria-label="Play"]');
    const times = await page.evaluate(() => Array.from({ length: 30 }, () => window.anabranch.draw()));
    const median = times.map(({ milliseconds }) => milliseconds).sort((one, other) => one - other)[15] ?? Infinity;
    const packets = times[0]?.packets ?? NaN;
    console.log(`${packets} packets are drawn in ${median.toFixed(1)} ms`);
    expect((median / packets) * 2000).toBeLessThan(8);
    await page.close();
  });

  test.each([390, 800, 1400])("at %i pixels, nothing is cut off, and axe finds no fault", async (width) => {
    for (const theme of ["light", "dark"]) {
      const { page, errors } = await open(browser, `${address}?theme=${theme}`, { width, height: 900 });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.addScriptTag({ path: AXE });
      const faults = await page.evaluate(async () => {
        const { violations } = await window.axe.run();
        return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      });
      expect(faults).toEqual([]);
      expect(errors).toEqual([]);
      await page.close();
    }
  });
});

declare global {
  interface Window {
    axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
  }
}
