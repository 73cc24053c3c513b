// The cache by layer and the fit table of a language model: texts of the data, and bars.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { changed, launch, open, report } from "./helpers.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

// The use that Python writes for a configuration: the page only prints it.
const USE = {
  cache: "Cache of 1 sequence of 8,192 tokens in f16, as llama.cpp allocates it: 76.5 MB (76,546,048 bytes).",
  layers: Array.from({ length: 12 }, (_, n) => (n % 6 === 5 ? { kind: "full attention", bytes: 33554432, text: "33.6 MB" } : { kind: "sliding windows", bytes: 943718, text: "944 kB" })),
  most: "33.6 MB",
  kinds: [
    { layers: "0–4, 6–10", kind: "sliding windows", cells: "1,536", keys: "472 kB", values: "472 kB", state: "", each: "944 kB", all: "9.44 MB" },
    { layers: "5, 11", kind: "full attention", cells: "8,192", keys: "16.8 MB", values: "16.8 MB", state: "", each: "33.6 MB", all: "67.1 MB" },
  ],
  notes: ["Each further token of a sequence adds 8.19 kB (8,192 bytes)."],
  memory: "Memory at batch 1 with weights in q4_0 (4.50 bits each on average): 1.00 GB.",
  fits: "Batch 33 is the largest in 24.0 GB at 8,192 tokens. A context of 300,000 is the largest in 24.0 GB at batch 1.",
  contexts: [
    { batch: "1", tokens: "300,000", uses: ["4.65 GB", "19.0 GB", "8.39 MB", "263 MB"], total: "24.0 GB" },
    { batch: "2", tokens: "150,000", uses: ["4.65 GB", "19.0 GB", "8.39 MB", "263 MB"], total: "24.0 GB" },
    { batch: "4", tokens: "any", uses: ["", "", "", ""], total: "" },
  ],
};

function page(name, use) {
  return changed(report("lenet5"), name, (data) => { data.reports[0].use = use; });
}

describe("a language model in use", () => {
  it("draws a bar for every layer, higher where more is cached", async () => {
    const view = await open(browser, page("use", USE));
    const bars = await view.$$eval("section[aria-label='cache by layer'] rect.spark", (rects) => rects.map((rect) => [Number(rect.getAttribute("height")), rect.textContent]));
    assert.equal(bars.length, USE.layers.length);
    bars.forEach(([height, title], n) => {
      assert.equal(height > 50, n % 6 === 5);
      assert.equal(title, `layer ${n}: ${USE.layers[n].kind}, ${USE.layers[n].text}`);
    });
    await view.done();
  });

  it("prints kinds of layers and contexts as texts, without empty columns", async () => {
    const view = await open(browser, page("use", USE));
    const cells = (label) => view.$$eval(`section[aria-label='${label}'] tr`, (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    const [heads, ...rows] = await cells("cache by layer");
    assert.deepEqual(heads, ["layers", "attention", "cells", "keys", "values", "each", "all"]);
    assert.deepEqual(rows, USE.kinds.map((kind) => [kind.layers, kind.kind, kind.cells, kind.keys, kind.values, kind.each, kind.all]));
    const [, ...fits] = await cells("what fits");
    assert.deepEqual(fits, USE.contexts.map((row) => [row.batch, row.tokens, ...row.uses, row.total]));
    const text = await view.textContent("section[aria-label='cache by layer']");
    for (const line of [USE.cache, USE.memory, ...USE.notes]) assert.ok(text.includes(line), line);
    await view.done();
  });

  it("shows nothing where there is nothing to show", async () => {
    const view = await open(browser, report("lenet5"));
    for (const label of ["cache by layer", "what fits"]) assert.ok(await view.locator(`section[aria-label='${label}']`).isHidden());
    await view.done();
    const other = await open(browser, page("use-alone", { ...USE, fits: "", contexts: [] }));
    assert.ok(await other.locator("section[aria-label='cache by layer']").isVisible());
    assert.ok(await other.locator("section[aria-label='what fits']").isHidden());
    await other.done();
  });

  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 400]) {
      it(`fits ${width} px in the ${theme} theme`, async () => {
        const view = await open(browser, page("use", USE), { width, theme, phone: width < 500 });
        const [inner, scroll] = await view.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
        assert.ok(inner <= width + 1 && scroll <= inner, `${scroll} of ${inner} px`);
        for (const label of ["cache by layer", "what fits"]) {
          const box = await view.locator(`section[aria-label='${label}']`).boundingBox();
          assert.ok(box.width <= width && box.height < 700, `${label}: ${box.width} x ${box.height}`);
        }
        await view.done();
      });
    }
  }
});
