import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/layout.css";
import "../styles/table.css";
import "../styles/panels.css";
import "../styles/print.css";
import "../styles/site.css";
import { h } from "../dom";
import { firstTheme } from "../theme";
import { Site } from "./site";

const root = document.getElementById("app");
document.documentElement.dataset["theme"] = firstTheme();
if (root !== null) {
  const site = new Site(root);
  void site.start().catch((error: unknown) => root.append(h("p", { class: "stale", role: "alert" }, String(error))));
}
// Offline after the first visit; a page without https has no service worker.
if ("serviceWorker" in navigator && import.meta.env.PROD) void navigator.serviceWorker.register("sw.js").catch(() => undefined);
