// The editor in both themes and three widths: nothing cut or beside the page, nothing serious for axe.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { open, paste, profile, served } from "./helpers.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const WRONG = `name: "tiny"
input: "data"
input_shape { dim: 1 dim: 3 dim: 32 dim: 32 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param { num_output: 16 kernel_size: 3 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
`;

describe("views", () => {
  const site = served({}, { fresh: true }); // each theme has a profile of its own

  for (const colorScheme of ["light", "dark"]) {
    it(`${colorScheme}: no sideways scroll, nothing serious for axe`, async () => {
      const found = [];
      const context = await profile({ colorScheme, bypassCSP: true });
      try {
        const page = await open(context, `${site.url}#zoo=resnet18&node=layer1.0.conv1`);
        await page.addScriptTag({ path: AXE });
        for (const text of ["", WRONG.replace("kernel_size: 3", "kernel_size: 0")]) {
          if (text !== "") {
            await paste(page, WRONG);
            await paste(page, text);
          }
          for (const width of [1440, 900, 400]) {
            await page.setViewportSize({ width, height: 900 });
            await page.waitForTimeout(300);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            if (wide > 0) found.push(`${width} px: ${wide} px too wide`);
            const zoo = await page.getByLabel("network of the zoo").evaluate((control) => control.clientWidth);
            if (zoo < 100) found.push(`${width} px: the name of the network has ${zoo} px`);
            const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            found.push(...serious.map(({ id, nodes }) => `${width} px, ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].any[0]?.message ?? ""}`));
          }
          await page.setViewportSize({ width: 1440, height: 900 });
        }
        assert.deepEqual(found, []);
        await page.done();
      } finally {
        await context.close();
      }
    });
  }
});
