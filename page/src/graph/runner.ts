// Runs the layout: small ones at once, large ones in a worker that starts from a Blob, so that the
// page answers meanwhile. Where no worker starts, the page lays out itself.

import { layout } from "./layout";
import type { Direction, Placed, Spec } from "./spec";
import LayoutWorker from "./worker?worker&inline";

const AT_ONCE = 1200;

export class Runner {
  private worker: Worker | null | undefined;
  private last = 0;

  /** Calls `done` with the layout, before it returns for a small one; only the newest is given. */
  run(spec: Spec, direction: Direction, done: (placed: Placed) => void): void {
    const id = ++this.last;
    const worker = count(spec) > AT_ONCE ? this.start() : null;
    if (worker === null) {
      done(layout(spec, direction));
      return;
    }
    const alone = (): void => {
      worker.terminate();
      this.worker = null;
      if (id === this.last) done(layout(spec, direction));
    };
    worker.onmessage = (event: MessageEvent<{ id: number; placed: Placed }>) => {
      if (event.data.id === this.last) done(event.data.placed);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      alone();
    };
    worker.postMessage({ id, spec, direction });
  }

  stop(): void {
    this.last++;
    this.worker?.terminate();
    this.worker = undefined;
  }

  private start(): Worker | null {
    if (this.worker === undefined) {
      try {
        this.worker = new LayoutWorker();
      } catch {
        this.worker = null;
      }
    }
    return this.worker;
  }
}

function count(spec: Spec): number {
  let sum = 0;
  const work = [spec];
  for (const own of work) {
    sum += own.nodes.length;
    for (const node of own.nodes) if (node.inner !== null) work.push(node.inner);
  }
  return sum;
}
