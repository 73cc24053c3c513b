"""Equations of receptive fields: size, jump and offset of a row follow from the row above."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.equations import Equation
from layerscope.documents.figures import Figure
from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import POOLS, SAME_SHAPE, is_composite
from layerscope.sheets.shapes import steps
from layerscope.sheets.sheet import WHOLE, Claim
from layerscope.sheets.structure import CellPart, Cells, RowLayer, SizeFact, with_value
from layerscope.sheets.windows import span_of

JUMP_BITS = 64
KERNELS = 64  # of pools that print none are smaller
JOINS = ("concat", "add")
OTHER_WINDOWS = ("unknown", "flatten", "embedding")
ROUNDED = 1000  # parts of a figure with an exponent
SHOWN = 3  # joins from which on a rule for them is believed
Columns = Mapping[tuple[Meaning, str], Sequence[Claim]]


class _FieldColumns(Struct, frozen=True):
    """What a table prints of the receptive fields, by row."""

    size: dict[int, Claim]
    jump: dict[int, Claim]
    offset: dict[int, Claim]
    strides: dict[int, int | None]  # jump before each row, from the strides above it
    whole: int | None  # size of the network's input, beyond which a field need not grow
    phases: dict[int, Fraction]  # rows below an upsampling, and the largest jump above them
    shifted: bool = False  # rows have the jump of their input

    def of(self, row: int) -> tuple[Fraction, Fraction | None] | None:
        """Size and jump of a row."""
        size, jump = (_value(column.get(row)) for column in (self.size, self.jump))
        return None if size is None else (size, jump)


def field_equations(columns: Columns, layers: Sequence[RowLayer]) -> list[Equation]:
    """The equations row by row: of each layer's output, or of its input if that explains more."""
    size, jump, offset = (_by_row(columns, name) for name in ("field", "jump", "offset"))
    before = _by_row(columns, "jump_in")
    if not (size or jump or offset or before):
        return []
    field = _FieldColumns(size, jump or before, offset, _strides(layers), _whole(layers), {})
    field.phases.update(_phases(layers, field))
    if before and not jump:
        return _of_outputs(replace(field, shifted=True), layers)
    found = _usual(field, layers)
    if not jump:
        return found
    if before:
        return [*found, *(e for e in _repeated(before, jump, layers))]
    shifted = _of_outputs(replace(field, shifted=True), layers)
    return shifted if _right(shifted) > _right(found) + 1 else found


def _usual(field: _FieldColumns, layers: Sequence[RowLayer]) -> list[Equation]:
    """Rows have the field of their output, or of their input if that explains more."""
    outputs = _of_outputs(field, layers)
    inputs: list[Equation] = []
    for number, layer in enumerate(layers):
        if layer.kind in (*JOINS, "input") or (number and layer.before is None):
            continue
        if layer.before is not None:
            inputs += _of_row(layer, field, layer.before)
        elif (first := _starts(layer, field)) is not None:
            inputs.append(first)
    return inputs if _right(inputs) > _right(outputs) + 1 else outputs


def _repeated(
    before: dict[int, Claim], jump: dict[int, Claim], layers: Sequence[RowLayer]
) -> Iterator[Equation]:
    """The jump into a row is that out of the row above."""
    for layer in layers:
        own, above = before.get(layer.row.at), layer.before
        value = _value(jump.get(above.row.at)) if above is not None else None
        if own is None or own.figure is None or value is None or above is None:
            continue
        cells = frozenset({own.cell_part, jump[above.row.at].cell_part})
        yield Equation(
            cells, own.figure.stands_for(value), own.cell_part, str(value),
            f"the row above steps by {value}", value, copied=True,
        )  # fmt: skip


def _of_outputs(field: _FieldColumns, layers: Sequence[RowLayer]) -> list[Equation]:
    """The equations of the outputs of all rows."""
    by_row: dict[int, list[Equation]] = {}
    for number, layer in enumerate(layers):
        if layer.kind not in (*JOINS, "input") and (not number or layer.before is not None):
            by_row[layer.row.at] = list(_of_row(layer, field, layer))
    found = _without_other_windows(by_row, layers, field)
    return [*found, *_joins(layers, field.size), *_joins(layers, field.jump)]


def _whole(layers: Sequence[RowLayer]) -> int | None:
    """The height of the network's input."""
    inputs = [layer.get("hout") for layer in layers if layer.kind == "input"]
    return next((size[0] for size in inputs if size), None)


def _phases(layers: Sequence[RowLayer], field: _FieldColumns) -> Iterator[tuple[int, Fraction]]:
    """Rows from an upsampling on, where fields have several sizes, and the largest jumps."""
    largest, is_below = Fraction(1), False
    for layer in layers:
        jump = _value(field.jump.get(layer.row.at)) or Fraction(field.strides[layer.row.at] or 1)
        largest = max(largest, jump)
        is_below = is_below or layer.kind in ("deconv", "upsample")
        if is_below:
            yield layer.row.at, largest


def _without_other_windows(
    by_row: Mapping[int, Sequence[Equation]], layers: Sequence[RowLayer], field: _FieldColumns
) -> Iterator[Equation]:
    """All equations but those of rows whose window is not the one that is printed.

    `mean` takes the whole input, a constant none of it; `crop` and `mul` have the field of another
    branch than that of the row above.
    """
    seen: set[tuple[Fraction, Fraction | None]] = {(Fraction(1), Fraction(1))}
    for layer in layers:
        own = field.of(layer.row.at)
        equations = by_row.get(layer.row.at, ())
        if layer.kind in OTHER_WINDOWS and own is not None:
            covers = field.whole is not None and own[0] >= field.whole
            if covers or own in seen or is_composite(layer.row.named):
                equations = [e for e in equations if e.holds]
        yield from equations
        if own is not None:
            seen.add(own)


def _joins(layers: Sequence[RowLayer], column: Mapping[int, Claim]) -> Iterator[Equation]:
    """Branches that are joined have a field of one of them, if that is so in nearly all rows."""
    seen: dict[Fraction, CellPart] = {}
    found: list[Equation] = []
    for layer in layers:
        claim = column.get(layer.row.at)
        if claim is None or claim.figure is None:
            continue
        size, own = claim.figure.value(), claim.cell_part
        if layer.kind in JOINS and seen:
            near = min(seen, key=lambda other: abs(other - size))
            right = size in seen
            cells = frozenset({own, seen[near]} if right else {own})
            found.append(
                Equation(
                    cells, right, own, str(size) if right else "", "no row above has this field",
                    size if right else None, copied=True,
                    holds_with=partial(_is_seen, own, frozenset(seen)),
                )
            )  # fmt: skip
        seen.pop(size, None)
        seen[size] = own
    wrong = len(found) - _right(found)
    if len(found) >= SHOWN and (wrong < 2 or wrong * 10 <= len(found)):
        yield from found


def _is_seen(
    own: CellPart, seen: frozenset[Fraction], part: CellPart, value: Fraction
) -> bool | None:
    return value in seen if part == own else None


def _value(claim: Claim | None) -> Fraction | None:
    return None if claim is None or claim.figure is None else claim.figure.value()


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
    jump, of_jump = _jump_into(layer, field)
    size, of_size = _above(layer, field.size, 1)
    offset, of_offset = _above(layer, field.offset, 1)
    covered = size is not None and field.whole is not None and size >= field.whole
    kernel, stride, pad = _window(windowed)
    pool: _Pool | None = None
    if kernel is None and windowed.kind in POOLS:
        own = tuple(_value(column.get(layer.row.at)) for column in (field.size, field.offset))
        pool = _Pool(windowed, own, ((size, of_size), (jump, of_jump), (offset, of_offset)))
        kernel = pool.kernel(windowed, (size, jump, offset))
    if kernel is not None and size is not None and jump is not None:
        span = span_of(windowed, "h") - 1 if "kh" in windowed.sizes else kernel.value - 1
        of_span = kernel.cells | windowed.cells("dh")
        reason = f"{size} + ({span + 1} - 1) x {jump}"
        again = pool.size if pool else None
        terms = _Terms((of_size, of_jump, of_span), (size, jump, span + 1), _sized, again)
        full = _Terms((of_size,), (size,), _kept, again) if covered else None
        largest = field.phases.get(layer.row.at)
        if not (largest and span and _is_between(field, layer, size, size + span * largest)):
            yield from _equation(field.size, layer, terms, reason, full)
    if field.shifted:
        yield from _shifted(layer, field)
    elif stride is not None and jump is not None and field.jump:
        reason = f"{jump} x stride {stride.value}"
        terms = _Terms((of_jump, stride.cells), (jump, stride.value), _stepped)
        yield from _equation(field.jump, layer, terms, reason)
    if kernel and pad and offset is not None and jump is not None and layer.kind != "deconv":
        reason = f"{offset} + (({kernel.value} - 1) / 2 - {pad.value}) x {jump}"
        again = pool.offset if pool else None
        terms = _Terms(
            (of_offset, of_jump, kernel.cells, pad.cells),
            (offset, jump, kernel.value, pad.value), _moved, again,
        )  # fmt: skip
        full = _Terms((of_offset,), (offset,), _kept, again) if covered else None
        yield from _equation(field.offset, layer, terms, reason, full)


def _jump_into(layer: RowLayer, field: _FieldColumns) -> tuple[Fraction | None, Cells]:
    """The jump of the input of a row, and the cells that say it."""
    if not field.jump:
        return _stepped_to(layer, field)
    if not field.shifted:
        return _above(layer, field.jump, 1)
    own = field.jump.get(layer.row.at)
    return _value(own), frozenset() if own is None else frozenset({own.cell_part})


def _shifted(layer: RowLayer, field: _FieldColumns) -> Iterator[Equation]:
    """The jump into a row follows from the jump into the row above and its stride."""
    before = layer.before
    stride = _window(before)[1] if before is not None and before.kind != "input" else SizeFact(1)
    jump, of_jump = _above(layer, field.jump, 1)
    if stride is None or jump is None:
        return
    reason = f"{jump} x stride {stride.value} of the row above"
    terms = _Terms((of_jump, stride.cells), (jump, stride.value), _stepped)
    yield from _equation(field.jump, layer, terms, reason)


def _window(layer: RowLayer) -> tuple[SizeFact | None, SizeFact | None, SizeFact | None]:
    """Kernel, stride and padding; of a layer that keeps its shape, those of one element."""
    found = (layer.sizes.get("kh"), layer.sizes.get("sh"), layer.sizes.get("ph"))
    if layer.kind in SAME_SHAPE and found == (None, None, None):
        return SizeFact(1), SizeFact(1), SizeFact(0)
    return found


Above = tuple[Fraction | None, Fraction | None, Fraction | None]  # size, jump and offset


class _Pool(Struct, frozen=True):
    """A pool that prints no kernel: its own size and offset, and those of the row above."""

    layer: RowLayer
    own: tuple[Fraction | None, ...]
    above: tuple[tuple[Fraction | None, Cells], ...]  # size, jump and offset with their cells

    def kernel(self, layer: RowLayer, above: Above) -> SizeFact | None:
        """Of the kernels that give its output, the one by its field."""
        size, jump, offset = above
        return _kernel_of_pool(layer, self.own, (size, offset), jump)

    def size(self, part: CellPart, value: Fraction) -> Fraction | None:
        """The field that follows from another value in a cell."""
        found = self._with_value(part, value)
        return None if found is None else _sized(found[0], found[1], found[3])

    def offset(self, part: CellPart, value: Fraction) -> Fraction | None:
        """The offset that follows from another value in a cell."""
        found = self._with_value(part, value)
        return None if found is None else _moved(found[2], found[1], found[3], found[4])

    def _with_value(self, part: CellPart, value: Fraction) -> tuple[Fraction, ...] | None:
        """Size, jump and offset above, kernel and padding; None if no term is that cell."""
        changed = with_value(self.layer, part, int(value))
        size, jump, offset = (
            value if cells and all(_is_same(cell, part) for cell in cells) else now
            for now, cells in self.above
        )
        if changed is None and (size, jump, offset) == tuple(now for now, _ in self.above):
            return None
        layer = changed or self.layer
        kernel, pad = self.kernel(layer, (size, jump, offset)), layer.sizes.get("ph")
        if None in (size, jump, offset) or kernel is None or pad is None:
            return None
        return tuple(Fraction(n or 0) for n in (size, jump, offset, kernel.value, pad.value))


def _kernel_of_pool(
    layer: RowLayer,
    own: Sequence[Fraction | None],
    above: Sequence[Fraction | None],
    jump: Fraction | None,
) -> SizeFact | None:
    """The kernel of a pool that prints none: of those that give its output, by its field."""
    axes = [layer.get(f"{axis}in", f"{axis}out", "sh", "ph") for axis in "hw"]
    given = [got for got in axes if got is not None]
    if not given or None in (own[0], above[0]) or not jump:
        return None
    right = {
        kernel for kernel in range(1, KERNELS) for before, after, stride, pad in given
        if after in steps(before + 2 * pad - kernel, stride)
    }  # fmt: skip
    stride, pad = given[0][2:]

    def rank(kernel: int) -> tuple[bool, ...]:
        steps_on = (Fraction(kernel - 1), Fraction(kernel - 1, 2) - pad)
        grows, moves = (
            now is not None and before is not None and now == before + step * jump
            for now, before, step in zip(own, above, steps_on, strict=True)
        )
        return not (grows and moves), not (grows or moves), kernel != stride, kernel != stride + 1

    cells = layer.cells("sh", "ph", "hout")
    return SizeFact(min(sorted(right), key=rank), cells) if right else None


def _is_between(field: _FieldColumns, layer: RowLayer, low: Fraction, high: Fraction) -> bool:
    size = _value(field.size.get(layer.row.at))
    return size is not None and low <= size <= high


def _kept(size: Fraction) -> Fraction:
    return size


def _sized(size: Fraction, jump: Fraction, kernel: Fraction) -> Fraction:
    return size + (kernel - 1) * jump


def _stepped(jump: Fraction, stride: Fraction) -> Fraction:
    return jump * stride


def _moved(offset: Fraction, jump: Fraction, kernel: Fraction, pad: Fraction) -> Fraction:
    return offset + ((kernel - 1) / 2 - pad) * jump


class _Terms(Struct, frozen=True):
    """What a figure follows from: the cells of each term, its value, and how they give it.

    `again` gives the figure for another value in a cell, where a term follows from it as well.
    """

    cells: tuple[Cells, ...]
    values: tuple[Fraction | int, ...]
    give: Callable[..., Fraction]
    again: Callable[[CellPart, Fraction], Fraction | None] | None = None

    def number(self) -> Fraction:
        """The figure that follows."""
        return self.give(*map(Fraction, self.values))

    def with_value(self, part: CellPart, value: Fraction) -> Fraction | None:
        """The figure that follows from another value in a cell; None if no term is that cell."""
        found = self.again(part, value) if self.again is not None else None
        if found is not None:
            return found
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
    column: dict[int, Claim],
    layer: RowLayer,
    terms: _Terms,
    reason: str,
    full: _Terms | None = None,
) -> Iterator[Equation]:
    """The equation of one figure; `full` where the field of the row above is the whole input."""
    claim = column.get(layer.row.at)
    if claim is None or claim.figure is None:
        return
    if full is not None and claim.figure.stands_for(full.number()):
        terms = full
    number, own, now = terms.number(), claim.cell_part, claim.figure

    def holds_with(part: CellPart, value: Fraction) -> bool | None:
        if part == own:
            return value == number
        other = terms.with_value(part, value)
        return None if other is None else _is_printed(now, other)

    text = str(number) if number.denominator == 1 else str(float(number))
    cells = frozenset({own}).union(*terms.cells)
    yield Equation(
        cells,
        _is_printed(now, number),
        own,
        text,
        reason,
        number,
        follows=True,
        holds_with=holds_with,
    )


def _is_printed(figure: Figure, number: Fraction) -> bool:
    """Whether a figure is a number; one with an exponent follows from one that is rounded."""
    if figure.stands_for(number):
        return True
    return figure.scale > 1 and abs(figure.value() - number) * ROUNDED <= number


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
