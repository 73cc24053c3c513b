// Motion from one picture to the next: positions, not opacity, in 180 ms.

import type { Scene, SceneBox, SceneEdge } from "./scene";

const LASTING = 180;

export function moves(): boolean {
  return !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** The picture `to` with its boxes on the way from where they, or the modules around them, were. */
export function between(from: Scene, to: Scene, share: number): Scene {
  const part = (a: number, b: number): number => a + (b - a) * share;
  const boxes = to.boxes.map((own): SceneBox => {
    const old = origin(from, own);
    return old === undefined ? own : { ...own, x: part(old.x, own.x), y: part(old.y, own.y) };
  });
  const olds = new Map(from.edges.map((edge) => [edge.key, edge]));
  const edges = to.edges.map((edge): SceneEdge => {
    const old = olds.get(edge.key);
    if (old === undefined || old.routes.length !== edge.routes.length) return edge;
    return {
      ...edge,
      routes: edge.routes.map((points, at) => {
        const before = old.routes[at]!;
        return before.length === points.length ? points.map((value, i) => part(before[i]!, value)) : points;
      }),
      labels: edge.labels.map((label, at) => {
        const before = old.labels[at];
        return before === undefined ? label : { ...label, x: part(before.x, label.x), y: part(before.y, label.y) };
      }),
    };
  });
  return { ...to, boxes, edges, byId: new Map(boxes.map((own) => [own.id, own])), cells: to.cells };
}

function origin(from: Scene, own: SceneBox): SceneBox | undefined {
  const old = from.byId.get(own.id);
  if (old !== undefined) return old;
  for (let up = own.box.part.parent; up !== null; up = up.parent) {
    const around = from.byId.get(up.id);
    if (around !== undefined) return around;
  }
  return undefined;
}

export class Motion {
  private frame = 0;

  /** Calls `step` with shares that go from 0 to 1, then `done`. */
  run(step: (share: number) => void, done: () => void): void {
    this.stop();
    const start = performance.now();
    const tick = (now: number): void => {
      const share = Math.min(1, Math.max(0, (now - start) / LASTING));
      if (share >= 1) {
        this.frame = 0;
        done();
        return;
      }
      step(1 - (1 - share) ** 3);
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}
