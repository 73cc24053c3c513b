// The built site from a plain `python -m http.server`, in Chromium.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const SITE = fileURLToPath(new URL("../../build/site", import.meta.url));
export const READY = 60_000;
const PYTHON = process.env.PYTHON ?? "python3";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"];

/** Serves the site; `stop` ends the server. */
export async function serve() {
  if (!existsSync(join(SITE, "index.html"))) throw new Error("the site is not built: make site");
  const server = spawn(PYTHON, ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", SITE], { stdio: ["ignore", "pipe", "pipe"] });
  const port = await new Promise((resolve, reject) => {
    server.stdout.on("data", (data) => {
      const found = /port (\d+)/.exec(String(data));
      if (found) resolve(Number(found[1]));
    });
    server.on("exit", (code) => reject(new Error(`http.server ended with ${code}`)));
  });
  server.stderr.resume();
  return { url: `http://127.0.0.1:${port}/`, stop: () => server.kill() };
}

/** A fresh profile. */
export async function profile(options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "layerscope-site-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options,
  });
  const end = context.close.bind(context);
  context.close = async () => {
    await end();
    rmSync(folder, { recursive: true, force: true });
  };
  return context;
}

/** Opens the site and waits for the first table; console errors and foreign requests fail the test. */
export async function open(context, url, { ready = ".tfoot .tr" } = {}) {
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("dialog", (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !/^(data|blob):/.test(request.url())) faults.push(`request for ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForSelector(ready, { timeout: READY });
  page.faults = faults;
  page.done = async () => {
    assert.deepEqual(faults, []);
    await page.close();
  };
  return page;
}

/** Runs something that makes the site analyze, and waits for its answer. */
export async function answered(page, act, timeout = 20_000) {
  const before = await page.evaluate(() => document.documentElement.dataset.shown ?? "");
  await act();
  await page.waitForFunction((last) => (document.documentElement.dataset.shown ?? "") !== last, before, { timeout });
}

/** Replaces the text of the editor as a user would. */
export async function type(page, text) {
  await answered(page, async () => {
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(text);
  });
}

/** Texts of the row with the totals, by head. */
export async function totals(page) {
  return page.evaluate(() => {
    const heads = [...document.querySelectorAll(".grid .th")].map((head) => head.innerText.replace(/[▾▴\n]/g, "").trim());
    const cells = [...document.querySelector(".tfoot .tr").children].map((cell) => cell.innerText.trim());
    return Object.fromEntries(heads.map((head, at) => [head, cells[at]]));
  });
}
