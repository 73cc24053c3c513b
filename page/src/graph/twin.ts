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

// Rows that are elements around the current one: thousands would slow down every frame of the page.
const WINDOW = 120;
const ROW = 22;

export class Twin {
  readonly element = h("div", { class: "twin", role: "tree", "aria-label": "boxes of the graph" });
  private readonly sizer = h("div", { class: "sizer", role: "none" });
  private rows: Row[] = [];
  private readonly places = new Map<string, number>();
  private readonly elements = new Map<string, HTMLElement>();
  private describe: (part: Part) => string = () => "";
  private current: string | null = null;
  /** The row that Tab comes to. */
  private stop: string | null = null;
  private first = 0;
  private timer = 0;
  private quiet = false;

  constructor(private readonly actions: TwinActions) {
    this.element.append(this.sizer);
    this.element.addEventListener("keydown", (event) => {
      this.element.classList.add("seen");
      this.key(event);
    });
    this.element.addEventListener("focusin", () => { if (!this.quiet) this.element.classList.add("seen"); });
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.element.classList.remove("seen");
    });
    this.element.addEventListener("click", (event) => {
      const id = this.idOf(event.target);
      if (id !== undefined) this.actions.select(id);
    });
    this.element.addEventListener("scroll", () => {
      const { scrollTop, clientHeight } = this.element;
      this.draw(Math.floor((scrollTop + clientHeight / 2) / ROW));
    }, { passive: true });
  }

  /** Fills the tree soon: the picture comes first. */
  fill(root: Level, describe: (part: Part) => string): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.build(root, describe), 60);
  }

  select(id: string | null): void {
    if (this.current !== null) this.elements.get(this.current)?.setAttribute("aria-selected", "false");
    if (id !== null && this.places.has(id)) {
      this.current = id;
      this.tabStop(id);
      this.elements.get(id)?.setAttribute("aria-selected", "true");
    }
  }

  /** After a click in the picture, keys go on from there. */
  focus(id: string, seen = false): void {
    this.quiet = !seen;
    if (this.places.has(id)) this.tabStop(id);
    this.elements.get(id)?.focus({ preventScroll: true });
    this.quiet = false;
  }

  destroy(): void {
    clearTimeout(this.timer);
  }

  private idOf(target: EventTarget | null): string | undefined {
    return (target as Element | null)?.closest<HTMLElement>("[data-id]")?.dataset["id"];
  }

  private build(root: Level, describe: (part: Part) => string): void {
    const focused = this.element.contains(document.activeElement);
    const seen = this.element.classList.contains("seen");
    this.describe = describe;
    this.rows = [];
    this.places.clear();
    this.elements.clear();
    const put = (row: Row): void => {
      this.places.set(row.id, this.rows.length);
      this.rows.push(row);
    };
    const add = (level: Level, depth: number, parent: string | null): void => {
      const size = level.boxes.reduce((sum, box) => sum + 1 + box.part.hangs.length, 0);
      let place = 0;
      for (const box of level.boxes) {
        const open = box.kind === "frame" ? true : box.kind === "module" ? false : null;
        put({ id: box.id, part: box.part, name: box.name, level: depth, parent, open, size, place: ++place });
        if (box.level !== null) add(box.level, depth + 1, box.id);
        for (const hung of box.part.hangs) {
          put({ id: hung.id, part: hung, name: hung.name, level: depth, parent, open: null, size, place: ++place });
        }
      }
    };
    add(root, 1, null);
    this.sizer.style.height = `${this.rows.length * ROW}px`;
    this.element.replaceChildren(this.sizer);
    const stop = this.current !== null && this.places.has(this.current) ? this.current : (this.rows[0]?.id ?? null);
    this.stop = null;
    if (stop !== null) this.tabStop(stop);
    if (focused && stop !== null) this.focus(stop, seen);
  }

  // Rows around a place, the row that Tab comes to, and the one with the focus are elements.
  private draw(around: number): void {
    const count = this.rows.length;
    const near = this.elements.size > 0 && around >= this.first + WINDOW / 4 && around < this.first + (WINDOW * 3) / 4;
    if (near && this.stop !== null && this.elements.has(this.stop)) return;
    if (!near) this.first = Math.max(0, Math.min(around - WINDOW / 2, count - WINDOW));
    const wanted = new Set<number>();
    for (let at = this.first; at < Math.min(count, this.first + WINDOW); at++) wanted.add(at);
    for (const id of [this.stop, this.element.contains(document.activeElement) ? this.idOf(document.activeElement) : null]) {
      const at = id ? this.places.get(id) : undefined;
      if (at !== undefined) wanted.add(at);
    }
    for (const [id, element] of this.elements) {
      if (wanted.has(this.places.get(id) ?? -1)) continue;
      element.remove();
      this.elements.delete(id);
    }
    let next = this.sizer.nextSibling;
    for (const at of [...wanted].sort((a, b) => a - b)) {
      const row = this.rows[at];
      if (row === undefined) continue;
      const element = this.elements.get(row.id) ?? this.make(row, at);
      if (element === next) next = next.nextSibling;
      else this.element.insertBefore(element, next);
    }
  }

  private make(row: Row, at: number): HTMLElement {
    const own = h("div", {
      role: "treeitem", tabindex: row.id === this.stop ? 0 : -1, "data-id": row.id, "aria-level": row.level, "aria-setsize": row.size, "aria-posinset": row.place,
      "aria-expanded": row.open === null ? null : String(row.open), "aria-selected": String(row.id === this.current),
    }, [row.name, this.describe(row.part)].filter((word) => word !== "").join(", "));
    own.style.paddingLeft = `${8 + 14 * (row.level - 1)}px`;
    own.style.top = `${at * ROW}px`;
    this.elements.set(row.id, own);
    return own;
  }

  private tabStop(id: string): void {
    if (this.stop !== null) this.elements.get(this.stop)?.setAttribute("tabindex", "-1");
    this.stop = id;
    this.draw(this.places.get(id) ?? 0);
    this.elements.get(id)?.setAttribute("tabindex", "0");
  }

  private go(row: Row | undefined): void {
    if (row === undefined) return;
    this.actions.select(row.id);
    this.tabStop(row.id);
    const own = this.elements.get(row.id);
    own?.focus({ preventScroll: true });
    own?.scrollIntoView({ block: "nearest" });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.places.get(this.idOf(event.target) ?? "") ?? -1;
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
        else this.go(this.rows[this.places.get(row.parent ?? "") ?? -1]);
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
