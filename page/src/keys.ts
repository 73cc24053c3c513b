// Keys of the whole page: / searches, Esc clears, t changes the theme.

import type { Store } from "./store";
import { chooseTheme } from "./theme";

export function pageKeys(store: Store): () => void {
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    if (target.closest("input, select, textarea, [role=menu]")) return;
    if (event.key === "/") {
      document.getElementById("search")?.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      store.set(store.state.hover !== null ? { hover: null } : store.state.query !== "" ? { query: "" } : { selection: null });
    } else if (event.key === "t") {
      chooseTheme(store, store.state.theme === "dark" ? "light" : "dark");
    }
  };
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}
