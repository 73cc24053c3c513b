// Pages without figures: no data, or a file that was refused.

import type { PageData, Refused } from "./data";
import { h } from "./dom";

const EXAMPLES = ["layerscope report resnet50 -o resnet50.html", "layerscope report model.onnx -o model.html", "layerscope report resnet18 resnet50 -o both.html"];

/** One sentence and three examples. */
export function emptyPage(): HTMLElement {
  return h("main", { class: "state panel" }, h("h1", {}, "No network"),
    h("p", {}, "This page shows the layers of a network once the command line has written them into it, for example with"),
    ...EXAMPLES.map((example) => h("p", {}, h("code", {}, example))));
}

function refusedOf(data: PageData): Refused[] {
  return data.reports.filter((report): report is Refused => report.kind === "refused");
}

/** Files that could not be read, beside others that could; null if there are none. */
export function refusedNotice(data: PageData): HTMLElement | null {
  const refused = refusedOf(data);
  if (refused.length === 0) return null;
  return h("section", { class: "panel refused", tabindex: "-1", "aria-label": "files that could not be read" },
    h("h2", {}, refused.length === 1 ? "A file could not be read" : "Files could not be read"),
    ...refused.map((one) => h("p", {}, one.text.startsWith(one.network) ? null : h("b", {}, one.network), h("code", {}, one.text))));
}

/** The message of the command line for each file. */
export function refusedPage(data: PageData): HTMLElement {
  const refused = refusedOf(data);
  return h("main", { class: "state panel" }, h("h1", {}, refused.map((one) => one.network).join(", ")),
    h("p", {}, refused.length === 1 ? "This file could not be read." : "These files could not be read."),
    ...refused.map((one) => h("pre", {}, one.text)));
}
