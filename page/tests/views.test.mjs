// 24 views: both themes at 1440, 900 and 400 px, at the start, compared, searched and with a menu open.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";
import { launch, open, report } from "./helpers.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const VIEWS = {
  start: async () => {},
  chosen: async (page) => { await page.click(".tbody .tr >> nth=0"); await page.evaluate(() => scrollTo(0, 900)); },
  found: async (page) => { await page.fill("#search", "conv"); },
  compared: async (page) => {
    await page.click(".title button");
    await page.click("[role=menuitemradio]:has-text('compare')");
  },
};

// Texts that do not fit their box, and have neither an ellipsis with a title nor a scroll bar.
function cutTexts() {
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg, .menu[hidden], .hc:not(.on), .sr, .twin, [hidden]") || element.children.length > 0 && element.tagName !== "BUTTON") continue;
    const style = getComputedStyle(element);
    if (element.textContent.trim() === "" || style.display === "none" || style.visibility === "hidden") continue;
    const box = element.getBoundingClientRect();
    if (box.width === 0 || element.scrollWidth <= element.clientWidth + 1 && element.clientWidth > 0) {
      const parent = element.parentElement.getBoundingClientRect();
      const clipped = getComputedStyle(element.parentElement).overflowX === "hidden" && (box.right > parent.right + 1.5 || box.left < parent.left - 1.5);
      if (!clipped) continue;
    }
    if (style.display === "inline" && element.clientWidth === 0) continue;
    const titled = style.textOverflow === "ellipsis" && (element.title || element.closest("[title]"));
    if (!titled && element.tagName !== "INPUT" && element.tagName !== "OPTION") found.push(`${element.className || element.tagName}: ${element.textContent.slice(0, 60)}`);
  }
  return found;
}

for (const theme of ["light", "dark"]) {
  for (const width of [1440, 900, 400]) {
    describe(`${width} px, ${theme}`, () => {
      for (const [name, act] of Object.entries(VIEWS)) {
        it(`${name}: no cut text, no sideways scroll, nothing serious for axe`, async () => {
          const page = await open(browser, report("resnet18", "resnet34"), { width, height: 900, theme, phone: width < 500 });
          await act(page);
          await page.waitForTimeout(150);
          const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
          assert.ok(inner <= width + 1 && scroll <= inner, `${scroll} of ${inner} px`);
          assert.deepEqual(await page.evaluate(cutTexts), []);
          await page.addScriptTag({ path: AXE });
          const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
          const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
            .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 140)} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
          assert.deepEqual(serious, []);
          await page.done();
        });
      }
    });
  }
}
