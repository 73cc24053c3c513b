// Files on the static site: dropped, read where they lie with the network blocked, downloaded; reloads offline.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { answered, drop, open, printed, python, served, totals } from "./helpers.mjs";

describe("files", () => {
  const site = served();
  let folder;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "layerscope-files-"));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it("of 100 MB are read when dropped with the network blocked; the site reloads offline", async (t) => {
    const path = join(folder, "large.onnx");
    python("-c", LARGE, path);
    assert.ok(statSync(path).size >= 100_000_000);
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => caches.keys().then((names) => names.length > 0), undefined, { timeout: 60_000 });
    site.stop();
    await site.context.setOffline(true);
    try {
      const began = performance.now();
      await answered(page, () => drop(page, path), 60_000);
      t.diagnostic(`${statSync(path).size.toLocaleString("en")} bytes in ${((performance.now() - began) / 1000).toFixed(1)} s`);
      assert.equal((await totals(page)).params, printed([path])[0].params);
      assert.equal(new URL(page.url()).hash, "");
      assert.equal(await page.getByRole("button", { name: "Share link" }).isDisabled(), true);
      await page.goto(`${site.url}#zoo=alexnet`);
      await page.reload();
      await page.waitForSelector(".tfoot .tr", { timeout: 60_000 });
      assert.equal((await totals(page)).params, printed(["alexnet"])[0].params);
    } finally {
      await site.context.setOffline(false);
      await site.serve();
    }
    await page.close(); // its requests failed, as they should
  });

  it("of text become the text; those that cannot be read are refused by name", async () => {
    const text = join(folder, "net.prototxt");
    writeFileSync(text, 'name: "tiny"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\nlayer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 } }\n');
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await answered(page, () => drop(page, text));
    assert.equal((await totals(page)).params, "1,930");
    assert.match(await page.locator(".cm-content").innerText(), /InnerProduct/);
    const matlab = join(folder, "net.mat");
    writeFileSync(matlab, Buffer.concat([Buffer.from("MATLAB 7.3 MAT-file".padEnd(124)), Buffer.from([0, 2, 0x49, 0x4d]), Buffer.alloc(384), Buffer.from("\x89HDF\r\n\x1a\n", "latin1"), Buffer.alloc(100)]));
    await answered(page, () => drop(page, matlab));
    assert.match(await page.locator(".stale").innerText(), /h5py|7\.3/);
    assert.equal((await totals(page)).params, "1,930");
    await page.done();
  });

  it("are downloaded in every notation", async () => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await page.getByRole("button", { name: "Download" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".menu.tall [role=menuitem]").length > 30);
    const [download] = await Promise.all([page.waitForEvent("download", { timeout: 60_000 }), page.getByRole("menuitem", { name: "netscope", exact: true }).click()]);
    const saved = join(folder, "netscope.txt");
    await download.saveAs(saved);
    assert.equal(readFileSync(saved, "utf8"), python("-m", "layerscope", "show", "lenet5", "--as", "netscope"));
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
