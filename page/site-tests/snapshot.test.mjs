// The second visit restores the memory of Python that the first one has kept.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answered, completed, count, kept, open, paste, printed, served, totals } from "./helpers.mjs";

const NET = 'name: "tiny"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\nlayer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 } }\n';
const how = (page) => page.evaluate(() => document.documentElement.dataset.python);

describe("a snapshot", () => {
  const site = served({}, { fresh: true });

  it("is kept at the first visit and restored at the next, with the same figures", async () => {
    const [exact, thop, own] = printed(["resnet18", "--batch", "2"], ["resnet18", "--batch", "2", "--like", "thop"], ["vit_b_16"]);
    const first = await open(site.context, `${site.url}#zoo=lenet5`);
    assert.equal(await how(first), "started");
    await kept(first);
    await first.done();
    const page = await open(site.context, `${site.url}#zoo=resnet18&batch=2`);
    assert.equal(await how(page), "restored");
    assert.equal((await totals(page)).MACs, exact.MACs);
    await completed(page);
    await count(page, "thop");
    assert.equal((await totals(page)).MACs, thop.MACs);
    await count(page, "exact");
    await answered(page, () => page.getByLabel("network of the zoo").selectOption("vit_b_16"));
    assert.equal((await totals(page)).params, own.params);
    await paste(page, NET);
    assert.equal((await totals(page)).params, "1,930");
    await page.done();
  });

  it("that is damaged is dropped, and Python starts", async () => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await page.evaluate(async () => {
      const store = await caches.open("layerscope-python");
      for (const name of await store.keys()) await store.put(name, new Response(new Uint8Array(4096)));
    });
    await page.done();
    const other = await open(site.context, `${site.url}#zoo=lenet5`);
    assert.equal(await how(other), "started");
    assert.equal((await totals(other)).params, "61,706");
    await kept(other);
    await other.done();
    const again = await open(site.context, `${site.url}#zoo=lenet5`);
    assert.equal(await how(again), "restored");
    await again.done();
  });
});
