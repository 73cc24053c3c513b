// What the pane asks of a drawing: SVG for up to a thousand boxes, a canvas above.

import type { Look } from "./look";
import type { Scene } from "./scene";

export interface View {
  x: number;
  y: number;
  k: number;
}

/** What is lit: ids of boxes and cells, keys of edges. */
export interface Marks {
  selected: string | null;
  hovered: string | null;
  /** Boxes that read what the selected or hovered one writes. */
  users: ReadonlySet<string>;
  edges: ReadonlySet<string>;
  /** The box of the layer with the error of a text that is being edited. */
  fault: string | null;
  /** Boxes that match the search, or null without a search. */
  lit: ReadonlySet<string> | null;
}

export interface Drawing {
  readonly element: Element;
  /** Draws other boxes, or the same in other colours. */
  draw(scene: Scene, look: Look): void;
  /** Draws the same boxes elsewhere: a step of the motion to `scene`. */
  move(scene: Scene): void;
  mark(marks: Marks): void;
  look(view: View): void;
  destroy(): void;
}

export const DETAIL = 0.6;
export const NAMES = 0.35;
export const DIM = 0.32;

export const NO_MARKS: Marks = { selected: null, hovered: null, users: new Set(), edges: new Set(), fault: null, lit: null };
