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
  /** Whether nothing stands beyond the lane. */
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
        if (row[target] === end[source]! + 1) return "direct";
        if (position[target] === 0 && feeds[chainOf[target]!] === source) return "enter";
        if (chains[chainOf[source]!]!.at(-1) === source && joins[chainOf[source]!] === target) return "leave";
      }
      first = Math.min(first, row[target]! > row[source]! ? low + 1 : row[target]!);
      last = Math.max(last, row[target]! > row[source]! ? high - 1 : end[source]!);
      return "lane";
    });
    if (last >= first) things[chainOf[source]!]!.things.push({ chain: -1, net: index, first, last, things: [] });
    else own.forEach((way, at) => { if (way === "lane") own[at] = "direct"; });
    return own;
  });

  const edge = new Array<number>(graph.rows + 1).fill(-Infinity);
  const axis = new Array<number>(chains.length).fill(0);
  const put = (thing: Thing): void => {
    let free = -Infinity;
    for (let at = thing.first; at <= thing.last; at++) free = Math.max(free, edge[at]!);
    if (thing.net >= 0) {
      const x = free === -Infinity ? LANE : free + LANE;
      lane[thing.net] = x;
      for (let at = thing.first; at <= thing.last; at++) edge[at] = x;
      return;
    }
    const chain = chains[thing.chain]!;
    const reach = chain.reduce((most, node) => Math.max(most, sizes.left[node]!), 0);
    const x = thing.chain === 0 || free === -Infinity ? (thing.chain === 0 ? 0 : GUTTER + reach) : free + GUTTER + reach;
    axis[thing.chain] = x;
    for (let at = thing.first; at <= thing.last; at++) edge[at] = Math.max(edge[at]!, x);
    for (const node of chain) {
      for (let at = row[node]!; at <= end[node]!; at++) edge[at] = Math.max(edge[at]!, x + sizes.right[node]!);
    }
  };
  const stack: Thing[] = things.length > 0 ? [things[0]!] : [];
  for (let thing = stack.pop(); thing !== undefined; thing = stack.pop()) {
    put(thing);
    thing.things.sort((a, b) => b.last - b.first - (a.last - a.first) || b.first - a.first || b.chain - a.chain || b.net - a.net);
    stack.push(...thing.things);
  }
  return { axis, lane, ways, right: edge.reduce((most, one) => Math.max(most, one), 0) };
}
