// Layered layout, one level at a time: an open module is laid out by itself and is a box of known
// size in its parent. Rows along the edges, the heaviest path straight on the main axis, other
// branches and skips beside it, all horizontal parts of edges in the gaps between rows.

import { ordered, type Ordered } from "./order";
import { packed, type Packed, type Way } from "./pack";
import { FRAME_WIDTH, HEADER, PADDING, type Direction, type Label, type Placed, type Route, type Spec, type SpecNet } from "./spec";

const GAP = 20;
/** Gaps of a frame below its header and above its lower border, where shapes need no label. */
const INTO = 15;
const OUT_OF = 11;
const TRACK = 7;
const LEAD = 8;
const TALL = 110;
const ARROW = 11;

/** Ways that an edge has its label on, the first choice first. */
const LABELLED: Way[] = ["straight", "direct", "enter", "leave"];

interface Flat {
  along: number[];
  /** Extents before and after the axis of each node, across. */
  left: number[];
  right: number[];
}

export function layout(spec: Spec, direction: Direction, nested = false): Placed {
  const inner = spec.nodes.map((node) => (node.inner === null ? null : layout(node.inner, direction, true)));
  const down = direction === "down";
  const w = spec.nodes.map((node, at) => inner[at] === null ? node.w : Math.max(FRAME_WIDTH, inner[at]!.w));
  const h = spec.nodes.map((node, at) => inner[at]?.h ?? node.h);
  const axis = spec.nodes.map((node, at) => inner[at]?.axis ?? (down ? node.w / 2 : Math.min(node.h / 2, node.anchor)));
  const flat: Flat = {
    along: down ? h : w,
    left: axis,
    right: (down ? w : h).map((across, at) => across - axis[at]!),
  };
  return new Level(spec, flat, direction, nested).place(w, h, inner);
}

class Level {
  private readonly count: number;
  private readonly enter: number;
  private readonly leave: number;
  private readonly graph: Ordered;
  private readonly pack: Packed;
  private readonly down: boolean;
  /** Where each row begins and ends, along; the end is without tall nodes. */
  private readonly top: number[] = [];
  private readonly bottom: number[] = [];
  /** Tracks of forks and joins, along, by net and by target. */
  private readonly fork = new Map<number, number>();
  private readonly join = new Map<number, number>();

  constructor(private readonly spec: Spec, private readonly flat: Flat, direction: Direction, private readonly nested: boolean) {
    this.down = direction === "down";
    let count = spec.nodes.length;
    this.enter = spec.nets.some((net) => net.source < 0) ? count++ : -1;
    this.leave = spec.nets.some((net) => net.targets.some((target) => target < 0)) ? count++ : -1;
    this.count = count;
    const weight = spec.nodes.map((node) => node.weight + 1e-6);
    for (const side of [this.enter, this.leave]) {
      if (side < 0) continue;
      weight[side] = 1e9;
      for (const sizes of [flat.along, flat.left, flat.right]) sizes[side] = 0;
    }
    const edges = spec.nets.flatMap((net) => {
      const [source, targets] = this.ends(net);
      return targets.map((target): [number, number] => [source, target]);
    });
    const tall = flat.along.map((size) => size > (this.down ? TALL : 2 * TALL));
    this.graph = ordered({ count, edges, weight, tall, first: this.enter, last: this.leave });
    this.pack = packed(this.graph, spec.nets, flat, (net) => this.ends(net));
    this.rows();
  }

  place(w: number[], h: number[], inner: (Placed | null)[]): Placed {
    const { graph, pack, flat } = this;
    const n = this.spec.nodes.length;
    const across = graph.row.map((_, node) => pack.axis[graph.chainOf[node]!]!);
    let low = 0;
    let high = pack.right;
    for (let node = 0; node < this.count; node++) {
      low = Math.min(low, across[node]! - flat.left[node]!);
      high = Math.max(high, across[node]! + flat.right[node]!);
    }
    const routes = this.routes(across);
    const labels = this.labels(across);
    for (const { net, skip, across: at } of labels) {
      const { label, skip: beside } = this.spec.nets[net]!;
      high = Math.max(high, at + (this.down ? (skip ? beside : label) + 8 : 6));
    }
    const long = this.bottom.reduce((most, one) => Math.max(most, one), this.length());
    return this.turned({ w, h, inner, across, low, high, long, routes, labels, n });
  }

  // From along and across to x and y, with the header and padding of a frame around it.
  private turned(flat: {
    w: number[]; h: number[]; inner: (Placed | null)[]; across: number[]; low: number; high: number; long: number;
    routes: { net: number; target: number; points: [number, number][] }[]; labels: FlatLabel[];
    n: number;
  }): Placed {
    const before = PADDING + (this.down || !this.nested ? 0 : HEADER) - flat.low;
    const header = this.nested ? HEADER : 0;
    const start = (this.down ? header : 0) + (this.enter >= 0 ? 0 : PADDING);
    const long = start + flat.long + (this.leave >= 0 ? 0 : PADDING);
    const wide = before + flat.high + PADDING;
    const xy = (along: number, across: number): [number, number] =>
      this.down ? [across + before, along + start] : [along + start, across + before];
    const x: number[] = [];
    const y: number[] = [];
    for (let node = 0; node < flat.n; node++) {
      [x[node], y[node]] = xy(this.top[this.graph.row[node]!]!, flat.across[node]! - this.flat.left[node]!);
    }
    const routes: Route[] = flat.routes.map(({ net, target, points }) => ({ net, target, points: points.flatMap(([a, b]) => xy(a, b)) }));
    const labels: Label[] = flat.labels.map(({ net, skip, along, across }) => {
      const [lx, ly] = xy(along, across);
      return { net, skip, x: lx, y: ly };
    });
    const [w, h] = this.down ? [wide, long] : [long, wide];
    return { w, h, axis: before, x, y, inner: flat.inner, routes, labels, frames: flat.w.map((_, at) => [flat.w[at]!, flat.h[at]!]) };
  }

  private ends(net: SpecNet): [number, number[]] {
    return [net.source < 0 ? this.enter : net.source, net.targets.map((target) => (target < 0 ? this.leave : target))];
  }

  private length(): number {
    const { graph, flat } = this;
    return flat.along.reduce((most, size, node) => Math.max(most, this.top[graph.row[node]!]! + size), 0);
  }

  // Tops of the rows. Each gap is as high as its tracks need.
  private rows(): void {
    const { graph, flat } = this;
    const gaps = this.tracks();
    const height = new Array<number>(graph.rows).fill(0);
    const ending: number[][] = Array.from({ length: graph.rows }, () => []);
    for (let node = 0; node < this.count; node++) {
      if (graph.end[node] === graph.row[node]) height[graph.row[node]!] = Math.max(height[graph.row[node]!]!, flat.along[node]!);
      else ending[graph.end[node]!]!.push(node);
    }
    for (let row = 0; row < graph.rows; row++) {
      this.top[row] = row === 0 ? 0 : this.bottom[row - 1]! + gaps[row]!;
      this.bottom[row] = this.top[row]! + height[row]!;
      for (const node of ending[row]!) {
        this.bottom[row] = Math.max(this.bottom[row]!, this.top[graph.row[node]!]! + flat.along[node]!);
      }
    }
    for (const [net, track] of this.fork) this.fork.set(net, this.bottom[graph.end[this.ends(this.spec.nets[net]!)[0]]!]! + LEAD + TRACK * track);
    for (const [target, track] of this.join) this.join.set(target, this.top[graph.row[target]!]! - ARROW - TRACK * track);
  }

  // The track of each fork and join in its gap, counted from its row; gives the height of the gaps.
  private tracks(): number[] {
    const { graph, pack } = this;
    const forks: Span[][] = Array.from({ length: graph.rows + 1 }, () => []);
    const joins: Span[][] = Array.from({ length: graph.rows + 1 }, () => []);
    const joined = new Map<number, Span>();
    const labels = new Array<number>(graph.rows + 1).fill(0);
    this.spec.nets.forEach((net, index) => {
      const [source, targets] = this.ends(net);
      const x = pack.axis[graph.chainOf[source]!]!;
      const fork: Span = { key: index, low: x, high: x };
      const lane = pack.lane[index];
      const gap = graph.end[source]! + 1;
      labels[gap] = Math.max(labels[gap] ?? 0, net.label);
      targets.forEach((target, at) => {
        const way = pack.ways[index]![at]!;
        const to = pack.axis[graph.chainOf[target]!]!;
        if (way === "enter" || way === "direct") widen(fork, to);
        if (way === "lane" && lane != null) widen(fork, lane);
        if (way !== "leave" && way !== "lane") return;
        let join = joined.get(target);
        if (join === undefined) {
          joined.set(target, (join = { key: target, low: to, high: to }));
          joins[graph.row[target]!]!.push(join);
        }
        widen(join, way === "leave" ? x : (lane ?? x));
      });
      if (fork.high > fork.low) forks[gap]!.push(fork);
    });
    return forks.map((spans, gap) => {
      const up = assign(spans, this.fork);
      const low = assign(joins[gap]!, this.join);
      const bends = TRACK * (Math.max(0, up - 1) + Math.max(0, low - 1)) + (up > 0 ? 8 : 0) + (low > 0 ? 6 : 0);
      const room = labels[gap]! > 0 ? (this.down ? GAP : labels[gap]! + 22) : this.down ? 0 : OUT_OF;
      const least = gap === 1 && this.enter >= 0 ? INTO : gap === graph.rows - 1 && this.leave >= 0 ? OUT_OF : GAP;
      return bends + Math.max(room, least);
    });
  }

  private routes(across: number[]): { net: number; target: number; points: [number, number][] }[] {
    const { graph, pack, flat } = this;
    return this.spec.nets.flatMap((net, index) => {
      const [source, targets] = this.ends(net);
      const from = across[source]!;
      const start = this.top[graph.row[source]!]! + flat.along[source]!;
      return targets.map((target, at) => {
        const to = across[target]!;
        const stop = this.top[graph.row[target]!]!;
        const fork = this.fork.get(index) ?? start;
        const join = this.join.get(target) ?? stop;
        const points: [number, number][] = [[start, from]];
        const way = pack.ways[index]![at]!;
        const lane = pack.lane[index] ?? from;
        if (way === "enter" || way === "direct") points.push([fork, from], [fork, to]);
        if (way === "leave") points.push([join, from], [join, to]);
        if (way === "lane") points.push([fork, from], [fork, lane], [join, lane], [join, to]);
        points.push([stop, to]);
        return { net: index, target: net.targets[at]!, points: cornersOnly(points) };
      });
    });
  }

  // One label for each net: where it enters the next box straight, else right below its source.
  private labels(across: number[]): FlatLabel[] {
    const { graph, pack, flat } = this;
    const found: FlatLabel[] = [];
    this.spec.nets.forEach((net, index) => {
      const row = pack.skips[index];
      const alone = pack.ways[index]!.every((way) => way === "lane");
      if (row != null) found.push({ net: index, skip: !alone, along: (this.top[row]! + this.bottom[row]!) / 2, across: pack.lane[index]! });
      if (net.label <= 0 || alone) return;
      const [source, targets] = this.ends(net);
      const ways = pack.ways[index]!;
      const way = LABELLED.find((one) => ways.includes(one))!;
      const at = ways.indexOf(way);
      const target = targets[at]!;
      const start = this.top[graph.row[source]!]! + flat.along[source]!;
      const stop = this.top[graph.row[target]!]!;
      const fork = this.fork.get(index);
      const join = this.join.get(target);
      const gap = this.bottom[graph.end[source]!]!;
      const next = this.top[graph.end[source]! + 1] ?? gap + GAP;
      if (way === "straight") {
        const high = Math.max(fork ?? start, start);
        const low = Math.min(join ?? stop, stop);
        found.push({ net: index, skip: false, along: this.down && low - high > 60 ? high + 13 : (high + low) / 2, across: across[source]! });
      } else if (way === "direct" || way === "enter") {
        found.push({ net: index, skip: false, along: ((fork ?? start) + (way === "enter" ? next : Math.min(join ?? stop, stop))) / 2, across: across[target]! });
      } else if (way === "leave") {
        const low = Math.min(join ?? stop, next);
        found.push({ net: index, skip: false, along: this.down && low - start > 60 ? start + 13 : (start + low) / 2, across: across[source]! });
      }
    });
    return found;
  }
}

interface FlatLabel {
  net: number;
  skip: boolean;
  along: number;
  across: number;
}

interface Span {
  key: number;
  low: number;
  high: number;
}

function widen(span: Span, to: number): void {
  span.low = Math.min(span.low, to);
  span.high = Math.max(span.high, to);
}

// Spans that overlap get different tracks, short ones the nearest. Gives the number of tracks.
function assign(spans: Span[], tracks: Map<number, number>): number {
  const rows: Span[][] = [];
  spans.sort((a, b) => a.high - a.low - (b.high - b.low) || a.low - b.low || a.key - b.key);
  for (const span of spans) {
    let at = rows.findIndex((row) => row.every((other) => other.high + 10 < span.low || span.high + 10 < other.low));
    if (at < 0) at = rows.push([]) - 1;
    rows[at]!.push(span);
    tracks.set(span.key, at);
  }
  return rows.length;
}

function cornersOnly(points: [number, number][]): [number, number][] {
  return points.filter((point, at) => {
    const before = points[at - 1];
    const after = points[at + 1];
    if (before === undefined || after === undefined) return true;
    if (before[0] === point[0] && before[1] === point[1]) return false;
    return !((before[0] === point[0] && point[0] === after[0]) || (before[1] === point[1] && point[1] === after[1]));
  });
}
