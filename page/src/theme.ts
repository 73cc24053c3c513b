// Light and dark: the user's choice where it can be kept, else the system's.

import type { State, Store } from "./store";

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
export function followTheme(store: Store): void {
  const apply = (): void => {
    document.documentElement.dataset["theme"] = store.state.theme;
  };
  apply();
  store.on(["theme"], apply);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (kept() === null) store.set({ theme: event.matches ? "dark" : "light" });
  });
}

export function chooseTheme(store: Store, theme: State["theme"]): void {
  keep(theme);
  store.set({ theme });
}

const NAMES = ["surface", "line", "line-2", "edge", "ink", "ink-2", "ink-3", "accent", "warn", "bar", "area", "area-line", "h1", "h2", "h3", "h4", "h5", "h6", "h7"];

/** Colours of a theme by the name of their token. */
export function tokens(theme: State["theme"]): Map<string, string> {
  const probe = document.createElement("div");
  probe.dataset["theme"] = theme;
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const found = new Map(NAMES.map((name) => [name, longHex(style.getPropertyValue(`--${name}`).trim().toLowerCase())]));
  probe.remove();
  return found;
}

// The build shortens #ffffff to #fff.
function longHex(colour: string): string {
  const short = /^#(.)(.)(.)$/.exec(colour);
  return short === null ? colour : `#${short[1]}${short[1]}${short[2]}${short[2]}${short[3]}${short[3]}`;
}
