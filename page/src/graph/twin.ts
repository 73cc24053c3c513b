// The graph's twin for keyboards and screen readers: a tree of the same boxes.

import { h } from "../dom";
import type { Level } from "./levels";
import type { Part } from "./parts";

export interface TwinActions {
  select(id: string): void;
  open(id: string, open: boolean): void;
  pin(id: string): void;
}

interface Row {
  id: string;
  part: Part;
  name: string;
  level: number;
  parent: string | null;
  open: boolean | null;
  size: number;
  place: number;
}

export class Twin {
  readonly element = h("div", { class: "twin", role: "tree", "aria-label": "boxes of the graph" });
  private rows: Row[] = [];
  private readonly elements = new Map<string, HTMLElement>();
  private current: string | null = null;
  private timer = 0;
  private quiet = false;

  constructor(private readonly actions: TwinActions) {
    this.element.addEventListener("keydown", (event) => {
      this.element.classList.add("seen");
      this.key(event);
    });
    this.element.addEventListener("focusin", () => { if (!this.quiet) this.element.classList.add("seen"); });
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.element.classList.remove("seen");
    });
    this.element.addEventListener("click", (event) => {
      const id = (event.target as Element).closest<HTMLElement>("[data-id]")?.dataset["id"];
      if (id !== undefined) this.actions.select(id);
    });
  }

  /** Fills the tree soon: the picture comes first. */
  fill(root: Level, describe: (part: Part) => string): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.build(root, describe), 60);
  }

  select(id: string | null): void {
    if (this.current !== null) this.elements.get(this.current)?.setAttribute("aria-selected", "false");
    if (id !== null && this.elements.has(id)) {
      this.current = id;
      this.elements.get(id)?.setAttribute("aria-selected", "true");
      this.tabStop(id);
    }
  }

  /** After a click in the picture, keys go on from there. */
  focus(id: string, seen = false): void {
    this.quiet = !seen;
    this.elements.get(id)?.focus({ preventScroll: true });
    this.quiet = false;
  }

  destroy(): void {
    clearTimeout(this.timer);
  }

  private build(root: Level, describe: (part: Part) => string): void {
    const focused = this.element.contains(document.activeElement);
    const seen = this.element.classList.contains("seen");
    this.rows = [];
    this.elements.clear();
    const add = (level: Level, depth: number, parent: string | null): void => {
      const size = level.boxes.reduce((sum, box) => sum + 1 + box.part.hangs.length, 0);
      let place = 0;
      for (const box of level.boxes) {
        const open = box.kind === "frame" ? true : box.kind === "module" ? false : null;
        this.rows.push({ id: box.id, part: box.part, name: box.name, level: depth, parent, open, size, place: ++place });
        if (box.level !== null) add(box.level, depth + 1, box.id);
        for (const hung of box.part.hangs) {
          this.rows.push({ id: hung.id, part: hung, name: hung.name, level: depth, parent, open: null, size, place: ++place });
        }
      }
    };
    add(root, 1, null);
    this.element.replaceChildren(...this.rows.map((row) => {
      const own = h("div", {
        role: "treeitem", tabindex: -1, "data-id": row.id, "aria-level": row.level, "aria-setsize": row.size, "aria-posinset": row.place,
        "aria-expanded": row.open === null ? null : String(row.open), "aria-selected": String(row.id === this.current),
      }, [row.name, describe(row.part)].filter((word) => word !== "").join(", "));
      own.style.paddingLeft = `${8 + 14 * (row.level - 1)}px`;
      this.elements.set(row.id, own);
      return own;
    }));
    const stop = this.current !== null && this.elements.has(this.current) ? this.current : (this.rows[0]?.id ?? null);
    if (stop !== null) this.tabStop(stop);
    if (focused && stop !== null) this.focus(stop, seen);
  }

  private tabStop(id: string): void {
    this.element.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.elements.get(id)?.setAttribute("tabindex", "0");
  }

  private go(row: Row | undefined): void {
    if (row === undefined) return;
    this.actions.select(row.id);
    const own = this.elements.get(row.id);
    own?.focus({ preventScroll: true });
    own?.scrollIntoView({ block: "nearest" });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = (event.target as Element).closest<HTMLElement>("[data-id]")?.dataset["id"];
    const at = this.rows.findIndex((row) => row.id === id);
    const row = this.rows[at];
    if (row === undefined) return;
    const moves: Record<string, () => void> = {
      ArrowDown: () => this.go(this.rows[at + 1]),
      ArrowUp: () => this.go(this.rows[at - 1]),
      Home: () => this.go(this.rows[0]),
      End: () => this.go(this.rows.at(-1)),
      ArrowRight: () => {
        if (row.open === false) this.actions.open(row.id, true);
        else if (row.open) this.go(this.rows[at + 1]);
      },
      ArrowLeft: () => {
        if (row.open) this.actions.open(row.id, false);
        else this.go(this.rows.find((other) => other.id === row.parent));
      },
      Enter: () => this.actions.pin(row.id),
      " ": () => (row.open === null ? this.actions.select(row.id) : this.actions.open(row.id, !row.open)),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  }
}
