// The layout in a worker.

import { layout } from "./layout";
import type { Direction, Spec } from "./spec";

self.addEventListener("message", (event: MessageEvent<{ id: number; spec: Spec; direction: Direction }>) => {
  const { id, spec, direction } = event.data;
  self.postMessage({ id, placed: layout(spec, direction) });
});
