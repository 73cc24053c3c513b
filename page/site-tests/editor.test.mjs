// The editor of the static site: live analysis, errors, selection, options, links, files, offline.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import { answered, open, profile, serve, totals, type } from "./helpers.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = process.env.PYTHON ?? "python3";
const NET = `name: "tiny"
input: "data"
input_shape { dim: 1 dim: 3 dim: 32 dim: 32 }
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
`;

function python(...args) {
  return execFileSync(PYTHON, args, { encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, PYTHONPATH: join(ROOT, "src"), COLUMNS: "400" } });
}

// The row of totals as the command line prints it, by head.
function printed(...args) {
  const lines = python("-m", "layerscope", "show", ...args, "--as", "markdown", "--no-stamp").split("\n").filter((line) => line.startsWith("|"));
  const cells = (line) => line.slice(2, -2).split(" | ").map((cell) => cell.replace(/^\*\*(.*)\*\*$/, "$1").replace(/\\(.)/g, "$1").trim());
  const heads = cells(lines[0]);
  return Object.fromEntries(cells(lines.at(-1)).map((cell, at) => [heads[at], cell]));
}

describe("the static site", () => {
  let server, context, folder;
  before(async () => {
    server = await serve();
    context = await profile();
    folder = mkdtempSync(join(tmpdir(), "layerscope-files-"));
  });
  after(async () => {
    await context?.close();
    server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("shows a zoo network with the figures of the command line, and recounts", async () => {
    const page = await open(context, `${server.url}#zoo=resnet18`);
    assert.equal((await totals(page)).params, "11,689,512");
    const figure = async () => (await totals(page)).MACs;
    const wanted = printed("resnet18", "--batch", "4", "--dtype", "fp16", "--input", "3x192x192");
    await answered(page, () => page.getByLabel("batch size").fill("4").then(() => page.keyboard.press("Enter")));
    await answered(page, () => page.getByLabel("dtype").selectOption("fp16"));
    await answered(page, () => page.getByLabel("input shape").fill("3x192x192").then(() => page.keyboard.press("Enter")));
    assert.equal(await figure(), wanted.MACs);
    assert.match(page.url(), /zoo=resnet18&input=3x192x192&batch=4&dtype=fp16/);
    await page.waitForFunction(() => document.documentElement.dataset.complete, undefined, { timeout: 30_000 });
    await page.click("button[aria-haspopup=menu]:has-text('convention')");
    await page.getByRole("menuitemradio").filter({ hasText: /^✓?thop/ }).first().click();
    const thop = printed("resnet18", "--batch", "4", "--dtype", "fp16", "--input", "3x192x192", "--like", "thop");
    const shown = Object.values(await totals(page));
    assert.ok(shown.includes(Object.values(thop).find((cell) => /^\d[\d,]{6,}$/.test(cell) && cell !== thop.params)), `${shown} lacks thop's figure`);
    await page.done();
  });

  it("follows a text as it is typed; an error is at its line, keeps the graph, and goes", async () => {
    const page = await open(context, server.url);
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
    await answered(page, () => problem.getByRole("button", { name: "Change to 1" }).click());
    assert.equal(await problem.count(), 0);
    assert.equal(await page.locator(".stale").isVisible(), false);
    assert.equal((await totals(page)).params, "64");
    await type(page, NET.replace("kernel_size", "kernal_size"));
    assert.match(await page.locator(".cm-problem.warning").innerText(), /convolution_param\.kernal_size is no field of Caffe/);
    await page.done();
  });

  it("selects line, box and row together", async () => {
    const page = await open(context, `${server.url}#zoo=resnet18&node=layer1.0.conv2`);
    await page.waitForSelector(".tr[aria-selected=true]");
    assert.match(await page.locator(".cm-chosen-line").textContent(), /name="conv2"/);
    await page.locator(".cm-line", { hasText: "maxpool = max_pool" }).click();
    await page.waitForFunction(() => document.querySelector(".tr[aria-selected=true] .nm")?.textContent === "maxpool");
    assert.match(page.url(), /node=maxpool/);
    await page.locator(".tbody .tr", { hasText: "avgpool" }).first().click();
    await page.waitForFunction(() => /name="avgpool"/.test(document.querySelector(".code").shadowRoot.querySelector(".cm-chosen-line")?.textContent ?? ""));
    await page.done();
  });

  it("completes types and fields", async () => {
    const page = await open(context, server.url);
    await page.waitForTimeout(500);
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText('input: "data"\nlayer { type: "');
    await page.keyboard.type("Convol");
    await page.waitForSelector(".cm-tooltip-autocomplete");
    assert.match(await page.locator(".cm-tooltip-autocomplete").innerText(), /Convolution/);
    await page.done();
  });

  it("reads a printed module and a document, and marks wrong cells", async () => {
    const page = await open(context, server.url);
    const module = "Net(\n  (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)\n  (bn1): BatchNorm2d(64, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)\n  (fc): Linear(in_features=512, out_features=1000, bias=True)\n)\n";
    await type(page, module);
    assert.equal((await totals(page)).params, (9408 + 128 + 513000).toLocaleString("en"));
    await type(page, "| layer | type | kernel | output shape | params |\n| --- | --- | --- | --- | --- |\n| data | input | | 1x28x28 | |\n| conv1 | conv | 5x5 | 6x24x24 | 157 |\n| conv2 | conv | 5x5 | 16x20x20 | 2,416 |\n| conv3 | conv | 5x5 | 32x16x16 | 12,832 |\n");
    assert.match(await page.locator(".cm-problem.warning").innerText(), /156/);
    await page.done();
  });

  it("opens a share link in a fresh profile, and keeps hostile text inert", async () => {
    const page = await open(context, server.url);
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
      const code = await open(fresh, `${server.url}#zoo=lenet5`);
      await type(code, 'data = input("data", (1, 3, 8, 8))\nx = __import__("os").system("id")');
      assert.match(await code.locator(".cm-problem.error").innerText(), /found '\.'/);
      await code.done();
      const broken = await open(fresh, `${server.url}#text=!!!`);
      assert.equal(await broken.locator(".tfoot .tr").count(), 1);
      await broken.done();
    } finally {
      await fresh.close();
    }
  });

  it("reads a dropped ONNX file of 100 MB with the network blocked, then reloads offline", async () => {
    const path = join(folder, "large.onnx");
    python("-c", LARGE, path);
    const page = await open(context, `${server.url}#zoo=lenet5`);
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => caches.keys().then((names) => names.length > 0));
    await context.setOffline(true);
    try {
      await answered(page, () => page.getByLabel("open a file").setInputFiles(path), 60_000);
      assert.deepEqual((await totals(page)).params, printed(path).params);
      await page.reload();
      await page.waitForSelector(".tfoot .tr", { timeout: 60_000 });
      assert.equal((await totals(page)).params, printed("lenet5").params);
    } finally {
      await context.setOffline(false);
    }
    await page.done();
  });

  it("downloads every notation", async () => {
    const page = await open(context, `${server.url}#zoo=lenet5`);
    await page.getByRole("button", { name: "Download" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".menu.tall [role=menuitem]").length > 30);
    const [download] = await Promise.all([page.waitForEvent("download", { timeout: 60_000 }), page.getByRole("menuitem", { name: "netscope", exact: true }).click()]);
    const saved = join(folder, "netscope.txt");
    await download.saveAs(saved);
    assert.equal(readFileSync(saved, "utf8").split("\n")[0], python("-m", "layerscope", "show", "lenet5", "--as", "netscope").split("\n")[0]);
    await page.done();
  });
});

const LARGE = `
import sys
import onnx
from onnx import TensorProto, helper
weights = [helper.make_tensor(f"w{n}", TensorProto.FLOAT, (5000, 1000), bytes(20_000_000), raw=True) for n in range(5)]
nodes, last = [], "x"
for n in range(5):
    nodes.append(helper.make_node("Gemm", [last, f"w{n}"], [f"y{n}"], transB=n % 2 == 0 and 1 or 0, name=f"fc{n}"))
    last = f"y{n}"
graph = helper.make_graph(nodes, "large", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1000))], [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), sys.argv[1])
`;
