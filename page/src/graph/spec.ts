// What the layout reads and what it gives. "Along" is the direction of the edges, "across" the other
// one: y and x in a graph that runs down, x and y in one that runs to the right.

export interface SpecNode {
  w: number;
  h: number;
  /** What is inside, for a frame; its size follows from that. */
  inner: Spec | null;
  /** Where edges meet the box of a graph that runs to the right, from its top. */
  anchor: number;
  /** How much the node should stay on the main axis. */
  weight: number;
}

export interface SpecNet {
  /** Index of a node, or -1 for the outside of the level. */
  source: number;
  targets: number[];
  /** Length of its label in pixels. */
  label: number;
  /** Length of the text beside its lane, 0 for none. */
  skip: number;
}

export interface Spec {
  nodes: SpecNode[];
  nets: SpecNet[];
}

export type Direction = "down" | "right";

export interface Route {
  net: number;
  /** Index of the target, or -1. */
  target: number;
  /** x and y of each corner, in turn. */
  points: number[];
}

export interface Label {
  net: number;
  /** Whether it is the text beside the lane. */
  skip: boolean;
  x: number;
  y: number;
}

export interface Placed {
  w: number;
  h: number;
  /** Where the main axis is, across. */
  axis: number;
  x: number[];
  y: number[];
  /** Width and height of each node. */
  frames: [number, number][];
  inner: (Placed | null)[];
  routes: Route[];
  labels: Label[];
}

export const HEADER = 24;
export const PADDING = 12;
export const FRAME_WIDTH = 202;
