// Light and dark: the user's choice where it can be kept, else the system's.

import type { State } from "./store";

/** What a theme is kept in: the store of a report, or that of a list of networks. */
export interface Themed {
  readonly state: { readonly theme: State["theme"] };
  set(patch: { theme: State["theme"] }): void;
  on(keys: readonly "theme"[], run: () => void): () => void;
}

const KEY = "layerscope-theme";

// Storage throws in some browsers when a page is opened from disk.
function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts as long as the page.
  }
}

export function firstTheme(): State["theme"] {
  const theme = kept();
  if (theme === "light" || theme === "dark") return theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Follows the system until the user chooses. */
export function followTheme(store: Themed): void {
  const apply = (): void => {
    document.documentElement.dataset["theme"] = store.state.theme;
  };
  apply();
  store.on(["theme"], apply);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (kept() === null) store.set({ theme: event.matches ? "dark" : "light" });
  });
  printLight(store);
}

/** Paper is white: a dark page is printed in light colours, charts and graph included. */
function printLight(store: Themed): void {
  let shown: State["theme"] | null = null;
  addEventListener("beforeprint", () => {
    shown ??= store.state.theme;
    store.set({ theme: "light" });
  });
  addEventListener("afterprint", () => {
    if (shown !== null) store.set({ theme: shown });
    shown = null;
  });
}

export function chooseTheme(store: Themed, theme: State["theme"]): void {
  keep(theme);
  store.set({ theme });
}
