// The whole graph in a corner, with what is in view, while something is not.

import { h } from "../dom";
import type { View } from "./drawing";
import type { Look } from "./look";
import type { Scene } from "./scene";
import type { Size, Viewport } from "./viewport";

const WIDTH = 104;
const HEIGHT = 132;
const LEAST = 30;

export class Minimap {
  readonly element = h("canvas", { class: "mini", "aria-hidden": "true", hidden: true });
  private scene: Scene | null = null;
  private picture: HTMLCanvasElement | null = null;
  private size: Size = { w: 0, h: 0 };

  constructor(private readonly viewport: Viewport) {
    const pan = (event: PointerEvent): void => {
      if (this.scene === null) return;
      const box = this.element.getBoundingClientRect();
      const x = ((event.clientX - box.left) / this.size.w) * this.scene.w;
      const y = ((event.clientY - box.top) / this.size.h) * this.scene.h;
      const { k } = viewport.view;
      viewport.set({ k, x: viewport.size.w / 2 - x * k, y: viewport.size.h / 2 - y * k });
    };
    this.element.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      this.element.setPointerCapture(event.pointerId);
      pan(event);
    });
    this.element.addEventListener("pointermove", (event) => {
      event.stopPropagation();
      if (this.element.hasPointerCapture(event.pointerId)) pan(event);
    });
    this.element.addEventListener("pointerup", (event) => event.stopPropagation());
  }

  draw(scene: Scene, look: Look): void {
    this.scene = scene;
    const s = Math.min(WIDTH / scene.w, HEIGHT / scene.h);
    this.size = { w: Math.max(LEAST, Math.round(scene.w * s)), h: Math.max(LEAST, Math.round(scene.h * s)) };
    const ratio = window.devicePixelRatio || 1;
    const picture = (this.picture = document.createElement("canvas"));
    picture.width = this.element.width = Math.round(this.size.w * ratio);
    picture.height = this.element.height = Math.round(this.size.h * ratio);
    this.element.style.width = `${this.size.w}px`;
    this.element.style.height = `${this.size.h}px`;
    const g = picture.getContext("2d");
    if (g === null) return;
    const style = getComputedStyle(this.element);
    const colour = (token: string): string => style.getPropertyValue(`--${token}`).trim();
    g.scale(picture.width / scene.w, picture.height / scene.h);
    const px = scene.w / this.size.w;
    const py = scene.h / this.size.h;
    for (const own of scene.boxes) {
      const heat = own.box.kind === "frame" ? -1 : own.box.kind === "input" ? 0 : look.heat(own.box.part);
      g.fillStyle = heat < 0 ? colour("sunk") : heat === 0 ? colour("line-2") : colour(`h${Math.max(2, heat)}`);
      g.fillRect(own.x, own.y, Math.max(own.w, px), Math.max(own.h, py));
    }
  }

  look(view: View): void {
    const { scene, picture, element } = this;
    const g = element.getContext("2d");
    if (scene === null || picture === null || g === null) return;
    const room = this.viewport.size;
    const seen = { x: -view.x / view.k, y: -view.y / view.k, w: room.w / view.k, h: room.h / view.k };
    const all = seen.x <= 10 && seen.y <= 10 && seen.x + seen.w >= scene.w - 10 && seen.y + seen.h >= scene.h - 10;
    element.hidden = all;
    if (all) return;
    const ratio = element.width / this.size.w;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, element.width, element.height);
    g.drawImage(picture, 0, 0);
    g.scale(ratio, ratio);
    const sx = this.size.w / scene.w;
    const sy = this.size.h / scene.h;
    const x = Math.max(0.75, seen.x * sx);
    const y = Math.max(0.75, seen.y * sy);
    const right = Math.min(this.size.w - 0.75, (seen.x + seen.w) * sx);
    const bottom = Math.min(this.size.h - 0.75, (seen.y + seen.h) * sy);
    g.strokeStyle = getComputedStyle(element).getPropertyValue("--accent").trim();
    g.lineWidth = 1.5;
    g.strokeRect(x, y, Math.max(3, right - x), Math.max(3, bottom - y));
  }
}
