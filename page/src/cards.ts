// The cards: total figures, each with its bars over the order of execution.

import { h, s } from "./dom";
import type { Item } from "./model";
import { parts } from "./numbers";
import type { Pane, Store } from "./store";

interface CardData {
  label: string;
  figure: string;
  unit: string;
  note: string;
  title: string;
  /** Column of the bars; null for the share of the top modules. */
  column: string | null;
}

const BINS = 160;
const HEIGHT = 22;

export function cards(host: HTMLElement, store: Store): Pane {
  let sparks: Spark[] = [];
  const draw = (): void => {
    sparks = [];
    const all = cardsOf(store);
    host.style.setProperty("--cards", String(all.length));
    host.replaceChildren(...all.map((card) => {
      const spark = card.column === null ? null : new Spark(store, card.column);
      if (spark !== null) sparks.push(spark);
      return h("div", { class: "panel card" },
        h("div", { class: "l" }, card.label),
        h("div", { class: "v" }, card.figure, h("small", {}, card.unit)),
        h("div", { class: "x", title: card.title }, card.note === "" ? "\u00a0" : card.note),
        spark?.element ?? modules(store));
    }));
    mark();
  };
  const mark = (): void => {
    const item = store.item(store.state.hover?.id ?? store.state.selection);
    for (const spark of sparks) spark.mark(item);
  };
  draw();
  const ends = [store.on(["report", "convention", "comparison"], draw), store.on(["selection", "hover"], mark)];
  return { destroy: () => ends.forEach((end) => end()) };
}

function cardsOf(store: Store): CardData[] {
  const { report } = store;
  if (report.cards !== undefined && store.state.convention === store.ownConvention()) {
    return report.cards.map((card) => ({ ...card, note: card.exact || card.note, title: card.note }));
  }
  const flops = store.inConvention("macs") === "macs" ? "flops" : "convention_ops";
  const peak = report.memory.layer;
  const top = [...store.model.root.children].sort((a, b) => (store.value(b, "weights") ?? 0) - (store.value(a, "weights") ?? 0))[0];
  const dtype = String(report.stamp["dtype"] ?? "");
  return [
    count(store, "params"), count(store, "macs"), count(store, flops), count(store, "activations"),
    bytes(store, "alive", "peak memory", peak === null ? "" : `at ${peak}`, "alive"),
    bytes(store, "weights", "weights", [dtype, top === undefined ? "" : `most in ${top.full}`].filter(Boolean).join(" · "), null),
    ...time(store),
  ].filter((card) => card.figure !== "");
}

function count(store: Store, column: string): CardData {
  const { root } = store.model;
  const value = store.value(root, column);
  const text = store.text(root, column);
  const [figure, unit] = value === null ? [text, ""] : parts(value);
  const sign = value === null ? "" : (/^[≥~≤]\s?/.exec(text)?.[0] ?? "");
  return { label: store.title(column), figure: sign + figure, unit, note: text, title: text, column };
}

function bytes(store: Store, column: string, label: string, note: string, bars: string | null): CardData {
  const text = store.text(store.model.root, column);
  const [figure = "", unit = ""] = text.split(" ");
  return { label, figure, unit, note, title: note, column: bars };
}

// The time of the run, or the predicted one.
function time(store: Store): CardData[] {
  const run = store.data.runs?.[store.state.report];
  if (!run) return [];
  const [figure = "", unit = ""] = run.total.split(" ");
  return [{ label: run.kind === "run" ? "time" : "predicted time", figure, unit, note: run.title.replace(/^predicted for /, ""), title: run.title, column: "time" }];
}

/** Bars of one column over the order of execution; the chosen layers in the accent. */
class Spark {
  readonly element: SVGSVGElement;
  private readonly chosen = s("path", { class: "spark on" });
  private readonly heights: number[];
  private readonly perBin: number;

  constructor(store: Store, column: string) {
    const layers = store.report.layers.length;
    const values = (store.cells(column)?.values ?? []).slice(0, layers);
    this.perBin = Math.max(1, Math.ceil(layers / BINS));
    const bins = Array.from({ length: Math.ceil(layers / this.perBin) }, (_, bin) =>
      Math.max(0, ...values.slice(bin * this.perBin, (bin + 1) * this.perBin).map((value) => value ?? 0)));
    const most = Math.max(...bins) || 1;
    this.heights = bins.map((value) => (value === 0 ? 0 : Math.max(0.8, (value / most) * HEIGHT)));
    this.element = s("svg", { viewBox: `0 0 ${bins.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      s("path", { class: "spark", d: this.path(() => true) }), this.chosen);
  }

  mark(item: Item | undefined): void {
    const bins = new Set(item?.layers.map((layer) => Math.floor(layer / this.perBin)));
    this.chosen.setAttribute("d", bins.size === 0 ? "" : this.path((bin) => bins.has(bin)));
  }

  private path(drawn: (bin: number) => boolean): string {
    const gap = this.heights.length > 90 ? 0.12 : 0.2;
    return this.heights
      .map((height, bin) => (height > 0 && drawn(bin) ? `M${bin},${HEIGHT}v${-height.toFixed(2)}h${1 - gap}v${height.toFixed(2)}z` : ""))
      .join("");
  }
}

// The weights by top module: one bar.
function modules(store: Store): SVGSVGElement {
  const picture = s("svg", { viewBox: `0 0 100 ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  let start = 0;
  for (const item of store.model.root.children) {
    const share = (store.share(item, "weights") ?? 0) * 100;
    if (share < 0.2) {
      start += share;
      continue;
    }
    const width = Math.max(0.3, share - 0.6);
    const tone = share >= 30 ? "" : " soft";
    picture.append(s("rect", { class: `spark${tone}`, x: start.toFixed(2), y: 7, width: width.toFixed(2), height: 8 }, s("title", {}, item.full)));
    start += share;
  }
  return picture;
}
