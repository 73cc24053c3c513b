// A page of many networks: a table to sort and search, a chart beside it, a report behind each row.

import "./networks.css";
import { h } from "../dom";
import { logo, themeButtons } from "../header";
import { firstTheme, followTheme } from "../theme";
import { chosenNetwork } from "./chosen";
import type { NetworksData } from "./data";
import { followNetwork } from "./opened";
import { scatter } from "./scatter";
import { Networks } from "./state";
import { NetworkTable } from "./table";

export function networksPage(root: HTMLElement, data: NetworksData): void {
  const store = new Networks(data, firstTheme());
  followTheme(store);
  const chart = h("section", { class: "panel ch", "aria-label": "chart" });
  const chosen = h("section", { class: "panel chosen-net", "aria-label": "chosen network", "aria-live": "polite" });
  const table = h("section", { class: "panel table", "aria-label": "networks" });
  const top = h("header", { class: "top-bar" },
    h("div", { class: "brand" }, logo(), h("span", {}, "layerscope")),
    h("div", { class: "title" }, h("h1", { title: data.title }, data.title)),
    h("div", { class: "facts" }, ...data.notes.map((note) => h("span", {}, note))),
    h("div", { class: "grow" }), themeButtons(store).element);
  const list = h("div", {}, top, h("main", { class: "nets" }, h("div", { class: "nets-side" }, chart, chosen), table));
  const report = h("div", { hidden: true });
  root.replaceChildren(list, report);
  scatter(chart, store);
  chosenNetwork(chosen, store);
  new NetworkTable(table, store);
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (list.hidden || event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select")) return;
    if (event.key === "/") {
      document.getElementById("search-networks")?.focus();
      event.preventDefault();
    }
  });
  followNetwork(store, list, report);
}
