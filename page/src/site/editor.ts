// The editor: CodeMirror in a shadow root, where its styles need no exception in the site's policy.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { ChangeSet, EditorState, MapMode, RangeSet, StateEffect, StateField, Transaction, type Extension, type Range, type Text } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, gutterLineClass, keymap, lineNumbers, WidgetType, type DecorationSet } from "@codemirror/view";
import { h } from "../dom";
import { colours, completion } from "./language";
import type { Mark } from "./protocol";

// A line that belongs to no layer.
const BLANK = /^\s*(?:#|$)/;

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", backgroundColor: "var(--surface)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-3)", border: "0" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-chosen-line": { backgroundColor: "var(--accent-bg)" },
  ".cm-wrong-line": { backgroundColor: "var(--error-bg)" },
  ".cm-gutterElement.cm-wrong-number": { color: "var(--error)", fontWeight: "700" },
  ".cm-problem": { borderLeft: "3px solid var(--error)", backgroundColor: "var(--error-bg)", color: "var(--ink)", padding: "6px 10px", fontFamily: "var(--font)", fontSize: "12px", lineHeight: "17px", whiteSpace: "normal", overflowWrap: "anywhere", boxSizing: "border-box", maxWidth: "calc(100cqw - 56px)" },
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

class WrongNumber extends GutterMarker {
  override elementClass = "cm-wrong-number";
}

/** Where a layer is in the text; null where it is not, or its beginning was deleted. */
type Extent = { from: number; to: number } | null;

const setExtents = StateEffect.define<readonly Extent[]>();

// Layers move with the text as it is edited.
const extents = StateField.define<readonly Extent[]>({
  create: () => [],
  update(value, transaction) {
    const given = transaction.effects.find((one) => one.is(setExtents));
    if (given?.is(setExtents)) return given.value;
    if (!transaction.docChanged || value.length === 0) return value;
    const changes = trimmed(transaction);
    return value.map((own) => {
      const from = own === null ? null : changes.mapPos(own.from, 1, MapMode.TrackAfter);
      return own === null || from === null ? null : { from, to: Math.max(from, changes.mapPos(own.to, -1)) };
    });
  },
});

// A text that is pasted over another changes only what differs between both.
function trimmed({ changes, startState }: Transaction): ChangeSet {
  const found: { from: number; to: number; insert: string }[] = [];
  changes.iterChanges((fromA, toA, _fromB, _toB, inserted) => {
    const old = startState.doc.sliceString(fromA, toA);
    const insert = inserted.toString();
    const most = Math.min(old.length, insert.length);
    let before = 0;
    while (before < most && old[before] === insert[before]) before++;
    let after = 0;
    while (after < most - before && old.at(-1 - after) === insert.at(-1 - after)) after++;
    found.push({ from: fromA + before, to: toA - after, insert: insert.slice(before, insert.length - after) });
  });
  return ChangeSet.of(found, startState.doc.length);
}

const setWrong = StateEffect.define<RangeSet<GutterMarker>>();

const wrongNumbers = StateField.define<RangeSet<GutterMarker>>({
  create: () => RangeSet.empty,
  update(value, transaction) {
    let next = value.map(transaction.changes);
    for (const one of transaction.effects) if (one.is(setWrong)) next = one.value;
    return next;
  },
  provide: (field) => gutterLineClass.from(field),
});

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
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, effects: [setShown.of(Decoration.none), setWrong.of(RangeSet.empty), setLayer.of(Decoration.none), setExtents.of([])] });
    this.quiet = false;
  }

  /** Shows marks: underlines, the gutter, and errors under their lines. */
  mark(marks: Mark[]): void {
    const { doc } = this.view.state;
    const placed = marks.filter((mark) => mark.line > 0 && mark.line <= doc.lines);
    const found: Diagnostic[] = placed.map((mark) => ({ ...range(doc, mark), severity: mark.severity, message: mark.text }));
    const widgets: Range<Decoration>[] = placed.slice(0, 50).map((mark) =>
      Decoration.widget({ widget: new Problem(mark, (one) => this.mend(one)), block: true, side: 1 }).range(doc.line(mark.line).to));
    const wrong = placed.filter((mark) => mark.severity === "error").map((mark) => doc.line(mark.line).from);
    for (const at of wrong) widgets.push(Decoration.line({ class: "cm-wrong-line" }).range(at));
    const numbers = RangeSet.of(wrong.map((at) => new WrongNumber().range(at)), true);
    this.view.dispatch(setDiagnostics(this.view.state, found), { effects: [setShown.of(Decoration.set(widgets, true)), setWrong.of(numbers)] });
  }

  /** Scrolls to a line. */
  show(line: number): void {
    const { doc } = this.view.state;
    if (line > 0 && line <= doc.lines) this.view.dispatch({ effects: EditorView.scrollIntoView(doc.line(line).from, { y: "center" }) });
  }

  /** Keeps where the layers are, by their lines; `blocks`: up to the next one, else one line each. */
  place(lines: readonly number[], blocks: boolean): void {
    const { doc } = this.view.state;
    const sorted = [...new Set(lines)].filter((line) => line > 0).sort((a, b) => a - b);
    const next = new Map(sorted.map((line, at) => [line, sorted[at + 1] ?? doc.lines + 1]));
    const found = lines.map((line): Extent => {
      if (line < 1 || line > doc.lines) return null;
      let last = blocks ? (next.get(line) ?? line + 1) - 1 : line;
      while (last > line && BLANK.test(doc.line(last).text)) last--;
      return { from: doc.line(line).from, to: doc.line(last).to };
    });
    this.view.dispatch({ effects: setExtents.of(found) });
  }

  /** The layer at a line of the text as it is now, or -1. */
  layerAt(line: number): number {
    const at = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    return this.view.state.field(extents).findIndex((own) => own !== null && own.from <= at.to && own.to >= at.from);
  }

  /** Lights the lines of a layer; scrolls to them unless the caret moved there. */
  light(layer: number | undefined, scroll: boolean): void {
    const { doc } = this.view.state;
    const own = layer === undefined ? null : (this.view.state.field(extents)[layer] ?? null);
    const lines: Range<Decoration>[] = [];
    if (own !== null) {
      const last = doc.lineAt(own.to).number;
      for (let line = doc.lineAt(own.from).number; line <= last; line++) lines.push(Decoration.line({ class: "cm-chosen-line" }).range(doc.line(line).from));
    }
    const effects: StateEffect<unknown>[] = [setLayer.of(Decoration.set(lines))];
    if (scroll && own !== null) effects.push(EditorView.scrollIntoView(own.from, { y: "center" }));
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
      autocompletion({ override: [completion(() => this.events.words())] }), ...colours, look, extents, wrongNumbers, decorations(setLayer), decorations(setShown),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": "network as text", tabindex: "0" }),
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
