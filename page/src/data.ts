// Types of the page data, which Python writes. The page computes no figure: a printed figure is a
// text of Python. Fields that older files lack are optional.

export type Figure = number | null;
export type Texts = Record<string, string>;
export type Shares = Record<string, Figure>;

export interface Column {
  name: string;
  title: string;
  unit?: string;
  summable: boolean;
  numeric: boolean;
  /** The column that this one is the share of. */
  share_of?: string | null;
  /** Whether the column is shown at first. */
  shown?: boolean;
}

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
  size: Figure[];
  stride: Figure[];
  offset: Figure[];
  aligned?: boolean;
}

export interface SourceLine {
  file: string;
  line: number | null;
  column?: number | null;
}

export interface Layer {
  name: string;
  label?: string;
  type: string;
  scope: string[];
  module: string;
  inputs: TensorRef[];
  outputs: TensorRef[];
  weights: Weight[];
  params: Figure;
  flops: Figure;
  activations: Figure;
  alive_bytes?: Figure;
  read_bytes?: Figure;
  write_bytes?: Figure;
  gemm?: { m: number; n: number; k: number; count: number } | null;
  field?: Field | null;
  status: string;
  note: string;
  source_op?: string;
  times: number;
  attributes?: Record<string, unknown>;
  window?: string;
  source?: SourceLine | string | null;
  texts: Texts;
  short?: Texts;
  values?: Record<string, Figure>;
  shares?: Shares;
}

export interface Tree {
  name: string;
  type: string;
  path: string;
  layers: number[];
  repeat: number;
  instances?: number[][];
  sums: Record<string, Figure>;
  texts: Texts;
  short?: Texts;
  shares?: Shares;
  children: (Tree | number)[];
}

export interface ConventionFigure {
  value: Figure;
  text: string;
  short?: string;
  share: Figure;
  /** The share as the table prints it. */
  share_text?: string;
}

export interface Convention {
  title: string;
  rule: string;
  /** The column that the convention recounts. */
  column?: string;
  total: Record<string, { value: Figure; text: string; short?: string } | Figure>;
  difference: string;
  layers: ConventionFigure[];
  groups: Record<string, ConventionFigure>;
}

export interface Tensor {
  name: string;
  shape: (number | string)[] | null;
  dtype: string | null;
  bytes: Figure;
  text?: string;
  producer: number | null;
  consumers: number[];
  first: number;
  last: number;
}

export interface Step {
  layer: number;
  bytes: Figure;
  text?: string;
  alive: number[];
}

export interface Finding {
  kind: string;
  text: string;
  layers: number[];
  saves?: Figure;
  saves_text?: string;
  links?: { text: string; layer: number }[];
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
  kind: "report";
  schema: number;
  network: string;
  title?: string;
  facts?: [string, string][];
  inputs: TensorRef[];
  outputs: TensorRef[];
  totals: Record<string, unknown>;
  memory: {
    layer: string | null;
    bytes: Figure;
    text?: string;
    in_place?: boolean;
    timeline?: Step[];
  };
  columns: Column[];
  layers: Layer[];
  tree: Tree;
  tensors: Tensor[];
  findings: (Finding | string)[];
  conventions: Record<string, Convention>;
  machine?: Record<string, unknown> | null;
  cards?: Card[];
  exports?: Record<string, string>;
  stamp: Record<string, unknown> & { text: string; convention?: string };
  coverage: {
    known: number;
    total: number;
    unknown: { op: string; layers: number[] }[] | Record<string, unknown>;
  };
}

export interface Refused {
  kind: "refused";
  network: string;
  text: string;
}

export interface ComparedLayer {
  sign: "+" | "-" | "~" | "=";
  first: number | null;
  second: number | null;
  cells: Record<string, ComparedCell>;
}

export interface ComparedCell {
  first: string;
  second: string;
  ratio: string;
}

export interface Comparison {
  first: number;
  second: number;
  layers: ComparedLayer[];
  totals: Record<string, ComparedCell>;
}

export interface PageData {
  kind: "page";
  schema: number;
  version: string;
  reports: (Report | Refused)[];
  comparisons?: Comparison[];
  runs?: (Record<string, unknown> | null)[];
  charts?: Record<string, object>[];
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
