"""The audit of ptflops' print: sums of modules, shares of the whole, parameters of layers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.auditing.trees import (
    ANY,
    Relation,
    TreeCell,
    count_relation,
    findings_of,
    share_relation,
    span_of,
    sum_relation,
)
from layerscope.documents.figures import Figure, read
from layerscope.limits import DOCUMENT_ROWS

NUMBER = r"[\d.]{1,40}"
FIGURES = re.compile(
    rf"(?P<params>{NUMBER}(?: [kMGBT])?), (?P<params_share>{NUMBER}%) Params, "
    rf"(?P<macs>{NUMBER} [KMGT]?Mac), (?P<macs_share>{NUMBER}%) MACs, ?(?P<rest>.*)"
)
OPENING = re.compile(r"\s*(?:\((?P<name>[^()\s]{1,200})\): )?(?P<kind>[A-Za-z_]\w{0,100})\(")
CONV = re.compile(
    r"(?P<cin>\d{1,9}), (?P<cout>\d{1,9}), kernel_size=\((?P<kernel>\d{1,6}(?:, \d{1,6}){0,2}),?\)"
    r"(?P<more>.*)"
)
LINEAR = re.compile(
    r"in_features=(?P<cin>\d{1,9}), out_features=(?P<cout>\d{1,9}), bias=(?P<b>\w+)"
)
NORM = re.compile(r"(?P<c>\d{1,9}), .*affine=True")
PATTERNS = {r"Conv[123]d": CONV, "Linear": LINEAR, r"BatchNorm[123]d": NORM}
WIDEST = 2_000
ARGUMENTS = "arguments"
COLUMNS = {"params": "Params", "params_share": "% Params", "macs": "MACs", "macs_share": "% MACs"}
EXACT = "Sequential"  # its forward computes nothing itself


class _Module(Struct):
    """A module of the print: its figures by column, and the modules in it."""

    kind: str
    line: int
    depth: int
    cells: dict[str, TreeCell]
    rest: str
    below: list[_Module]


def audit_ptflops(
    lines: Sequence[str], table: int
) -> tuple[AuditedTable, list[Finding], set[int]] | None:
    """The audit of the print in a text, and its lines; None if there is none."""
    modules = list(_modules(lines))
    if len(modules) < 2:
        return None
    DOCUMENT_ROWS.check(len(modules), "ptflops' print")
    root, norms = modules[0], _parameters_of_norms(modules)
    relations: list[Relation] = []
    columns = []
    for name, title in COLUMNS.items():
        of_whole = "_share" not in name
        found = [relation for module in modules for relation in _sums(module, name)]
        found += [r for m in modules if of_whole for r in _counts(m, name, norms)]
        shares = [] if of_whole else [_share(m, root, name) for m in modules[1:]]
        spans = {c.key: c.span for relation in (*found, *shares) for c in relation.cells}
        right = sum(relation.holds(spans) for relation in (*found, *shares))
        meaning = "sums of modules" if of_whole else "sums of modules, and shares of the whole"
        columns.append(AuditedColumn(title, meaning, right, len(found) + len(shares)))
        relations += [*found, *shares]
    cells = [cell for relation in relations for cell in relation.cells]
    audited = AuditedTable(root.line, f"{len(modules)} modules", tuple(columns))
    used = set(range(root.line, max(module.line for module in modules) + 1))
    return audited, list(findings_of(relations, cells, table)), used


def _modules(lines: Sequence[str]) -> Iterator[_Module]:
    """The modules in the order of their lines; figures are in the line of a class or below it."""
    above: list[_Module] = []
    opened: tuple[str, str, int] | None = None
    for number, line in enumerate(lines, 1):
        if len(line) > WIDEST:
            continue
        opening, found = OPENING.match(line), FIGURES.search(line)
        if opening is not None:
            depth = len(line) - len(line.lstrip())
            opened = (opening["name"] or opening["kind"], opening["kind"], depth)
        if found is None or opened is None:
            continue
        label, kind, depth = opened
        opened = None
        cells = {}
        for name, title in COLUMNS.items():
            figure = _figure(found[name])
            if figure is not None:
                cells[name] = TreeCell(
                    number, title, label, found[name], span_of(figure), found.start(name) + 1
                )
        if len(cells) < len(COLUMNS):
            continue
        module = _Module(kind, number, depth, cells, found["rest"], [])
        while above and above[-1].depth >= depth:
            above.pop()
        if above:
            above[-1].below.append(module)
        above.append(module)
        yield module


def _figure(text: str) -> Figure | None:
    return read(text.removesuffix("Mac").replace(" ", ""))


def _sums(module: _Module, name: str) -> Iterator[Relation]:
    """A module has the sum of those in it, and what it computes or stores itself."""
    if module.below:
        parts = [each.cells[name] for each in module.below]
        yield sum_relation(module.cells[name], parts, more=module.kind != EXACT)


def _share(module: _Module, root: _Module, name: str) -> Relation:
    of = name.removesuffix("_share")
    return share_relation(module.cells[name], module.cells[of], (root.cells[of], root.cells[name]))


def _parameters_of_norms(modules: Sequence[_Module]) -> int:
    """How many parameters a channel has in most norms: a scale and a shift, or a shift only."""
    counts: Counter[int] = Counter()
    for module in modules:
        match = NORM.match(module.rest) if "Norm" in module.kind else None
        low, high = module.cells["params"].span
        for times in (1, 2) if match is not None else ():
            counts[times] += match is not None and low <= times * int(match["c"]) <= high
    return 1 if counts[1] > counts[2] else 2


def _counts(module: _Module, name: str, norms: int) -> Iterator[Relation]:
    """Parameters that the arguments of a layer give."""
    if name != "params":
        return
    pattern = next((p for kind, p in PATTERNS.items() if re.fullmatch(kind, module.kind)), None)
    match = pattern.match(module.rest) if pattern else None
    if match is None:
        return
    if pattern is CONV:
        count = _conv(match)
    elif pattern is LINEAR:
        count = (int(match["cin"]) + (match["b"] == "True")) * int(match["cout"])
    else:
        count = norms * int(match["c"])
    cell = module.cells[name]
    if count is not None and cell.span[1] > 0:  # else its weight is another module's
        given = TreeCell(cell.line, ARGUMENTS, cell.row, match[0].rstrip(")"), ANY)
        yield count_relation(cell, given, count)


def _conv(match: re.Match[str]) -> int | None:
    groups = re.search(r"groups=(\d{1,9})", match["more"])
    cin, cout, split = int(match["cin"]), int(match["cout"]), int(groups[1]) if groups else 1
    if not split or cin % split:
        return None
    kernel = 1
    for size in match["kernel"].split(","):
        kernel *= int(size)
    return kernel * cin // split * cout + (0 if "bias=False" in match["more"] else cout)
