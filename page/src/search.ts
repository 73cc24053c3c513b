// Search by name, type, window or shape: every word must occur.

import type { Item, Model } from "./model";

function haystack(item: Item, model: Model): string {
  const layer = item.layer === null ? undefined : model.report.layers[item.layer];
  const output = model.report.cells["output"]?.texts?.[item.row] ?? "";
  const words = [item.full, item.name, item.type, layer?.window ?? "", output];
  return words.join("\n").toLowerCase().replaceAll("×", "x");
}

/** Ids of the items that match, or null for an empty search. */
export function search(model: Model, query: string): ReadonlySet<string> | null {
  const words = query.toLowerCase().replaceAll("×", "x").split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return null;
  const found = new Set<string>();
  for (const item of model.items) {
    const text = haystack(item, model);
    if (words.every((word) => text.includes(word))) found.add(item.id);
  }
  return found;
}
