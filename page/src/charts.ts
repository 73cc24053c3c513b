// Panels with the charts that Python specifies; each is drawn when it comes into view.

import { h } from "./dom";
import type { Pane, Store } from "./store";
import { chartTitle, drawChart, type ChartSpec, type Drawn } from "./vega";

const NARROW = 560;
const NARROW_LABELS = 120;

interface Options {
  /** Said where the report has no such chart; without it the panel is hidden. */
  absent?: string;
  heading: string;
}

/** One panel with the chart of that name. */
export function chart(host: HTMLElement, store: Store, name: string, options: Options): Pane {
  const notes = h("span", { class: "s" });
  const body = h("div", { class: "vega" });
  host.replaceChildren(h("div", { class: "top" }, h("h2", {}, options.heading), notes), body);
  let drawn: Drawn | null = null;
  let width = 0;
  let seen = false;
  const draw = (): void => {
    const spec = specOf(store, name);
    drawn?.end();
    drawn = null;
    host.hidden = spec === undefined && options.absent === undefined;
    notes.textContent = "";
    if (spec === undefined) {
      body.replaceChildren(h("p", { class: "empty" }, options.absent ?? ""));
      return;
    }
    const said = chartTitle(spec);
    notes.textContent = said.notes.join(" ");
    body.setAttribute("role", "img");
    body.setAttribute("aria-label", said.title);
    if (!seen) return;
    width = body.clientWidth;
    drawn = drawChart(body, fitted(spec, store, width), {
      click: (layer) => store.reveal(store.model.layerIds[layer] ?? ""),
      hover: (layer) => store.set({ hover: layer === null ? null : { id: store.model.layerIds[layer] ?? "", x: null, y: null } }),
    });
    mark();
  };
  const mark = (): void => {
    const item = store.item(store.state.hover?.id ?? store.state.selection);
    drawn?.choose(item?.layers ?? []);
  };
  const see = (): void => {
    if (seen) return;
    seen = true;
    draw();
  };
  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) see();
  }, { rootMargin: "200px" });
  addEventListener("beforeprint", see);
  watcher.observe(host);
  const observer = new ResizeObserver(() => {
    if (seen && Math.abs(body.clientWidth - width) > 2) draw();
  });
  observer.observe(body);
  draw();
  const ends = [
    store.on(["report", "theme"], draw), store.on(["selection", "hover"], mark),
    () => observer.disconnect(), () => watcher.disconnect(), () => removeEventListener("beforeprint", see), () => drawn?.end(),
  ];
  return { destroy: () => ends.forEach((end) => end()) };
}

function specOf(store: Store, name: string): ChartSpec | undefined {
  return store.data.charts?.[store.state.report]?.[name] as ChartSpec | undefined;
}

// The panel has the title; the chart takes its width and the colours of the theme.
function fitted(spec: ChartSpec, store: Store, width: number): ChartSpec {
  const { title: _title, ...rest } = spec;
  const theme = (store.data.chart_themes?.[store.state.theme] ?? rest["config"] ?? {}) as Record<string, unknown>;
  const axis = (theme["axis"] ?? {}) as Record<string, unknown>;
  const config = { ...theme, axis: { ...axis, ...(width < NARROW ? { labelLimit: NARROW_LABELS } : {}) } };
  return { ...rest, config, width, padding: { left: 4, right: 4, top: 4, bottom: 4 }, autosize: { type: "fit-x", contains: "padding" } };
}
