"""The audit of MatConvNet's print of a DagNN: layers, parameters, variables, memory and fields.

Each layer becomes a row of a table like MatConvNet's display of a simple network, with the sizes of
its filters and of its output, and is checked as such. What the tables say of names is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.check import audit_sheet
from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.auditing.trees import Span
from layerscope.documents.figures import Figure, read
from layerscope.documents.types import Cell, Row, Table
from layerscope.formats.document.matconvnet_dag import FIELD, HEADS, LABEL, LINE, SIZE
from layerscope.formats.document.matconvnet_tables import cells_of, sign_of
from layerscope.sheets.sheet import sheet_of

BYTES = 4  # of an element
# headings of the display, and the titles of the same figures in a DagNN's tables
TITLES = {
    "name": "outputs", "type": "type", "connected to": "inputs", "support": "dims",
    "filt dim": "dims", "num filts": "dims", "stride": "stride", "pad": "pad", "rf size": "size",
    "rf offset": "offset", "rf stride": "stride", "data size": "dims", "data depth": "dims",
    "data num": "dims", "data mem": "mem",
}  # fmt: skip
FILTERS = ("support", "filt dim", "num filts")
NONE = "n/a"
ROUNDED = re.compile(r"\d+(?:\.\d+)?(?:e\+?\d{1,2})?")  # a size of a map, exact or to four digits
Columns = dict[str, dict[str, Cell]]  # name -> title -> cell


class _Dag(Struct):
    """The tables of a print by the word in their head, and its lines."""

    lines: list[int] = []
    tables: dict[str, Columns] = {}
    sums: dict[str, Cell] = {}

    def of(self, head: str) -> Columns:
        return self.tables.get(head, {})

    @property
    def fields(self) -> Columns:
        """The receptive fields in the first input."""
        return next((t for head, t in self.tables.items() if head.startswith(FIELD)), {})


def audit_dag(lines: Sequence[str]) -> tuple[AuditedTable, list[Finding], set[int]] | None:
    """The findings of a print, and its lines; None if there is none."""
    dag = _read(lines)
    sheet = sheet_of(_table(dag)) if dag.of("func") and dag.of("var") else None
    if sheet is None:
        return None
    audited, found = audit_sheet(sheet, 1)
    found = [each for each in found if each.kind != "missing" or not _has_rounded_size(each, dag)]
    named = [_named(finding, dag) for finding in found if finding.kind != "heading"]
    findings = list({(f.line, f.row, f.column): f for f in reversed(named)}.values())
    listed = {(finding.line, finding.row) for finding in findings}
    params = list(_memories(dag, listed))
    twice = _twice(found, params, dag)
    params = [finding for finding in params if finding.row not in twice]
    findings = [twice.get(_filters(f.row, dag), f) if f.also else f for f in findings]
    counts = [*_fans(dag), *params, *_totals(dag, {*findings, *params})]
    columns = tuple(replace(c, heading=TITLES.get(c.heading, c.heading)) for c in audited.columns)
    right = len(dag.of("param")) - len(params)
    memory = AuditedColumn("mem", "elements x 4 of parameters", right, len(dag.of("param")))
    table = replace(audited, line=min(dag.lines), columns=(*columns, memory))
    ordered = sorted([*findings, *counts], key=lambda f: (f.line, f.column))
    return table, ordered, set(dag.lines)


def _read(lines: Sequence[str]) -> _Dag:
    dag = _Dag([], {}, {})
    head, names = "", list[str]()
    for number, line in enumerate(lines, 1):
        match = LINE.match(line)
        sign = sign_of(line.lstrip())
        if match is None or not sign:
            continue
        title = match["title"]
        indent = len(line) - len(line.lstrip())
        cells = [
            _without_apostrophe(cell, indent)
            for cell in cells_of(line.lstrip(), number, sign).cells[1:]
        ]
        if title in HEADS or title.startswith(FIELD):
            if title == "func" and "var" in dag.tables:
                break  # another network
            head, names = title, [cell.text for cell in cells]
        elif title in ("params", "vars", "total") and len(cells) < 3 and head != "func":
            dag.sums.setdefault(title, cells[0]) if cells else None
        dag.lines.append(number)
        for name, cell in zip(names, cells, strict=False):
            dag.tables.setdefault(head, {}).setdefault(name, {}).setdefault(title, cell)
    return dag


def _without_apostrophe(cell: Cell, indent: int) -> Cell:
    """A cell without the apostrophe that csv has before sizes."""
    text = cell.text.strip()
    moved = cell.text.index(text) + text.startswith("'") if text else 0
    return Cell(text.removeprefix("'"), cell.line, cell.column + moved + indent)


def _table(dag: _Dag) -> Table:
    """The display: inputs, then layers by the name of their output."""
    rows = [
        _row(dag, name, {}, Cell("input", cells["dims"].line, 1))
        for name, cells in dag.of("var").items()
        if "dims" in cells and cells.get("fanin", NOWHERE).text == "0" and name != LABEL
    ]
    for name, layer in dag.of("func").items():
        outputs = layer.get("outputs", NOWHERE).text.split() or [name]
        rows.append(_row(dag, outputs[0], layer, layer.get("type", NOWHERE)))
    line = min(dag.lines)
    heading = Row(line, tuple(Cell(text, line, 1) for text in TITLES))
    return Table("text", line, heading, tuple(rows))


NOWHERE = Cell("", 1, 1)


def _row(dag: _Dag, name: str, layer: Mapping[str, Cell], kind: Cell) -> Row:
    var, field = dag.of("var").get(name, {}), dag.fields.get(name, {})
    first = (layer.get("params", NOWHERE).text.split() or [""])[0]
    filters = dag.of("param").get(first, {}) if kind.text.startswith("Conv") else {}
    high_wide, depth, count = _parts(filters.get("dims"))
    if kind.text == "ConvTranspose":
        depth, count = count, depth  # filters of a transposed convolution have their outputs first
    source = (layer.get("inputs", NOWHERE).text.split() or [""])[0]
    given, none = dag.of("var").get(source, {}).get("dims"), Cell(NONE, kind.line, 1)
    if _takes_all(filters.get("dims"), given):
        kind, high_wide, depth = Cell("fc", kind.line, kind.column), none, none
    elif _takes_axis((given, filters.get("dims"), var.get("dims"))):
        kind, high_wide, depth, count = Cell("fc", kind.line, kind.column), none, none, none
    area, channels, images = _parts(var.get("dims"))
    label = Cell(name, kind.line, 1)
    rounded = "e" in var.get("dims", NOWHERE).text  # its memory is compared with the span
    memory = none if rounded else var.get("mem", none)
    inputs = layer.get("inputs", NOWHERE)
    cells = (
        label, kind, inputs, high_wide, depth, count, layer.get("stride", none),
        layer.get("pad", none), field.get("size", none), field.get("offset", none),
        field.get("stride", none), area, channels, images, memory,
    )  # fmt: skip
    return Row(kind.line, cells)


def _takes_all(filters: Cell | None, given: Cell | None) -> bool:
    """Whether filters of one position take every element of a map."""
    if filters is None or given is None or SIZE.fullmatch(given.text) is None:
        return False
    sizes = [int(size) for size in given.text.split("x")]
    count = prod(sizes[:-1]) if len(sizes) == 4 else 0
    return filters.text.startswith(f"1x1x{count}x") and prod(sizes[:-2]) > 1


def _takes_axis(dims: tuple[Cell | None, ...]) -> bool:
    """Whether filters of one position are applied to height or width, as those of sequences."""
    texts = [cell.text.split("x") if cell is not None else [] for cell in dims]
    if not all(len(text) == 4 for text in texts) or texts[1][:2] != ["1", "1"]:
        return False
    before, filters, after = texts
    return any(
        [before[at], after[at]] == filters[2:]
        and before[:at] + before[at + 1 :] == after[:at] + after[at + 1 :]
        for at in (0, 1)
    )


def _parts(cell: Cell | None) -> tuple[Cell, Cell, Cell]:
    """Height and width, depth and number of a cell like 28x28x6x1; of one number, it alone."""
    none = Cell(NONE, cell.line if cell is not None else 1, 1)
    if cell is None or _sizes(cell.text) is None:
        return none, none, none
    sizes = cell.text.split("x")
    if len(sizes) == 1:
        return cell, cell, cell
    sizes += ["1"] * (4 - len(sizes))
    area = "x".join(sizes[:-2])
    at = cell.column + len(area) + 1
    cells = (
        Cell(area, cell.line, cell.column),
        Cell(sizes[-2], cell.line, at),
        Cell(sizes[-1], cell.line, at + len(sizes[-2]) + 1),
    )
    exact = [each if SIZE.fullmatch(each.text) else none for each in cells]  # 2.509e+04 is rounded
    return exact[0], exact[1], exact[2]


def _filters(name: str, dag: _Dag) -> str:
    """The filters of the layer that gives a variable; the variable if it has none."""
    layer = next(
        (cells for func, cells in dag.of("func").items()
         if name in cells.get("outputs", Cell(func, 1, 1)).text.split()), {},
    )  # fmt: skip
    return (layer.get("params", NOWHERE).text.split() or [name])[0]


def _has_rounded_size(finding: Finding, dag: _Dag) -> bool:
    """Whether a variable has memory that the display leaves out, because its size is rounded."""
    cells = dag.of("var").get(finding.row, {})
    rounded = "e" in cells.get("dims", NOWHERE).text
    return rounded and read(cells.get(TITLES[finding.column], NOWHERE).text) is not None


def _twice(found: Sequence[Finding], memories: Sequence[Finding], dag: _Dag) -> dict[str, Finding]:
    """Findings about filters that both their memory and an output contradict, by their name."""
    suspected = {
        _filters(finding.row, dag) for finding in found
        if any(each.partition(" in line ")[0] in FILTERS for each in finding.also)
    }  # fmt: skip
    twice = {}
    for finding in memories:
        cell = dag.of("param").get(finding.row, {}).get("dims")
        if cell is not None and finding.row in suspected:
            twice[finding.row] = Finding(
                1, cell.line, finding.row, "dims", "figure", cell.text, "",
                f"not the sizes of {finding.printed} and of the output", (), cell.column,
            )  # fmt: skip
    return twice


def _named(finding: Finding, dag: _Dag) -> Finding:
    """A finding with the titles and cells of the DagNN's tables."""
    title, name = TITLES.get(finding.column, finding.column), finding.row
    if finding.column in FILTERS:
        name = _filters(name, dag)
    tables = (dag.of("param"), dag.of("var"))
    cell = next((t[name][title] for t in tables if title in t.get(name, {})), None)
    also = tuple(
        f"{TITLES.get(column, column)} in line {line}"
        for column, _, line in (each.partition(" in line ") for each in finding.also)
    )
    if cell is None or title != "dims":
        return replace(finding, column=title, row=name, also=also)
    return replace(finding, column=title, row=name, also=also, printed=cell.text, expected="")


def _memories(dag: _Dag, listed: set[tuple[int, str]]) -> Iterator[Finding]:
    """Parameters whose memory is not that of their sizes; tables of numbers may have 8 bytes.

    Variables are rows of the display; here are those with a rounded size, which it has not.
    """
    floats = {
        param for cells in dag.of("func").values()
        if cells.get("type", NOWHERE).text.startswith(("Conv", "BatchNorm"))
        for param in cells.get("params", NOWHERE).text.split()
    }  # fmt: skip
    rounded = {
        name: cells for name, cells in dag.of("var").items()
        if "e" in cells.get("dims", NOWHERE).text
    }  # fmt: skip
    for name, cells in (*dag.of("param").items(), *rounded.items()):
        dims, memory = cells.get("dims", NOWHERE), cells.get("mem", NOWHERE)
        figure, sizes = read(memory.text), _sizes(dims.text)
        if figure is None or sizes is None or (dims.line, name) in listed:
            continue
        is_float = name in floats or name in rounded
        counts = _bytes(sizes, is_float=is_float)
        if not any(_meets(figure, span) for span in counts):
            also = (f"dims in line {dims.line}",)
            reason = f"{dims.text} elements of {BYTES} bytes"
            sure = counts[0][0] == counts[0][1] and (is_float or len(sizes) > 1)
            expected = f"{int(counts[0][0]):,}" if sure else ""
            yield Finding(
                1, memory.line, name, "mem", "figure", memory.text, expected, reason, also,
                memory.column,
            )  # fmt: skip


def _sizes(text: str) -> list[Span] | None:
    """What sizes like 1x1x2.509e+04x1 may stand for; None for other text."""
    found = [read(size) if ROUNDED.fullmatch(size) else None for size in text.split("x")]
    figures = [figure for figure in found if figure is not None]
    if len(figures) < len(found):
        return None
    return [f.interval() if f.scale > 1 else (f.value(), f.value()) for f in figures]


def _bytes(sizes: Sequence[Span], *, is_float: bool) -> list[Span]:
    """What elements of these sizes may take, the usual first; one size is that of all axes.

    Floats have four axes, and others, such as the vectors of an embedding, may have two.
    """
    low, high = (Fraction(BYTES) * prod(size[n] for size in sizes) for n in (0, 1))
    found = [(low, high)]
    if len(sizes) == 1 and low > BYTES:
        powers = (4,) if is_float else (2, 4)
        found[:0] = [(BYTES * sizes[0][0] ** n, BYTES * sizes[0][1] ** n) for n in powers]
    return found if is_float else [*found, (2 * found[0][0], 2 * found[0][1])]


def _meets(figure: Figure, span: Span) -> bool:
    """Whether a printed memory can be one of a span."""
    if span[0] == span[1]:
        return figure.stands_for(span[0], 1024)
    low, high = figure.interval(1024)
    return low <= span[1] and span[0] <= high


def _fans(dag: _Dag) -> Iterator[Finding]:
    """Variables and parameters that other numbers of layers use or give than is printed."""
    used: dict[str, Counter[str]] = {title: Counter() for title in ("inputs", "outputs", "params")}
    for cells in dag.of("func").values():
        for title, counts in used.items():
            counts.update(cells.get(title, NOWHERE).text.split())
    for head, pairs in FANS.items():
        for name, cells in dag.of(head).items():
            for title, source in pairs:
                cell, count = cells.get(title, NOWHERE), used[source][name]
                if cell.text.isdigit() and int(cell.text) != count:
                    yield Finding(
                        1, cell.line, name, title, "figure", cell.text, str(count),
                        f"the {source} of layers name it {count} times", (), cell.column,
                    )  # fmt: skip


FANS = {
    "param": (("fanout", "params"),), "var": (("fanin", "outputs"), ("fanout", "inputs")),
}  # fmt: skip


def _totals(dag: _Dag, findings: set[Finding]) -> Iterator[Finding]:
    """Sums of memory that rounded figures cannot add up to."""
    wrong = any(finding.column in ("mem", "dims") for finding in findings)
    whole: dict[str, Span] = {}
    sums: dict[str, Span] = {}
    for title, head in (("params", "param"), ("vars", "var")):
        figure = _figure(dag.sums.get(title))
        if figure is None:
            return
        given = [_figure(cells.get("mem")) for cells in dag.of(head).values()]
        sums[title] = _sum([_span(each) for each in given if each is not None])
        right = wrong or _is_within(_span(figure), sums[title])
        whole[title] = _span(figure) if right else sums[title]
        if not right:
            yield _sum_finding(dag.sums[title], title, "the column does not add up to it")
    total = _figure(dag.sums.get("total"))
    if total is not None and not _is_within(_span(total), _sum(list(whole.values()))):
        also = tuple(
            f"{title} in line {dag.sums[title].line}"
            for title, other in (("params", "vars"), ("vars", "params"))
            if _is_within(_rest_of_total(_span(total), whole[other]), sums[title])
        )
        found = _sum_finding(dag.sums["total"], "total", "not the sum of params and vars")
        yield replace(found, also=also)


def _figure(cell: Cell | None) -> Figure | None:
    return None if cell is None else read(cell.text)


def _is_within(one: Span, other: Span) -> bool:
    """Whether a number can be within two spans."""
    return one[0] <= other[1] and other[0] <= one[1]


def _rest_of_total(total: Span, part: Span) -> Span:
    """What a total leaves for the other part of it."""
    return total[0] - part[1], total[1] - part[0]


def _sum(spans: Sequence[Span]) -> Span:
    low, high = (sum((span[n] for span in spans), Fraction()) for n in (0, 1))
    return low, high


def _span(figure: Figure) -> Span:
    return figure.interval(1024) if figure.power else (figure.value(), figure.value())


def _sum_finding(cell: Cell, title: str, reason: str) -> Finding:
    return Finding(1, cell.line, title, title, "total", cell.text, "", reason, (), cell.column)
