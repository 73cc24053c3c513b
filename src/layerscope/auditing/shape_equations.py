"""Equations between the sizes of a row, and between a row and the rows above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import prod

from msgspec.structs import replace

from layerscope.auditing.chain_equations import chain_equations, equal_with
from layerscope.auditing.equations import Equation
from layerscope.sheets.kinds import POOLS, SAME_SHAPE
from layerscope.sheets.shapes import axes
from layerscope.sheets.structure import (
    CellPart,
    RowLayer,
    SizeFact,
    with_value,
)
from layerscope.sheets.tree import class_name
from layerscope.sheets.windows import (
    Habit,
    WindowHabits,
    fits_depth,
    padding_habit,
    sizes_left_open,
    window_habits,
    window_sizes,
)

OTHER_TENSORS = ("unknown", "embedding", "flatten", "add")
LEAST_JOINS = 2  # from which on they show what is printed as their input
SQUARES = 5  # rows from which on equal heights and widths are a habit
# kinds whose outputs follow from one element of their input each
ELEMENTWISE = ("activation", "prelu", "batch_norm", "scale", "dropout", "softmax")
ONE_ELEMENT = {"kh": 1, "kw": 1, "sh": 1, "sw": 1, "ph": 0, "pw": 0}
ELEMENTS = 3  # windows of them from which on one element is a habit


def shape_equations(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """The equations of all rows."""
    habit, habits = padding_habit(layers), window_habits(layers)
    chained = list(chain_equations(layers))
    # a table of modules leaves out what the forward does between them
    if sum(e.holds for e in chained) * 10 >= len(chained) * 8:
        yield from chained
    yield from _modules(layers)
    yield from _batches(layers)
    for layer in layers:
        yield from _said_twice(layer)
        yield from _depths(layer)
        if layer.kind in ("conv", "depthwise", *POOLS):
            yield from _windows(layer, habit, habits)
        elif layer.kind == "fc":
            yield from _matrix(layer)
            yield from _positions(layer)
        if layer.kind in SAME_SHAPE:
            yield from _unchanged(layer, "chw")
        elif layer.kind in (*POOLS, "global_pool"):
            yield from _unchanged(layer, "c")
        elif layer.kind == "flatten" and "flat" in layer.row.named.lower():
            yield from _flattened(layer)
    yield from _joins(layers)
    yield from _squares(layers)
    yield from _elements(layers)


def _modules(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """The output of a module in a tree is that of the last layer in it.

    The forward of other modules than nn.Sequential may compute something behind that layer, which
    the others of their class show.
    """
    by_class: dict[str, list[list[Equation]]] = {}
    for layer in layers:
        if layer.last is not None:
            name = class_name(layer.row.label)
            by_class.setdefault(name, []).append(list(_module(layer, layer.last)))
    for name, modules in by_class.items():
        right = sum(all(e.holds for e in module) for module in modules)
        for module in modules:
            holds = all(e.holds for e in module)
            usual = name != "Module" and right > max(1, len(modules) - right)
            if name == "Sequential" or holds or usual:
                yield from module


def _module(layer: RowLayer, last: RowLayer) -> Iterator[Equation]:
    for axis in "chw":
        out, given = layer.printed.get(f"{axis}out"), last.printed.get(f"{axis}out")
        if out is not None and given is not None and out.cells and given.cells:
            (target,) = out.cells
            reason = f"the last layer of the module gives {given.value}"
            yield Equation(
                out.cells | given.cells, out.value == given.value, target, str(given.value),
                reason, group=f"module {layer.row.at}", holds_with=equal_with(given, out),
            )  # fmt: skip


def _squares(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """Heights and widths that the table prints apart and that are equal in nearly every row."""
    for high, wide in (("kh", "kw"), ("sh", "sw"), ("hout", "wout"), ("hin", "win"), ("ph", "pw")):
        found = []
        for layer in layers:
            one, two = layer.printed.get(high), layer.printed.get(wide)
            if one is None or two is None or not one.cells or not two.cells:
                continue
            if one.cells == two.cells:
                continue
            if layer.kind in ("flatten", "unknown", "fc"):
                continue
            if high == "kh" and layer.get("kh", "kw") == layer.get("hin", "win"):
                continue  # the kernel is the whole input
            (target,) = two.cells
            reason = f"height {one.value} and width {two.value}, equal in the other rows"
            apart = len({cell[:2] for cell in one.cells | two.cells}) > 1
            found.append(
                Equation(
                    one.cells | two.cells, one.value == two.value, target,
                    str(one.value) if apart else "", reason, copied=True,
                    holds_with=equal_with(one, two),
                )
            )  # fmt: skip
        odd = sum(not e.holds for e in found)
        if len(found) >= SQUARES and (odd == 1 or odd * 10 <= len(found)):
            alone = high[0] != "h" and odd * 10 > len(found)  # one window may be no square
            yield from (replace(e, beside=alone) for e in found)


def _elements(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """Windows of activations and their like, if all but one are a single element."""
    rows = [layer for layer in layers if layer.kind in ELEMENTWISE]
    for name, usual in ONE_ELEMENT.items():
        given = [(row, fact) for row in rows if (fact := row.printed.get(name)) and fact.cells]
        if sum(fact.value != usual for _, fact in given) > 1 or len(given) < ELEMENTS:
            continue
        for layer, fact in given:
            (target,) = fact.cells
            reason = f"{_named(layer)} takes one element at a time"
            yield Equation(
                fact.cells, fact.value == usual, target, str(usual), reason,
                group=f"element {layer.row.at}",
                holds_with=equal_with(SizeFact(usual), fact),
            )  # fmt: skip


def _batches(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """The batch is the same in every row; several that are no layers may be of other tensors.

    So is a layer beside one of these that has the same batch: of windows of a map, say.
    """
    given = [
        (layer.kind in OTHER_TENSORS, fact)
        for layer in layers
        if (fact := layer.printed.get("batch")) and fact.cells
    ]
    counts = Counter(fact.value for _, fact in given)
    usual = counts.most_common(1)[0][0] if counts else 1
    others = [fact.value if other and fact.value != usual else 0 for other, fact in given]
    if sum(map(bool, others)) < 2:
        others = [0] * len(given)
    beside = [{*others[max(at - 1, 0) : at + 2]} - {0} for at in range(len(given))]
    printed = [
        (fact, near)
        for (_, fact), near in zip(given, beside, strict=True)
        if fact.value not in near
    ]
    if len(printed) < SQUARES or counts[usual] * 10 < len(printed) * 9:
        return
    for fact, near in printed:
        if fact.value != usual:
            (target,) = fact.cells
            expected = "" if near else str(usual)
            yield Equation(fact.cells, False, target, expected, f"other rows have {usual}")


def _said_twice(layer: RowLayer) -> Iterator[Equation]:
    for name, fact in layer.said_again:
        first = layer.printed[name]
        if not fact.cells or not first.cells:
            continue
        (target,) = fact.cells
        reason = f"another cell of the row says {first.value}"
        yield Equation(
            first.cells | fact.cells, first.value == fact.value, target, str(first.value), reason,
            holds_with=equal_with(first, fact),
        )  # fmt: skip


def _depths(layer: RowLayer) -> Iterator[Equation]:
    """The depth of filters is the number of channels, or a part of them in groups."""
    depth, channels, holds = layer.printed.get("depth"), layer.sizes.get("cin"), fits_depth(layer)
    if depth is None or channels is None or holds is None or depth.cells == channels.cells:
        return
    (target,) = depth.cells
    yield Equation(
        depth.cells | channels.cells, holds, target, str(channels.value),
        f"the input has {channels.value} channels", holds_with=equal_with(channels, depth),
    )  # fmt: skip


def _matrix(layer: RowLayer) -> Iterator[Equation]:
    """The kernel of a fully connected layer as a matrix: inputs and outputs."""
    high, wide = layer.printed.get("kh"), layer.printed.get("kw")
    got, out = layer.get("cin", "hin", "win"), layer.sizes.get("cout")
    if high is None or wide is None or got is None or out is None or not (high.cells and out.cells):
        return
    inputs = SizeFact(got[0], layer.sizes["cin"].cells)
    if high.value == prod(got):
        inputs = SizeFact(prod(got), layer.cells("cin", "hin", "win"))
    pairs = (high, inputs), (wide, out)
    if high.cells == wide.cells or all(one.value != two.value for one, two in pairs):
        return  # a window
    for one, two in pairs:
        (target,) = one.cells
        reason = f"a matrix of {inputs.value} inputs and {out.value} outputs"
        yield Equation(
            one.cells | two.cells, one.value == two.value, target, str(two.value), reason,
            holds_with=equal_with(one, two),
        )  # fmt: skip


def _positions(layer: RowLayer) -> Iterator[Equation]:
    """A fully connected layer makes a vector of a vector."""
    given = [layer.printed.get(name) for name in ("hin", "win")]
    if any(fact is None or fact.value != 1 or not fact.cells for fact in given):
        return
    for fact, name in zip(given, ("hout", "wout"), strict=True):
        out = layer.printed.get(name)
        if fact is None or out is None or not out.cells:
            continue
        (target,) = out.cells
        yield Equation(
            fact.cells | out.cells, out.value == 1, target, "1",
            "a fully connected layer makes a vector of a vector", copied=True,
            group=f"positions {layer.row.at}", holds_with=equal_with(fact, out),
        )  # fmt: skip


def _joins(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """Additions and concatenations, where nearly all print their output as their input."""
    for kind in ("add", "concat"):
        found = [
            list(_unchanged(layer, "chw"))
            for layer in layers
            if layer.kind == kind and "cin" in layer.printed and "cout" in layer.printed
        ]
        odd = sum(not all(e.holds for e in each) for each in found)
        if len(found) > LEAST_JOINS and odd <= 1:
            yield from (e for each in found for e in each)


def _windows(layer: RowLayer, habit: Habit, habits: WindowHabits) -> Iterator[Equation]:
    for axis in "hw":
        out = layer.printed.get(f"{axis}out")
        if out is None or not out.cells:
            continue
        found = window_sizes(layer, axis, habit, habits)
        (target,) = out.cells
        if not found:
            yield from _impossible(layer, axis, target)
            continue
        size, kernel = layer.sizes[f"{axis}in"], layer.sizes[f"k{axis}"]
        stride = layer.sizes.get(f"s{axis}")
        step = stride.value if stride else kernel.value if layer.kind in POOLS else 1
        text = f"a kernel of {kernel.value} with stride {step} on {size.value} gives {found[0]}"
        cells = layer.cells(f"{axis}in", f"s{axis}", f"p{axis}") | out.cells
        weak = out.value not in found and _is_open(layer, axis)
        holds = out.value in found or (weak and out.value in sizes_left_open(layer, axis))
        if not holds or f"p{axis}" in layer.sizes or layer.kind in POOLS:
            cells |= kernel.cells  # else the padding was chosen to fit the kernel
        yield Equation(
            cells, holds, target, str(found[0]), text, copied=weak, group=f"window {layer.row.at}",
            holds_with=partial(_window_with, layer, axis, habit, habits),
        )  # fmt: skip


def _is_open(layer: RowLayer, axis: str) -> bool:
    """Whether a row leaves the stride or the padding of its window out."""
    return f"s{axis}" not in layer.sizes or f"p{axis}" not in layer.sizes


def _impossible(layer: RowLayer, axis: str, target: CellPart) -> Iterator[Equation]:
    """An output that no stride and padding of the kernel give."""
    got = layer.get(f"{axis}in", f"k{axis}", f"{axis}out")
    pooled = layer.get(f"{axis}in", f"{axis}out") if layer.kind in POOLS else None
    if pooled is not None and pooled[1] > pooled[0] + 1:
        reason = f"a pool of {pooled[0]} positions gives no {pooled[1]}"
    elif got is None or layer.kind in POOLS or got[2] in sizes_left_open(layer, axis):
        return
    else:
        reason = (
            f"a kernel of {got[1]} on {got[0]} gives no {got[2]} with usual strides and padding"
        )
    cells = layer.cells(f"{axis}in", f"k{axis}", f"s{axis}", f"p{axis}", f"{axis}out")
    yield Equation(cells, False, target, "", reason, group=f"window {layer.row.at}")


def _window_with(
    layer: RowLayer, axis: str, habit: Habit, habits: WindowHabits, part: CellPart, value: Fraction
) -> bool | None:
    changed = with_value(layer, part, int(value))
    if changed is None:
        return None
    found = window_sizes(changed, axis, habit, habits)
    out = changed.sizes[f"{axis}out"].value
    if out in found or not found:
        return True if found else None
    return _is_open(changed, axis) and out in sizes_left_open(changed, axis)


def _unchanged(layer: RowLayer, axes: str) -> Iterator[Equation]:
    shape, flat = layer.get("cin", "hin", "win"), layer.get("cout", "hout", "wout")
    reshaped = (
        shape is not None and flat is not None and shape != flat and prod(shape) == prod(flat)
    )
    pooled = shape is not None and _is_pooled(layer, shape)
    if reshaped or pooled or _is_turned(layer):
        return  # by what has no row
    for axis in axes:
        out, size = layer.printed.get(f"{axis}out"), layer.sizes.get(f"{axis}in")
        if out is None or size is None or not out.cells or out.cells == size.cells:
            continue
        (target,) = out.cells
        reason = f"{_named(layer)} keeps the {size.value} of its input"
        yield Equation(
            out.cells | size.cells, out.value == size.value, target, str(size.value), reason,
            group=f"keeps {layer.row.at}", holds_with=equal_with(size, out),
        )  # fmt: skip


def _named(layer: RowLayer) -> str:
    """The kind of a layer with its article."""
    word = layer.kind.replace("_", " ")
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _is_turned(layer: RowLayer) -> bool:
    """Whether maps became a sequence, or the other way round, by what has no row."""
    facts = [each.printed.get("axes") for each in (layer, layer.before) if each is not None]
    ranks = {fact.value for fact in facts if fact is not None}
    return len(ranks) == 2 and min(ranks) > 1


def _is_pooled(layer: RowLayer, shape: tuple[int, ...]) -> bool:
    """Whether the output is one number per channel, and its cell has no spatial axes."""
    out = layer.printed.get("hout")
    if layer.get("cout", "hout", "wout") != (shape[0], 1, 1) or out is None or not out.cells:
        return False
    (row, column, _), *_ = out.cells
    rank = 2 if "batch" in layer.printed else 1
    return row == layer.row.at and len(axes(layer.row.cells[column].text)) == rank


def _flattened(layer: RowLayer) -> Iterator[Equation]:
    got, out = layer.get("cin", "hin", "win"), layer.printed.get("cout")
    if got is None or out is None or not out.cells or layer.get("hout", "wout") != (1, 1):
        return
    (target,) = out.cells
    reason = f"{got[0]} x {got[1]} x {got[2]} elements"
    cells = layer.cells("cin", "hin", "win") | out.cells
    yield Equation(cells, prod(got) == out.value, target, str(prod(got)), reason)
