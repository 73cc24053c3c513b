// The bar above the graph: heat column, zoom, direction.

import { h } from "../dom";
import type { Store } from "../store";

export interface BarActions {
  zoom(factor: number): void;
  fit(): void;
}

export class Bar {
  readonly element: HTMLElement;
  private readonly heat = h("select", { "aria-label": "heat: the column that colours the graph" });
  private readonly percent = h("button", { type: "button", title: "fit the graph (f)" });
  private readonly down = h("button", { type: "button", "aria-label": "from top to bottom", title: "from top to bottom" }, "↓");
  private readonly right = h("button", { type: "button", "aria-label": "from left to right", title: "from left to right" }, "→");

  constructor(private readonly store: Store, actions: BarActions) {
    const less = h("button", { type: "button", "aria-label": "zoom out", title: "zoom out (-)" }, "−");
    const more = h("button", { type: "button", "aria-label": "zoom in", title: "zoom in (+)" }, "+");
    less.addEventListener("click", () => actions.zoom(1 / 1.25));
    more.addEventListener("click", () => actions.zoom(1.25));
    this.percent.addEventListener("click", () => actions.fit());
    this.heat.addEventListener("change", () => store.set({ heat: this.heat.value }));
    this.down.addEventListener("click", () => store.set({ direction: "down" }));
    this.right.addEventListener("click", () => store.set({ direction: "right" }));
    this.element = h("div", { class: "bar" },
      h("h2", {}, "Graph"), h("span", { class: "grow" }),
      h("label", { class: "ctl sm heat" }, h("span", { class: "k" }, "heat"), this.heat),
      h("div", { class: "zoom", role: "group", "aria-label": "zoom" }, less, this.percent, more),
      h("div", { class: "seg", role: "group", "aria-label": "direction" }, this.down, this.right));
    this.update();
  }

  update(): void {
    const { store } = this;
    const columns = store.listed().filter((column) => column.kind !== "text" && column.kind !== "percent");
    this.heat.replaceChildren(...columns.map((column) => h("option", { value: column.name }, this.named(column.name))));
    this.heat.value = store.state.heat;
    this.down.setAttribute("aria-pressed", String(store.state.direction === "down"));
    this.right.setAttribute("aria-pressed", String(store.state.direction === "right"));
  }

  // What a convention counts may have the title of an exact column.
  private named(column: string): string {
    const { store } = this;
    const shown = store.inConvention(column);
    return shown === column ? store.title(column) : `${store.title(shown)} (${store.state.convention})`;
  }

  zoomed(k: number): void {
    const shown = `${Math.round(k * 100)} %`;
    this.percent.textContent = shown;
    this.percent.setAttribute("aria-label", `fit the graph, now at ${shown}`);
  }
}
