// Shapes that boxes and edges are drawn with. They name colours by token, so that the page, its
// canvas and an exported picture draw the same.

/** Name of a CSS variable without its dashes. */
export type Token = string;

export interface Rect {
  kind: "rect";
  x: number;
  y: number;
  w: number;
  h: number;
  r: number;
  fill: Token | null;
  line: Token | null;
  width: number;
}

export interface Line {
  kind: "path";
  d: string;
  fill: Token | null;
  line: Token | null;
  width: number;
}

export interface Text {
  kind: "text";
  x: number;
  y: number;
  text: string;
  size: number;
  bold: boolean;
  fill: Token;
  anchor: "start" | "middle" | "end";
  /** 1: shown at every zoom with names, 2: only where there is room for details. */
  detail: 1 | 2;
  /** The whole text, where `text` is cut. */
  full: string | null;
  /** Whether there is room to write it larger where the graph is small. */
  grows: boolean;
}

export type Shape = Rect | Line | Text;

export const FONT = '"SF Pro Text",-apple-system,BlinkMacSystemFont,"Segoe UI Variable Text","Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans",sans-serif';
/** Size of names that grow where details are left out. */
export const LARGE = 18;
const CORNER = 8;

export function rect(x: number, y: number, w: number, h: number, r: number, fill: Token | null, line: Token | null = null, width = 1): Rect {
  return { kind: "rect", x, y, w, h, r, fill, line, width };
}

export function text(x: number, y: number, value: string, style: Partial<Text> = {}): Text {
  return { kind: "text", x, y, text: value, size: 11.5, bold: false, fill: "ink", anchor: "start", detail: 2, full: null, grows: false, ...style };
}

export function path(d: string, line: Token | null, width = 1, fill: Token | null = null): Line {
  return { kind: "path", d, fill, line, width };
}

const widths = new Map<string, number>();
let meter: CanvasRenderingContext2D | null = null;

export function textWidth(value: string, size: number, bold: boolean): number {
  const key = `${size}${bold ? "b" : ""}${value}`;
  let width = widths.get(key);
  if (width === undefined) {
    meter ??= document.createElement("canvas").getContext("2d");
    if (meter === null) return value.length * size * 0.56;
    meter.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
    width = meter.measureText(value).width;
    if (widths.size > 50000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** The text, cut with an ellipsis in its middle where it is too wide: ends of names differ. */
export function fitted(value: string, size: number, bold: boolean, room: number): string {
  if (textWidth(value, size, bold) <= room) return value;
  let low = 0;
  let high = value.length;
  const cut = (kept: number): string => `${value.slice(0, Math.ceil(kept / 2))}…${value.slice(value.length - Math.floor(kept / 2))}`;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (textWidth(cut(mid), size, bold) <= room) low = mid;
    else high = mid - 1;
  }
  return cut(low);
}

/** A path along corners, with round ones; `trim` leaves room for an arrow at the end. */
export function roundedPath(points: readonly number[], trim: number): string {
  const n = points.length / 2;
  const px = (at: number): number => points[2 * at]!;
  const py = (at: number): number => points[2 * at + 1]!;
  let d = `M${px(0)} ${py(0)}`;
  for (let at = 1; at < n - 1; at++) {
    const before = Math.hypot(px(at) - px(at - 1), py(at) - py(at - 1));
    const after = Math.hypot(px(at + 1) - px(at), py(at + 1) - py(at));
    const r = Math.min(CORNER, before / (at === 1 ? 1 : 2), after / (at === n - 2 ? 1 : 2));
    if (r <= 0.5 || before === 0 || after === 0) {
      d += `L${px(at)} ${py(at)}`;
      continue;
    }
    const ax = round(px(at) - ((px(at) - px(at - 1)) / before) * r);
    const ay = round(py(at) - ((py(at) - py(at - 1)) / before) * r);
    const bx = round(px(at) + ((px(at + 1) - px(at)) / after) * r);
    const by = round(py(at) + ((py(at + 1) - py(at)) / after) * r);
    d += `L${ax} ${ay}Q${px(at)} ${py(at)} ${bx} ${by}`;
  }
  const [ex, ey] = endDirection(points);
  return `${d}L${round(px(n - 1) - ex * trim)} ${round(py(n - 1) - ey * trim)}`;
}

/** A triangle at the end of a route. */
export function arrowPath(points: readonly number[], width: number): string {
  const [ex, ey] = endDirection(points);
  const x = points.at(-2)!;
  const y = points.at(-1)!;
  const half = 2.6 + width / 2;
  const long = 4.6 + width * 0.8;
  const bx = x - ex * long;
  const by = y - ey * long;
  return `M${x} ${y}L${round(bx - ey * half)} ${round(by + ex * half)}L${round(bx + ey * half)} ${round(by - ex * half)}Z`;
}

export function arrowLength(width: number): number {
  return 4 + width * 0.8;
}

function endDirection(points: readonly number[]): [number, number] {
  const n = points.length;
  for (let at = n - 4; at >= 0; at -= 2) {
    const dx = points[n - 2]! - points[at]!;
    const dy = points[n - 1]! - points[at + 1]!;
    const long = Math.hypot(dx, dy);
    if (long > 0) return [dx / long, dy / long];
  }
  return [0, 1];
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
