// Ten networks on the static site: batch, dtype and convention give the figures of the command line.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { answered, completed, count, open, printed, served, totals } from "./helpers.mjs";

// Each with another convention.
const NETWORKS = {
  lenet5: "cs231n", alexnet: "matconvnet", vgg16: "netscope", googlenet: "boda", resnet50: "torchvision",
  mobilenet_v2: "fvcore", densenet121: "thop", efficientnet_b0: "ptflops", convnext_tiny: "timm", vit_b_16: "deepspeed",
};
const BATCH = "4";
const DTYPE = "fp16";

describe("figures", () => {
  const site = served({ viewport: { width: 2000, height: 1000 } });
  let wanted;
  before(() => {
    wanted = printed(...Object.entries(NETWORKS).flatMap(([name, convention]) => {
      const options = ["--batch", BATCH, "--dtype", DTYPE];
      return [[name], [name, "--batch", BATCH], [name, ...options], [name, ...options, "--like", convention]];
    }));
  });

  // The figures of the page that the command line prints too.
  const same = async (page, expected, what) => {
    const shown = await totals(page);
    const heads = Object.keys(expected).filter((head) => head !== "%" && head !== "layer" && head in shown);
    assert.ok(heads.includes("params") && heads.includes("memory") && heads.length > 3, `${what}: ${heads}`);
    for (const head of heads) assert.equal(shown[head], expected[head], `${what}: ${head}`);
  };

  it("of ten networks are those of the command line, in each state", async (t) => {
    const page = await open(site.context, `${site.url}#zoo=lenet5`);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='network of the zoo'] option").length > 90);
    let compared = 0;
    for (const [at, [name, convention]] of Object.entries(NETWORKS).entries()) {
      const zoo = page.getByLabel("network of the zoo");
      if ((await zoo.inputValue()) !== name) await answered(page, () => zoo.selectOption(name));
      if ((await page.getByLabel("dtype").inputValue()) !== "") await answered(page, () => page.getByLabel("dtype").selectOption(""));
      await same(page, wanted[4 * at], name);
      await answered(page, () => page.getByLabel("batch size").fill(BATCH).then(() => page.keyboard.press("Enter")));
      await same(page, wanted[4 * at + 1], `${name}, batch ${BATCH}`);
      await answered(page, () => page.getByLabel("dtype").selectOption(DTYPE));
      await same(page, wanted[4 * at + 2], `${name}, ${DTYPE}`);
      await completed(page);
      await count(page, convention);
      await same(page, wanted[4 * at + 3], `${name}, ${convention}`);
      assert.match(page.url(), new RegExp(`zoo=${name}&batch=${BATCH}&dtype=${DTYPE}&convention=${convention}`));
      compared += 4;
      await count(page, "exact");
    }
    assert.equal(compared, 40);
    t.diagnostic(`${compared} rows of totals compared`);
    await page.done();
  });
});
