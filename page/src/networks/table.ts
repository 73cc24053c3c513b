// The table of networks: a window of rows, sorted by a press on a head, searched by words and conditions.

import { h } from "../dom";
import { isSmall, RowWindow } from "../table/window";
import type { Network, NetworkColumn } from "./data";
import { openNetwork } from "./opened";
import type { Networks } from "./state";

const SIGN = 7.2; // pixels of a character
const PADDING = 14;
const MARK = 18; // of the head, for the sign of its order
const NAME_LEAST = 190;
const NAME_LEAST_SMALL = 140;
const TEXT_MOST = 240;

class RowView {
  readonly element = h("div", { class: "tr", role: "row" });
  index = -1;
  item: Network | null = null;

  bind(row: Network, index: number, columns: NetworkColumn[], small: boolean): void {
    const texts = small ? row.shorts : row.texts;
    this.element.dataset["key"] = row.key;
    this.element.id = `n${row.key}`;
    this.element.setAttribute("aria-rowindex", String(index + 2));
    this.element.classList.toggle("failed", Boolean(row.error));
    this.element.replaceChildren(...columns.map((column, at) => cell(row, column, texts[at] ?? "")));
  }

  mark(selected: boolean, hovered: boolean): void {
    this.element.classList.toggle("sel", selected);
    this.element.classList.toggle("hov", hovered);
    this.element.setAttribute("aria-selected", String(selected));
  }
}

function cell(row: Network, column: NetworkColumn, text: string): HTMLElement {
  const kind = column.name === "name" ? "name" : column.kind === "text" ? "text" : "n";
  const shown = h("span", { class: `nm${text === "?" ? " unknown" : ""}`, title: kind === "n" ? false : text }, text);
  if (column.name !== "name" || !row.has_report) return h("div", { class: `td ${kind}`, role: "gridcell" }, shown);
  const open = h("button", { class: "link nm", type: "button", tabindex: "-1", title: `open the report of ${text}`, "data-open": row.key }, text);
  return h("div", { class: "td name", role: "gridcell" }, open);
}

export class NetworkTable {
  private readonly scroll = h("div", { class: "scroll", role: "grid", tabindex: "0", "aria-label": "networks" });
  private readonly head = h("div", { class: "thead", role: "rowgroup" });
  private readonly body = h("div", { class: "tbody", role: "rowgroup" });
  private readonly none = h("p", { class: "empty" });
  private readonly count = h("span", { class: "muted count", role: "status" });
  private readonly input = h("input", {
    type: "search", id: "search-networks", placeholder: "name, or macs<1G", "aria-label": "search networks by name, or by a condition such as macs<1G",
    autocomplete: "off", spellcheck: "false",
  });
  private readonly rows: RowWindow<Network, RowView>;

  constructor(host: HTMLElement, private readonly store: Networks) {
    this.rows = new RowWindow(this.scroll, this.body, () => new RowView(), () => this.draw());
    this.scroll.append(this.head, this.body);
    const find = h("div", { class: "find wide" }, this.input, h("kbd", { "aria-hidden": "true" }, "/"));
    host.replaceChildren(h("div", { class: "tools" }, h("h2", {}, "Networks"), find, this.count), this.scroll, this.none);
    this.listen();
    this.layout();
  }

  private listen(): void {
    const { store, input } = this;
    input.addEventListener("input", () => store.set({ query: input.value }));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        input.value = "";
        store.set({ query: "" });
        input.blur();
      } else if (event.key === "ArrowDown" || event.key === "Enter") {
        this.scroll.focus();
        store.set({ selection: store.rows[0]?.key ?? null });
        event.preventDefault();
      }
    });
    store.on(["query", "sort"], () => {
      this.scroll.scrollTop = 0;
      this.layout();
    });
    store.on(["selection"], () => this.show());
    store.on(["hover"], () => this.mark());
    const keyOf = (target: EventTarget | null): string | null => (target as Element | null)?.closest<HTMLElement>(".tr")?.dataset["key"] ?? null;
    this.body.addEventListener("click", (event) => {
      const open = (event.target as Element).closest<HTMLElement>("[data-open]")?.dataset["open"];
      store.set({ selection: keyOf(event.target) });
      if (open !== undefined) openNetwork(open);
    });
    this.body.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") store.set({ hover: keyOf(event.target) });
    });
    this.body.addEventListener("pointerleave", () => store.set({ hover: null }));
    this.scroll.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.layout()).observe(this.scroll);
  }

  private press(event: KeyboardEvent): void {
    const { rows, state } = this.store;
    const at = rows.findIndex((row) => row.key === state.selection);
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / this.rows.height) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1, ArrowUp: Math.max(at - 1, 0), Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: Math.max(at - page, 0),
    };
    const to = steps[event.key];
    if (to !== undefined) {
      this.store.set({ selection: rows[Math.min(to, rows.length - 1)]?.key ?? null });
      event.preventDefault();
    } else if (event.key === "Enter" && rows[at]?.has_report) {
      openNetwork(rows[at].key);
    }
  }

  private layout(): void {
    const { columns } = this.store.data;
    const small = isSmall();
    const widths = columns.map((column, at) => this.width(column, at, small));
    const sum = widths.reduce((total, width) => total + width, 0);
    const spare = Math.max(this.scroll.clientWidth - sum, 0) / columns.length;
    const all = widths.map((width) => width + spare);
    this.scroll.style.setProperty("--columns", all.map((width) => `${width.toFixed(1)}px`).join(" "));
    this.scroll.style.setProperty("--width", `${(sum + spare * columns.length).toFixed(1)}px`);
    this.scroll.style.setProperty("--row", `${this.rows.height}px`);
    this.scroll.setAttribute("aria-rowcount", String(this.store.rows.length + 1));
    this.drawHead();
    const { query } = this.store.state;
    this.none.hidden = this.store.rows.length > 0;
    this.none.textContent = query === "" ? "No networks." : `No network matches “${query}”.`;
    this.count.textContent = query === "" ? "" : `${this.store.rows.length} of ${this.store.data.rows.length}`;
    this.draw(true);
  }

  private width(column: NetworkColumn, at: number, small: boolean): number {
    if (column.name === "name") return small ? NAME_LEAST_SMALL : NAME_LEAST;
    const { rows } = this.store.data;
    const longest = rows.reduce((most, row) => Math.max(most, ((small ? row.shorts : row.texts)[at] ?? "").length), 1);
    const width = Math.max(longest * SIGN, column.title.length * SIGN + MARK) + PADDING;
    return Math.min(width, column.kind === "text" ? TEXT_MOST : width);
  }

  private drawHead(): void {
    const heads = this.store.data.columns.map((column) => {
      const { sort } = this.store.state;
      const own = sort?.column === column.name ? sort : null;
      const figure = column.kind !== "text";
      const mark = h("span", { class: "mark", "aria-hidden": "true" }, own !== null && !own.descending ? "▴" : "▾");
      const button = h("button", { type: "button" }, figure && mark, h("span", {}, column.title), !figure && mark);
      button.addEventListener("click", () => {
        const next = own === null ? figure : own.descending === figure ? !figure : null;
        this.store.set({ sort: next === null ? null : { column: column.name, descending: next } });
      });
      return h("div", {
        class: `th ${column.name === "name" ? "name" : figure ? "n" : "text"}`, role: "columnheader",
        "aria-sort": own === null ? "none" : own.descending ? "descending" : "ascending",
      }, button);
    });
    this.head.replaceChildren(h("div", { class: "tr", role: "row", "aria-rowindex": "1" }, ...heads));
  }

  private draw(force = false): void {
    const small = isSmall();
    this.rows.draw(this.store.rows, (view, row, index) => view.bind(row, index, this.store.data.columns, small), force);
    this.mark();
  }

  private mark(): void {
    const { selection, hover } = this.store.state;
    let active = "";
    for (const row of this.rows.pool) {
      if (row.item === null) continue;
      row.mark(row.item.key === selection, row.item.key === hover);
      if (row.item.key === selection) active = row.element.id;
    }
    if (active === "") this.scroll.removeAttribute("aria-activedescendant");
    else this.scroll.setAttribute("aria-activedescendant", active);
  }

  // Scrolls the table's own box just enough to show the chosen row.
  private show(): void {
    const index = this.store.rows.findIndex((row) => row.key === this.store.state.selection);
    const { height } = this.rows;
    const room = this.scroll.clientHeight - this.head.offsetHeight;
    if (index >= 0 && index * height < this.scroll.scrollTop) this.scroll.scrollTop = index * height;
    else if (index >= 0 && (index + 1) * height > this.scroll.scrollTop + room) this.scroll.scrollTop = (index + 1) * height - room;
    this.draw();
  }
}
