r"""Tables of LaTeX: tabular, tabular*, tabularx, longtable and their relatives."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from layerscope.documents.rows import table_of
from layerscope.documents.types import Cell, Row, Table

NAMES = r"tabular\*?|tabularx|tabulary|longtable\*?|supertabular|xltabular|array|tblr|longtblr"
BEGIN = re.compile(rf"\\begin\s*\{{({NAMES})\}}")
EDGE = re.compile(rf"\\(begin|end)\s*\{{({NAMES})\}}")
FLOAT = re.compile(
    r"\\(begin|end)\s*\{(?:table\*?|wraptable|sidewaystable)\}|\\caption\s*(?=[\[{])"
)
COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
WITH_WIDTH = ("tabular*", "tabularx", "tabulary", "xltabular")
WIDEST = 64  # columns of \multicolumn
NESTED = 100  # braces in each other
# what ends a cell or a row, or opens and closes a group; escaped signs are skipped
SIGN = re.compile(
    r"\\\\(?:\s*\*)?(?:\[[^\[\]\n]{0,40}\])?|\\tabularnewline\b|\\cr\b|\\.|[&{}]", re.DOTALL
)
RULES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot|centering|noalign"
    r"|cmidrule\s*(?:\[[^\]]{0,40}\])?\s*(?:\([^)]{0,40}\))?\s*\{[^{}]{0,40}\}|cline\s*\{[^{}]{0,40}\}"
    r"|addlinespace|specialrule(?:\s*\{[^{}]{0,40}\}){3}|hdashline|Xhline\s*\{[^{}]{0,40}\}"
    r"|(?:row|cell|column)color\s*(?:\[[^\]]{0,40}\])?\s*\{[^{}]{0,40}\})(?![A-Za-z])(?:\s*\[[^\]]{0,40}\])?"
)
SEVERAL = re.compile(r"\s*\\multicolumn\s*\{\s*(\d{1,3})\s*\}\s*(?=\{)")
ROWS = re.compile(
    r"\s*\\multirow\s*(?:\[[^\]]{0,40}\])?\s*\{[^{}]{0,40}\}\s*(?:\[[^\]]{0,40}\])?"
    r"\s*\{[^{}]{0,40}\}\s*(?:\[[^\]]{0,40}\])?\s*(?=\{)"
)
STYLES = re.compile(
    r"\\(?:textbf|textit|texttt|textrm|textsc|textsf|emph|text|mbox|makecell|thead|shortstack|underline)"
    r"\s*(?:\[[^\]]{0,20}\])?\s*\{([^{}]*)\}"
)
SWITCHES = re.compile(
    r"\\(?:bf|it|tt|bfseries|itshape|ttfamily|small|footnotesize|scriptsize|tiny)\b\s*"
)
ESCAPED = re.compile(r"\\([&_%#$])")


class _Source(Struct, frozen=True):
    """A document without its comments, which keep their length."""

    text: str
    starts: list[int]

    def cell(self, start: int, text: str) -> Cell:
        """A cell that begins at an offset."""
        line = bisect_right(self.starts, start)
        return Cell(text, line, start - self.starts[line - 1] + 1)


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables of LaTeX, in the order of the document."""
    if not any("\\begin" in line for line in lines):
        return
    kept = [_uncommented(line) for line in lines]
    source = _Source("\n".join(kept), [0, *accumulate(len(line) + 1 for line in kept)])
    captions = _captions(source.text)
    for name, start, end in _spans(source.text):
        body = _after_arguments(source.text, start, name)
        last = bisect_right(source.starts, max(end - 1, start))
        found = table_of("latex", _rows(source, body, end), last, captions.get(start, ""))
        if found is not None:
            yield found


def _uncommented(line: str) -> str:
    match = COMMENT.search(line) if "%" in line else None
    if match is None:
        return line
    return line[: match.start() + len(match[1])].ljust(len(line))


def _spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each environment; one inside another is part of the other."""
    depth, start, name = 0, 0, ""
    for match in EDGE.finditer(text):
        if match[1] == "begin":
            if not depth:
                start, name = match.end(), match[2]
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield name, start, match.start()
    if depth:  # it is not closed: the rows up to an empty line
        end = text.find("\n\n", start)
        yield name, start, len(text) if end < 0 else end


def _captions(text: str) -> dict[int, str]:
    """The caption of each environment, by the offset at which its contents begin."""
    found: dict[int, str] = {}
    waiting: list[int] = []
    caption: str | None = None  # of the float; the first counts
    marks = sorted([*FLOAT.finditer(text), *BEGIN.finditer(text)], key=lambda mark: mark.start())
    for mark in marks:
        if mark[0].startswith("\\caption"):
            if caption is not None:
                continue
            brace = text.find("{", mark.end(), mark.end() + 500)
            end = _group_end(text, brace, min(len(text), brace + 2_000)) if brace >= 0 else -1
            caption = _plain(text[brace + 1 : end]) if end >= 0 else ""
            found.update(dict.fromkeys(waiting, caption))
        elif mark.re is FLOAT:
            waiting, caption = [], None
        else:
            found[mark.end()] = caption or ""
            waiting.append(mark.end())
    return found


def _group_end(text: str, start: int, end: int) -> int:
    """The offset of the brace that closes the one at `start`; -1 without one."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start, end):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth and match[0] == "}":
            return match.start()
    return -1


def _after_arguments(text: str, at: int, name: str) -> int:
    """The offset behind the position, the width and the columns of an environment."""
    for _ in range(2 if name in WITH_WIDTH else 1):
        position = re.compile(r"\s*(?:\[[^\]\n]{0,40}\])?\s*(?=\{)").match(text, at)
        if position is None:
            break
        end = _group_end(text, position.end(), min(len(text), position.end() + 2_000))
        if end < 0:
            break
        at = end + 1
    return at


def _rows(source: _Source, start: int, end: int) -> list[Row]:
    rows: list[Row] = []
    cells: list[Cell] = []
    depth, at = 0, start

    def end_cell(stop: int) -> None:
        cells.extend(_cells(source, at, stop))

    def end_row() -> None:
        if any(cell.text for cell in cells):
            first = next(cell for cell in cells if cell.text)
            rows.append(Row(first.line, tuple(cells)))
        cells.clear()

    for match in SIGN.finditer(source.text, start, end):
        sign = match[0]
        if sign == "{":
            depth = min(depth + 1, NESTED)
        elif sign == "}":
            depth = max(depth - 1, 0)
        elif depth == 0 and (sign == "&" or sign.startswith(("\\\\", "\\tabularnewline", "\\cr"))):
            end_cell(match.start())
            at = match.end()
            if sign != "&":
                end_row()
    end_cell(end)
    end_row()
    return rows


def _cells(source: _Source, start: int, end: int) -> Iterator[Cell]:
    """The cell between two offsets, and the empty ones of a cell that spans columns."""
    rule = RULES.match(source.text, _skip(source.text, start, end), end)
    while rule is not None:
        start = rule.end()
        rule = RULES.match(source.text, _skip(source.text, start, end), end)
    columns = 1
    several = SEVERAL.match(source.text, start, end)
    if several is not None:
        columns = min(max(int(several[1]), 1), WIDEST)
        close = _group_end(source.text, several.end(), end)
        if close >= 0:
            start, end = _inside(source.text, close + 1, end)
    tall = ROWS.match(source.text, start, end)
    if tall is not None:
        start, end = _inside(source.text, tall.end(), end)
    start = _skip(source.text, start, end)
    cell = source.cell(start, _plain(source.text[start:end]))
    yield cell
    for _ in range(columns - 1):
        yield Cell("", cell.line, cell.column)


def _skip(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _inside(text: str, start: int, end: int) -> tuple[int, int]:
    """The contents of the group that begins at an offset."""
    brace = _skip(text, start, end)
    if text[brace : brace + 1] != "{":
        return start, end
    close = _group_end(text, brace, end)
    return brace + 1, end if close < 0 else close


def _plain(text: str) -> str:
    r"""A cell without styles and escapes; what is in $ $ stays as it is."""
    for _ in range(4):  # styles in each other
        text, count = STYLES.subn(r"\1", text)
        if not count:
            break
    text = SWITCHES.sub("", RULES.sub("", text)).replace("\\\\", " ").replace("~", " ")
    return " ".join(ESCAPED.sub(r"\1", text).split())
