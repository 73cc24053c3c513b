// The pictures of docs/images, taken in Chromium: `node pictures.mjs`, or `make pictures`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { convention, launch, open, report } from "./tests/helpers.mjs";

const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const CONV = "layer1.0.conv2";

const rowOf = (page, name) => page.locator(".tbody .tr", { has: page.locator(`.nm[title="${name}"]`) });

/** Each picture: its page, how the page is opened, and what is done before it is taken. */
const PICTURES = {
  "page.png": { nets: ["resnet50"], run: () => {} },
  "page-dark.png": {
    nets: ["resnet50"], options: { theme: "dark" },
    run: (page) => rowOf(page, CONV).hover({ position: { x: 90, y: 12 } }),
  },
  "page-conventions.png": {
    nets: ["resnet50"],
    run: async (page) => {
      await convention(page, "fvcore");
      await page.click("button[aria-haspopup=menu]:has-text('convention')");
    },
  },
  "page-compare.png": {
    nets: ["resnet50", "resnext50_32x4d"], options: { width: 1600 },
    run: async (page) => {
      await page.click("button[aria-haspopup=menu]:has-text('resnet50')");
      await page.getByRole("menuitemradio", { name: /^compare/ }).click();
    },
  },
  "page-charts.png": {
    nets: ["resnet50", "--on", "a100", "--dtype", "fp32"], options: { height: 1500 },
    run: async (page) => {
      await rowOf(page, CONV).click({ position: { x: 90, y: 12 } });
      await page.locator("section[aria-label=memory]").evaluate((panel) => window.scrollTo(0, panel.getBoundingClientRect().top + scrollY - 64));
      await page.waitForTimeout(2500); // charts are drawn when they come into view
    },
  },
  "page-phone.png": { nets: ["resnet50"], options: { width: 400, height: 860, phone: true }, run: () => {} },
};

const browser = await launch();
for (const [name, { nets, options = {}, run }] of Object.entries(PICTURES)) {
  const page = await open(browser, report(...nets), options);
  await page.waitForTimeout(600);
  await run(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(IMAGES, name) });
  await page.done();
  console.log(name);
}
await browser.close();
