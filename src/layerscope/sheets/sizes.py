"""The sizes that the cells of a row say, and how a sheet writes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from msgspec import Struct

from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import POOLS, plain
from layerscope.sheets.shapes import LONG, axes, channels_last, spatial, whole, window
from layerscope.sheets.sheet import EMPTY, Sheet, SheetRow

CellPart = tuple[int, int, int]  # row, column and part of the cell
Cells = frozenset[CellPart]
NOWHERE: Cells = frozenset()


# each axis of a shape is a part of its cell, so that what speaks for one does not speak for all
AXIS_PARTS = {"c": 101, "h": 102, "w": 103, "b": 104}
WINDOW_PARTS = {"kh": 111, "kw": 112, "sh": 113, "sw": 114, "ph": 115, "pw": 116}


class SizeFact(Struct, frozen=True):
    """A whole number and the cells that it comes from."""

    value: int
    cells: Cells = NOWHERE


class Reading(Struct, frozen=True):
    """How the shapes of a sheet are written."""

    last: bool  # channels last
    sides: bool  # one number in an input or output cell is height and width
    batch: int | None = None  # the first of four axes of nearly all shapes
    spaced: bool = False  # axes have spaces between them, so that (65,536) is one number


def _sides(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether input and output cells of windows are single numbers, which are no channels then."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    windows = [row for row in rows if row.kind in ("conv", *POOLS)]
    shapes = [axes(row.cells[n].text) for row in windows for n in columns if n < len(row.cells)]
    return bool(shapes) and sum(len(shape) == 1 for shape in shapes) * 2 > len(shapes)


def _order(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether shapes have their channels last."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    return channels_last(
        axes(row.cells[n].text) for row in rows for n in columns if n < len(row.cells)
    )


def printed_sizes(
    sheet: Sheet, row: SheetRow, reading: Reading
) -> tuple[dict[str, SizeFact], list[tuple[str, SizeFact]]]:
    """The sizes that the cells of a row say, and those that a second cell says again."""
    found: dict[str, SizeFact] = {}
    again: list[tuple[str, SizeFact]] = []
    for column, heading in enumerate(sheet.headings):
        if heading is None or column >= len(row.cells):
            continue
        text = row.cells[column].text
        if plain(text) in EMPTY:
            continue
        refers = row.kind in ("concat", "add") and heading.meaning in ("input", "output")
        if refers and len(axes(text)) == 1:
            continue  # numbers of other rows
        for name, value in _sizes(heading.meaning, text, reading).items():
            at: Cells = frozenset({(row.at, column, _part(name))})
            if name in found:
                again.append((name, SizeFact(value, at)))
            else:
                found[name] = SizeFact(value, at)
    return found, again


def _part(name: str) -> int:
    """The part of its cell that a size is: an axis of a shape, or of a window."""
    of_shape = name[1:] in ("in", "out", "atch")
    return AXIS_PARTS[name[0]] if of_shape else WINDOW_PARTS.get(name, 0)


def _sizes(meaning: Meaning, text: str, reading: Reading) -> Mapping[str, int]:
    """Sizes of one cell by name."""
    if LONG.search(text):
        return {}
    if meaning in ("input", "output"):
        side = "in" if meaning == "input" else "out"
        if not reading.sides:
            return _shape(text, side, reading)
        meaning = "in_size" if meaning == "input" else "out_size"
    if meaning in ("in_size", "out_size"):
        side, found = meaning.removesuffix("_size"), spatial(text)
        return {} if found is None else {f"h{side}": found[0], f"w{side}": found[1]}
    if meaning in ("kernel", "kernel_stride"):
        return _kernel(text)
    if meaning == "description":
        return _described(text)
    if meaning in ("kernel_padding_stride", "kernel_stride_padding"):
        parts = [whole(part) for part in re.split("[,/]", plain(text).strip("()"))]
        if len(parts) != 3 or None in parts:
            return {}
        names = ("kh", "kw"), ("ph", "pw"), ("sh", "sw")
        if meaning == "kernel_stride_padding":
            names = names[0], names[2], names[1]
        return {n: p for pair, p in zip(names, parts, strict=True) for n in pair if p is not None}
    value = whole(text)
    if value is None:
        pair = spatial(text)
        if pair is None or meaning not in ("stride", "padding"):
            return {}
        return dict(zip(NAMES[meaning], pair, strict=True))
    return dict.fromkeys(NAMES.get(meaning, ()), value)


NAMES: dict[Meaning, tuple[str, ...]] = {
    "kernel_h": ("kh",), "kernel_w": ("kw",), "stride": ("sh", "sw"), "stride_h": ("sh",),
    "stride_w": ("sw",), "padding": ("ph", "pw"), "groups": ("groups",), "filters": ("cout",),
    "in_channels": ("cin",), "out_channels": ("cout",), "out_h": ("hout",), "out_w": ("wout",),
    "dilation": ("dh", "dw"), "batch": ("batch",),
}  # fmt: skip


THOUSANDS = re.compile(r"[\[(]?\d{1,3}(?:,\d{3})+[\])]?")


def _shape(text: str, side: str, reading: Reading) -> Mapping[str, int]:
    if reading.spaced and THOUSANDS.fullmatch(text.strip("`* ")):
        text = text.replace(",", "")
    shape, last = axes(text), reading.last
    found: dict[str, int | None] = {}
    if side == "out" and shape and None not in shape:
        found["elements"] = prod(size for size in shape if size is not None)
    if len(shape) == 4 or (len(shape) == 2 and reading.batch is not None):
        found["batch"], shape = shape[0], shape[1:]
    if len(shape) == 3:
        names = ("h", "w", "c") if last else ("c", "h", "w")
        found |= {f"{name}{side}": size for name, size in zip(names, shape, strict=True)}
    elif len(shape) == 2:
        found |= {f"h{side}": shape[0], f"w{side}": shape[1]}
    elif len(shape) == 1:
        found |= {f"c{side}": shape[0], f"h{side}": 1, f"w{side}": 1}
    return {name: size for name, size in found.items() if size is not None}


def _kernel(text: str) -> Mapping[str, int]:
    found = window(text)
    if found is None or not found.kernel:
        return {}
    sizes = {
        "kh": found.kernel[0],
        "kw": found.kernel[1] if len(found.kernel) > 1 else found.kernel[0],
    }
    if found.stride is not None:
        sizes |= {"sh": found.stride, "sw": found.stride}
    if found.filters is not None:
        sizes["cout"] = found.filters
    return sizes


_FILTERS = r"(?:f\w*ters?|kernels?)"
DESCRIBED = (
    (("kh", "kw"), r"\bk(?:ernel)?(?:_size)?\s*=?\s*\(?(\d+)(?:\s*[x×*,]\s*(\d+))?"),
    (
        ("kh", "kw"),
        rf"(\d+)\s*[x×*]\s*(\d+)(?:\s*[x×*]\s*\d+)?\s*(?:{_FILTERS}|conv|max|pool|,|at\b)",
    ),
    (("sh", "sw"), r"\bs(?:tride)?s?\s*=?\s*\(?(\d+)"),
    (("ph", "pw"), r"\bp(?:ad(?:ding)?)?\s*=?\s*\(?(\d+)"),
    (
        ("cout",),
        r"(?<![\dx×*])(?<![x×*] )(\d+)\s+(?:\d+\s*[x×*]\s*\d+\s*)?"
        rf"(?:{_FILTERS}\b|neurons|units)",
    ),
)


def _described(text: str) -> Mapping[str, int]:
    """Sizes in words: `96 11*11 filters at stride 4, pad 0`, `Conv2d k=11 p=2 s=4`."""
    words: str = text.lower()  # `plain` drops asterisks
    found: dict[str, int] = {}
    for names, pattern in DESCRIBED:
        match = re.search(pattern, words)
        if match is None or names[0] in found:
            continue
        numbers = [int(number) for number in match.groups() if number]
        found |= dict(zip(names, [*numbers, *numbers], strict=False))
    return found


def _spaced(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether shapes of several axes have spaces behind their commas."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    texts = [row.cells[n].text for row in rows for n in columns if n < len(row.cells)]
    return sum(", " in text for text in texts) > sum(
        "," in text and ", " not in text for text in texts
    )


def _batch(sheet: Sheet, rows: Sequence[SheetRow]) -> int | None:
    """The first axis of the shapes with four axes, if they agree."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    shapes = [axes(row.cells[n].text) for row in rows for n in columns if n < len(row.cells)]
    firsts = Counter(shape[0] for shape in shapes if len(shape) == 4)
    if not firsts:
        return None
    usual, count = firsts.most_common(1)[0]
    return usual if count * 10 >= firsts.total() * 9 else None


def reading_of(sheet: Sheet, rows: Sequence[SheetRow]) -> Reading:
    """How the shapes of a sheet are written."""
    return Reading(
        _order(sheet, rows), _sides(sheet, rows), _batch(sheet, rows), _spaced(sheet, rows)
    )
