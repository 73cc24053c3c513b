// The card beside the pointer: what the file says of a layer, its shapes, figures and source line.

import type { Layer, Tensor } from "./data";
import { h, times } from "./dom";
import type { Item } from "./model";
import { exactText } from "./numbers";
import { cellText } from "./table/columns";
import type { Pane, Store } from "./store";

const FIGURES = ["params", "macs", "flops", "memory", "alive", "gemm", "intensity"];
const LABELS: Record<string, string> = { memory: "new memory", alive: "alive while it runs", gemm: "GEMM M×N×K" };
const MOST_ATTRIBUTES = 12;

export function hoverCard(host: HTMLElement, store: Store): Pane {
  let shown = "";
  let pinned = false;
  const touch = matchMedia("(max-width: 700px)");
  const update = (): void => {
    const { hover } = store.state;
    const item = store.item(hover?.id);
    const still = hover !== null && (hover.x === null || hover.y === null);
    pinned = still && document.activeElement?.getAttribute("role") === "treegrid";
    if (item === undefined || hover === null || (still && !pinned)) {
      host.classList.remove("on");
      shown = "";
      return;
    }
    const key = `${store.state.report} ${store.state.convention} ${item.id}`;
    if (key !== shown) host.replaceChildren(...content(store, item));
    shown = key;
    host.classList.add("on");
    if (!touch.matches) place(host, hover.x, hover.y, item);
  };
  const ends = [
    store.on(["hover", "convention"], update),
    store.on(["selection"], () => {
      if (touch.matches && store.state.selection !== null && matchMedia("(hover: none)").matches) {
        store.set({ hover: { id: store.state.selection, x: 0, y: 0 } });
      } else if (pinned) {
        store.set({ hover: null });
      }
    }),
  ];
  const hide = (): void => {
    if (store.state.hover !== null) store.set({ hover: null });
  };
  addEventListener("scroll", hide, { passive: true });
  return { destroy: () => { ends.forEach((end) => end()); removeEventListener("scroll", hide); } };
}

// Beside the pointer, at the other side where the window ends; beside the row for the keyboard.
function place(host: HTMLElement, x: number | null, y: number | null, item: Item): void {
  if (x === null || y === null) {
    const row = document.getElementById(`row-${item.row}`)?.getBoundingClientRect();
    x = row === undefined ? 40 : row.left + 220;
    y = row?.bottom ?? 80;
  }
  const { offsetWidth: width, offsetHeight: height } = host;
  const left = x + 18 + width > innerWidth - 8 ? x - 18 - width : x + 18;
  const top = Math.max(8, Math.min(y + 14, innerHeight - height - 8));
  host.style.left = `${Math.max(8, left)}px`;
  host.style.top = `${top}px`;
}

function content(store: Store, item: Item): Node[] {
  const layer = item.layer === null ? null : (store.report.layers[item.layer] ?? null);
  return [
    h("h3", {}, item.full),
    h("div", { class: "k" }, subtitle(store, item)),
    layer === null ? null : flow(store, layer),
    layer === null ? null : attributes(layer),
    figures(store, item),
    source(layer),
  ].filter((node): node is HTMLElement => node !== null);
}

function subtitle(store: Store, item: Item): string {
  const type = store.text(item, "type");
  if (item.layer !== null) {
    const window = times(store.text(item, "window"));
    return [`${type} ${window}`.trim(), `step ${item.layer + 1} of ${store.report.layers.length}`].join(" · ");
  }
  const layers = `${item.layers.length} layer${item.layers.length === 1 ? "" : "s"}`;
  return [item.repeat > 1 ? `${item.repeat} × ${type}` : type, layers].filter(Boolean).join(" · ");
}

function flow(store: Store, layer: Layer): HTMLElement {
  const shape = (number: number): string => tensorText(store.report.tensors[number]);
  return h("div", { class: "flow" },
    h("span", {}, (layer.inputs ?? []).map(shape).join(", ")),
    h("span", { class: "muted" }, "→"),
    h("span", {}, (layer.outputs ?? []).map(shape).join(", ")));
}

function tensorText(tensor: Tensor | undefined): string {
  return tensor === undefined ? "?" : times(tensor.text ?? tensor.shape?.join("x") ?? "?");
}

function attributes(layer: Layer): HTMLElement | null {
  const pairs = Object.entries(layer.attributes ?? {}).filter(([, value]) => value !== null && valueText(value) !== "");
  if (pairs.length === 0) return null;
  const list = h("dl", { class: "two" });
  for (const [name, value] of pairs.slice(0, MOST_ATTRIBUTES)) {
    list.append(h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, valueText(value))));
  }
  return list;
}

/** An attribute in the words of the table: 3×3, yes, 1. */
export function valueText(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) {
    const parts = value.map((part: unknown) => (Array.isArray(part) ? pairText(part) : valueText(part)));
    return parts.length > 0 && value.every((part) => typeof part === "number" || Array.isArray(part)) ? parts.join("×") : parts.join(", ");
  }
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return Object.entries(value).map(([key, one]) => `${key} ${valueText(one)}`).join(", ");
  return String(value);
}

// Padding of one axis: once if both sides have the same.
function pairText(pair: unknown[]): string {
  const texts = pair.map((part) => valueText(part));
  return new Set(texts).size === 1 ? (texts[0] ?? "") : `(${texts.join(", ")})`;
}

function figures(store: Store, item: Item): HTMLElement {
  const list = h("dl", { class: "figures" });
  const columns = FIGURES.map((name) => (name === "flops" ? "flops" : name));
  const own = store.inConvention("macs");
  if (own !== "macs") columns.splice(2, 0, own);
  for (const column of columns) {
    const text = store.text(item, column);
    if (text === "") continue;
    const share = store.text(item, `${column}%`);
    list.append(
      h("dt", {}, LABELS[column] ?? store.title(column)),
      h("dd", {}, column === "gemm" ? times(text) : text),
      h("dd", { class: "muted" }, share === "" ? "" : `${share} %`));
  }
  const field = item.layer === null ? null : store.report.layers[item.layer]?.field;
  if (field) {
    const stride = store.text(item, "field_stride");
    list.append(h("dt", {}, "field"), h("dd", {}, cellText(store, item, "field", false) + (stride === "" || stride === "-" ? "" : `, stride ${times(stride)}`)), h("dd", {}));
  }
  return list;
}

function source(layer: Layer | null): HTMLElement | null {
  if (layer === null) return null;
  const lines: string[] = [];
  const weights = (layer.weights ?? []).slice(0, 3).map((weight) => `${weight.name} ${weight.shape.join("×") || exactText(1)}`);
  if (weights.length > 0) lines.push(weights.join(", ") + ((layer.weights?.length ?? 0) > 3 ? " …" : ""));
  if (layer.source_op && layer.source_op !== layer.type) lines.push(`in the file: ${layer.source_op}`);
  if (layer.source) lines.push([layer.source.file, layer.source.line, layer.source.column].filter((part) => part !== null && part !== undefined && part !== "").join(":"));
  if (layer.note) lines.push(layer.note);
  if (lines.length === 0) return null;
  return h("div", { class: "src" }, ...lines.map((line) => h("div", {}, line)));
}
