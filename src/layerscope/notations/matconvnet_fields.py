"""Receptive fields as a DagNN computes them: size, stride and centre per variable, or none."""

from __future__ import annotations

from fractions import Fraction

from layerscope.analysis.fields import Number
from layerscope.graph.attributes import Window
from layerscope.ops import SPECS
from layerscope.ops.access_map import SAME
from layerscope.ops.convolution import transposed_pads
from layerscope.report import Report
from layerscope.report.types import Layer

AxisField = tuple[Number, Number, Number]  # size, stride, centre counted from 1
Axes = list[AxisField]  # empty: not a sliding window
UNIT: AxisField = (1, 1, 1)


def fields(report: Report) -> dict[str, dict[str, Axes]]:
    """Fields by input and tensor, for the tensors that depend on the input."""
    found: dict[str, dict[str, Axes]] = {}
    for tensor in report.inputs:
        rank = max(len(tensor.shape or ()) - 2, 2)
        found[tensor.name] = {tensor.name: [UNIT] * rank}
    for layer in report.layers:
        for seen in found.values():
            for n, output in enumerate(layer.outputs):
                parts: list[Axes] = []
                for index, source in enumerate(layer.inputs):
                    own = _field_of(layer, index, n)
                    if source.name in seen and own is not None:
                        parts.append(_through(seen[source.name], own))
                if parts:
                    seen[output.name] = _union(parts)
    return found


def _field_of(layer: Layer, index: int, output: int) -> Axes | None:
    """The field of one output position in an input; None if only the size of the input is used."""
    call, a = layer.call, layer.node.attributes
    if call is None or SPECS[layer.op].family == "loss":
        return []
    window: Window | None = getattr(a, "window", None)
    if layer.op == "conv_transpose" and window is not None:
        axes: Axes = []
        for n, (crop, _) in enumerate(transposed_pads(call)):
            extent, up = window.extents[n], window.stride[n]
            size, step = Fraction(extent - 1, up) + 1, Fraction(1, up)
            axes.append((size, step, Fraction(2 * crop - extent + 1, 2 * up) + 1))
        return _two_axes(axes)
    if window is not None:
        pads = window.resolve(call.x[2:])
        return _two_axes(
            [
                (extent, step, 1 - before + Fraction(extent - 1, 2))
                for extent, step, (before, _) in zip(
                    window.extents, window.stride, pads, strict=True
                )
            ]
        )
    if layer.op.startswith("global_"):
        return _two_axes([(size, 1, Fraction(size + 1, 2)) for size in call.x[2:]])
    if layer.op == "crop":
        offsets = a.offsets * (2 // len(a.offsets)) if len(a.offsets) <= 2 else a.offsets
        return None if index else [(1, 1, 1 + offset) for offset in offsets]
    access = SPECS[layer.op].access_map(call)
    mapped = access[index if len(call.outputs) == 1 else output]
    shape = call.inputs[index]
    even = all(mapped.get(n) == (n, SAME) for n in range(2, len(shape)))
    return [UNIT] * max(len(shape) - 2, 2) if even and len(shape) > 2 else []


def _two_axes(axes: Axes) -> Axes:
    return [*axes, *[UNIT] * (2 - len(axes))]


def _through(before: Axes, own: Axes) -> Axes:
    if not before or not own or len(before) != len(own):
        return []
    return [
        (step * (size - 1) + whole, step * stride, step * (centre - 1) + start)
        for (whole, step, start), (size, stride, centre) in zip(before, own, strict=True)
    ]


def _union(parts: list[Axes]) -> Axes:
    """The smallest field that covers all branches; none if one has none or strides differ."""
    if not all(parts) or len({tuple(axis[1] for axis in axes) for axes in parts}) > 1:
        return []
    joined: Axes = []
    for axes in zip(*parts, strict=True):
        first = min(centre - Fraction(size - 1, 2) for size, _, centre in axes)
        last = max(centre + Fraction(size - 1, 2) for size, _, centre in axes)
        joined.append((last - first + 1, axes[0][1], Fraction(first + last, 2)))
    return joined
