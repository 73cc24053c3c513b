// Vega-Lite specifications drawn by Vega. No text becomes code: expressions run in vega-interpreter.
// Nothing is loaded, and tooltips are text.

import { Error as Errors, logger, parse, View, type Spec } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { h } from "./dom";

export type ChartSpec = Record<string, unknown>;

export interface Drawn {
  /** Lights the marks of layers. */
  choose(layers: readonly number[]): void;
  /** Done when the chart is on the page. */
  ready: Promise<unknown>;
  end(): void;
}

interface Handlers {
  click?: (layer: number) => void;
  hover?: (layer: number | null) => void;
}

const REFUSES = { load: refuse, sanitize: refuse, http: refuse, file: refuse };

function refuse(): Promise<never> {
  return Promise.reject(new Error("charts load nothing"));
}

export function chartTitle(spec: ChartSpec): { title: string; notes: string[] } {
  const meta = (spec["usermeta"] ?? {}) as { title?: string; notes?: string[] };
  return { title: meta.title ?? "", notes: meta.notes ?? [] };
}

export function drawChart(host: HTMLElement, spec: ChartSpec, handlers: Handlers): Drawn {
  const compiled = compile(spec as unknown as TopLevelSpec, { logger: logger(Errors) });
  const runtime = parse(compiled.spec as Spec, undefined, { ast: true });
  const tip = tooltip();
  const canvas = h("div", {});
  host.replaceChildren(canvas);
  const view = new View(runtime, {
    expr: expressionInterpreter, renderer: "svg", container: canvas, hover: true, logLevel: Errors,
    loader: REFUSES as never, tooltip: (_handler, event, _item, value) => tip.show(event, value),
  });
  view.addEventListener("click", (_event, item) => {
    const layer = layerOf(item);
    if (layer !== null) handlers.click?.(layer);
  });
  view.addEventListener("mouseover", (_event, item) => handlers.hover?.(layerOf(item)));
  view.addEventListener("mouseout", () => handlers.hover?.(null));
  return {
    choose: (layers) => void view.signal("chosen", layers).runAsync(),
    ready: view.run().runAsync(),
    end: () => {
      tip.element.remove();
      view.finalize();
    },
  };
}

function layerOf(item: unknown): number | null {
  const layer = (item as { datum?: { layer?: unknown } } | null | undefined)?.datum?.layer;
  return typeof layer === "number" ? layer : null;
}

function tooltip(): { element: HTMLElement; show: (event: MouseEvent, value: unknown) => void } {
  const element = h("div", { class: "tip", role: "tooltip" });
  const show = (event: MouseEvent, value: unknown): void => {
    if (value === null || value === undefined || value === "") {
      element.remove();
      return;
    }
    const pairs = typeof value === "object" ? Object.entries(value) : [["", String(value)]];
    element.replaceChildren(...pairs.map(([key, text]) => h("div", {}, key !== "" && h("span", { class: "muted" }, `${key} `), String(text))));
    element.style.cssText = "position:fixed;pointer-events:none;z-index:60";
    document.body.append(element);
    element.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - element.offsetWidth - 8))}px`;
    element.style.top = `${Math.max(8, Math.min(event.clientY + 14, innerHeight - element.offsetHeight - 8))}px`;
  };
  return { element, show };
}
