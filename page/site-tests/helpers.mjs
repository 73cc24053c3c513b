// The built site from a plain `python -m http.server`, in Chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const SITE = fileURLToPath(new URL("../../build/site", import.meta.url));
export const READY = 60_000;
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Files to compare with, which are not part of the project: tests that need them are skipped without. */
export const SHARED = join(ROOT, "..", "shared");
export const PYTHON = process.env.PYTHON ?? "python3";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"];

/** Runs Python with the sources of this checkout. */
export function python(...args) {
  return execFileSync(PYTHON, args, { encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, PYTHONPATH: join(ROOT, "src"), COLUMNS: "400" } });
}

const SHOWN = `
import contextlib, io, json, sys
from layerscope.cli import run
for args in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(["show", *args, "--as", "markdown", "--no-stamp"]) == 0, args
    print(json.dumps(out.getvalue()))
`;

/** The row of totals that the command line prints with each list of arguments, by head. */
export function printed(...runs) {
  return python("-c", SHOWN, JSON.stringify(runs)).trim().split("\n").map((text) => {
    const lines = JSON.parse(text).split("\n").filter((line) => line.startsWith("|"));
    const cells = (line) => line.slice(2, -2).split(" | ").map((cell) => cell.replace(/^\*\*(.*)\*\*$/, "$1").replace(/\\(.)/g, "$1").trim());
    const heads = cells(lines[0]);
    const last = lines.findLast((line) => line.startsWith("| **"));
    return Object.fromEntries(cells(last).map((cell, at) => [heads[at], cell]));
  });
}

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

/** The site and a profile for the tests of a suite; `fresh`: without an earlier visit, which keeps the memory of Python. */
export function served(options = {}, { fresh = false } = {}) {
  let server = null;
  const site = {
    context: null,
    get url() {
      return server.url;
    },
    serve: async () => {
      server = await serve();
    },
    stop: () => server?.stop(),
  };
  before(async () => {
    await site.serve();
    site.context = await profile(options);
    if (fresh) return;
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await kept(page);
    await page.done();
  });
  after(async () => {
    await site.context?.close();
    site.stop();
  });
  return site;
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

/** Replaces the text of the editor by a pasted one. */
export async function paste(page, text) {
  await answered(page, () => pasted(page, text));
}

/** Pastes without waiting for an answer. */
export async function pasted(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.evaluate((given) => {
    const data = new DataTransfer();
    data.setData("text/plain", given);
    const content = document.querySelector(".code").shadowRoot.querySelector(".cm-content");
    content.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, text);
}

/** Drags a file from the disk over the page and drops it there. */
export async function drop(page, path) {
  await page.evaluate(() => {
    const input = document.createElement("input");
    input.type = "file";
    input.id = "dragged";
    document.body.append(input);
  });
  await page.setInputFiles("#dragged", path);
  const steps = await page.evaluate(() => {
    const input = document.querySelector("#dragged");
    const data = new DataTransfer();
    data.items.add(input.files[0]);
    input.remove();
    const target = document.querySelector(".shown");
    return ["dragenter", "dragover", "drop"].map((type) => {
      target.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
      return document.querySelectorAll(".dropping").length;
    });
  });
  assert.deepEqual(steps.slice(1), [1, 0]);
}

/** Waits until both workers have answered: all conventions are there. */
export async function completed(page) {
  await page.waitForFunction(() => document.documentElement.dataset.complete === document.documentElement.dataset.shown, undefined, { timeout: READY });
}

/** Waits until the memory of Python is kept for the next visit. */
export async function kept(page) {
  await page.waitForFunction(() => document.documentElement.dataset.kept, undefined, { timeout: 2 * READY });
}

/** Chooses a convention from the menu. */
export async function count(page, convention) {
  await page.click("button[aria-haspopup=menu]:has-text('convention')");
  await page.locator("[role=menuitemradio]", { has: page.getByText(convention, { exact: true }) }).first().click();
}

/** Texts of the row with the totals, by head. */
export async function totals(page) {
  return page.evaluate(() => {
    const heads = [...document.querySelectorAll(".grid .th")].map((head) => head.innerText.replace(/[▾▴\n]/g, "").trim());
    const cells = [...document.querySelector(".tfoot .tr").children].map((cell) => cell.innerText.trim());
    return Object.fromEntries(heads.map((head, at) => [head, cells[at]]));
  });
}
