// A language model in use: what each layer caches, and the longest context by batch in a memory.

import type { CacheKind, FitRow, Use } from "./data";
import { h, s } from "./dom";
import type { Pane, Store } from "./store";

const HEIGHT = 132;
const LEFT = 12;
const TOP = 22;
const BOTTOM = 22;
const NUMBERS = 12;

type Cell = string;
interface Heading {
  title: string;
  text?: boolean;
}

const KINDS: Heading[] = [
  { title: "layers", text: true }, { title: "attention", text: true }, { title: "cells" }, { title: "keys" }, { title: "values" },
  { title: "state" }, { title: "each" }, { title: "all" },
];
const FITS: Heading[] = [
  { title: "batch" }, { title: "longest context" }, { title: "weights" }, { title: "cache" }, { title: "activations" },
  { title: "workspace" }, { title: "memory" },
];

/** Bars of the bytes that layers cache, and a table of the kinds of layers. */
export function cacheByLayer(host: HTMLElement, store: Store): Pane {
  let width = 0;
  const draw = (): void => {
    const use = store.report.use ?? null;
    host.hidden = use === null;
    if (use === null) return;
    width = Math.max(260, host.clientWidth - 2);
    host.replaceChildren(
      h("div", { class: "top" }, h("h2", {}, "Cache by layer"), h("span", { class: "s" }, use.cache)),
      bars(use, width), figures("cache by kind of layer", KINDS, use.kinds.map(kindCells)),
      ...[...use.notes, use.memory].map((text) => h("p", { class: "said" }, text)));
  };
  draw();
  const observer = new ResizeObserver(() => {
    if (!host.hidden && Math.abs(Math.max(260, host.clientWidth - 2) - width) > 1) draw();
  });
  observer.observe(host);
  const ends = [() => observer.disconnect(), store.on(["report"], draw)];
  return { destroy: () => ends.forEach((end) => end()) };
}

/** The longest context at each batch size, with its bytes by use. */
export function whatFits(host: HTMLElement, store: Store): Pane {
  const draw = (): void => {
    const use = store.report.use ?? null;
    host.hidden = use === null || use.fits === "";
    if (use === null || use.fits === "") return;
    const table = use.contexts.length === 0 ? null : figures("longest context by batch", FITS, use.contexts.map(fitCells));
    host.replaceChildren(h("div", { class: "top" }, h("h2", {}, "What fits"), h("span", { class: "s" }, use.fits)), ...(table === null ? [] : [table]));
  };
  draw();
  return { destroy: store.on(["report"], draw) };
}

function kindCells(kind: CacheKind): Cell[] {
  return [kind.layers, kind.kind, kind.cells, kind.keys, kind.values, kind.state, kind.each, kind.all];
}

function fitCells(row: FitRow): Cell[] {
  return [row.batch, row.tokens, ...row.uses, row.total];
}

// A table without the columns that are empty in all rows.
function figures(label: string, headings: Heading[], rows: Cell[][]): HTMLElement {
  const shown = headings.map((heading, at) => ({ ...heading, at })).filter(({ at }) => rows.some((row) => row[at] !== ""));
  const side = (text: boolean | undefined): string | null => (text ? "left" : null);
  const head = h("tr", {}, ...shown.map(({ title, text }) => h("th", { scope: "col", class: side(text) }, title)));
  const body = rows.map((row) => h("tr", {}, ...shown.map(({ at, text }) => h("td", { class: side(text) }, row[at] ?? ""))));
  return h("div", { class: "figs", tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
}

function bars(use: Use, width: number): SVGSVGElement {
  const count = use.layers.length;
  const most = Math.max(...use.layers.map((layer) => layer.bytes), 1);
  const step = (width - 2 * LEFT) / Math.max(count, 1);
  const base = HEIGHT - BOTTOM;
  const gap = Math.min(2, step * 0.2);
  const picture = s("svg", { class: "plot", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `bytes that each of ${count} layers caches, at most ${use.most}` },
    s("g", { class: "ax" }, s("line", { x1: LEFT, x2: width - LEFT, y1: TOP, y2: TOP }), s("text", { x: LEFT, y: TOP - 7 }, use.most),
      s("line", { x1: LEFT, x2: width - LEFT, y1: base, y2: base })));
  use.layers.forEach((layer, index) => {
    const height = layer.bytes === 0 ? 0 : Math.max(1.5, (layer.bytes / most) * (base - TOP));
    picture.append(s("rect", { class: "spark", x: (LEFT + index * step).toFixed(2), y: (base - height).toFixed(2), width: Math.max(0.5, step - gap).toFixed(2), height: height.toFixed(2) },
      s("title", {}, `layer ${index}: ${layer.kind}, ${layer.text}`)));
  });
  const every = Math.max(1, Math.ceil(count / NUMBERS));
  const numbers = s("g", { class: "ax" });
  for (let index = 0; index < count; index += every) {
    numbers.append(s("text", { x: (LEFT + (index + 0.5) * step).toFixed(1), y: base + 15, "text-anchor": "middle" }, String(index)));
  }
  picture.append(numbers);
  return picture;
}
