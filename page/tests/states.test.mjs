// States of a page beside the usual one: a refused file among others, printing, fingers, conventions.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { branched, pageReport } from "./graph/support.mjs";
import { changed, convention, launch, open, openAll, report } from "./helpers.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

describe("a refused file", () => {
  it("is said above the networks that were read", async () => {
    const text = "<b>.onnx: byte 0: wire type 7 in field 12";
    const path = changed(report("lenet5", "alexnet"), "refused-beside", (data) => {
      data.reports.splice(1, 0, { kind: "refused", network: "<b>.onnx", text });
      data.runs.splice(1, 0, null);
      data.charts.splice(1, 0, {});
      data.comparisons[0].second = 2;
    });
    const page = await open(browser, path);
    assert.equal(await page.textContent(".refused code"), text);
    await page.click("button[aria-haspopup=menu]:has-text('lenet5')");
    assert.deepEqual(await page.getByRole("menuitemradio").allTextContents(), ["✓lenet5", "<b>.onnx (refused)", "alexnet", "compare lenet5 with alexnet"]);
    await page.getByRole("menuitemradio", { name: "alexnet", exact: true }).click();
    assert.equal(await page.textContent(".chosen"), "alexnet");
    await page.done();
  });
});

describe("a comparison", () => {
  it("has columns as wide as their texts", async () => {
    const page = await open(browser, report("resnet50", "resnext50_32x4d"));
    await page.click("button[aria-haspopup=menu]:has-text('resnet50')");
    await page.getByRole("menuitemradio", { name: /^compare/ }).click();
    await page.waitForSelector(".pairs .tbody .tr");
    const cut = await page.evaluate(() => [...document.querySelectorAll(".pairs .td:not(.name)")].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent));
    assert.deepEqual(cut, []);
    await page.done();
  });
});

describe("paper", () => {
  it("has the whole graph, and the rows in order", async () => {
    const page = await open(browser, report("resnet50"), { theme: "dark" });
    await openAll(page);
    await page.evaluate(() => { document.querySelector(".grid").scrollTop = 900; });
    await page.waitForTimeout(300);
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const found = await page.evaluate(() => {
      const rows = [...document.querySelectorAll(".grid .tbody .tr:not([hidden])")];
      const pane = document.querySelector(".canvas").getBoundingClientRect();
      const boxes = [...document.querySelectorAll("svg.gx g[data-id]")].map((box) => box.getBoundingClientRect());
      return {
        numbers: rows.map((row) => Number(row.getAttribute("aria-rowindex"))),
        tops: rows.map((row) => row.getBoundingClientRect().top),
        inside: boxes.every((box) => box.top >= pane.top - 1 && box.bottom <= pane.bottom + 1),
        surface: getComputedStyle(document.documentElement).getPropertyValue("--surface").trim(),
      };
    });
    assert.equal(found.numbers.length, 111);
    assert.deepEqual(found.numbers, found.numbers.map((_, at) => at + 2));
    assert.ok(found.tops.every((top, at) => at === 0 || top > found.tops[at - 1] + 20));
    assert.ok(found.inside);
    assert.match(found.surface, /^#fff(fff)?$/);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.getAttribute("svg.gx", "viewBox"), null);
    await page.done();
  });

  it("has the charts of a dark page in light colours, and the page stays dark", async () => {
    const page = await open(browser, report("resnet50"), { theme: "dark" });
    const colours = () => page.evaluate(() => [...document.querySelectorAll(".vega svg .role-axis-label text")].map((text) => text.getAttribute("fill")));
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const printed = new Set(await colours());
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    const shown = new Set(await colours());
    assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    assert.ok(printed.size > 0 && shown.size > 0);
    assert.deepEqual([...printed].filter((colour) => shown.has(colour)), []);
    await page.done();
  });
});

describe("a finger", () => {
  it("that taps a layer of the graph opens its card", async () => {
    const page = await open(browser, report("resnet50"), { width: 400, height: 800, phone: true });
    await page.locator(".gpane").scrollIntoViewIfNeeded();
    const { x, y } = await page.locator('.canvas svg.gx g[data-id="l3"]').boundingBox();
    await page.touchscreen.tap(x + 30, y + 8);
    await page.waitForSelector(".hc.on");
    assert.match(await page.textContent(".hc.on h3"), /^maxpool$/);
    await page.done();
  });
});

describe("a convention", () => {
  it("is named by the heat menu, and its figures are in the boxes", async () => {
    const page = await open(browser, report("resnet50"));
    const box = () => page.textContent('.canvas svg.gx g[data-id="glayer2"]');
    assert.match(await box(), /1\.03/);
    await convention(page, "flop_counter");
    assert.equal(await page.evaluate(() => document.querySelector(".heat select").selectedOptions[0].textContent), "FLOPs (flop_counter)");
    assert.match(await box(), /2\.0[56]/);
    await page.done();
  });
});

describe("the tree of a large graph", () => {
  it("has elements for a window of its boxes, and keys lead to all", async () => {
    const path = changed(report("lenet5"), "tree4000", (data) => ({ ...data, reports: [pageReport(data.reports[0], branched(4000, 1))], comparisons: [], charts: [{}], runs: [null] }));
    const page = await open(browser, path);
    await page.waitForSelector('.twin [tabindex="0"]', { state: "attached" });
    const count = () => page.evaluate(() => document.querySelectorAll(".twin [role=treeitem]").length);
    assert.ok(await count() <= 122);
    await page.focus('.twin [tabindex="0"]');
    await page.keyboard.press("End");
    const place = () => page.evaluate(() => [Number(document.activeElement.getAttribute("aria-posinset")), Number(document.activeElement.getAttribute("aria-setsize"))]);
    const [last, all] = await place();
    assert.equal(last, all);
    assert.ok(all > 1000);
    await page.keyboard.press("ArrowUp");
    assert.deepEqual(await place(), [all - 1, all]);
    await page.keyboard.press("Home");
    assert.deepEqual(await place(), [1, all]);
    assert.ok(await count() <= 124);
    await page.done();
  });
});
