"""What `model.summary()` of Keras prints: the text of Keras 2.15 and the box of Keras 3.11.

A network is printed as a functional model: its inputs have rows, and a network that is no chain has
the column `Connected to`. `keras_rows.py` says what the rows contain. Activations have rows of
their own, as in Keras if they are not given by `activation=…`.

The box has the width that Keras prints in a terminal of 112 columns or more, and ends words that do
not fit with `…`, as Keras does. `?` marks what is unknown, `+ ?` a total that lacks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

from layerscope.escaping import visible
from layerscope.notations.keras_rows import KerasModel, KerasRow, keras_model
from layerscope.report import Report
from layerscope.report.numbers import plus_unknown

HEADER = ("Layer (type)", "Output Shape", "Param #", "Connected to")
CHAIN_ENDS, GRAPH_ENDS = (29, 55, 65), (29, 58, 68, 98)  # of the columns of Keras 2
CHAIN_WIDTHS, GRAPH_WIDTHS = (36, 27, 15), (29, 25, 15, 26)  # of the columns of Keras 3
BREAKS = ("),", "},", "],", "',")  # Keras 2 breaks a cell after these
UNITS = ("KB", "MB", "GB", "TB", "PB")
RIGHT = 2  # the column of Keras 3 that is aligned right


def write(report: Report) -> str:
    """The text of Keras 2.15."""
    model = keras_model(report)
    ends = CHAIN_ENDS if model.is_chain else GRAPH_ENDS
    rule, double_rule = "_" * ends[-1], "=" * ends[-1]
    lines = [f'Model: "{visible(report.name)}"', rule, *_columns(HEADER[: len(ends)], ends)]
    lines.append(double_rule)
    for row in model.rows:
        lines += [*_columns(_plain_cells(row)[: len(ends)], ends), " " * ends[-1]]
    lines += [double_rule, *_totals(model, "", "Byte"), rule]
    return "\n".join(lines) + "\n"


def write_box(report: Report) -> str:
    """The box of Keras 3.11."""
    model = keras_model(report)
    widths = CHAIN_WIDTHS if model.is_chain else GRAPH_WIDTHS
    lines = [f'Model: "{visible(report.name)}"', *box_lines(model.rows, widths)]
    lines += [f" {line}" for line in _totals(model, ",", "B")]
    return "\n".join(lines) + "\n"


def _totals(model: KerasModel, separator: str, byte: str) -> Iterator[str]:
    found = model.totals
    sums = {
        "Total params": (found.trainable + found.other, found.trainable_bytes + found.other_bytes),
        "Trainable params": (found.trainable, found.trainable_bytes),
        "Non-trainable params": (found.other, found.other_bytes),
    }
    for title, (count, size) in sums.items():
        number = plus_unknown(f"{count:{separator}}", count, not found.complete)
        stored = plus_unknown(_size_text(size, byte), size, not found.complete)
        yield f"{title}: {number} ({stored})"


def _size_text(count: int, byte: str) -> str:
    """Bytes in powers of 1024, with two decimals."""
    size, unit = float(count), byte
    for larger in UNITS:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.2f} {unit}"


# -- Keras 2


def _plain_cells(row: KerasRow) -> tuple[str, ...]:
    shape = row.shapes[0]
    if len(row.shapes) > 1 or row.kind == "InputLayer":
        shape = f"[{', '.join(row.shapes)}]"
    sources = ", ".join([f"'{source}'" for source in row.sources])
    return row.title, shape, "?" if row.params is None else str(row.params), f"[{sources}]"


def _columns(cells: Sequence[str], ends: Sequence[int]) -> Iterator[str]:
    """The lines of a row: a cell is cut where its column ends, and goes on in the next line."""
    left = list(cells)
    while any(left):
        line = ""
        for n, end in enumerate(ends):
            start, is_last = (ends[n - 1] if n else 0), n == len(ends) - 1
            room = end - start - (0 if is_last else 3)
            part = left[n][:room]
            cuts = [part.find(text) + len(text) for text in BREAKS if text in part]
            room = min(cuts, default=room)
            line += (" " if n == 0 else "") + part[:room] + ("" if is_last else "  ")
            left[n] = left[n][room:]
            line += " " * (end - len(line))
        yield line


# -- Keras 3


def box_lines(rows: Sequence[KerasRow], widths: Sequence[int]) -> Iterator[str]:
    """The box, with columns of these widths."""

    def rule(left: str, line: str, cross: str, right: str) -> str:
        return left + cross.join([line * (width + 2) for width in widths]) + right

    yield rule("┏", "━", "┳", "┓")
    yield from _box_row(HEADER[: len(widths)], widths, "┃")
    yield rule("┡", "━", "╇", "┩")
    for n, row in enumerate(rows):
        if n:
            yield rule("├", "─", "┼", "┤")
        shape = row.shapes[0] if len(row.shapes) == 1 else f"[{', '.join(row.shapes)}]"
        params = "?" if row.params is None else f"{row.params:,}"
        cells = (row.title, shape, params, ", ".join(row.sources) or "-")
        yield from _box_row(cells[: len(widths)], widths, "│")
    yield rule("└", "─", "┴", "┘")


def _box_row(cells: Sequence[str], widths: Sequence[int], bar: str) -> Iterator[str]:
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for at in range(max(map(len, wrapped))):
        parts = []
        for n, (lines, width) in enumerate(zip(wrapped, widths, strict=True)):
            text = lines[at] if at < len(lines) else ""
            gap = " " * (width - _width(text))
            parts.append(f" {gap}{text} " if n == RIGHT else f" {text}{gap} ")
        yield bar + bar.join(parts) + bar


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a cell, broken between words; a word that is too long ends with …."""
    lines, room = [""], width
    for word in re.findall(r"\s*\S+\s*", text):
        if _width(word.rstrip()) > room and lines[-1]:
            lines.append("")
            room = width
        lines[-1] += word
        room -= _width(word)
    return [_cut(line.rstrip(), width) for line in lines]


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[:-1]
    return f"{text}{' ' * (width - 1 - _width(text))}…"


def _width(text: str) -> int:
    """Cells that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum([0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text])
