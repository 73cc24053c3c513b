// The chosen network: its figures, and its report or the command that writes it.

import { copyText } from "../files";
import { h } from "../dom";
import { openNetwork } from "./opened";
import type { Networks } from "./state";

export function chosenNetwork(host: HTMLElement, store: Networks): void {
  const draw = (): void => {
    const row = store.byKey.get(store.state.selection ?? "");
    host.hidden = row === undefined;
    if (row === undefined) return;
    const pairs = store.data.columns.map((column, at) => ({ column, text: row.texts[at] ?? "" }))
      .filter(({ column, text }) => text !== "" && column.name !== "name" && column.name !== "error");
    host.replaceChildren(
      h("h2", { title: row.name }, row.name),
      h("dl", {}, ...pairs.map(({ column, text }) => h("div", {}, h("dt", {}, column.title), h("dd", {}, text)))),
      ...(row.error ? [h("pre", {}, row.error)] : []),
      row.has_report ? openButton(row.key) : row.command ? command(row.command) : "",
    );
  };
  draw();
  store.on(["selection"], draw);
}

function openButton(key: string): HTMLElement {
  const button = h("button", { class: "ctl", type: "button" }, "Open report");
  button.addEventListener("click", () => openNetwork(key));
  return button;
}

function command(text: string): HTMLElement {
  const copy = h("button", { class: "ctl sm", type: "button" }, "Copy");
  copy.addEventListener("click", () => void copyText(text).then((ok) => (copy.textContent = ok ? "Copied" : "the browser refused")));
  return h("p", {}, "This page does not contain its report, which a command writes: ", h("code", {}, text), " ", copy);
}
