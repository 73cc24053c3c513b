// Start to the first table and a later resnet152 on the static site, with cached files: medians of five.

import { open, profile, serve, answered } from "../site-tests/helpers.mjs";

const RUNS = 5;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const server = await serve();
const context = await profile();
try {
  const first = await open(context, server.url);
  await first.evaluate(() => navigator.serviceWorker.ready);
  await first.waitForFunction(() => caches.keys().then((names) => names.length > 0), undefined, { timeout: 60_000 });
  await first.close();
  const starts = [];
  const later = [];
  for (let run = 0; run < RUNS; run++) {
    const begin = performance.now();
    const page = await open(context, `${server.url}#zoo=resnet18`);
    starts.push(performance.now() - begin);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='network of the zoo'] option").length > 50, undefined, { timeout: 60_000 });
    await page.waitForTimeout(3000);
    await answered(page, () => page.getByLabel("network of the zoo").selectOption("resnet152"));
    const again = performance.now();
    await answered(page, () => page.getByLabel("dtype").selectOption("fp16"));
    later.push(performance.now() - again);
    await page.close();
  }
  console.log(`start to first table ${(median(starts) / 1000).toFixed(2)} s, resnet152 in another dtype ${(median(later) / 1000).toFixed(2)} s`);
} finally {
  await context.close();
  server.stop();
}
