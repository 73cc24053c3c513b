import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/table.css";
import "./styles/panels.css";
import "./styles/print.css";
import { app } from "./app";
import { isReport, readData } from "./data";
import { followHash } from "./hash";
import { networksPage } from "./networks";
import { readNetworks } from "./networks/data";
import { emptyPage, refusedPage } from "./states";
import { Store } from "./store";
import { firstTheme, followTheme } from "./theme";

function start(root: HTMLElement): void {
  const source = document.getElementById("layerscope-data");
  const text = source?.textContent;
  source?.remove();
  document.documentElement.dataset["theme"] = firstTheme();
  const listed = readNetworks(text);
  if (listed !== null) {
    networksPage(root, listed);
    return;
  }
  const data = readData(text);
  if (data === null || data.reports.length === 0) {
    root.replaceChildren(emptyPage());
  } else if (!data.reports.some(isReport)) {
    root.replaceChildren(refusedPage(data));
  } else {
    const store = new Store(data, firstTheme());
    followTheme(store);
    app(root, store);
    followHash(store);
  }
}

const root = document.getElementById("app");
if (root !== null) start(root);
