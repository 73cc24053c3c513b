"""Sizes of the layers of a sheet: what its cells say, and what follows from the row above.

Every size has the cells that it comes from, so that a contradiction names the cells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct

from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import POOLS, SAME_SHAPE, Kind, named_sizes, plain
from layerscope.sheets.shapes import LONG, axes, channels_last, spatial, whole, window
from layerscope.sheets.sheet import EMPTY, WHOLE, Blank, Sheet, SheetRow

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


class RowLayer(Struct):
    """The sizes of one row: cin hin win, cout hout wout, kh kw, sh sw, ph pw, groups, batch."""

    row: SheetRow
    kind: Kind
    sizes: dict[str, SizeFact]
    printed: dict[str, SizeFact]  # of `sizes`, those that cells of this row say
    said_again: list[tuple[str, SizeFact]]  # sizes that a second cell of the row says
    before: RowLayer | None = None  # the layer whose output it takes
    normed: bool = False  # a norm follows, so that a convolution has no bias as a rule

    def get(self, *names: str) -> tuple[int, ...] | None:
        """The values of some sizes; None if one is left open."""
        found = [self.sizes.get(name) for name in names]
        return None if None in found else tuple(fact.value for fact in found if fact)

    def cells(self, *names: str) -> Cells:
        """The cells that some sizes come from."""
        return frozenset().union(*(self.sizes[name].cells for name in names if name in self.sizes))


def layers_of(sheet: Sheet) -> list[RowLayer]:
    """The layers of a sheet in the order of its rows; totals are none."""
    rows = [row for row in sheet.rows if row.kind != "total"]
    if rows and rows[-1].kind == "input" and all(row.kind != "input" for row in rows[:-1]):
        rows = rows[::-1]  # from the output at the top to the input
    reading = _Reading(
        _order(sheet, rows), _sides(sheet, rows), _batch(sheet, rows), _spaced(sheet, rows)
    )
    deeper = _containers(rows)
    layers = []
    for row in rows:
        printed, again = _printed(sheet, row, reading)
        kind: Kind = "unknown" if row.at in deeper else row.kind
        layers.append(RowLayer(row, kind, {}, printed, again))
    _use_formulas(layers)
    _use_names(layers)
    if sheet.blank.rows:
        _leave_out(layers, sheet.blank)
    named = {plain(row.label).split(" (")[0]: n for n, row in enumerate(rows)}
    for number, layer in enumerate(layers):
        following = layers[number + 1].kind if number + 1 < len(layers) else "unknown"
        layer.normed = following in ("batch_norm", "norm")
        if (
            number
            and layer.kind != "input"
            and not _is_after_gap(sheet, layers[number - 1].row, layer.row)
        ):
            source = _source(sheet, layer.row, named, number)
            while source >= 0 and layers[source].row.at in deeper:
                source -= 1  # a module is printed before the layers in it
            layer.before = layers[source] if source >= 0 else None
        refill(layer)
    return layers


def with_value(layer: RowLayer, part: CellPart, value: int) -> RowLayer | None:
    """The layer if a part of a cell said another size; None if it says none by itself."""
    whole = part[2] == WHOLE
    names = [
        name
        for name, fact in layer.sizes.items()
        if fact.cells and all(c == part or (whole and c[:2] == part[:2]) for c in fact.cells)
    ]
    if not names:
        return None
    sizes = {**layer.sizes, **{name: SizeFact(value, layer.sizes[name].cells) for name in names}}
    return RowLayer(
        layer.row, layer.kind, sizes, layer.printed, layer.said_again, layer.before, layer.normed
    )


def value_of(layer: RowLayer, part: CellPart) -> int | None:
    """The size that a part of a cell says."""
    for fact in layer.sizes.values():
        if fact.cells and all(
            c == part or (part[2] == WHOLE and c[:2] == part[:2]) for c in fact.cells
        ):
            return fact.value
    return None


def _leave_out(layers: Iterable[RowLayer], blank: Blank) -> None:
    """Drop the sizes that come from parts of cells that are not used."""
    for layer in layers:
        if layer.row.at not in blank.rows:
            continue
        again = [(name, fact) for name, fact in layer.said_again if not _is_blank(fact, blank)]
        layer.printed = {n: f for n, f in layer.printed.items() if not _is_blank(f, blank)}
        for name, fact in again:
            layer.printed.setdefault(name, fact)
        layer.said_again = [(n, f) for n, f in again if layer.printed[n] != f]


def _is_blank(fact: SizeFact, blank: Blank) -> bool:
    return any(cell in blank for cell in fact.cells)


TREE = re.compile(r"[\s│├└─|+`\\]*(?:[├└]─|[|+`\\]--?)\s*")


def _containers(rows: Sequence[SheetRow]) -> set[int]:
    """Rows of a tree that have rows below them: modules, and not layers."""
    marks = [TREE.match(row.label) for row in rows]
    if sum(mark is not None for mark in marks) < 2:
        return set()
    depths = [mark.end() if mark else 0 for mark in marks]
    return {row.at for row, one, two in zip(rows, depths, depths[1:], strict=False) if two > one}


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


def _is_after_gap(sheet: Sheet, above: SheetRow, row: SheetRow) -> bool:
    """Whether a line of dots, which stands for rows, is between two rows."""
    left_out = sheet.table.left_out  # in the order of lines
    after = bisect_right(left_out, above.line)
    return after < len(left_out) and left_out[after] < row.line


def _source(sheet: Sheet, row: SheetRow, named: Mapping[str, int], number: int) -> int:
    """The number of the layer that a row takes: the one it is connected to, else the one above."""
    column = sheet.column("connected")
    if column is not None and column < len(row.cells):
        first = re.split(r"[\[,\s]", plain(row.cells[column].text))[0]
        found = named.get(first)
        if found is not None and found < number:
            return found
    return number - 1


class _Reading(Struct, frozen=True):
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


def _printed(
    sheet: Sheet, row: SheetRow, reading: _Reading
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


def _sizes(meaning: Meaning, text: str, reading: _Reading) -> Mapping[str, int]:
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


def _shape(text: str, side: str, reading: _Reading) -> Mapping[str, int]:
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


def _use_formulas(layers: Iterable[RowLayer]) -> None:
    """Take shapes from products such as 224*224*64, where no column has them."""
    for layer in layers:
        for claim in layer.row.claims:
            if claim.figure is None:
                continue
            at: Cells = frozenset({claim.cell_part})
            if claim.figure.formula is None:
                number = claim.figure.value()
                plain_count = (
                    not claim.figure.power and not claim.figure.unit and number.denominator == 1
                )
                if (
                    claim.meaning in ("memory", "activations")
                    and layer.kind == "fc"
                    and plain_count
                ):
                    layer.printed.setdefault("cout", SizeFact(int(number), at))
                continue
            product = claim.figure.text.partition("=")[0].replace("\\", "")
            numbers = [int(n) for n in re.findall(r"\d+", product.replace(",", ""))]
            plus = "+" in product
            if claim.meaning in ("memory", "activations") and len(numbers) == 3 and not plus:
                for name, size in zip(("hout", "wout", "cout"), numbers, strict=True):
                    part: Cells = frozenset({(claim.row, claim.column, AXIS_PARTS[name[0]])})
                    layer.printed.setdefault(name, SizeFact(size, part))
            elif (
                claim.meaning in ("params", "weights")
                and layer.kind == "conv"
                and len(numbers) == 4
                and not plus
            ):
                for name, size in zip(("kh", "kw", "cin", "cout"), numbers, strict=True):
                    layer.printed.setdefault(name, SizeFact(size, at))


def _use_names(layers: Iterable[RowLayer]) -> None:
    """Take sizes from names such as CONV3-64 if they agree with every shape that is printed."""
    named = [(layer, named_sizes(layer.row.named)) for layer in layers]
    given = [(layer, sizes) for layer, sizes in named if sizes]
    channels = [
        (layer.printed["cout"].value, sizes["filters"])
        for layer, sizes in given
        if "filters" in sizes and "cout" in layer.printed
    ]
    agree = sum(a == b for a, b in channels)
    if channels and agree * 10 < len(channels) * 8:
        return
    pools = [sizes["kernel"] for layer, sizes in given if layer.kind in POOLS]
    counted = 1 in pools  # POOL1, POOL2, POOL3: the first pool, not one with a kernel of 1
    for layer, sizes in given:
        if "kernel" in sizes and not (counted and layer.kind in POOLS):
            for name in ("kh", "kw"):
                layer.printed.setdefault(name, SizeFact(sizes["kernel"]))
        if "filters" in sizes:
            at = _name_cell(layer.row)
            if "cout" in layer.printed:
                layer.said_again.append(("cout", SizeFact(sizes["filters"], at)))
            else:
                layer.printed["cout"] = SizeFact(sizes["filters"], at)


def _name_cell(row: SheetRow) -> Cells:
    column = next((n for n, cell in enumerate(row.cells) if cell.text == row.named), None)
    return NOWHERE if column is None else frozenset({(row.at, column, 0)})


def refill(layer: RowLayer) -> None:
    """Add what follows from the row above to what the row says."""
    sizes, before = dict(layer.printed), layer.before
    layer.sizes = sizes
    if layer.kind == "input":
        for axis in "chw":
            fact = sizes.get(f"{axis}out") or sizes.get(f"{axis}in")
            if fact:
                sizes[f"{axis}out"] = fact
        return
    if before is not None:
        for axis in "chw":
            if f"{axis}out" in before.sizes:
                sizes.setdefault(f"{axis}in", before.sizes[f"{axis}out"])
    if layer.kind in SAME_SHAPE or layer.kind in ("add",):
        _same(sizes, "chw")
    elif layer.kind in POOLS or layer.kind in ("upsample", "depthwise"):
        _same(sizes, "c")
    elif layer.kind == "global_pool":
        _same(sizes, "c")
        sizes.setdefault("hout", SizeFact(1))
        sizes.setdefault("wout", SizeFact(1))
    elif layer.kind == "fc":
        for axis in "hw":
            sizes.setdefault(f"{axis}out", SizeFact(1))
    elif layer.kind == "flatten":
        got = layer.get("cin", "hin", "win")
        if got:
            at = layer.cells("cin", "hin", "win")
            sizes.setdefault("cout", SizeFact(got[0] * got[1] * got[2], at))
            sizes.setdefault("hout", SizeFact(1))
            sizes.setdefault("wout", SizeFact(1))
    if layer.kind in ("conv", "deconv", *POOLS):
        _spatial(layer)


def without(layer: RowLayer, cell_part: CellPart) -> RowLayer:
    """The layer as its other cells and the row above have it, without one cell."""
    printed = {
        name: fact
        for name, fact in layer.printed.items()
        if not any(cell[:2] == cell_part[:2] for cell in fact.cells)
    }
    for name, fact in layer.said_again:
        printed.setdefault(name, fact)
    found = RowLayer(layer.row, layer.kind, {}, printed, [], layer.before, layer.normed)
    refill(found)
    return found


def _same(sizes: dict[str, SizeFact], names: str) -> None:
    """What the row does not say is as in its input, or the other way round."""
    for axis in names:
        if f"{axis}in" in sizes:
            sizes.setdefault(f"{axis}out", sizes[f"{axis}in"])
        elif f"{axis}out" in sizes:
            sizes[f"{axis}in"] = sizes[f"{axis}out"]


def _spatial(layer: RowLayer) -> None:
    """The output size of a window, where the row leaves it blank."""
    for axis in "hw":
        if f"{axis}out" in layer.sizes:
            continue
        found = output_sizes(layer, axis)
        if found:
            names = (f"{axis}in", f"k{axis}", f"s{axis}", f"p{axis}")
            layer.sizes[f"{axis}out"] = SizeFact(found[0], layer.cells(*names))


def output_sizes(layer: RowLayer, axis: str) -> tuple[int, ...]:
    """Output sizes that the window of a row can give: by floor, then by ceil; () if left open."""
    got = layer.get(f"{axis}in", f"k{axis}")
    if got is None:
        return ()
    size, kernel = got
    stride = layer.sizes.get(f"s{axis}")
    pool = layer.kind in POOLS
    step = stride.value if stride else (kernel if pool else 1)
    pad = layer.sizes.get(f"p{axis}")
    dilation = layer.sizes.get(f"d{axis}")
    span = (dilation.value if dilation else 1) * (kernel - 1) + 1
    if layer.kind == "deconv" or step < 1:
        return ()
    pads = [pad.value] if pad else [0] if pool else []
    found = [n for p in pads for n in steps(size + 2 * p - span, step)]
    return tuple(dict.fromkeys(found))


def steps(room: int, step: int) -> tuple[int, ...]:
    """Positions of a window that has so much room: by floor, then by ceil."""
    if room < 0 or step < 1:
        return ()
    return (room // step + 1, -(-room // step) + 1)
