// Which columns fit, and how wide they are. Widths come from the longest text of a column, so that
// no figure is cut and nothing moves while rows scroll.

import { times } from "../dom";
import type { Item } from "../model";
import type { Store } from "../store";

export interface Shown {
  /** Column of `state.columns`. */
  name: string;
  /** Column of the cells in the chosen convention. */
  cells: string;
  title: string;
  kind: "name" | "text" | "figure" | "percent";
  width: number;
}

/** A field that sees the whole input. */
export const WHOLE = "all";
const PADDING = 13; // of a cell: 6 at each side
const EDGE = 6; // more, right of the last column
const BAR = 58;
const BAR_GAP = 8;
const NAME_LEAST = 152;
const NAME_LEAST_SMALL = 132;
const NAME_MOST = 330;
// The first to go when the table is narrow.
const DROPPED = ["window", "field", "intensity", "type", "output", "memory", "params%", "macs%", "params"];
const DROPPED_TIMED = [
  "window", "roof%", "roof", "gb_s", "gflops_s", "field", "intensity", "params%", "memory", "output", "type", "time%", "time", "macs%", "params",
];

let context: CanvasRenderingContext2D | null = null;

/** Pixels of a text in the font of the table. */
export function textWidth(text: string, weight = 400): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (context === null) return text.length * 7;
  const font = getComputedStyle(document.documentElement).getPropertyValue("--font") || "sans-serif";
  context.font = `${weight} 12px ${font}`;
  return context.measureText(text).width;
}

/** The few longest of some texts: one of them is the widest. */
export function longest(texts: Iterable<string>): string[] {
  const byLength = new Map<number, string>();
  for (const text of texts) if (!byLength.has(text.length)) byLength.set(text.length, text);
  return [...byLength.keys()].sort((a, b) => b - a).slice(0, 4).map((length) => byLength.get(length) ?? "");
}

export interface Fit {
  columns: Shown[];
  template: string;
  width: number;
}

/** The columns for a table that is `width` pixels wide. */
export function fitColumns(store: Store, width: number, small: boolean): Fit {
  const chosen = store.state.columns;
  const names = store.listed()
    .filter((column) => chosen?.includes(column.name) ?? column.shown)
    .filter((column) => column.name !== "window" || chosen?.includes("type") === false)
    .filter((column) => column.name === "name" || store.cells(store.inConvention(column.name)) !== undefined)
    .map((column) => column.name);
  if (!names.includes("name")) names.unshift("name");
  let columns = names.map((name) => measure(store, name, small));
  const least = small ? NAME_LEAST_SMALL : NAME_LEAST;
  const sum = (): number => columns.reduce((total, column) => total + column.width, 0);
  if (chosen === null) {
    const timed = names.includes("time");
    for (const name of timed ? DROPPED_TIMED : DROPPED) {
      if (sum() + EDGE <= width) break;
      columns = columns.filter((column) => column.name !== name);
    }
  }
  const last = columns.at(-1);
  if (last !== undefined) last.width += EDGE;
  spread(columns, width - sum(), least);
  return {
    columns,
    template: columns.map((column) => `${column.width.toFixed(2)}px`).join(" "),
    width: Math.max(sum(), 0),
  };
}

function measure(store: Store, name: string, small: boolean): Shown {
  const cells = store.inConvention(name);
  const kind = kindOf(store, name);
  const title = titleOf(store, name, cells);
  if (kind === "name") return { name, cells, title, kind, width: small ? NAME_LEAST_SMALL : NAME_LEAST };
  const head = textWidth(title, 500) + 22;
  const { items, root } = store.model;
  const body = longest(items.map((item) => cellText(store, item, cells, small))).map((one) => textWidth(one));
  const total = textWidth(cellText(store, root, cells, small), 600);
  let width = Math.max(...body, total, 8);
  if (kind === "percent") width = 34 + BAR_GAP + BAR;
  if (name === "type") width = Math.max(0, ...longest(items.map((item) => typeText(store, item))).map((one) => textWidth(one))) + 5;
  return { name, cells, title, kind, width: Math.ceil(Math.max(head, width + PADDING)) };
}

function kindOf(store: Store, name: string): Shown["kind"] {
  if (name === "name") return "name";
  const kind = store.column(name)?.kind;
  if (kind === "percent") return "percent";
  return kind === "text" && name !== "field" ? "text" : "figure";
}

function titleOf(store: Store, name: string, cells: string): string {
  if (!name.endsWith("%")) return store.title(cells);
  return `% of ${store.title(cells.slice(0, -1))}`;
}

// Spare room goes to the names first, then to all columns.
function spread(columns: Shown[], spare: number, least: number): void {
  const name = columns[0];
  if (name === undefined || spare <= 0) return;
  const wide = Math.min(spare, NAME_MOST - least) * 0.5;
  name.width += wide;
  const each = (spare - wide) / columns.length;
  for (const column of columns) column.width += each;
}

/** The text of a cell; in a small table the short one. */
export function cellText(store: Store, item: Item, cells: string, small: boolean): string {
  const text = small ? store.short(item, cells) : times(store.text(item, cells));
  return cells.startsWith("field") && text.startsWith("everything") ? text.replace("everything", WHOLE) : text;
}

/** Type and window of a row: "conv 3×3/2". */
export function typeText(store: Store, item: Item): string {
  const window = times(store.text(item, "window"));
  return window === "" ? store.text(item, "type") : `${store.text(item, "type")} ${window}`;
}
