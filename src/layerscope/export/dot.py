"""A network as a Graphviz digraph: one box per layer, one cluster per scope; for `dot -Tsvg`.

With `depth`, a scope at that level is one box with the sums of its layers, as in the table of the
module tree. A scope with a single layer is not folded: the box of the layer has the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.escaping import quoted
from layerscope.graph.types import Tensor
from layerscope.ops import SPECS
from layerscope.report.columns import COLUMNS, cell, tensor_text
from layerscope.report.findings import scope_paths
from layerscope.report.numbers import AtLeast, cell_text
from layerscope.report.tree import TableRow, tree_rows
from layerscope.report.types import Layer, Report

COLOURS = {
    "convolution": "#cfe2f3", "linear": "#d9ead3", "attention": "#d9ead3", "pooling": "#fff2cc",
    "normalization": "#ead1dc", "activation": "#f4cccc", "elementwise": "#fce5cd",
    "softmax": "#f4cccc",
}  # fmt: skip
PLAIN, UNKNOWN = "#eeeeee", "#ff9999"

# layers by name, and scopes by a tuple of their path; a folded scope is a row
Scope = dict[str | tuple[str], "Layer | TableRow | Scope"]


class Folding(Struct, frozen=True):
    """Ids of layers, and the row of the folded scope that a layer is in."""

    ids: dict[str, str]
    rows: dict[str, TableRow]


def write(report: Report, depth: int | None = None) -> str:
    """The digraph; nodes are in order of execution inside the clusters of their scopes."""
    lines = [
        f"digraph {quoted(report.name)} {{",
        "  rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fillcolor="#eeeeee", fontname="Helvetica", '
        'fontsize=10, color="#888888", margin="0.12,0.06"];',
        '  edge [arrowsize=0.6, color="#666666"];',
        '  graph [fontname="Helvetica", fontsize=11, style="rounded", color="#999999"];',
    ]
    ids: dict[str, str] = {}  # tensor -> id of the node that computes it
    for n, tensor in enumerate(report.graph.inputs):
        ids[tensor.name] = f"i{n}"
        lines.append(f"  i{n} [label={_tensor(tensor)}, shape=ellipse, fillcolor=white];")
    folding = _folding(report, depth)
    for layer in report.layers:
        ids.update(dict.fromkeys(layer.node.outputs, folding.ids[layer.name]))
    lines += _frames(report, folding)
    edges: dict[str, None] = {}
    for layer in report.layers:
        target = folding.ids[layer.name]
        for name in layer.node.inputs:
            if name in ids and ids[name] != target:
                edges[f"  {ids[name]} -> {target};"] = None
    lines += edges
    for n, name in enumerate(report.graph.outputs):
        label = _tensor(report.tensors[name])
        lines.append(f"  o{n} [label={label}, shape=ellipse, fillcolor=white];")
        lines += [f"  {ids[name]} -> o{n};"] if name in ids else []
    return "\n".join([*lines, "}"]) + "\n"


def _folding(report: Report, depth: int | None) -> Folding:
    """Layers of a scope at level `depth` have one id; without a depth each has its own."""
    ids = {layer.name: f"n{n}" for n, layer in enumerate(report.layers)}
    rows: dict[str, TableRow] = {}
    if depth is not None and depth < 1:
        raise UsageError(f"--depth {depth}, expected at least 1")
    for n, row in enumerate(tree_rows(report, depth, fold=False) if depth is not None else ()):
        if row.kind == "scope" and row.depth + 1 == depth and len(row.members) > 1:
            names = [layer.name for layer in row.members]
            ids.update(dict.fromkeys(names, f"m{n}"))
            rows.update(dict.fromkeys(names, row))
    return Folding(ids, rows)


def _frames(report: Report, folding: Folding) -> Iterator[str]:
    """Nodes by scope; a scope that is entered again continues its cluster."""
    tree: Scope = {}
    placed: set[str] = set()  # ids of folded scopes
    for layer in report.layers:
        branch, row = tree, folding.rows.get(layer.name)
        if folding.ids[layer.name] in placed:
            continue
        around = scope_paths(layer)
        for path in around if row is None else around[: row.depth]:
            inner = branch.setdefault((path,), {})
            assert isinstance(inner, dict)
            branch = inner
        if row is None:
            branch[layer.name] = layer
        else:
            branch[(row.name,)] = row
            placed.add(folding.ids[layer.name])
    count = 0
    waiting = [("", iter(tree.items()))]
    while waiting:
        parent, items = waiting[-1]
        depth = len(waiting)
        step = next(items, None)
        if step is None:
            waiting.pop()
            if waiting:
                yield "  " * (depth - 1) + "}"
            continue
        key, value = step
        if isinstance(value, Layer):
            yield "  " * depth + f"{folding.ids[value.name]} [{_style(value, parent, report)}];"
            continue
        if isinstance(value, TableRow):
            name = folding.ids[value.members[0].name]
            yield "  " * depth + f"{name} [{_folded_style(value, report)}];"
            continue
        yield "  " * depth + f"subgraph cluster_{count} {{"
        count += 1
        yield "  " * (depth + 1) + f"label={_scope(key[0], parent, report)};"
        waiting.append((key[0], iter(value.items())))


def _scope(path: str, around: str, report: Report) -> str:
    kind = report.graph.modules.get(path, "")
    return quoted(f"{_relative_name(path, around)}  {kind}".rstrip())


def _relative_name(name: str, around: str) -> str:
    """A name relative to the path of its cluster."""
    inside = around and name.startswith((f"{around}.", f"{around}/"))
    return name[len(around) + 1 :] if inside else name


def _style(layer: Layer, around: str, report: Report) -> str:
    colour = UNKNOWN
    if layer.status != "unknown":
        spec = SPECS.get(layer.op)
        colour = COLOURS.get(spec.family, PLAIN) if spec else PLAIN
    style = "" if colour == PLAIN else f', fillcolor="{colour}"'
    return f"label={_label(layer, around, report)}, tooltip={quoted(layer.name)}{style}"


def _label(layer: Layer, around: str, report: Report) -> str:
    """Name, op with its window, output shapes, and its non-zero costs."""
    window = COLUMNS["window"].value(TableRow(layer.name, layer.name, 0, "layer", (layer,)), report)
    shapes = " ".join(map(tensor_text, layer.outputs))
    name = _relative_name(layer.name, around)
    lines = [name, f"{layer.op} {window}" if window else layer.op, shapes]
    if layer.status == "unknown":
        lines.append("costs unknown")
    else:
        row = TableRow(layer.name, layer.name, 0, "layer", (layer,))
        costs = [(cell(COLUMNS[name], row, report), name) for name in ("params", "macs")]
        text = " · ".join(
            f"{cell_text(value, 'count', short=True)} {COLUMNS[name].title}"
            for value, name in costs
            if value
        )
        lines += [text] if text else []
    return _joined(lines)


def _folded_style(row: TableRow, report: Report) -> str:
    """Name, class, output shape, and the sums that the table of the module tree prints."""
    lines = [row.label]
    for name in ("type", "output"):
        text = cell_text(cell(COLUMNS[name], row, report), "text")
        lines += [text] if text else []
    sums = []
    for name in ("params", "macs"):
        column = COLUMNS[name]
        value = cell(column, row, report)
        if value or isinstance(value, AtLeast):
            sums.append(f"{cell_text(value, column.kind)} {column.title}")
    lines += [" · ".join(sums)] if sums else []
    colour = f', fillcolor="{UNKNOWN}"' if row.unknown else ""
    return f"label={_joined(lines)}, tooltip={quoted(row.name)}, shape=box3d{colour}"


def _tensor(tensor: Tensor) -> str:
    return _joined([tensor.name, tensor_text(tensor)])


def _joined(lines: list[str]) -> str:
    return '"' + "\\n".join(quoted(line)[1:-1] for line in lines) + '"'
