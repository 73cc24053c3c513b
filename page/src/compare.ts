// Two reports side by side: a row for each pair of layers, signs before names, ratios in cells.

import type { Comparison, Match, Report } from "./data";
import { isReport } from "./data";
import { h, times } from "./dom";
import { exactText } from "./numbers";
import type { Pane, Store } from "./store";
import { longest, textWidth } from "./table/columns";
import { RowWindow } from "./table/window";

const COLUMNS = ["params", "macs", "memory"];
const NAME = 150;
const PADDING = 14;
const WORDS: Record<string, string> = { "+": "only in the second", "-": "only in the first", "~": "differs", "=": "equal" };
const CLASSES: Record<string, string> = { "+": "plus", "-": "minus", "~": "tilde", "=": "same" };

class PairRow {
  readonly element = h("div", { class: "tr", role: "row" });
  index = -1;
  item: Match | null = null;
}

export function compare(host: HTMLElement, store: Store): Pane {
  let rows: RowWindow<Match, PairRow> | null = null;
  let all = false;
  const draw = (): void => {
    const comparison = store.comparison;
    rows?.destroy();
    rows = null;
    host.hidden = comparison === null;
    if (comparison === null) {
      host.replaceChildren();
      return;
    }
    const differing = comparison.matches.filter((match) => match.sign !== "=");
    const matches = all || differing.length === 0 ? comparison.matches : differing;
    const scroll = h("div", { class: "scroll pairs", role: "table", tabindex: "0", "aria-label": comparison.text, "aria-rowcount": String(matches.length + 1) });
    const body = h("div", { class: "tbody", role: "rowgroup" });
    scroll.append(heads(store), body);
    const paint = (force = false): void => rows?.draw(matches, (row, match) => bind(store, comparison, row, match), force);
    rows = new RowWindow(scroll, body, () => new PairRow(), () => paint());
    scroll.style.setProperty("--row", `${rows.height}px`);
    const widths = columnWidths(store, comparison, matches);
    scroll.style.setProperty("--columns", [`minmax(${NAME}px, 1fr)`, ...widths.map((width) => `${width}px`)].join(" "));
    scroll.style.setProperty("--least", `${widths.reduce((sum, width) => sum + width, NAME)}px`);
    body.addEventListener("click", (event) => choose(store, comparison, rows, event.target as Element));
    host.replaceChildren(bar(store, comparison, all, (next) => { all = next; draw(); }), totals(comparison, store), scroll);
    paint(true);
  };
  draw();
  const observer = new ResizeObserver(() => {
    if (!host.hidden && rows !== null) host.querySelector(".scroll")?.dispatchEvent(new Event("scroll"));
  });
  observer.observe(host);
  const ends = [store.on(["comparison", "report"], draw), () => observer.disconnect(), () => rows?.destroy()];
  return { destroy: () => ends.forEach((end) => end()) };
}

function names(store: Store, comparison: Comparison): [string, string] {
  const name = (index: number): string => store.data.reports[index]?.network ?? "?";
  return [name(comparison.first), name(comparison.second)];
}

function bar(store: Store, comparison: Comparison, all: boolean, turn: (all: boolean) => void): HTMLElement {
  const button = (text: string, pressed: boolean, run: () => void): HTMLElement => {
    const made = h("button", { type: "button", "aria-pressed": String(pressed) }, text);
    made.addEventListener("click", run);
    return made;
  };
  const [first, second] = names(store, comparison);
  const side = (index: number) => (): void => store.set({ report: index });
  return h("div", { class: "tools" }, h("h2", {}, "Differences"), h("span", { class: "muted count wraps" }, comparison.text), h("div", { class: "grow" }),
    h("div", { class: "seg", role: "group", "aria-label": "rows" }, button("Differing", !all, () => turn(false)), button("All", all, () => turn(true))),
    h("div", { class: "seg", role: "group", "aria-label": "report in graph and table" },
      button(first, store.state.report === comparison.first, side(comparison.first)),
      button(second, store.state.report === comparison.second, side(comparison.second))));
}

function totals(comparison: Comparison, store: Store): HTMLElement {
  const [first, second] = names(store, comparison);
  const line = (name: string, texts: string[], kind: (text: string) => string): HTMLElement =>
    h("tr", {}, h("th", { scope: "row" }, name), ...texts.map((text) => h("td", { class: kind(text) }, text)));
  const { totals: all } = comparison;
  return h("div", { class: "sums", tabindex: "0", role: "region", "aria-label": "totals" }, h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), ...all.map((total) => h("th", { scope: "col" }, total.title)))),
    h("tbody", {},
      line(first, all.map((total) => total.first), () => ""),
      line(second, all.map((total) => total.second), () => ""),
      line("ratio", all.map((total) => total.ratio), (text) => (text === "×1.00" || text === "" ? "muted" : "ratio")))));
}

type Sides = [Report | undefined, number | null][];

function sidesOf(store: Store, comparison: Comparison, match: Match): Sides {
  const [first, second] = [store.data.reports[comparison.first], store.data.reports[comparison.second]];
  return [[isReport(first) ? first : undefined, match.first], [isReport(second) ? second : undefined, match.second]];
}

function titles(store: Store): string[] {
  return ["type", "output", ...COLUMNS.flatMap((column) => [store.title(column), "ratio"])];
}

// Texts beside the name: type, shape, figures and their ratios.
function texts(pairs: Sides, match: Match): string[] {
  return [both(pairs, "type"), times(both(pairs, "output")), ...COLUMNS.flatMap((column) => [both(pairs, column), match.ratios?.[column] ?? ""])];
}

// As wide as the widest text, so that no figure runs into the next.
function columnWidths(store: Store, comparison: Comparison, matches: Match[]): number[] {
  const rows = matches.map((match) => texts(sidesOf(store, comparison, match), match));
  return titles(store).map((title, at) => {
    const wide = longest(rows.map((row) => row[at] ?? "")).map((text) => textWidth(text, title === "ratio" ? 600 : 400));
    return Math.ceil(Math.max(textWidth(title, 500), ...wide) + PADDING);
  });
}

function heads(store: Store): HTMLElement {
  return h("div", { class: "thead", role: "rowgroup" }, h("div", { class: "tr", role: "row" },
    ...["layer", ...titles(store)].map((title, at) => h("div", { class: `th ${at === 0 ? "name" : at > 2 ? "n" : "text"}`, role: "columnheader" }, title))));
}

function bind(store: Store, comparison: Comparison, row: PairRow, match: Match): void {
  const pairs = sidesOf(store, comparison, match);
  const [report, index] = pairs.find(([, layer]) => layer !== null) ?? [undefined, null];
  const layer = index === null ? undefined : report?.layers[index];
  const sign = h("span", { class: `sign ${CLASSES[match.sign]}`, title: WORDS[match.sign] ?? "" }, match.sign === "-" ? "−" : match.sign === "=" ? "" : match.sign, h("span", { class: "sr" }, WORDS[match.sign] ?? ""));
  const label = h("span", { class: "nm", title: [layer?.name, ...(match.changes ?? [])].join("\n") }, layer?.name ?? "");
  const renamed = match.first !== null && match.second !== null ? pairs[1]?.[0]?.layers[match.second]?.name : undefined;
  const cells: HTMLElement[] = [
    h("div", { class: "td name", role: "cell" }, sign, label, renamed !== undefined && renamed !== layer?.name && h("span", { class: "muted" }, `→ ${renamed}`)),
    ...texts(pairs, match).map((text, at) => h("div", { class: at < 2 ? "td text" : at % 2 === 1 ? "td n ratio" : "td n", role: "cell" }, text)),
  ];
  row.element.replaceChildren(...cells);
  row.element.className = `tr pair ${CLASSES[match.sign]}`;
}

function text(report: Report | undefined, layer: number | null, column: string): string {
  if (report === undefined || layer === null) return "";
  const cells = report.cells[column];
  return cells?.texts?.[layer] ?? exactText(cells?.values?.[layer] ?? null);
}

// One text where both have the same, else the first and the second.
function both(pairs: Sides, column: string): string {
  const found = pairs.filter(([, layer]) => layer !== null).map(([report, layer]) => text(report, layer, column));
  return [...new Set(found)].join(" → ");
}

function choose(store: Store, comparison: Comparison, rows: RowWindow<Match, PairRow> | null, target: Element): void {
  const element = target.closest(".tr");
  const match = rows?.pool.find((row) => row.element === element)?.item;
  if (!match) return;
  const here = store.state.report === comparison.first ? match.first : match.second;
  if (here === null) store.set({ report: store.state.report === comparison.first ? comparison.second : comparison.first });
  const layer = store.state.report === comparison.first ? match.first : match.second;
  const id = layer === null ? undefined : store.model.layerIds[layer];
  if (id) store.reveal(id);
}
