"""Rows of Keras' `model.summary()`: inputs and layers in Keras' order, with channels last.

- Keras lists the layers of a functional model by their distance from the outputs, farthest first;
  layers of one distance in the order in which a depth-first search from the outputs meets them.
- Shapes are (batch, sizes, channels). The channels of a tensor are on its second axis if a
  convolution, a pool or a batch norm reads or writes it; on its last after linear layers,
  embeddings and recurrent layers; other ops keep them. The first axis is `None` where it is the
  batch.
- `Param #` counts the statistics of batch norms too, which are weights in Keras. A tied array is
  counted in the first layer that uses it. It does not depend on the convention.
- A layer has the class that Keras has for it, and else the name of the op.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from layerscope.analysis.costs import storage_of
from layerscope.escaping import visible
from layerscope.graph.types import Param, Shape, Tensor, is_floating
from layerscope.ops import SPECS, display_name
from layerscope.report import Layer, Report
from layerscope.report.numbers import ABOUT

# Families of ops whose first input and output have their channels on axis 1, or on the last axis.
SPATIAL = ("convolution", "pooling", "resizing")
CHANNELS_LAST = ("linear", "recurrent", "attention")


class KerasRow(Struct, frozen=True):
    """An input or a layer; `shapes` are the texts of its output shapes."""

    name: str
    kind: str
    shapes: tuple[str, ...]
    params: int | None  # None: unknown
    sources: tuple[str, ...]  # `name[0][0]` of every input

    @property
    def title(self) -> str:
        """Name and class."""
        return f"{visible(self.name)} ({visible(self.kind)})"


class KerasTotals(Struct, frozen=True):
    """Elements and bytes of all arrays of the network, and whether some are unknown."""

    trainable: int
    trainable_bytes: int
    other: int
    other_bytes: int
    complete: bool


class KerasModel(Struct, frozen=True):
    """The rows in Keras' order; a chain has no column `Connected to`."""

    rows: tuple[KerasRow, ...]
    is_chain: bool
    totals: KerasTotals


def keras_model(report: Report) -> KerasModel:
    """Rows and totals of a report."""
    axes = _channel_axes(report)
    sources: dict[str, tuple[int, int]] = {}  # tensor -> row that computes it, number of its output
    inputs = report.graph.inputs
    for row, tensor in enumerate(inputs):
        sources[tensor.name] = (row, 0)
    for row, layer in enumerate(report.layers, len(inputs)):
        sources.update({name: (row, n) for n, name in enumerate(layer.node.outputs)})
    used = {name for layer in report.layers for name in layer.node.inputs}
    used |= set(report.graph.outputs)

    def shapes(tensors: Iterable[Tensor], sign: str = "") -> tuple[str, ...]:
        return tuple([sign + _shape_text(t.shape, axes[t.name], report.batch) for t in tensors])

    names = [tensor.name for tensor in inputs] + [layer.name for layer in report.layers]
    rows = [KerasRow(t.name, "InputLayer", shapes((t,)), 0, ()) for t in inputs]
    parents: list[tuple[int, ...]] = [() for _ in inputs]
    for layer in report.layers:
        found = [sources[name] for name in layer.node.inputs if name in sources]
        parents.append(tuple([row for row, _ in found]))
        outputs = [t for t in layer.outputs if t.name in used] or layer.outputs[:1]
        rows.append(
            KerasRow(
                layer.name,
                class_name(layer),
                shapes(outputs, ABOUT if layer.has_estimated_sizes else ""),
                _count(layer) if report.params_known(layer.node) else None,
                tuple([f"{visible(names[row])}[0][{n}]" for row, n in found]),
            )
        )
    ends = [sources[name][0] for name in report.graph.outputs if name in sources]
    order, depths = _keras_order(parents, ends, len(inputs))
    is_chain = len(set(depths)) == len(depths) and max(map(len, parents), default=0) < 2
    return KerasModel(tuple([rows[n] for n in order]), is_chain, _totals(report))


def class_name(layer: Layer) -> str:
    """The class of Keras that computes a layer, or the name of its op if there is none."""
    a, call = layer.node.attributes, layer.call
    op, name = layer.op, display_name(layer.op, "keras")
    window = getattr(a, "window", None)
    rank = window.rank if window is not None else None if call is None else len(call.x) - 2
    if op.startswith("adaptive_") and set(a.output) == {1}:
        name = display_name(op.replace("adaptive", "global"), "keras")
    elif op == "conv" and call is not None and a.groups == call.x[1] > 1:
        name = "DepthwiseConv{}D"
    elif op == "pad" and (a.mode != "constant" or any(map(any, a.pads[:2]))):
        name = None
    elif op == "resize" and call is not None and _is_fractional(call.x[2:], call.y[2:]):
        name = "Resizing"
    elif getattr(a, "bidirectional", False):
        name = "Bidirectional"
    if name is None or ("{}" in name and rank is not None and not 1 <= rank <= 3):
        return op
    return name.format("?" if rank is None else rank)


def _is_fractional(before: Shape, after: Shape) -> bool:
    return any(new % old for old, new in zip(before, after, strict=True))


def _shape_text(shape: Shape | None, axis: int, batch: int) -> str:
    """A shape as Python prints a tuple, channels last."""
    if shape is None:
        return "?"
    sizes = [*shape[:axis], *shape[axis + 1 :], *shape[axis : axis + 1]]
    texts = ["None" if n == 0 and size == batch else str(size) for n, size in enumerate(sizes)]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


# -- layout


def _channel_axes(report: Report) -> dict[str, int]:
    """The channel axis of each tensor; 0 and the last axis leave its shape as it is."""
    maps = _maps(report)
    axes: dict[str, int] = {}
    for tensor in report.graph.inputs:
        rank = len(tensor.shape or ())
        image = tensor.name in maps or (rank > 3 and is_floating(tensor.dtype))
        axes[tensor.name] = 1 if image else max(rank - 1, 0)
    for layer in report.layers:
        for tensor in layer.outputs:
            last = max(len(tensor.shape or ()) - 1, 0)
            found = 1 if tensor.name in maps else _axis_after(layer, axes, last)
            axes[tensor.name] = min(found, last)
    return axes


def _maps(report: Report) -> set[str]:
    """Tensors whose channels are on axis 1: what spatial layers read, and what becomes that."""
    found: set[str] = set()
    for layer in reversed(report.layers):
        if layer.inputs and _is_spatial(layer):
            found.add(layer.node.inputs[0])
        elif _keeps_axes(layer) and any(tensor.name in found for tensor in layer.outputs):
            rank = len(layer.output or ())
            found |= {t.name for t in layer.inputs if t.shape is not None and len(t.shape) == rank}
    return found


def _keeps_axes(layer: Layer) -> bool:
    """Whether the axes of a layer's output are those of its inputs."""
    spec = SPECS.get(layer.op)
    given = layer.inputs[0].shape if layer.inputs else None
    if (
        spec is None
        or given is None
        or layer.output is None
        or layer.op in ("embedding", "permute")
    ):
        return False
    if spec.family in CHANNELS_LAST or len(given) != len(layer.output):
        return False
    return not spec.view or given == layer.output


def _is_spatial(layer: Layer) -> bool:
    spec = SPECS.get(layer.op)
    return layer.op == "batch_norm" or (spec is not None and spec.family in SPATIAL)


def _axis_after(layer: Layer, axes: Mapping[str, int], last: int) -> int:
    """The channel axis of a layer's output, whose last axis is `last`."""
    spec = SPECS.get(layer.op)
    given = layer.inputs[0].shape if layer.inputs else None
    if spec is None or given is None or layer.output is None:
        return last
    if spec.family in SPATIAL:
        return 1
    axis = axes.get(layer.node.inputs[0], len(given) - 1)
    if layer.op == "embedding" or spec.family in CHANNELS_LAST:
        return last
    if layer.op == "permute":
        return int(layer.node.attributes.order.index(axis)) or last
    if _keeps_axes(layer):
        return axis
    return 1 if axis == 1 < last and given[1] == layer.output[1] else last


# -- order


def _keras_order(
    parents: list[tuple[int, ...]], ends: list[int], inputs: int
) -> tuple[list[int], list[int]]:
    """Rows in the order of Keras, and the distance of each from the outputs.

    A row that no output depends on, which Keras does not have, counts as a further output.
    """
    depths = [0] * len(parents)
    read = set()
    for row in range(len(parents) - 1, -1, -1):
        for parent in parents[row]:
            depths[parent] = max(depths[parent], depths[row] + 1)
            read.add(parent)
    ends = [*ends, *(row for row in range(inputs, len(parents)) if row not in read)]
    met: dict[int, int] = {}
    waiting = ends[::-1]
    while waiting:
        row = waiting.pop()
        if row not in met:
            met[row] = len(met)
            waiting += parents[row][::-1]
    order = sorted(range(len(parents)), key=lambda row: (-depths[row], met.get(row, -1)))
    return order, depths


# -- arrays


def _is_weight(param: Param) -> bool:
    """Whether an array is a weight in Keras: not the batches that PyTorch's batch norm counts."""
    return param.learnable or (param.role == "statistic" and is_floating(param.dtype))


def _count(layer: Layer) -> int:
    return sum([param.elements for param in layer.cost.first if _is_weight(param)])


def _totals(report: Report) -> KerasTotals:
    arrays = [
        (storage_of(layer.node, param, layer.node.ties), param)
        for layer in report.layers
        for param in layer.cost.first
    ]
    arrays += [(param.storage or param.name, param) for param in report.graph.unused]
    trained: list[Param] = []
    other: list[Param] = []
    for storage, param in arrays:
        if _is_weight(param):
            fixed = storage in report.graph.frozen or not param.learnable
            (other if fixed else trained).append(param)
    return KerasTotals(
        sum([param.elements for param in trained]),
        sum([param.bytes for param in trained]),
        sum([param.elements for param in other]),
        sum([param.bytes for param in other]),
        report.params_complete,
    )
