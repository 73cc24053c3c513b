// Types of the page data, which Python writes. The page computes no figure: a printed figure is a
// text of Python. Fields that older files lack are optional.

export type Figure = number | null;

export interface Column {
  name: string;
  title: string;
  kind: "text" | "count" | "bytes" | "percent" | "ratio" | "time";
  summable: boolean;
  /** Whether the widest table of `show` has the column. */
  shown: boolean;
  /** What the column says, in words. */
  says?: string;
}

/** One column: an entry per row. Rows are the layers, then the groups of the tree, then the total. */
export interface Cells {
  /** Absent in columns of text. Shares are 0..1. */
  values?: Figure[];
  /** Absent where the text is the number with its digits grouped by commas. */
  texts?: string[];
}

export type CellTable = Record<string, Cells>;

export interface TensorRef {
  name: string;
  shape: (number | string)[] | null;
  dtype: string | null;
  bytes: Figure;
}

export interface Weight {
  name: string;
  role: string;
  shape: number[];
  dtype: string | null;
}

export interface Field {
  input: string;
  /** Pixels of each axis; "everything" for the whole of it. */
  size: (Figure | string)[];
  stride: (Figure | string)[];
  offset: (Figure | string)[];
  aligned?: boolean;
}

export interface SourceLine {
  file: string;
  line: number | null;
  column?: number | null;
}

/** Fields that are empty are absent. */
export interface Layer {
  name: string;
  type: string;
  scope?: string[];
  module?: string;
  /** Numbers of tensors. */
  inputs?: number[];
  outputs?: number[];
  weights?: Weight[];
  attributes?: Record<string, unknown>;
  window?: string;
  gemm?: { m: number; n: number; k: number; count: number } | null;
  field?: Field | null;
  status?: string;
  note?: string;
  source?: SourceLine | null;
  source_op?: string;
  times?: number;
}

export interface Tree {
  row: number;
  /** As the table prints it, with its repeats: "0…2 × 3". */
  name: string;
  type: string;
  path: string;
  layers: number[];
  repeat?: number;
  /** The layers of each repetition. */
  instances?: number[][];
  children: (Tree | number)[];
}

export interface Convention {
  /** What the convention calls its figure; "" if it has none. */
  title: string;
  says: string;
  notes?: string[];
  difference: string;
  /** The columns that differ from the report's own. */
  cells: CellTable;
}

export interface Tensor {
  name: string;
  shape: (number | string)[] | null;
  /** The shape as the table prints it. */
  text?: string;
  dtype: string | null;
  bytes: Figure;
  /** Its bytes as the table prints them. */
  size?: string;
  producer: number | null;
  consumers: number[];
  first: number;
  last: number;
  /** Bytes that count for memory: 0 for a view. */
  counted?: number;
}

export interface Finding {
  kind: string;
  text: string;
  layers: number[];
  /** Bytes by which it would lower the peak. */
  saves_bytes?: Figure;
  saves_text?: string;
  links?: { text: string; layer?: number; path?: string }[];
}

export interface Card {
  name: string;
  label: string;
  figure: string;
  unit: string;
  exact: string;
  note: string;
  column: string | null;
}

export interface Report {
  kind?: "report";
  network: string;
  facts?: [string, string][];
  inputs: TensorRef[];
  outputs: TensorRef[];
  totals: Record<string, unknown>;
  memory: {
    layer: string | null;
    bytes: Figure;
    in_place?: boolean;
    /** Bytes alive at each step; a step is a layer. */
    timeline?: number[];
  };
  columns: Column[];
  cells: CellTable;
  layers: Layer[];
  tree: Tree;
  tensors: Tensor[];
  findings: Finding[];
  notes?: string[];
  conventions: Record<string, Convention>;
  machine?: Record<string, unknown> | null;
  cards?: Card[];
  exports?: Record<string, string>;
  use?: Use | null;
  stamp: Record<string, unknown> & { text: string; convention?: string };
  coverage: {
    known: number;
    total: number;
    /** Number of layers by op. */
    unknown: Record<string, number>;
    estimated?: number;
    text?: string;
  };
}

/** What one layer of a language model caches. */
export interface CacheLayer {
  kind: string;
  bytes: number;
  text: string;
}

/** Layers that cache as much as each other; all figures are texts. */
export interface CacheKind {
  layers: string;
  kind: string;
  cells: string;
  keys: string;
  values: string;
  state: string;
  each: string;
  all: string;
}

export interface FitRow {
  batch: string;
  tokens: string;
  /** Weights, cache, activations, workspace. */
  uses: string[];
  total: string;
}

/** A language model in use. */
export interface Use {
  cache: string;
  layers: CacheLayer[];
  /** The most that one layer caches. */
  most: string;
  kinds: CacheKind[];
  notes: string[];
  memory: string;
  /** "" where no memory is given to fit in. */
  fits: string;
  contexts: FitRow[];
}

export interface Refused {
  kind: "refused";
  network: string;
  text: string;
}

export interface Match {
  /** "-" only in the first, "+" only in the second. */
  sign: "+" | "-" | "~" | "=";
  first: number | null;
  second: number | null;
  /** What differs, in words. */
  changes?: string[];
  /** Second over first, by column. */
  ratios?: Record<string, string>;
}

export interface ComparedTotal {
  name: string;
  title: string;
  first: string;
  second: string;
  ratio: string;
}

export interface Comparison {
  first: number;
  second: number;
  /** One line that counts the differences. */
  text: string;
  counts: Record<string, number>;
  totals: ComparedTotal[];
  matches: Match[];
}

/** A measured run, or a prediction. */
export interface Run {
  kind: "run" | "prediction";
  title: string;
  stamp?: string;
  lines?: string[];
  total: string;
  columns: Column[];
  /** Cells by row, like those of the report. */
  cells: CellTable;
}

export interface PageData {
  kind: "page";
  schema: number;
  version: string;
  reports: (Report | Refused)[];
  comparisons?: Comparison[];
  runs?: (Run | null)[];
  charts?: Record<string, object>[];
  /** Vega-Lite configs of the themes. */
  chart_themes?: Record<string, object>;
}

/** The data of the page, or null for a page without any. */
export function readData(text: string | null | undefined): PageData | null {
  const data = JSON.parse(text?.trim() || "null") as PageData | null;
  if (data !== null && data.kind !== "page") throw new Error("this is not the data of a report page");
  return data;
}

export function isReport(report: Report | Refused | undefined): report is Report {
  return report !== undefined && report.kind !== "refused";
}
