// The table against the command line, and what a reader does with it.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { asPrinted, convention, launch, layerscope, open, openAll, printed, report, rows } from "./helpers.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const WIDE = { width: 1900, height: 900 };

describe("the table", () => {
  it("has the 112 rows of resnet50 as the command line prints them", async () => {
    const page = await open(browser, report("resnet50"), WIDE);
    await openAll(page);
    const table = await rows(page);
    const [, ...lines] = printed("resnet50", "--columns", "name,type,window,output,params,params%,macs,macs%,memory,intensity,field");
    assert.equal(lines.length, 112);
    assert.equal(table.rows.length, 111);
    table.rows.forEach((row, at) => {
      const { cells } = row;
      const [name, type, window, output, params, paramsShare, macs, macsShare, memory, intensity, field] = lines[at];
      assert.equal(row.name + (row.pill && ` ${row.pill}`), name);
      assert.equal(asPrinted(cells.type), `${type} ${window}`.trim());
      assert.equal(asPrinted(cells.output), output);
      assert.deepEqual(
        [cells.params, cells["% of params"], cells.MACs, cells["% of MACs"], cells.memory, cells["FLOP/B"], asPrinted(cells.field)],
        [params, paramsShare, macs, macsShare, memory, intensity, field]);
    });
    const { total } = table;
    const last = lines.at(-1);
    assert.deepEqual([total.layer, total.params, total.MACs, total.memory, total["FLOP/B"]], [last[0], last[4], last[6], last[8], last[9]]);
    await page.done();
  });

  it("opens and closes modules", async () => {
    const page = await open(browser, report("resnet50"));
    const folded = (await rows(page)).rows.length;
    await page.click('.tr[data-id="glayer2"] .twisty');
    const opened = (await rows(page)).rows;
    assert.equal(opened.length, folded + 2);
    assert.equal(opened.find((row) => row.id === "glayer2").expanded, "true");
    await page.click('.tr[data-id="glayer2"] .twisty');
    assert.equal((await rows(page)).rows.length, folded);
    await page.done();
  });

  it("searches by name, type and shape, and says when there is nothing", async () => {
    const page = await open(browser, report("resnet50"));
    await page.keyboard.press("/");
    await page.keyboard.type("downsample.0");
    let found = (await rows(page)).rows;
    assert.ok(found.length === 4 && found.every((row) => row.name.includes("downsample.0")));
    assert.equal(await page.textContent(".count"), "4 found");
    await page.fill("#search", "conv 7x7/2");
    found = (await rows(page)).rows;
    assert.deepEqual(found.map((row) => row.name), ["conv1"]);
    await page.fill("#search", "2048x7x7 batch_norm");
    assert.ok((await rows(page)).rows.every((row) => row.cells.output === "1×2048×7×7"));
    await page.fill("#search", "no such layer");
    assert.equal((await rows(page)).rows.length, 0);
    assert.match(await page.textContent(".empty:not([hidden])"), /Nothing named “no such layer”/);
    await page.click("text=Clear");
    assert.equal(await page.inputValue("#search"), "");
    await page.done();
  });

  it("sorts as the command line does", async () => {
    const page = await open(browser, report("resnet50"), WIDE);
    await page.click(".th:has-text('MACs') >> nth=0");
    const table = await rows(page);
    const macs = table.rows.map((row) => Number(row.cells.MACs.replaceAll(",", "")));
    assert.deepEqual(macs, [...macs].sort((a, b) => b - a));
    const [, ...lines] = printed("resnet50", "--columns", "name,macs", "--sort", "macs");
    const shown = new Set(table.rows.map((row) => row.name));
    const expected = lines.filter(([name]) => shown.has(name)).map(([name]) => name);
    assert.deepEqual(table.rows.filter((row) => expected.includes(row.name)).map((row) => row.name), expected);
    await page.click(".th:has-text('MACs') >> nth=0");
    assert.equal(await page.getAttribute(".th:has-text('MACs') >> nth=0", "aria-sort"), "ascending");
    await page.click(".th:has-text('MACs') >> nth=0");
    assert.equal((await rows(page)).rows[0].name, "conv1");
    await page.done();
  });

  it("chooses columns", async () => {
    const page = await open(browser, report("resnet50"), WIDE);
    await page.click("button:has-text('Columns')");
    await page.getByRole("menuitemcheckbox", { name: /^✓?\s*FLOPs/ }).click();
    await page.keyboard.press("Escape");
    const table = await rows(page);
    const [, first] = printed("resnet50", "--columns", "name,flops");
    assert.equal(table.rows[0].cells.FLOPs, first[1]);
    await page.done();
  });

  it("copies the rows as csv, Markdown and LaTeX", async () => {
    const page = await open(browser, report("lenet5"));
    for (const [label, suffix] of [["csv", "csv"], ["Markdown", "md"], ["LaTeX", "tex"]]) {
      await page.click("button:has-text('Copy')");
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(`text=Download ${label}`)]);
      assert.equal(download.suggestedFilename(), `lenet5.${suffix}`);
      const chunks = [];
      for await (const chunk of await download.createReadStream()) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString("utf8");
      const [, first] = printed("lenet5", "--columns", "name,params,macs");
      assert.ok(text.includes(first[0]) && text.includes(suffix === "csv" ? first[2].replaceAll(",", "") : first[2]), text.slice(0, 400));
    }
    await page.done();
  });
});

const NETWORKS = [
  ["resnet50", "fvcore"], ["vgg16", "torchinfo"], ["densenet121", "thop"], ["mobilenet_v2", "ptflops"], ["inception_v3", "deepspeed"],
  ["vit_b_16", "timm"], ["alexnet", "netscope"], ["squeezenet1_0", "boda"], ["googlenet", "flop_counter"], ["lenet5", "matconvnet"],
];

describe("conventions", () => {
  for (const [network, name] of NETWORKS) {
    it(`count ${network} like ${name}, as the command line does`, async () => {
      const page = await open(browser, report(network), WIDE);
      await convention(page, name);
      await openAll(page);
      const table = await rows(page);
      const [heads, ...lines] = printed(network, "--like", name);
      const [params, ops] = [heads.indexOf("params"), heads.indexOf("params") + 2];
      assert.equal(lines.length - 1, table.rows.length);
      const title = heads[ops];
      table.rows.forEach((row, at) => {
        assert.deepEqual([row.cells.params, row.cells[title], row.cells[`% of ${title}`]], [lines[at][params], lines[at][ops], lines[at][ops + 1]], row.id);
      });
      assert.equal(table.total[title], lines.at(-1)[ops]);
      await page.done();
    });
  }

  it("rename the card, the column and the total", async () => {
    const page = await open(browser, report("resnet50"));
    await convention(page, "fvcore");
    assert.equal(await page.textContent(".card >> nth=2 >> .l"), "flops");
    const told = JSON.parse(layerscope("show", "resnet50", "--like", "fvcore", "--as", "json"));
    assert.equal((await page.textContent(".card >> nth=2 >> .x")).replaceAll(",", ""), String(told.totals.convention_ops));
    await page.done();
  });
});
