// Rows that match a search, and their order. A word must occur in a text of the row; a condition
// such as macs<1G or params>=5e6 compares a figure.

import type { Sort } from "../store";
import type { Network, NetworkColumn, NetworksData } from "./data";

const CONDITION = /^([\w ]+?)(<=|>=|<|>|=)([\d.]+(?:e[+-]?\d+)?)([kMGTPE]?)B?$/i;
const FACTORS: Record<string, number> = { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b,
};

type Test = (row: Network) => boolean;

export function matching(data: NetworksData, query: string): Network[] {
  const tests = query.split(/\s+/).filter((word) => word !== "").map((word) => testOf(data.columns, word));
  return tests.length === 0 ? data.rows : data.rows.filter((row) => tests.every((test) => test(row)));
}

function testOf(columns: NetworkColumn[], word: string): Test {
  const [, name = "", sign = "", digits = "", prefix = ""] = CONDITION.exec(word) ?? [];
  const at = columns.findIndex((column) => column.kind !== "text" && [column.name, column.title].some((one) => one.toLowerCase() === name.toLowerCase()));
  const compare = COMPARE[sign];
  if (at < 0 || compare === undefined) {
    const wanted = word.toLowerCase();
    return (row) => [row.name, ...row.texts, row.error ?? ""].some((text) => text.toLowerCase().includes(wanted));
  }
  const bound = Number(digits) * (FACTORS[prefix] ?? FACTORS[prefix.toUpperCase()] ?? 1);
  return (row) => {
    const value = row.values[at];
    return typeof value === "number" && compare(value, bound);
  };
}

/** The rows by a column, unknown figures last; without a sort in the order of the file. */
export function sorted(data: NetworksData, rows: Network[], sort: Sort | null): Network[] {
  if (sort === null) return rows;
  const at = data.columns.findIndex((column) => column.name === sort.column);
  const way = sort.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a.values[at] ?? null, b.values[at] ?? null];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "number" && typeof y === "number") return way * (x - y);
    return way * String(x).localeCompare(String(y), "en", { numeric: true });
  });
}
