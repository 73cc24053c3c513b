// A window of rows over a long list: only rows in view are elements, and they are used again.

interface Slot<T> {
  element: HTMLElement;
  index: number;
  item: T | null;
}

const AHEAD = 6;
const PRINTED = 3000;
const ROW = 25;
const SMALL_ROW = 34;

/** Whether the page has the width of a phone. */
export function isSmall(): boolean {
  return matchMedia("(max-width: 700px)").matches;
}

export class RowWindow<T, V extends Slot<T>> {
  readonly pool: V[] = [];
  private frame = 0;
  private printing = false;
  private readonly ends: (() => void)[] = [];

  constructor(private readonly scroll: HTMLElement, private readonly body: HTMLElement, private readonly make: () => V, redraw: () => void) {
    const listen = (target: EventTarget, name: string, run: () => void): void => {
      target.addEventListener(name, run, { passive: true });
      this.ends.push(() => target.removeEventListener(name, run));
    };
    listen(scroll, "scroll", () => {
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        redraw();
      });
    });
    const print = (on: boolean) => (): void => {
      this.printing = on;
      redraw();
    };
    listen(window, "beforeprint", print(true));
    listen(window, "afterprint", print(false));
  }

  get height(): number {
    return isSmall() ? SMALL_ROW : ROW;
  }

  /** Binds rows to the items in view; `force` binds those again that have not moved. */
  draw(items: readonly T[], bind: (row: V, item: T, index: number) => void, force: boolean): void {
    const { height } = this;
    this.body.style.height = `${items.length * height}px`;
    const first = this.printing ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / height) - AHEAD);
    const shown = this.printing ? PRINTED : Math.ceil(this.scroll.clientHeight / height) + 2 * AHEAD;
    const last = Math.min(items.length, first + shown);
    const free: V[] = [];
    const drawn = new Set<number>();
    for (const row of this.pool) {
      const keep = !force && row.index >= first && row.index < last && items[row.index] === row.item;
      if (keep) drawn.add(row.index);
      else free.push(row);
    }
    for (let index = first; index < last; index++) {
      const item = items[index];
      if (item === undefined || drawn.has(index)) continue;
      const row = free.pop() ?? this.add();
      row.item = item;
      row.index = index;
      bind(row, item, index);
      row.element.style.transform = `translateY(${index * height}px)`;
      row.element.hidden = false;
    }
    for (const row of free) {
      row.element.hidden = true;
      row.element.removeAttribute("id");
      row.index = -1;
      row.item = null;
    }
    if (this.printing) this.sort();
  }

  // On paper rows follow each other in the order of the document, so that pages break between them.
  private sort(): void {
    const rows = [...this.pool].sort((a, b) => a.index - b.index);
    this.body.append(...rows.map((row) => row.element));
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.ends.forEach((end) => end());
  }

  private add(): V {
    const row = this.make();
    this.pool.push(row);
    this.body.append(row.element);
    return row;
  }
}
