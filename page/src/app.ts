// The grid of the page: header, graph at the left, everything else at the right.

import { cards } from "./cards";
import { h } from "./dom";
import { receptiveField } from "./field";
import { findings } from "./findings";
import { footer } from "./footer";
import { graphPane } from "./graph";
import { header } from "./header";
import { hoverCard } from "./hovercard";
import { pageKeys } from "./keys";
import { memory } from "./memory";
import type { Pane, Store } from "./store";
import { Table } from "./table";
import { tools } from "./table/tools";

/** Builds the page of a report in `root`. */
export function app(root: HTMLElement, store: Store): Pane {
  const top = h("header", { class: "top-bar" });
  const graph = h("section", { class: "panel gpane", "aria-label": "graph" });
  const summary = h("section", { class: "cards", "aria-label": "summary" });
  const table = h("section", { class: "panel table", "aria-label": "table" });
  const memories = h("section", { class: "panel ch", "aria-label": "memory" });
  const found = h("section", { class: "panel ch", "aria-label": "findings" });
  const field = h("section", { class: "panel ch", "aria-label": "receptive field" });
  const foot = h("footer", { class: "foot" });
  const card = h("div", { class: "hc", role: "tooltip" });
  const main = h("div", { class: "main" }, summary, table, h("div", { class: "row" }, memories, found), h("div", { class: "row" }, field), foot);
  root.replaceChildren(top, h("main", { class: "page" }, graph, main), card);
  let drawn: Pane | null = null;
  const panes: Pane[] = [header(top, store, () => drawn), cards(summary, store), tools(table, store), new Table(table, store)];
  drawn = graphPane(graph, store);
  panes.push(drawn, memory(memories, store), findings(found, store), receptiveField(field, store), footer(foot, store), hoverCard(card, store));
  const end = pageKeys(store);
  return {
    destroy: () => {
      end();
      panes.forEach((pane) => pane.destroy());
    },
  };
}
