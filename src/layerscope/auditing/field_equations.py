"""Equations of receptive fields: size, jump and offset of a row follow from the row above."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.auditing.equations import Equation
from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import SAME_SHAPE
from layerscope.sheets.sheet import WHOLE, Claim
from layerscope.sheets.structure import CellPart, Cells, RowLayer
from layerscope.sheets.windows import span_of

JUMP_BITS = 64
Columns = Mapping[tuple[Meaning, str], Sequence[Claim]]


class _FieldColumns(Struct, frozen=True):
    """What a table prints of the receptive fields, by row."""

    size: dict[int, Claim]
    jump: dict[int, Claim]
    offset: dict[int, Claim]
    strides: dict[int, int | None]  # jump before each row, from the strides above it


def field_equations(columns: Columns, layers: Sequence[RowLayer]) -> list[Equation]:
    """The equations row by row: of each layer's output, or of its input if that explains more."""
    size, jump, offset = (_by_row(columns, name) for name in ("field", "jump", "offset"))
    if not (size or jump or offset):
        return []
    field = _FieldColumns(size, jump, offset, _strides(layers))
    by_row: dict[int, list[Equation]] = {}  # of the outputs of rows
    inputs: list[Equation] = []
    for number, layer in enumerate(layers):
        if layer.kind in ("concat", "add", "input") or (number and layer.before is None):
            continue  # of several rows, or of one that is left open
        by_row[layer.row.at] = list(_of_row(layer, field, layer))
        before = layer.before
        if before is not None:
            inputs += _of_row(layer, field, before)
        elif (first := _starts(layer, field)) is not None:
            inputs.append(first)
    outputs = list(_without_other_windows(by_row, layers))
    return inputs if _right(inputs) > _right(outputs) + 1 else outputs


def _without_other_windows(
    by_row: Mapping[int, Sequence[Equation]], layers: Sequence[RowLayer]
) -> Iterator[Equation]:
    """All equations but those of rows like `mean`, whose window is not the one that is printed.

    The rows below follow from such a row; they do not follow from a wrong figure.
    """
    below: dict[int, list[Equation]] = {}
    for layer in layers:
        if layer.before is not None:
            below.setdefault(layer.before.row.at, []).extend(by_row.get(layer.row.at, ()))
    kinds = {layer.row.at: layer.kind for layer in layers}
    for row, equations in by_row.items():
        following = below.get(row)
        is_other = kinds[row] == "unknown" and following and all(e.holds for e in following)
        yield from (e for e in equations if e.holds or not is_other)


def _right(equations: Sequence[Equation]) -> int:
    return sum(equation.holds for equation in equations)


def _starts(layer: RowLayer, field: _FieldColumns) -> Equation | None:
    """The field of the network's input is one element."""
    claim = field.size.get(layer.row.at)
    if claim is None or claim.figure is None:
        return None
    holds, cell_part = claim.figure.value() == 1, claim.cell_part
    reason = "the input itself: rows have the field of their input"
    return Equation(frozenset({cell_part}), holds, cell_part, "1", reason)


def _of_row(layer: RowLayer, field: _FieldColumns, windowed: RowLayer) -> Iterator[Equation]:
    """The equations of one row, by the window of that row or of the one above."""
    jump, of_jump = _above(layer, field.jump, 1) if field.jump else _stepped_to(layer, field)
    size, of_size = _above(layer, field.size, 1)
    offset, of_offset = _above(layer, field.offset, 1)
    kernel = windowed.sizes.get("kh")
    stride, pad = windowed.sizes.get("sh"), windowed.sizes.get("ph")
    if kernel is not None and size is not None and jump is not None:
        span, of_span = span_of(windowed, "h") - 1, kernel.cells | windowed.cells("dh")
        reason = f"{size} + ({span + 1} - 1) x {jump}"
        terms = _Terms((of_size, of_jump, of_span), (size, jump, span + 1), _sized)
        yield from _equation(field.size, layer, terms, reason)
    if stride is not None and jump is not None and field.jump:
        reason = f"{jump} x stride {stride.value}"
        terms = _Terms((of_jump, stride.cells), (jump, stride.value), _stepped)
        yield from _equation(field.jump, layer, terms, reason)
    if kernel and pad and offset is not None and jump is not None:
        reason = f"{offset} + (({kernel.value} - 1) / 2 - {pad.value}) x {jump}"
        terms = _Terms(
            (of_offset, of_jump, kernel.cells, pad.cells),
            (offset, jump, kernel.value, pad.value), _moved,
        )  # fmt: skip
        yield from _equation(field.offset, layer, terms, reason)


def _sized(size: Fraction, jump: Fraction, kernel: Fraction) -> Fraction:
    return size + (kernel - 1) * jump


def _stepped(jump: Fraction, stride: Fraction) -> Fraction:
    return jump * stride


def _moved(offset: Fraction, jump: Fraction, kernel: Fraction, pad: Fraction) -> Fraction:
    return offset + ((kernel - 1) / 2 - pad) * jump


class _Terms(Struct, frozen=True):
    """What a figure follows from: the cells of each term, its value, and how they give it."""

    cells: tuple[Cells, ...]
    values: tuple[Fraction | int, ...]
    give: Callable[..., Fraction]

    def number(self) -> Fraction:
        """The figure that follows."""
        return self.give(*map(Fraction, self.values))

    def with_value(self, part: CellPart, value: Fraction) -> Fraction | None:
        """The figure that follows from another value in a cell; None if no term is that cell."""
        values = [
            value if cells and all(_is_same(cell, part) for cell in cells) else Fraction(now)
            for cells, now in zip(self.cells, self.values, strict=True)
        ]
        return self.give(*values) if values != list(map(Fraction, self.values)) else None


def _is_same(cell: CellPart, part: CellPart) -> bool:
    return cell == part or (part[2] == WHOLE and cell[:2] == part[:2])


def _strides(layers: Sequence[RowLayer]) -> dict[int, int | None]:
    """The jump before each layer, from the strides of all rows that lead to it."""
    found: dict[int, int | None] = {}
    for layer in layers:
        before = layer.before
        if before is None or before.kind == "input":
            found[layer.row.at] = 1
            continue
        jump, stride = found.get(before.row.at), before.sizes.get("sh")
        if jump is not None and stride is not None:
            jump *= stride.value
            jump = jump if jump.bit_length() <= JUMP_BITS else None
        elif before.kind not in SAME_SHAPE and "kh" in before.sizes:
            jump = None
        found[layer.row.at] = jump
    return found


def _stepped_to(layer: RowLayer, field: _FieldColumns) -> tuple[Fraction | None, Cells]:
    """The jump before a layer by strides alone.

    Where it is not printed, a wrong field is likelier than a stride that all rows below use.
    """
    jump = field.strides.get(layer.row.at)
    return (None if jump is None else Fraction(jump)), frozenset()


def _equation(
    column: dict[int, Claim], layer: RowLayer, terms: _Terms, reason: str
) -> Iterator[Equation]:
    claim = column.get(layer.row.at)
    if claim is None or claim.figure is None:
        return
    number, own, now = terms.number(), claim.cell_part, claim.figure.value()

    def holds_with(part: CellPart, value: Fraction) -> bool | None:
        if part == own:
            return value == number
        other = terms.with_value(part, value)
        return None if other is None else other == now

    text = str(number) if number.denominator == 1 else str(float(number))
    cells = frozenset({own}).union(*terms.cells)
    yield Equation(
        cells, now == number, own, text, reason, number, follows=True, holds_with=holds_with
    )


def _by_row(columns: Columns, meaning: Meaning) -> dict[int, Claim]:
    return {c.row: c for (m, _), claims in columns.items() if m == meaning for c in claims}


def _above(layer: RowLayer, column: dict[int, Claim], first: int) -> tuple[Fraction | None, Cells]:
    """A figure of the row above and its cell; `first` before the first layer."""
    before = layer.before
    claim = column.get(before.row.at) if before is not None else None
    if claim is not None and claim.figure is not None:
        return claim.figure.value(), frozenset({claim.cell_part})
    is_first = before is None or before.kind == "input"
    return (Fraction(first) if is_first and column else None), frozenset()
