// A page with one chart: `layerscope plot -o chart.html` puts this script into it.

import { chartTitle, drawChart, type ChartSpec } from "./vega";

interface ChartData {
  spec: ChartSpec;
  themes: Record<string, object>;
}

function start(host: HTMLElement, data: ChartData): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const { title, notes } = chartTitle(data.spec);
  let end: (() => void) | null = null;
  const draw = (): void => {
    const config = data.themes[dark.matches ? "dark" : "light"] ?? Object.values(data.themes)[0] ?? {};
    end?.();
    end = drawChart(host, { ...data.spec, config }, {}).end;
  };
  document.title = title;
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", [title, ...notes].join(". "));
  draw();
  dark.addEventListener("change", draw);
}

const host = document.getElementById("chart");
const source = document.getElementById("layerscope-chart")?.textContent;
if (host !== null && source) start(host, JSON.parse(source) as ChartData);
