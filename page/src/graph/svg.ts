// The graph as SVG elements.

import { s } from "../dom";
import { DETAIL, DIM, NAMES, NO_MARKS, type Drawing, type Marks, type View } from "./drawing";
import { edgeShapes, type Look } from "./look";
import { markShapes } from "./marking";
import type { Scene, SceneEdge } from "./scene";
import type { Shape, Token } from "./shapes";

function colour(token: Token | null): string {
  return token === null ? "none" : `var(--${token})`;
}

/** The element of a shape; `colours` resolves tokens, for a picture outside the page. */
export function element(shape: Shape, colours: (token: Token | null) => string = colour): SVGElement {
  if (shape.kind === "rect") {
    const own = s("rect", { x: shape.x, y: shape.y, width: shape.w, height: shape.h, rx: shape.r });
    return painted(own, colours(shape.fill), shape.line === null ? null : colours(shape.line), shape.width);
  }
  if (shape.kind === "path") {
    return painted(s("path", { d: shape.d }), colours(shape.fill), shape.line === null ? null : colours(shape.line), shape.width);
  }
  const own = s("text", {
    x: shape.x, y: shape.y, "font-size": shape.size, "font-weight": shape.bold ? 600 : null,
    "text-anchor": shape.anchor === "start" ? null : shape.anchor, class: shape.grows ? "d1 grows" : `d${shape.detail}`,
  }, shape.text);
  own.style.fill = colours(shape.fill);
  if (shape.full !== null) own.append(s("title", {}, shape.full));
  return own;
}

function painted(own: SVGElement, fill: string, line: string | null, width: number): SVGElement {
  own.style.fill = fill;
  if (line !== null) {
    own.style.stroke = line;
    own.setAttribute("stroke-width", String(width));
  }
  return own;
}

interface EdgeElements {
  line: SVGElement;
  arrows: SVGElement;
  labels: SVGElement[];
}

export class SvgDrawing implements Drawing {
  readonly element = s("svg", { class: "gx", "aria-hidden": "true", focusable: "false" });
  private readonly world = s("g");
  private readonly frames = s("g");
  private readonly lines = s("g");
  private readonly boxes = s("g");
  private readonly labels = s("g");
  private readonly rings = s("g");
  private readonly boxElements = new Map<string, SVGElement>();
  private readonly edgeElements = new Map<string, EdgeElements>();
  private scene: Scene | null = null;
  private marks: Marks = NO_MARKS;
  private zoom = "";

  constructor() {
    this.world.append(this.frames, this.lines, this.boxes, this.labels, this.rings);
    this.element.append(this.world);
  }

  draw(scene: Scene, look: Look): void {
    this.scene = scene;
    this.boxElements.clear();
    this.edgeElements.clear();
    const frames: SVGElement[] = [];
    const boxes: SVGElement[] = [];
    for (const own of scene.boxes) {
      const group = s("g", { "data-id": own.id });
      group.append(...look.box(own).map((shape) => element(shape)));
      this.boxElements.set(own.id, group);
      (own.box.kind === "frame" ? frames : boxes).push(group);
    }
    const lines: SVGElement[] = [];
    const labels: SVGElement[] = [];
    for (const edge of scene.edges) {
      const shapes = edgeShapes(edge, false);
      const line = element(shapes.line);
      line.classList.add("edge");
      const arrows = element(shapes.arrows);
      const own = shapes.labels.map((label) => element(label));
      for (const label of own) label.classList.add("lab");
      lines.push(line, arrows);
      labels.push(...own);
      this.edgeElements.set(edge.key, { line, arrows, labels: own });
    }
    this.frames.replaceChildren(...frames);
    this.lines.replaceChildren(...lines);
    this.boxes.replaceChildren(...boxes);
    this.labels.replaceChildren(...labels);
    this.move(scene);
    this.mark(this.marks);
  }

  move(scene: Scene): void {
    const moved = this.scene !== scene;
    this.scene = scene;
    for (const own of scene.boxes) {
      this.boxElements.get(own.id)?.setAttribute("transform", `translate(${own.x} ${own.y})`);
    }
    if (!moved) return;
    for (const edge of scene.edges) this.placeEdge(edge, this.marks.edges.has(edge.key));
    this.ring();
  }

  mark(marks: Marks): void {
    const before = this.marks;
    this.marks = marks;
    if (this.scene === null) return;
    for (const edge of this.scene.edges) {
      const on = marks.edges.has(edge.key);
      if (on || before.edges.has(edge.key)) this.placeEdge(edge, on);
    }
    for (const [id, group] of this.boxElements) group.style.opacity = marks.lit === null || marks.lit.has(id) ? "" : String(DIM);
    this.lines.style.opacity = this.labels.style.opacity = marks.lit === null ? "" : String(DIM);
    this.ring();
  }

  look(view: View): void {
    this.world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
    const zoom = view.k < NAMES ? "gx far" : view.k < DETAIL ? "gx mid" : "gx";
    if (zoom !== this.zoom) this.element.setAttribute("class", (this.zoom = zoom));
  }

  /** The whole graph, whatever the size of the sheet; null for the view of the screen. */
  print(scene: Scene | null): void {
    if (scene === null) {
      this.element.removeAttribute("viewBox");
      return;
    }
    this.look({ x: 0, y: 0, k: 1 });
    this.element.setAttribute("viewBox", `-8 -8 ${scene.w + 16} ${scene.h + 16}`);
  }

  destroy(): void {
    this.element.remove();
  }

  private placeEdge(edge: SceneEdge, on: boolean): void {
    const own = this.edgeElements.get(edge.key);
    if (own === undefined) return;
    const { line, arrows, labels } = edgeShapes(edge, on);
    const pairs = labels.map((label, at) => [own.labels[at], label] as const);
    for (const [at, shape] of [[own.line, line] as const, [own.arrows, arrows] as const, ...pairs]) {
      if (at === undefined) continue;
      if (shape.kind === "path") {
        at.setAttribute("d", shape.d);
        if (shape.line !== null) {
          at.style.stroke = colour(shape.line);
          at.setAttribute("stroke-width", String(shape.width));
        } else at.style.fill = colour(shape.fill);
      } else if (shape.kind === "text") {
        at.setAttribute("x", String(shape.x));
        at.setAttribute("y", String(shape.y));
        at.style.fill = colour(shape.fill);
      }
    }
    if (on) own.line.parentNode?.append(own.line, own.arrows);
  }

  private ring(): void {
    if (this.scene !== null) this.rings.replaceChildren(...markShapes(this.scene, this.marks).map((shape) => element(shape)));
  }
}
