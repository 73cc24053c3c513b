// An analysis that takes long while a text is typed: its worker is ended, another answers, the page goes on.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { completed, open, pasted, served, totals } from "./helpers.mjs";

const LAYERS = 20_000;
const LONG = `x = input("data", (1, 8, 32, 32))\n${"x = conv(x, 8, 3, padding=1)\n".repeat(LAYERS)}`;
const SHORT = 'x = input("data", (1, 8, 32, 32))\nx = conv(x, 8, 3, padding=1, name="one")\n';
const FROZEN = 1000; // ms

describe("a long analysis", () => {
  const site = served();

  it("ends with its worker when the text changes, and never freezes the page", async (t) => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    const ended = [];
    for (const worker of page.workers()) worker.on("close", () => ended.push(worker.url()));
    page.on("worker", (worker) => worker.on("close", () => ended.push(worker.url())));
    const pythons = () => ended.filter((url) => url.includes("python")).length;
    const ends = async (count) => {
      for (let wait = 0; wait < 100 && pythons() < count; wait++) await page.waitForTimeout(100);
      assert.equal(pythons(), count, `${ended}`);
    };
    await completed(page);
    await page.evaluate(() => {
      let last = performance.now();
      globalThis.gaps = 0;
      setInterval(() => {
        globalThis.gaps = Math.max(globalThis.gaps, performance.now() - last);
        last = performance.now();
      }, 20);
    });
    await pasted(page, LONG);
    await page.waitForFunction(() => document.documentElement.dataset.waiting, undefined, { timeout: 30_000 });
    await ends(1);
    assert.match(await page.locator(".stale").innerText(), /takes more than 2 s/);
    assert.equal((await totals(page)).params, "61,706");
    await pasted(page, SHORT);
    await page.waitForFunction(() => document.querySelector(".tfoot .tr").innerText.includes("584"), undefined, { timeout: 30_000 });
    await ends(2);
    assert.equal(await page.locator(".stale").isVisible(), false);
    const gap = await page.evaluate(() => globalThis.gaps);
    t.diagnostic(`${LAYERS.toLocaleString("en")} layers, longest time without an answer of the page ${gap.toFixed(0)} ms`);
    assert.ok(gap < FROZEN, `the page stood still for ${gap} ms`);
    await page.done();
  });
});
