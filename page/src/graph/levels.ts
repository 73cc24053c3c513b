// What is visible: levels of boxes and nets for a set of open modules. A net is one or more tensors
// with the same source and targets among the boxes of a level.

import type { Tensor } from "../data";
import type { Part, Parts } from "./parts";

/** Source of what comes from outside a level, target of what leaves it. */
export const OUTSIDE = -1;

export interface Box {
  /** Id of its part; of the layer where a module has but one. */
  id: string;
  part: Part;
  kind: "input" | "layer" | "module" | "frame";
  name: string;
  level: Level | null;
}

export interface Net {
  key: string;
  source: number;
  targets: number[];
  /** Indices in Parts.tensors. */
  tensors: number[];
  label: string;
  bytes: number | null;
  /** Whether a target adds it to something else: beside a branch, it is the identity. */
  added: boolean;
}

export interface Level {
  part: Part;
  boxes: Box[];
  nets: Net[];
}

export interface Visible {
  root: Level;
  /** Every level, outer ones first. */
  levels: Level[];
  /** Where a part is a box: its level and its index. */
  at: Map<Part, Spot>;
}

interface Spot {
  level: Level;
  index: number;
}

export function visibleLevels(parts: Parts, open: ReadonlySet<string>): Visible {
  const at = new Map<Part, Spot>();
  const root: Level = { part: parts.root, boxes: [], nets: [] };
  const levels: Level[] = [root];
  for (const level of levels) {
    for (const part of level.part.parts) {
      if (part.host !== null) continue;
      const box = boxOf(part, open);
      at.set(part, { level, index: level.boxes.length });
      level.boxes.push(box);
      if (box.kind === "frame") {
        box.level = { part, boxes: [], nets: [] };
        levels.push(box.level);
      }
    }
  }
  new Nets(parts, at).add();
  return { root, levels, at };
}

function boxOf(part: Part, open: ReadonlySet<string>): Box {
  const solo = part.solo;
  if (solo !== null) return { id: solo.id, part: solo, kind: "layer", name: `${part.name}.${solo.name}`, level: null };
  if (part.kind === "input" || part.kind === "layer") return { id: part.id, part, kind: part.kind, name: part.name, level: null };
  return { id: part.id, part, kind: open.has(part.id) ? "frame" : "module", name: part.name, level: null };
}

/** The visible part that stands for a part: itself, what it hangs under, or a module around it. */
export function shownPart(part: Part | undefined, at: ReadonlyMap<Part, Spot>): Part | undefined {
  let own = part?.host ?? part;
  while (own !== undefined && !at.has(own)) own = own.parent ?? undefined;
  return own;
}

class Nets {
  private readonly found = new Map<Level, Map<string, Net>>();

  constructor(private readonly parts: Parts, private readonly at: Map<Part, Spot>) {}

  add(): void {
    this.parts.tensors.forEach((tensor, index) => this.addTensor(tensor, index));
    for (const [level, nets] of this.found) level.nets = [...nets.values()];
  }

  private addTensor(tensor: Tensor, index: number): void {
    const source = tensor.producer === null
      ? this.spots(this.parts.byId.get(`i${index}`))
      : this.layerSpots(tensor.producer);
    if (source === null) return;
    const targets = [...new Set(tensor.consumers)].map((layer) => this.layerSpots(layer)).filter((spots) => spots !== null);
    const ends = new Map<Level, Set<number>>();
    for (const spots of targets) {
      for (const [level, target] of spots) {
        if (source.get(level) === target) continue;
        let set = ends.get(level);
        if (set === undefined) ends.set(level, (set = new Set()));
        set.add(target);
      }
    }
    for (const [level] of source) {
      if (targets.every((spots) => spots.has(level))) continue;
      let set = ends.get(level);
      if (set === undefined) ends.set(level, (set = new Set()));
      set.add(OUTSIDE);
    }
    for (const [level, set] of ends) {
      this.net(level, source.get(level) ?? OUTSIDE, [...set].sort((a, b) => a - b), index);
    }
  }

  // The box around a part in each visible level that contains it.
  private spots(part: Part | undefined): Map<Level, number> | null {
    const found = new Map<Level, number>();
    for (let own = shownPart(part, this.at); own !== undefined && own.parent !== null; own = shownPart(own.parent, this.at)) {
      const spot = this.at.get(own);
      if (spot === undefined) return null;
      found.set(spot.level, spot.index);
    }
    return found.size > 0 ? found : null;
  }

  private layerSpots(layer: number): Map<Level, number> | null {
    return this.spots(this.parts.ofLayer[layer] ?? this.parts.hidden[layer]);
  }

  private net(level: Level, source: number, targets: number[], tensor: number): void {
    let nets = this.found.get(level);
    if (nets === undefined) this.found.set(level, (nets = new Map()));
    const key = `${source}>${targets.join(",")}`;
    const net = nets.get(key);
    if (net === undefined) {
      nets.set(key, {
        key: `${level.part.id}|${this.endId(level, source)}>${targets.map((to) => this.endId(level, to)).join()}`,
        source, targets, tensors: [tensor], label: this.label([tensor]),
        bytes: this.parts.tensors[tensor]?.bytes ?? null, added: targets.some((to) => level.boxes[to]?.part.type === "add"),
      });
      return;
    }
    const bytes = this.parts.tensors[tensor]?.bytes ?? null;
    net.tensors.push(tensor);
    net.bytes = net.bytes === null || bytes === null ? null : net.bytes + bytes;
    net.label = this.label(net.tensors);
  }

  private endId(level: Level, index: number): string {
    return index === OUTSIDE ? "" : (level.boxes[index]?.id ?? "");
  }

  private label(tensors: number[]): string {
    const shapes = [...new Set(tensors.map((index) => shapeLabel(this.parts.tensors[index]?.shape)))];
    return shapes.length > 2 ? `${tensors.length} tensors` : shapes.join(", ");
  }
}

/** A shape without its batch: 64×56×56. */
export function shapeLabel(shape: readonly (number | string)[] | null | undefined): string {
  if (!shape) return "?";
  return (shape.length > 1 ? shape.slice(1) : shape).join("×");
}
