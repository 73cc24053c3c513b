// The view on the graph: the wheel and dragging pan, Ctrl and the wheel or two fingers zoom.

import type { View } from "./drawing";

export const LEAST = 0.02;
export const MOST = 2.5;
const MARGIN = 14;
const CLICK = 4;

export interface Size {
  w: number;
  h: number;
}

export interface Handlers {
  changed(view: View): void;
  /** The pointer is over the graph, in client coordinates; null when it leaves or drags. */
  over(at: { x: number; y: number } | null): void;
  click(at: { x: number; y: number }): void;
}

export class Viewport {
  view: View = { x: 0, y: 0, k: 1 };
  content: Size = { w: 1, h: 1 };
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private pressed: { x: number; y: number } | null = null;
  private dragging = false;
  private readonly end = new AbortController();

  constructor(private readonly host: HTMLElement, private readonly handlers: Handlers) {
    const { signal } = this.end;
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false, signal });
    host.addEventListener("pointerdown", (event) => this.down(event), { signal });
    host.addEventListener("pointermove", (event) => this.moved(event), { signal });
    host.addEventListener("pointerup", (event) => this.up(event, true), { signal });
    host.addEventListener("pointercancel", (event) => this.up(event, false), { signal });
    host.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") handlers.over(null); // a finger leaves after every tap
    }, { signal });
  }

  destroy(): void {
    this.end.abort();
  }

  get size(): Size {
    return { w: this.host.clientWidth, h: this.host.clientHeight };
  }

  set(view: View): void {
    const next = this.bounded(view);
    if (next.x === this.view.x && next.y === this.view.y && next.k === this.view.k) return;
    this.view = next;
    this.handlers.changed(next);
  }

  /** Where a point of the window is in the graph. */
  world(client: { x: number; y: number }): { x: number; y: number } {
    const box = this.host.getBoundingClientRect();
    const { x, y, k } = this.view;
    return { x: (client.x - box.left - x) / k, y: (client.y - box.top - y) / k };
  }

  /** The whole graph, no larger than 110 %; at least `least`, with the beginning in view. */
  fit(least: number, down = true): void {
    const { w, h } = this.size;
    const k = Math.max(least, Math.min(1.1, (w - 8) / this.content.w, (h - 8) / this.content.h));
    const place = (room: number, long: number): number => Math.max((room - long) / 2, Math.min(4, room - long > 0 ? room - long : 4));
    this.view = { x: 0, y: 0, k: 0 };
    this.set({ k, x: place(w, this.content.w * k), y: Math.min(place(h, this.content.h * k), down ? 8 : h) });
  }

  zoom(factor: number, at?: { x: number; y: number }): void {
    const { x, y, k } = this.view;
    const box = this.host.getBoundingClientRect();
    const px = at === undefined ? this.size.w / 2 : at.x - box.left;
    const py = at === undefined ? this.size.h / 2 : at.y - box.top;
    const next = Math.min(MOST, Math.max(LEAST, k * factor));
    const view = { k: next, x: px - ((px - x) * next) / k, y: py - ((py - y) * next) / k };
    this.set(at === undefined ? this.filled(view) : view);
  }

  /** Pans just enough to have a rectangle of the graph in view. */
  show(box: { x: number; y: number; w: number; h: number }): void {
    const { w, h } = this.size;
    const { x, y, k } = this.view;
    const shift = (low: number, long: number, room: number): number => {
      if (low < MARGIN) return MARGIN - low;
      return low + long > room - MARGIN ? Math.max(MARGIN - low, room - MARGIN - low - long) : 0;
    };
    this.set({ k, x: x + shift(box.x * k + x, box.w * k, w), y: y + shift(box.y * k + y, box.h * k, h) });
  }

  // No empty room beside a graph that is larger than the view.
  private filled(view: View): View {
    const { w, h } = this.size;
    const fill = (at: number, long: number, room: number): number => (long <= room ? (room - long) / 2 : Math.min(8, Math.max(room - long - 8, at)));
    return { k: view.k, x: fill(view.x, this.content.w * view.k, w), y: fill(view.y, this.content.h * view.k, h) };
  }

  // Some of the graph stays in view, whatever one pans.
  private bounded(view: View): View {
    const { w, h } = this.size;
    const keep = (at: number, long: number, room: number): number => {
      const margin = Math.min(room * 0.5, 120);
      return Math.min(room - margin, Math.max(margin - long, at));
    };
    return { k: view.k, x: keep(view.x, this.content.w * view.k, w), y: keep(view.y, this.content.h * view.k, h) };
  }

  private wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 200 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * unit * 0.0022), { x: event.clientX, y: event.clientY });
      return;
    }
    const [dx, dy] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    const before = this.view;
    this.set({ ...before, x: before.x - dx * unit, y: before.y - dy * unit });
    if (this.view !== before) event.preventDefault(); // at the end of the graph the page scrolls
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.pressed = this.pointers.size === 1 ? { x: event.clientX, y: event.clientY } : null;
    this.dragging = this.pointers.size > 1;
  }

  private moved(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    const at = { x: event.clientX, y: event.clientY };
    if (before === undefined) {
      if (event.pointerType !== "touch") this.handlers.over(at);
      return;
    }
    if (!this.dragging && this.pressed !== null && Math.hypot(at.x - this.pressed.x, at.y - this.pressed.y) < CLICK) return;
    if (!this.dragging) {
      this.dragging = true;
      this.handlers.over(null);
      this.host.classList.add("dragging");
    }
    if (!this.host.hasPointerCapture(event.pointerId)) this.host.setPointerCapture(event.pointerId);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, at);
    if (other === undefined) {
      this.set({ ...this.view, x: this.view.x + at.x - before.x, y: this.view.y + at.y - before.y });
      return;
    }
    const middle = { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 };
    this.set({ ...this.view, x: this.view.x + (at.x - before.x) / 2, y: this.view.y + (at.y - before.y) / 2 });
    const far = Math.hypot(before.x - other.x, before.y - other.y);
    if (far > 0) this.zoom(Math.hypot(at.x - other.x, at.y - other.y) / far, middle);
  }

  private up(event: PointerEvent, click: boolean): void {
    if (!this.pointers.delete(event.pointerId)) return;
    if (click && !this.dragging && this.pressed !== null) this.handlers.click({ x: event.clientX, y: event.clientY });
    if (this.pointers.size === 0) {
      this.dragging = false;
      this.pressed = null;
      this.host.classList.remove("dragging");
    }
  }
}
