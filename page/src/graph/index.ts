// The graph pane: boxes and edges of the network beside its table.

import { h } from "../dom";
import type { Pane, Store } from "../store";

export function graphPane(host: HTMLElement, store: Store): Pane {
  const bar = h("div", { class: "bar" }, h("h2", {}, "Graph"));
  const canvas = h("div", { class: "canvas", "data-report": store.report.network });
  host.replaceChildren(bar, canvas);
  return { destroy: () => host.replaceChildren() };
}
