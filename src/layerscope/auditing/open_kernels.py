"""What a wrong figure should be where its row does not show it: by its total, or by a slip.

A kernel that is not printed is known from the figures of its row. A wrong one shows a wrong kernel
or none, so its right value is stated only if a total or a slip of one digit shows which is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from layerscope.auditing.conventions import ColumnConvention
from layerscope.auditing.figure_equations import is_exact, sizes_text, text_of
from layerscope.auditing.state import Checked, key_of
from layerscope.sheets.kernels import WITH_KERNEL, with_inputs, with_open_kernels
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import RowLayer

LEFT_OPEN = ("", "no usual kernel gives it", False)
Shown = Mapping[Fraction, str]  # figures of a layer by kernel and input, and their reasons


def shown_by_others(checked: Checked, claim: Claim) -> tuple[str, str, bool] | None:
    """The right text of a wrong figure, the reason, and whether a total determines it.

    None if its row shows the kernel.
    """
    layer = checked.layers.get(claim.row)
    convention = checked.convention_of(claim)
    if layer is None or convention is None or _has_kernel(checked, layer, claim):
        return None
    possible = dict(_possible(layer, convention))
    number = _by_total(checked, claim, checked.columns[key_of(claim)])
    totalled = number is not None and number in possible
    if not totalled:
        number = _by_slip(claim, possible)
    if number is None:
        return LEFT_OPEN
    return text_of(number * convention.heading.scale), possible[number], totalled


def by_sum(checked: Checked, claim: Claim) -> tuple[str, str, bool] | None:
    """The printed result of a wrong formula, if its column adds up to a total with it."""
    figure = claim.figure
    if figure is None or figure.formula is None or figure.formula == figure.value():
        return None
    sums = (e for e in checked.equations if e.holds and e.target[0] not in checked.layers)
    if not any(claim.cell_part in e.cells for e in sums):
        return None
    result = text_of(figure.value())
    reason = f"the formula gives {text_of(figure.formula)}, and the column adds up with {result}"
    return result, reason, True


def _has_kernel(checked: Checked, layer: RowLayer, claim: Claim) -> bool:
    """Whether a row prints its kernel, or another of its figures shows it."""
    if layer.kind not in WITH_KERNEL or "kh" in layer.printed or "kh" not in layer.sizes:
        return True
    for other in layer.row.claims:
        convention = checked.convention_of(other)
        if other.cell == claim.cell or convention is None or other.figure is None:
            continue
        rule, number = convention.by_kind.get(layer.kind), convention.count(layer)
        if rule is None or "kh" not in rule.uses or number is None:
            continue
        if convention.explains(other.figure, number):
            return True
    return False


def _possible(layer: RowLayer, convention: ColumnConvention) -> Iterator[tuple[Fraction, str]]:
    rule = convention.by_kind.get(layer.kind)
    for given in (*with_inputs(layer), layer):
        for each in with_open_kernels(given):
            number = convention.count(each)
            if rule is not None and number is not None:
                yield number, f"{rule.says}: {sizes_text(each, rule.uses)}"


def _by_total(checked: Checked, claim: Claim, column: Sequence[Claim]) -> Fraction | None:
    """What is left of an exact total of exact figures."""
    filled = [c for c in column if c.figure is not None and c.figure.unit != "%"]
    totals = [c for c in filled if checked.sheet.rows[c.row].kind == "total"]
    if len(totals) != 1 or not all(c.figure is not None and is_exact(c.figure) for c in filled):
        return None
    numbers = {c.cell_part: c.figure.value() for c in filled if c.figure is not None}
    others = (c.cell_part for c in filled if c.row in checked.layers and c is not claim)
    return numbers[totals[0].cell_part] - sum((numbers[part] for part in others), Fraction())


def _by_slip(claim: Claim, possible: Shown) -> Fraction | None:
    """The only figure that differs from the printed one in a digit."""
    figure = claim.figure
    if figure is None or not is_exact(figure):
        return None
    near = [number for number in possible if _is_slip(str(figure.value()), str(number))]
    return near[0] if len(near) == 1 else None


def _is_slip(one: str, other: str) -> bool:
    """Whether two numbers differ in one digit: another one, one too many, or two exchanged."""
    if len(one) == len(other):
        at = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        exchanged = len(at) == 2 and at[1] == at[0] + 1 and one[at[0]] == other[at[1]]
        return len(at) == 1 or (exchanged and one[at[1]] == other[at[0]])
    short, long = sorted((one, other), key=len)
    return len(long) == len(short) + 1 and any(
        long[:n] + long[n + 1 :] == short for n in range(len(long))
    )
