"""Equations between the input that a row prints and the outputs of the rows above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod

from layerscope.auditing.equations import Equation
from layerscope.sheets.kinds import POOLS, SAME_SHAPE
from layerscope.sheets.open_ends import Tensors
from layerscope.sheets.rules import WEIGHTS
from layerscope.sheets.sheet import WHOLE
from layerscope.sheets.structure import CellPart, RowLayer, SizeFact, given_sizes

CONFIRMED = 100  # parameters from which on it is no chance that they are those of some channels
GROUPED = 3  # convolutions in groups from which on they are a habit of the network


def chain_equations(layers: Sequence[RowLayer]) -> Iterator[Equation]:
    """The equations of all rows that print an input."""
    tensors = Tensors()
    rows: dict[tuple[int, ...], RowLayer] = {}  # the last row with an output
    grouped = sum(map(_is_grouped, layers)) >= GROUPED
    for layer in layers:
        if layer.before is not None:
            tensors.take(layer.get("cin", "hin", "win"), layer.before.get("cout", "hout", "wout"))
            yield from _chain(layer, tensors.seen, rows, grouped=grouped)
        tensors.add(layer.get("cout", "hout", "wout"))
        rows[layer.get("cout", "hout", "wout") or ()] = layer


def _chain(
    layer: RowLayer,
    outputs: set[tuple[int, ...]],
    rows: Mapping[tuple[int, ...], RowLayer],
    *,
    grouped: bool,
) -> Iterator[Equation]:
    """A printed input is the output of the row above, or of an earlier one, or of a group of it."""
    before = layer.before
    printed = {axis: layer.printed[f"{axis}in"] for axis in "chw" if f"{axis}in" in layer.printed}
    if before is None or not printed or layer.kind in ("concat", "add", "embedding"):
        return
    shape, taken = layer.get("cin", "hin", "win"), dict(given_sizes(layer, before))
    above = [given.value for given in taken.values() if given is not None]
    free = _is_output(layer, outputs) or _is_flat(layer, before) or _are_apart(layer, before)
    near: list[tuple[int, ...]] = []
    if shape is not None and len(above) == len(shape) and not free:
        near = [o for o in outputs if _differences(shape, o) == 1]
        if near and _differences(shape, above) > 1:
            yield from _off_by_one_axis(printed, shape, near)
            return
    for axis, given in taken.items():
        fact = printed.get(axis)
        if fact is None or given is None or not given.cells:
            continue
        holds = given.value == fact.value or (axis == "c" and _takes_part(layer, given, grouped))
        if holds or not free:
            (target,) = fact.cells
            reason = f"the row above gives {given.value}"
            others = [rows[o].sizes[f"{axis}out"] for o in near if o in rows and not holds]
            yield Equation(
                given.cells.union(fact.cells, *(other.cells for other in others)), holds, target,
                str(given.value), reason, copied=True, holds_with=_either(given, fact, others),
            )  # fmt: skip


def _is_output(layer: RowLayer, outputs: set[tuple[int, ...]]) -> bool:
    """Whether an earlier row has the input of a row that may take it.

    A row that says what it takes does not, but for convolutions of a part of the channels.
    """
    return layer.get("cin", "hin", "win") in outputs and (
        not layer.connected or layer.kind == "conv"
    )


def _are_apart(layer: RowLayer, before: RowLayer) -> bool:
    """Whether a row between two others is left out: each is right by its own parameters."""
    return _is_confirmed(layer) and _is_confirmed(_weighted(before))


def _weighted(layer: RowLayer | None) -> RowLayer | None:
    """The last layer with parameters whose channels reach a row."""
    while layer is not None and layer.kind in (*SAME_SHAPE, *POOLS, "global_pool", "flatten"):
        layer = layer.before
    return layer


def _is_confirmed(layer: RowLayer | None) -> bool:
    """Whether the exact parameters of a row are those of its channels."""
    if layer is None or layer.kind not in ("conv", "fc", "deconv"):
        return False
    given = [c for c in layer.row.claims if c.figure and c.meaning in ("params", "weights")]
    counts = [rule.count(layer) for rule in WEIGHTS[layer.kind]]
    return any(
        c.figure is not None and not c.figure.power and c.figure.value() >= CONFIRMED
        and c.figure.value() * c.heading.scale in counts
        for c in given
    )  # fmt: skip


def _is_flat(layer: RowLayer, before: RowLayer) -> bool:
    """Whether an input has the elements of the output above in another shape, or their means."""
    shape, above = layer.get("cin", "hin", "win"), before.get("cout", "hout", "wout")
    if shape is None or above is None:
        return False
    same = (1, 1) in (shape[1:], above[1:]) and prod(shape) == prod(above)
    return same or _is_averaged(layer, before)


def _either(
    given: SizeFact, fact: SizeFact, others: Sequence[SizeFact]
) -> Callable[[CellPart, Fraction], bool | None]:
    """Whether an input is the output above, or that of another row, if a part had another value."""

    def holds(part: CellPart, value: Fraction) -> bool | None:
        if part not in given.cells | fact.cells and any(
            _is_said_by(other, part) for other in others
        ):
            return value == fact.value
        if _is_said_by(fact, part) and any(value == other.value for other in others):
            return True
        return equal_with(given, fact)(part, value)

    return holds


def _takes_part(layer: RowLayer, given: SizeFact, grouped: bool) -> bool:
    """Whether filters have the depth of a part of the channels above."""
    return _is_depthwise(layer, given.value) or (grouped and _is_grouped(layer))


def _is_depthwise(layer: RowLayer, channels: int) -> bool:
    """Whether filters of depth 1 take each channel of the input apart."""
    got = layer.get("cin", "cout")
    if layer.kind != "conv" or got is None or not channels:
        return False
    return got[0] == 1 and got[1] % channels == 0


def _is_grouped(layer: RowLayer) -> bool:
    """Whether windows have the depth of one of several groups of the channels above."""
    got, before = layer.get("cin", "cout", "kh"), layer.before
    above = before.get("cout") if before is not None else None
    if layer.kind != "conv" or got is None or above is None or not got[0] or got[2] == 1:
        return False
    groups, rest = divmod(above[0], got[0])
    return groups > 1 and not rest and got[1] % groups == 0


def _differences(one: Sequence[int], two: Sequence[int]) -> int:
    return sum(a != b for a, b in zip(one, two, strict=True))


def _off_by_one_axis(
    printed: Mapping[str, SizeFact], shape: tuple[int, ...], near: Sequence[tuple[int, ...]]
) -> Iterator[Equation]:
    """An input that is that of an earlier row but for one axis."""
    for axis, size in zip("chw", shape, strict=True):
        others = {each["chw".index(axis)] for each in near} - {size}
        fact = printed.get(axis)
        if not others or fact is None or len(fact.cells) != 1:
            continue
        (target,) = fact.cells
        expected = str(*others) if len(others) == 1 else ""
        reason = f"no row above gives {size}"
        yield Equation(fact.cells, False, target, expected, reason, copied=True)
        return


def _is_averaged(layer: RowLayer, before: RowLayer) -> bool:
    """Whether a vector has the channels of a map: its mean, which a forward takes without a row."""
    shape, above = layer.get("cin", "hin", "win"), before.get("cout", "hout", "wout")
    if shape is None or above is None or layer.kind not in ("fc", "dropout"):
        return False
    return shape == (above[0], 1, 1) and before.kind not in (*POOLS, "global_pool", "flatten")


def equal_with(one: SizeFact, two: SizeFact) -> Callable[[CellPart, Fraction], bool | None]:
    """Whether two sizes are equal if a part of a cell had another value."""

    def holds(part: CellPart, value: Fraction) -> bool | None:
        sizes = [
            value if _is_said_by(fact, part) else fact.value if part not in fact.cells else None
            for fact in (one, two)
        ]
        return None if None in sizes else sizes[0] == sizes[1]

    return holds


def _is_said_by(fact: SizeFact, part: CellPart) -> bool:
    same = (c == part or (part[2] == WHOLE and c[:2] == part[:2]) for c in fact.cells)
    return bool(fact.cells) and all(same)
