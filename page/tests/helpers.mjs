// Pages written by the command line, opened from disk in Chromium without a network.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "..", "..");
export const CACHE = join(HERE, "..", ".cache");
const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
];

mkdirSync(CACHE, { recursive: true });

/** Runs Python with the sources of this checkout. */
export function python(...args) {
  const env = { ...process.env, PYTHONPATH: join(ROOT, "src"), COLUMNS: "400" };
  return execFileSync(PYTHON, args, { encoding: "utf8", maxBuffer: 1 << 28, env, cwd: CACHE });
}

export function layerscope(...args) {
  return python("-m", "layerscope", ...args);
}

const written = new Map();

/** Path of the page of networks; options follow the names. */
export function report(...args) {
  const key = args.join(" ");
  if (!written.has(key)) {
    const path = join(CACHE, `${key.replace(/[^\w]+/g, "-")}.html`);
    const part = path.replace(/\.html$/, `-${process.pid}.html`); // another test file may write the same page
    layerscope("report", ...args, "-o", part);
    renameSync(part, path);
    written.set(key, path);
  }
  return written.get(key);
}

/** A page whose data a function changes. */
export function changed(path, name, change) {
  const html = readFileSync(path, "utf8");
  const [before, rest] = html.split('id="layerscope-data">', 2);
  const end = rest.indexOf("</script>");
  const data = JSON.parse(rest.slice(0, end));
  const text = JSON.stringify(change(data) ?? data).replaceAll("<", "\\u003c");
  const out = join(CACHE, `${name}.html`);
  writeFileSync(out, `${before}id="layerscope-data">${text}${rest.slice(end)}`);
  return out;
}

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** Opens a page from disk; requests other than for the file fail the test. */
export async function open(browser, path, { width = 1440, height = 900, theme = "light", phone = false, hash = "", ready = ".tfoot .tr, .state" } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: theme, offline: true, hasTouch: phone, isMobile: phone, acceptDownloads: true,
  });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) faults.push(`request for ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(pathToFileURL(path).href + hash);
  await page.waitForSelector(ready);
  page.faults = faults;
  page.done = async () => {
    assert.deepEqual(faults, []);
    await context.close();
  };
  return page;
}

/** Every row of the table, which scrolls: {id, name, level, cells}. */
export async function rows(page) {
  return page.evaluate(async () => {
    const grid = document.querySelector(".grid");
    const heads = [...grid.querySelectorAll(".th")].map((head) => head.innerText.replace(/[▾▴\n]/g, "").trim());
    const found = new Map();
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const read = () => {
      for (const row of grid.querySelectorAll(".tbody .tr:not([hidden])")) {
        const cells = [...row.children].map((cell) => cell.innerText.replaceAll("\n", " ").replaceAll("\u00a0", " ").trim());
        found.set(Number(row.getAttribute("aria-rowindex")), {
          id: row.dataset.id, level: Number(row.getAttribute("aria-level")), name: row.querySelector(".nm").textContent,
          pill: row.querySelector(".pill").hidden ? "" : row.querySelector(".pill").textContent, expanded: row.getAttribute("aria-expanded"),
          cells: Object.fromEntries(heads.map((head, at) => [head, cells[at]])),
        });
      }
    };
    for (let top = 0; ; top += 300) {
      grid.scrollTop = top;
      await frame();
      read();
      if (top >= grid.scrollHeight - grid.clientHeight) break;
    }
    grid.scrollTop = 0;
    const total = [...grid.querySelector(".tfoot .tr").children].map((cell) => cell.innerText.trim());
    return {
      heads, rows: [...found.entries()].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]),
      total: Object.fromEntries(heads.map((head, at) => [head, total[at]])),
    };
  });
}

/** Opens every module. */
export async function openAll(page) {
  await page.focus(".grid");
  await page.keyboard.press("*");
}

/** Rows of a Markdown table of `show`, cells as they are printed. */
export function printed(...args) {
  const lines = layerscope("show", ...args, "--as", "markdown", "--no-stamp").split("\n").filter((line) => line.startsWith("|"));
  return lines.filter((_, at) => at !== 1).map((line) =>
    line.slice(2, -2).split(" | ").map((cell) => cell.replaceAll("&emsp;", "").replace(/^\*\*(.*)\*\*$/, "$1").replace(/\\(.)/g, "$1").trim()));
}

/** A text of the page as the command line prints it. */
export function asPrinted(text) {
  return text.replaceAll("×", "x").replace(/^all$/, "everything");
}

export async function convention(page, name) {
  await page.click("button[aria-haspopup=menu]:has-text('convention')");
  await page.getByRole("menuitemradio").filter({ has: page.locator(`.line > span:first-child:text-is("${name}")`) }).click();
}
