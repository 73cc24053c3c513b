// Networks as dots over two figures, both axes logarithmic, with the Pareto front of those that the
// search finds: no other is smaller in one figure and not larger in the other.

import { h, s } from "../dom";
import { bytesText, shortText } from "../numbers";
import type { Network, NetworkColumn } from "./data";
import { openNetwork } from "./opened";
import type { Networks } from "./state";

const HEIGHT = 380;
const MARGIN = { left: 62, right: 14, top: 10, bottom: 40 };
const RADIUS = 3.5;
const MOST = 5000; // dots

interface Dot {
  row: Network;
  x: number;
  y: number;
}

interface Scale {
  low: number;
  high: number;
  at(value: number): number;
}

export function scatter(host: HTMLElement, store: Networks): void {
  const notes = h("span", { class: "s" });
  const svg = s("svg", { class: "plot dots", height: HEIGHT, role: "img" });
  const [x, y] = (["x", "y"] as const).map((axis) => axisMenu(store, axis));
  host.replaceChildren(h("div", { class: "top" }, h("h2", {}, "Chart"), y ?? "", h("span", { class: "s" }, "over"), x ?? "", notes), svg);
  let marks = new Map<string, SVGCircleElement>();
  const draw = (): void => {
    const width = Math.max(host.clientWidth - 12, 240);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const all = dotsOf(store, store.data.rows);
    const found = dotsOf(store, store.rows);
    const without = store.data.rows.length - all.length;
    notes.textContent = [
      "Both axes are logarithmic; the line is the Pareto front.",
      without > 0 ? `${without} without both figures.` : "",
      all.length > MOST ? `The first ${MOST} are drawn.` : "",
    ].filter((text) => text !== "").join(" ");
    const columns = [store.state.x, store.state.y].map((name) => store.figures.find((column) => column.name === name));
    svg.setAttribute("aria-label", `${found.length} networks: ${columns[1]?.title ?? ""} over ${columns[0]?.title ?? ""}`);
    marks = new Map();
    if (all.length === 0) {
      svg.replaceChildren(s("text", { class: "note", x: 14, y: 30 }, "No row has both figures."));
      return;
    }
    const right = scaleOf(all.map((dot) => dot.x), MARGIN.left, width - MARGIN.right);
    const up = scaleOf(all.map((dot) => dot.y), HEIGHT - MARGIN.bottom, MARGIN.top);
    const shown = new Set(found.map((dot) => dot.row.key));
    const circles = all.slice(0, MOST).map((dot) => {
      const circle = s("circle", {
        class: shown.has(dot.row.key) ? "dot" : "dot off", cx: right.at(dot.x).toFixed(1), cy: up.at(dot.y).toFixed(1), r: RADIUS, "data-key": dot.row.key,
      }, s("title", {}, titleOf(store, dot.row)));
      marks.set(dot.row.key, circle);
      return circle;
    });
    svg.replaceChildren(
      ...axis(right, columns[0], (at, text) => [s("line", { x1: at, x2: at, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }), s("text", { x: at, y: HEIGHT - MARGIN.bottom + 16, "text-anchor": "middle" }, text)]),
      ...axis(up, columns[1], (at, text) => [s("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }), s("text", { x: MARGIN.left - 7, y: at + 4, "text-anchor": "end" }, text)]),
      s("text", { class: "note", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, columns[0]?.title ?? ""),
      s("path", { class: "front", d: front(found).map((dot, n) => `${n === 0 ? "M" : "H"}${right.at(dot.x).toFixed(1)}${n === 0 ? " " : "V"}${up.at(dot.y).toFixed(1)}`).join("") }),
      ...circles,
    );
    mark();
  };
  const mark = (): void => {
    svg.querySelectorAll(".dot.sel, .dot.hov").forEach((dot) => dot.classList.remove("sel", "hov"));
    for (const [key, kind] of [[store.state.hover, "hov"], [store.state.selection, "sel"]] as const) {
      const dot = marks.get(key ?? "");
      dot?.classList.add(kind);
      if (dot !== undefined) svg.append(dot);
    }
  };
  const keyOf = (event: Event): string | null => (event.target as Element).closest<SVGElement>(".dot")?.dataset["key"] ?? null;
  svg.addEventListener("click", (event) => store.set({ selection: keyOf(event) ?? store.state.selection }));
  svg.addEventListener("dblclick", (event) => {
    const key = keyOf(event);
    if (key !== null && store.byKey.get(key)?.has_report) openNetwork(key);
  });
  svg.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") store.set({ hover: keyOf(event) });
  });
  svg.addEventListener("pointerleave", () => store.set({ hover: null }));
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(host.clientWidth - width) < 2 || host.clientWidth === 0) return;
    width = host.clientWidth;
    draw();
  }).observe(host);
  store.on(["query", "x", "y"], draw);
  store.on(["selection", "hover"], mark);
}

function axisMenu(store: Networks, axis: "x" | "y"): HTMLElement {
  const select = h("select", { class: "ctl sm", "aria-label": axis === "x" ? "horizontal axis" : "vertical axis" },
    ...store.figures.map((column) => h("option", { value: column.name, selected: column.name === store.state[axis] }, column.title)));
  select.addEventListener("change", () => store.set({ [axis]: select.value }));
  return select;
}

function titleOf(store: Networks, row: Network): string {
  const figure = (name: string): string => {
    const at = store.data.columns.findIndex((column) => column.name === name);
    return `${store.data.columns[at]?.title ?? ""} ${row.texts[at] ?? ""}`;
  };
  return [row.name, figure(store.state.x), figure(store.state.y)].join("\n");
}

function dotsOf(store: Networks, rows: readonly Network[]): Dot[] {
  return rows.flatMap((row) => {
    const [x, y] = [store.value(row, store.state.x), store.value(row, store.state.y)];
    return x !== null && y !== null && x > 0 && y > 0 ? [{ row, x, y }] : [];
  });
}

function front(dots: Dot[]): Dot[] {
  let least = Infinity;
  return [...dots].sort((a, b) => a.x - b.x || a.y - b.y).filter((dot) => {
    if (dot.y >= least) return false;
    least = dot.y;
    return true;
  });
}

function scaleOf(values: number[], from: number, to: number): Scale {
  const logs = values.map((value) => Math.log10(value));
  let low = logs.reduce((a, b) => Math.min(a, b));
  let high = logs.reduce((a, b) => Math.max(a, b));
  const room = Math.max((high - low) * 0.05, 0.08);
  low -= room;
  high += room;
  return { low, high, at: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from) };
}

// A line at every power of ten, and between them where these are few.
function axis(scale: Scale, column: NetworkColumn | undefined, draw: (at: number, text: string) => SVGElement[]): SVGElement[] {
  const span = scale.high - scale.low;
  const steps = span > 2.5 ? [1] : span > 1.2 ? [1, 3] : [1, 2, 5];
  const skip = Math.max(1, Math.ceil(span / 7));
  const found: SVGElement[] = [];
  for (let power = Math.floor(scale.low); power <= scale.high; power += 1) {
    for (const step of steps) {
      const value = step * 10 ** power;
      const log = Math.log10(value);
      if (log < scale.low || log > scale.high || power % skip !== 0) continue;
      found.push(s("g", { class: "ax" }, ...draw(Math.round(scale.at(value)) + 0.5, tickText(value, column?.kind ?? "count"))));
    }
  }
  return found;
}

function tickText(value: number, kind: NetworkColumn["kind"]): string {
  if (kind === "time") {
    const [unit, scale] = value >= 1 ? ["s", 1] : value >= 1e-3 ? ["ms", 1e-3] : ["us", 1e-6];
    return `${Number((value / (scale as number)).toPrecision(3))} ${unit}`;
  }
  if (value < 1) return String(Number(value.toPrecision(2)));
  const text = kind === "bytes" ? bytesText(Math.round(value)) : shortText(Math.round(value));
  return text.replace(/\.0+(?=\D|$)|(?<=\.\d)0(?=\D|$)/, "");
}
