// The header: name, facts, other reports, convention, saving, theme.

import { conventionMenu } from "./conventions";
import { isReport } from "./data";
import { h, icon, s, times } from "./dom";
import { saveBlob, saveText } from "./files";
import { menu, type Entry } from "./menu";
import type { Pane, Store } from "./store";
import { chooseTheme, type Themed } from "./theme";

const SUN = "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3.05 3.05l1.1 1.1M11.85 11.85l1.1 1.1M3.05 12.95l1.1-1.1M11.85 4.15l1.1-1.1";
const MOON = "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z";

const REDRAWN = 600;

export function header(host: HTMLElement, store: Store, graph: () => Pane | null): Pane {
  const title = h("div", { class: "title" });
  const facts = h("div", { class: "facts" });
  const save = saveMenu(store, graph);
  const themes = themeButtons(store);
  host.replaceChildren(
    h("div", { class: "brand" }, logo(), h("span", {}, "layerscope")),
    title, facts, h("div", { class: "grow" }),
    conventionMenu(store), save, themes.element);
  const update = (): void => {
    const { report } = store;
    document.title = `${report.network} · layerscope`;
    title.replaceChildren(...titleNodes(store));
    facts.replaceChildren(...factsOf(store).map(([key, value]) => h("span", {}, key !== "" && h("b", {}, key), times(value))));
  };
  update();
  const ends = [store.on(["report", "comparison"], update), themes.destroy];
  return { destroy: () => ends.forEach((end) => end()) };
}

/** The two buttons that choose a theme. */
export function themeButtons(store: Themed): Pane & { element: HTMLElement } {
  const dark = themeButton(store, "dark", MOON);
  const light = themeButton(store, "light", SUN);
  const mark = (): void => {
    light.setAttribute("aria-pressed", String(store.state.theme === "light"));
    dark.setAttribute("aria-pressed", String(store.state.theme === "dark"));
  };
  mark();
  const element = h("div", { class: "seg tall icons", role: "group", "aria-label": "theme" }, light, dark);
  return { element, destroy: store.on(["theme"], mark) };
}

function themeButton(store: Themed, theme: "light" | "dark", path: string): HTMLButtonElement {
  const button = h("button", { type: "button", title: `${theme} (t)`, "aria-label": theme }, icon(path, 15));
  button.addEventListener("click", () => chooseTheme(store, theme));
  return button;
}

// With several reports the name is a menu of them and of their comparisons.
function titleNodes(store: Store): Node[] {
  const { data, report } = store;
  const heading = h("h1", { title: report.network }, report.network);
  if (data.reports.filter(isReport).length < 2) return [heading];
  const compared = store.comparison;
  const other = compared === null ? undefined : data.reports[compared.second];
  const entries = (): Entry[] => [
    ...data.reports.map((one, index): Entry => ({
      label: isReport(one) ? one.network : `${one.network} (refused)`,
      role: "menuitemradio",
      checked: store.state.report === index && store.state.comparison === null,
      run: () => {
        if (isReport(one)) store.set({ report: index, comparison: null });
        else window.scrollTo({ top: 0 }); // the notice under the header has its message
      },
    })),
    ...(data.comparisons ?? []).map((pair, index): Entry => ({
      label: `compare ${data.reports[pair.first]?.network} with ${data.reports[pair.second]?.network}`,
      role: "menuitemradio",
      checked: store.state.comparison === index,
      run: () => store.set({ report: pair.first, comparison: index }),
    })),
  ];
  const name = other === undefined ? report.network : `${report.network} and ${other.network}`;
  heading.classList.add("sr");
  const made = menu([h("strong", { class: "chosen" }, name)], "reports in this file", entries, { kind: "left" });
  return [heading, made.element];
}

function factsOf(store: Store): [string, string][] {
  const { report } = store;
  if (report.facts !== undefined) return report.facts;
  const shape = (input: { shape: (number | string)[] | null }): string => input.shape?.join("x") ?? "?";
  const { stamp } = report;
  return [
    ...report.inputs.slice(0, 2).map((input): [string, string] => [input.name, shape(input)]),
    ...(stamp["batch"] === undefined || stamp["batch"] === null ? [] : [["batch", String(stamp["batch"])] as [string, string]]),
    ["", String(stamp["dtype"] ?? "")],
    ["", `${report.layers.length} layers`],
  ].filter(([, value]) => value !== "") as [string, string][];
}

function saveMenu(store: Store, graph: () => Pane | null): HTMLElement {
  const name = (): string => store.report.network;
  const entries = (): Entry[] => {
    const pane = graph();
    const out: Entry[] = [];
    if (pane?.svg) out.push({ label: "Graph as SVG", run: () => void pane.svg?.().then((text) => saveText(text, `${name()}.svg`, "image/svg+xml")) });
    if (pane?.png) out.push({ label: "Graph as PNG", run: () => void pane.png?.().then((blob) => saveBlob(blob, `${name()}.png`)) });
    out.push({ label: "Figures as JSON", run: () => saveText(JSON.stringify(store.report), `${name()}.json`, "application/json") });
    out.push({ label: "Print or PDF", run: () => printLight(store) });
    return out;
  };
  const made = menu([icon("M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11"), h("span", {}, "Save as")], "save as", entries);
  made.element.classList.add("opt", "hide-s");
  return made.element;
}

// Charts have the colours of the theme in them, and take a moment to be drawn in others.
function printLight(store: Store): void {
  const { theme } = store.state;
  if (theme === "light") {
    print();
    return;
  }
  store.set({ theme: "light" });
  addEventListener("afterprint", () => store.set({ theme }), { once: true });
  setTimeout(() => print(), REDRAWN);
}

export function logo(): SVGSVGElement {
  const bar = (y: number, heat: number): SVGRectElement => s("rect", { x: 2, y, width: 16, height: 3, rx: 1, fill: `var(--h${heat})` });
  return s("svg", { width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" }, bar(3, 3), bar(8.5, 5), bar(14, 7),
    s("circle", { cx: 10, cy: 10, r: 5.2, fill: "none", stroke: "var(--accent)", "stroke-width": 1.8 }));
}
