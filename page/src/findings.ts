// Findings: one sentence each, in which the names of layers and modules are links.

import type { Finding } from "./data";
import { h, icon } from "./dom";
import { itemOfLayer, type Model } from "./model";
import { bytesText } from "./numbers";
import type { Pane, Store } from "./store";

const ICONS: Record<string, string> = {
  bars: "M2.5 13.5v-5h3v5zM6.5 13.5v-8h3v8zM10.5 13.5V2.5h3v11z",
  peak: "M1.5 13 5.5 5l3 5 2-3 4 6z",
  down: "M8 2.5v10.5M3.8 9 8 13.2 12.2 9",
  field: "M2.5 2.5h11v11h-11zM6 6h4v4H6z",
  note: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 7v4M8 4.8v.4",
};

const KINDS: Record<string, string> = {
  activations: "bars", params: "bars", macs: "bars", flops: "bars", time: "bars", peak: "peak", field: "field",
  in_place: "down", order: "down",
};

export function findings(host: HTMLElement, store: Store): Pane {
  const draw = (): void => {
    const { findings: found, notes = [] } = store.report;
    const names = namesOf(store.model);
    const lines = found.map((finding) => line(store, finding, names));
    const said = notes.map((text) => line(store, { kind: "note", text, layers: [] }, names));
    host.replaceChildren(h("div", { class: "top" }, h("h2", {}, "Findings")),
      lines.length + said.length === 0 ? h("p", { class: "empty" }, "Nothing stands out.") : h("ul", { class: "finds" }, ...lines, ...said));
  };
  draw();
  return { destroy: store.on(["report"], draw) };
}

// Ids by the names that a sentence may contain.
function namesOf(model: Model): Map<string, string> {
  const names = new Map<string, string>();
  model.report.layers.forEach((layer, index) => {
    const item = itemOfLayer(model, index);
    if (item !== undefined) names.set(layer.name, item.id);
  });
  for (const item of model.items) if (item.kind === "group" && !names.has(item.full)) names.set(item.full, item.id);
  return names;
}

function line(store: Store, finding: Finding, names: Map<string, string>): HTMLElement {
  const saved = finding.saves_text ?? (finding.saves_bytes ? `−${bytesText(finding.saves_bytes)}` : "");
  const kind = KINDS[finding.kind] ?? (finding.saves_bytes ? "down" : finding.kind.includes("field") ? "field" : "note");
  return h("li", {}, icon(ICONS[kind] ?? "", 16), h("span", {}, ...linked(store, finding.text, names)),
    saved !== "" && h("span", { class: "gain" }, saved));
}

/** A sentence whose names are buttons that select them. */
export function linked(store: Store, text: string, names: Map<string, string>): (Node | string)[] {
  return text.split(/([\s,;:()]+)/).map((word) => {
    const end = /[.!?]$/.test(word) && !names.has(word) ? word.slice(-1) : "";
    const name = end === "" ? word : word.slice(0, -1);
    const id = names.get(name);
    if (id === undefined) return word;
    const button = h("button", { class: "link", type: "button" }, name);
    button.addEventListener("click", () => store.reveal(id));
    const span = h("span", {}, button, end);
    button.addEventListener("pointerenter", () => store.set({ hover: { id, x: null, y: null } }));
    button.addEventListener("pointerleave", () => store.set({ hover: null }));
    return span;
  });
}
