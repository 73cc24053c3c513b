// The editor of the static site: live analysis, errors, selection, completion, links.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answered, completed, count, open, paste, printed, profile, served, totals, type } from "./helpers.mjs";

const NET = `name: "tiny"
input: "data"
input_shape { dim: 1 dim: 3 dim: 32 dim: 32 }
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
`;

// A new layer after the last one, with a bottom that nothing writes.
const ADDED = 'layer { name: "added" type: "ReLU" bottom: "nothing" top: "added" }\n';
// Its data is there in the train phase only.
const TRAINED = NET.replace('input: "data"\ninput_shape { dim: 1 dim: 3 dim: 32 dim: 32 }', 'layer { name: "data" type: "Input" top: "data" include { phase: TRAIN } input_param { shape { dim: 1 dim: 3 dim: 32 dim: 32 } } }');
// Addresses that a stranger may send, and what the site says.
const HOSTILE = [
  ["text=!!!", /The text of this link cannot be read/],
  [`text=${"A".repeat(5000)}`, /The text of this link cannot be read/],
  [`zoo=${encodeURIComponent("<img src=x onerror=alert(1)>")}`, /<img src=x onerror=alert\(1\)>/],
  [`zoo=lenet5&convention=${encodeURIComponent("<script>alert(1)</script>")}`, /<script>alert\(1\)<\/script>/],
  [`zoo=lenet5&dtype=${encodeURIComponent("<svg onload=alert(1)>")}`, /<svg onload=alert\(1\)>/],
  [`zoo=lenet5&batch=${encodeURIComponent("1;alert(1)")}`, /batch 1;alert\(1\), expected a whole number/],
  ["zoo=../../etc/passwd", /etc\/passwd/],
];
const BADGE = ".gx rect[style*='--error']";

describe("the editor", () => {
  const site = served();

  it("shows a zoo network with the figures of the command line, and recounts", async () => {
    const options = ["resnet18", "--batch", "4", "--dtype", "fp16", "--input", "3x192x192"];
    const [own, exact, thop] = printed(["resnet18"], options, [...options, "--like", "thop"]);
    const page = await open(site.context, `${site.url}#zoo=resnet18`);
    assert.equal((await totals(page)).params, own.params);
    assert.equal(await page.getByLabel("input shape").getAttribute("placeholder"), "3×224×224");
    await answered(page, () => page.getByLabel("batch size").fill("4").then(() => page.keyboard.press("Enter")));
    await answered(page, () => page.getByLabel("dtype").selectOption("fp16"));
    await answered(page, () => page.getByLabel("input shape").fill("3x192x192").then(() => page.keyboard.press("Enter")));
    assert.equal((await totals(page)).MACs, exact.MACs);
    assert.match(page.url(), /zoo=resnet18&input=3x192x192&batch=4&dtype=fp16/);
    await completed(page);
    await count(page, "thop");
    assert.equal((await totals(page)).MACs, thop.MACs);
    assert.notEqual(thop.MACs, exact.MACs);
    await answered(page, () => page.getByLabel("batch size").fill("four").then(() => page.keyboard.press("Enter")));
    assert.match(await page.locator(".stale").innerText(), /batch four, expected a whole number/);
    await page.done();
  });

  it("follows a text as it is typed; an error is at its line, keeps the graph, and goes", async () => {
    const page = await open(site.context, site.url);
    await type(page, NET);
    assert.equal((await totals(page)).params, "448");
    await type(page, NET.replace("num_output: 16", "num_output: 32"));
    assert.equal((await totals(page)).params, "896");
    await type(page, NET.replace("kernel_size: 3", "kernel_size: 0"));
    const problem = page.locator(".cm-problem.error");
    assert.match(await problem.innerText(), /6:51.*kernel_size 0, expected at least 1/s);
    assert.match(await page.locator(".stale").innerText(), /of the last text that could be read/);
    assert.equal((await totals(page)).params, "896");
    assert.equal(await page.locator(".cm-lint-marker-error").count(), 1);
    assert.match(await page.locator(".cm-wrong-line").innerText(), /kernel_size: 0/);
    assert.equal(await page.locator(".cm-lineNumbers .cm-wrong-number").innerText(), "6");
    assert.equal(await page.locator(BADGE).count(), 1);
    assert.equal(await page.locator(".tr.wrong .nm").innerText(), "conv1");
    await page.locator(".stale").getByRole("button", { name: "conv1" }).click();
    assert.equal(await page.locator(".tr[aria-selected=true] .nm").innerText(), "conv1");
    await answered(page, () => problem.getByRole("button", { name: "Change to 1" }).click());
    assert.equal(await problem.count(), 0);
    assert.equal(await page.locator(BADGE).count(), 0);
    assert.equal(await page.locator(".tr.wrong").count(), 0);
    assert.equal(await page.locator(".stale").isVisible(), false);
    assert.equal((await totals(page)).params, "64");
    await type(page, NET.replace("kernel_size", "kernal_size"));
    assert.match(await page.locator(".cm-problem.warning").innerText(), /convolution_param\.kernal_size is no field of Caffe/);
    await page.done();
  });

  it("gives the badge to no layer for an error in a new one; moves it with its layer", async () => {
    const page = await open(site.context, site.url);
    await paste(page, NET);
    await page.keyboard.press("Control+End");
    await answered(page, () => page.keyboard.insertText(ADDED));
    assert.match(await page.locator(".cm-problem.error").innerText(), /^9:/);
    assert.equal(await page.locator(BADGE).count(), 0);
    await answered(page, async () => {
      await page.keyboard.press("Shift+ArrowUp");
      await page.keyboard.press("Delete");
      await page.keyboard.press("Control+Home");
      await page.keyboard.insertText("# one\n\n");
    });
    await answered(page, async () => {
      await page.locator(".cm-line", { hasText: "relu1" }).click();
      await page.keyboard.press("End");
      await page.keyboard.press("ArrowLeft"); // before the brace
      await page.keyboard.insertText("oops ");
    });
    const [name] = await page.locator(".tr.wrong .nm").allInnerTexts();
    assert.equal(name, "relu1");
    await page.done();
  });

  it("scrolls to the first error of a link; an empty text has three examples", async () => {
    const page = await open(site.context, site.url);
    const filler = Array.from({ length: 200 }, (_, at) => `layer { name: "r${at}" type: "ReLU" bottom: "conv1" top: "conv1" }\n`).join("");
    await paste(page, NET + filler);
    await page.waitForFunction(() => location.hash.includes("text="));
    const before = page.url();
    await paste(page, `${NET}${filler}layer { name: "last" type: "Convolution" bottom: "conv1" top: "last" convolution_param { num_output: 1 kernel_size: 0 } }\n`);
    assert.match(await page.locator(".stale").innerText(), /Line 209/);
    await page.waitForFunction((last) => location.href !== last, before);
    const link = page.url();
    await page.done();
    const other = await open(site.context, link, { ready: ".stale:not([hidden])" });
    await other.waitForSelector(".cm-problem.error", { state: "visible" });
    assert.ok(await other.locator(".cm-problem.error").evaluate((box) => box.getBoundingClientRect().bottom < innerHeight));
    await paste(other, " ");
    assert.deepEqual(await other.locator(".stale button").allInnerTexts(), ["lenet5", "resnet50", "mobilenet_v2"]);
    await answered(other, () => other.getByRole("button", { name: "lenet5" }).click());
    assert.equal((await totals(other)).params, "61,706");
    await other.done();
  });

  it("reads a prototxt in the phase that has its data, which a link keeps", async () => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    const phase = page.getByLabel("phase");
    assert.equal(await phase.isVisible(), false);
    await paste(page, TRAINED);
    assert.match(await page.locator(".stale").innerText(), /in phase test; data does in phase train/);
    await answered(page, () => page.getByRole("button", { name: "Read phase train" }).click());
    assert.equal((await totals(page)).params, "448");
    assert.equal(await phase.inputValue(), "train");
    await page.waitForFunction(() => location.hash.includes("phase=train"));
    const link = page.url();
    await answered(page, () => phase.selectOption("test"));
    assert.equal(await page.locator(".stale").isVisible(), true);
    await answered(page, () => phase.selectOption("train"));
    await type(page, 'x = input("x", (1, 3, 8, 8))\ny = conv(x, 4, 3, name="c")');
    assert.equal((await totals(page)).params, "112");
    assert.equal(await phase.isVisible(), false);
    await page.waitForFunction(() => !location.hash.includes("phase="));
    await page.done();
    const other = await open(site.context, link);
    assert.equal((await totals(other)).params, "448");
    assert.equal(await other.getByLabel("phase").inputValue(), "train");
    await other.done();
  });

  it("selects line, box and row together", async () => {
    const page = await open(site.context, `${site.url}#zoo=resnet18&node=layer1.0.conv2`);
    const line = () => page.locator(".cm-chosen-line").textContent();
    const row = () => page.locator(".tr[aria-selected=true] .nm").innerText();
    await page.waitForSelector(".tr[aria-selected=true]");
    assert.match(await line(), /name="conv2"/);
    const numbers = page.locator(".cm-chosen-line span", { hasText: /^[\d., ]+$/ });
    assert.deepEqual(await numbers.allTextContents(), ["64", "3", "1"]); // without the commas between them
    await page.locator(".cm-line", { hasText: "maxpool = max_pool" }).click();
    await page.waitForFunction(() => document.querySelector(".tr[aria-selected=true] .nm")?.textContent === "maxpool");
    await page.waitForFunction(() => location.hash.includes("node=maxpool"));
    assert.equal(await page.locator(".twin [aria-selected=true]").textContent().then((text) => text.startsWith("maxpool")), true);
    await page.locator(".tbody .tr", { hasText: "avgpool" }).first().click();
    await page.waitForFunction(() => /name="avgpool"/.test(document.querySelector(".code").shadowRoot.querySelector(".cm-chosen-line")?.textContent ?? ""));
    await completed(page); // the graph is drawn again when the other conventions are there
    await page.keyboard.press("f");
    await page.waitForTimeout(300);
    const box = await page.locator(".gx g[data-id]").filter({ hasText: /^fc/ }).first().boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForFunction(() => /name="fc"/.test(document.querySelector(".code").shadowRoot.querySelector(".cm-chosen-line")?.textContent ?? ""));
    assert.equal(await row(), "fc");
    await page.done();
  });

  it("completes types, fields and calls", async () => {
    const page = await open(site.context, site.url);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='network of the zoo'] option").length > 90);
    await page.waitForTimeout(500);
    const complete = async (before, typed, wanted) => {
      await page.locator(".cm-content").click();
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(before);
      await page.keyboard.type(typed, { delay: 20 });
      await page.waitForSelector(".cm-tooltip-autocomplete");
      const options = await page.locator(".cm-tooltip-autocomplete li").allInnerTexts();
      assert.ok(options.includes(wanted), `${options} lacks ${wanted}`);
      await page.waitForTimeout(100); // a list accepts nothing for a moment
      await page.locator(".cm-tooltip-autocomplete li", { hasText: wanted }).first().click();
      return page.locator(".cm-content").innerText();
    };
    const layer = 'input: "data"\nlayer { name: "conv1" bottom: "data" top: "conv1" ';
    assert.match(await complete(`${layer}type: "`, "Convol", "Convolution"), /type: "Convolution"/);
    assert.match(await complete(`${layer}`, "convo", "convolution_param"), /convolution_param/);
    assert.match(await complete(`${layer}convolution_param { num_output: 4 `, "kern", "kernel_size"), /kernel_size/);
    assert.match(await complete('x = input("x", (1, 3, 8, 8))\ny = ', "max", "max_pool"), /y = max_pool/);
    await page.close();
  });

  it("opens a share link in a fresh profile, and keeps hostile text inert", async () => {
    const page = await open(site.context, site.url);
    const hostile = NET.replaceAll("conv1", "<img src=x onerror=alert(1)>").replace("tiny", "</script><script>alert(1)</script>");
    await type(page, hostile);
    await answered(page, () => page.getByLabel("batch size").fill("2").then(() => page.keyboard.press("Enter")));
    await page.waitForFunction(() => location.hash.includes("text=") && location.hash.includes("batch=2"));
    const link = page.url();
    const shown = await totals(page);
    await page.done();
    const fresh = await profile();
    try {
      const other = await open(fresh, link);
      assert.deepEqual(await totals(other), shown);
      assert.equal(await other.locator("img").count(), 0);
      await other.done();
      const code = await open(fresh, `${site.url}#zoo=lenet5`);
      await type(code, 'data = input("data", (1, 3, 8, 8))\nx = __import__("os").system("id")');
      assert.match(await code.locator(".cm-problem.error").innerText(), /found '\.'/);
      await code.done();
      const sent = await open(fresh, `${site.url}#text=!!!`, { ready: ".stale:not([hidden])" });
      for (const [hash, said] of HOSTILE) {
        await sent.evaluate((next) => (location.hash = next), hash);
        await sent.waitForFunction((text) => new RegExp(text).test(document.querySelector(".stale:not([hidden])")?.innerText ?? ""), said.source, { timeout: 20_000 });
        assert.equal(await sent.locator("img, iframe, .edit script, .shown script").count(), 0, hash);
      }
      await sent.done();
    } finally {
      await fresh.close();
    }
  });
});
