// The graph pane in Chromium: opening, views, keyboard, pictures, and large graphs.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { branched, chain, pageReport } from "./graph/support.mjs";
import { changed, launch, open, report } from "./helpers.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const box = (id) => `.canvas svg.gx g[data-id="${id}"]`;
const corner = (page, id) => page.evaluate((selector) => {
  const { x, y } = document.querySelector(selector).getBoundingClientRect();
  return [Math.round(x), Math.round(y)];
}, box(id));
const still = (page) => page.waitForTimeout(300);
const zoom = (page) => page.textContent(".gpane .zoom button:nth-child(2)");

/** Clicks the upper left of a box: the header of an open module. */
async function click(page, id) {
  const [x, y] = await corner(page, id);
  await page.mouse.click(x + 40, y + 8);
  await still(page);
}

function flat(name, sources) {
  return changed(report("lenet5"), name, (data) => ({ ...data, reports: [pageReport(data.reports[0], sources)], comparisons: [], charts: [{}], runs: [null] }));
}

describe("a module of the graph", () => {
  it("opens and closes on a click, and its header stays where it was", async () => {
    const page = await open(browser, report("resnet50"));
    const axis = (await corner(page, "l0"))[0];
    for (const id of ["glayer2", "glayer2.0", "glayer1"]) {
      const [, was] = await corner(page, id);
      await click(page, id);
      assert.equal((await corner(page, id))[1], was, id);
      assert.equal((await corner(page, "l0"))[0], axis, "the main axis stays, too");
      assert.equal(await page.getAttribute(`.tbody .tr[data-id="${id}"]`, "aria-expanded"), id === "glayer1" ? "false" : "true");
    }
    assert.equal(await zoom(page), "86 %");
    await click(page, "glayer2");
    assert.equal(await page.$(box("glayer2.0")), null);
    await page.done();
  });

  it("moves in 180 ms, or at once where motion is not wanted", async () => {
    const page = await open(browser, report("resnet50"));
    await page.emulateMedia({ reducedMotion: "reduce" });
    const [x, y] = await corner(page, "glayer2");
    const after = await page.evaluate(async ([px, py]) => {
      const target = document.querySelector(".canvas");
      for (const type of ["pointerdown", "pointerup"]) target.dispatchEvent(new PointerEvent(type, { clientX: px, clientY: py, button: 0, pointerId: 1, bubbles: true }));
      const at = () => document.querySelector('.canvas svg.gx g[data-id="glayer3"]').getBoundingClientRect().y;
      const first = at();
      await new Promise((done) => setTimeout(done, 250));
      return [first, at()];
    }, [x + 40, y + 8]);
    assert.equal(after[0], after[1]);
    await page.done();
  });
});

describe("the view", () => {
  it("pans with the wheel and by dragging, and zooms with Ctrl and the wheel, keys and buttons", async () => {
    const page = await open(browser, report("resnet50"));
    const was = await corner(page, "l0");
    await page.mouse.move(380, 500);
    await page.mouse.wheel(0, 60);
    await still(page);
    assert.deepEqual(await corner(page, "l0"), [was[0], was[1] - 60]);
    await page.mouse.down();
    await page.mouse.move(400, 540, { steps: 4 });
    await page.mouse.up();
    assert.deepEqual(await corner(page, "l0"), [was[0] + 20, was[1] - 20]);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -200);
    await page.keyboard.up("Control");
    await still(page);
    assert.notEqual(await zoom(page), "86 %");
    await page.keyboard.press("f");
    const fitted = parseInt(await zoom(page), 10);
    assert.ok(fitted <= 86);
    await page.keyboard.press("+");
    assert.ok(parseInt(await zoom(page), 10) > fitted);
    await page.click('.gpane [aria-label="zoom out"]');
    assert.equal(parseInt(await zoom(page), 10), fitted);
    await page.done();
  });

  it("shows names only below 60 %, boxes only below 35 %", async () => {
    const page = await open(browser, report("resnet50"));
    const shown = () => page.evaluate(() => ["d1", "d2"].map((name) => getComputedStyle(document.querySelector(`.gx .${name}`)).display !== "none"));
    assert.deepEqual(await shown(), [true, true]);
    while (parseInt(await zoom(page), 10) >= 60) await page.keyboard.press("-");
    assert.deepEqual(await shown(), [true, false]);
    while (parseInt(await zoom(page), 10) >= 35) await page.keyboard.press("-");
    assert.deepEqual(await shown(), [false, false]);
    await page.done();
  });

  it("pans, but does not zoom, to what the table selects", async () => {
    const page = await open(browser, report("resnet152"), { height: 600 });
    const was = await zoom(page);
    await page.click('.gpane [aria-label="from left to right"]');
    await page.click('.tbody .tr[data-id="glayer4"] .nm');
    await still(page);
    const [x] = await corner(page, "glayer4");
    const pane = await page.evaluate(() => document.querySelector(".canvas").getBoundingClientRect().toJSON());
    assert.ok(x >= pane.left && x < pane.right);
    assert.equal(await zoom(page), was);
    assert.equal(await page.isVisible(".gpane .mini"), true);
    await page.done();
  });
});

describe("fingers", () => {
  it("pan, zoom and choose", async () => {
    const page = await open(browser, report("resnet50"), { width: 400, height: 800, phone: true });
    await page.evaluate(() => document.querySelector(".canvas").scrollIntoView({ block: "center" }));
    const was = await corner(page, "l0");
    const touch = await page.context().newCDPSession(page);
    const send = (type, ...points) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
    await send("touchStart", [300, 400]);
    for (const step of [10, 20, 30]) await send("touchMove", [300 + step, 400 + step]);
    await send("touchEnd");
    assert.deepEqual(await corner(page, "l0"), [was[0] + 30, was[1] + 30]);
    const before = parseInt(await zoom(page), 10);
    await send("touchStart", [180, 400], [220, 400]);
    for (const step of [10, 20, 40]) await send("touchMove", [180 - step, 400], [220 + step, 400]);
    await send("touchEnd");
    assert.ok(parseInt(await zoom(page), 10) > 1.5 * before);
    await page.evaluate(() => document.querySelector('.gpane .zoom button:nth-child(2)').click());
    const [x, y] = await corner(page, "l3");
    await page.touchscreen.tap(x + 10, y + 4);
    await still(page);
    assert.ok((await page.$$(".gx > g > g:last-child rect")).length >= 1);
    await page.done();
  });
});

describe("what is lit", () => {
  it("edges of the selected box, and boxes that read its result", async () => {
    const page = await open(browser, report("resnet50"));
    const lit = () => page.evaluate(() => [...document.querySelectorAll(".gx .edge")].filter((edge) => edge.style.stroke.includes("accent")).length);
    assert.equal(await lit(), 0);
    await click(page, "l3"); // maxpool, which conv1 and the downsample of the first block read
    assert.ok(await lit() >= 3);
    assert.ok((await page.$$(".gx > g > g:last-child rect")).length >= 3);
    await page.done();
  });

  it("the edge under the pointer, in every frame it crosses", async () => {
    const page = await open(browser, report("resnet50"));
    const spot = await page.evaluate(() => {
      const { x, bottom } = document.querySelector('.canvas svg.gx g[data-id="l3"]').getBoundingClientRect();
      const { width } = document.querySelector('.canvas svg.gx g[data-id="l3"]').getBoundingClientRect();
      return [x + width / 2 + 2, bottom + 8];
    });
    await page.mouse.move(...spot);
    await still(page);
    const lit = await page.evaluate(() => [...document.querySelectorAll(".gx .edge")].filter((edge) => edge.style.stroke.includes("accent")).length);
    assert.ok(lit >= 3);
    await page.done();
  });

  it("what a search finds, and modules around it", async () => {
    const page = await open(browser, report("resnet50"));
    await page.fill("input[placeholder]", "layer3.0.conv2");
    await still(page);
    const opacity = (id) => page.evaluate((selector) => document.querySelector(selector).style.opacity, box(id));
    assert.equal(await opacity("glayer3"), "");
    assert.equal(await opacity("glayer2"), "0.32");
    await page.done();
  });
});

describe("the tree of the graph", () => {
  it("goes on from a click, and stays out of sight until a key is pressed", async () => {
    const page = await open(browser, report("resnet50"));
    await page.waitForSelector('.twin [role="treeitem"]', { state: "attached" });
    await click(page, "l3");
    const hidden = () => page.evaluate(() => document.querySelector(".twin").offsetWidth <= 2);
    assert.equal(await hidden(), true);
    await page.keyboard.press("ArrowUp");
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.id), "l2");
    assert.equal(await hidden(), false);
    assert.equal(await page.getAttribute('.tbody .tr[data-id="l2"]', "aria-selected"), "true");
    await page.done();
  });

  it("has the same boxes, and arrow keys move, open and close", async () => {
    const page = await open(browser, report("resnet50"));
    await page.waitForSelector('.twin [role="treeitem"]', { state: "attached" });
    assert.equal(await page.evaluate(() => document.querySelector(".twin").offsetWidth <= 2), true);
    await page.focus('.twin [tabindex="0"]');
    const current = () => page.evaluate(() => document.activeElement?.dataset.id);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    assert.equal(await current(), "l0");
    while (await current() !== "glayer2") await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector('.twin [data-id="glayer2"][aria-expanded="true"]', { state: "attached" });
    assert.equal(await current(), "glayer2");
    await page.keyboard.press("ArrowRight");
    assert.equal(await current(), "glayer2.0");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await current(), "glayer2");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector('.twin [data-id="glayer2"][aria-expanded="false"]', { state: "attached" });
    assert.equal(await page.getAttribute('.tbody .tr[data-id="glayer2"]', "aria-expanded"), "false");
    await page.done();
  });
});

async function saved(page, label) {
  await page.click("button:has-text('Save as')");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`text=${label}`)]);
  const { readFileSync } = await import("node:fs");
  return readFileSync(await download.path());
}

describe("the picture", () => {
  it("is an SVG with text and colours of its own, and a PNG", async () => {
    for (const theme of ["light", "dark"]) {
      const page = await open(browser, report("resnet50"), { theme });
      const svg = (await saved(page, "Graph as SVG")).toString("utf8");
      assert.match(svg, /^<svg xmlns/);
      assert.match(svg, />maxpool<\/text>/);
      assert.ok(!/var\(--|NaN|undefined|class="|<image|href=/.test(svg.replace(/class="d[12]( grows)?"/g, "")));
      assert.ok(svg.includes(theme === "light" ? "255, 255, 255" : "20, 24, 31") || svg.includes(theme === "light" ? "#ffffff" : "#14181f"));
      const png = await saved(page, "Graph as PNG");
      assert.deepEqual([...png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
      assert.ok(png.readUInt32BE(16) > 600);
      await page.done();
    }
  });
});

describe("large graphs", () => {
  const painted = (page) => page.evaluate(() => {
    const canvas = document.querySelector("canvas.gx");
    if (canvas === null || canvas.width === 0) return false;
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value, at) => at % 4 === 3 && value > 0);
  });
  const waited = async (page) => {
    for (let at = 0; at < 200 && !(await painted(page)); at++) await page.waitForTimeout(50);
    assert.ok(await painted(page));
  };

  it("of 5,000 layers are drawn on a canvas, and a click selects", async () => {
    const page = await open(browser, flat("flat5000", branched(5000, 1)));
    await waited(page);
    assert.equal(await page.$("svg.gx"), null);
    const pane = await page.evaluate(() => document.querySelector(".canvas").getBoundingClientRect().toJSON());
    for (let y = pane.top + 10; y < pane.top + 160; y += 12) await page.mouse.click(pane.left + 100, y);
    assert.ok(await page.$(".tbody .tr[aria-selected=true]"));
    await page.done();
  });

  it("are laid out by the page itself where no worker starts", async () => {
    const path = flat("chain5000", chain(5000));
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript(() => { window.Worker = class { constructor() { throw new Error("refused"); } }; });
    await page.goto(`file://${path}`);
    await waited(page);
    await context.close();
  });

  it("of more layers come in runs that open", async () => {
    const page = await open(browser, flat("flat6000", branched(6000, 1)));
    await page.waitForSelector('svg.gx g[data-id^="r"]');
    const id = await page.evaluate(() => document.querySelector('svg.gx g[data-id^="r"]').dataset.id);
    const before = (await page.$$("svg.gx g[data-id]")).length;
    await click(page, id);
    assert.ok((await page.$$("svg.gx g[data-id]")).length > before + 40);
    await page.done();
  });
});
