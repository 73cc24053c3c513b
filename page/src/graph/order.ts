// Order of the nodes of one level: ranks without cycles, the main axis, and the chains beside it.

export interface Ordered {
  /** Nodes in an order in which sources come first. */
  order: number[];
  /** First row of each node. */
  row: number[];
  /** Last row of each node: beyond the first for a tall one with room below it. */
  end: number[];
  rows: number;
  /** Chains of nodes that stand under each other; the first is the main axis. */
  chains: number[][];
  chainOf: number[];
  next: number[][];
  before: number[][];
}

export interface Unordered {
  count: number;
  edges: [number, number][];
  weight: number[];
  /** Nodes that may span rows. */
  tall: boolean[];
  /** Nodes that have the first and the last row for themselves, or -1. */
  first: number;
  last: number;
}

export function ordered(graph: Unordered): Ordered {
  const { count, edges, weight, tall } = graph;
  const next: number[][] = Array.from({ length: count }, () => []);
  const before: number[][] = Array.from({ length: count }, () => []);
  const all: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) all[from]!.push(to);
  const order = sequence(count, all);
  const place = new Array<number>(count);
  order.forEach((node, at) => (place[node] = at));
  const seen = new Set<number>();
  for (const [one, two] of edges) {
    // An edge against the order belongs to a cycle; it counts the other way round.
    const [from, to] = place[one]! < place[two]! ? [one, two] : [two, one];
    if (from === to || seen.has(from * count + to)) continue;
    seen.add(from * count + to);
    next[from]!.push(to);
    before[to]!.push(from);
  }
  const chains = chainsOf(count, order, next, before, weight);
  const chainOf = new Array<number>(count);
  chains.forEach((chain, index) => chain.forEach((node) => (chainOf[node] = index)));
  const row = rowsOf(order, next, before, chainOf, graph.first);
  if (graph.last >= 0) row[graph.last] = row.reduce((most, one, node) => (node === graph.last ? most : Math.max(most, one + 1)), 0);
  const rows = row.reduce((most, one) => Math.max(most, one + 1), 0);
  const end = row.map((first, node) => {
    if (!tall[node]) return first;
    return Math.max(first, next[node]!.reduce((least, to) => Math.min(least, row[to]! - 1), rows - 1));
  });
  return { order, row, end, rows, chains, chainOf, next, before };
}

// Topological order that prefers small indices and, in a cycle, takes the smallest node that is left.
function sequence(count: number, next: number[][]): number[] {
  const missing = new Array<number>(count).fill(0);
  for (const targets of next) for (const to of targets) missing[to] = missing[to]! + 1;
  const done = new Array<boolean>(count).fill(false);
  const heap = new Heap();
  for (let node = 0; node < count; node++) if (missing[node] === 0) heap.push(node);
  const order: number[] = [];
  let least = 0;
  while (order.length < count) {
    let node = heap.pop();
    if (node === undefined) {
      while (done[least]) least++;
      node = least;
    }
    if (done[node]) continue;
    done[node] = true;
    order.push(node);
    for (const to of next[node]!) {
      missing[to] = missing[to]! - 1;
      if (missing[to] === 0 && !done[to]) heap.push(to);
    }
  }
  return order;
}

class Heap {
  private readonly items: number[] = [];

  push(item: number): void {
    const items = this.items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (items[up]! <= item) break;
      items[at] = items[up]!;
      at = up;
    }
    items[at] = item;
  }

  pop(): number | undefined {
    const items = this.items;
    const top = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= items.length) break;
      if (down + 1 < items.length && items[down + 1]! < items[down]!) down++;
      if (items[down]! >= last) break;
      items[at] = items[down]!;
      at = down;
    }
    items[at] = last;
    return top;
  }
}

// The heaviest path is the main axis; of what is left, each chain goes on with its heaviest successor.
function chainsOf(count: number, order: number[], next: number[][], before: number[][], weight: number[]): number[][] {
  const best = new Array<number>(count).fill(0);
  const from = new Array<number>(count).fill(-1);
  for (const node of order) {
    for (const source of before[node]!) {
      if (from[node]! < 0 || best[source]! > best[from[node]!]!) from[node] = source;
    }
    best[node] = weight[node]! + (from[node]! < 0 ? 0 : best[from[node]!]!);
  }
  const rest = new Array<number>(count).fill(0);
  for (let at = count - 1; at >= 0; at--) {
    const node = order[at]!;
    for (const to of next[node]!) rest[node] = Math.max(rest[node]!, rest[to]!);
    rest[node] = rest[node]! + weight[node]!;
  }
  const used = new Array<boolean>(count).fill(false);
  const chains: number[][] = [];
  if (count > 0) {
    let last = order[0]!;
    for (const node of order) if (best[node]! > best[last]!) last = node;
    const spine: number[] = [];
    for (let node = last; node >= 0; node = from[node]!) spine.push(node);
    spine.reverse();
    for (const node of spine) used[node] = true;
    chains.push(spine);
  }
  for (const first of order) {
    if (used[first]) continue;
    const chain: number[] = [];
    for (let node: number | undefined = first; node !== undefined; ) {
      used[node] = true;
      chain.push(node);
      let heir: number | undefined;
      for (const to of next[node]!) if (!used[to] && (heir === undefined || rest[to]! > rest[heir]!)) heir = to;
      node = heir;
    }
    chains.push(chain);
  }
  return chains;
}

// Rows by longest path. A chain beside the main axis stands in the middle of the rows it may use; one
// that reads nothing stands right before its reader.
function rowsOf(order: number[], next: number[][], before: number[][], chainOf: number[], top: number): number[] {
  const first = new Array<number>(order.length).fill(top >= 0 ? 1 : 0);
  if (top >= 0) first[top] = 0;
  for (const node of order) for (const to of next[node]!) first[to] = Math.max(first[to]!, first[node]! + 1);
  const last = [...first];
  for (let at = order.length - 1; at >= 0; at--) {
    const node = order[at]!;
    if (next[node]!.length > 0) last[node] = next[node]!.reduce((least, to) => Math.min(least, last[to]! - 1), Infinity);
  }
  const fed = new Array<boolean>(order.length).fill(false);
  const row = new Array<number>(order.length).fill(0);
  for (const node of order) {
    let earliest = 0;
    for (const source of before[node]!) {
      earliest = Math.max(earliest, row[source]! + 1);
      if (fed[source] || chainOf[source] === 0) fed[node] = true;
    }
    const early = first[node]!;
    if (node === top) continue;
    const late = last[node]!;
    const wanted = chainOf[node] === 0 ? early : fed[node] ? early + ((late - early) >> 1) : late;
    row[node] = Math.max(earliest, wanted);
  }
  return row;
}
