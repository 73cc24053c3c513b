"""Findings and notes about the rows of totals of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from layerscope.auditing.conventions import Key, with_or_without_biases
from layerscope.auditing.figure_equations import text_of
from layerscope.auditing.findings import Finding
from layerscope.auditing.state import SUMMED, Checked, counts_of
from layerscope.auditing.totals import TotalCheck, check_plain_total, check_total
from layerscope.documents.figures import RULES
from layerscope.sheets.sheet import Claim

WHOLE = re.compile(r"\d[\d,]{0,20}")
FEW_VARIABLES = 8  # steps and rates of an optimizer
FEW_OPEN = 3  # figures that may be wrong instead of a total


def total_findings(
    checked: Checked, blamed_cells: set[tuple[int, int]]
) -> tuple[list[Finding], list[str]]:
    """Findings and notes about the rows of totals."""
    findings, notes = [], []
    for key, claims in checked.columns.items():
        for claim in claims:
            if checked.sheet.rows[claim.row].kind != "total" or claim.figure is None:
                continue
            name = claim.heading.text
            if checked.sheet.table.left_out:
                notes.append(f"rows are left out: the total of {name} cannot be checked")
                continue
            found = _total(checked, key, claim)
            if found.verdict == "wrong" and any((c.row, c.column) in blamed_cells for c in claims):
                notes.append(f"the total of {name} does not follow from the cells above, of which")
                notes[-1] += " some are listed"
            elif found.verdict == "wrong" and _has_optimizer(checked, claim, found):
                notes.append(f"the total of {name} counts the variables of an optimizer as well")
            elif found.verdict == "wrong":
                number = found.expected
                expected = "" if number is None else text_of(number * claim.heading.scale)
                reason = "the column does not add up to it"
                where = checked.where(claim)
                also = _unsupported(checked, claims)
                ways = tuple(product({base for base, _ in checked.ways(claim)}, RULES[:2]))
                findings.append(
                    Finding(*where, "total", claim.cell.text, expected, reason, also, ways=ways)
                )
            elif found.verdict == "follows" and any(
                (c.row, c.column) in blamed_cells for c in claims
            ):
                notes.append(f"the total of {name} follows from cells that are listed")
            elif found.verdict == "follows":
                notes.append(f"the total of {name} is what its cells add up to as they are rounded")
            elif found.verdict == "right for the network" and (
                odd := _uncounted_figure(checked, key, claims)
            ):
                findings.append(odd)
            elif found.verdict == "right for the network":
                notes.append(
                    f"the total of {name} is right for the network, and the cells above do not "
                    "add up to it"
                )
    return findings, notes


def _has_optimizer(checked: Checked, claim: Claim, found: TotalCheck) -> bool:
    """Whether Keras 3 counts the variables of an optimizer in a total, which have no row here.

    One or two for each parameter that is trained, and few of the optimizer itself.
    """
    total, sum_ = claim.figure, found.expected
    label = checked.sheet.rows[claim.row].label.lower()
    if total is None or not sum_ or total.power or not label.startswith("total params"):
        return False
    more = total.value() - sum_
    trained = [row for row in checked.sheet.rows if row.label.lower().startswith("trainable")]
    texts = [row.cells[claim.column].text for row in trained if claim.column < len(row.cells)]
    stated = {int(m[0].replace(",", "")) for text in texts if (m := WHOLE.match(text))}
    return sum_ in stated and any(0 <= more - times * sum_ <= FEW_VARIABLES for times in (1, 2))


def _unsupported(checked: Checked, column: Sequence[Claim]) -> tuple[str, ...]:
    """Figures of a column that follow from no other cell, if they are few."""
    holding = {equation.target for equation in checked.equations if equation.holds}
    open_ = [
        c for c in column
        if c.figure is not None and c.figure.mantissa and c.row in checked.layers
        and c.cell_part not in holding
    ]  # fmt: skip
    if len(open_) > FEW_OPEN:
        return ()
    return tuple(f"{checked.heading(c.column)} in line {c.cell.line}" for c in open_)


def _uncounted_figure(checked: Checked, key: Key, claims: Sequence[Claim]) -> Finding | None:
    """The only figure of a column that no rule counts, if its total is right without it."""
    convention = checked.conventions.get(key)
    if convention is None:
        return None
    counted = [c for c in claims if c.row in checked.layers and c.figure and c.figure.mantissa]
    odd = [c for c in counted if convention.count(checked.layers[c.row]) is None]
    wrong = [
        c for c in counted
        if (number := convention.count(checked.layers[c.row])) is not None
        and c.figure is not None and not convention.explains(c.figure, number)
    ]  # fmt: skip
    if len(odd) != 1 or wrong:
        return None
    reason = "the column adds up to its total without it"
    where = checked.where(odd[0])
    return Finding(*where, "figure", odd[0].cell.text, "0", reason, ways=checked.ways(odd[0]))


def _total(checked: Checked, key: Key, claim: Claim) -> TotalCheck:
    convention, column = checked.conventions.get(key), counts_of(checked.columns[key])
    if convention is not None:
        return check_total(claim, column, checked.layers, convention)
    if key[0] == "params" and not any(c.figure and c.row in checked.layers for c in column):
        return _total_of_weights(checked, claim)
    if key[0] in SUMMED:
        return check_plain_total(claim, column, checked.layers)
    return TotalCheck(claim, "open", None)


def _total_of_weights(checked: Checked, claim: Claim) -> TotalCheck:
    """A total of parameters below a column of weights: with biases, or without."""
    found = TotalCheck(claim, "open", None)
    weights = [key for key in checked.conventions if key[0] == "weights"]
    if len(weights) != 1:
        return found
    column = counts_of(checked.columns[weights[0]])
    for convention in with_or_without_biases(checked.conventions[weights[0]]):
        tried = check_total(claim, column, checked.layers, convention)
        if tried.verdict != "wrong":
            return tried
        found = tried if found.verdict == "open" else found
    return found
