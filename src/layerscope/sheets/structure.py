"""Sizes of the layers of a sheet: what its cells say, and what follows from the row above.

Every size has the cells that it comes from, so that a contradiction names the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import RULES, Figure
from layerscope.sheets.connections import RowNames, connected_to
from layerscope.sheets.described import named_window, padding_word
from layerscope.sheets.kinds import POOLS, SAME_SHAPE, Kind, named_sizes, worded_kernel
from layerscope.sheets.shapes import steps
from layerscope.sheets.sheet import (
    WHOLE,
    Blank,
    Sheet,
    SheetRow,
    is_after_gap,
)
from layerscope.sheets.sizes import (
    AXIS_PARTS as AXIS_PARTS,
)
from layerscope.sheets.sizes import (
    NOWHERE,
    SQUARE,
    WINDOW_PARTS,
    printed_sizes,
    reading_of,
    rounded_sizes,
)
from layerscope.sheets.sizes import (
    CellPart as CellPart,
)
from layerscope.sheets.sizes import (
    Cells as Cells,
)
from layerscope.sheets.sizes import (
    SizeFact as SizeFact,
)
from layerscope.sheets.tree import containers

WINDOWED: tuple[Kind, ...] = ("conv", "depthwise", "deconv", *POOLS)


class RowLayer(Struct):
    """The sizes of one row: cin hin win, cout hout wout, kh kw, sh sw, ph pw, groups, batch."""

    row: SheetRow
    kind: Kind
    sizes: dict[str, SizeFact]
    printed: dict[str, SizeFact]  # of `sizes`, those that cells of this row say
    said_again: list[tuple[str, SizeFact]]  # sizes that a second cell of the row says
    before: RowLayer | None = None  # the layer whose output it takes
    connected: bool = False  # the row itself says which layer it takes
    normed: bool = False  # a norm follows, so that a convolution has no bias as a rule
    last: RowLayer | None = None  # of a module in a tree: the last layer or module in it
    maybe: tuple[RowLayer, ...] = ()  # rows that may be its input, if none explains it
    closes: tuple[RowLayer, ...] = ()  # modules that end with this layer, outer ones first
    rounded: tuple[str, ...] = ()  # sizes of its output that the row prints rounded

    def get(self, *names: str) -> tuple[int, ...] | None:
        """The values of some sizes; None if one is left open."""
        found = []
        for name in names:
            fact = self.sizes.get(name)
            if fact is None:
                return None
            found.append(fact.value)
        return tuple(found)

    def cells(self, *names: str) -> Cells:
        """The cells that some sizes come from."""
        return frozenset().union(*(self.sizes[name].cells for name in names if name in self.sizes))


def layers_of(sheet: Sheet) -> list[RowLayer]:
    """The layers of a sheet in the order of its rows; totals are none."""
    rows = [row for row in sheet.rows if row.kind != "total"]
    if rows and rows[-1].kind == "input" and all(row.kind != "input" for row in rows[:-1]):
        rows = rows[::-1]  # from the output at the top to the input
    reading = reading_of(sheet, rows)
    deeper = containers(rows)
    layers: list[RowLayer] = []
    for row in rows:
        printed, again = printed_sizes(sheet, row, reading)
        kind: Kind = "unknown" if len(layers) in deeper else row.kind
        rounded = rounded_sizes(sheet, row)
        layers.append(RowLayer(row, kind, {}, printed, again, rounded=rounded))
    for at, (last, end) in sorted(deeper.items()):
        layers[at].last = layers[last]
        layers[end].closes += (layers[at],)
    _use_formulas(layers)
    _use_names(layers)
    if all(sheet.column(meaning) is None for meaning in ("output", "out_size", "out_h")):
        _use_next_inputs(sheet, layers)
    if sheet.blank.rows:
        _leave_out(layers, sheet.blank)
    if sheet.tried is not None:
        _change_sizes(layers, *sheet.tried)
    names = RowNames(rows)
    for number, layer in enumerate(layers):
        following = layers[number + 1].kind if number + 1 < len(layers) else "unknown"
        layer.normed = following in ("batch_norm", "norm")
        if (
            number
            and layer.kind != "input"
            and not is_after_gap(sheet, layers[number - 1].row, layer.row)
        ):
            sources = connected_to(sheet, layer.row, number, names)
            layer.connected = len(sources) == 1
            if len(sources) < 2:  # else any of them is the input, and it is left open
                layer.before = _after(layers[sources[0] if sources else number - 1])
            if layer.before is not None and layer.kind in ("batch_norm", "norm"):
                layer.before.normed = True  # another row may be between them
        refill(layer)
    return layers


def _after(above: RowLayer) -> RowLayer | None:
    """What the row behind another takes: a module is printed before the layers in it."""
    if above.last is not None:
        return above.before
    return next((module for module in above.closes if "cout" in module.printed), above)


def outputs_of(layer: RowLayer) -> Iterator[tuple[tuple[int, ...], RowLayer]]:
    """Shapes that are computed when a row is: its own unless it is a module, those it closes."""
    for each in (*([layer] if layer.last is None else ()), *layer.closes[::-1]):
        shape = each.get("cout", "hout", "wout")
        if shape is not None:
            yield shape, each


def with_value(layer: RowLayer, part: CellPart, value: int) -> RowLayer | None:
    """The layer if a part of a cell said another size; None if it says none by itself."""
    names = [name for name, fact in layer.sizes.items() if fact.cells and _is_of(fact, part)]
    if not names:
        return None
    sizes = {**layer.sizes, **{name: SizeFact(value, layer.sizes[name].cells) for name in names}}
    changed = replace(layer, sizes=sizes)
    _compute_again(changed, part)
    return changed


def _compute_again(layer: RowLayer, part: CellPart) -> None:
    """Compute the output size of a window again, if the row leaves it blank."""
    if layer.kind not in ("conv", *POOLS) or part[0] != layer.row.at:
        return
    for axis in "hw":
        fact = layer.sizes.get(f"{axis}out")
        if fact is not None and f"{axis}out" not in layer.printed and _comes_from(fact, part):
            del layer.sizes[f"{axis}out"]
    _spatial(layer)


def _comes_from(fact: SizeFact, part: CellPart) -> bool:
    """Whether a size comes from a part of a cell and from others."""
    within = [c == part or (part[2] == WHOLE and c[:2] == part[:2]) for c in fact.cells]
    return any(within) and not all(within)


def value_of(layer: RowLayer, part: CellPart) -> int | None:
    """The size that a part of a cell says."""
    for fact in layer.sizes.values():
        if fact.cells and _is_of(fact, part):
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


def _change_sizes(layers: Iterable[RowLayer], part: CellPart, size: int) -> None:
    """Give the sizes that a part of a cell says another value."""
    for layer in layers:
        if layer.row.at == part[0]:
            own = {n: f for n, f in layer.printed.items() if f.cells and _is_of(f, part)}
            layer.printed |= {name: SizeFact(size, fact.cells) for name, fact in own.items()}


def _is_of(fact: SizeFact, part: CellPart) -> bool:
    """Whether a size comes from one part of a cell only."""
    return all(c == part or (part[2] == WHOLE and c[:2] == part[:2]) for c in fact.cells)


def _is_blank(fact: SizeFact, blank: Blank) -> bool:
    return any(cell in blank for cell in fact.cells)


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


def _use_next_inputs(sheet: Sheet, layers: Sequence[RowLayer]) -> None:
    """Take outputs from the inputs of the rows below, in tables that print inputs only."""
    for layer, below in pairwise(layers):
        given = [below.printed.get(f"{axis}in") for axis in "chw"]
        if None not in given and not is_after_gap(sheet, layer.row, below.row):
            for axis, fact in zip("chw", given, strict=True):
                if fact is not None:
                    layer.printed.setdefault(f"{axis}out", fact)


def _use_words(layers: Iterable[RowLayer]) -> None:
    """Take windows from cells such as `Conv 3x3` or `Conv(7x7) S=2`, where no column has them."""
    for layer in layers:
        if layer.kind not in WINDOWED:
            continue
        column = _name_column(layer.row)
        if "kh" not in layer.printed:
            found = ((n, worded_kernel(cell.text)) for n, cell in enumerate(layer.row.cells))
            for n, size in found:
                if size:
                    fact = SizeFact(size, frozenset({(layer.row.at, n, WINDOW_PARTS["kh"])}))
                    layer.printed |= {"kh": fact, "kw": fact}
                    break
        if column is not None:
            sizes = named_window(layer.row.cells[column].text)
            for name, size in sizes.items():
                same = SQUARE.get(name, name)
                part = WINDOW_PARTS[same if sizes.get(same) == size else name]
                fact = SizeFact(size, frozenset({(layer.row.at, column, part)}))
                layer.printed.setdefault(name, fact)
        _use_padding(layer)


def _use_padding(layer: RowLayer) -> None:
    """The padding that a word says: `valid` for none, `same` for half of an odd kernel."""
    given = ((n, padding_word(cell.text)) for n, cell in enumerate(layer.row.cells))
    column, word = next(((n, word) for n, word in given if word), (0, ""))
    for axis in "hw":
        kernel, name = layer.printed.get(f"k{axis}"), f"p{axis}"
        if not word or layer.kind == "deconv" or (word == "same" and kernel is None):
            continue
        size = kernel.value - 1 if kernel is not None and word == "same" else 0
        if size % 2 == 0:
            at = frozenset({(layer.row.at, column, WINDOW_PARTS["ph"])})
            layer.printed.setdefault(name, SizeFact(size // 2, at))


def _use_names(layers: list[RowLayer]) -> None:
    """Take sizes from names such as CONV3-64 if they agree with every shape that is printed."""
    _use_words(layers)
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


def _name_column(row: SheetRow) -> int | None:
    return next((n for n, cell in enumerate(row.cells) if cell.text == row.named), None)


def _name_cell(row: SheetRow) -> Cells:
    column = _name_column(row)
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
    _take_input(layer, before)
    if layer.kind in SAME_SHAPE or layer.kind in ("add",):
        _take_equal_sizes(sizes, "chw")
    elif layer.kind in POOLS or layer.kind in ("upsample", "depthwise"):
        _take_equal_sizes(sizes, "c")
    elif layer.kind == "concat" and "cout" in sizes:
        _take_equal_sizes(sizes, "hw")
    elif layer.kind == "global_pool":
        _take_equal_sizes(sizes, "c")
        sizes.setdefault("hout", SizeFact(1))
        sizes.setdefault("wout", SizeFact(1))
    elif layer.kind == "fc":
        positions = _positions(layer)
        for axis in "hw":
            size = SizeFact(1) if positions == 1 else sizes.get(f"{axis}in")
            if size is not None:
                sizes.setdefault(f"{axis}out", size)
    elif layer.kind == "flatten":
        got = layer.get("cin", "hin", "win")
        area = layer.get("hout", "wout") or (1, 1)
        turned = "permute" in layer.row.named.lower() and "hout" not in sizes
        if got and prod(area) and prod(got) % prod(area) == 0 and not turned:
            at = layer.cells("cin", "hin", "win", "hout", "wout")
            sizes.setdefault("cout", SizeFact(prod(got) // prod(area), at))
            sizes.setdefault("hout", SizeFact(1))
            sizes.setdefault("wout", SizeFact(1))
    if layer.kind in ("conv", "deconv", *POOLS):
        _spatial(layer)
    for name in layer.rounded:
        sizes.pop(name, None)


def _take_input(layer: RowLayer, before: RowLayer | None) -> None:
    """Add the sizes of the input, without one the depth of the filters."""
    if before is not None:
        for axis, given in given_sizes(layer, before):
            if given is not None:
                layer.sizes.setdefault(f"{axis}in", given)
    elif "depth" in layer.sizes:
        layer.sizes.setdefault("cin", layer.sizes["depth"])


def given_sizes(layer: RowLayer, before: RowLayer) -> Iterator[tuple[str, SizeFact | None]]:
    """What a row gives another, by axis: the last or the first of two others may become channels.

    Those of a map are equal as a rule, so that a wrong number of channels is none of them.
    """
    got, channels = before.get("cout", "hout", "wout"), layer.printed.get("cin")
    order = "chw"
    if got is not None and channels is not None and got[0] != channels.value > 1:
        if got[1] != got[2] == channels.value:
            order = "wch"
        elif got[2] == 1 and got[1] == channels.value:
            order = "hcw"
    elif got is not None and layer.kind == "fc" and got[0] != got[1] > got[2] == 1:
        positions = layer.printed.get("hout")
        order = "hcw" if positions is not None and positions.value == got[0] > 1 else order
    elif before.rounded and channels is not None:
        order = "" if before.get("cout") != (channels.value,) else order  # an axis that is open
    for axis, given in zip("chw", order, strict=bool(order)):
        yield axis, before.sizes.get(f"{given}out")


def _positions(layer: RowLayer) -> int:
    """At how many positions a fully connected layer works; 0 if that is left open.

    It is one, unless only the elements of all positions of its input explain its output.
    """
    filters, area = layer.get("cout"), layer.get("hin", "win")
    if filters is None or area == (1, 1) or "hout" in layer.sizes:
        return 1
    given = (c for c in layer.row.claims if c.meaning in ("memory", "activations"))
    figures = [(c.figure, c.heading.scale) for c in given if c.figure and c.figure.mantissa]
    if all(_counts(figure, Fraction(filters[0], scale)) for figure, scale in figures):
        return 1
    if area is None:
        return 0
    count = prod(area)
    right = all(_counts(figure, Fraction(filters[0] * count, scale)) for figure, scale in figures)
    return count if right else 1


def _counts(figure: Figure, elements: Fraction) -> bool:
    """Whether a figure is that of some elements, or of their bytes."""
    return any(
        figure.stands_for(elements * size, base, how)
        for size, base, how in product((1, 4, 2), (1000, 1024), RULES)
    )


def without(layer: RowLayer, cell_part: CellPart) -> RowLayer:
    """The layer as its other cells and the row above have it, without one cell."""
    printed = {
        name: fact
        for name, fact in layer.printed.items()
        if not any(cell[:2] == cell_part[:2] for cell in fact.cells)
    }
    for name, fact in layer.said_again:
        printed.setdefault(name, fact)
    found = replace(layer, sizes={}, printed=printed, said_again=[], last=None, maybe=(), closes=())
    refill(found)
    return found


def _take_equal_sizes(sizes: dict[str, SizeFact], names: str) -> None:
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
