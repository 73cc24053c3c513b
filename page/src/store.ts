// One observable state for the whole page. Panes read it, change it with `set`, and hear of changes
// with `on`; they never call each other.
//
//   const store: Store
//   store.state            the State below; never change it in place, sets are replaced
//   store.set({...})       changes keys; listeners run once, after all of them are changed
//   store.on(keys, fn)     runs fn after a change of one of the keys; returns a function that ends it
//   store.model            Model of the chosen report (model.ts): root, items, byId, layerIds
//   store.toggle(id)       opens or closes a module, in graph and table alike
//   store.reveal(id)       opens the modules around an item and selects it
//   store.value(item, column)  number behind a figure, in the chosen convention; null where unknown
//   store.text(item, column)   its text as the command line prints it; "" where the table has none
//   store.short(item, column)  its short text ("4.09 G"), else the text
//   store.share(item, column)  its share of the total, 0..1, or null
//   store.title(column)        title of a column in the chosen convention
//   store.inConvention(column) the column that a convention puts in its stead (macs: convention_ops)
//   store.heat(item)           heat class 0..7 in the heat column (CSS: --h0..--h7, text --t0..--t7)
//   store.matches              ids that match the search, or null without a search
//   store.sign(item)           "+", "-" or "~" of the chosen comparison, or ""
//
// Ids are those of Item.id: "g" + path of a module, "l" + index of a layer.
//
// The graph pane, in graph/index.ts, is `graphPane(host, store): Pane`. The host is an empty
// <section class="panel gpane" aria-label="graph">: the pane draws its own bar (class "bar": heat
// select, zoom, direction) and canvas (class "canvas") in it. It sets hover {id, x, y} (client
// coordinates; the hover card is drawn by the app), selection, open, heat and direction.

import type { Cells, Column, Comparison, PageData, Report, Run } from "./data";
import { isReport } from "./data";
import { Heat } from "./heat";
import { ancestors, buildModel, type Item, type Model } from "./model";
import { exactText, parts } from "./numbers";
import { search } from "./search";

export interface Hover {
  id: string;
  /** Client coordinates of the pointer; null where the keyboard or a chart sets the hover. */
  x: number | null;
  y: number | null;
}

export interface Sort {
  column: string;
  descending: boolean;
}

export interface State {
  /** Index of the chosen report. */
  report: number;
  /** Index of the chosen comparison, or null. */
  comparison: number | null;
  selection: string | null;
  hover: Hover | null;
  open: ReadonlySet<string>;
  /** Name of the column that colours the graph. */
  heat: string;
  convention: string;
  query: string;
  sort: Sort | null;
  /** Table as a flat list of layers. */
  flat: boolean;
  /** Names of the columns that the user chose; null for those that fit. */
  columns: readonly string[] | null;
  theme: "light" | "dark";
  direction: "down" | "right";
  /** Step of the execution that the memory chart points at, or null. */
  step: number | null;
  /** Id of the layer with the error, while the text of the network cannot be read. */
  fault: string | null;
}

export type Key = keyof State;

export interface Pane {
  destroy(): void;
  /** The picture of the graph for "Save as", where the pane has one. */
  svg?(): Promise<string>;
  png?(): Promise<Blob>;
}

export const EXACT = "exact";
export const OPS = "macs";
const CONVENTION_OPS = "convention_ops";

interface Listener {
  keys: readonly Key[];
  run: (changed: ReadonlySet<Key>) => void;
}

export class Store {
  state: State;
  model: Model;
  matches: ReadonlySet<string> | null = null;
  private readonly listeners: Listener[] = [];
  private readonly models = new Map<number, Model>();
  private heatScale: Heat | null = null;
  private signs: Map<string, string> | null = null;

  constructor(readonly data: PageData, theme: State["theme"]) {
    const first = Math.max(0, data.reports.findIndex(isReport));
    this.model = this.modelOf(first);
    this.state = {
      report: first, comparison: null, selection: null, hover: null, open: new Set(),
      heat: OPS, convention: this.ownConvention(), query: "", sort: null, flat: false,
      columns: null, theme, direction: "down", step: null, fault: null,
    };
  }

  get report(): Report {
    return this.model.report;
  }

  set(patch: Partial<State>): void {
    const changed = new Set<Key>();
    for (const key of Object.keys(patch) as Key[]) {
      if (!sameValue(this.state[key], patch[key])) changed.add(key);
    }
    if (changed.size === 0) return;
    this.state = { ...this.state, ...patch };
    this.derive(changed);
    for (const listener of [...this.listeners]) {
      if (listener.keys.some((key) => changed.has(key))) listener.run(changed);
    }
  }

  /** Runs every listener of the report and convention, after more data has arrived. */
  refresh(): void {
    this.heatScale = null;
    const changed = new Set<Key>(["convention"]);
    for (const listener of [...this.listeners]) if (listener.keys.includes("convention") || listener.keys.includes("report")) listener.run(changed);
  }

  on(keys: readonly Key[], run: Listener["run"]): () => void {
    const listener = { keys, run };
    this.listeners.push(listener);
    return () => {
      const at = this.listeners.indexOf(listener);
      if (at >= 0) this.listeners.splice(at, 1);
    };
  }

  item(id: string | null | undefined): Item | undefined {
    return id ? this.model.byId.get(id) : undefined;
  }

  toggle(id: string, open = !this.state.open.has(id)): void {
    const next = new Set(this.state.open);
    if (open) next.add(id);
    else next.delete(id);
    this.set({ open: next });
  }

  reveal(id: string): void {
    const item = this.item(id);
    if (item === undefined) return;
    const next = new Set(this.state.open);
    for (const group of ancestors(item)) next.add(group.id);
    this.set({ open: next, selection: id });
  }

  column(name: string): Column | undefined {
    return this.report.columns.find((column) => column.name === name);
  }

  title(name: string): string {
    const convention = this.report.conventions?.[this.state.convention];
    if (name === CONVENTION_OPS && convention?.title) return convention.title;
    return this.column(name)?.title ?? name;
  }

  inConvention(column: string): string {
    const convention = this.report.conventions?.[this.state.convention];
    if (this.state.convention === EXACT || !convention?.title) return column;
    return column === OPS ? CONVENTION_OPS : column === `${OPS}%` ? `${CONVENTION_OPS}%` : column;
  }

  value(item: Item, column: string): number | null {
    return this.cells(column)?.values?.[item.row] ?? null;
  }

  text(item: Item, column: string): string {
    const cells = this.cells(column);
    if (cells?.texts !== undefined) return cells.texts[item.row] ?? "";
    return exactText(cells?.values?.[item.row] ?? null);
  }

  short(item: Item, column: string): string {
    const text = this.text(item, column);
    const value = this.value(item, column);
    if (value === null || this.column(column)?.kind !== "count" || !/^[≥~≤]?\d/.test(text)) return text;
    return (/^[≥~≤]/.exec(text)?.[0] ?? "") + parts(value).join("\u202f").trim();
  }

  share(item: Item, column: string): number | null {
    if (column.endsWith("%")) return this.value(item, column);
    const shares = this.cells(`${column}%`)?.values;
    if (shares !== undefined) return shares[item.row] ?? null;
    if (!this.column(column)?.summable) return null;
    const value = this.value(item, column);
    const total = this.value(this.model.root, column);
    return value === null || !total ? null : value / total;
  }

  /** The cells of a column in the chosen convention. */
  cells(column: string): Cells | undefined {
    return this.report.conventions?.[this.state.convention]?.cells[column] ?? this.report.cells[column];
  }

  heat(item: Item): number {
    this.heatScale ??= new Heat(this, this.inConvention(this.state.heat));
    return this.heatScale.classOf(item);
  }

  /** Bounds of the heat classes as the legend shows them. */
  get heatBounds(): string[] {
    this.heatScale ??= new Heat(this, this.inConvention(this.state.heat));
    return this.heatScale.bounds;
  }

  sign(item: Item): string {
    if (this.signs === null) this.signs = this.comparedSigns();
    return this.signs.get(item.id) ?? "";
  }

  get comparison(): Comparison | null {
    const at = this.state.comparison;
    return at === null ? null : (this.data.comparisons?.[at] ?? null);
  }

  /** The convention whose figures the report itself has. */
  ownConvention(): string {
    return this.report.stamp.convention ?? EXACT;
  }

  /** Columns that a convention never replaces, in the order of the table. */
  listed(): Column[] {
    return this.report.columns.filter((column) => !column.name.startsWith(CONVENTION_OPS));
  }

  private modelOf(index: number): Model {
    let model = this.models.get(index);
    const report = this.data.reports[index];
    if (model === undefined) {
      if (!isReport(report)) throw new Error("there is no report to show");
      model = buildModel(withRun(report, this.data.runs?.[index] ?? null));
      this.models.set(index, model);
    }
    return model;
  }

  private derive(changed: Set<Key>): void {
    if (changed.has("report")) {
      this.model = this.modelOf(this.state.report);
      this.state = { ...this.state, selection: null, hover: null, open: new Set(), step: null, fault: null };
      if (!(this.state.convention in (this.report.conventions ?? {}))) {
        this.state.convention = this.ownConvention();
      }
      if (this.column(this.state.heat) === undefined) this.state.heat = OPS;
      for (const key of ["selection", "hover", "open", "step", "fault", "convention", "heat"] as const) changed.add(key);
    }
    if (changed.has("report") || changed.has("convention") || changed.has("heat")) this.heatScale = null;
    const pair = this.comparison;
    if (pair !== null && pair.first !== this.state.report && pair.second !== this.state.report) {
      this.state.comparison = null;
      changed.add("comparison");
    }
    if (changed.has("report") || changed.has("comparison")) this.signs = null;
    if (changed.has("report") || changed.has("query")) this.matches = search(this.model, this.state.query);
  }

  // A module has the sign of its layers where they agree, else "~".
  private comparedSigns(): Map<string, string> {
    const signs = new Map<string, string>();
    const comparison = this.comparison;
    if (comparison === null) return signs;
    const side = comparison.first === this.state.report ? "first" : "second";
    for (const match of comparison.matches) {
      const index = match[side];
      const id = index === null ? undefined : this.model.layerIds[index];
      if (id) signs.set(id, match.sign === "=" ? "" : match.sign);
    }
    for (const item of [...this.model.items].reverse()) {
      if (item.kind !== "group") continue;
      const inside = new Set(item.children.map((child) => signs.get(child.id) ?? ""));
      signs.set(item.id, inside.size === 1 ? [...inside][0] ?? "" : "~");
    }
    return signs;
  }
}

// The columns of a run stand after those of the report.
function withRun(report: Report, run: Run | null): Report {
  if (run === null) return report;
  return { ...report, columns: [...report.columns, ...run.columns], cells: { ...report.cells, ...run.cells } };
}

function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a instanceof Set && b instanceof Set) return a.size === b.size && [...a].every((x) => b.has(x));
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Set || b instanceof Set) return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
