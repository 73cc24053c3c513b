"""What a picture of a graph shows: boxes of layers and modules, frames of open modules, edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from layerscope.graph.types import Tensor
from layerscope.report.outline import Outline, TreeGroup
from layerscope.report.tree import TableRow
from layerscope.report.types import Report

FEW_BOXES = 60  # as many levels are open as give at most these
MOST_CHILDREN = 120  # boxes of one module; more are drawn as runs of neighbours


class GraphItem(Struct, eq=False):
    """A box, or a frame if it has children. Ports and inputs have no row."""

    label: str
    row: TableRow | None = None
    number: int = -1  # of the row
    repeat: int = 1
    count: int = 1  # layers in it
    tensor: Tensor | None = None  # of an input or output of the network
    is_output: bool = False  # of the network
    children: list[GraphItem] = []
    edges: dict[tuple[int, int], Tensor] = {}  # between children, by number; `IN` and `OUT` too


Member = tuple[int, int, int]  # a layer, the instance of a frame it is in, the same of the first
IN, OUT = -1, -2  # ends of edges that come from outside a frame, or leave it


def picture_items(report: Report, outlined: Outline, depth: int | None) -> GraphItem:
    """The whole network as a frame whose children are boxes, and frames of open modules."""
    levels = _levels(outlined) if depth is None else depth
    tree = _PictureTree(outlined, levels)
    root = GraphItem(
        report.name, outlined.total, len(outlined.rows) - 1, children=tree.top, edges={}
    )
    tree.add_edges(report, root)
    return root


def _levels(outlined: Outline) -> int:
    """The most levels that give few boxes, at least 1."""
    level, many = 1, list(outlined.children)
    while True:
        opened: list[TreeGroup | int] = []
        for child in many:
            inside = isinstance(child, TreeGroup) and child.children
            opened += child.children if isinstance(child, TreeGroup) and inside else [child]
        if len(opened) > FEW_BOXES or len(opened) == len(many):
            return level
        level, many = level + 1, opened


class _PictureTree:
    """Items of the tree, and the item of every layer at each level."""

    def __init__(self, outlined: Outline, levels: int) -> None:
        self.outlined = outlined
        self.numbers = {id(g): len(outlined.layers) + n for n, g in enumerate(outlined.groups)}
        # by layer, at each level: number of the item in its frame, and instance of that frame
        self.paths: dict[int, list[tuple[int, int]]] = {n: [] for n in range(len(outlined.layers))}
        self.top = self._items(outlined.children, levels, [(n, 0, n) for n in self.paths])

    def _items(
        self,
        children: Iterable[TreeGroup | int],
        levels: int,
        inside: Sequence[tuple[int, int, int]],
    ) -> list[GraphItem]:
        """Items of the children; `inside` has layer, instance and the layer of the first one."""
        shown = [child for child in children if isinstance(child, int) or child.layers]
        items: list[GraphItem] = []
        owner: dict[int, int] = {}  # layer of the first instance -> number of its item
        size = -(-len(shown) // MOST_CHILDREN)
        for start in range(0, len(shown), size or 1):
            run = shown[start : start + size]
            for child in run:
                first = [child] if isinstance(child, int) else child.layers
                owner.update(dict.fromkeys(first, len(items)))
            items.append(self._item(run[0]) if len(run) == 1 else self._run(run))
        for layer, instance, same in inside:
            if same in owner:
                self.paths[layer].append((owner[same], instance))
        if size == 1 and levels > 1:
            for item, child in zip(items, shown, strict=True):
                if isinstance(child, TreeGroup) and child.children:
                    item.children = self._items(
                        child.children, levels - 1, list(_members(child, inside))
                    )
        return items

    def _item(self, child: TreeGroup | int) -> GraphItem:
        if isinstance(child, int):
            row = self.outlined.layers[child]
            return GraphItem(row.label, row, child, children=[], edges={})
        row = child.row
        count = len(child.layers)
        return GraphItem(
            row.label, row, self.numbers[id(child)], row.times, count, children=[], edges={}
        )

    def _run(self, run: Sequence[TreeGroup | int]) -> GraphItem:
        """One box for neighbours of a long sequence."""
        rows = [self.outlined.layers[x] if isinstance(x, int) else x.row for x in run]
        members = tuple(layer for row in rows for layer in row.all_members)
        label = f"{rows[0].label} … {rows[-1].label}"
        row = TableRow(label, label, 0, "op", members)
        return GraphItem(label, row, count=len(members), children=[], edges={})

    def add_edges(self, report: Report, root: GraphItem) -> None:
        """Edges between items, through the frames around their ends, and inputs and outputs."""
        producers = {t: n for n, node in enumerate(report.graph.nodes) for t in node.outputs}
        entries = {tensor.name: tensor for tensor in report.graph.inputs}
        inputs: dict[str, int] = {}
        for n, node in enumerate(report.graph.nodes):
            for name in node.inputs:
                if not self.paths[n]:
                    continue
                if name in producers and self.paths[producers[name]]:
                    self._connect(root, producers[name], n, report.tensors[name])
                elif name in entries:
                    if name not in inputs:
                        inputs[name] = len(root.children)
                        root.children.append(
                            GraphItem(name, tensor=entries[name], children=[], edges={})
                        )
                    self._enter(root, inputs[name], n, entries[name])
        for name in report.graph.outputs:
            if name in producers and self.paths[producers[name]]:
                tensor = report.tensors[name]
                end = len(root.children)
                root.children.append(
                    GraphItem(name, tensor=tensor, is_output=True, children=[], edges={})
                )
                path = self.paths[producers[name]]
                root.edges.setdefault((path[0][0], end), tensor)
                self._leave(root.children[path[0][0]], path[1:], tensor)

    def _connect(self, frame: GraphItem, start: int, end: int, tensor: Tensor) -> None:
        """An edge from one layer to another."""
        before, after = self.paths[start], self.paths[end]
        for level, (a, b) in enumerate(zip(before, after, strict=False)):
            if a != b:
                if a[1] != b[1]:  # from one instance of the frame to another
                    self._leave(frame, before[level:], tensor)
                    self._arrive(frame, after[level:], tensor)
                    return
                frame.edges.setdefault((a[0], b[0]), tensor)
                self._leave(frame.children[a[0]], before[level + 1 :], tensor)
                self._arrive(frame.children[b[0]], after[level + 1 :], tensor)
                return
            frame = frame.children[a[0]]

    def _enter(self, root: GraphItem, start: int, end: int, tensor: Tensor) -> None:
        path = self.paths[end]
        root.edges.setdefault((start, path[0][0]), tensor)
        self._arrive(root.children[path[0][0]], path[1:], tensor)

    def _leave(self, frame: GraphItem, path: Sequence[tuple[int, int]], tensor: Tensor) -> None:
        for number, _ in path:
            frame.edges.setdefault((number, OUT), tensor)
            frame = frame.children[number]

    def _arrive(self, frame: GraphItem, path: Sequence[tuple[int, int]], tensor: Tensor) -> None:
        for number, _ in path:
            frame.edges.setdefault((IN, number), tensor)
            frame = frame.children[number]


def _members(group: TreeGroup, inside: Sequence[Member]) -> Iterator[Member]:
    """Layers of a group with the number of their instance and the layer of the first one."""
    instances = group.instances or [group.layers]
    at = {n: (k, instances[0][p]) for k, many in enumerate(instances) for p, n in enumerate(many)}
    for layer, _, same in inside:
        if same in at:
            yield layer, *at[same]
