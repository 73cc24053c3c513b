"""The module tree of a report as rows: scopes with the sums of what is in them, repeats folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.graph.types import Shape
from layerscope.ops import Ops
from layerscope.report.types import Layer, Report, sum_ops


class Row(Struct, frozen=True):
    """One line of a table: a layer, a scope, or the total; figures are sums over `times` copies."""

    name: str  # full
    label: str  # as indented in a tree
    depth: int
    kind: str  # layer | scope | total
    layer: Layer | None
    layers: int
    times: int
    output: Shape | None
    params: int
    buffers: int
    ops: Ops
    activations: int
    read_bytes: int
    write_bytes: int
    param_bytes: int
    backward: Ops
    unknown: int  # layers in it without figures

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, parameters included."""
        return self.read_bytes + self.write_bytes


class Branch(Struct):
    """A scope while the tree is being made."""

    path: tuple[str, ...]
    children: list[Any]  # Branch | Layer, in order of first use


def layer_rows(report: Report) -> list[Row]:
    """One row a layer, without the tree."""
    return [_layer_row(layer, layer.name, 0) for layer in report.layers]


def total_row(report: Report) -> Row:
    """The row of totals, parameters as the report's totals count them."""
    row = _sum_row("total", "total", 0, "total", list(report.layers), 1)
    totals = report.totals
    return replace(row, activations=totals.activations, param_bytes=totals.param_bytes)


def tree_rows(report: Report, depth: int | None = None, *, fold: bool = True) -> list[Row]:
    """The tree down to `depth` levels (all if None), alike neighbours in one row with × N."""
    if depth is not None and depth < 1:
        return []
    rows: list[Row] = []
    _walk(_tree(report), 0, depth, fold, rows)
    return rows


def _tree(report: Report) -> Branch:
    root = Branch((), [])
    branches: dict[tuple[str, ...], Branch] = {(): root}
    for layer in report.layers:
        scope = layer.scope
        branch = branches.get(scope)
        if branch is None:
            branch = root
            for end in range(1, len(scope) + 1):
                inner = branches.get(scope[:end])
                if inner is None:
                    inner = branches[scope[:end]] = Branch(scope[:end], [])
                    branch.children.append(inner)
                branch = inner
        branch.children.append(layer)
    return root


def _walk(branch: Branch, level: int, depth: int | None, fold: bool, rows: list[Row]) -> None:
    for run in _runs(branch.children, fold):
        child, times = run[0], len(run)
        if isinstance(child, Layer):
            rows.append(_layer_row(child, child.name, level))
            continue
        inside = list(_inside(child))
        name = child.path[-1]
        if times > 1:
            name = f"{name}…{run[-1].path[-1]} × {times}"
        path = _full_path(child, inside[0])
        rows.append(_sum_row(path, name, level, "scope", inside, times))
        if depth is None or level + 1 < depth:
            _walk(child, level + 1, depth, fold, rows)


def _runs(children: list[Any], fold: bool) -> Iterator[list[Any]]:
    """Neighbouring scopes alike in everything but their names together, all else alone."""
    run: list[Any] = []
    alike: Any = None
    for child in children:
        signature = _signature(child) if fold and isinstance(child, Branch) else None
        if run and (signature is None or signature != alike):
            yield run
            run = []
        run.append(child)
        alike = signature
    if run:
        yield run


def _signature(child: Any) -> Any:
    if isinstance(child, Layer):
        return (child.op, child.node.attributes, child.call and child.call.inputs, child.params)
    last = len(child.path)
    return tuple(
        (inner.path[last:], _signature(inner))
        if isinstance(inner, Branch)
        else (_own_name(inner), _signature(inner))
        for inner in child.children
    )


def _own_name(layer: Layer) -> str:
    return layer.name.rsplit(".", 1)[-1].rsplit("/", 1)[-1]


def _inside(branch: Branch) -> Iterator[Layer]:
    for child in branch.children:
        if isinstance(child, Layer):
            yield child
        else:
            yield from _inside(child)


def _full_path(branch: Branch, layer: Layer) -> str:
    """The scope's path as names write it: with dots, or with slashes where a format has those."""
    slashed = "/".join(branch.path)
    return slashed if layer.name.startswith(slashed + "/") else ".".join(branch.path)


def _layer_row(layer: Layer, name: str, level: int) -> Row:
    label = name
    for separator in ".", "/":  # the tree has told the path already
        path = separator.join(layer.scope) + separator
        if level and name.startswith(path):
            label = name[len(path) :]
    return _sum_row(name, label, level, "layer", [layer], 1)


def _sum_row(name: str, label: str, level: int, kind: str, layers: list[Layer], times: int) -> Row:
    return Row(
        name=name,
        label=label,
        depth=level,
        kind=kind,
        layer=layers[0] if kind == "layer" else None,
        layers=len(layers) * times,
        times=times,
        output=layers[-1].output if layers else None,
        params=sum([layer.params for layer in layers]) * times,
        buffers=sum([layer.cost.buffer_count for layer in layers]) * times,
        ops=sum_ops([layer.ops for layer in layers]) * times,
        activations=sum([layer.activations for layer in layers]) * times,
        read_bytes=sum([layer.cost.read_bytes for layer in layers]) * times,
        write_bytes=sum([layer.cost.write_bytes for layer in layers]) * times,
        param_bytes=sum([layer.param_bytes for layer in layers]) * times,
        backward=sum_ops([layer.backward for layer in layers]) * times,
        unknown=sum([layer.status == "unknown" for layer in layers]) * times,
    )
