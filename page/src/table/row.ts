// One row of the table. Rows are used again for other items while the table scrolls.

import { h, icon, times } from "../dom";
import type { Item } from "../model";
import type { Store } from "../store";
import { cellText, WHOLE, type Fit, type Shown } from "./columns";
import type { Stairs } from "./stairs";

export const CHEVRON = "M6 3.5 10.5 8 6 12.5";

export interface Look {
  store: Store;
  fit: Fit;
  stairs: Stairs;
  flat: boolean;
  small: boolean;
  /** Column of the cells that colours the graph. */
  heat: string;
}

// A row that scrolls gets other figures, many of them equal to the last. What does not change is not
// written again, because each text that is written is laid out again.
class Written {
  private text: string | null = null;
  private title: string | null = null;

  constructor(private readonly element: HTMLElement) {}

  set(text: string, title: string): void {
    if (text !== this.text) this.element.textContent = this.text = text;
    if (title === this.title) return;
    this.title = title;
    if (title === "") this.element.removeAttribute("title");
    else this.element.title = title;
  }
}

const SIGNS: Record<string, string> = { "+": "only here", "-": "only in the other", "~": "differs" };

class NameCell {
  readonly element: HTMLElement;
  private readonly sign = h("span", { class: "sign" });
  private readonly twisty = h("button", { class: "twisty", type: "button", tabindex: "-1" }, icon(CHEVRON, 12));
  private readonly label = h("span", { class: "nm" });
  private readonly pill = h("span", { class: "pill" });
  private readonly writtenLabel = new Written(this.label);
  private readonly writtenPill = new Written(this.pill);
  private readonly writtenSign = new Written(this.sign);
  private depth = -1;

  constructor() {
    this.element = h("div", { class: "td name", role: "rowheader" }, this.sign, this.twisty, this.label, this.pill);
  }

  bind(item: Item, look: Look): void {
    const { store, flat } = look;
    const opens = !flat && item.children.length > 0;
    const open = store.state.open.has(item.id);
    const sign = store.sign(item);
    const depth = flat ? 0 : Math.max(0, item.depth);
    if (depth !== this.depth) this.element.style.setProperty("--depth", String(depth));
    this.depth = depth;
    this.twisty.classList.toggle("none", !opens);
    this.twisty.classList.toggle("open", open);
    if (opens) this.twisty.setAttribute("aria-label", `${open ? "close" : "open"} ${item.full}`);
    this.twisty.hidden = flat;
    this.writtenLabel.set(flat ? item.full : item.name, item.full);
    this.pill.hidden = repeats(item, flat) === 1;
    this.writtenPill.set(`× ${repeats(item, flat)}`, "");
    this.sign.hidden = sign === "";
    this.writtenSign.set(sign === "-" ? "−" : sign, SIGNS[sign] ?? "");
    if (sign !== "") this.sign.className = `sign ${sign === "+" ? "plus" : sign === "-" ? "minus" : "tilde"}`;
  }
}

// A layer inside a repeated module says so in a flat list, where the module is not to be seen.
function repeats(item: Item, flat: boolean): number {
  if (!flat || item.kind === "group") return item.kind === "group" ? item.repeat : 1;
  let count = 1;
  for (let up = item.parent; up !== null; up = up.parent) count *= up.repeat;
  return count;
}

class FigureCell {
  readonly element: HTMLElement;
  private readonly bar: HTMLElement | null;
  private readonly track: HTMLElement | null;
  private readonly text: HTMLElement;
  private readonly window = h("i");
  private readonly written: Written;
  private readonly writtenWindow = new Written(this.window);
  private bars = "";

  constructor(private readonly column: Shown) {
    const percent = column.kind === "percent";
    this.bar = percent ? h("i") : null;
    this.track = percent ? h("span", { class: "track", "aria-hidden": "true" }, this.bar) : null;
    const typed = column.name === "type";
    this.text = typed ? h("span", {}) : h("span", { class: "tx" });
    this.written = new Written(this.text);
    const kind = column.kind === "text" ? "td text" : percent ? "td n pc" : "td n";
    this.element = h("div", { class: kind, role: "gridcell" }, typed ? h("span", { class: "ty" }, this.text, " ", this.window) : this.text, this.track);
  }

  bind(item: Item, look: Look): void {
    const { store } = look;
    const { cells, name } = this.column;
    if (name === "type") {
      const window = times(store.text(item, "window"));
      const type = store.text(item, "type");
      this.written.set(type, window === "" ? type : "");
      this.writtenWindow.set(window, "");
      return;
    }
    const text = cellText(store, item, cells, look.small);
    this.written.set(text, name === "field" && text === WHOLE ? "the whole input" : "");
    this.element.classList.toggle("zero", text === "0" || text === "0 B");
    this.element.classList.toggle("unknown", text.startsWith("?"));
    this.drawBar(item, look);
  }

  private drawBar(item: Item, look: Look): void {
    if (this.bar === null || this.track === null) return;
    const { store } = look;
    const { cells } = this.column;
    const share = store.value(item, cells);
    this.track.classList.toggle("none", !share);
    if (!share) return;
    const start = look.flat ? 0 : look.stairs.start(item, cells);
    const hot = cells === `${look.heat}%`;
    const background = hot ? `; background: var(--h${Math.max(3, store.heat(item))})` : "";
    const bars = `left: ${(Math.min(start, 0.985) * 100).toFixed(2)}%; width: ${(Math.min(share, 1) * 100).toFixed(2)}%${background}`;
    if (bars !== this.bars) this.bar.style.cssText = this.bars = bars;
  }
}

export class RowView {
  readonly element = h("div", { class: "tr", role: "row" });
  item: Item | null = null;
  index = -1;
  private cells: (NameCell | FigureCell)[] = [];
  private fit: Fit | null = null;
  private marks = "";

  bind(item: Item, index: number, look: Look): void {
    this.item = item;
    this.index = index;
    if (this.fit !== look.fit) this.build(look);
    this.fit = look.fit;
    const element = this.element;
    element.id = `row-${item.row}`;
    element.dataset["id"] = item.id;
    element.setAttribute("aria-rowindex", String(index + 2));
    element.setAttribute("aria-level", String(look.flat ? 1 : Math.max(1, item.depth + 1)));
    if (!look.flat && item.children.length > 0) {
      element.setAttribute("aria-expanded", String(look.store.state.open.has(item.id)));
    } else {
      element.removeAttribute("aria-expanded");
    }
    element.classList.toggle("mod", item.kind === "group");
    for (const cell of this.cells) cell.bind(item, look);
  }

  mark(selected: boolean, hovered: boolean, wrong: boolean): void {
    const marks = `${selected} ${hovered} ${wrong}`;
    if (marks === this.marks) return;
    this.marks = marks;
    this.element.classList.toggle("sel", selected);
    this.element.classList.toggle("hov", hovered);
    this.element.classList.toggle("wrong", wrong);
    if (wrong) this.cells[0]?.element.setAttribute("aria-invalid", "true");
    else this.cells[0]?.element.removeAttribute("aria-invalid");
    this.element.setAttribute("aria-selected", String(selected));
  }

  private build(look: Look): void {
    this.cells = look.fit.columns.map((column) => (column.kind === "name" ? new NameCell() : new FigureCell(column)));
    this.element.replaceChildren(...this.cells.map((cell) => cell.element));
    let left = 0;
    look.fit.columns.forEach((column, at) => {
      const cell = this.cells[at]?.element;
      if (cell !== undefined) cell.style.cssText = `left: ${at === 0 ? 0 : left.toFixed(2)}px; width: ${column.width.toFixed(2)}px`;
      left += column.width;
    });
  }
}
