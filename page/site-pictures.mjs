// The pictures of the static site in docs/images, taken in Chromium: `node site-pictures.mjs` after `make site`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { open, profile, serve } from "./site-tests/helpers.mjs";

const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const ADDRESS = "#zoo=resnet18&node=layer2.0.conv1";

const server = await serve();
for (const [name, colorScheme] of [["site.png", "light"], ["site-dark.png", "dark"]]) {
  const context = await profile({ colorScheme });
  const page = await open(context, server.url + ADDRESS);
  await page.waitForTimeout(3000); // the graph scrolls to the chosen layer
  await page.screenshot({ path: join(IMAGES, name) });
  await context.close();
}
server.stop();
