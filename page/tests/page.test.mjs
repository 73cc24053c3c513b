// What a reader does with the page: graph and table together, keyboard, comparison, strange files.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { changed, launch, layerscope, open, openAll, python, report, rows } from "./helpers.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const selected = (page) => page.evaluate(() => document.querySelector(".tbody .tr.sel")?.dataset.id ?? null);
const box = (id) => `.canvas svg g[data-id="${id}"]`;

describe("the file", () => {
  it("of resnet50 is below 2.5 MB and loads nothing", async () => {
    const path = report("resnet50");
    assert.ok(statSync(path).size < 2.5e6, `${statSync(path).size} bytes`);
    const html = readFileSync(path, "utf8");
    assert.match(html, /<meta http-equiv="Content-Security-Policy" content="default-src 'none'/);
    assert.doesNotMatch(html.replace(/<script[^]*?<\/script>/g, ""), /(src|href)="(?!data:)/);
    const page = await open(browser, path);
    await page.waitForSelector(box("glayer2"));
    await page.done();
  });

  it("shifts nothing while it loads", async () => {
    const page = await open(browser, report("resnet50"));
    await page.waitForSelector(box("glayer2"));
    const shift = await page.evaluate(() => new Promise((done) => {
      let sum = 0;
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; })).observe({ type: "layout-shift", buffered: true });
      setTimeout(() => done(sum), 300);
    }));
    assert.ok(shift < 0.02, `layout shift ${shift}`);
    await page.done();
  });
});

describe("graph and table", () => {
  it("select each other", async () => {
    const page = await open(browser, report("resnet50"));
    await page.waitForSelector(box("glayer1"));
    await page.locator(box("l0")).first().click();
    assert.equal(await selected(page), "l0");
    await page.click('.tbody .tr[data-id="glayer3"] .nm');
    assert.equal(await selected(page), "glayer3");
    assert.match(await page.evaluate(() => location.hash), /layer=layer3/);
    await page.done();
  });

  it("share one set of open modules", async () => {
    const page = await open(browser, report("resnet50"));
    await page.waitForSelector(box("glayer4"));
    const before = (await rows(page)).rows.length;
    await page.click('.tbody .tr[data-id="glayer4"] .twisty');
    assert.ok((await rows(page)).rows.length > before);
    await page.waitForSelector(box("glayer4.0"));
    await page.click('.tbody .tr[data-id="glayer4"] .twisty');
    await page.waitForSelector(box("glayer4.0"), { state: "detached" });
    assert.equal((await rows(page)).rows.length, before);
    await page.done();
  });

  it("show what the file says of a layer under the pointer", async () => {
    const page = await open(browser, report("resnet50"));
    await page.hover('.tbody .tr[data-id="l0"] .nm');
    await page.waitForSelector(".hc.on");
    const text = await page.innerText(".hc");
    for (const part of ["conv1", "1×3×224×224", "1×64×112×112", "kernel", "7×7", "stride", "2×2", "groups", "bias", "118,013,952"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    await page.done();
  });

  it("open at the layer of the address", async () => {
    const page = await open(browser, report("resnet50"), { hash: "#layer=layer4.2.conv2" });
    const id = await selected(page);
    assert.ok(id !== null);
    assert.equal(await page.textContent(`.tbody .tr[data-id="${id}"] .nm`), "conv2");
    await page.done();
  });
});

describe("the keyboard alone", () => {
  it("searches, moves, opens, closes and changes the theme", async () => {
    const page = await open(browser, report("resnet50"));
    await page.keyboard.press("/");
    await page.keyboard.type("layer2");
    await page.keyboard.press("ArrowDown");
    assert.equal(await selected(page), "glayer2");
    await page.keyboard.press("Escape");
    await page.focus(".grid");
    await page.keyboard.press("Home");
    assert.equal(await selected(page), "l0");
    for (let press = 0; press < 4; press++) await page.keyboard.press("ArrowDown");
    assert.equal(await selected(page), "glayer1");
    if (await page.getAttribute('.tbody .tr[data-id="glayer1"]', "aria-expanded") === "true") await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.getAttribute('.tbody .tr[data-id="glayer1"]', "aria-expanded"), "true");
    await page.keyboard.press("ArrowRight");
    assert.equal(await selected(page), "glayer1.0");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".hc.on");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".hc.on").count(), 0);
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    const first = await theme();
    await page.keyboard.press("t");
    assert.notEqual(await theme(), first);
    await page.done();
  });

  it("reaches every control, and opens and leaves menus", async () => {
    const page = await open(browser, report("resnet50", "resnet18"));
    const reached = new Set();
    for (let press = 0; press < 40; press++) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => {
        const element = document.activeElement;
        const outlined = getComputedStyle(element).outlineStyle !== "none";
        return `${element.getAttribute("aria-label") ?? element.textContent.trim().slice(0, 20)}${outlined ? "" : " (no outline)"}`;
      }));
    }
    const text = [...reached].join("\n");
    for (const control of ["convention", "Save as", "light", "dark", "search layers", "Columns", "Copy", "layers of resnet50"]) assert.ok(text.includes(control), `${control} in ${text}`);
    await page.focus("button:has-text('convention')");
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.notEqual(await page.textContent("button:has-text('convention') span:nth-child(2)"), "exact");
    await page.done();
  });
});

describe("several reports", () => {
  it("are switched and compared, by signs and not by colour alone", async () => {
    const page = await open(browser, report("resnet18", "resnet34"));
    assert.equal(await page.textContent("h1"), "resnet18");
    await page.click(".title button");
    await page.click("[role=menuitemradio]:has-text('compare')");
    const signs = await page.locator(".pairs .pair .sign").allTextContents();
    assert.ok(signs.length > 0 && signs.every((sign) => /^[+−~]/.test(sign)), signs.join());
    const printed = layerscope("compare", "resnet18", "resnet34");
    for (const ratio of await page.locator(".sums td.ratio").allTextContents()) assert.ok(printed.includes(ratio), `${ratio} in ${printed.slice(-1200)}`);
    await page.click(".seg button:text-is('resnet34')");
    assert.equal(await page.textContent("h1"), "resnet34");
    await openAll(page);
    assert.ok((await page.locator(".grid .sign:not([hidden])").count()) > 0);
    await page.done();
  });
});

describe("strange files", () => {
  const EVIL = '<img src=x onerror="alert(1)"></script><script>alert(2)</script>';

  it("have inert names", async () => {
    const path = changed(report("lenet5"), "hostile", (data) => {
      const [net] = data.reports;
      net.network = EVIL;
      net.layers.forEach((layer, at) => { layer.name = `${EVIL}${at}`; layer.type = EVIL; layer.note = EVIL; layer.source = { file: EVIL, line: 1, column: 2 }; });
      net.cells.name.texts = net.cells.name.texts.map(() => EVIL);
      net.cells.type.texts = net.cells.type.texts.map(() => EVIL);
      net.tensors.forEach((tensor) => { tensor.name = EVIL; });
      net.findings.forEach((finding) => { finding.text = EVIL; });
      net.stamp.text = EVIL;
    });
    const page = await open(browser, path);
    await openAll(page);
    await page.click(".tbody .tr >> nth=0");
    await page.hover(".tbody .tr >> nth=1");
    await page.waitForSelector(".hc.on");
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.waitForTimeout(300);
    assert.equal(await page.locator("img").count(), 0);
    assert.ok((await page.textContent("h1")).includes("<img"));
    await page.done();
  });

  it("say what is unknown, and lead there", async () => {
    const path = changed(report("lenet5"), "unknown", (data) => {
      const [net] = data.reports;
      net.layers[2].status = "unknown";
      net.layers[2].type = "com.example.Op";
      net.coverage = { known: net.layers.length - 1, total: net.layers.length, unknown: { "com.example.Op": 1 } };
      const texts = net.cells.macs.values.map((value) => String(value ?? ""));
      texts[2] = "?";
      net.cells.macs = { values: net.cells.macs.values.map((value, at) => (at === 2 ? null : value)), texts };
    });
    const page = await open(browser, path);
    await page.click(".foot button:has-text('ops known')");
    await page.click(".unknowns .link");
    assert.equal(await selected(page), "l2");
    assert.equal(await page.locator(".tbody .unknown").count(), 1);
    await page.done();
  });

  it("refused or absent, say so", async () => {
    const refused = changed(report("lenet5"), "refused", () => ({ kind: "page", schema: 2, version: "0", reports: [{ kind: "refused", network: "net.prototxt", text: "net.prototxt:3:7: unknown field" }] }));
    const page = await open(browser, refused);
    assert.match(await page.innerText("main"), /net\.prototxt:3:7: unknown field/);
    await page.done();
    const empty = await open(browser, changed(report("lenet5"), "empty", () => ({ kind: "page", schema: 2, version: "0", reports: [] })));
    assert.match(await empty.innerText("main"), /layerscope report resnet50/);
    await empty.done();
  });
});

describe("numbers", () => {
  it("are rounded as the command line rounds them", async () => {
    const values = [0, 7, 999, 1000, 1004, 1005, 1015, 1025, 9994, 9995, 9996, 99949, 99950, 999499, 999500, 12345678, 4089184256, 125500000, 2 ** 53 - 1];
    const expected = JSON.parse(python("-c", `import json
from layerscope.report.numbers import bytes_text, short_text, exact_text
print(json.dumps([[bytes_text(v), short_text(v), exact_text(v)] for v in ${JSON.stringify(values)}]))`));
    const path = changed(report("lenet5"), "numbers", (data) => {
      const [net] = data.reports;
      net.findings = values.map((value) => ({ kind: "order", text: "x", layers: [], saves_bytes: value }));
    });
    const page = await open(browser, path);
    const gains = await page.locator(".finds .gain").allTextContents();
    assert.deepEqual(gains, expected.slice(1).map(([bytes]) => `−${bytes}`));
    await page.done();
  });
});

describe("charts", () => {
  it("are drawn by Vega from the data", async () => {
    const page = await open(browser, report("resnet50", "--on", "a100"), { height: 3400 });
    await page.waitForSelector("section[aria-label=roofline] .vega svg");
    await page.waitForSelector("section[aria-label=costs] .vega svg");
    await page.waitForSelector("section[aria-label=parameters] .vega svg");
    const text = await page.textContent("section[aria-label=costs] .vega svg");
    assert.ok(text.includes("layer3.0"), text.slice(0, 300));
    await page.done();
  });
});
