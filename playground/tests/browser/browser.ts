// Debian's Chromium, and the built page on a local server.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

const SITE = process.env["PLAYGROUND_OUT"] ?? new URL("../../../python/anabranch/playground/site", import.meta.url).pathname;
const EXECUTABLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

export const hasChromium = existsSync(EXECUTABLE);

export async function serve(): Promise<{ server: Server; address: string }> {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname);
    const file = join(SITE, path === "/" ? "index.html" : path);
    readFile(file).then(
      (content) => response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(content),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server, address: `http://127.0.0.1:${port}/` };
}

export function launch(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]; // prettier-ignore
  return chromium.launch({ executablePath: EXECUTABLE, headless: true, args });
}

/** Open the page and wait for its first frame. Errors of the page fail the test that asks for them. */
export async function open(browser: Browser, address: string, size = { width: 1400, height: 900 }): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: size });
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  await page.goto(address);
  await page.waitForSelector(".stage[data-digest]");
  return { page, errors };
}
