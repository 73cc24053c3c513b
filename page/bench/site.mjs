// Start to the first table and a later resnet152 on the static site, with cached files: medians of five.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { SITE, answered, kept, open, profile, serve } from "../site-tests/helpers.mjs";

const RUNS = 5;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const show = (values) => `${(median(values) / 1000).toFixed(2)} s (${values.map((value) => (value / 1000).toFixed(2)).join(" ")})`;
const files = readdirSync(SITE, { recursive: true }).map((name) => join(SITE, name)).filter((path) => statSync(path).isFile());
const sent = files.map((path) => readFileSync(path)).reduce((sum, data) => sum + Math.min(data.length, gzipSync(data, { level: 9 }).length), 0);
const server = await serve();
const context = await profile();
try {
  const first = await open(context, server.url);
  await first.evaluate(() => navigator.serviceWorker.ready);
  await first.waitForFunction(() => caches.keys().then((names) => names.length > 0), undefined, { timeout: 60_000 });
  await kept(first);
  await first.close();
  const starts = [];
  const chosen = [];
  const later = [];
  for (let run = 0; run < RUNS; run++) {
    const begin = performance.now();
    const page = await open(context, `${server.url}#zoo=resnet18`);
    starts.push(performance.now() - begin);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='network of the zoo'] option").length > 50, undefined, { timeout: 60_000 });
    await page.waitForTimeout(3000);
    const choice = performance.now();
    await answered(page, () => page.getByLabel("network of the zoo").selectOption("resnet152"));
    chosen.push(performance.now() - choice);
    const again = performance.now();
    await answered(page, () => page.getByLabel("dtype").selectOption("fp16"));
    later.push(performance.now() - again);
    await page.close();
  }
  console.log(`download ${sent.toLocaleString("en")} bytes, compressed`);
  console.log(`start to first table ${show(starts)}`);
  console.log(`resnet152 chosen ${show(chosen)}`);
  console.log(`resnet152 in another dtype ${show(later)}`);
} finally {
  await context.close();
  server.stop();
}
