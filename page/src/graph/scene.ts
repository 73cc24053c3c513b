// From levels to a picture: sizes of boxes for the layout, and the layout's result in the
// coordinates of the whole graph.

import type { Report } from "../data";
import { OUTSIDE, type Box, type Level, type Net, type Visible } from "./levels";
import { HEADER, type Direction, type Placed, type Spec } from "./spec";

export const BOX_WIDTH = 178;
export const ROW = 26;
export const HANG = 18;
export const MODULE = 39;
const PILL = 20;
/** What a skip without a layer says. */
const IDENTITY = "identity";

export interface SceneBox {
  id: string;
  box: Box;
  x: number;
  y: number;
  w: number;
  h: number;
  depth: number;
  /** Where edges come in: it stays where it is when the box opens. */
  anchor: [number, number];
}

export interface SceneEdge {
  key: string;
  net: Net;
  routes: number[][];
  /** Whether a route ends with an arrow: those that end at a box. */
  arrows: boolean[];
  labels: { x: number; y: number; text: string; anchor: "start" | "middle" }[];
  width: number;
  /** Ids of the boxes at its ends; of the frame where it crosses its border. */
  ends: string[];
}

export interface Scene {
  /** Frames before what is in them. */
  boxes: SceneBox[];
  edges: SceneEdge[];
  byId: Map<string, SceneBox>;
  /** The box of each hanging layer. */
  cells: Map<string, SceneBox>;
  w: number;
  h: number;
}

/** Rows of hanging layers under a layer's box: two in each, one where a name is long. */
export function hangRows(box: Box): Box["part"][][] {
  const rows: Box["part"][][] = [];
  for (const hung of box.part.hangs) {
    const last = rows.at(-1);
    const short = hung.name.length <= 13;
    if (last !== undefined && last.length < 2 && short && (last[0]?.name.length ?? 0) <= 13) last.push(hung);
    else rows.push([hung]);
  }
  return rows;
}

function boxSize(box: Box): { w: number; h: number; anchor: number } {
  if (box.kind === "input") return { w: Math.min(BOX_WIDTH, Math.max(76, 7 * box.name.length + 26)), h: PILL, anchor: PILL / 2 };
  if (box.kind === "layer") return { w: BOX_WIDTH, h: ROW + HANG * hangRows(box).length, anchor: ROW / 2 };
  return { w: BOX_WIDTH, h: MODULE, anchor: MODULE / 2 };
}

/** The layout's view of a level and of the frames in it. */
export function specOf(level: Level, report: Report): Spec {
  const flops = report.cells["flops"]?.values ?? report.cells["macs"]?.values ?? [];
  const cost = (layers: readonly number[]): number => layers.reduce((sum, layer) => sum + (flops[layer] ?? 0), 0);
  const total = Math.max(1, cost(level.part.layers));
  const inside = (own: Level): Spec => ({
    nodes: own.boxes.map((box) => ({
      ...boxSize(box),
      inner: box.level === null ? null : inside(box.level),
      weight: (cost(box.part.layers) + cost(box.part.hangs.map((hung) => hung.index))) / total + 1e-4,
    })),
    // What enters or leaves a frame has its label outside.
    nets: own.nets.map(({ source, targets, label, added }) => ({
      source, targets, skip: added ? labelLength(IDENTITY) : 0, label: source === OUTSIDE || targets.every((target) => target === OUTSIDE) ? 0 : labelLength(label),
    })),
  });
  return inside(level);
}

export function labelLength(text: string): number {
  return 6 * text.length;
}

export function sceneOf(visible: Visible, placed: Placed, direction: Direction): Scene {
  const down = direction === "down";
  const scene: Scene = { boxes: [], edges: [], byId: new Map(), cells: new Map(), w: placed.w, h: placed.h };
  const work: { level: Level; placed: Placed; x: number; y: number; depth: number }[] = [
    { level: visible.root, placed, x: 0, y: 0, depth: 0 },
  ];
  for (const { level, placed: own, x, y, depth } of work) {
    level.boxes.forEach((box, at) => {
      const [w, h] = own.frames[at]!;
      const axis = own.inner[at]?.axis ?? (down ? w / 2 : Math.min(h / 2, boxSize(box).anchor));
      const [left, top] = [x + own.x[at]!, y + own.y[at]!];
      const put: SceneBox = { id: box.id, box, x: left, y: top, w, h, depth, anchor: down ? [left + axis, top] : [left, top + axis] };
      scene.boxes.push(put);
      scene.byId.set(put.id, put);
      for (const hung of box.part.hangs) scene.cells.set(hung.id, put);
      const inner = own.inner[at];
      if (box.level !== null && inner) work.push({ level: box.level, placed: inner, x: put.x, y: put.y, depth: depth + 1 });
    });
    const edges: SceneEdge[] = level.nets.map((net) => ({
      key: net.key, net, routes: [], arrows: [], labels: [], width: edgeWidth(net.bytes),
      ends: [net.source, ...net.targets].map((end) => (end === OUTSIDE ? level.part.id : (level.boxes[end]?.id ?? ""))),
    }));
    for (const route of own.routes) {
      const edge = edges[route.net]!;
      edge.routes.push(route.points.map((value, at) => value + (at % 2 === 0 ? x : y)));
      edge.arrows.push(route.target !== OUTSIDE);
    }
    for (const label of own.labels) {
      const edge = edges[label.net]!;
      edge.labels.push({
        x: label.x + x + (down ? 7 : 0), y: label.y + y + (down ? 4 : label.skip ? 13 : -6), text: label.skip ? IDENTITY : edge.net.label,
        anchor: down ? "start" : "middle",
      });
    }
    scene.edges.push(...edges);
  }
  return scene;
}

/** 1 to 3.4 px by the logarithm of the bytes: 1 kB and less to 16 MB and more. */
export function edgeWidth(bytes: number | null): number {
  if (bytes === null || bytes <= 1024) return 1;
  return Math.round(10 * (1 + 2.4 * Math.min(1, Math.log2(bytes / 1024) / 14))) / 10;
}

export { HEADER };
