// The pictures of the static site in docs/images, taken in Chromium: `node site-pictures.mjs` after `make site`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { open, profile, serve, type } from "./site-tests/helpers.mjs";

const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const ADDRESS = "#zoo=resnet18&node=layer2.0.conv1";
const layer = (name, type, bottom, rest = "", top = name) => `layer {\n  name: "${name}"  type: "${type}"\n  bottom: "${bottom}"  top: "${top}"\n${rest}}\n`;
const window = (outputs, size, pad = 0) => `  convolution_param { num_output: ${outputs}  kernel_size: ${size}  pad: ${pad} }\n`;
const NET = [
  'name: "tinynet"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 32 dim: 32 }\n\n',
  layer("conv1", "Convolution", "data", window(32, 5, 2)), layer("relu1", "ReLU", "conv1", "", "conv1"),
  layer("pool1", "Pooling", "conv1", "  pooling_param { pool: MAX  kernel_size: 3  stride: 2 }\n"),
  "\n# two branches, concatenated\n",
  layer("b1x1", "Convolution", "pool1", window(32, 1)), layer("b3x3", "Convolution", "pool1", window(64, 3, 1)),
  'layer {\n  name: "cat"  type: "Concat"\n  bottom: "b1x1"  bottom: "b3x3"  top: "cat"\n}\n',
  layer("pool2", "Pooling", "cat", "  pooling_param { pool: AVE  global_pooling: true }\n"),
  layer("fc", "InnerProduct", "pool2", "  inner_product_param { num_output: 10 }\n"), layer("prob", "Softmax", "fc"),
].join("");
// The bottom of b3x3 is misspelt.
const WRONG = NET.replace('bottom: "pool1"  top: "b3x3"', 'bottom: "poool1"  top: "b3x3"');

const server = await serve();
for (const [name, colorScheme, texts] of [["site.png", "light", []], ["site-dark.png", "dark", [NET, WRONG]]]) {
  const context = await profile({ colorScheme });
  const page = await open(context, server.url + ADDRESS);
  for (const text of texts) await type(page, text);
  if (texts.length > 0) await page.locator(".stale .link").click();
  await page.waitForTimeout(3000); // the graph scrolls to the chosen layer
  await page.screenshot({ path: join(IMAGES, name) });
  await context.close();
}
server.stop();
