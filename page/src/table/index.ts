// The table: the tree with its sums in a window of rows, so that ten thousand scroll smoothly.

import { h } from "../dom";
import { visibleItem, type Item } from "../model";
import type { Pane, Store } from "../store";
import { fitColumns, type Fit } from "./columns";
import { headRow } from "./head";
import { tableKeys } from "./keys";
import { RowView, type Look } from "./row";
import { listItems, type Listing } from "./rows";
import { Stairs } from "./stairs";
import { isSmall, RowWindow } from "./window";

const HOVER_DELAY = 80;

export class Table implements Pane {
  readonly scroll = h("div", { class: "scroll grid", role: "treegrid", tabindex: "0" });
  private readonly head = h("div", { class: "thead", role: "rowgroup" });
  private readonly body = h("div", { class: "tbody", role: "rowgroup" });
  private readonly foot = h("div", { class: "tfoot", role: "rowgroup" });
  private readonly none = h("p", { class: "empty" });
  private readonly total = new RowView();
  private readonly rows: RowWindow<Item, RowView>;
  private listing: Listing = { items: [], flat: false };
  private fit: Fit = { columns: [], template: "", width: 0 };
  private stairs: Stairs;
  private look: Look;
  private timer = 0;
  private readonly ends: (() => void)[] = [];

  constructor(host: HTMLElement, private readonly store: Store) {
    this.stairs = new Stairs(store);
    this.look = this.newLook();
    this.rows = new RowWindow(this.scroll, this.body, () => new RowView(), () => this.draw());
    this.foot.append(this.total.element);
    this.scroll.append(this.head, this.body, this.foot);
    host.append(this.scroll, this.none);
    this.listen();
    this.layout();
  }

  get items(): Item[] {
    return this.listing.items;
  }

  destroy(): void {
    this.ends.forEach((end) => end());
    this.rows.destroy();
  }

  /** Scrolls the table's own box just enough to show a row. */
  show(index: number): void {
    const top = index * this.rowHeight;
    const head = this.head.offsetHeight;
    const room = this.scroll.clientHeight - head - this.foot.offsetHeight;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + this.rowHeight > this.scroll.scrollTop + room) this.scroll.scrollTop = top + this.rowHeight - room;
    this.draw();
  }

  private get rowHeight(): number {
    return this.rows.height;
  }

  private get small(): boolean {
    return isSmall();
  }

  private newLook(): Look {
    const { store, fit, stairs, small } = this;
    const heat = store.inConvention(store.state.heat);
    return { store, fit, stairs, flat: this.listing.flat, small, heat };
  }

  private listen(): void {
    const { store } = this;
    this.ends.push(
      store.on(["report", "convention", "columns", "heat", "comparison"], () => {
        this.stairs = new Stairs(store);
        this.layout();
      }),
      store.on(["open", "query", "sort", "flat"], (changed) => {
        this.relist();
        if (changed.has("query") || changed.has("sort") || changed.has("flat")) this.scroll.scrollTop = 0;
        this.draw(true);
        if (changed.has("sort")) this.drawHead();
      }),
      store.on(["selection"], () => this.showSelection()),
      store.on(["hover", "fault"], () => this.mark()),
    );
    const observer = new ResizeObserver(() => this.layout());
    observer.observe(this.scroll);
    this.ends.push(() => observer.disconnect());
    this.pointer();
    tableKeys(this, this.store);
  }

  private pointer(): void {
    const { store, body } = this;
    const rowOf = (target: EventTarget | null): string | undefined =>
      (target as Element | null)?.closest<HTMLElement>(".tr")?.dataset["id"];
    body.addEventListener("click", (event) => {
      const id = rowOf(event.target);
      if (id === undefined) return;
      if ((event.target as Element).closest(".twisty")) store.toggle(id);
      else store.set({ selection: id });
    });
    body.addEventListener("dblclick", (event) => {
      const item = store.item(rowOf(event.target));
      if (item && item.children.length > 0 && !this.listing.flat) store.toggle(item.id);
    });
    body.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      const id = rowOf(event.target);
      clearTimeout(this.timer);
      if (id === undefined) return;
      if (store.state.hover?.id === id) {
        store.set({ hover: { id, x: event.clientX, y: event.clientY } });
        return;
      }
      this.timer = window.setTimeout(() => store.set({ hover: { id, x: event.clientX, y: event.clientY } }), HOVER_DELAY);
    });
    body.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "touch") return;
      clearTimeout(this.timer);
      store.set({ hover: null });
    });
  }

  private layout(): void {
    this.fit = fitColumns(this.store, this.scroll.clientWidth, this.small);
    this.scroll.style.setProperty("--columns", this.fit.template);
    this.scroll.style.setProperty("--width", `${this.fit.width.toFixed(1)}px`);
    this.scroll.style.setProperty("--row", `${this.rowHeight}px`);
    this.scroll.classList.toggle("wide", this.fit.width > this.scroll.clientWidth + 1);
    this.scroll.setAttribute("aria-label", `layers of ${this.store.report.network}`);
    this.scroll.setAttribute("aria-colcount", String(this.fit.columns.length));
    this.relist();
    this.drawHead();
    this.draw(true);
  }

  private relist(): void {
    this.listing = listItems(this.store);
    this.look = this.newLook();
    const { items } = this.listing;
    this.body.style.height = `${items.length * this.rowHeight}px`;
    this.scroll.setAttribute("aria-rowcount", String(items.length + 2));
    this.none.hidden = items.length > 0;
    this.none.replaceChildren();
    if (items.length === 0 && this.store.state.query !== "") {
      const clear = h("button", { class: "link", type: "button" }, "Clear");
      clear.addEventListener("click", () => this.store.set({ query: "" }));
      this.none.append(`Nothing named “${this.store.state.query}”. `, clear);
    } else if (items.length === 0) {
      this.none.append("This network has no layers.");
    }
  }

  private drawHead(): void {
    this.head.replaceChildren(headRow(this.store, this.fit, this.look.heat));
    this.total.bind(this.store.model.root, this.listing.items.length, { ...this.look, flat: false });
    this.total.element.removeAttribute("aria-expanded");
    this.total.element.removeAttribute("data-id");
    this.total.element.classList.add("total");
  }

  private draw(force = false): void {
    const { items } = this.listing;
    this.rows.draw(items, (row, item, index) => row.bind(item, index, this.look), force);
    this.mark();
  }

  private mark(): void {
    const { store, listing } = this;
    const shown = (id: string | null | undefined): Item | undefined => {
      const item = store.item(id);
      return item === undefined || listing.flat ? item : visibleItem(item, store.state.open);
    };
    const selected = shown(store.state.selection);
    const hovered = shown(store.state.hover?.id);
    const wrong = shown(store.state.fault);
    let active = "";
    for (const row of this.rows.pool) {
      if (row.item === null) continue;
      row.mark(row.item === selected, row.item === hovered, row.item === wrong);
      if (row.item === selected) active = row.element.id;
    }
    if (active === "") this.scroll.removeAttribute("aria-activedescendant");
    else this.scroll.setAttribute("aria-activedescendant", active);
  }

  private showSelection(): void {
    const { store, listing } = this;
    const item = store.item(store.state.selection);
    if (item !== undefined) {
      const shown = listing.flat ? item : visibleItem(item, store.state.open);
      const index = listing.items.indexOf(shown);
      if (index >= 0) this.show(index);
    }
    this.mark();
  }
}
