// The address of what is shown, after the #: report, selection and convention.

import { isReport } from "./data";
import { itemOfLayer } from "./model";
import { EXACT, type Store } from "./store";

export function followHash(store: Store): void {
  const read = (): void => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const report = store.data.reports.findIndex((one) => isReport(one) && one.network === wanted.get("report"));
    if (report >= 0) store.set({ report });
    const convention = wanted.get("convention");
    if (convention !== null && convention in (store.report.conventions ?? {})) store.set({ convention });
    const name = wanted.get("layer");
    if (name === null) return;
    const index = store.report.layers.findIndex((layer) => layer.name === name);
    const item = index >= 0 ? itemOfLayer(store.model, index) : store.model.items.find((one) => one.full === name);
    if (item !== undefined) store.reveal(item.id);
  };
  const write = (): void => {
    const now = new URLSearchParams();
    if (store.data.reports.length > 1) now.set("report", store.report.network);
    if (store.state.convention !== EXACT) now.set("convention", store.state.convention);
    const item = store.item(store.state.selection);
    if (item !== undefined) now.set("layer", item.full);
    const text = now.toString();
    try {
      history.replaceState(null, "", text === "" ? location.pathname + location.search : `#${text}`);
    } catch {
      // A page from disk may not have a history of its own.
    }
  };
  read();
  store.on(["selection", "report", "convention"], write);
  addEventListener("hashchange", read);
}
