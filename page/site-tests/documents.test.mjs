// Prints and documents in the editor: table, graph and findings at their cells.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { answered, open, paste, printed, python, served, SHARED, totals, type } from "./helpers.mjs";

const DOCUMENT = join(SHARED, "seeds", "001_4dd067a824e99dc7.txt");
const TABLE = `| layer | type | kernel | output shape | params |
| --- | --- | --- | --- | --- |
| data | input | | 1x28x28 | |
| conv1 | conv | 5x5 | 6x24x24 | 157 |
| conv2 | conv | 5x5 | 16x20x20 | 2,416 |
| conv3 | conv | 5x5 | 32x16x16 | 12,832 |
`;
const AUDITED = `
import json, sys
from layerscope import audit
print(json.dumps([[each.line, each.kind] for each in audit(sys.argv[1]).findings]))
`;

// Texts that are underlined, in the part of the editor that is in view.
const underlined = (page) => page.locator(".cm-lintRange-warning").allTextContents();

describe("prints and documents", () => {
  const site = served();

  it("reads a whole printed resnet18", async () => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    const module = python("-m", "layerscope", "show", "resnet18", "--as", "module", "--no-stamp");
    assert.match(module, /^ResNet\(\n  \(conv1\): Conv2d\(3, 64, /);
    await paste(page, module);
    assert.equal((await totals(page)).params, "11,689,512");
    assert.ok((await page.locator(".gx [data-id]").count()) > 5);
    await page.done();
  });

  it("marks a wrong cell of a table", async () => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await type(page, TABLE);
    assert.match(await page.locator(".cm-problem.warning").innerText(), /4:34.*conv1, params.*156/s);
    assert.deepEqual(await underlined(page), ["157"]);
    await type(page, TABLE.replace("157", "156"));
    assert.equal(await page.locator(".cm-problem").count(), 0);
    await page.done();
  });

  it("reads document 001, marks the rows of its layout findings, and shows each of its networks", { skip: existsSync(DOCUMENT) ? false : `${DOCUMENT} is missing` }, async (t) => {
    const text = readFileSync(DOCUMENT, "utf8");
    const findings = JSON.parse(python("-c", AUDITED, DOCUMENT));
    assert.ok(findings.every(([, kind]) => kind === "layout"));
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await paste(page, text);
    assert.equal(await page.locator(".edit .status").innerText().then((status) => Number(/\d+/.exec(status)[0])), findings.length);
    const rows = text.split("\n");
    const seen = await underlined(page);
    const expected = findings.map(([line]) => rows[line - 1].replace(/^\|\s*/, "").trimEnd());
    assert.ok(seen.length >= 3);
    assert.deepEqual(seen, expected.slice(0, seen.length));
    const [first, third] = printed([DOCUMENT], [`${DOCUMENT}#3`]);
    assert.equal((await totals(page)).params, first.params);
    assert.ok((await page.locator(".gx [data-id]").count()) >= 5);
    assert.ok((await page.locator(".tbody .tr").count()) >= 10);
    const number = page.getByLabel("network of the document");
    assert.equal(await number.locator("option").count(), 3);
    await answered(page, () => number.selectOption({ index: 2 }));
    assert.equal((await totals(page)).params, third.params);
    await page.waitForFunction(() => location.hash.includes("network=3"));
    t.diagnostic(`${findings.length} findings, 3 networks`);
    await page.done();
  });
});
