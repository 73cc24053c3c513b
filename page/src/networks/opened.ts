// The report of a row. The address after the # has its key, so that the browser's back button leads
// to the list. Its data is in an element of its own, compressed, and unpacked when it is opened.

import { app } from "../app";
import { readData, type PageData } from "../data";
import { h, icon } from "../dom";
import { Store, type Pane } from "../store";
import type { Networks } from "./state";

const NAME = "network";

export function openNetwork(key: string): void {
  location.hash = new URLSearchParams({ [NAME]: key }).toString();
}

/** Shows the list, or the report that the address names. */
export function followNetwork(store: Networks, list: HTMLElement, host: HTMLElement): void {
  let pane: Pane | null = null;
  let shown: string | null = null;
  let top = 0;
  const close = (): void => {
    pane?.destroy();
    pane = null;
    host.replaceChildren();
    host.hidden = true;
    list.hidden = false;
    document.title = `${store.data.title} · layerscope`;
    scrollTo(0, top);
  };
  const read = async (): Promise<void> => {
    const key = new URLSearchParams(location.hash.slice(1)).get(NAME);
    if (key === shown) return;
    if (shown === null) top = scrollY;
    shown = key;
    const data = key === null ? null : await unpacked(key);
    if (shown !== key) return; // another was opened meanwhile
    close();
    if (data === null || key === null) {
      if (key !== null) store.set({ selection: store.byKey.has(key) ? key : null });
      shown = null;
      return;
    }
    store.set({ selection: key, hover: null });
    const report = new Store(data, store.state.theme);
    report.on(["theme"], () => store.set({ theme: report.state.theme }));
    list.hidden = true;
    host.hidden = false;
    pane = app(host, report);
    const back = h("button", { class: "ctl", type: "button" }, icon("M10 3.5 5.5 8l4.5 4.5"), "All networks");
    back.addEventListener("click", () => (location.hash = ""));
    host.querySelector(".top-bar .title")?.before(back);
    scrollTo(0, 0);
    back.focus({ preventScroll: true });
  };
  addEventListener("hashchange", () => void read());
  void read();
}

async function unpacked(key: string): Promise<PageData | null> {
  const packed = document.getElementById(`report-${key}`)?.textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return readData(await new Response(stream).text());
}
