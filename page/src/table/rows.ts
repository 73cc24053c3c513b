// Which items the table shows, in which order.

import type { Item } from "../model";
import type { Store } from "../store";

export interface Listing {
  items: Item[];
  /** Whether items are a flat list, which has full names. */
  flat: boolean;
}

/** Items of the open part of the tree; of a search or a sort, a flat list. */
export function listItems(store: Store): Listing {
  const { model, matches, state } = store;
  if (matches === null && state.sort === null && !state.flat) return { items: openItems(store), flat: false };
  let items = matches === null
    ? model.items.filter((item) => item.kind === "layer" || item.children.length === 0)
    : model.items.filter((item) => matches.has(item.id));
  if (state.sort !== null) items = sorted(store, items, state.sort.column, state.sort.descending);
  return { items, flat: true };
}

function openItems(store: Store): Item[] {
  const out: Item[] = [];
  const visit = (items: Item[]): void => {
    for (const item of items) {
      out.push(item);
      if (item.children.length > 0 && store.state.open.has(item.id)) visit(item.children);
    }
  };
  visit(store.model.root.children);
  return out;
}

// Unknown figures stand last in both directions; equal ones keep the order of execution.
function sorted(store: Store, items: Item[], column: string, descending: boolean): Item[] {
  const sign = descending ? -1 : 1;
  const numeric = store.cells(column)?.values !== undefined || column === "field";
  const key = (item: Item): number | string | null =>
    numeric ? sortValue(store, item, column) : store.text(item, column);
  return items
    .map((item, index) => ({ item, index, key: key(item) }))
    .sort((a, b) => {
      if (a.key === null || b.key === null) return a.key === b.key ? a.index - b.index : a.key === null ? 1 : -1;
      const order = typeof a.key === "number" ? a.key - (b.key as number) : a.key.localeCompare(String(b.key), "en", { numeric: true });
      return order === 0 ? a.index - b.index : order * sign;
    })
    .map((entry) => entry.item);
}

function sortValue(store: Store, item: Item, column: string): number | null {
  if (column !== "field") return store.value(item, column);
  const field = item.layer === null ? null : store.report.layers[item.layer]?.field;
  if (!field) return null;
  return field.size.reduce<number>((area, side) => area * (typeof side === "number" ? side : 1e9), 1);
}
