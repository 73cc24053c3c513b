// Colours for Caffe's text, Builder calls and prints, and completion of types, fields and calls.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

export const colours = [
  StreamLanguage.define({
    name: "network",
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^#.*/)) return "comment";
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
      if (stream.match(/^[+-]?\d(?:[\d.]|,(?=\d))*(?:e[+-]?\d+)?/i)) return "number";
      if (stream.match(/^(?:with|True|False|None|true|false)\b/)) return "keyword";
      if (stream.match(/^[A-Za-z_][\w.]*/)) return "variableName";
      stream.next();
      return null;
    },
  }),
  syntaxHighlighting(HighlightStyle.define([
    { tag: tags.comment, color: "var(--ink-3)", fontStyle: "italic" },
    { tag: tags.string, color: "var(--code-string)" },
    { tag: tags.number, color: "var(--code-number)" },
    { tag: tags.keyword, color: "var(--accent)" },
  ])),
];

/** Completion from [word, kind] pairs: kind is "type", "call", or the message that a field is in. */
export function completion(words: () => [string, string][]): (context: CompletionContext) => CompletionResult | null {
  const options = (kind: string, quoted = false): Completion[] => words().filter(([, own]) => own === kind)
    .map(([word]) => ({ label: word, type: kind === "call" ? "function" : kind === "type" ? "class" : "property", apply: quoted ? `${word}"` : word }));
  return (context) => {
    const type = context.matchBefore(/\btype:\s*"\w*/);
    if (type !== null) return { from: type.from + type.text.lastIndexOf('"') + 1, options: options("type", true), validFor: /^\w*$/ };
    const word = context.matchBefore(/\w+/);
    if (word === null && !context.explicit) return null;
    const before = context.state.sliceDoc(Math.max(0, context.pos - 4000), word?.from ?? context.pos);
    const from = word?.from ?? context.pos;
    if (/[=(]\s*$/.test(before) || /^\s*\w+ = |network\(|= input\(/m.test(before)) return { from, options: options("call"), validFor: /^\w*$/ };
    return { from, options: options(around(before)), validFor: /^\w*$/ };
  };
}

// The innermost message that is open at the end of a text: "layer", "convolution_param" …
function around(text: string): string {
  let depth = 0;
  for (let at = text.length - 1; at >= 0; at--) {
    if (text[at] === "}") depth++;
    else if (text[at] === "{" && depth-- === 0) return /(\w+)\s*:?\s*$/.exec(text.slice(0, at))?.[1] ?? "";
  }
  return "";
}
