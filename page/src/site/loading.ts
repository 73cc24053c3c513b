// The site before the first network: the frame at its final size, and what is being done.

import { h } from "../dom";

const CARDS = 6;
const ROWS = 12;
/** Milliseconds before there is something to say. */
const SOON = 300;

export class Loading {
  readonly element: HTMLElement;
  private readonly line = h("p", { role: "status" });
  private readonly tick: number;

  constructor() {
    const started = performance.now();
    const several = (count: number, kind: string): HTMLElement[] => Array.from({ length: count }, () => h("div", { class: kind }));
    const table = h("section", { class: "panel table" }, h("div", { class: "bar" }), ...several(ROWS, "ghost"));
    this.element = h("div", { class: "shown loading" },
      h("section", { class: "cards" }, ...several(CARDS, "panel card")),
      h("div", { class: "split" }, h("section", { class: "panel gpane" }, h("div", { class: "bar" }), h("div", { class: "canvas" }, this.line)), h("div", { class: "main" }, table)));
    const say = (): void => {
      const passed = performance.now() - started;
      if (passed >= SOON) this.line.textContent = `Starting Python, ${Math.round(passed / 1000)} s, once`;
    };
    this.tick = window.setInterval(say, SOON);
  }

  end(): void {
    clearInterval(this.tick);
    this.element.remove();
  }
}
