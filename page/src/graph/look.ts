// What a box looks like: its shapes, from its upper left corner.

import { times } from "../dom";
import type { Item } from "../model";
import type { Store } from "../store";
import type { Part } from "./parts";
import { HANG, HEADER, hangRows, ROW, type SceneBox, type SceneEdge } from "./scene";
import { arrowLength, arrowPath, fitted, LARGE, path, rect, roundedPath, text, textWidth, type Shape, type Token } from "./shapes";

const PAD = 9;

/** Figures of the boxes, as the store has them. */
export class Look {
  private readonly column: string;
  private readonly percent: string | undefined;

  constructor(private readonly store: Store) {
    this.column = store.inConvention(store.state.heat);
    this.percent = store.column(`${this.column}%`)?.name;
  }

  box(own: SceneBox): Shape[] {
    const { kind } = own.box;
    const shapes = kind === "input" ? this.input(own) : kind === "layer" ? this.layer(own) : kind === "module" ? this.module(own) : this.frame(own);
    const sign = this.sign(own.box.part);
    return sign === "" ? shapes : [...shapes, ...signShapes(sign)];
  }

  /** Heat class of a part; the hottest layer's for a run. */
  heat(part: Part): number {
    if (part.item !== null) return this.store.heat(part.item);
    return part.parts.reduce((most, inner) => Math.max(most, this.heat(inner)), 0);
  }

  private sign(part: Part): string {
    const own = part.item === null ? "" : this.store.sign(part.item);
    if (own !== "" || part.hangs.length === 0) return own;
    return part.hangs.some((hung) => hung.item !== null && this.store.sign(hung.item) !== "") ? "~" : "";
  }

  private unknown(part: Part): boolean {
    return part.kind === "layer" && this.store.report.layers[part.index]?.status === "unknown";
  }

  private input(own: SceneBox): Shape[] {
    const name = fitted(own.box.name, 11.5, false, own.w - 20);
    return [
      rect(0, 0, own.w, own.h, own.h / 2, "sunk", "line-2"),
      text(own.w / 2, own.h / 2 + 4, name, { anchor: "middle", fill: "ink-2", detail: 1, full: name === own.box.name ? null : own.box.name }),
    ];
  }

  private layer(own: SceneBox): Shape[] {
    const { part, name } = own.box;
    const heat = this.heat(part);
    const rows = hangRows(own.box);
    const prefix = name.slice(0, name.length - part.name.length);
    const shapes: Shape[] = [rect(0, 0, own.w, own.h, 5, "surface", null)];
    shapes.push(rows.length === 0 ? rect(0, 0, own.w, ROW, 5, `h${heat}`) : path(topRounded(own.w, ROW, 5), null, 1, `h${heat}`));
    rows.forEach((row, line) => {
      const y = ROW + HANG * line;
      const wide = own.w / row.length;
      row.forEach((hung, at) => {
        const warm = this.heat(hung);
        const last = line === rows.length - 1;
        if (warm > 0) shapes.push(cell(at * wide, y, wide, { left: last && at === 0, right: last && at === row.length - 1 }, `h${warm}`));
        if (at > 0) shapes.push(path(`M${at * wide} ${y}v${HANG}`, "line-2"));
        const room = wide - PAD - 6;
        const hungName = textWidth(prefix + hung.name, 11, false) <= room ? prefix + hung.name : hung.name;
        const shown = fitted(hungName, 11, false, room);
        shapes.push(text(at * wide + PAD, y + 12.5, shown, {
          size: 11, fill: warm > 0 ? `t${warm}` : this.unknown(hung) ? "warn" : "ink-2", full: shown === hungName ? null : hungName,
        }));
      });
      shapes.push(path(`M0 ${y}h${own.w}`, "line-2"));
    });
    shapes.push(rect(0, 0, own.w, own.h, 5, null, "line-2"));
    const ink: Token = `t${heat}`;
    const unknown = this.unknown(part);
    const right = this.rightText(part, name, own.w);
    const room = own.w - 2 * PAD - (right === "" ? 0 : textWidth(right, 11.5, false) + 8);
    const shown = fitted(name, 12.5, true, room);
    shapes.push(text(PAD, 17.5, shown, { size: 12.5, bold: true, fill: ink, detail: 1, grows: textWidth(shown, LARGE, true) <= own.w - 2 * PAD, full: shown === name ? null : name }));
    if (right !== "") shapes.push(text(own.w - PAD, 17.5, right, { anchor: "end", fill: unknown ? "warn" : ink }));
    return shapes;
  }

  // Type and window where they fit beside the name, else the window, else the type.
  private rightText(part: Part, name: string, width: number): string {
    const window = times(this.store.report.layers[part.index]?.window ?? "");
    const type = part.type.replaceAll("_", " ");
    if (this.unknown(part)) return this.fits(name, `? ${type}`, width) ? `? ${type}` : "?";
    const choices = [`${type} ${window}`.trim(), window, type === name ? "" : type];
    return choices.find((choice) => choice !== "" && this.fits(name, choice, width)) ?? window;
  }

  private fits(name: string, right: string, width: number): boolean {
    return textWidth(name, 12.5, true) + textWidth(right, 11.5, false) + 8 <= width - 2 * PAD;
  }

  private module(own: SceneBox): Shape[] {
    const { part, name } = own.box;
    const heat = this.heat(part);
    const ink: Token = `t${heat}`;
    const shapes: Shape[] = [];
    if (part.repeat > 1) {
      for (const step of [2, 1]) shapes.push(rect(4 * step, 3 * step, own.w - 8 * step, own.h, 5, `h${heat}`, "line-2"));
    }
    shapes.push(rect(0, 0, own.w, own.h, 5, `h${heat}`, "line-2"), path(chevron(9, 11, false), ink, 1.5));
    const share = this.share(part.item);
    const first = fitted(name, 12.5, true, own.w - 22 - PAD - (share === "" ? 0 : textWidth(share, 12, true) + 8));
    shapes.push(text(23, 16.5, first, { size: 12.5, bold: true, fill: ink, detail: 1, grows: textWidth(first, LARGE, true) <= own.w - 23 - PAD, full: first === name ? null : name }));
    if (share !== "") shapes.push(text(own.w - PAD, 16.5, share, { size: 12, bold: true, anchor: "end", fill: ink }));
    const figure = part.item === null ? "" : this.store.short(part.item, this.column);
    const kind = typeText(part);
    const second = fitted(kind, 11.5, false, own.w - 23 - PAD - (figure === "" ? 0 : textWidth(figure, 11.5, false) + 8));
    shapes.push(text(23, 31.5, second, { fill: ink, full: second === kind ? null : kind }));
    if (figure !== "") shapes.push(text(own.w - PAD, 31.5, figure, { anchor: "end", fill: ink }));
    return shapes;
  }

  private frame(own: SceneBox): Shape[] {
    const { part, name } = own.box;
    const shapes: Shape[] = [];
    if (part.repeat > 1) {
      for (const step of [2, 1]) shapes.push(rect(4 * step, 3 * step, own.w - 8 * step, own.h, 8, "graph-frame", "line-2"));
    }
    shapes.push(
      rect(0, 0, own.w, own.h, 8, "graph-frame", null),
      path(topRounded(own.w, HEADER, 8), null, 1, "sunk"),
      path(`M0 ${HEADER}h${own.w}`, "line"),
      rect(0, 0, own.w, own.h, 8, null, "line-2"),
      path(chevron(8, 9, true), "ink-3", 1.5),
      rect(own.w - 19, 7.5, 9, 9, 2, `h${this.heat(part)}`, "line-2"),
    );
    const share = this.share(part.item);
    const used = share === "" ? 0 : textWidth(share, 11.5, false) + 8;
    if (share !== "") shapes.push(text(own.w - 24, 16, share, { anchor: "end", fill: "ink-2" }));
    const repeats = part.repeat > 1 ? `× ${part.repeat}` : "";
    const kept = repeats === "" ? 0 : textWidth(repeats, 11.5, false) + 7;
    const room = own.w - 22 - 24 - used - kept;
    const shown = fitted(name, 12.5, true, room);
    const wide = textWidth(shown, 12.5, true);
    shapes.push(text(21, 16.5, shown, { size: 12.5, bold: true, fill: "ink", detail: 1, grows: textWidth(shown, LARGE, true) <= own.w - 46, full: shown === name ? null : name }));
    const left = room - wide - 8;
    const type = part.type !== "" && left > Math.min(70, textWidth(part.type, 11.5, false)) ? fitted(part.type, 11.5, false, left) : "";
    const second = `${type} ${repeats}`.trim();
    if (second !== "") shapes.push(text(21 + wide + 7, 16.5, second, { fill: "ink-2", full: type === part.type ? null : `${part.type} ${repeats}`.trim() }));
    return shapes;
  }

  private share(item: Item | null): string {
    if (item === null || this.percent === undefined) return "";
    const printed = this.store.text(item, this.percent);
    return printed === "" || printed === "?" ? printed : `${printed} %`;
  }
}

/** What a module is: its type, or how many of one type it consists of. */
function typeText(part: Part): string {
  if (part.repeat > 1) return `${part.type} × ${part.repeat}`.trim();
  const inner = part.parts.filter((child) => child.kind === "group");
  const types = new Set(inner.map((child) => child.type));
  const count = inner.reduce((sum, child) => sum + child.repeat, 0);
  const [only] = types;
  return inner.length === part.parts.length && types.size === 1 && count > 1 && only ? `${count} × ${only}` : part.type;
}

function chevron(x: number, y: number, open: boolean): string {
  return open ? `M${x} ${y + 1.5}l4 4l4 -4` : `M${x + 2} ${y - 1}l4 4l-4 4`;
}

function topRounded(w: number, h: number, r: number): string {
  return `M0 ${h}V${r}Q0 0 ${r} 0H${w - r}Q${w} 0 ${w} ${r}V${h}Z`;
}

function cell(x: number, y: number, w: number, round: { left: boolean; right: boolean }, fill: Token): Shape {
  const l = round.left ? 5 : 0;
  const r = round.right ? 5 : 0;
  const low = y + HANG;
  return path(`M${x} ${y}H${x + w}V${low - r}Q${x + w} ${low} ${x + w - r} ${low}H${x + l}Q${x} ${low} ${x} ${low - l}Z`, null, 1, fill);
}

function signShapes(sign: string): Shape[] {
  const token = sign === "+" ? "good" : sign === "-" ? "error" : "accent";
  const bar = sign === "~" ? "M-3.5 .7q1.75 -2.6 3.5 -.7t3.5 -.7" : sign === "+" ? "M-3.5 0h7M0 -3.5v7" : "M-3.5 0h7";
  return [rect(-7, -7, 14, 14, 7, "surface", token, 1.5), path(bar, token, 1.7)];
}

/** The line, the arrows and the label of an edge, in the coordinates of the graph. */
export function edgeShapes(edge: SceneEdge, on: boolean): { line: Shape; arrows: Shape; labels: Shape[] } {
  const width = on ? Math.max(1.6, edge.width) : edge.width;
  const line = edge.routes.map((points, at) => roundedPath(points, edge.arrows[at] ? arrowLength(width) : 0)).join("");
  const arrows = edge.routes.map((points, at) => (edge.arrows[at] ? arrowPath(points, width) : "")).join("");
  const token = on ? "accent" : "edge";
  return {
    line: path(line, token, width),
    arrows: path(arrows, null, 1, token),
    labels: edge.labels.map(({ x, y, text: value, anchor }) => text(x, y, value, { anchor, size: 11, fill: on ? "accent" : "ink-2" })),
  };
}
