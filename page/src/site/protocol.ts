// What the page asks the worker, and what it answers: the JSON of layerscope.api.live.

import type { PageData } from "../data";

export interface Options {
  input?: string;
  batch?: number | null;
  dtype?: string;
  /** Of Caffe. */
  phase?: string;
}

export interface Request {
  what: "analyze" | "write" | "audit" | "builder" | "zoo" | "conventions" | "formats" | "notations" | "completions" | "warm";
  zoo?: string;
  text?: string;
  path?: string;
  /** Of a network in a document that has several. */
  number?: number;
  options?: Options;
  form?: string;
  /** The answer has the Builder calls of a zoo network, and their lines. */
  calls?: boolean;
  conventions?: string[];
}

export interface Mark {
  severity: "error" | "warning";
  text: string;
  /** From 1; 0 where the mark has no position. */
  line: number;
  column: number;
  length: number;
  fix: string | null;
}

export interface Answer {
  error?: Mark;
  page?: PageData;
  format?: string;
  lines?: number[];
  /** Lines of the networks of a document that has several. */
  starts?: number[];
  marks?: Mark[];
  text?: string;
  /** With an error: the phase in which Caffe's network has what is missing. */
  phase?: string;
  names?: [string, string][];
}
