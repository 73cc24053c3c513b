"""The audit of one table: its conventions, its equations, and the findings among its cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from layerscope.auditing.blame import blamed
from layerscope.auditing.conventions import ColumnConvention
from layerscope.auditing.equations import Equation, Suspect
from layerscope.auditing.figure_equations import text_of, tied_layer
from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding, FindingKind
from layerscope.auditing.open_kernels import by_sum, shown_by_others
from layerscope.auditing.state import Checked, checked_sheet
from layerscope.auditing.total_findings import total_findings
from layerscope.documents.figures import RULES
from layerscope.sheets.kinds import Kind, plain
from layerscope.sheets.rules import IN
from layerscope.sheets.sheet import EMPTY, Claim, Sheet
from layerscope.sheets.structure import AXIS_PARTS, CellPart, RowLayer, without

FOOTNOTE = re.compile(
    r"\d\s*\$?\s*\^?\s*\{?\\?[*†‡]\}?\s*\$?\s*$"
)  # the document states an exception
USUALLY_FILLED = 60  # per cent of the rows of a kind, for a blank to be missing


def audit_sheet(sheet: Sheet, number: int) -> tuple[AuditedTable, list[Finding]]:
    """The conventions and findings of a table; `number` counts the tables of the document."""
    checked = checked_sheet(sheet, number)
    broken, unnamed = blamed(checked)
    findings = [
        *_layout(checked), *_headings(checked), *_names(checked), *_figures(checked, broken),
        *_formats(checked), *_missing(checked),
    ]  # fmt: skip
    totals, notes = total_findings(checked, {part[:2] for each in broken for part in each.parts})
    listed = sorted([*findings, *totals], key=lambda f: (f.line, f.column))
    rows = checked.layers
    word = "network" if _are_networks(checked) else "layer"
    network = f"{len(rows)} {word}{'' if len(rows) == 1 else 's'}" if rows else ""
    if sheet.cut:
        notes.append(f"only the first {len(sheet.table.rows):,} rows are checked")
    if unnamed:
        notes.append(f"too much contradicts: {unnamed:,} further contradictions are not listed")
    if word == "network":
        notes.append("rows are networks: figures that no other cell determines are not checked")
    audited = _audited(checked, checked.equations)
    return AuditedTable(sheet.table.line, network, audited, tuple(notes)), listed


def _are_networks(checked: Checked) -> bool:
    """Whether rows are networks: by a heading, and because none is a layer."""
    named = any(heading and heading.meaning == "model" for heading in checked.sheet.headings)
    return named and all(layer.kind == "unknown" for layer in checked.layers.values())


def _layout(checked: Checked) -> Iterator[Finding]:
    for row in checked.sheet.layout:
        few = "too few" if row.cells < row.expected else "too many"
        yield Finding(
            checked.number, row.line, row.label, "", "layout", f"{row.cells} cells",
            f"{row.expected} cells", f"{few} cells: the heading has {row.expected}",
        )  # fmt: skip


def _headings(checked: Checked) -> Iterator[Finding]:
    for (_, text), convention in checked.conventions.items():
        heading = convention.heading
        if (
            text
            and heading.unit == "byte"
            and convention.factor == 1
            and convention.meaning in ("memory", "activations")
        ):
            cells = checked.sheet.table.heading.cells
            yield Finding(
                checked.number, checked.sheet.table.line, cells[0].text, text, "heading", text,
                "elements",
                f"{convention.explained} of {convention.of} cells count elements, not bytes",
            )  # fmt: skip


def _names(checked: Checked) -> Iterator[Finding]:
    for renamed in checked.renamed:
        row = checked.sheet.rows[renamed.row]
        column = next(n for n, cell in enumerate(row.cells) if cell.text == row.named)
        says, is_ = renamed.says.replace("_", " "), renamed.is_.replace("_", " ")
        yield Finding(
            checked.number, row.line, row.label, checked.heading(column), "name", row.named,
            is_, f"called a {says}, and its figures are those of a {is_}",
        )  # fmt: skip


def _figures(checked: Checked, broken: Sequence[Suspect]) -> Iterator[Finding]:
    for suspect in broken:
        row, column, _ = suspect.parts[0]
        cell = checked.sheet.rows[row].cells[column]
        claim = _claim_at(checked, suspect.parts[0])
        equation = suspect.equation
        own = equation.target == suspect.parts[0]
        kind, reason = _kind(checked, claim, equation) if own else ("figure", equation.reason)
        kind = "total" if checked.sheet.rows[row].kind == "total" else kind
        also = tuple(
            f"{checked.heading(c)} in line {checked.sheet.rows[r].cells[c].line}"
            for r, c, _ in suspect.parts[1:]
        )
        expected = _expected(checked, suspect, claim) or (equation.expected if own else "")
        certain = suspect.certain
        if kind == "figure" and claim is not None and equation.target == claim.cell_part:
            certain = certain and not _is_undecided(checked, claim)
            shown = by_sum(checked, claim) or shown_by_others(checked, claim)
            expected, reason, totalled = shown or (expected, reason, False)
            certain = certain or (totalled and not also)
        printed = claim.cell.text if claim else cell.text
        if FOOTNOTE.search(printed):
            continue
        if claim is None and len(re.findall(r"\d+", printed)) == 1:
            expected, reason = _of_values(suspect.values, expected, reason)
        yield Finding(
            checked.number, cell.line, checked.label(row), checked.heading(column), kind,
            printed, "" if expected == printed else expected, reason, also,
            certain=certain, ways=checked.ways(claim),
        )  # fmt: skip


def _is_undecided(checked: Checked, claim: Claim) -> bool:
    """Whether no other cell shows what a figure should be.

    That is so where no figure shows the rule of its kind, and where a formula and its result
    differ, and the others do not determine either.
    """
    layer, figure = checked.layers.get(claim.row), claim.figure
    convention = checked.convention_of(claim)
    if convention is not None and layer is not None and layer.kind in convention.unsettled:
        return True
    if figure is None or figure.formula is None or "=" not in figure.text:
        return False
    if layer is None or convention is None:
        return True
    others = convention.count(without(layer, claim.cell_part))
    return others is None or others != convention.count(layer)


def _of_values(values: Sequence[Fraction], expected: str, reason: str) -> tuple[str, str]:
    """What a cell of one number should say, and why, by the values with which others agree."""
    texts = [str(value) for value in values]
    if not texts or expected in texts:
        return expected, reason
    if len(texts) > 1:
        return "", f"{reason}; the other cells agree with {' or '.join(texts)}"
    return texts[0], f"the other cells agree with {texts[0]}"


def _claim_at(checked: Checked, cell_part: CellPart) -> Claim | None:
    """The figure of a cell, of one label if it has several."""
    row, column, part = cell_part
    found = [c for c in checked.sheet.rows[row].claims if c.column == column]
    return next((c for c in found if part in (c.part, *AXIS_PARTS.values())), None)


def _expected(checked: Checked, suspect: Suspect, claim: Claim | None) -> str:
    """What a cell that says sizes would be by the other cells of its row and the row above."""
    cell_part = suspect.parts[0]
    layer = checked.layers.get(cell_part[0])
    names = [n for n, fact in layer.printed.items() if cell_part in fact.cells] if layer else []
    if layer is None or not names or all(name in IN for name in names):
        return ""  # the row above need not be the input
    found = without(layer, cell_part)
    if claim is not None and claim.figure is not None and claim.figure.formula is not None:
        convention = checked.convention_of(claim)
        number = convention.count(found) if convention else None
        sizes = found.get("hout", "wout", "cout")
        if number is None or sizes is None or claim.meaning not in ("memory", "activations"):
            return ""
        return f"{'*'.join(map(str, sizes))}={text_of(number)}"
    sizes = found.get(*names)
    return (
        ""
        if sizes is None
        else "x".join(map(str, dict.fromkeys(sizes) if len(names) == 2 else sizes))
    )


def _kind(checked: Checked, claim: Claim | None, equation: Equation) -> tuple[FindingKind, str]:
    """Whether a wrong figure is only in another unit."""
    if claim is None or claim.figure is None or equation.number is None:
        return "figure", equation.reason
    figure, number = claim.figure, equation.number
    formula_right = figure.formula is None or figure.formula == number * claim.heading.scale
    for base in (1024, 1000):
        if (
            formula_right
            and figure.power
            and any(figure.stands_for(number, base, how) for how in RULES[:2])
        ):
            return "unit", f"K counts {base:,} here and not in the other cells; {equation.reason}"
    return "figure", equation.reason


def _formats(checked: Checked) -> Iterator[Finding]:
    for claims in checked.columns.values():
        given = [c for c in claims if c.figure is not None]
        commas = [c for c in given if c.figure is not None and c.figure.decimal_comma]
        points = sum(1 for c in given if "." in c.cell.text)
        if commas and points >= 1:
            for claim in commas:
                yield _format(
                    checked,
                    claim,
                    claim.cell.text.replace(",", "."),
                    "a decimal comma among points",
                )
        for claim in given:
            if "==" in claim.cell.text:
                yield _format(
                    checked, claim, claim.cell.text.replace("==", "="), "two equals signs"
                )


def _format(checked: Checked, claim: Claim, expected: str, reason: str) -> Finding:
    return Finding(
        *checked.where(claim),
        "format", claim.cell.text, expected, reason,
    )  # fmt: skip


def _missing(checked: Checked) -> Iterator[Finding]:
    """Cells that are empty where those of their kind are filled."""
    tied = tied_layer(checked.layers)
    for (meaning, heading), claims in checked.columns.items():
        if not heading or (meaning, heading) not in checked.conventions:
            continue
        layers = {row: layer for row, layer in checked.layers.items() if layer.last is None}
        for like in dict.fromkeys(map(_form, layers.values())):
            rows = [row for row, layer in layers.items() if _form(layer) == like]
            by_row = {c.row: c for c in claims}
            filled = [row for row in rows if row in by_row and by_row[row].figure is not None]
            blank = [row for row in rows if row in by_row and plain(by_row[row].cell.text) in EMPTY]
            if len(filled) * 100 < USUALLY_FILLED * len(rows) or len(filled) < 2:
                continue
            for row in blank:
                if layers[row] is not tied:
                    yield _blank(checked, by_row[row])


def _form(layer: RowLayer) -> tuple[Kind, bool]:
    """The kind of a layer, and whether its row has a window: a pool without one is a global one."""
    return layer.kind, "kh" in layer.printed


def _blank(checked: Checked, claim: Claim) -> Finding:
    convention = checked.convention_of(claim)
    layer = checked.layers[claim.row]
    number: Fraction | None = convention.count(layer) if convention else None
    expected = text_of(number * claim.heading.scale) if number is not None else ""
    return Finding(
        *checked.where(claim),
        "missing", "", expected,
        f"other rows of kind {layer.kind.replace('_', ' ')} have a figure here",
        ways=() if convention is None else convention.ways(prefixed=convention.written > 0),
    )  # fmt: skip


# what is said of columns whose figures follow from other cells of the table
FOLLOWS = {
    "share": "share of a column in percent", "field": "from the kernel and the row above",
    "jump": "from the stride and the row above", "jump_in": "the jump of the row above",
    "offset": "from the window and the row above",
}  # fmt: skip
SHARES = "share of its column in percent"
FORMULAS = "by formulas in its cells, and sums"


def _audited(checked: Checked, equations: Sequence[Equation]) -> tuple[AuditedColumn, ...]:
    found = []
    of_cell = {equation.target: equation.holds for equation in equations}
    for key, claims in checked.columns.items():
        filled = [c for c in claims if c.figure is not None]
        if not filled:
            continue
        convention = checked.conventions.get(key)
        checked_cells = [of_cell[c.cell_part] for c in filled if c.cell_part in of_cell]
        if convention is not None:
            text = convention.text()
            explained, of = _explained(convention, claims, checked.layers)
        elif checked_cells:
            shared = any(c.figure is not None and c.figure.unit == "%" for c in filled)
            text = FOLLOWS.get(key[0], SHARES if shared else FORMULAS)
            explained, of = sum(checked_cells), len(checked_cells)
        else:
            text, explained, of = "no convention found", 0, len(filled)
        heading = claims[0].heading.text if key[1] else key[0]
        found.append(AuditedColumn(heading, text, explained, of))
    return tuple(found)


def _explained(
    convention: ColumnConvention, claims: Sequence[Claim], layers: dict[int, RowLayer]
) -> tuple[int, int]:
    """How many figures of layers a convention explains, and of how many it says something."""
    explained = of = 0
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        number = convention.count(layer) if layer is not None else None
        if figure is not None and number is not None:
            of += 1
            explained += convention.explains(figure, number)
    return explained, of
