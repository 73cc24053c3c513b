// Charts of `layerscope plot`: what Vega draws on a page is what vl-convert draws in a file.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CACHE, launch, layerscope, open } from "./helpers.mjs";

const CHARTS = [
  ["lenet5", "memory"], ["resnet50", "memory"], ["resnet50", "costs"], ["vit_b_16", "params"], ["resnet50", "activations"],
  ["resnet50", "roofline", "--on", "a100"], ["resnet18", "time", "--on", "rtx4090"],
];

/** Texts and marks of the chart on the page, and of an SVG: shape, position and colours of every mark. */
function contents(file) {
  const content = (svg) => {
    const names = ["d", "transform", "x2", "y2", "fill", "stroke", "aria-label"];
    const marks = [...svg.querySelectorAll(".role-mark > path, .role-mark > line")];
    const texts = [...svg.querySelectorAll("text")].filter((each) => each.getAttribute("opacity") !== "0");
    return {
      marks: marks.map((mark) => names.map((name) => mark.getAttribute(name) ?? "").join(" ")),
      texts: texts.map((each) => each.textContent),
    };
  };
  const parsed = new DOMParser().parseFromString(file, "image/svg+xml").documentElement;
  return [content(document.querySelector("#chart svg")), content(parsed)];
}

describe("plot", () => {
  let browser;
  before(async () => { browser = await launch(); });
  after(() => browser.close());

  for (const [net, what, ...more] of CHARTS) {
    it(`draws ${what} of ${net} in a page as in a file`, async () => {
      const base = join(CACHE, `chart-${net}-${what}`);
      layerscope("plot", net, "--of", what, ...more, "-o", `${base}.html`);
      for (const theme of ["light", "dark"]) {
        layerscope("plot", net, "--of", what, ...more, "--theme", theme, "-o", `${base}-${theme}.svg`);
        const page = await open(browser, `${base}.html`, { theme, width: 940, ready: "#chart svg .role-mark" });
        const [shown, filed] = await page.evaluate(contents, readFileSync(`${base}-${theme}.svg`, "utf8"));
        assert.deepEqual(shown.texts, filed.texts);
        assert.deepEqual(shown.marks, filed.marks);
        assert.ok(shown.marks.length > 3);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
        await page.screenshot({ path: `${base}-${theme}.png`, fullPage: true });
        await page.done();
      }
    });
  }

  it("shows a tooltip as text", async () => {
    const base = join(CACHE, "chart-tooltip");
    layerscope("plot", "lenet5", "--of", "costs", "-o", `${base}.html`);
    const page = await open(browser, `${base}.html`, { ready: "#chart svg .role-mark path" });
    await page.hover("#chart svg .mark-rect.role-mark path");
    assert.equal(await page.innerText(".tip"), "layer C1\ntype conv\nMACs 117,600\nshare of all MACs 28.2%");
    await page.done();
  });
});
