"""Equations of receptive fields: size, jump and offset of a row follow from the row above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

from msgspec import Struct

from layerscope.auditing.equations import Equation
from layerscope.documents.headings import Meaning
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import CellPart, Cells, RowLayer
from layerscope.sheets.windows import span_of

Columns = Mapping[tuple[Meaning, str], Sequence[Claim]]


class _Field(Struct, frozen=True):
    """What a table prints of the receptive fields, by row."""

    size: dict[int, Claim]
    jump: dict[int, Claim]
    offset: dict[int, Claim]


def field_equations(columns: Columns, layers: Sequence[RowLayer]) -> list[Equation]:
    """The equations row by row: of each layer's output, or of its input if that explains more."""
    field = _Field(*(_by_row(columns, name) for name in ("field", "jump", "offset")))
    outputs: list[Equation] = []
    inputs: list[Equation] = []
    for number, layer in enumerate(layers):
        if layer.kind in ("concat", "add", "input") or (number and layer.before is None):
            continue  # of several rows, or of one that is left open
        outputs += _of_row(layer, field, layer)
        before = layer.before
        if before is not None:
            inputs += _of_row(layer, field, before)
        elif (first := _starts(layer, field)) is not None:
            inputs.append(first)
    return inputs if _right(inputs) > _right(outputs) + 1 else outputs


def _right(equations: Sequence[Equation]) -> int:
    return sum(equation.holds for equation in equations)


def _starts(layer: RowLayer, field: _Field) -> Equation | None:
    """The field of the network's input is one element."""
    claim = field.size.get(layer.row.at)
    if claim is None or claim.figure is None:
        return None
    holds, cell_part = claim.figure.value() == 1, claim.cell_part
    reason = "the input itself: rows have the field of their input"
    return Equation(frozenset({cell_part}), holds, cell_part, "1", reason)


def _of_row(layer: RowLayer, field: _Field, windowed: RowLayer) -> Iterator[Equation]:
    """The equations of one row, by the window of that row or of the one above."""
    jump, of_jump = _above(layer, field.jump, 1)
    size, of_size = _above(layer, field.size, 1)
    offset, of_offset = _above(layer, field.offset, 1)
    kernel = windowed.sizes.get("kh")
    stride, pad = windowed.sizes.get("sh"), windowed.sizes.get("ph")
    if kernel is not None and size is not None and jump is not None:
        span, of_span = span_of(windowed, "h") - 1, kernel.cells | windowed.cells("dh")
        reason = f"{size} + ({span + 1} - 1) x {jump}"
        cells = of_span | of_size | of_jump
        yield from _equation(field.size, layer, cells, size + span * jump, reason)
    if stride is not None and jump is not None:
        reason = f"{jump} x stride {stride.value}"
        yield from _equation(field.jump, layer, stride.cells | of_jump, jump * stride.value, reason)
    if kernel and pad and offset is not None and jump is not None:
        number = offset + (Fraction(kernel.value - 1, 2) - pad.value) * jump
        reason = f"{offset} + (({kernel.value} - 1) / 2 - {pad.value}) x {jump}"
        cells = kernel.cells | pad.cells | of_offset | of_jump
        yield from _equation(field.offset, layer, cells, number, reason)


def _equation(
    column: dict[int, Claim], layer: RowLayer, cells: Cells, number: Fraction, reason: str
) -> Iterator[Equation]:
    claim = column.get(layer.row.at)
    if claim is not None and claim.figure is not None:
        text = str(number) if number.denominator == 1 else str(float(number))
        holds = claim.figure.value() == number
        yield Equation(
            cells | {claim.cell_part}, holds, claim.cell_part, text, reason, number,
            holds_with=partial(_is_right, claim.cell_part, number),
        )  # fmt: skip


def _is_right(own: CellPart, number: Fraction, part: CellPart, value: Fraction) -> bool | None:
    """Whether a value is the one that follows; only that of the cell itself is known."""
    return value == number if part == own else None


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
