// The head of the table: a press sorts by a column, a second turns the order, a third ends it.

import { h } from "../dom";
import type { Store } from "../store";
import type { Fit, Shown } from "./columns";

export function headRow(store: Store, fit: Fit, heat: string): HTMLElement {
  return h("div", { class: "tr", role: "row", "aria-rowindex": "1" }, ...fit.columns.map((column) => head(store, column, heat)));
}

function head(store: Store, column: Shown, heat: string): HTMLElement {
  const sort = store.state.sort;
  const sorted = sort?.column === column.cells ? sort : null;
  const figure = column.kind === "figure" || column.kind === "percent";
  const mark = h("span", { class: "mark", "aria-hidden": "true" }, sorted === null ? "▾" : sorted.descending ? "▾" : "▴");
  const dot = column.cells === heat ? h("span", { class: "heat-dot", title: "the graph is coloured by this column" }) : null;
  const says = store.column(column.cells)?.says;
  const button = h("button", { type: "button", title: says ?? false, tabindex: "-1" }, figure && mark, dot, h("span", {}, column.title), !figure && mark);
  button.addEventListener("click", () => store.set({ sort: next(store, column, figure) }));
  return h("div", {
    class: `th ${column.kind === "name" ? "name" : figure ? "n" : "text"}`,
    role: "columnheader",
    "aria-sort": sorted === null ? "none" : sorted.descending ? "descending" : "ascending",
  }, button);
}

function next(store: Store, column: Shown, descending: boolean): Store["state"]["sort"] {
  const sort = store.state.sort;
  if (sort?.column !== column.cells) return { column: column.cells, descending };
  return sort.descending === descending ? { column: column.cells, descending: !descending } : null;
}
