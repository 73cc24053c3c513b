// The table as csv, Markdown or LaTeX: the columns and rows that are chosen, in the texts of Python.

import type { Item } from "../model";
import type { Store } from "../store";
import { listItems } from "./rows";

export type TextForm = "csv" | "md" | "latex";

/** The rows of the table as text: all modules open, or the flat list that is shown. */
export function tableText(store: Store, form: TextForm): string {
  const whole = store.state.columns === null && !store.state.flat && store.state.sort === null && store.matches === null;
  const made = store.report.exports?.[form === "md" ? "markdown" : form];
  if (whole && made !== undefined && store.state.convention === store.ownConvention()) return made;
  const names = store.listed()
    .filter((column) => store.state.columns?.includes(column.name) ?? column.shown)
    .filter((column) => column.name !== "name")
    .map((column) => store.inConvention(column.name));
  const listing = listItems(store);
  const items = listing.flat ? listing.items : store.model.items;
  const titles = names.map((name) => (name.endsWith("%") ? `% of ${store.title(name.slice(0, -1))}` : store.title(name)));
  const rows = [...items, store.model.root].map((item) => [
    item === store.model.root ? "total" : listing.flat ? item.full : indented(item, form),
    ...names.map((name) => (form === "csv" ? plain(store, item, name) : store.text(item, name))),
  ]);
  const figures = [false, ...names.map((name) => store.column(name)?.kind !== "text")];
  return WRITERS[form]([["layer", ...titles], ...rows], figures);
}

function indented(item: Item, form: TextForm): string {
  const name = item.repeat > 1 && item.kind === "group" ? `${item.name} × ${item.repeat}` : item.name;
  if (form === "csv") return item.full;
  return (form === "latex" ? "\u00a0\u00a0" : "\u2003").repeat(Math.max(0, item.depth)) + name;
}

// Numbers of a csv file have no commas; an unknown figure stays a text.
function plain(store: Store, item: Item, name: string): string {
  const value = store.value(item, name);
  const text = store.text(item, name);
  return value !== null && /^[\d,]+$/.test(text) ? text.replaceAll(",", "") : text;
}

const WRITERS: Record<TextForm, (rows: string[][], figures: boolean[]) => string> = {
  csv: (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n",
  md: (rows, figures) => {
    const [head, ...body] = rows.map((row) => `| ${row.map(markdownCell).join(" | ")} |`);
    return [head, `| ${figures.map((figure) => (figure ? "---:" : "---")).join(" | ")} |`, ...body].join("\n") + "\n";
  },
  latex: (rows, figures) => {
    const [head, ...body] = rows.map((row) => `${row.map(latexCell).join(" & ")} \\\\`);
    const total = body.pop() ?? "";
    const spec = figures.map((figure) => (figure ? "r" : "l")).join("");
    return [`\\begin{tabular}{${spec}}`, "\\toprule", head, "\\midrule", ...body, "\\midrule", total, "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
  },
};

// A cell that a spreadsheet would compute is kept as text.
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function markdownCell(text: string): string {
  return text.replace(/[\\`*_[\]<>|&]/g, (sign) => (sign === "<" ? "&lt;" : sign === ">" ? "&gt;" : sign === "&" ? "&amp;" : `\\${sign}`)).replace(/[\r\n]+/g, " ");
}

const LATEX: Record<string, string> = {
  "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "_": "\\_", "%": "\\%", "&": "\\&", "#": "\\#", "$": "\\$",
  "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "×": "$\\times$", "…": "\\ldots{}", "≥": "$\\geq$", "≤": "$\\leq$",
  "<": "$<$", ">": "$>$", "\u00a0": "~",
};

function latexCell(text: string): string {
  return text.replace(/[\r\n]+/g, " ").replace(/./gu, (sign) => LATEX[sign] ?? sign);
}
