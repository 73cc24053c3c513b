// The footer: how much of the network is known, and the stamp of the figures.

import { h } from "./dom";
import type { Pane, Store } from "./store";

export function footer(host: HTMLElement, store: Store): Pane {
  const draw = (): void => {
    const { coverage, stamp } = store.report;
    const { known, total } = coverage;
    const share = total === 0 ? 100 : (known / total) * 100;
    const fill = h("i", {});
    fill.style.width = `${share.toFixed(2)}%`;
    const line = `${known} of ${total} ops known`;
    const list = h("div", { class: "unknowns", hidden: true }, ...unknowns(store));
    const button = h("button", { class: "link", type: "button", "aria-expanded": "false" }, line);
    button.addEventListener("click", () => {
      list.hidden = !list.hidden;
      button.setAttribute("aria-expanded", String(!list.hidden));
    });
    host.replaceChildren(
      h("span", { class: `cov${known < total ? " part" : ""}` }, h("span", { class: "cov-bar", "aria-hidden": "true" }, fill), known < total ? button : line),
      h("code", {}, stamp.text), list, ...licences());
  };
  draw();
  return { destroy: store.on(["report"], draw) };
}

// The licences of what the page is built with.
function licences(): HTMLElement[] {
  const source = document.querySelector<HTMLTemplateElement>("#licences");
  if (source === null) return [];
  const text = h("pre", { class: "licences", hidden: true, tabindex: "0", "aria-label": "licences" });
  const button = h("button", { class: "link", type: "button", "aria-expanded": "false" }, "Licences");
  button.addEventListener("click", () => {
    text.textContent ||= source.content.textContent;
    text.hidden = !text.hidden;
    button.setAttribute("aria-expanded", String(!text.hidden));
  });
  return [button, text];
}

// Each unknown op with the layers that have it.
function unknowns(store: Store): HTMLElement[] {
  const { coverage, layers } = store.report;
  return Object.keys(coverage.unknown ?? {}).map((op) => {
    const inside = layers.map((layer, index) => ({ layer, index }))
      .filter(({ layer }) => layer.status === "unknown" && (layer.source_op || layer.type) === op || layer.type === op);
    const links = inside.slice(0, 40).map(({ layer, index }) => {
      const link = h("button", { class: "link", type: "button" }, layer.name);
      link.addEventListener("click", () => store.reveal(store.model.layerIds[index] ?? ""));
      return link;
    });
    const more = inside.length > links.length ? h("span", {}, `and ${inside.length - links.length} more`) : null;
    return h("p", {}, h("b", {}, op), ...links, more);
  });
}
