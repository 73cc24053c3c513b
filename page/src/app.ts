// The grid of the page: header, graph at the left, everything else at the right.

import { cards } from "./cards";
import { chart } from "./charts";
import { compare } from "./compare";
import { h } from "./dom";
import { receptiveField } from "./field";
import { findings } from "./findings";
import { footer } from "./footer";
import { graphPane } from "./graph";
import { header } from "./header";
import { hoverCard } from "./hovercard";
import { pageKeys } from "./keys";
import { cacheByLayer, whatFits } from "./language";
import { memory } from "./memory";
import { refusedNotice } from "./states";
import type { Pane, Store } from "./store";
import { Table } from "./table";
import { tools } from "./table/tools";

const NO_ROOFLINE =
  "No run and no machine. The command layerscope report NET --on MACHINE draws the roofs of a machine; " +
  "layerscope measure NET -o run.json keeps a run, and layerscope report run.json shows it.";

/** Builds the page of a report in `root`. */
export function app(root: HTMLElement, store: Store): Pane {
  const top = h("header", { class: "top-bar" });
  const graph = h("section", { class: "panel gpane", "aria-label": "graph" });
  const summary = h("section", { class: "cards", "aria-label": "summary" });
  const table = h("section", { class: "panel table", "aria-label": "table" });
  const differences = h("section", { class: "panel table", "aria-label": "differences" });
  const memories = h("section", { class: "panel ch", "aria-label": "memory" });
  const caches = h("section", { class: "panel ch", "aria-label": "cache by layer" });
  const fits = h("section", { class: "panel ch", "aria-label": "what fits" });
  const found = h("section", { class: "panel ch", "aria-label": "findings" });
  const field = h("section", { class: "panel ch", "aria-label": "receptive field" });
  const roofline = h("section", { class: "panel ch", "aria-label": "roofline" });
  const costs = h("section", { class: "panel ch", "aria-label": "costs" });
  const params = h("section", { class: "panel ch", "aria-label": "parameters" });
  const times = h("section", { class: "panel ch", "aria-label": "time" });
  const foot = h("footer", { class: "foot" });
  const card = h("div", { class: "hc", role: "tooltip" });
  const main = h("div", { class: "main" }, summary, differences, table, caches, fits, h("div", { class: "row" }, memories, found), h("div", { class: "row" }, roofline, field), h("div", { class: "row even" }, costs, params), times, foot);
  const refused = refusedNotice(store.data);
  root.replaceChildren(top, h("main", { class: "page" }, ...(refused === null ? [] : [refused]), graph, main), card);
  let drawn: Pane | null = null;
  const panes: Pane[] = [header(top, store, () => drawn), cards(summary, store), compare(differences, store), tools(table, store), new Table(table, store)];
  drawn = graphPane(graph, store);
  const charts = [
    chart(roofline, store, "roofline", { heading: "Roofline", absent: NO_ROOFLINE }),
    chart(costs, store, "costs", { heading: "Costs" }),
    chart(params, store, "params", { heading: "Parameters by layer" }),
    chart(times, store, "time", { heading: "Time" }),
  ];
  panes.push(drawn, cacheByLayer(caches, store), whatFits(fits, store), memory(memories, store), findings(found, store), receptiveField(field, store), ...charts, footer(foot, store), hoverCard(card, store));
  const end = pageKeys(store);
  return {
    destroy: () => {
      end();
      panes.forEach((pane) => pane.destroy());
    },
  };
}
