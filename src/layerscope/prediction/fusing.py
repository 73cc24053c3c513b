"""Which layers an engine would run as one, worked out from the source graph by its rules."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.prediction.engine_rules import EngineRules
from layerscope.prediction.layout import convolves_in_blocks
from layerscope.report import Layer, Report

PRODUCTS = ("conv", "conv_transpose", "linear")
NORMS = ("batch_norm", "scale", "bias")
VIEWS = ("flatten", "reshape", "squeeze", "unsqueeze")
DROPPED = ("dropout", "identity")
FREE = ("table", "positions", *DROPPED, *VIEWS)


def rows_of(report: Report, rules: EngineRules) -> list[tuple[Layer, ...]]:
    """Rows in order: products with norm, sum and activation after them; views are in none."""
    readers: dict[str, list[Layer]] = {}
    for layer in report.layers:
        for name in layer.node.inputs:
            readers.setdefault(name, []).append(layer)
    final = set(report.graph.outputs)
    place = {layer.name: n for n, layer in enumerate(report.layers)}
    taken: set[str] = set()
    rows = []

    def next_of(layer: Layer) -> Layer | None:
        """The only reader of a layer, past dropped ones."""
        out = layer.node.outputs[0]
        found = readers.get(out, [])
        if len(layer.node.outputs) > 1 or len(found) != 1 or out in final:
            return None
        if found[0].op in DROPPED:
            taken.add(found[0].name)
            return next_of(found[0])
        return found[0] if found[0].name not in taken else None

    made_by = {name: layer for layer in report.layers for name in layer.node.outputs}

    def convolution_of(name: str, add: Layer) -> Layer | None:
        """The convolution whose result a sum alone reads, normed or not, past dropped layers."""
        made = made_by.get(name)
        while made is not None and len(readers[name]) == 1 and name not in final:
            if made.op == "conv":
                return made if made.output == add.output else None
            if made.op not in (*NORMS, *DROPPED):
                return None
            name = made.node.inputs[0]
            made = made_by.get(name)
        return None

    def taker_of(add: Layer) -> Layer | None:
        """The convolution that a sum of two tensors of one shape is fused into."""
        if len({tensor.shape for tensor in add.inputs}) != 1 or len(add.inputs) != 2:
            return None
        found = [conv for name in add.node.inputs if (conv := convolution_of(name, add))]
        in_blocks = [conv for conv in found if convolves_in_blocks(conv, rules)]
        taker = rules.sums_in_blocks if in_blocks else rules.sums_plain
        found = in_blocks or found
        if not taker or not found:
            return None
        if taker == "first operand":
            return found[0]
        return min(found, key=lambda conv: place[conv.name])

    for layer in report.layers:
        if layer.name in taken or layer.op in FREE:
            continue
        row = [layer]
        if layer.op in PRODUCTS:
            after = next_of(layer)
            if after is not None and after.op in NORMS:
                row.append(after)
                after = next_of(after)
            if after and after.op == "add" and taker_of(after) is layer:
                row.append(after)
                after = next_of(after)
            if after is not None and after.op in _after(layer, rules):
                row.append(after)
        elif layer.op == "permute":
            more = [layer]
            while (after := next_of(more[-1])) is not None and after.op in VIEWS:
                more.append(after)
            if after is not None and after.op == "permute" and run_of([*more, after]):
                row = [*more, after]
        elif layer.op == "batch_norm" and rules.norm_relu:
            after = next_of(layer)
            row += [after] if after and after.op == "relu" else []
        taken.update(each.name for each in row)
        rows.append(tuple(row))
    return rows


def _after(layer: Layer, rules: EngineRules) -> tuple[str, ...]:
    """Activations that a product applies to its result."""
    if layer.op == "conv":
        return rules.after_conv
    if layer.op == "linear":
        return rules.after_linear if len(layer.output or ()) == 2 else rules.after_linear_3d
    return ()


def run_of(row: Sequence[Layer]) -> int:
    """Elements that stay side by side when axes are exchanged; 0 where that cannot be told.

    Between two exchanges axes may be parted, as where channels are shuffled: the engine then
    exchanges once.
    """
    axes = _axes(row[0].inputs[0].shape or ())
    for layer in row:
        if layer.op != "permute":
            continue
        parted = _parted(axes, layer.inputs[0].shape or ())
        if parted is None:
            return 0
        axes = [parted[n] for n in layer.node.attributes.order]
    run = 1
    for size, step in reversed(axes):
        if step != run and size > 1:
            break
        run *= size
    return run


def _axes(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes, and how far elements lie apart."""
    axes, step = [], 1
    for size in reversed(shape):
        axes.append((size, step))
        step *= size
    return axes[::-1]


def _parted(axes: Sequence[tuple[int, int]], shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """The axes of a view that parts some and joins none; None where it is another."""
    left = list(shape)
    found: list[tuple[int, int]] = []
    for size, step in axes:
        inner, held = [], 1
        while left and (held < size or left[0] == 1):
            inner.append(left.pop(0))
            held *= inner[-1]
        if held != size:
            return None
        found += [(each, step * apart) for each, apart in _axes(inner)]
    return None if left else found
