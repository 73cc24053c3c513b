"""The matrix products and convolutions of a network as loop nests, for accelerator simulators.

A convolution over one or two axes keeps its window; every other product (linear layers, products
of tensors, attention, transposed and 3-D convolution) is `count` times m x k by k x n. The loops of
each multiply to the multiply-adds of its layer; a layer where they do not is left out, and
`left_out` names it.
"""

from __future__ import annotations

from msgspec import Struct

from layerscope.graph.attributes import Conv
from layerscope.ops import Gemm
from layerscope.report.numbers import share_text
from layerscope.report.types import Layer, Report


class LoopAxis(Struct, frozen=True):
    """One spatial axis of a convolution."""

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    input: int = 1
    output: int = 1


class ConvLoops(Struct, frozen=True):
    """The loops of a convolution; channels are per group."""

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    y: LoopAxis
    x: LoopAxis


class LoopNest(Struct, frozen=True):
    """The loops of one matrix product of a layer; `window` if it is a convolution."""

    name: str
    layer: Layer
    gemm: Gemm
    window: ConvLoops | None = None

    @property
    def macs(self) -> int:
        """Multiply-adds: all its loops multiplied."""
        return self.gemm.m * self.gemm.n * self.gemm.k * self.gemm.count


def loop_nests(report: Report) -> list[LoopNest]:
    """The loop nests of every layer that consists of products, in order of execution."""
    return [nest for layer in report.layers for nest in layer_nests(layer)]


def layer_nests(layer: Layer) -> tuple[LoopNest, ...]:
    """The loop nests of a layer; () if they do not cover all of its multiply-adds."""
    gemm, macs = layer.gemm, layer.cost.ops.mac
    if gemm is None or not macs:
        return ()
    if layer.op == "attention":
        found = _attention(layer, gemm, macs)
    else:
        found = (LoopNest(layer.name, layer, gemm, _window(layer)),)
    return found if sum(nest.macs for nest in found) == macs else ()


def _attention(layer: Layer, scores: Gemm, macs: int) -> tuple[LoopNest, ...]:
    """Queries by keys, then scores by values; the value width follows from the MACs left."""
    score_count = scores.m * scores.n * scores.count
    width = macs // score_count - scores.k
    values = Gemm(scores.m, width, scores.n, scores.count)
    return (
        LoopNest(f"{layer.name}.scores", layer, scores),
        LoopNest(f"{layer.name}.values", layer, values),
    )


def _window(layer: Layer) -> ConvLoops | None:
    attrs, call = layer.node.attributes, layer.call
    if layer.op != "conv" or not isinstance(attrs, Conv) or call is None or attrs.window.rank > 2:
        return None
    window = attrs.window
    pads = window.resolve(call.x[2:])
    axes = [
        LoopAxis(*each)
        for each in zip(
            window.kernel, window.stride, window.dilation, pads, call.x[2:], call.y[2:], strict=True
        )
    ]
    return ConvLoops(
        batch=call.x[0],
        groups=attrs.groups,
        in_channels=call.x[1] // attrs.groups,
        out_channels=attrs.out_channels // attrs.groups,
        y=axes[0] if len(axes) == 2 else LoopAxis(),
        x=axes[-1],
    )


def left_out(report: Report) -> str:
    """A line that counts the layers without loop nests by op, most first; "" if there are none."""
    counts: dict[str, int] = {}
    macs = 0
    for layer in report.layers:
        if not layer_nests(layer):
            counts[layer.op] = counts.get(layer.op, 0) + 1
            macs += layer.cost.ops.mac
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    line = "left out: " + ", ".join(f"{count} {op}" for op, count in ordered)
    if macs:
        total = sum(layer.cost.ops.mac for layer in report.layers)
        line += f"; {share_text(macs, total, report.sign('macs'))} of the MACs are theirs"
    return line
