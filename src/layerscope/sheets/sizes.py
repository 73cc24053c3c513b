"""The sizes that the cells of a row say, and how a sheet writes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import prod

from msgspec import Struct

from layerscope.documents.headings import Meaning, axes_of
from layerscope.sheets.described import TO, described, image_of
from layerscope.sheets.kinds import POOLS, plain
from layerscope.sheets.shapes import (
    AXES,
    LONG,
    axes,
    channels_last,
    last_axis_of,
    orders,
    spatial,
    whole,
    window,
)
from layerscope.sheets.sheet import EMPTY, Sheet, SheetRow

CellPart = tuple[int, int, int]  # row, column and part of the cell
Cells = frozenset[CellPart]
NOWHERE: Cells = frozenset()
OPEN_BATCH = re.compile(r"[\s`*]*[\[(]+\s*(?:none|-1|\?|[bn]|batch(?:_size)?)\s*,")
ONE_AXIS = re.compile(r"(?:conv|pool(?:ing)?)_?1d")
MANY = 50  # parameters, from which on it is no chance that a size divides them
CHANNELS = ("out_channels", "filters")
VECTORS = ("fc", "softmax", "flatten", "dropout", "activation", "unknown")
DESCRIBED = (
    "conv", "depthwise", "deconv", *POOLS, "global_pool", "fc", "flatten", "upsample", "input",
    "unknown",
)  # fmt: skip


# each axis of a shape is a part of its cell, so that what speaks for one does not speak for all
AXIS_PARTS = {"c": 101, "h": 102, "w": 103, "b": 104}
FILTER_PARTS = {"cin": 117, "cout": 118, "depth": 119}
SQUARE = {"kw": "kh", "sw": "sh", "pw": "ph"}
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
    mixed: bool = False  # some shapes have their channels first, and some last
    deep: bool = False  # a column of its own has the channels, and a 1 stands before the height
    sequence: str = ""  # of shapes of two axes: the names of both if one is the channels
    lines: bool = False  # a column of its own has the channels, and one number is a length
    filters: tuple[str, ...] = ()  # what the axes of kernel shapes are
    maps: bool = False  # shapes of three axes and none of four: there is no batch


def _sides(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether input and output cells of windows are single numbers, which are no channels then."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    windows = [row for row in rows if row.kind in ("conv", *POOLS)]
    shapes = [axes(row.cells[n].text) for row in windows for n in columns if n < len(row.cells)]
    return bool(shapes) and sum(len(shape) == 1 for shape in shapes) * 2 > len(shapes)


ROUNDED = re.compile(r"\d\.\d{1,6}e\+?\d")
ROUNDED_NAMES: dict[Meaning, tuple[str, ...]] = {
    "output": ("hout", "wout"), "out_size": ("hout", "wout"), "out_channels": ("cout",),
}  # fmt: skip


def _shapes(sheet: Sheet, rows: Sequence[SheetRow]) -> list[tuple[int | None, ...]]:
    """The shapes of inputs and outputs."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    return [axes(row.cells[n].text) for row in rows for n in columns if n < len(row.cells)]


def _is_last(
    sheet: Sheet, rows: Sequence[SheetRow], shapes: Sequence[Sequence[int | None]]
) -> bool:
    """Whether the channels are the last axis: by a heading, by what pools keep, by equal axes."""
    column = sheet.column("output")
    named = [axes_of(h.text) for h in sheet.headings if h and h.meaning in ("input", "output")]
    if any("c" in each for each in named):
        return all(not each.startswith("c") for each in named)
    if column is None:
        return channels_last(shapes)
    first = last = 0
    for above, row in pairwise(rows):
        if row.kind not in POOLS or len(row.cells) <= column or len(above.cells) <= column:
            continue
        before, after = (axes(each.cells[column].text)[-3:] for each in (above, row))
        if len(before) == len(after) == 3:
            changed = [one != two for one, two in zip(before, after, strict=True)]
            first += changed == [False, True, True]
            last += changed == [True, True, False]
    return last > first if last != first else channels_last(shapes)


def _names_axes(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether shapes name their axes, which are then read with the channels first."""
    column = sheet.column("output")
    cells = [row.cells[column] for row in rows if column is not None and column < len(row.cells)]
    return any(AXES.search(plain(cell.text)) for cell in cells)


def _is_mixed(rows: Sequence[SheetRow], shapes: Sequence[Sequence[int | None]]) -> bool:
    """Whether layers that work on the last axis stand among shapes of both orders."""
    turned = any(row.kind == "norm" or "permute" in row.named.lower() for row in rows)
    return turned and 0 not in orders(shapes)


def printed_sizes(
    sheet: Sheet, row: SheetRow, reading: Reading
) -> tuple[dict[str, SizeFact], list[tuple[str, SizeFact]]]:
    """The sizes that the cells of a row say, and those that a second cell says again."""
    found: dict[str, SizeFact] = {}
    again: list[tuple[str, SizeFact]] = []
    for column, heading in enumerate(sheet.headings):
        if heading is None or column >= len(row.cells):
            continue
        sizes = _sizes_in_cell(sheet, row, column, reading)
        for name, value in sizes.items():
            part = _part_of(heading.meaning, name, sizes)
            at: Cells = frozenset({(row.at, column, part)})
            if name == "axes":
                found.setdefault(name, SizeFact(value))
            elif name in found:
                again.append((name, SizeFact(value, at)))
            else:
                found[name] = SizeFact(value, at)
    return found, again


def _sizes_in_cell(sheet: Sheet, row: SheetRow, column: int, reading: Reading) -> Mapping[str, int]:
    """The sizes that one cell of a row says."""
    text, heading = row.cells[column].text, sheet.headings[column]
    if plain(text) in EMPTY or heading is None:
        return {}
    of_shape = heading.meaning in ("input", "output")
    if of_shape and row.kind in VECTORS:
        text = _as_vector(text, reading, sheet) if row.kind == "fc" else text
        text = _as_column(text) if reading.maps else text
    if of_shape and row.kind in ("concat", "add") and len(axes(text)) == 1 and not reading.lines:
        return {}  # numbers of other rows
    if heading.meaning == "description" and row.kind not in DESCRIBED:
        return {}
    if heading.meaning == "description" and row.kind == "input":
        return image_of(text)
    sizes = _sizes(heading.meaning, text, reading)
    if row.kind == "flatten" and _is_longer(text, reading):  # which axes are channels is left open
        return {name: size for name, size in sizes.items() if name == "elements"}
    return sizes


def _part_of(meaning: Meaning, name: str, sizes: Mapping[str, int]) -> int:
    """The part of its cell that a size is; one number in words is both axes of a window."""
    if meaning.startswith("kernel") and name in FILTER_PARTS:
        return FILTER_PARTS[name]
    if meaning == "description" and sizes.get(SQUARE.get(name, "")) == sizes[name]:
        return WINDOW_PARTS[SQUARE[name]]
    return _part_of_cell(name)


def rounded_sizes(sheet: Sheet, row: SheetRow) -> tuple[str, ...]:
    """The sizes of the output that a row prints rounded, as 1.638e+04, and so leaves open."""
    return tuple(
        name
        for heading, cell in zip(sheet.headings, row.cells, strict=False)
        if heading is not None and ROUNDED.search(cell.text)
        for name in ROUNDED_NAMES.get(heading.meaning, ())
    )


def _as_vector(text: str, reading: Reading, sheet: Sheet) -> str:
    """The cell of a fully connected layer, where 1x4096 is 4,096 features.

    In a table of batches or sequences and in [1, 4096] the first axis is one of those, and beside
    a column of channels both are height and width.
    """
    shape = axes(text)
    two_axes = "," in text or reading.batch is not None or reading.sequence or reading.sides
    if two_axes or any(heading and heading.meaning in CHANNELS for heading in sheet.headings):
        return text
    return str(shape[1]) if len(shape) == 2 and shape[0] == 1 != shape[1] is not None else text


def _as_column(text: str) -> str:
    """A column vector, (120, 1), as its features: in a table of maps without a batch."""
    shape = axes(text)
    return str(shape[0]) if len(shape) == 2 and shape[1] == 1 and shape[0] else text


def _is_longer(text: str, reading: Reading) -> bool:
    """Whether a shape has four axes, and the first is not the batch."""
    shape = axes(text)
    return len(shape) == 4 and reading.batch is not None and shape[0] != reading.batch


def _part_of_cell(name: str) -> int:
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
        return _kernel(text, reading, paired=meaning == "kernel_stride")
    if meaning == "description":
        return described(text)
    if meaning == "kernel_shape":
        return _filters(text, reading)
    if meaning == "param_shape":
        shape = [size for size in axes(text) if size is not None]
        return {"elements": prod(shape)} if shape and len(shape) == len(axes(text)) else {}
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


PAIRED = re.compile(r"(\d{1,3})\s*,\s*(\d{1,3})")  # kernel and stride
MATRIX = re.compile(rf"\s*(\d{{1,6}}){TO}(\d{{1,6}})\s*")  # 512 -> 10
EACH_CHANNEL = re.compile(r"(?P<kernel>.*\d\s*\$?)\s*(?:dw|depth-?wise)", re.IGNORECASE)
POOL_WORD = re.compile(r"^\s*(?:max|avg|average)?[ -]*pool\w*\s+(?=\d)", re.IGNORECASE)
THOUSANDS = re.compile(r"[\[(]?\d{1,3}(?:,\d{3})+[\])]?")


def _shape(text: str, side: str, reading: Reading) -> Mapping[str, int]:
    """The sizes of a shape by name, its elements and its number of axes."""
    if reading.spaced and THOUSANDS.fullmatch(text.strip("`* ")):
        text = text.replace(",", "")
    shape = axes(text)
    found: dict[str, int | None] = {}
    if side == "out" and shape and None not in shape:
        found["elements"] = prod(size for size in shape if size is not None)
    if reading.deep and len(shape) > 2:
        shape = shape[-2:] if set(shape[:-2]) == {1} else ()
    if _has_batch(shape, reading):
        found["batch"], shape = shape[0], shape[1:]
    if side == "out" and shape:
        found["axes"] = len(shape)
    names = _axis_names(shape, reading)
    found |= {f"{name}{side}": size for name, size in zip(names, shape, strict=False)}
    for name in "hw" if names == "c" else "w" if names in ("h", *SEQUENCES) else "":
        found[f"{name}{side}"] = 1
    return {name: size for name, size in found.items() if size is not None}


SEQUENCES = ("ch", "hc")


def _has_batch(shape: Sequence[int | None], reading: Reading) -> bool:
    if len(shape) == 3:
        return bool(reading.sequence) and shape[0] == reading.batch
    return len(shape) == 4 or (len(shape) == 2 and reading.batch is not None)


def _axis_names(shape: Sequence[int | None], reading: Reading) -> str:
    """What the axes of a shape are: channels, height, width; those that are not named are one."""
    if len(shape) == 3:
        last = last_axis_of(shape, reading.last) if reading.mixed else reading.last
        return "hwc" if last else "chw"
    if len(shape) == 2:
        return reading.sequence or "hw"
    return ("h" if reading.lines else "c") if len(shape) == 1 else ""


def _kernel(text: str, reading: Reading, *, paired: bool = False) -> Mapping[str, int]:
    """The window of a cell; `paired`: `3, 1` is a kernel and a stride."""
    pair = PAIRED.fullmatch(plain(text)) if paired else None
    if pair is not None:
        kernel, stride = int(pair[1]), int(pair[2])
        return {"kh": kernel, "kw": kernel, "sh": stride, "sw": stride}
    if matrix := MATRIX.fullmatch(re.sub("[$`]", "", text)):
        return {"cin": int(matrix[1]), "cout": int(matrix[2])}
    each = EACH_CHANNEL.fullmatch(text.strip())
    found = window(each["kernel"] if each else POOL_WORD.sub("", text))
    if found is None or not found.kernel:
        return {}
    alone = 1 if reading.sequence else found.kernel[0]
    sizes = {"kh": found.kernel[0], "kw": found.kernel[1] if len(found.kernel) > 1 else alone}
    if each and len(found.kernel) == 3:  # 3x3x32 dw: a filter for each of 32 channels
        return sizes | {"cin": found.kernel[2], "cout": found.kernel[2]}
    if len(found.kernel) == 3 and found.filters is not None:  # 5x5x48/1,128
        sizes["depth"] = found.kernel[2]
    if len(found.kernel) == 4:  # 3x3x64x128: height, width, depth and number of filters
        sizes |= {"cin": found.kernel[2], "cout": found.kernel[3]}
    if found.stride is not None:
        sizes |= {"sh": found.stride, "sw": found.stride}
    if found.filters is not None:
        sizes["cout"] = found.filters
    return sizes


# orders of the axes of kernel shapes: of PyTorch, of torchsummaryX, of Keras
FILTER_ORDERS = (
    ("cout", "depth", "kh", "kw"), ("depth", "cout", "kh", "kw"), ("kh", "kw", "depth", "cout"),
)  # fmt: skip


def _filters(text: str, reading: Reading) -> Mapping[str, int]:
    """The sizes of filters or of a matrix; the channels of a norm."""
    shape = [size for size in axes(text) if size is not None]
    if len(shape) == 1:
        return {"cout": shape[0]}
    names = reading.filters
    if len(shape) == 2:
        names = tuple(name for name in names if name in ("cout", "depth"))
    return dict(zip(names, shape, strict=True)) if len(shape) == len(names) else {}


def _filter_order(sheet: Sheet, rows: Sequence[SheetRow]) -> tuple[str, ...]:
    """The order in which most kernel shapes have the channels of their output."""
    kernel, output = sheet.column("kernel_shape"), sheet.column("output")
    if kernel is None or output is None:
        return ()
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        if len(row.cells) > max(kernel, output):
            shape, out = (axes(row.cells[n].text) for n in (kernel, output))
            if len(shape) == 4:
                counts.update(o for o in FILTER_ORDERS if shape[o.index("cout")] in out)
    return max(FILTER_ORDERS, key=lambda order: counts[order]) if counts else ()


def _spaced(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether shapes of several axes have spaces behind their commas."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    texts = [row.cells[n].text for row in rows for n in columns if n < len(row.cells)]
    return sum(", " in text for text in texts) > sum(
        "," in text and ", " not in text for text in texts
    )


def _batch(shapes: Sequence[Sequence[int | None]]) -> int | None:
    """The first axis of the shapes with four axes, if they agree."""
    firsts = Counter(shape[0] for shape in shapes if len(shape) == 4)
    if not firsts:
        return None
    usual, count = firsts.most_common(1)[0]
    return usual if count * 10 >= firsts.total() * 9 else None


def _line_batch(rows: Sequence[SheetRow], shapes: Sequence[Sequence[int | None]]) -> int | None:
    """The first axis of all shapes with three axes, in a table of layers along one axis."""
    firsts = {shape[0] for shape in shapes if len(shape) == 3}
    lines = any(ONE_AXIS.search(row.named.lower()) for row in rows)
    return firsts.pop() if lines and len(firsts) == 1 else None


def _is_deep(meanings: Collection[Meaning], shapes: Sequence[Sequence[int | None]]) -> bool:
    """Whether most sizes beside a column of channels have a 1 before height and width."""
    long = [shape for shape in shapes if len(shape) > 2]
    ones = sum(shape[0] == 1 for shape in long)
    return not {*CHANNELS}.isdisjoint(meanings) and ones * 2 > len(long)


def _has_lines(sheet: Sheet, rows: Sequence[SheetRow]) -> bool:
    """Whether single numbers in output cells are other ones than the channels beside them."""
    outputs = [n for n, h in enumerate(sheet.headings) if h and h.meaning == "output"]
    channels = [n for n, h in enumerate(sheet.headings) if h and h.meaning in CHANNELS]
    if len(outputs) != 1 or not channels:
        return False
    given = [
        (axes(row.cells[outputs[0]].text), whole(row.cells[channels[0]].text))
        for row in rows
        if len(row.cells) > max(outputs[0], channels[0])
    ]
    pairs = [(shape[0], count) for shape, count in given if len(shape) == 1 and count is not None]
    return sum(size != count for size, count in pairs) * 2 > len(pairs)


def _sequence(sheet: Sheet, rows: Sequence[SheetRow], batch: int | None) -> str:
    """Which axis of two has the channels: parameters are multiples of their number."""
    column, counts = sheet.column("output"), {"hc": 0, "ch": 0}
    if column is None:
        return ""
    lines = any(ONE_AXIS.search(row.named.lower()) for row in rows)
    for row in rows:
        given = (c.figure for c in row.claims if c.meaning in ("params", "weights") and c.figure)
        figure = next(given, None)
        shape = axes(row.text(column))
        shape = shape[1:] if len(shape) == 3 and batch is not None else shape
        opened = lines or batch is not None or OPEN_BATCH.match(row.text(column).lower())
        if not opened or figure is None or figure.power or figure.value() < MANY or len(shape) != 2:
            continue
        divides = [size is not None and size > 1 and figure.value() % size == 0 for size in shape]
        counts["ch"] += divides[0] and not divides[1]
        counts["hc"] += divides[1] and not divides[0]
    order = max(counts, key=lambda each: counts[each])
    return order if counts[order] > 2 * min(counts.values()) else ""


def _has_maps(
    sheet: Sheet, rows: Sequence[SheetRow], shapes: Sequence[Sequence[int | None]]
) -> bool:
    """Whether there are shapes of three axes, and no axis is a batch."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("input", "output")]
    texts = [row.cells[n].text.lower() for row in rows for n in columns if n < len(row.cells)]
    ranks = {len(shape) for shape in shapes}
    return 3 in ranks and 4 not in ranks and not any(map(OPEN_BATCH.match, texts))


def reading_of(sheet: Sheet, rows: Sequence[SheetRow]) -> Reading:
    """How the shapes of a sheet are written."""
    shapes = _shapes(sheet, rows)
    meanings = {heading.meaning for heading in sheet.headings if heading}
    batch = _batch(shapes) or _line_batch(rows, shapes)
    return Reading(
        _is_last(sheet, rows, shapes) and not _names_axes(sheet, rows),
        _sides(sheet, rows), batch, _spaced(sheet, rows),
        _is_mixed(rows, shapes), _is_deep(meanings, shapes), _sequence(sheet, rows, batch),
        _has_lines(sheet, rows), _filter_order(sheet, rows), _has_maps(sheet, rows, shapes),
    )  # fmt: skip
