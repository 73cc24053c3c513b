// The page of all networks of a sweep: search, order, chart and table together, reports behind rows.

import assert from "node:assert/strict";
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CACHE, launch, layerscope, open } from "./helpers.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const BROKEN = "no_end.prototxt"; // its row has an error
const SWEPT = ["lenet5", "alexnet", "resnet18", "vgg11", "squeezenet1_1", BROKEN];
const READY = ".nets .tbody .tr:not([hidden])";
let browser, file, page_file, bare_file;

before(async () => {
  file = join(CACHE, `networks-${process.pid}.sqlite`);
  page_file = file.replace(".sqlite", ".html");
  bare_file = file.replace(".sqlite", "-bare.html");
  if (existsSync(file)) rmSync(file);
  writeFileSync(join(CACHE, BROKEN), "layer {");
  layerscope("sweep", ...SWEPT, "-o", file);
  layerscope("results", file, "-o", page_file);
  layerscope("results", file, "--reports", "0", "-o", bare_file);
  browser = await launch();
});
after(() => browser.close());

const names = (page) => page.$$eval(`${READY} .td.name`, (cells) => cells
  .sort((a, b) => Number(a.parentElement.getAttribute("aria-rowindex")) - Number(b.parentElement.getAttribute("aria-rowindex")))
  .map((cell) => cell.textContent));
const show = (path, options = {}) => open(browser, path, { ready: READY, ...options });

describe("the table of networks", () => {
  it("has the figures of the command line", async () => {
    const page = await show(page_file);
    const listed = JSON.parse(layerscope("results", file, "--as", "json")).rows;
    assert.deepEqual(await names(page), listed.map((row) => row.name));
    const macs = await page.$$eval(READY, (rows) => Object.fromEntries(rows.map((row) => [row.children[0].textContent, row.children[2].textContent])));
    for (const row of listed) assert.equal(macs[row.name], row.macs === null ? "?" : row.macs.toLocaleString("en-US"));
    await page.done();
  });

  it("is sorted by a head, unknown figures last, and by a third press as before", async () => {
    const page = await show(page_file);
    const head = page.locator(".nets .th button:has-text('MACs')");
    await head.click();
    assert.deepEqual(await names(page), ["vgg11", "resnet18", "alexnet", "squeezenet1_1", "lenet5", BROKEN]);
    await head.click();
    assert.deepEqual(await names(page), ["lenet5", "squeezenet1_1", "alexnet", "resnet18", "vgg11", BROKEN]);
    await head.click();
    assert.deepEqual(await names(page), [...SWEPT].sort());
    await page.done();
  });

  it("is filtered by words and by conditions, and the chart with it", async () => {
    const page = await show(page_file);
    await page.keyboard.press("/");
    await page.keyboard.type("net macs<1G");
    assert.deepEqual(await names(page), ["alexnet", "lenet5", "squeezenet1_1"]);
    assert.equal(await page.locator(".dot:not(.off)").count(), 3);
    assert.equal(await page.locator(".dot.off").count(), 2);
    assert.equal(await page.textContent(".count"), "3 of 6");
    await page.fill("#search-networks", "params>1e12");
    assert.match(await page.textContent(".nets .empty"), /No network matches/);
    await page.keyboard.press("Escape");
    assert.equal((await names(page)).length, SWEPT.length);
    await page.done();
  });
});

describe("chart and table", () => {
  it("select each other", async () => {
    const page = await show(page_file);
    await page.locator(`${READY}:has-text("resnet18") .td.n`).first().click();
    assert.match(await page.textContent(".dot.sel title"), /^resnet18\n/);
    const key = await page.getAttribute(`${READY}:has-text("alexnet")`, "data-key");
    await page.locator(`.dot[data-key="${key}"]`).dispatchEvent("click");
    assert.match(await page.textContent(".tbody .tr.sel"), /^alexnet/);
    assert.match(await page.textContent(".chosen-net"), /61,100,840/);
    await page.done();
  });

  it("change their axes", async () => {
    const page = await show(page_file);
    const before = await page.getAttribute(".dot >> nth=0", "cx");
    await page.selectOption("select[aria-label='horizontal axis']", "peak");
    assert.notEqual(await page.getAttribute(".dot >> nth=0", "cx"), before);
    assert.match(await page.getAttribute(".plot.dots", "aria-label"), /MACs over peak memory/);
    await page.done();
  });
});

describe("a row", () => {
  it("opens its report, and the way back keeps the search", async () => {
    const page = await show(page_file);
    await page.fill("#search-networks", "res");
    await page.click(`${READY} [data-open]`);
    await page.waitForSelector(".tfoot .tr");
    assert.equal(await page.textContent(".top-bar:visible h1"), "resnet18");
    assert.match(await page.textContent(".tfoot .tr"), /1,814,073,344/);
    await page.goBack();
    await page.waitForSelector(READY);
    assert.deepEqual(await names(page), ["resnet18"]);
    await page.goForward();
    await page.click("button:has-text('All networks')");
    await page.waitForSelector(READY);
    await page.done();
  });

  it("opens by the keyboard and by an address", async () => {
    const page = await show(page_file);
    await page.focus(".nets .scroll");
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.waitForSelector(".tfoot .tr");
    const hash = await page.evaluate(() => location.hash);
    await page.done();
    const again = await open(browser, page_file, { hash });
    assert.equal(await again.textContent(".top-bar:visible h1"), "lenet5");
    await again.done();
  });

  it("that failed has its error, and one without a report the command that writes it", async () => {
    const page = await show(page_file);
    await page.locator(`${READY}:has-text("no_end") .td.n`).first().click();
    assert.match(await page.textContent(".chosen-net pre"), /has no }/);
    await page.done();
    assert.ok(statSync(bare_file).size < statSync(page_file).size);
    const bare = await show(bare_file);
    await bare.locator(`${READY}:has-text("lenet5") .td.n`).first().click();
    const command = await bare.textContent(".chosen-net code");
    const [key] = /[0-9a-f]{32}/.exec(command);
    const one = file.replace(".sqlite", "-one.html");
    layerscope("results", file, "--where", `key = '${key}'`, "-o", one);
    await bare.done();
    const page1 = await show(one);
    assert.equal(await page1.locator("[data-open]").count(), 1);
    await page1.done();
  });
});

for (const theme of ["light", "dark"]) {
  for (const width of [1440, 900, 400]) {
    it(`${width} px, ${theme}: no sideways scroll, nothing serious for axe`, async () => {
      const page = await show(page_file, { width, theme, phone: width < 500 });
      await page.locator(`${READY} .td.n`).first().click();
      const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
      assert.ok(inner <= width + 1 && scroll <= inner, `${scroll} of ${inner} px`);
      await page.addScriptTag({ path: AXE });
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 140)} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
      assert.deepEqual(serious, []);
      await page.done();
    });
  }
}
