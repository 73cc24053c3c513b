"""Parts of the JSON of a report that are on several layers: columns, tree, tensors, findings."""

from __future__ import annotations

from collections.abc import Iterable

from layerscope.analysis.memory import lifetimes
from layerscope.export.json_types import ColumnJson, FindingJson, LiveTensorJson, TreeJson
from layerscope.export.text import LAYOUTS
from layerscope.report.columns import COLUMNS, cell, titled
from layerscope.report.findings import NetworkFinding, table_findings
from layerscope.report.language import lines as language
from layerscope.report.numbers import bytes_text, cell_text
from layerscope.report.outline import Outline, TreeGroup
from layerscope.report.tree import TableRow
from layerscope.report.types import Report

UNITS = {"bytes": "B", "percent": "%", "ratio": "FLOP/B"}
SUMMABLE = tuple(column for column in COLUMNS.values() if column.summable)


def columns(report: Report) -> list[ColumnJson]:
    """All columns, the convention's figure titled as its system calls it."""
    return [
        ColumnJson(
            column.name,
            column.title,
            column.kind,
            UNITS.get(column.kind, ""),
            column.summable,
            column.name in LAYOUTS[0],
            column.says,
        )
        for column in titled(COLUMNS, report)
    ]


def findings(report: Report, *, advised: bool) -> list[FindingJson]:
    """Findings with the numbers of their layers; with `advised` those that take longer, too."""
    from layerscope.report.advice import advice

    found = [
        *table_findings(report),
        *(NetworkFinding("language", line) for line in language(report)),
        *(advice(report) if advised else ()),
    ]
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    return [
        FindingJson(
            each.kind,
            each.text,
            [numbers[name] for name in each.layers],
            each.saves_bytes,
            "" if each.saves_bytes is None else f"−{bytes_text(each.saves_bytes)}",
        )
        for each in found
    ]


def tree(report: Report, outlined: Outline, *, sums: bool = True) -> list[TreeJson | int]:
    """The module tree as `show` prints it; with `sums`, of every summable column."""
    figures = [_figures(row, report) if sums else [] for row in outlined.layers]
    return _TreeWriter(report, outlined, figures).children(outlined.children)


def _figures(row: TableRow, report: Report) -> list[int]:
    """The summable figures of a row; 0 where there is none."""
    found = [column.value(row, report) for column in SUMMABLE]
    return [value if isinstance(value, int) else 0 for value in found]


class _TreeWriter:
    """Groups by number; `figures` has the summable figures of every layer."""

    def __init__(self, report: Report, outlined: Outline, figures: list[list[int]]) -> None:
        self.report, self.figures = report, figures
        self.number = len(outlined.layers) - 1

    def children(self, many: Iterable[TreeGroup | int]) -> list[TreeJson | int]:
        """Groups in preorder, and numbers of layers."""
        return [child if isinstance(child, int) else self.group(child) for child in many]

    def group(self, group: TreeGroup) -> TreeJson:
        """One group with those in it."""
        row, report = group.row, self.report
        self.number += 1
        unused = row.kind == "unused"
        return TreeJson(
            self.number,
            row.label,
            "unused" if unused else cell_text(cell(COLUMNS["type"], row, report), "text"),
            "" if unused else row.name,
            row.status,
            group.layers,
            self.children(group.children),
            row.times,
            group.instances,
            self.sums(group),
        )

    def sums(self, group: TreeGroup) -> dict[str, int]:
        """Sums of the layers of a group by column."""
        if group.row.kind == "unused":
            found = _figures(group.row, self.report)
        else:
            found = list(map(sum, zip(*[self.figures[n] for n in group.layers], strict=True)))
        return {column.name: value for column, value in zip(SUMMABLE, found, strict=False)}


def live_tensors(report: Report) -> list[LiveTensorJson]:
    """Inputs of the network and outputs of its layers, and when each is alive."""
    graph = report.graph
    lives = lifetimes(graph, report.shapes, in_place=report.memory.in_place)
    names = [tensor.name for tensor in graph.inputs]
    producers: dict[str, int | None] = dict.fromkeys(names)
    for n, node in enumerate(graph.nodes):
        producers.update(dict.fromkeys(node.outputs, n))
    consumers: dict[str, list[int]] = {name: [] for name in producers}
    for n, node in enumerate(graph.nodes):
        for name in dict.fromkeys(node.inputs):
            if name in consumers:
                consumers[name].append(n)
    numbers = {name: n for n, name in enumerate(producers)}
    found = []
    for name, producer in producers.items():
        tensor, storage = report.tensors[name], lives.owner[name]
        owner, first, last = lives.names[storage], lives.first[storage], lives.last[storage]
        if owner not in numbers and producer is not None:  # a view of a stored array
            end = len(graph.nodes) - 1 if name in graph.outputs else producer
            owner, first, last = "", producer, max([end, *consumers[name]])
        found.append(
            LiveTensorJson(
                name,
                tensor.shape,
                tensor.dtype,
                tensor.bytes if tensor.shape is not None else None,
                producer,
                consumers[name],
                first,
                last,
                numbers.get(owner, numbers[name]),
                lives.bytes[storage] if owner == name else 0,
            )
        )
    return found
