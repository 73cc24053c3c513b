// Arrow keys in the table: rows up and down, modules open and closed.

import type { Store } from "../store";
import type { Table } from "./index";

const PAGE = 12;

export function tableKeys(table: Table, store: Store): void {
  table.scroll.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== table.scroll) return;
    if (move(table, store, event.key)) event.preventDefault();
  });
}

function move(table: Table, store: Store, key: string): boolean {
  const { items } = table;
  const item = store.item(store.state.selection);
  const at = item === undefined ? -1 : items.indexOf(item);
  const go = (index: number): boolean => {
    const to = items[Math.max(0, Math.min(items.length - 1, index))];
    if (to !== undefined) store.set({ selection: to.id });
    return true;
  };
  switch (key) {
    case "ArrowDown": return go(at + 1);
    case "ArrowUp": return go(at < 0 ? 0 : at - 1);
    case "PageDown": return go(at + PAGE);
    case "PageUp": return go(at - PAGE);
    case "Home": return go(0);
    case "End": return go(items.length - 1);
    case "ArrowRight":
      if (item === undefined || item.children.length === 0) return true;
      if (!store.state.open.has(item.id)) store.toggle(item.id, true);
      else store.set({ selection: item.children[0]?.id ?? item.id });
      return true;
    case "ArrowLeft":
      if (item === undefined) return true;
      if (item.children.length > 0 && store.state.open.has(item.id)) store.toggle(item.id, false);
      else if (item.parent !== null && item.parent.parent !== null) store.set({ selection: item.parent.id });
      return true;
    case "*":
      store.set({ open: new Set(store.model.items.filter((one) => one.children.length > 0).map((one) => one.id)) });
      return true;
    case " ":
    case "Enter":
      if (item !== undefined && key === " " && item.children.length > 0) store.toggle(item.id);
      else if (item !== undefined) store.set({ hover: { id: item.id, x: null, y: null } });
      return true;
    default:
      return false;
  }
}
