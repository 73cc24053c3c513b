"""The audit of a table against a network: its figures must be those of the network's layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby, product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.check import FOOTNOTE, USUALLY_FILLED, audit_sheet
from layerscope.auditing.figure_equations import text_of
from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.auditing.network import NetworkLayer, aligned, layers_of_network
from layerscope.auditing.state import TRUSTED
from layerscope.documents.figures import RULES
from layerscope.documents.figures import Rule as Rounding
from layerscope.documents.headings import Meaning
from layerscope.report import Report
from layerscope.report.layer import Layer
from layerscope.sheets.corrections import correct_kinds
from layerscope.sheets.rules import factors
from layerscope.sheets.sheet import Claim, Sheet, SheetRow
from layerscope.sheets.structure import RowLayer, layers_of

LISTED = 5  # names in a note
# their totals are those of the network, whatever rows the table leaves out
LEARNED = ("params", "weights", "param_memory")
WHOLE = (*LEARNED, "macs")
MOST_BATCH = 4096
OWN = ("name", "missing", "unit", "format", "heading", "layout")  # kinds that need no network
Count = Callable[[NetworkLayer], int | None]
KINDS: Mapping[Meaning, str] = {
    "comparisons": "comp", "additions": "add", "divisions": "div", "exponentials": "exp",
}  # fmt: skip


class Quantity(Struct, frozen=True):
    """A figure of a network's layers, and its sum over all of them."""

    says: str
    count: Count


class _Chosen(Struct, frozen=True):
    """How a column gives a quantity of the network."""

    quantity: Quantity
    factor: int = 1
    batch: int = 1
    base: int = 1000
    rounding: Rounding = "round"
    explained: int = 0

    def number(self, layer: NetworkLayer) -> int | None:
        """The exact figure of a layer, in the unit that the column counts."""
        found = self.quantity.count(layer)
        return None if found is None else found * self.factor * self.batch

    def fits(self, claim: Claim, number: int) -> bool:
        """Whether a cell prints a number."""
        shown = Fraction(number, claim.heading.scale)
        return claim.figure is not None and claim.figure.stands_for(shown, self.base, self.rounding)

    def text(self) -> str:
        """The convention in words."""
        times = f" x {self.factor}" if self.factor != 1 else ""
        batch = f" x batch {self.batch}" if self.batch != 1 else ""
        unit = f", K by {self.base}" if self.base != 1000 else ""
        how = {
            "round": "", "cut": ", cut", "round figures": ", to significant figures",
            "cut whole": ", cut without decimals",
        }  # fmt: skip
        return (
            self.quantity.says
            + times
            + batch
            + unit
            + how.get(self.rounding, ", cut to significant figures")
        )


class Checker:
    """Audits tables against one network; `rows` counts the rows that have a layer."""

    def __init__(self, reports: Mapping[str, Report]) -> None:
        self.reports = reports
        self.name = next(iter(reports.values())).name
        self.layers = layers_of_network(next(iter(reports.values())))
        self.rows = 0

    def __call__(self, sheet: Sheet, number: int) -> tuple[AuditedTable, list[Finding]]:
        """The conventions and findings of a table."""
        rows = layers_of(sheet)
        list(correct_kinds(rows))
        pairs = aligned(sheet, rows, self.layers)
        self.rows += len(pairs)
        own = [f for f in audit_sheet(sheet, number)[1] if f.kind in OWN]
        findings = list(_sizes(sheet, number, rows, pairs))
        columns, notes = [], []
        if lost := [row.row for row in rows if row.row.at not in pairs]:
            names = _some_names([f"{row.label} (line {row.line})" for row in lost])
            notes.append(f"not aligned with a layer, and not checked: {names}")
        missing, left = self._without_row(number, rows, pairs)
        findings += missing
        notes += left
        for claims in _columns(sheet):
            audited, found, note = self._column(sheet, number, claims, pairs)
            columns.append(audited)
            findings += found
            notes += [note] if note else []
        units = {(f.line, f.row, f.column) for f in own if f.kind == "unit"}
        others = [f for f in findings if (f.line, f.row, f.column) not in units]
        listed = sorted([*own, *others], key=lambda f: (f.line, f.column))
        network = f"{len(pairs)} of {len(rows)} rows are layers of {self.name}"
        return AuditedTable(sheet.table.line, network, tuple(columns), tuple(notes)), listed

    def _without_row(
        self, number: int, rows: Sequence[RowLayer], pairs: Mapping[int, NetworkLayer]
    ) -> tuple[list[Finding], list[str]]:
        """Layers with parameters that no row has: findings if most of their kind have one."""
        report = next(iter(self.reports.values()))
        row_of = {layer.index: row.row for row in rows if (layer := pairs.get(row.row.at))}
        learned = [
            layer for layer in self.layers if layer.index >= 0 and report.layers[layer.index].params
        ]
        of_kind = Counter(layer.kind for layer in learned)
        with_row = Counter(layer.kind for layer in learned if layer.index in row_of)
        findings, left = [], []
        inside = self._inside_of_rows(rows, learned, row_of)
        for layer in learned:
            above = [row_of[n] for n in range(layer.index, -2, -1) if n in row_of][:1]
            if layer.index in row_of or layer.index in inside:
                continue
            if not above or with_row[layer.kind] * 100 < USUALLY_FILLED * of_kind[layer.kind]:
                left.append(layer.name)
                continue
            reason = (
                f"{self.name} has {layer.name} after this row, with "
                f"{report.layers[layer.index].params:,} parameters"
            )
            findings.append(
                Finding(
                    number, above[0].line, above[0].label, "", "missing", "", layer.name, reason
                )
            )
        notes = [f"layers of {self.name} with parameters and without a row: {_some_names(left)}"]
        return findings, notes if left else []

    def _inside_of_rows(
        self, rows: Sequence[RowLayer], learned: Sequence[NetworkLayer],
        row_of: Mapping[int, SheetRow],
    ) -> set[int]:  # fmt: skip
        """Layers without a row of their own whose parameters one row has together: a module's."""
        report = next(iter(self.reports.values()))
        with_layer = {row.at for row in row_of.values()}
        others = [
            claim.figure for row in rows if row.row.at not in with_layer
            for claim in row.row.claims if claim.meaning in LEARNED and claim.figure is not None
        ]  # fmt: skip
        found: set[int] = set()
        for has_row, run in groupby(learned, key=lambda layer: layer.index in row_of):
            group = [layer.index for layer in run]
            count = sum(report.layers[index].params for index in group)
            if not has_row and any(figure.stands_for(count) for figure in others):
                found |= {*group}
        return found

    def _column(
        self, sheet: Sheet, number: int, claims: Sequence[Claim], pairs: Mapping[int, NetworkLayer]
    ) -> tuple[AuditedColumn, list[Finding], str]:
        first = claims[0]
        heading = first.meaning if first.labelled else first.heading.text
        given = [(c, pairs[c.row]) for c in claims if c.row in pairs and _is_count(c)]
        best = self._choose(given, first)
        of = sum(best.number(layer) is not None for _, layer in given) if best else len(given)
        if best is None or not _is_trusted(best, given):
            tried = f", the best gives {best.explained} of {of}" if best else ""
            text = f"no convention of {self.name} gives most of its figures{tried}"
            audited = AuditedColumn(heading, "no convention found", 0, len(given))
            return audited, [], f"{heading} is not checked: {text}" if given else ""
        findings = [
            _finding(sheet, number, claim, expected, f"{best.quantity.says} of {layer.name}")
            for claim, layer in given
            if (expected := best.number(layer)) is not None and not best.fits(claim, expected)
        ]
        findings += self._totals(sheet, number, claims, best, pairs)
        return AuditedColumn(heading, best.text(), best.explained, of), findings, ""

    def _choose(self, given: Sequence[tuple[Claim, NetworkLayer]], first: Claim) -> _Chosen | None:
        """The quantity, unit and rounding that explain most cells of a column."""
        best: _Chosen | None = None
        vectors: dict[tuple[int | None, ...], Quantity] = {}
        for quantity in self._quantities(first.meaning):
            vectors.setdefault(tuple(quantity.count(layer) for _, layer in given), quantity)
        batches = (1, *_batches(given, next(iter(vectors), ())))
        # the strictest rounding first: figures with zeros at the end fit many quantities
        ways = product(
            RULES,
            (1000, 1024),
            vectors.items(),
            factors(first.meaning, first.heading.unit),
            batches,
        )
        for rounding, base, (numbers, quantity), factor, batch in ways:
            way = _Chosen(quantity, factor, batch, base, rounding)
            explained = sum(
                number is not None and way.fits(claim, number * factor * batch)
                for (claim, _), number in zip(given, numbers, strict=True)
            )
            if best is None or explained > best.explained:
                best = _Chosen(quantity, factor, batch, base, rounding, explained)
        return best

    def _totals(
        self, sheet: Sheet, number: int, claims: Sequence[Claim], best: _Chosen,
        pairs: Mapping[int, NetworkLayer],
    ) -> Iterator[Finding]:  # fmt: skip
        """Totals that are neither the network's nor the sum over the rows of the table."""
        of_rows = [pairs[row.at] for row in sheet.rows if row.at in pairs]
        kinds = {layer.kind for layer in of_rows}  # a table without norms leaves them out
        listed = [layer for layer in self.layers if layer.kind in kinds]
        sums = [
            sum(count for count in counts if count is not None)
            for layers in (self.layers, listed, *(() if claims[0].meaning in WHOLE else (of_rows,)))
            for inputs in (False, True)
            if None not in (counts := [best.number(layer) for layer in layers
                                       if inputs or layer.kind != "input"])
        ]  # fmt: skip
        if claims[0].meaning in ("field", "jump"):
            return  # not a sum
        rows = [claim for claim in claims if sheet.rows[claim.row].kind == "total"]
        for claim in rows if sums else ():
            ways = [_Chosen(best.quantity, base=b, rounding=r) for b in (1000, 1024) for r in RULES]
            if _is_count(claim) and not any(way.fits(claim, s) for way in ways for s in sums):
                expected = sums[-2 if claim.meaning in ("memory", "activations") else 0]
                reason = f"{best.quantity.says} of {self.name}"
                yield replace(_finding(sheet, number, claim, expected, reason), kind="total")

    def _quantities(self, meaning: Meaning) -> list[Quantity]:
        """What a column of that meaning may count."""
        found: list[Quantity] = []
        for name, report in self.reports.items():
            found += _quantities(meaning, name, report.layers)
        return found


def _quantities(meaning: Meaning, name: str, layers: Sequence[Layer]) -> Iterator[Quantity]:
    """Quantities of one report, which counts by the convention `name`."""
    exact = name == "exact"
    by = "" if exact else f" as {name} counts"
    if meaning in LEARNED:
        yield Quantity(f"parameters{by}", _sum_of(layers, lambda layer: layer.params))
        if exact:
            yield Quantity("parameters without biases", _sum_of(layers, _without("bias")))
            yield Quantity("parameters and buffers", _sum_of(layers, _stored))
    elif meaning in ("macs", "flops", "madds", "ops"):
        if exact:
            yield Quantity("multiply-adds", _sum_of(layers, lambda layer: layer.ops.mac))
            yield Quantity("FLOPs", _sum_of(layers, lambda layer: layer.ops.flops))
        else:
            yield Quantity(f"operations{by}", _sum_of(layers, lambda layer: layer.convention_ops))
    elif meaning in ("memory", "activations") and exact:
        yield Quantity("output elements", lambda layer: layer.elements)
    elif meaning in ("memory", "activations"):
        yield Quantity(
            f"activations{by}", _sum_of(layers, lambda layer: layer.convention_activations)
        )
    elif meaning in ("field", "jump") and exact:
        name = "receptive field" if meaning == "field" else "stride of the receptive field"
        yield Quantity(name, _sum_of(layers, partial(_field, meaning), 1))
    elif meaning in KINDS:
        kind = KINDS[meaning]
        yield Quantity(
            f"{meaning}{by}", _sum_of(layers, lambda layer: getattr(layer.convention_kinds, kind))
        )


def _field(meaning: Meaning, layer: Layer) -> int | None:
    """Size or stride of a receptive field that is the same on all axes."""
    field = layer.field
    values = () if field is None else field.size if meaning == "field" else field.stride
    first = values[0] if values and len({*values}) == 1 else None
    return first if isinstance(first, int) else None


def _sum_of(
    layers: Sequence[Layer], count: Callable[[Layer], int | None], inputs: int = 0
) -> Count:
    """A count of the report's layers, unknown where a layer's figures are; `inputs` for inputs."""

    def found(layer: NetworkLayer) -> int | None:
        if layer.index < 0:
            return inputs
        each = layers[layer.index]
        return None if each.status == "unknown" else count(each)

    return found


def _without(role: str) -> Callable[[Layer], int]:
    def count(layer: Layer) -> int:
        sizes = [prod(param.shape) for param in layer.cost.params if param.role == role]
        return layer.params - sum(sizes) if layer.params else 0

    return count


def _stored(layer: Layer) -> int:
    return sum(prod(param.shape) for param in layer.cost.params)


def _columns(sheet: Sheet) -> list[list[Claim]]:
    """Claims by column, those with labels by meaning."""
    found: dict[tuple[Meaning, str], list[Claim]] = {}
    for row in sheet.rows:
        for claim in row.claims:
            key = claim.meaning, "" if claim.labelled else claim.heading.text
            found.setdefault(key, []).append(claim)
    return [claims for claims in found.values() if any(c.figure is not None for c in claims)]


def _is_count(claim: Claim) -> bool:
    figure = claim.figure
    return figure is not None and figure.unit != "%" and not FOOTNOTE.search(claim.cell.text)


def _batches(
    given: Sequence[tuple[Claim, NetworkLayer]], numbers: Sequence[int | None]
) -> list[int]:
    """The batch that most figures have in common; none for parameters, which no batch changes."""
    found: Counter[int] = Counter()
    for (claim, _), number in zip(given, numbers, strict=False):
        if number and claim.figure is not None and claim.meaning not in LEARNED:
            found[round(claim.figure.value() * claim.heading.scale / number)] += 1
    return [batch for batch, _ in found.most_common(1) if 1 < batch <= MOST_BATCH]


def _is_trusted(best: _Chosen, given: Sequence[tuple[Claim, NetworkLayer]]) -> bool:
    """Whether a convention explains most cells; zeros count only where there is nothing else."""
    numbers = [(claim, number) for claim, layer in given
               if (number := best.number(layer)) is not None]  # fmt: skip
    fits = [best.fits(claim, number) for claim, number in numbers]
    counts = [fit for fit, (claim, number) in zip(fits, numbers, strict=True)
              if number or (claim.figure is not None and claim.figure.mantissa)]  # fmt: skip
    judged = counts or fits
    return any(judged) and sum(judged) * TRUSTED >= len(judged)


def _some_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _finding(sheet: Sheet, number: int, claim: Claim, expected: int, reason: str) -> Finding:
    row = sheet.rows[claim.row]
    return Finding(
        number, claim.cell.line, row.label, _heading(sheet, claim.column),
        "figure", claim.cell.text, text_of(Fraction(expected)), reason,
    )  # fmt: skip


def _heading(sheet: Sheet, column: int) -> str:
    cells = sheet.table.heading.cells
    return cells[column].text if column < len(cells) else ""


def _sizes(
    sheet: Sheet, number: int, rows: Sequence[RowLayer], pairs: Mapping[int, NetworkLayer]
) -> Iterator[Finding]:
    """Cells whose sizes are not those of the network's layer."""
    figures = {claim.cell_part[:2] for row in sheet.rows for claim in row.claims}
    for row in rows:
        layer = pairs.get(row.row.at)
        if layer is None:
            continue
        cells: dict[tuple[int, int], list[str]] = {}
        for name, size in row.printed.items():
            for spot in {cell[:2] for cell in size.cells} - figures:
                if name != "elements":
                    cells.setdefault(spot, []).append(name)
        for (at, column), names in cells.items():
            wanted = [layer.sizes.get(name) for name in names]
            sizes = [row.printed[name].value for name in names]
            if names == ["cin"] and sizes[0] == layer.sizes.get("cin_of_group"):
                continue
            if None in wanted or wanted == sizes or _is_same_volume(row, layer, names):
                continue
            cell = sheet.rows[at].cells[column]
            shown = dict.fromkeys(wanted) if len(wanted) == 2 else wanted
            yield Finding(
                number, cell.line, row.row.label, _heading(sheet, column), "figure", cell.text,
                "x".join(map(str, shown)), f"{layer.name} of the network",
            )  # fmt: skip


def _is_same_volume(row: RowLayer, layer: NetworkLayer, names: Sequence[str]) -> bool:
    """Whether a shape has the elements of the network's, which may be flattened."""
    side = names[0][1:]
    volume = [f"{axis}{side}" for axis in "chw"]
    ours, theirs = row.get(*volume), [layer.sizes.get(name) for name in volume]
    if side not in ("in", "out") or ours is None or None in theirs:
        return False
    flat = 1 in (ours[1] * ours[2], theirs[1])
    return flat and prod(ours) == prod(size for size in theirs if size is not None)
