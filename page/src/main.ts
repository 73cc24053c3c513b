import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import { app } from "./app";
import { readData } from "./data";
import { Store } from "./store";
import { firstTheme, followTheme } from "./theme";

const root = document.getElementById("app");
const data = readData(document.getElementById("layerscope-data")?.textContent);
if (root !== null && data !== null) {
  const store = new Store(data, firstTheme());
  followTheme(store);
  app(root, store);
}
