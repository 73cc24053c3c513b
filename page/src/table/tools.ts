// The bar above the table: search, modules or flat list, columns, copies.

import { copyText, saveText } from "../files";
import { h } from "../dom";
import { menu, type Entry } from "../menu";
import type { Pane, Store } from "../store";
import { tableText, type TextForm } from "./texts";

export function tools(host: HTMLElement, store: Store): Pane {
  const input = h("input", { type: "search", id: "search", placeholder: "name, type or shape", "aria-label": "search layers by name, type or shape", autocomplete: "off", spellcheck: "false" });
  const count = h("span", { class: "muted count", role: "status" });
  const modules = h("button", { type: "button" }, "Modules");
  const flat = h("button", { type: "button" }, "Flat");
  const columns = columnMenu(store);
  const copy = copyMenu(store, (text) => (count.textContent = text));
  const bar = h("div", { class: "tools" },
    h("h2", {}, "Layers"),
    h("div", { class: "find" }, input, h("kbd", { "aria-hidden": "true" }, "/")),
    count, h("div", { class: "grow" }),
    h("div", { class: "seg hide-s opt", role: "group", "aria-label": "order of the table" }, modules, flat),
    columns, copy);
  host.append(bar);
  input.addEventListener("input", () => store.set({ query: input.value }));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      store.set({ query: "" });
      input.blur();
      event.stopPropagation();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      host.querySelector<HTMLElement>(".grid")?.focus();
      const first = store.matches === null ? undefined : store.model.items.find((item) => store.matches?.has(item.id));
      if (first !== undefined) store.set({ selection: first.id });
      event.preventDefault();
    }
  });
  modules.addEventListener("click", () => store.set({ flat: false, sort: null, query: "" }));
  flat.addEventListener("click", () => store.set({ flat: true }));
  const update = (): void => {
    const { query, sort } = store.state;
    if (input.value !== query) input.value = query;
    const isFlat = store.state.flat || sort !== null || query !== "";
    modules.setAttribute("aria-pressed", String(!isFlat));
    flat.setAttribute("aria-pressed", String(isFlat));
    count.textContent = countText(store);
  };
  update();
  const end = store.on(["query", "sort", "flat", "report"], update);
  return { destroy: end };
}

function countText(store: Store): string {
  if (store.matches === null) return "";
  const { size } = store.matches;
  return size === 0 ? "none found" : `${size} found`;
}

function columnMenu(store: Store): HTMLElement {
  const shown = (): readonly string[] =>
    store.state.columns ?? store.listed().filter((column) => column.shown).map((column) => column.name);
  const entries = (): Entry[] => [
    { label: "Those that fit", role: "menuitemradio", checked: store.state.columns === null, run: () => store.set({ columns: null }) },
    ...store.listed()
      .filter((column) => column.name !== "name" && store.cells(store.inConvention(column.name)) !== undefined)
      .map((column): Entry => ({
        label: h("span", { class: "choice" }, h("span", {}, title(store, column.name)), h("span", { class: "muted" }, column.says ?? "")),
        role: "menuitemcheckbox",
        checked: shown().includes(column.name),
        run: () => store.set({ columns: toggled(shown(), column.name) }),
      })),
  ];
  const made = menu(["Columns"], "columns", entries, { kind: "wide", stays: true });
  made.button.classList.add("sm");
  made.element.classList.add("hide-s");
  return made.element;
}

function title(store: Store, name: string): string {
  const cells = store.inConvention(name);
  return name.endsWith("%") ? `% of ${store.title(cells.slice(0, -1))}` : store.title(cells);
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}

const FORMS: [TextForm, string, string][] = [["csv", "csv", "text/csv"], ["md", "Markdown", "text/markdown"], ["latex", "LaTeX", "application/x-latex"]];

function copyMenu(store: Store, say: (text: string) => void): HTMLElement {
  const entries = (): Entry[] => FORMS.flatMap(([form, label, mime]): Entry[] => [
    { label: `Copy as ${label}`, run: () => void copyText(tableText(store, form)).then((ok) => say(ok ? `copied as ${label}` : "the browser refused")) },
    { label: `Download ${label}`, run: () => saveText(tableText(store, form), `${store.report.network}.${form === "latex" ? "tex" : form}`, mime) },
  ]);
  const made = menu(["Copy"], "copy or download the table", entries);
  made.button.classList.add("sm");
  return made.element;
}
