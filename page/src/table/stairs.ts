// Where the bar of a row starts: after the layers before it, so that the column is a staircase.

import type { Item } from "../model";
import type { Store } from "../store";

export class Stairs {
  private readonly starts = new Map<string, Float64Array>();

  constructor(private readonly store: Store) {}

  /** Share of the layers before an item. */
  start(item: Item, column: string): number {
    const first = item.layers[0];
    if (first === undefined) return 0;
    let starts = this.starts.get(column);
    if (starts === undefined) {
      starts = this.sum(column);
      this.starts.set(column, starts);
    }
    return starts[first] ?? 0;
  }

  private sum(column: string): Float64Array {
    const values = this.store.cells(column)?.values ?? [];
    const count = this.store.report.layers.length;
    const starts = new Float64Array(count + 1);
    for (let i = 0; i < count; i++) starts[i + 1] = (starts[i] ?? 0) + (values[i] ?? 0);
    return starts;
  }
}
