// The parts of a network that the graph can show, once per report: modules, layers, runs of layers
// where there are too many for one picture, and layers that hang under the one they follow.

import type { Layer, Report, Tensor } from "../data";
import type { Item, Model } from "../model";

/** Boxes that a network with modules shows at first. */
export const FIRST_BOXES = 300;
/** Boxes of one level that are laid out whole. */
export const LEVEL_BOXES = 5000;

/** Layers that hang under one box at most. */
export const HANGING = 8;

export interface Part {
  /** The id of the item, "i" + index for an input, "r…" for a run of layers. */
  id: string;
  kind: "group" | "layer" | "run" | "input";
  item: Item | null;
  name: string;
  type: string;
  parent: Part | null;
  parts: Part[];
  /** Layers that hang under this one, in order. */
  hangs: Part[];
  /** The layer that this one hangs under. */
  host: Part | null;
  /** The only layer box of a module that has no other. */
  solo: Part | null;
  repeat: number;
  /** Index of the layer, or of the input's tensor. */
  index: number;
  layers: number[];
}

export interface Parts {
  report: Report;
  root: Part;
  byId: Map<string, Part>;
  /** Part of each layer that the graph can show. */
  ofLayer: (Part | undefined)[];
  /** The repeated module that hides a layer of its other repetitions. */
  hidden: (Part | undefined)[];
  /** Tensors that a layer of the graph reads. */
  tensors: Tensor[];
  inputs: Part[];
}

function part(id: string, kind: Part["kind"], item: Item | null, parent: Part | null): Part {
  return {
    id, kind, item, name: item?.name ?? "", type: item?.type ?? "", parent, parts: [], hangs: [],
    host: null, solo: null, repeat: item?.repeat ?? 1, index: item?.layer ?? -1, layers: item?.layers ?? [],
  };
}

export function buildParts(model: Model): Parts {
  const { report } = model;
  const root = part("root", "group", model.root, null);
  const parts: Parts = {
    report, root, byId: new Map([["root", root]]), ofLayer: [], hidden: [],
    tensors: report.tensors.filter((tensor) => tensor.consumers.length > 0), inputs: [],
  };
  const stack: [Item, Part][] = [[model.root, root]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [item, own] = next;
    for (const child of item.children) {
      const inner = part(child.id, child.kind, child, own);
      own.parts.push(inner);
      parts.byId.set(inner.id, inner);
      if (child.layer !== null) parts.ofLayer[child.layer] = inner;
      else stack.push([child, inner]);
    }
    (item.group?.instances ?? []).slice(1).forEach((layers) => {
      for (const layer of layers) parts.hidden[layer] = own;
    });
  }
  hangLayers(parts);
  const modules = root.parts.some((child) => child.kind === "group");
  for (const own of [...parts.byId.values()]) {
    if (own.kind === "group") {
      markSolo(own);
      splitRuns(parts, own, modules && own === root ? FIRST_BOXES : LEVEL_BOXES);
    }
  }
  addInputs(parts);
  return parts;
}

// A layer that costs no product, reads one tensor and keeps its size hangs under the producer,
// where nothing else reads that tensor.
function hangLayers(parts: Parts): void {
  const { report } = parts;
  const reads: Tensor[][] = report.layers.map(() => []);
  const writes: number[] = report.layers.map(() => 0);
  for (const tensor of parts.tensors) {
    for (const reader of new Set(tensor.consumers)) reads[reader]?.push(tensor);
    if (tensor.producer !== null) writes[tensor.producer] = (writes[tensor.producer] ?? 0) + 1;
  }
  report.layers.forEach((layer, index) => {
    const own = parts.ofLayer[index];
    const [tensor, more] = reads[index] ?? [];
    if (own === undefined || tensor === undefined || more !== undefined) return;
    const before = tensor.producer === null ? undefined : parts.ofLayer[tensor.producer];
    if (before === undefined || before.parent !== own.parent || before.kind !== "layer") return;
    if (new Set(tensor.consumers).size !== 1 || writes[before.index] !== 1) return;
    if (!isLight(layer) || size(tensor.shape) === null || size(tensor.shape) !== size(report.tensors[layer.outputs?.[0] ?? -1]?.shape)) return;
    const host = before.host ?? before;
    if (report.layers[host.index]?.status === "unknown") return;
    if ((host.hangs.at(-1) ?? host) !== before || host.hangs.length === HANGING) return;
    own.host = host;
    host.hangs.push(own);
  });
}

function isLight(layer: Layer): boolean {
  return layer.status !== "unknown" && !layer.window && !layer.gemm && layer.outputs?.length === 1 && (layer.times ?? 1) === 1;
}

function size(shape: readonly (number | string)[] | null | undefined): string | null {
  if (!shape) return null;
  const letters = shape.filter((side) => typeof side !== "number").sort();
  const product = shape.reduce<number>((all, side) => (typeof side === "number" ? all * side : all), 1);
  return [product, ...letters].join("×");
}

function markSolo(own: Part): void {
  const boxes = own.parts.filter((child) => child.host === null);
  const [only] = boxes;
  if (own.parent !== null && own.repeat === 1 && boxes.length === 1 && only?.kind === "layer") own.solo = only;
}

// Children beyond the limit are gathered in runs of consecutive ones, of equal length. What hangs
// under a layer is in its run.
function splitRuns(parts: Parts, own: Part, limit: number): void {
  let boxes = own.parts.filter((child) => child.host === null);
  for (let round = 0; boxes.length > limit; round++) {
    const length = Math.max(50, Math.ceil(boxes.length / limit));
    const runs: Part[] = [];
    for (let at = 0; at < boxes.length; at += length) {
      const inside = boxes.slice(at, at + length);
      const run = part(`r${own.id}/${round}/${at}`, "run", null, own);
      for (const child of inside) {
        child.parent = run;
        run.parts.push(child, ...child.hangs);
        run.layers.push(...child.layers, ...child.hangs.flatMap((hung) => hung.layers));
        for (const hung of child.hangs) hung.parent = run;
      }
      run.name = `${firstName(inside[0])} … ${lastName(inside.at(-1))}`;
      run.type = `${run.layers.length} layers`;
      parts.byId.set(run.id, run);
      runs.push(run);
    }
    own.parts = boxes = runs;
  }
}

function firstName(own: Part | undefined): string {
  return own === undefined ? "" : own.kind === "run" ? firstName(own.parts[0]) : own.name;
}

function lastName(own: Part | undefined): string {
  return own === undefined ? "" : own.kind === "run" ? lastName(own.parts.at(-1)) : own.name;
}

function addInputs(parts: Parts): void {
  parts.tensors.forEach((tensor, index) => {
    if (tensor.producer !== null) return;
    const input = part(`i${index}`, "input", null, parts.root);
    input.name = tensor.name;
    input.index = index;
    parts.inputs.push(input);
    parts.byId.set(input.id, input);
  });
  parts.root.parts.unshift(...parts.inputs);
}

/** Ids of the modules that are open at first: those around the first costly block. */
export function firstOpen(parts: Parts, share: (item: Item) => number | null): Set<string> {
  const open = new Set<string>();
  let boxes = boxCount(parts.root);
  let own: Part | undefined = parts.root;
  while (own !== undefined) {
    const modules: Part[] = own.parts.filter((child) => child.kind === "group" && child.solo === null);
    const shares = modules.map((child) => (child.item && share(child.item)) ?? 0);
    const most = Math.max(0, ...shares);
    own = modules[shares.findIndex((one) => one >= most / 4)];
    if (own === undefined) break;
    boxes += boxCount(own);
    if (boxes > FIRST_BOXES) break;
    open.add(own.id);
  }
  return open;
}

function boxCount(own: Part): number {
  return own.parts.filter((child) => child.host === null).length;
}
