// The graph on a canvas, for more boxes than SVG draws fluently. Only what is in view is drawn.

import { h } from "../dom";
import { DETAIL, DIM, NAMES, NO_MARKS, type Drawing, type Marks, type View } from "./drawing";
import { edgeShapes, type Look } from "./look";
import { markShapes } from "./marking";
import type { Scene, SceneBox, SceneEdge } from "./scene";
import { FONT, LARGE, type Shape, type Token } from "./shapes";

export class CanvasDrawing implements Drawing {
  readonly element = h("canvas", { class: "gx", "aria-hidden": "true" });
  private readonly context = this.element.getContext("2d");
  private readonly colours = new Map<Token, string>();
  private readonly shapes = new Map<string, Shape[]>();
  private readonly bounds = new Map<string, [number, number, number, number]>();
  private readonly resize = new ResizeObserver(() => this.paint());
  private scene: Scene | null = null;
  private boxLook: Look | null = null;
  private marks: Marks = NO_MARKS;
  private view: View = { x: 0, y: 0, k: 1 };
  private waiting = 0;

  constructor() {
    this.resize.observe(this.element);
  }

  draw(scene: Scene, look: Look): void {
    this.boxLook = look;
    this.colours.clear();
    this.shapes.clear();
    this.move(scene);
  }

  move(scene: Scene): void {
    this.scene = scene;
    this.bounds.clear();
    this.soon();
  }

  mark(marks: Marks): void {
    this.marks = marks;
    this.soon();
  }

  look(view: View): void {
    this.view = view;
    this.soon();
  }

  destroy(): void {
    cancelAnimationFrame(this.waiting);
    this.resize.disconnect();
    this.element.remove();
  }

  private soon(): void {
    if (this.waiting === 0) this.waiting = requestAnimationFrame(() => this.paint());
  }

  private colour(token: Token): string {
    let value = this.colours.get(token);
    if (value === undefined) this.colours.set(token, (value = getComputedStyle(this.element).getPropertyValue(`--${token}`).trim()));
    return value;
  }

  private paint(): void {
    this.waiting = 0;
    const { context: g, element, scene, view } = this;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [element.clientWidth, element.clientHeight];
    if (g === null || scene === null || w === 0 || h === 0) return;
    if (element.width !== Math.round(w * ratio) || element.height !== Math.round(h * ratio)) {
      element.width = Math.round(w * ratio);
      element.height = Math.round(h * ratio);
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    g.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * view.x, ratio * view.y);
    const [left, top] = [-view.x / view.k, -view.y / view.k];
    const [right, bottom] = [left + w / view.k, top + h / view.k];
    const inView = (own: SceneBox): boolean => own.x <= right && own.x + own.w >= left && own.y <= bottom && own.y + own.h >= top;
    for (const own of scene.boxes) if (own.box.kind === "frame" && inView(own)) this.box(own);
    this.edges(scene.edges.filter((edge) => {
      const [x1, y1, x2, y2] = this.edgeBounds(edge);
      return x1 <= right && x2 >= left && y1 <= bottom && y2 >= top;
    }));
    for (const own of scene.boxes) if (own.box.kind !== "frame" && inView(own)) this.box(own);
    g.globalAlpha = 1;
    for (const shape of markShapes(scene, this.marks)) this.shape(shape);
  }

  private edges(edges: SceneEdge[]): void {
    const { context: g, marks, view } = this;
    if (g === null) return;
    g.globalAlpha = marks.lit === null ? 1 : DIM;
    g.lineJoin = "round";
    if (view.k < NAMES) {
      this.far(edges);
      return;
    }
    const sorted = marks.edges.size === 0 ? edges : [...edges].sort((a, b) => Number(marks.edges.has(a.key)) - Number(marks.edges.has(b.key)));
    for (const edge of sorted) {
      const { line, arrows, labels } = edgeShapes(edge, marks.edges.has(edge.key));
      this.shape(line);
      this.shape(arrows);
      for (const label of labels) {
        if (label.kind !== "text" || view.k < DETAIL) continue;
        g.font = `${label.size}px ${FONT}`;
        g.textAlign = label.anchor === "middle" ? "center" : "left";
        g.strokeStyle = this.colour("surface");
        g.lineWidth = 4;
        g.strokeText(label.text, label.x, label.y);
        this.shape(label);
      }
    }
  }

  // From afar, corners and arrows cannot be seen: straight lines, in one path for each colour.
  private far(edges: SceneEdge[]): void {
    const { context: g, marks, view } = this;
    if (g === null) return;
    for (const on of [false, true]) {
      g.beginPath();
      for (const edge of edges) {
        if (marks.edges.has(edge.key) !== on) continue;
        for (const points of edge.routes) {
          g.moveTo(points[0]!, points[1]!);
          for (let at = 2; at < points.length; at += 2) g.lineTo(points[at]!, points[at + 1]!);
        }
      }
      g.strokeStyle = this.colour(on ? "accent" : "edge");
      g.lineWidth = Math.max(1, (on ? 1.5 : 0.7) / view.k);
      g.stroke();
    }
  }

  private edgeBounds(edge: SceneEdge): [number, number, number, number] {
    let found = this.bounds.get(edge.key);
    if (found === undefined) {
      found = [Infinity, Infinity, -Infinity, -Infinity];
      for (const points of edge.routes) {
        for (let at = 0; at < points.length; at += 2) {
          found[0] = Math.min(found[0], points[at]! - 4);
          found[1] = Math.min(found[1], points[at + 1]! - 4);
          found[2] = Math.max(found[2], points[at]! + 80);
          found[3] = Math.max(found[3], points[at + 1]! + 4);
        }
      }
      this.bounds.set(edge.key, found);
    }
    return found;
  }

  private box(own: SceneBox): void {
    const { context: g, marks, view } = this;
    if (g === null || this.boxLook === null) return;
    g.globalAlpha = marks.lit === null || marks.lit.has(own.id) ? 1 : DIM;
    if (view.k < NAMES && own.box.kind !== "frame") {
      g.fillStyle = this.colour(own.box.kind === "input" ? "sunk" : `h${this.boxLook.heat(own.box.part)}`);
      g.fillRect(own.x, own.y, own.w, own.h);
      g.strokeStyle = this.colour("line-2");
      g.lineWidth = 0.6 / view.k;
      g.strokeRect(own.x, own.y, own.w, own.h);
      return;
    }
    let shapes = this.shapes.get(own.id);
    if (shapes === undefined) this.shapes.set(own.id, (shapes = this.boxLook.box(own)));
    g.translate(own.x, own.y);
    for (const shape of shapes) {
      if (shape.kind === "text" && (view.k < NAMES || (view.k < DETAIL && shape.detail === 2))) continue;
      this.shape(shape);
    }
    g.translate(-own.x, -own.y);
  }

  private shape(shape: Shape): void {
    const g = this.context;
    if (g === null) return;
    if (shape.kind === "text") {
      const size = shape.grows && this.view.k < DETAIL ? LARGE : shape.size;
      g.font = `${shape.bold ? 600 : 400} ${size}px ${FONT}`;
      g.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
      g.fillStyle = this.colour(shape.fill);
      g.fillText(shape.text, shape.x, shape.y);
      return;
    }
    const outline = new Path2D(shape.kind === "path" ? shape.d : undefined);
    if (shape.kind === "rect") outline.roundRect(shape.x, shape.y, shape.w, shape.h, shape.r);
    if (shape.fill !== null) {
      g.fillStyle = this.colour(shape.fill);
      g.fill(outline);
    }
    if (shape.line !== null) {
      g.strokeStyle = this.colour(shape.line);
      g.lineWidth = shape.width;
      g.stroke(outline);
    }
  }
}
