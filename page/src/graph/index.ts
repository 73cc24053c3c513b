// The graph pane: boxes and edges of the network beside its table.

import "./graph.css";
import type { Pane, Store } from "../store";
import { GraphPane } from "./pane";

export function graphPane(host: HTMLElement, store: Store): Pane {
  return new GraphPane(host, store);
}
