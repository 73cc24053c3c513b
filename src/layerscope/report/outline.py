"""The rows of a report by number: layers, then the groups of the module tree, then the total."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from layerscope.report.tree import TableRow, layer_row, total_row, tree_rows, unused_rows
from layerscope.report.types import Layer, Report


class TreeGroup(Struct):
    """A row of the tree with the numbers of its layers; of equal neighbours, those of all."""

    row: TableRow
    layers: list[int]
    instances: list[list[int]]  # layers of each of the equal neighbours; [] if it is a single one
    children: list[TreeGroup | int]  # of the first of them: groups, and numbers of layers


class Outline(Struct, frozen=True):
    """The module tree as `show` prints it, and all rows by number."""

    layers: tuple[TableRow, ...]
    groups: tuple[TreeGroup, ...]  # in preorder
    children: tuple[TreeGroup | int, ...]  # of the whole network
    total: TableRow

    @property
    def rows(self) -> list[TableRow]:
        """All rows in the order of their numbers."""
        return [*self.layers, *(group.row for group in self.groups), self.total]

    def rows_of(self, report: Report) -> list[TableRow]:
        """The same rows of the same network under another convention."""
        layers = report.layers
        return [
            *(_row(row, layers[n : n + 1]) for n, row in enumerate(self.layers)),
            *(_row(g.row, tuple([layers[n] for n in g.layers])) for g in self.groups),
            total_row(report),
        ]


def _row(row: TableRow, members: tuple[Layer, ...]) -> TableRow:
    return TableRow(row.name, row.label, row.depth, row.kind, members)


def outline(report: Report) -> Outline:
    """Number the rows of a report."""
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    rows = [layer_row(layer, layer.name, len(layer.scope)) for layer in report.layers]
    groups: list[TreeGroup] = []
    top: list[TreeGroup | int] = []
    around = [top]  # children of the groups around a row
    for row in (*tree_rows(report, idle=False), *unused_rows(report)):
        del around[row.depth + 1 :]
        if row.kind == "layer":
            around[-1].append(numbers[row.name])
            continue
        group = TreeGroup(row, [numbers[layer.name] for layer in row.all_members], [], [])
        if row.times > 1:
            group.instances = list(_split(group.layers, len(row.members)))
        around[-1].append(group)
        around.append(group.children)
        groups.append(group)
    return Outline(tuple(rows), tuple(groups), tuple(top), total_row(report))


def _split(numbers: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
