// Where chains and long edges stand across: each as near to the main axis as the rows it needs allow,
// short ones first, so that nested skips do not cross.

import type { Ordered } from "./order";
import type { SpecNet } from "./spec";

export interface Sizes {
  /** Extent of each node before and after its own axis, across. */
  left: number[];
  right: number[];
}

/** How an edge gets from its source to a target. */
export type Way = "straight" | "enter" | "leave" | "direct" | "lane";

export interface Packed {
  /** Axis of each chain, across. */
  axis: number[];
  /** Lane of each net that needs one, across. */
  lane: (number | null)[];
  /** Way to each target of each net. */
  ways: Way[][];
  /** Row with room for a text beside the lane, for nets that have one. */
  skips: (number | null)[];
  /** Where the last of them ends, across. */
  right: number;
}

interface Thing {
  chain: number;
  net: number;
  first: number;
  last: number;
  things: Thing[];
}

const GUTTER = 28;
const LANE = 12;

/** `ends` gives the node of an end of a net: its index, or a pseudo node for the outside. */
export function packed(graph: Ordered, nets: SpecNet[], sizes: Sizes, ends: (net: SpecNet) => [number, number[]]): Packed {
  const { chains, chainOf, row, end, next, before } = graph;
  const position = new Array<number>(row.length).fill(0);
  for (const chain of chains) chain.forEach((node, at) => (position[node] = at));
  const feeds = chains.map((chain) => before[chain[0]!]!.reduce((best, one) => (best < 0 || end[one]! > end[best]! ? one : best), -1));
  const joins = chains.map((chain) => next[chain.at(-1)!]!.reduce((best, one) => (best < 0 || row[one]! < row[best]! ? one : best), -1));
  const lane: (number | null)[] = nets.map(() => null);

  const things: Thing[] = chains.map((chain, index) => ({
    chain: index, net: -1, things: [],
    first: feeds[index]! >= 0 ? Math.min(row[chain[0]!]!, end[feeds[index]!]! + 1) : row[chain[0]!]!,
    last: joins[index]! >= 0 ? Math.max(end[chain.at(-1)!]!, row[joins[index]!]! - 1) : end[chain.at(-1)!]!,
  }));
  for (let index = 1; index < things.length; index++) {
    const parent = feeds[index]! >= 0 ? chainOf[feeds[index]!]! : joins[index]! >= 0 ? chainOf[joins[index]!]! : 0;
    things[parent === index ? 0 : parent]!.things.push(things[index]!);
  }

  const spans: [number, number][] = nets.map(() => [0, -1]);
  const ways = nets.map((net, index) => {
    const [source, targets] = ends(net);
    let last = -1;
    let first = Infinity;
    const own = targets.map((target): Way => {
      const low = Math.min(end[source]!, end[target]!);
      const high = Math.max(row[source]!, row[target]!);
      if (row[target]! > row[source]!) {
        const same = chainOf[source] === chainOf[target];
        if (same && position[target] === position[source]! + 1) return "straight";
        if (position[target] === 0 && feeds[chainOf[target]!] === source) return "enter";
        if (chains[chainOf[source]!]!.at(-1) === source && joins[chainOf[source]!] === target) return "leave";
        if (row[target] === end[source]! + 1) return "direct";
      }
      first = Math.min(first, row[target]! > row[source]! ? low + 1 : row[target]!);
      last = Math.max(last, row[target]! > row[source]! ? high - 1 : end[source]!);
      return "lane";
    });
    spans[index] = [first, last];
    if (last >= first) things[chainOf[source]!]!.things.push({ chain: -1, net: index, first, last, things: [] });
    else own.forEach((way, at) => { if (way === "lane") own[at] = "direct"; });
    return own;
  });

  const grid = new Grid();
  const axis = new Array<number>(chains.length).fill(0);
  let right = 0;
  const put = (thing: Thing): void => {
    if (thing.net >= 0) {
      const x = grid.place(thing.first, thing.last, LANE, 0) + LANE;
      lane[thing.net] = x;
      right = Math.max(right, x);
      return;
    }
    const chain = chains[thing.chain]!;
    if (thing.chain === 0) {
      grid.take(0, 0, thing.first, thing.last);
      for (const node of chain) grid.take(0, sizes.right[node]!, row[node]!, end[node]!);
    } else {
      const reach = chain.reduce((most, node) => Math.max(most, sizes.left[node]!), 0);
      const wide = chain.reduce((most, node) => Math.max(most, sizes.right[node]!), 0);
      axis[thing.chain] = grid.place(thing.first, thing.last, GUTTER + reach, wide) + GUTTER + reach;
    }
    for (const node of chain) right = Math.max(right, axis[thing.chain]! + sizes.right[node]!);
  };
  const stack: Thing[] = things.length > 0 ? [things[0]!] : [];
  for (let thing = stack.pop(); thing !== undefined; thing = stack.pop()) {
    put(thing);
    thing.things.sort((a, b) => b.last - b.first - (a.last - a.first) || b.first - a.first || b.chain - a.chain || b.net - a.net);
    stack.push(...thing.things);
  }
  const skips = nets.map((net, index) => {
    const x = lane[index];
    // An edge that has nothing but its lane has its shape there.
    const long = ways[index]!.every((way) => way === "lane") ? net.label : net.skip;
    if (long <= 0 || x == null) return null;
    const found = grid.room(x + 4, x + LANE + long, spans[index]![0], spans[index]![1]);
    if (found !== null) right = Math.max(right, x + LANE + long);
    return found;
  });
  return { axis, lane, ways, skips, right };
}

const COLUMN = 6;

// Narrow columns beside the main axis, each with the rows that are taken in it.
class Grid {
  /** First and last rows of what is taken, in turn and in order, for each column. */
  private readonly columns: number[][] = [];

  /** Takes the first place with room for `before` and `after`, and gives where it begins. */
  place(first: number, last: number, before: number, after: number): number {
    const needed = Math.max(1, Math.ceil((before + after) / COLUMN));
    let at = 0;
    for (let free = 0; free < needed; ) {
      if (this.free(at + free, first, last)) free++;
      else [at, free] = [at + free + 1, 0];
    }
    for (let column = at; column < at + needed; column++) this.insert(column, first, last);
    return at * COLUMN;
  }

  take(from: number, to: number, first: number, last: number): void {
    for (let column = Math.floor(from / COLUMN); column * COLUMN < Math.max(to, from + 1); column++) this.insert(column, first, last);
  }

  /** Takes the middlemost row in which a strip is free, or gives null. */
  room(from: number, to: number, first: number, last: number): number | null {
    const middle = (first + last) >> 1;
    for (let off = 0; off <= last - first; off++) {
      for (const row of off === 0 ? [middle] : [middle - off, middle + off]) {
        if (row < first || row > last) continue;
        let free = true;
        for (let column = Math.ceil(from / COLUMN); column * COLUMN < to; column++) free &&= this.free(column, row, row);
        if (!free) continue;
        this.take(from, to, row, row);
        return row;
      }
    }
    return null;
  }

  private free(column: number, first: number, last: number): boolean {
    const rows = this.columns[column];
    if (rows === undefined) return true;
    const at = this.after(rows, first);
    return at >= rows.length || rows[at]! > last;
  }

  // Index of the first span that ends at a row or below it.
  private after(rows: number[], row: number): number {
    let low = 0;
    let high = rows.length / 2;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (rows[2 * mid + 1]! < row) low = mid + 1;
      else high = mid;
    }
    return 2 * low;
  }

  private insert(column: number, first: number, last: number): void {
    const rows = (this.columns[column] ??= []);
    const at = this.after(rows, first - 1);
    let stop = at;
    while (stop < rows.length && rows[stop]! <= last + 1) {
      first = Math.min(first, rows[stop]!);
      last = Math.max(last, rows[stop + 1]!);
      stop += 2;
    }
    rows.splice(at, stop - at, first, last);
  }
}
