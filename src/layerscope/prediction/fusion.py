"""Which layers an engine runs as one row, by its fusion rules."""

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


def fused_rows(report: Report, rules: EngineRules) -> list[tuple[Layer, ...]]:
    """Rows in order: products with their norm, sum and activation; views are in no row."""
    return _RowFusion(report, rules).rows()


class _RowFusion:
    """Walks the layers of a report and groups those that are fused."""

    def __init__(self, report: Report, rules: EngineRules) -> None:
        self._layers, self._rules = report.layers, rules
        self._outputs = set(report.graph.outputs)
        self._position = {layer.name: n for n, layer in enumerate(report.layers)}
        self._producer = {name: layer for layer in report.layers for name in layer.node.outputs}
        self._readers: dict[str, list[Layer]] = {}
        for layer in report.layers:
            for name in layer.node.inputs:
                self._readers.setdefault(name, []).append(layer)
        self._taken: set[str] = set()  # layers that are in a row, or dropped

    def rows(self) -> list[tuple[Layer, ...]]:
        """All rows in order."""
        rows = []
        for layer in self._layers:
            if layer.name in self._taken or layer.op in FREE:
                continue
            row = self._row_of(layer)
            self._taken.update(each.name for each in row)
            rows.append(tuple(row))
        return rows

    def _row_of(self, layer: Layer) -> list[Layer]:
        if layer.op in PRODUCTS:
            return self._product_row(layer)
        if layer.op == "permute":
            return self._permute_row(layer)
        if layer.op == "batch_norm" and self._rules.norm_relu:
            after = self._only_reader(layer)
            return [layer, after] if after and after.op == "relu" else [layer]
        return [layer]

    def _product_row(self, layer: Layer) -> list[Layer]:
        """A product with the norm, the sum and the activation that are fused into it."""
        row = [layer]
        after = self._only_reader(layer)
        if after is not None and after.op in NORMS:
            row.append(after)
            after = self._only_reader(after)
        if after and after.op == "add" and self._sum_convolution(after) is layer:
            row.append(after)
            after = self._only_reader(after)
        if after is not None and after.op in _fused_activations(layer, self._rules):
            row.append(after)
        return row

    def _permute_row(self, layer: Layer) -> list[Layer]:
        """A permute, views and a second permute if the engine does them as one copy."""
        row = [layer]
        while (after := self._only_reader(row[-1])) is not None and after.op in VIEWS:
            row.append(after)
        if after is not None and after.op == "permute" and contiguous_run([*row, after]):
            return [*row, after]
        return [layer]

    def _only_reader(self, layer: Layer) -> Layer | None:
        """The only reader of a layer, past dropout and identity layers."""
        out = layer.node.outputs[0]
        found = self._readers.get(out, [])
        if len(layer.node.outputs) > 1 or len(found) != 1 or out in self._outputs:
            return None
        if found[0].op in DROPPED:
            self._taken.add(found[0].name)
            return self._only_reader(found[0])
        return found[0] if found[0].name not in self._taken else None

    def _sum_convolution(self, add: Layer) -> Layer | None:
        """The convolution that a sum of two tensors of one shape is fused into."""
        if len({tensor.shape for tensor in add.inputs}) != 1 or len(add.inputs) != 2:
            return None
        found = [conv for name in add.node.inputs if (conv := self._convolution_of(name, add))]
        in_blocks = [conv for conv in found if convolves_in_blocks(conv, self._rules)]
        rule = self._rules.sums_in_blocks if in_blocks else self._rules.sums_plain
        found = in_blocks or found
        if not rule or not found:
            return None
        if rule == "first operand":
            return found[0]
        return min(found, key=lambda conv: self._position[conv.name])

    def _convolution_of(self, name: str, add: Layer) -> Layer | None:
        """The convolution whose output, normalized or not, is read by the sum alone."""
        layer = self._producer.get(name)
        while layer is not None and len(self._readers[name]) == 1 and name not in self._outputs:
            if layer.op == "conv":
                return layer if layer.output == add.output else None
            if layer.op not in (*NORMS, *DROPPED):
                return None
            name = layer.node.inputs[0]
            layer = self._producer.get(name)
        return None


def _fused_activations(layer: Layer, rules: EngineRules) -> tuple[str, ...]:
    """Activations that are fused into a product."""
    if layer.op == "conv":
        return rules.after_conv
    if layer.op == "linear":
        return rules.after_linear if len(layer.output or ()) == 2 else rules.after_linear_3d
    return ()


def contiguous_run(row: Sequence[Layer]) -> int:
    """Elements that stay contiguous through permutes; 0 if the views between them join axes.

    Views between two permutes may split axes, as in a channel shuffle: the engine then copies once.
    """
    axes = _axes(row[0].inputs[0].shape or ())
    for layer in row:
        if layer.op != "permute":
            continue
        split = _split_axes(axes, layer.inputs[0].shape or ())
        if split is None:
            return 0
        axes = [split[n] for n in layer.node.attributes.order]
    run = 1
    for size, step in reversed(axes):
        if step != run and size > 1:
            break
        run *= size
    return run


def _axes(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes and strides of a contiguous tensor."""
    axes, step = [], 1
    for size in reversed(shape):
        axes.append((size, step))
        step *= size
    return axes[::-1]


def _split_axes(
    axes: Sequence[tuple[int, int]], shape: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Sizes and strides of a view that only splits axes; None for another view."""
    left = list(shape)
    found: list[tuple[int, int]] = []
    for size, step in axes:
        inner, covered = [], 1
        while left and (covered < size or left[0] == 1):
            inner.append(left.pop(0))
            covered *= inner[-1]
        if covered != size:
            return None
        found += [(each, step * apart) for each, apart in _axes(inner)]
    return None if left else found
