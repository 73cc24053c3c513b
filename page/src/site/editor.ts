// The editor: CodeMirror in a shadow root, where its styles need no exception in the site's policy.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, Transaction, type Extension, type Range, type Text } from "@codemirror/state";
import { Decoration, EditorView, keymap, lineNumbers, WidgetType, type DecorationSet } from "@codemirror/view";
import { h } from "../dom";
import { colours, completion } from "./language";
import type { Mark } from "./protocol";

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", backgroundColor: "var(--surface)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-3)", border: "0" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-chosen-line": { backgroundColor: "var(--accent-bg)" },
  ".cm-problem": { borderLeft: "3px solid var(--error)", backgroundColor: "var(--error-bg)", color: "var(--ink)", padding: "6px 10px", fontFamily: "var(--font)", fontSize: "12px", lineHeight: "17px", whiteSpace: "normal", overflowWrap: "anywhere" },
  ".cm-problem.warning": { borderLeftColor: "var(--warn)", backgroundColor: "var(--warn-bg)" },
  ".cm-problem b": { color: "var(--error)", marginRight: "6px" },
  ".cm-problem.warning b": { color: "var(--warn)" },
  ".cm-problem button": { font: "inherit", marginLeft: "8px", padding: "1px 8px", border: "1px solid var(--line-2)", borderRadius: "6px", background: "var(--surface)", color: "var(--accent)", cursor: "pointer" },
  ".cm-tooltip": { backgroundColor: "var(--raise)", color: "var(--ink)", border: "1px solid var(--line-2)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-bg)", color: "var(--ink)" },
  ".cm-panels": { backgroundColor: "var(--sunk)", color: "var(--ink)" },
  ".cm-diagnostic": { fontFamily: "var(--font)" },
});

class Problem extends WidgetType {
  constructor(readonly mark: Mark, readonly mend: (mark: Mark) => void) {
    super();
  }

  override eq(other: Problem): boolean {
    return JSON.stringify(other.mark) === JSON.stringify(this.mark);
  }

  override toDOM(): HTMLElement {
    const { mark } = this;
    const box = h("div", { class: `cm-problem ${mark.severity}`, role: mark.severity === "error" ? "alert" : "note" }, h("b", {}, `${mark.line}:${mark.column}`), mark.text);
    if (mark.fix !== null) {
      const button = h("button", { type: "button" }, `Change to ${mark.fix}`);
      button.addEventListener("click", () => this.mend(mark));
      box.append(button);
    }
    return box;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

const setShown = StateEffect.define<DecorationSet>();
const setLayer = StateEffect.define<DecorationSet>();

function decorations(effect: typeof setShown): StateField<DecorationSet> {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(value, transaction) {
      let next = value.map(transaction.changes);
      for (const one of transaction.effects) if (one.is(effect)) next = one.value;
      return next;
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}

export interface EditorEvents {
  changed(text: string): void;
  moved(line: number): void;
  words(): [string, string][];
}

export class Editor {
  readonly view: EditorView;
  private quiet = false;

  constructor(host: HTMLElement, private readonly events: EditorEvents) {
    const root = host.attachShadow({ mode: "open" });
    const parent = h("div", { part: "editor" });
    root.append(parent);
    this.view = new EditorView({ parent, root, state: EditorState.create({ doc: "", extensions: this.extensions() }) });
    parent.style.height = "100%";
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.quiet = true;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, effects: [setShown.of(Decoration.none), setLayer.of(Decoration.none)] });
    this.quiet = false;
  }

  /** Shows marks: underlines, the gutter, and errors under their lines. */
  mark(marks: Mark[]): void {
    const { doc } = this.view.state;
    const placed = marks.filter((mark) => mark.line > 0 && mark.line <= doc.lines);
    const found: Diagnostic[] = placed.map((mark) => ({ ...range(doc, mark), severity: mark.severity, message: mark.text }));
    const widgets: Range<Decoration>[] = placed.slice(0, 50).map((mark) =>
      Decoration.widget({ widget: new Problem(mark, (one) => this.mend(one)), block: true, side: 1 }).range(doc.line(mark.line).to));
    this.view.dispatch(setDiagnostics(this.view.state, found), { effects: setShown.of(Decoration.set(widgets, true)) });
  }

  /** Lights the lines of the selected layer; scrolls to them unless the caret moved there. */
  light(from: number, to: number, scroll: boolean): void {
    const { doc } = this.view.state;
    const lines: Range<Decoration>[] = [];
    for (let line = Math.max(from, 1); line <= Math.min(to, doc.lines) && from > 0; line++) lines.push(Decoration.line({ class: "cm-chosen-line" }).range(doc.line(line).from));
    const effects: StateEffect<unknown>[] = [setLayer.of(Decoration.set(lines))];
    if (scroll && from > 0 && from <= doc.lines) effects.push(EditorView.scrollIntoView(doc.line(from).from, { y: "center" }));
    this.view.dispatch({ effects });
  }

  private mend(mark: Mark): void {
    const { from, to } = range(this.view.state.doc, mark);
    this.view.dispatch({ changes: { from, to, insert: mark.fix ?? "" }, annotations: Transaction.userEvent.of("input.fix") });
    this.view.focus();
  }

  private extensions(): Extension[] {
    return [
      lineNumbers(), history(), lintGutter(), bracketMatching(), closeBrackets(), indentOnInput(), indentUnit.of("  "), highlightSelectionMatches(), search({ top: true }),
      autocompletion({ override: [completion(() => this.events.words())] }), ...colours, look, decorations(setLayer), decorations(setShown),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": "network as text" }),
      EditorView.updateListener.of((update) => {
        if (this.quiet) return;
        if (update.docChanged) this.events.changed(this.text);
        else if (update.selectionSet) this.events.moved(update.state.doc.lineAt(update.state.selection.main.head).number);
      }),
    ];
  }
}

function range(doc: Text, mark: Mark): { from: number; to: number } {
  const line = doc.line(mark.line);
  // Columns count characters, the editor counts UTF-16 units.
  const units = (count: number): number => [...line.text].slice(0, count).join("").length;
  const from = Math.min(line.from + units(mark.column - 1), line.to);
  return { from, to: Math.max(from, Math.min(line.from + units(mark.column - 1 + mark.length), line.to)) };
}
