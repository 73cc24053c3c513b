// The grid of the page: header, graph at the left, everything else at the right.

import { h } from "./dom";
import { graphPane } from "./graph";
import type { Pane, Store } from "./store";

/** Builds the page of a report in `root`. */
export function app(root: HTMLElement, store: Store): Pane {
  const graph = h("section", { class: "panel gpane", "aria-label": "graph" });
  const main = h("div", { class: "main" });
  root.replaceChildren(h("main", { class: "page" }, graph, main));
  const panes: Pane[] = [graphPane(graph, store)];
  return { destroy: () => panes.forEach((pane) => pane.destroy()) };
}
