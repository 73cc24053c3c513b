// Charts that Python specifies in Vega-Lite, drawn by Vega without evaluating any text: expressions
// run in vega-interpreter. A chart is drawn when it comes into view.

import { parse as parseVega, View, Warn, type Spec } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { h } from "./dom";
import type { Pane, Store } from "./store";
import { tokens } from "./theme";

type Chart = Record<string, unknown>;

const MARGIN = 28;

/** One panel with the chart of that name, hidden where the report has none. */
export function chart(host: HTMLElement, store: Store, name: string): Pane {
  const heading = h("h2", {});
  const notes = h("span", { class: "s" });
  const body = h("div", { class: "vega" });
  host.replaceChildren(h("div", { class: "top" }, heading, notes), body);
  let view: View | null = null;
  let width = 0;
  let seen = false;
  const draw = (): void => {
    const spec = store.data.charts?.[store.state.report]?.[name] as Chart | undefined;
    host.hidden = spec === undefined;
    if (spec === undefined) return;
    const meta = (spec["usermeta"] ?? {}) as { title?: string; notes?: string[] };
    heading.textContent = meta.title ?? name;
    notes.textContent = (meta.notes ?? []).join(" ");
    if (!seen) return;
    width = body.clientWidth;
    view?.finalize();
    view = render(body, themed(fitted(spec, width - MARGIN), store.state.theme));
    mark();
  };
  const mark = (): void => {
    const item = store.item(store.state.hover?.id ?? store.state.selection);
    try {
      view?.signal("chosen", item?.layers ?? []).runAsync();
    } catch {
      // A chart without that signal has no layers to choose.
    }
  };
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting) || seen) return;
    seen = true;
    draw();
  }, { rootMargin: "300px" });
  watcher.observe(host);
  const observer = new ResizeObserver(() => {
    if (seen && Math.abs(body.clientWidth - width) > 2) draw();
  });
  observer.observe(body);
  draw();
  const ends = [
    store.on(["report", "theme"], draw), store.on(["selection", "hover"], mark),
    () => observer.disconnect(), () => watcher.disconnect(), () => view?.finalize(),
  ];
  body.addEventListener("click", () => choose(store, view));
  return { destroy: () => ends.forEach((end) => end()) };
}

function render(body: HTMLElement, spec: Chart): View {
  const { spec: vega } = compile(spec as unknown as TopLevelSpec, { logger: undefined as never });
  const runtime = parseVega(vega as Spec, undefined, { ast: true } as never);
  body.replaceChildren();
  const view = new View(runtime, { expr: expressionInterpreter, renderer: "svg", container: body, hover: true, logLevel: Warn, loader: CLOSED as never });
  void view.runAsync();
  return view;
}

// Charts have their data inside; nothing is ever fetched.
const CLOSED = {
  load: () => Promise.reject(new Error("charts load nothing")),
  sanitize: () => Promise.reject(new Error("charts have no addresses")),
  http: () => Promise.reject(new Error("charts load nothing")),
  file: () => Promise.reject(new Error("charts load nothing")),
};

function choose(store: Store, view: View | null): void {
  void view;
  void store;
}

/** The chart at another width, without the title, which the panel has. */
function fitted(spec: Chart, width: number): Chart {
  const { title: _title, ...rest } = spec;
  return { ...rest, ...(typeof rest["width"] === "number" ? { width } : {}), autosize: { type: "fit-x", contains: "padding" }, padding: 8 };
}

// Specifications have the light colours; in the dark theme each becomes the dark one of its token.
function themed(spec: Chart, theme: string): Chart {
  if (theme === "light") return spec;
  const [light, dark] = [tokens("light"), tokens("dark")];
  const swap = new Map([...light].map(([name, colour]) => [colour, dark.get(name) ?? colour]));
  const visit = (value: unknown): unknown => {
    if (typeof value === "string") return swap.get(value.toLowerCase()) ?? value;
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, visit(one)]));
    }
    return value;
  };
  return { ...spec, config: visit(spec["config"]) };
}
