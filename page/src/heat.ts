// Eight heat classes. A column with shares doubles its share from class to class; another column
// has the same classes over quantiles.

import type { Item } from "./model";
import type { Store } from "./store";

const STEPS = [0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32];

export class Heat {
  readonly bounds: string[];
  private readonly quantiles: number[] | null;

  constructor(private readonly store: Store, private readonly column: string) {
    const { root, items } = store.model;
    const shared = items.some((item) => store.share(item, column) !== null) || store.share(root, column) !== null;
    this.quantiles = shared ? null : this.cut(items);
    this.bounds = this.quantiles === null
      ? STEPS.map((step) => String(Math.round(step * 100)))
      : ["0", ...this.texts(items, this.quantiles)];
  }

  classOf(item: Item): number {
    const figure = this.quantiles === null
      ? this.store.share(item, this.column)
      : this.store.value(item, this.column);
    if (figure === null || figure <= 0) return 0;
    if (this.quantiles !== null) return 1 + this.quantiles.filter((bound) => figure >= bound).length;
    return STEPS.filter((bound) => figure > 0 && figure >= bound).length;
  }

  private cut(items: Item[]): number[] {
    const values = items
      .filter((item) => item.kind === "layer")
      .map((item) => this.store.value(item, this.column))
      .filter((value): value is number => value !== null && value > 0)
      .sort((a, b) => a - b);
    const bounds: number[] = [];
    for (let i = 1; i < 7; i++) {
      const bound = values[Math.floor((values.length * i) / 7)];
      if (bound !== undefined && bound !== bounds.at(-1) && bound !== values[0]) bounds.push(bound);
    }
    return bounds;
  }

  private texts(items: Item[], bounds: number[]): string[] {
    return bounds.map((bound) => {
      const item = items.find((other) => this.store.value(other, this.column) === bound);
      return item === undefined ? "" : this.store.short(item, this.column);
    });
  }
}
