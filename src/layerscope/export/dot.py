"""A network as a Graphviz digraph: one box per layer, one cluster per scope; for `dot -Tsvg`."""

from __future__ import annotations

from collections.abc import Iterator

from layerscope.escaping import quoted
from layerscope.graph.types import Tensor
from layerscope.ops import SPECS
from layerscope.report.columns import COLUMNS, tensor_text
from layerscope.report.findings import scope_paths
from layerscope.report.numbers import short_text
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

COLOURS = {
    "convolution": "#cfe2f3", "linear": "#d9ead3", "attention": "#d9ead3", "pooling": "#fff2cc",
    "normalization": "#ead1dc", "activation": "#f4cccc", "elementwise": "#fce5cd",
    "softmax": "#f4cccc",
}  # fmt: skip
PLAIN, UNKNOWN = "#eeeeee", "#ff9999"

# layers by name, and scopes by a tuple of their path
Scope = dict[str | tuple[str], "Layer | Scope"]


def write(report: Report) -> str:
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
    numbers = {layer.name: f"n{n}" for n, layer in enumerate(report.layers)}
    for layer in report.layers:
        ids.update(dict.fromkeys(layer.node.outputs, numbers[layer.name]))
    lines += _frames(report, numbers)
    for layer in report.layers:
        sources = dict.fromkeys(ids[name] for name in layer.node.inputs if name in ids)
        lines += [f"  {source} -> {numbers[layer.name]};" for source in sources]
    for n, name in enumerate(report.graph.outputs):
        label = _tensor(report.tensors[name])
        lines.append(f"  o{n} [label={label}, shape=ellipse, fillcolor=white];")
        lines += [f"  {ids[name]} -> o{n};"] if name in ids else []
    return "\n".join([*lines, "}"]) + "\n"


def _frames(report: Report, numbers: dict[str, str]) -> Iterator[str]:
    """Nodes by scope; a scope that is entered again continues its cluster."""
    tree: Scope = {}
    for layer in report.layers:
        branch = tree
        for path in scope_paths(layer):
            inner = branch.setdefault((path,), {})
            assert isinstance(inner, dict)
            branch = inner
        branch[layer.name] = layer
    count = 0
    waiting = [("", iter(tree.items()))]
    while waiting:
        around, items = waiting[-1]
        depth = len(waiting)
        step = next(items, None)
        if step is None:
            waiting.pop()
            if waiting:
                yield "  " * (depth - 1) + "}"
            continue
        key, value = step
        if isinstance(value, Layer):
            yield "  " * depth + f"{numbers[value.name]} [{_style(value, around, report)}];"
            continue
        yield "  " * depth + f"subgraph cluster_{count} {{"
        count += 1
        yield "  " * (depth + 1) + f"label={_scope(key[0], around, report)};"
        waiting.append((key[0], iter(value.items())))


def _scope(path: str, around: str, report: Report) -> str:
    kind = report.graph.modules.get(path, "")
    return quoted(f"{_own(path, around)}  {kind}".rstrip())


def _own(name: str, around: str) -> str:
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
    name = _own(layer.name, around)
    lines = [name, f"{layer.op} {window}" if window else layer.op, shapes]
    if layer.status == "unknown":
        lines.append("costs unknown")
    else:
        costs = [(layer.params, "params"), (layer.ops.mac, "MACs")]
        text = " · ".join(f"{short_text(value)} {unit}" for value, unit in costs if value)
        lines += [text] if text else []
    return _joined(lines)


def _tensor(tensor: Tensor) -> str:
    return _joined([tensor.name, tensor_text(tensor)])


def _joined(lines: list[str]) -> str:
    return '"' + "\\n".join(quoted(line)[1:-1] for line in lines) + '"'
