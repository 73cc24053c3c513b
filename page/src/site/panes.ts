// The panes of a network on the site: cards, graph beside the table, charts below.

import { cards } from "../cards";
import { chart } from "../charts";
import { h } from "../dom";
import { receptiveField } from "../field";
import { findings } from "../findings";
import { footer } from "../footer";
import { graphPane } from "../graph";
import { hoverCard } from "../hovercard";
import { pageKeys } from "../keys";
import { memory } from "../memory";
import type { Pane, Store } from "../store";
import { Table } from "../table";
import { tools } from "../table/tools";

/** Draws a network into `host`; the pane has the picture of its graph. */
export function panes(host: HTMLElement, store: Store): Pane {
  const section = (kind: string, label: string): HTMLElement => h("section", { class: `panel ${kind}`, "aria-label": label });
  const summary = h("section", { class: "cards", "aria-label": "summary" });
  const graph = section("gpane", "graph");
  const table = section("table", "table");
  const [memories, found, field, costs] = [section("ch", "memory"), section("ch", "findings"), section("ch", "receptive field"), section("ch", "costs")];
  const foot = h("footer", { class: "foot" });
  const card = h("div", { class: "hc", role: "tooltip" });
  host.replaceChildren(summary, h("div", { class: "split" }, graph, h("div", { class: "main" }, table, found)), h("div", { class: "row" }, memories, field), costs, foot, card);
  const drawn = graphPane(graph, store);
  const all: Pane[] = [
    cards(summary, store), tools(table, store), new Table(table, store), drawn, memory(memories, store), findings(found, store),
    receptiveField(field, store), chart(costs, store, "costs", { heading: "Costs" }), footer(foot, store), hoverCard(card, store),
  ];
  const end = pageKeys(store);
  return {
    ...(drawn.svg ? { svg: () => drawn.svg?.() ?? Promise.resolve("") } : {}),
    ...(drawn.png ? { png: () => drawn.png?.() ?? Promise.resolve(new Blob()) } : {}),
    destroy: () => {
      end();
      all.forEach((pane) => pane.destroy());
    },
  };
}
