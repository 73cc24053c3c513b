"""Documents: the text of a file, and all tables in it whose headings are recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from layerscope.documents import collapsed, csv, html, latex, lines, pipes, text
from layerscope.documents.edited import in_document
from layerscope.documents.headings import meaning_of
from layerscope.documents.types import Cell, Row, Table
from layerscope.errors import FormatError
from layerscope.limits import DOCUMENT_BYTES

# after html, in this order: lines of a table that is found are not read by the next form
FORMS: tuple[Callable[[Sequence[str]], Iterator[Table]], ...] = (
    latex.tables, pipes.tables, csv.tables, lines.tables, text.tables,
    collapsed.tables,
)  # fmt: skip
BREAK = re.compile(r"\r\n|\r|\n")
QUOTE = re.compile(r"(?:[ ]{0,3}>[ ]?){1,9}(?=[^>]|$)")
COMMENT = re.compile(r"\s{0,40}(#{1,2}|//|;|%|--)(?=\s|$)")
COMMENTED = 4  # lines with a mark, for it to be one of comments and not of a heading
TITLE_LENGTH = 200
BELOW = 8  # lines below a table in which its totals may be stated
STATED = re.compile(
    r"[\s*_>|-]*(?P<label>total(?: number of| trainable)? "
    r"(?:params?|parameters|weights|macs?|flops))"
    r"\s*[*_]*\s*[:：=]\s*[*_]*\s*(?P<figure>[~≈]?\s*\d[\d,.]*\s*[KMGkmg]?)"
    r"(?=[\s*_|.(]|$)",
    re.IGNORECASE,
)
OPTIMIZER = re.compile(r"[\s*_>|-]*optimizer params?\b", re.IGNORECASE)
FENCE_LENGTH = 3
SKIPPED = re.compile(
    r"\s*(?:<[^<>]*>\s*)*|\s*[-=_*~─━═#\s]*|\s*\([^()]*\): .*"
)  # tags alone, rules, modules
NAMED = re.compile(r"\s*(?:model|network|net|table)\b.*", re.IGNORECASE)
MARKS = re.compile(r"^\s*(?:#+|[*+-]\s|\d+[.)]\s|>)\s*|\s*#+\s*$|\*{2,3}|`{1,3}|<[^<>]{0,200}>")


def load(path: str | Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark."""
    with Path(path).open("rb") as file:
        data = file.read(DOCUMENT_BYTES.most + 1)
        if len(data) > DOCUMENT_BYTES.most:
            size = max(len(data), Path(path).stat().st_size)
            raise FormatError(f"{path}: {DOCUMENT_BYTES.refusal(size)}")
    coding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(coding)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise FormatError(
            f"{path}:{line}:{column}: byte 0x{data[error.start]:02x} is no {coding[:6].upper()}, "
            "expected a document in UTF-8; convert it first: iconv -f latin1 -t utf-8"
        ) from error


def read(document: str) -> tuple[Table, ...]:
    """All tables of a document in which a heading is recognised, in its order, with titles."""
    source = BREAK.split(document)
    edited = html.preformatted(source)
    plain = uncommented(source)
    shown = [edited[n].text if n in edited else _unquoted(line) for n, line in enumerate(plain)]
    found = _kept(html.tables(source), shown)
    for form in FORMS:
        found += [in_document(table, edited) for table in _kept(form(shown), shown)]
    found.sort(key=lambda table: table.line)
    return tuple(_with_totals(list(_titled(found, shown)), shown))


def _with_totals(tables: Sequence[Table], shown: Sequence[str]) -> Iterator[Table]:
    """The tables with the totals that are stated in the lines below them."""
    for number, table in enumerate(tables):
        after = tables[number + 1].line - 1 if number + 1 < len(tables) else len(shown)
        rows, words = [], 0
        for at in range(table.last, min(after, table.last + BELOW)):
            line = shown[at]
            match = STATED.match(line) if len(line) <= TITLE_LENGTH else None
            if match is not None:
                label = Cell(match["label"], at + 1, match.start("label") + 1)
                figure = Cell(match["figure"].strip(), at + 1, match.start("figure") + 1)
                rows.append(Row(at + 1, (label, figure)))
            elif OPTIMIZER.match(line):
                rows = []  # the total has its state, which no row of the table has
                break
            elif line.lstrip().startswith("#") or (_is_title(line) and ":" not in line):
                words += 1
            if words:
                break
        yield replace(table, totals=tuple(rows)) if rows else table


def _kept(tables: Iterable[Table], shown: list[str]) -> list[Table]:
    """The tables with a heading that is recognised; no other form reads their lines."""
    kept = [table for table in tables if is_account(table)]
    for table in kept:
        for number in range(table.line - 1, table.last):
            shown[number] = ""
    return kept


def is_account(table: Table) -> bool:
    """Whether a heading has a meaning, and the headings are not the first cells of the rows."""
    texts = [cell.text for cell in table.heading.cells]
    count = sum(meaning_of(text) is not None for text in texts)
    if count > 1 or not count:
        return count > 1
    firsts = [row.cells[0].text for row in table.rows[:100] if row.cells]
    transposed = 2 * sum(meaning_of(first) is not None for first in firsts) > len(firsts)
    return not transposed


def uncommented(source: Sequence[str]) -> list[str]:
    """The lines, without the marks of comments where several lines in a row have the same one."""
    marks = [match[1] if (match := COMMENT.match(line)) else "" for line in source]
    found, at = list(source), 0
    while at < len(source):
        end = at + 1
        while marks[at] and end < len(source) and marks[end] == marks[at]:
            end += 1
        if marks[at] and end - at >= COMMENTED:
            for n in range(at, end):
                found[n] = found[n].replace(marks[n], " " * len(marks[n]), 1)
        at = end
    return found


def _unquoted(line: str) -> str:
    """A line without the > of a quotation, which becomes spaces."""
    match = QUOTE.match(line) if ">" in line[:4] else None
    return line if match is None else " " * match.end() + line[match.end() :]


def _titled(tables: Sequence[Table], shown: Sequence[str]) -> Iterator[Table]:
    """The tables, each with its caption or the last text before it."""
    title, fenced, at = "", _starts_fenced(shown), 0
    for table in tables:
        while at < table.line - 1:
            line = shown[at]
            if pipes.FENCE.match(line):
                fenced = not fenced
            elif _is_title(line) and (not fenced or NAMED.match(line)):
                title = line
            at += 1
        yield replace(
            table, title=table.title or " ".join(MARKS.sub("", title).split())[:TITLE_LENGTH]
        )


def _starts_fenced(shown: Sequence[str]) -> bool:
    """Whether an excerpt begins inside a fence: a fence with a language never closes one."""
    fences = [line.strip() for line in shown if pipes.FENCE.match(line)]
    opening = [n % 2 for n, fence in enumerate(fences) if len(fence) > FENCE_LENGTH]
    if opening:
        return 2 * sum(opening) > len(opening)
    return len(fences) % 2 == 1


def _is_title(line: str) -> bool:
    """Whether a line has words, and is no part of a table."""
    if len(line) > 10 * TITLE_LENGTH or not any(sign.isalnum() for sign in line):
        return False
    return SKIPPED.fullmatch(line) is None and not any(bar in line for bar in pipes.BARS)
