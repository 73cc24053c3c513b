// The receptive field of the chosen layer, drawn on the input at scale.

import type { Field } from "./data";
import { h, s, times } from "./dom";
import type { Item } from "./model";
import type { Pane, Store } from "./store";

const SIZE = 290;
const GRID = 32;

interface Extent {
  width: number;
  height: number;
}

export function receptiveField(host: HTMLElement, store: Store): Pane {
  const name = h("span", { class: "s" });
  const body = h("div", { class: "fx" });
  host.replaceChildren(h("div", { class: "top" }, h("h2", {}, "Receptive field"), name), body);
  const draw = (): void => {
    const input = inputOf(store);
    const item = shown(store);
    const field = item === undefined ? null : (store.report.layers[item.layer ?? -1]?.field ?? null);
    host.hidden = input === null;
    if (input === null) return;
    if (item === undefined || field === null) {
      name.textContent = "";
      body.replaceChildren(h("p", { class: "empty" }, "Choose a layer to see what part of the input it sees."));
      return;
    }
    name.textContent = `${item.full}, on the input of ${input.width} × ${input.height}`;
    body.replaceChildren(picture(store, item, field, input), facts(store, item, field, input));
  };
  draw();
  return { destroy: store.on(["report", "selection", "hover"], draw) };
}

function inputOf(store: Store): Extent | null {
  const shape = store.report.inputs[0]?.shape;
  if (!shape || shape.length < 3) return null;
  const [height, width] = shape.slice(-2).map(Number);
  return height && width && Number.isFinite(height * width) ? { width, height } : null;
}

// The hovered or chosen layer; without one, the last that sees a part of the input only.
function shown(store: Store): Item | undefined {
  for (const id of [store.state.hover?.id, store.state.selection]) {
    const item = store.item(id);
    if (item?.layer !== undefined && item.layer !== null && store.report.layers[item.layer]?.field) return item;
  }
  const layers = store.report.layers;
  for (let index = layers.length - 1; index >= 0; index--) {
    const field = layers[index]?.field;
    if (field && field.size.every((side) => typeof side === "number")) return store.item(store.model.layerIds[index]);
  }
  return undefined;
}

function known(side: unknown): boolean {
  return side !== null && side !== undefined && Number.isFinite(Number(side));
}

function sides(field: Field, input: Extent): { w: number; h: number; sx: number; sy: number; whole: boolean } {
  const [height, width] = field.size.length > 1 ? field.size.slice(-2) : [field.size[0], field.size[0]];
  const [sy, sx] = field.stride.length > 1 ? field.stride.slice(-2) : [field.stride[0], field.stride[0]];
  const whole = !known(height) || !known(width);
  const side = (one: unknown, all: number): number => (known(one) ? Number(one) : all);
  return { w: side(width, input.width), h: side(height, input.height), sx: side(sx, 0), sy: side(sy, 0), whole };
}

function picture(store: Store, item: Item, field: Field, input: Extent): SVGSVGElement {
  const { w, h: high, sx, sy } = sides(field, input);
  const beyond = w > input.width || high > input.height;
  const room = beyond ? 1.14 : 1;
  const span = Math.max(Math.max(w, input.width) * room, Math.max(high, input.height) * room);
  const scale = (SIZE - 24) / span;
  const [cx, cy] = [SIZE / 2, SIZE / 2 - 6];
  const box = (width: number, height: number, dx = 0, dy = 0): Record<string, string> => ({
    x: (cx + (dx - width / 2) * scale).toFixed(1), y: (cy + (dy - height / 2) * scale).toFixed(1),
    width: (width * scale).toFixed(1), height: (height * scale).toFixed(1),
  });
  const hatch = s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" }));
  const drawing = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": `receptive field of ${item.full}: ${w} by ${high} of ${input.width} by ${input.height}` }, s("defs", {}, hatch));
  if (beyond) drawing.append(s("rect", { ...box(w, high), fill: "url(#hatch)" }));
  drawing.append(s("rect", { ...box(input.width, input.height), class: "input" }), grid(input, scale, cx, cy));
  for (const rung of rungs(store, item, input)) {
    drawing.append(s("rect", { ...box(rung.w, rung.h), class: "rung" }));
    if (rung.w * scale > 44) drawing.append(s("text", { x: cx - (rung.w / 2) * scale + 4, y: cy - (rung.h / 2) * scale + 12, class: "rung-name" }, rung.name));
  }
  if (sx > 0 && !beyond) drawing.append(s("rect", { ...box(w, high, sx, 0), class: "next" }), s("rect", { ...box(w, high, 0, sy), class: "next" }));
  drawing.append(s("rect", { ...box(w, high), class: "seen" }));
  const [left, right, bottom] = [cx - (input.width / 2) * scale, cx + (input.width / 2) * scale, cy + (input.height / 2) * scale + 14];
  if (bottom < SIZE) drawing.append(label(left, bottom, "0"), label(right, bottom, String(input.width)));
  return drawing;
}

function label(x: number, y: number, text: string): SVGTextElement {
  return s("text", { x: x.toFixed(1), y: y.toFixed(1), class: "scale", "text-anchor": "middle" }, text);
}

function grid(input: Extent, scale: number, cx: number, cy: number): SVGPathElement {
  const [left, top] = [cx - (input.width / 2) * scale, cy - (input.height / 2) * scale];
  const step = GRID * scale < 5 ? GRID * Math.ceil(5 / (GRID * scale)) : GRID;
  let path = "";
  for (let x = step; x < input.width; x += step) path += `M${(left + x * scale).toFixed(1)},${top.toFixed(1)}v${(input.height * scale).toFixed(1)}`;
  for (let y = step; y < input.height; y += step) path += `M${left.toFixed(1)},${(top + y * scale).toFixed(1)}h${(input.width * scale).toFixed(1)}`;
  return s("path", { d: path, class: "grid-lines" });
}

// The fields at the ends of top modules that stay inside the input.
function rungs(store: Store, item: Item, input: Extent): { name: string; w: number; h: number }[] {
  const out: { name: string; w: number; h: number }[] = [];
  for (const top of store.model.root.children) {
    const field = top.kind === "group" ? store.report.layers[top.layers.at(-1) ?? -1]?.field : null;
    if (!field || item.layers[0] === undefined) continue;
    const { w, h: high, whole } = sides(field, input);
    if (whole || w >= input.width * 0.98 || high >= input.height * 0.98 || out.length >= 6) continue;
    out.push({ name: `${top.name}, ${w}`, w, h: high });
  }
  return out;
}

function facts(store: Store, item: Item, field: Field, input: Extent): HTMLElement {
  const { w, h: high, whole } = sides(field, input);
  const size = store.text(item, "field");
  const stride = store.text(item, "field_stride");
  const output = store.report.tensors[store.report.layers[item.layer ?? -1]?.outputs?.[0] ?? -1]?.shape?.slice(-2).join(" × ") ?? "";
  const beyond = Math.max(0, w - input.width, high - input.height);
  const pairs: [string, string][] = [
    ["field", whole ? "the whole input" : /^\d+$/.test(size) ? `${size} × ${size}` : times(size)],
    ["stride", stride === "" || stride === "-" ? "" : `${times(stride)} px`],
    ["positions", output],
    ["beyond it", whole ? "" : `${beyond} px`],
  ];
  return h("dl", {}, ...pairs.filter(([, text]) => text !== "").map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))));
}
