// The state of a page of networks: its panes read it, change it with `set`, and hear of changes.

import type { Sort, State } from "../store";
import { matching, sorted } from "./choice";
import type { Network, NetworkColumn, NetworksData } from "./data";

export interface Listed {
  query: string;
  sort: Sort | null;
  /** Names of the columns of the two axes. */
  x: string;
  y: string;
  /** Keys of rows. */
  selection: string | null;
  hover: string | null;
  theme: State["theme"];
}

type Key = keyof Listed;

interface Listener {
  keys: readonly Key[];
  run: () => void;
}

export class Networks {
  state: Listed;
  /** Rows that match the search, in the order of the table. */
  rows: Network[];
  readonly byKey: ReadonlyMap<string, Network>;
  private readonly listeners: Listener[] = [];

  constructor(readonly data: NetworksData, theme: State["theme"]) {
    const names = this.figures.map((column) => column.name);
    const wanted = (name: string, other: number): string => (names.includes(name) ? name : names[other] ?? "");
    this.state = { query: "", sort: null, x: wanted("params", 0), y: wanted("macs", 1), selection: null, hover: null, theme };
    this.byKey = new Map(data.rows.map((row) => [row.key, row]));
    this.rows = data.rows;
  }

  /** Columns that can be an axis. */
  get figures(): NetworkColumn[] {
    return this.data.columns.filter((column) => column.kind !== "text");
  }

  /** The number behind a figure; null where it is unknown. */
  value(row: Network, column: string): number | null {
    const value = row.values[this.data.columns.findIndex((one) => one.name === column)];
    return typeof value === "number" ? value : null;
  }

  set(patch: Partial<Listed>): void {
    const changed = (Object.keys(patch) as Key[]).filter((key) => this.state[key] !== patch[key]);
    if (changed.length === 0) return;
    this.state = { ...this.state, ...patch };
    if (changed.includes("query") || changed.includes("sort")) {
      this.rows = sorted(this.data, matching(this.data, this.state.query), this.state.sort);
    }
    for (const listener of [...this.listeners]) {
      if (listener.keys.some((key) => changed.includes(key))) listener.run();
    }
  }

  on(keys: readonly Key[], run: () => void): () => void {
    const listener = { keys, run };
    this.listeners.push(listener);
    return () => {
      const at = this.listeners.indexOf(listener);
      if (at >= 0) this.listeners.splice(at, 1);
    };
  }
}
