// The graph pane: keeps the picture, the view and what is lit in step with the store.

import { h } from "../dom";
import type { Pane, Store } from "../store";
import { Bar } from "./bar";
import { CanvasDrawing } from "./canvas";
import type { Drawing, Marks } from "./drawing";
import { legend } from "./legend";
import { shownPart, visibleLevels, type Visible } from "./levels";
import { Look } from "./look";
import { hit, hitEdge, litBoxes, spotOf, touched } from "./marking";
import { Minimap } from "./minimap";
import { between, Motion, moves } from "./motion";
import { buildParts, firstOpen, type Part, type Parts } from "./parts";
import { pngBlob, svgText } from "./picture";
import { Runner } from "./runner";
import { sceneOf, specOf, type Scene } from "./scene";
import { SvgDrawing } from "./svg";
import { Twin } from "./twin";
import { LEAST, Viewport } from "./viewport";

/** Boxes above which the graph is drawn on a canvas. */
const SVG_BOXES = 1000;
const FIRST_ZOOM = 0.86;
const HOVER = 80;

export class GraphPane implements Pane {
  private readonly canvas = h("div", { class: "canvas" });
  private readonly bar: Bar;
  private readonly viewport: Viewport;
  private readonly minimap: Minimap;
  private readonly twin: Twin;
  private readonly runner = new Runner();
  private readonly motion = new Motion();
  private readonly end = new AbortController();
  private readonly ends: (() => void)[] = [];
  private drawing: Drawing = new SvgDrawing();
  private legend: HTMLElement = h("div");
  private parts: Parts;
  private visible: Visible;
  private scene: Scene | null = null;
  private look: Look;
  /** Id of the box that stays where it is when the layout changes. */
  private anchor: string | null = null;
  private edge: string | null = null;
  private fresh = true;
  private timer = 0;

  constructor(private readonly host: HTMLElement, private readonly store: Store) {
    this.viewport = new Viewport(this.canvas, {
      changed: (view) => {
        this.drawing.look(view);
        this.minimap.look(view);
        this.bar.zoomed(view.k);
        this.ground();
      },
      over: (at) => this.over(at),
      click: (at) => this.click(at),
    });
    this.bar = new Bar(store, { zoom: (factor) => this.viewport.zoom(factor), fit: () => this.fit(LEAST) });
    this.minimap = new Minimap(this.viewport);
    this.twin = new Twin({
      select: (id) => store.set({ selection: id, hover: null }),
      open: (id, open) => this.open(id, open),
      pin: (id) => store.set({ selection: id, hover: { id, x: null, y: null } }),
    });
    this.canvas.append(this.drawing.element, this.minimap.element, this.twin.element);
    host.replaceChildren(this.bar.element, this.canvas, this.legend);
    this.parts = buildParts(store.model);
    this.visible = { root: { part: this.parts.root, boxes: [], nets: [] }, levels: [], at: new Map() };
    this.look = new Look(store);
    this.listen();
    this.start();
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.motion.stop();
    this.runner.stop();
    this.end.abort();
    for (const end of this.ends) end();
    this.viewport.destroy();
    this.twin.destroy();
    this.drawing.destroy();
    this.host.replaceChildren();
  }

  svg(): Promise<string> {
    return Promise.resolve(this.scene === null ? "" : svgText(this.scene, this.look, this.canvas));
  }

  async png(): Promise<Blob> {
    if (this.scene === null) throw new Error("there is no graph yet");
    return pngBlob(await this.svg(), this.scene);
  }

  private listen(): void {
    const { store, ends } = this;
    ends.push(store.on(["report", "open", "heat", "convention", "comparison", "direction", "theme", "selection", "hover", "query", "fault"], (changed) => {
      if (changed.has("report")) {
        this.parts = buildParts(store.model);
        this.start();
        return;
      }
      if (changed.has("direction")) this.fresh = true;
      if (changed.has("open") || changed.has("direction")) this.lay();
      else if (changed.has("heat") || changed.has("convention") || changed.has("comparison") || changed.has("theme")) this.redraw();
      if (changed.has("heat") || changed.has("convention") || changed.has("direction")) this.bar.update();
      if (changed.has("fault")) this.twin.fill(this.visible.root, (part) => this.described(part));
      if (changed.has("selection")) this.selected();
      this.mark();
    }));
    const { signal } = this.end;
    addEventListener("beforeprint", () => { if (this.drawing instanceof SvgDrawing) this.drawing.print(this.scene); }, { signal });
    addEventListener("afterprint", () => {
      if (this.drawing instanceof SvgDrawing) this.drawing.print(null);
      this.drawing.look(this.viewport.view);
    }, { signal });
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    let size = "";
    const resized = new ResizeObserver(() => {
      const now = `${this.canvas.clientWidth}×${this.canvas.clientHeight}`;
      if (now === size) return;
      const first = size === "" || size.startsWith("0×");
      size = now;
      if (first) this.fit(FIRST_ZOOM);
      else this.viewport.set({ ...this.viewport.view });
      this.minimap.look(this.viewport.view);
    });
    resized.observe(this.canvas);
    ends.push(() => resized.disconnect());
  }

  // A report that nobody opened a module of opens the first costly block.
  private start(): void {
    const { store } = this;
    this.fresh = true;
    this.scene = null;
    this.bar.update();
    if (store.state.open.size === 0) {
      const first = firstOpen(this.parts, (item) => store.share(item, store.state.heat));
      if (first.size > 0) {
        store.set({ open: first });
        if (this.scene !== null) return;
      }
    }
    this.lay();
    this.mark();
  }

  private lay(): void {
    const { store } = this;
    const { direction } = store.state;
    const visible = visibleLevels(this.parts, store.state.open);
    const { anchor } = this;
    this.runner.run(specOf(visible.root, store.report), direction, (placed) => {
      this.visible = visible;
      this.show(sceneOf(visible, placed, direction), anchor);
    });
  }

  private show(scene: Scene, anchor: string | null): void {
    const { viewport } = this;
    const before = this.scene;
    const old = anchor === null ? undefined : before?.byId.get(anchor)?.anchor;
    const now = anchor === null ? undefined : scene.byId.get(anchor)?.anchor;
    this.scene = scene;
    viewport.content = { w: scene.w, h: scene.h };
    this.motion.stop();
    this.redraw();
    if (this.fresh || before === null) {
      this.fresh = false;
      this.fit(FIRST_ZOOM);
    } else {
      const { x, y, k } = viewport.view;
      const [dx, dy] = old !== undefined && now !== undefined ? [old[0] - now[0], old[1] - now[1]] : [0, 0];
      viewport.set({ k, x: x + dx * k, y: y + dy * k });
      if (moves() && this.drawing instanceof SvgDrawing) {
        const shifted = dx === 0 && dy === 0 ? before : translated(before, -dx, -dy);
        this.drawing.move(between(shifted, scene, 0));
        this.motion.run((share) => this.drawing.move(between(shifted, scene, share)), () => this.drawing.move(scene));
      }
    }
    this.drawing.look(viewport.view);
    this.minimap.look(viewport.view);
    this.mark();
  }

  // The same boxes in other colours, or other boxes.
  private redraw(): void {
    const { scene, store } = this;
    if (scene === null) return;
    this.look = new Look(store);
    const svg = scene.boxes.length <= SVG_BOXES;
    if (svg !== this.drawing instanceof SvgDrawing) {
      const next = svg ? new SvgDrawing() : new CanvasDrawing();
      this.drawing.element.replaceWith(next.element);
      this.drawing.destroy();
      this.drawing = next;
      next.look(this.viewport.view);
    }
    this.drawing.draw(scene, this.look);
    const { look } = this;
    requestAnimationFrame(() => { // after the page has its new colours
      if (this.scene !== scene || this.look !== look) return;
      this.minimap.draw(scene, look);
      this.minimap.look(this.viewport.view);
    });
    const key = legend(store);
    this.legend.replaceWith(key);
    this.legend = key;
    this.twin.fill(this.visible.root, (part) => this.described(part));
  }

  private described(part: Part): string {
    const { store } = this;
    const column = store.inConvention(store.state.heat);
    const heat = part.item === null ? "" : store.text(part.item, column);
    const fault = store.state.fault !== null && part.id === store.state.fault ? "has the error" : "";
    return [part.type, heat === "" ? "" : `${store.title(column)} ${heat}`, fault].filter((word) => word !== "").join(", ");
  }

  private mark(): void {
    const { store, scene, parts, visible } = this;
    if (scene === null) return;
    const { selection, hover, fault } = store.state;
    const shown = (id: string | null | undefined): string | null => {
      if (!id) return null;
      if (scene.byId.has(id) || scene.cells.has(id)) return id;
      const part = shownPart(parts.byId.get(id) ?? this.twinOf(id), visible.at);
      return part === undefined ? null : (part.solo?.id ?? part.id);
    };
    const edges = new Set<string>();
    const users = new Set<string>();
    for (const id of [selection, hover?.id]) {
      const part = id ? parts.byId.get(id) : undefined;
      if (part === undefined) continue;
      const found = touched(parts, visible, scene, part);
      for (const key of found.edges) edges.add(key);
      if (id === selection) for (const user of found.users) users.add(user);
    }
    const over = scene.edges.find((edge) => edge.key === this.edge);
    if (over !== undefined) {
      for (const edge of scene.edges) if (edge.net.tensors.some((tensor) => over.net.tensors.includes(tensor))) edges.add(edge.key);
      for (const id of over.ends.slice(1)) users.add(id);
    }
    const marks: Marks = {
      selected: shown(selection), hovered: shown(hover?.id), users, edges, fault: shown(fault),
      lit: store.matches === null ? null : litBoxes(parts, visible, store.matches),
    };
    this.drawing.mark(marks);
    this.twin.select(marks.selected);
  }

  // A layer of a repetition that is not shown, by its id.
  private twinOf(id: string): Part | undefined {
    const layer = id.startsWith("l") ? Number(id.slice(1)) : NaN;
    const twin = this.store.model.layerIds[layer];
    return twin === undefined ? undefined : this.parts.byId.get(twin);
  }

  private selected(): void {
    const { scene, store } = this;
    const { selection } = store.state;
    if (scene === null || selection === null) return;
    const part = shownPart(this.parts.byId.get(selection) ?? this.twinOf(selection), this.visible.at);
    const spot = spotOf(scene, selection) ?? (part === undefined ? null : spotOf(scene, part.solo?.id ?? part.id));
    if (spot !== null) this.viewport.show(spot);
  }

  private over(at: { x: number; y: number } | null): void {
    clearTimeout(this.timer);
    const { scene, store } = this;
    if (at === null || scene === null) {
      this.edge = null;
      if (store.state.hover !== null) store.set({ hover: null });
      return;
    }
    const world = this.viewport.world(at);
    const found = hit(scene, world.x, world.y);
    const edge = found === null ? hitEdge(scene, world.x, world.y, 5 / this.viewport.view.k) : null;
    this.canvas.classList.toggle("pointing", found !== null);
    if (edge !== this.edge) {
      this.edge = edge;
      this.mark();
    }
    const id = found === null || !this.store.item(found.id) ? null : found.id;
    if (id === null) {
      if (store.state.hover !== null) store.set({ hover: null });
    } else if (store.state.hover !== null) store.set({ hover: { id, ...at } });
    else this.timer = window.setTimeout(() => store.set({ hover: { id, ...at } }), HOVER);
  }

  private click(at: { x: number; y: number }): void {
    const { scene, store } = this;
    if (scene === null) return;
    const world = this.viewport.world(at);
    const found = hit(scene, world.x, world.y);
    if (found === null) {
      store.set({ selection: null, hover: null });
      return;
    }
    const { kind } = found.own.box;
    if (store.item(found.id) !== undefined) store.set({ selection: found.id });
    this.twin.focus(found.id);
    if (kind === "module" || kind === "frame") this.open(found.id, kind === "module");
  }

  private open(id: string, open: boolean): void {
    this.anchor = id;
    this.store.toggle(id, open);
    this.anchor = null;
  }

  private key(event: KeyboardEvent): void {
    const { target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target instanceof HTMLElement && target.closest("input,select,textarea,[contenteditable],[role=menu]") !== null) return;
    if (event.key === "f") this.fit(LEAST);
    else if (event.key === "+" || event.key === "=") this.viewport.zoom(1.25);
    else if (event.key === "-") this.viewport.zoom(1 / 1.25);
    else return;
    event.preventDefault();
  }

  private fit(least: number): void {
    this.viewport.fit(least, this.store.state.direction === "down");
  }

  private ground(): void {
    const { x, y, k } = this.viewport.view;
    const step = 16 * k * Math.max(1, Math.ceil(0.8 / k));
    this.canvas.style.backgroundPosition = `${x}px ${y}px`;
    this.canvas.style.backgroundSize = `${step}px ${step}px`;
  }
}

function translated(scene: Scene, dx: number, dy: number): Scene {
  const boxes = scene.boxes.map((own) => ({ ...own, x: own.x + dx, y: own.y + dy }));
  const edges = scene.edges.map((edge) => ({
    ...edge,
    routes: edge.routes.map((points) => points.map((value, at) => value + (at % 2 === 0 ? dx : dy))),
    labels: edge.labels.map((label) => ({ ...label, x: label.x + dx, y: label.y + dy })),
  }));
  return { ...scene, boxes, edges, byId: new Map(boxes.map((own) => [own.id, own])) };
}
