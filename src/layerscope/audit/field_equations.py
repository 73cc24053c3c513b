"""Equations of receptive fields: a row's field and jump follow from the row above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layerscope.audit.equations import Equation
from layerscope.audit.sheet import Claim
from layerscope.audit.structure import Layer
from layerscope.documents.headings import Meaning


def field_equations(
    columns: Mapping[tuple[Meaning, str], Sequence[Claim]], layers: Sequence[Layer]
) -> Iterator[Equation]:
    """The equations of fields and jumps, row by row from the printed figures of the row above."""
    fields = _by_row(columns, "field")
    jumps = _by_row(columns, "jump")
    if not fields and not jumps:
        return
    for number, layer in enumerate(layers):
        before = layer.before
        if layer.kind in ("concat", "add") or (number and before is None):
            continue  # of several rows, or of one that is not known
        window = layer.get("kh", "sh") or ((layer.get("kh") or (1,))[0], 1)
        cells = layer.cells("kh", "sh")
        jump = _value(jumps, before.row.at if before else None, 1 if before is None else None)
        field = _value(fields, before.row.at if before else None, 1 if before is None else None)
        claim = fields.get(layer.row.at)
        if claim and claim.figure and field is not None and jump is not None and _has_window(layer):
            number = field + (window[0] - 1) * jump
            used = {c.place for c in _claims(before, fields, jumps)}
            reason = f"{field} + ({window[0]} - 1) x {jump}"
            yield Equation(
                cells | used | {claim.place},
                claim.figure.value() == number,
                claim.place,
                str(number),
                reason,
            )
        claim = jumps.get(layer.row.at)
        if claim and claim.figure and jump is not None and _has_window(layer):
            number = jump * window[1]
            used = {c.place for c in _claims(before, jumps)}
            reason = f"{jump} x stride {window[1]}"
            yield Equation(
                cells | used | {claim.place},
                claim.figure.value() == number,
                claim.place,
                str(number),
                reason,
            )


def _has_window(layer: Layer) -> bool:
    return "kh" in layer.sizes


def _by_row(
    columns: Mapping[tuple[Meaning, str], Sequence[Claim]], meaning: Meaning
) -> dict[int, Claim]:
    return {c.row: c for (m, _), claims in columns.items() if m == meaning for c in claims}


def _value(claims: Mapping[int, Claim], row: int | None, default: int | None) -> int | None:
    claim = claims.get(row) if row is not None else None
    if claim is None or claim.figure is None or claim.figure.value().denominator != 1:
        return default
    return int(claim.figure.value())


def _claims(before: Layer | None, *columns: Mapping[int, Claim]) -> list[Claim]:
    return [
        column[before.row.at]
        for column in columns
        if before is not None and before.row.at in column
    ]
