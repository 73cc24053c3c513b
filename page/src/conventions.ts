// The convention switch: what each convention calls its figure, its total and the difference.

import { h } from "./dom";
import { menu, type Entry } from "./menu";
import { exactText } from "./numbers";
import { EXACT, type Store } from "./store";

export function conventionMenu(store: Store): HTMLElement {
  const name = h("span", {}, store.state.convention);
  const entries = (): Entry[] => Object.keys(store.report.conventions ?? {}).map((convention): Entry => ({
    label: line(store, convention),
    role: "menuitemradio",
    checked: store.state.convention === convention,
    run: () => store.set({ convention, sort: null }),
  }));
  const above = (): Node[] => {
    const convention = store.report.conventions?.[store.state.convention];
    const notes = convention?.notes ?? [];
    return [
      h("p", {}, convention?.says ?? "", ...(notes.length > 0 ? [" ", notes.join(" ")] : [])),
      h("div", { class: "line heads" }, ...["convention", "calls it", "total", ""].map((text) => h("span", {}, text))),
    ];
  };
  const made = menu([h("span", { class: "k hide-s" }, "convention"), name], "convention", entries, { kind: "conventions", above });
  const update = (): void => {
    name.textContent = store.state.convention;
    made.element.hidden = Object.keys(store.report.conventions ?? {}).length < 2;
  };
  update();
  store.on(["convention", "report"], update);
  return made.element;
}

function line(store: Store, name: string): HTMLElement {
  const convention = store.report.conventions[name];
  const title = convention?.title ?? "";
  return h("span", { class: "line" },
    h("span", {}, name),
    h("span", { class: "muted" }, title === "" ? "no operations" : title),
    h("span", { class: "n" }, title === "" ? "" : totalText(store, name)),
    h("span", { class: "n muted" }, convention?.difference ?? ""));
}

function totalText(store: Store, name: string): string {
  const { cells, conventions, tree } = store.report;
  const column = conventions[name]?.cells["convention_ops"] ?? cells["convention_ops"] ?? (name === EXACT ? cells["flops"] : undefined);
  return column?.texts?.[tree.row] ?? exactText(column?.values?.[tree.row] ?? null);
}
