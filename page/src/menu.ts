// A button that opens a menu: arrow keys, Home and End move, Escape closes and gives the focus back.

import { h, icon } from "./dom";

const DOWN = "M4 6l4 4 4-4";

export interface Entry {
  label: Node | string;
  role?: "menuitem" | "menuitemradio" | "menuitemcheckbox";
  checked?: boolean;
  run: () => void;
}

export interface Menu {
  element: HTMLElement;
  button: HTMLButtonElement;
  close(): void;
}

interface Options {
  /** Class of the menu. */
  kind?: string;
  /** Keeps the menu open after a choice. */
  stays?: boolean;
  /** What stands above the entries. */
  above?: () => Node[];
}

/** A menu whose entries are made when it opens. */
export function menu(content: (Node | string)[], label: string, entries: () => Entry[], options: Options = {}): Menu {
  const button = h("button", { class: "ctl", type: "button", "aria-haspopup": "menu", "aria-expanded": "false" }, ...content, icon(DOWN, 12));
  const list = h("div", { class: `menu ${options.kind ?? ""}`, role: "menu", "aria-label": label, hidden: true });
  const element = h("div", { class: "pop" }, button, list);
  const items = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>("[role^=menuitem]")];
  const outside = (event: Event): void => {
    if (!element.contains(event.target as Node)) close();
  };
  const close = (): void => {
    list.hidden = true;
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside);
  };
  const fill = (): void => {
    const above = options.above?.() ?? [];
    list.replaceChildren(...above.map((node) => h("div", { role: "presentation" }, node)), ...entries().map(entry));
  };
  const entry = (one: Entry): HTMLElement => {
    const role = one.role ?? "menuitem";
    const checked = role === "menuitem" ? null : String(one.checked === true);
    const tick = role === "menuitem" ? null : h("span", { class: "tick", "aria-hidden": "true" }, one.checked ? "✓" : "");
    const item = h("button", { type: "button", role, tabindex: "-1", "aria-checked": checked }, tick, one.label);
    item.addEventListener("click", () => {
      const at = items().indexOf(item);
      one.run();
      if (options.stays) {
        fill();
        items()[at]?.focus();
      } else {
        close();
        button.focus();
      }
    });
    return item;
  };
  const open = (): void => {
    fill();
    list.hidden = false;
    button.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", outside);
    place(element, list);
    (items().find((item) => item.getAttribute("aria-checked") === "true") ?? items()[0])?.focus({ preventScroll: true });
  };
  button.addEventListener("click", () => (list.hidden ? open() : close()));
  element.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
    if (event.key === "Escape" || event.key === "Tab") {
      close();
      if (event.key === "Escape") button.focus();
      event.stopPropagation();
    } else if (event.key in steps) {
      const to = steps[event.key] ?? 0;
      all[(to + all.length) % all.length]?.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  });
  return { element, button, close };
}

// Keeps the menu inside the window: it opens to the left where there is room, else to the right.
function place(element: HTMLElement, list: HTMLElement): void {
  list.style.right = "0";
  list.style.left = "auto";
  const right = element.getBoundingClientRect().right;
  const over = 8 - (right - list.offsetWidth);
  if (over > 0) list.style.right = `${-over}px`;
}
