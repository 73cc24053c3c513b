// Rings around what is selected or hovered, and what else that lights.

import type { Marks } from "./drawing";
import { shownPart, type Visible } from "./levels";
import type { Part, Parts } from "./parts";
import { HANG, HEADER, hangRows, ROW, type Scene, type SceneBox } from "./scene";
import { path, rect, type Shape } from "./shapes";

/** Where a box or a cell of it is: the header only, for an open module. */
export function spotOf(scene: Scene, id: string): { x: number; y: number; w: number; h: number; own: SceneBox } | null {
  const own = scene.byId.get(id);
  if (own !== undefined) {
    const h = own.box.kind === "frame" ? HEADER : own.box.kind === "layer" ? ROW : own.h;
    return { x: own.x, y: own.y, w: own.w, h, own };
  }
  const host = scene.cells.get(id);
  if (host === undefined) return null;
  let found = null;
  hangRows(host.box).forEach((row, line) => row.forEach((hung, at) => {
    const w = host.w / row.length;
    if (hung.id === id) found = { x: host.x + at * w, y: host.y + ROW + HANG * line, w, h: HANG, own: host };
  }));
  return found;
}

/** What is at a point: a box, a cell in it, or the header of an open module. */
export function hit(scene: Scene, x: number, y: number): { id: string; own: SceneBox } | null {
  for (let at = scene.boxes.length - 1; at >= 0; at--) {
    const own = scene.boxes[at]!;
    if (x < own.x || x > own.x + own.w || y < own.y || y > own.y + own.h) continue;
    if (own.box.kind === "frame") {
      if (y <= own.y + HEADER) return { id: own.id, own };
      continue;
    }
    if (own.box.kind !== "layer" || y <= own.y + ROW) return { id: own.id, own };
    const row = hangRows(own.box)[Math.floor((y - own.y - ROW) / HANG)];
    const hung = row?.[Math.min(row.length - 1, Math.floor(((x - own.x) / own.w) * row.length))];
    return { id: hung?.id ?? own.id, own };
  }
  return null;
}

/** Key of the edge within `reach` of a point. */
export function hitEdge(scene: Scene, x: number, y: number, reach: number): string | null {
  let best = reach;
  let found: string | null = null;
  for (const edge of scene.edges) {
    for (const points of edge.routes) {
      for (let at = 0; at + 3 < points.length; at += 2) {
        const [ax, ay, bx, by] = [points[at]!, points[at + 1]!, points[at + 2]!, points[at + 3]!];
        const dx = Math.max(Math.min(ax, bx) - x, 0, x - Math.max(ax, bx));
        const dy = Math.max(Math.min(ay, by) - y, 0, y - Math.max(ay, by));
        const far = Math.max(dx, dy);
        if (far < best) [best, found] = [far, edge.key];
      }
    }
  }
  return found;
}

export function markShapes(scene: Scene, marks: Marks): Shape[] {
  const rects: Shape[] = [];
  const ring = (id: string | null, width: number, out: number, box = false): void => {
    const spot = id === null ? null : spotOf(scene, id);
    if (spot === null) return;
    const whole = box || spot.own.box.kind === "frame" || (spot.own.id === id && spot.own.box.kind !== "layer");
    const h = whole ? spot.own.h : spot.h;
    const r = spot.own.box.kind === "frame" ? 8 : spot.own.box.kind === "input" ? spot.h / 2 : spot.own.id === id ? 5 : 2;
    rects.push(rect(spot.x - out, spot.y - out, spot.w + 2 * out, h + 2 * out, r + out, null, "accent", width));
  };
  for (const id of marks.users) ring(id, 1.25, 2.5, true);
  if (marks.hovered !== marks.selected) ring(marks.hovered, 1.25, 0.6);
  ring(marks.selected, 2.25, 0.6);
  const fault = marks.fault === null ? null : spotOf(scene, marks.fault);
  if (fault !== null) rects.push(...badge(fault.x + fault.w, fault.y));
  return rects;
}

// A red disc with an exclamation mark, around a point.
function badge(x: number, y: number): Shape[] {
  return [
    rect(x - 7.5, y - 7.5, 15, 15, 7.5, "error", "surface", 1.5),
    path(`M${x} ${y - 3.6}v4`, "surface", 1.8),
    rect(x - 0.95, y + 2, 1.9, 1.9, 0.95, "surface"),
  ];
}

/** Edges of tensors that a part writes or reads, and the visible parts that read what it writes. */
export function touched(parts: Parts, visible: Visible, scene: Scene, part: Part): { edges: Set<string>; users: Set<string> } {
  const own = new Set(part.kind === "layer" ? [part, ...part.hangs].map((layer) => layer.index) : part.layers);
  const tensors = new Set<number>();
  const users = new Set<string>();
  const around = new Set<Part>();
  for (let up: Part | null = part; up !== null; up = up.parent) around.add(up);
  parts.tensors.forEach((tensor, index) => {
    const writes = part.kind === "input" ? index === part.index : tensor.producer !== null && own.has(tensor.producer);
    const outside = tensor.consumers.filter((reader) => !own.has(reader));
    if (writes && outside.length > 0) {
      tensors.add(index);
      for (const reader of outside) {
        const shown = shownPart(parts.ofLayer[reader] ?? parts.hidden[reader], visible.at);
        if (shown !== undefined && !around.has(shown)) users.add(shown.solo?.id ?? shown.id);
      }
    }
    if (!writes && tensor.consumers.some((reader) => own.has(reader))) tensors.add(index);
  });
  const edges = new Set<string>();
  for (const edge of scene.edges) if (edge.net.tensors.some((tensor) => tensors.has(tensor))) edges.add(edge.key);
  return { edges, users };
}

/** Ids of the visible boxes that match a search or have a match inside. */
export function litBoxes(parts: Parts, visible: Visible, matches: ReadonlySet<string>): Set<string> {
  const lit = new Set<string>();
  for (const id of matches) {
    const part = parts.byId.get(id);
    const shown = shownPart(part, visible.at);
    if (shown !== undefined) lit.add(shown.solo?.id ?? shown.id);
  }
  return lit;
}
