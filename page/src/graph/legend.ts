// The legend of the heat classes.

import { h } from "../dom";
import type { Store } from "../store";

export function legend(store: Store): HTMLElement {
  const bounds = store.heatBounds;
  const title = store.title(store.inConvention(store.state.heat));
  const shared = bounds.join() === "0,1,2,4,8,16,32";
  const steps = h("div", { class: "steps" });
  const ticks = h("div", { class: "ticks" });
  bounds.slice(0, 7).forEach((bound) => ticks.append(h("span", {}, bound)));
  for (let heat = 0; heat <= Math.min(7, bounds.length); heat++) {
    const step = h("span");
    step.style.background = `var(--h${heat})`;
    steps.append(step);
  }
  return h("div", { class: shared ? "legend" : "legend bounds" }, h("span", { class: "what" }, shared ? `share of ${title}, %` : title), h("div", { class: "scale" }, steps, ticks));
}
