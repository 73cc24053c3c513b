// Memory over the order of execution, with the peak and what is alive at the step under the pointer.

import type { Tensor } from "./data";
import { h, s, times } from "./dom";
import type { Pane, Store } from "./store";
import { bytesText, parts } from "./numbers";

const HEIGHT = 262;
const LEFT = 44;
const RIGHT = 12;
const TOP = 34;
const BOTTOM = 42;
const LISTED = 6;

export function memory(host: HTMLElement, store: Store): Pane {
  let chart: Chart | null = null;
  let width = 0;
  const draw = (): void => {
    const steps = store.report.memory.timeline ?? [];
    host.hidden = steps.length === 0;
    if (steps.length === 0) return;
    width = host.clientWidth - 2;
    chart = new Chart(store, steps, Math.max(260, width));
    host.replaceChildren(
      h("div", { class: "top" }, h("h2", {}, "Memory over execution"), h("span", { class: "s" }, store.report.memory.in_place ? "activations alive at each step, in place where possible" : "activations alive at each step, nothing in place")),
      chart.element, chart.list);
  };
  draw();
  const observer = new ResizeObserver(() => {
    if (Math.abs(host.clientWidth - 2 - width) > 1) draw();
  });
  observer.observe(host);
  const ends = [
    () => observer.disconnect(),
    store.on(["report"], draw),
    store.on(["selection", "hover", "step"], () => chart?.mark()),
  ];
  return { destroy: () => ends.forEach((end) => end()) };
}

class Chart {
  readonly element: SVGSVGElement;
  readonly list = h("div", { class: "alive" });
  private readonly band = s("rect", { class: "band", y: TOP, height: HEIGHT - TOP - BOTTOM });
  private readonly peak: number;
  private readonly most: number;
  private listed = -1;

  constructor(private readonly store: Store, private readonly steps: number[], private readonly width: number) {
    this.most = Math.max(...steps, 1);
    this.peak = steps.indexOf(this.most);
    const name = store.report.layers[this.peak]?.name ?? "";
    this.element = s("svg", { class: "plot", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `bytes alive at each of ${steps.length} steps; peak ${bytesText(this.most)} at ${name}` },
      ...this.axis(), this.band, s("path", { class: "area", d: this.path(true) }), s("path", { class: "area-line", d: this.path(false) }), ...this.modules(), ...this.peakMark(name));
    this.element.addEventListener("pointermove", (event) => this.point(event));
    this.element.addEventListener("click", () => this.choose());
    this.element.addEventListener("pointerleave", () => store.set({ step: null, hover: null }));
    this.mark();
  }

  mark(): void {
    const { store } = this;
    const item = store.item(store.state.hover?.id ?? store.state.selection);
    const step = store.state.step;
    const first = step ?? item?.layers[0];
    const last = step ?? item?.layers.at(-1);
    this.band.setAttribute("visibility", first === undefined ? "hidden" : "visible");
    if (first !== undefined && last !== undefined) {
      const x = this.x(first);
      this.band.setAttribute("x", x.toFixed(1));
      this.band.setAttribute("width", Math.max(1.5, this.x(last + 1) - x).toFixed(1));
    }
    this.drawList(step ?? (item?.kind === "layer" ? (item.layer ?? this.peak) : this.peak));
  }

  private x(step: number): number {
    return LEFT + (step / this.steps.length) * (this.width - LEFT - RIGHT);
  }

  private y(bytes: number): number {
    return HEIGHT - BOTTOM - (bytes / this.most) * (HEIGHT - TOP - BOTTOM);
  }

  private path(closed: boolean): string {
    const base = (HEIGHT - BOTTOM).toFixed(1);
    let path = closed ? `M${LEFT},${base}` : "";
    this.steps.forEach((bytes, step) => {
      const y = this.y(bytes).toFixed(1);
      path += `${path === "" ? "M" : "L"}${this.x(step).toFixed(1)},${y}H${this.x(step + 1).toFixed(1)}`;
    });
    return closed ? `${path}V${base}z` : path;
  }

  private axis(): SVGElement[] {
    const [, prefix] = parts(this.most);
    const unit = 1000 ** "kMGTPE".indexOf(prefix === "" ? "k" : prefix) * (prefix === "" ? 1 : 1000);
    const step = niceStep(this.most / unit / 5);
    const group = s("g", { class: "ax" }, s("text", { x: LEFT - 8, y: TOP - 16, "text-anchor": "end" }, `${prefix}B`));
    for (let tick = 0; tick * unit <= this.most * 1.001; tick += step) {
      const y = this.y(tick * unit);
      group.append(s("line", { x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }), s("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, String(Number(tick.toPrecision(6)))));
    }
    return [group];
  }

  // Brackets of the top modules under the axis, named where the name fits.
  private modules(): SVGElement[] {
    const y = HEIGHT - BOTTOM + 7;
    const group = s("g", { class: "ax" });
    for (const item of this.store.model.root.children) {
      const first = item.layers[0];
      const last = item.layers.at(-1);
      if (item.kind !== "group" || first === undefined || last === undefined) continue;
      const [left, right] = [this.x(first) + 1, this.x(last + 1) - 1];
      if (right - left < 4) continue;
      group.append(s("path", { d: `M${left},${y - 3}v3H${right}v-3` }));
      if (item.name.length * 6 < right - left) group.append(s("text", { x: (left + right) / 2, y: y + 16, "text-anchor": "middle" }, item.name));
    }
    return [group];
  }

  private peakMark(name: string): SVGElement[] {
    const y = this.y(this.most);
    const x = (this.x(this.peak) + this.x(this.peak + 1)) / 2;
    const right = x > this.width * 0.55;
    return [
      s("line", { class: "peak", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }),
      s("circle", { class: "peak-dot", cx: x, cy: y, r: 4.5 }),
      s("text", { class: "note", x: right ? x + 8 : Math.max(LEFT, x - 8), y: y - 12, "text-anchor": right ? "end" : "start" },
        s("tspan", { "font-weight": 600 }, bytesText(this.most)), ` at ${name}, step ${this.peak + 1} of ${this.steps.length}`),
    ];
  }

  private point(event: PointerEvent): void {
    const box = this.element.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const step = Math.floor(((x - LEFT) / (this.width - LEFT - RIGHT)) * this.steps.length);
    if (step < 0 || step >= this.steps.length) return;
    const id = this.store.model.layerIds[step];
    this.store.set({ step, hover: id ? { id, x: null, y: null } : null });
  }

  private choose(): void {
    const step = this.store.state.step;
    const id = step === null ? undefined : this.store.model.layerIds[step];
    if (id) this.store.reveal(id);
  }

  private drawList(step: number): void {
    if (step === this.listed) return;
    this.listed = step;
    const { report } = this.store;
    const alive = report.tensors
      .filter((tensor) => tensor.first <= step && step <= tensor.last && (tensor.counted ?? tensor.bytes ?? 0) > 0)
      .sort((a, b) => (b.counted ?? b.bytes ?? 0) - (a.counted ?? a.bytes ?? 0));
    const name = report.layers[step]?.name ?? "";
    const where = step === this.peak ? "Alive at the peak" : `Alive at ${name}`;
    const count = `${alive.length} tensor${alive.length === 1 ? "" : "s"}, ${bytesText(this.steps[step] ?? 0)}`;
    const rows = alive.slice(0, LISTED).map((tensor) => this.tensorRow(tensor));
    const more = alive.length > LISTED ? h("div", { class: "muted" }, `and ${alive.length - LISTED} more`) : null;
    this.list.replaceChildren(h("h3", {}, where, h("span", { class: "muted" }, ` · ${count}`)), ...rows, more ?? "");
  }

  private tensorRow(tensor: Tensor): HTMLElement {
    const id = tensor.producer === null ? undefined : this.store.model.layerIds[tensor.producer];
    const link = h(id ? "button" : "span", { class: id ? "link" : "", type: id ? "button" : null, title: tensor.name }, tensor.name);
    if (id) link.addEventListener("click", () => this.store.reveal(id));
    const fill = h("i", {});
    fill.style.width = `${(((tensor.counted ?? tensor.bytes ?? 0) / this.most) * 100).toFixed(1)}%`;
    return h("div", { class: "r" }, h("span", { class: "cut" }, link), h("span", {}, times(tensor.text ?? "")), h("span", {}, tensor.size ?? ""), h("span", { class: "track", "aria-hidden": "true" }, fill));
  }
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough) ?? 10;
  return step * power;
}
