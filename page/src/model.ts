// The rows and boxes of one report: groups and layers of its tree, each with an id that the whole
// page shares. A repeated group has the items of one repetition; layers of the others map to them.

import type { Layer, Report, Tree } from "./data";

export interface Item {
  id: string;
  kind: "group" | "layer";
  /** Row of its cells. */
  row: number;
  /** The name as the table prints it, without repeats. */
  name: string;
  /** The full name. */
  full: string;
  type: string;
  depth: number;
  parent: Item | null;
  children: Item[];
  /** Indices of all layers inside, in execution order; those of all repetitions. */
  layers: number[];
  repeat: number;
  group: Tree | null;
  layer: number | null;
}

export interface Model {
  report: Report;
  root: Item;
  /** Every item in the order of the table, without the root. */
  items: Item[];
  byId: Map<string, Item>;
  /** Id of the item that stands for a layer. */
  layerIds: string[];
}

export function layerId(index: number): string {
  return `l${index}`;
}

function labelOf(layer: Layer, printed: string | undefined, parent: Item): string {
  if (printed) return printed;
  const prefix = parent.group && parent.group.path !== "" ? `${parent.group.path}.` : "";
  return prefix !== "" && layer.name.startsWith(prefix) ? layer.name.slice(prefix.length) : layer.name;
}

function groupName(group: Tree): string {
  const repeats = ` × ${group.repeat ?? 1}`;
  return group.name.endsWith(repeats) ? group.name.slice(0, -repeats.length) : group.name;
}

export function buildModel(report: Report): Model {
  const tree = report.tree;
  const root: Item = {
    id: "root", kind: "group", row: tree.row, name: "total", full: report.network, type: "", depth: -1, parent: null,
    children: [], layers: tree.layers, repeat: 1, group: tree, layer: null,
  };
  const items: Item[] = [];
  const byId = new Map<string, Item>([["root", root]]);
  const layerIds: string[] = new Array<string>(report.layers.length).fill("");
  const add = (item: Item, parent: Item): Item => {
    while (byId.has(item.id)) item.id += "'";
    byId.set(item.id, item);
    items.push(item);
    parent.children.push(item);
    return item;
  };
  const names = report.cells["name"]?.texts ?? [];
  const visit = (children: (Tree | number)[], parent: Item): void => {
    for (const child of children) {
      const depth = parent.depth + 1;
      if (typeof child === "number") {
        const layer = report.layers[child];
        if (layer === undefined) continue;
        const item = add({
          id: layerId(child), kind: "layer", row: child, name: labelOf(layer, names[child], parent), full: layer.name,
          type: layer.type, depth, parent, children: [], layers: [child], repeat: layer.times ?? 1,
          group: null, layer: child,
        }, parent);
        layerIds[child] = item.id;
        continue;
      }
      const item = add({
        id: `g${child.path}`, kind: "group", row: child.row, name: groupName(child), full: child.path, type: child.type,
        depth, parent, children: [], layers: child.layers, repeat: child.repeat ?? 1, group: child, layer: null,
      }, parent);
      visit(child.children, item);
      mapInstances(child, layerIds);
    }
  };
  visit(tree.children, root);
  return { report, root, items, byId, layerIds };
}

// The second layer of each repetition is the second layer of the one that is shown.
function mapInstances(group: Tree, layerIds: string[]): void {
  const [shown, ...others] = group.instances ?? [];
  if (shown === undefined) return;
  for (const other of others) {
    other.forEach((layer, position) => {
      const twin = shown[position];
      if (twin !== undefined && layerIds[layer] === "") layerIds[layer] = layerIds[twin] ?? "";
    });
  }
}

/** The item that stands for a layer, even one of a repetition that is not shown. */
export function itemOfLayer(model: Model, layer: number): Item | undefined {
  const id = model.layerIds[layer];
  return id ? model.byId.get(id) : undefined;
}

/** The groups around an item, the innermost first, without the root. */
export function ancestors(item: Item): Item[] {
  const out: Item[] = [];
  for (let up = item.parent; up !== null && up.parent !== null; up = up.parent) out.push(up);
  return out;
}

/** The item itself if it is visible, else the innermost closed group around it. */
export function visibleItem(item: Item, open: ReadonlySet<string>): Item {
  let shown = item;
  for (const group of ancestors(item)) if (!open.has(group.id)) shown = group;
  return shown;
}
