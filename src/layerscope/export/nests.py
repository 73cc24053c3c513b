"""What accelerator simulators understand of a network: its products, as nests of loops.

A convolution over one or two axes keeps its window; every other product (linear layers, products
of tensors, attention, transposed and 3-D convolution) is `count` times m x k by k x n. The loops of
each multiply to the multiply-adds of its layer, or the layer is left out and told.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from layerscope.graph.attributes import Conv
from layerscope.ops import Gemm
from layerscope.report.numbers import percent_text
from layerscope.report.types import Layer, Report


class Axis(Struct, frozen=True):
    """One axis that a window slides along."""

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    input: int = 1
    output: int = 1


class Window(Struct, frozen=True):
    """A convolution: channels are those of one group."""

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    y: Axis
    x: Axis


class Nest(Struct, frozen=True):
    """The loops of one product of a layer; `window` where it is a convolution."""

    name: str
    layer: Layer
    gemm: Gemm
    window: Window | None = None

    @property
    def macs(self) -> int:
        """Multiply-adds: all its loops multiplied."""
        return self.gemm.m * self.gemm.n * self.gemm.k * self.gemm.count


def nests(report: Report) -> list[Nest]:
    """The products of every layer that consists of products, in order of execution."""
    return [nest for layer in report.layers for nest in layer_nests(layer)]


def layer_nests(layer: Layer) -> tuple[Nest, ...]:
    """The products of a layer, none where it has none or where they are not all it does."""
    gemm, macs = layer.gemm, layer.cost.ops.mac
    if gemm is None or not macs:
        return ()
    if layer.op == "attention":
        found = _attention(layer, gemm, macs)
    else:
        found = (Nest(layer.name, layer, gemm, _window(layer)),)
    return found if sum(nest.macs for nest in found) == macs else ()


def _attention(layer: Layer, scores: Gemm, macs: int) -> tuple[Nest, ...]:
    """Queries by keys, then what that gives by values; the width of values is in the rest."""
    places = scores.m * scores.n * scores.count
    width = macs // places - scores.k
    values = Gemm(scores.m, width, scores.n, scores.count)
    return (
        Nest(f"{layer.name}.scores", layer, scores),
        Nest(f"{layer.name}.values", layer, values),
    )


def _window(layer: Layer) -> Window | None:
    told, call = layer.node.attributes, layer.call
    if layer.op != "conv" or not isinstance(told, Conv) or call is None or told.window.rank > 2:
        return None
    window = told.window
    pads = window.resolve(call.x[2:])
    axes = [
        Axis(*each)
        for each in zip(
            window.kernel, window.stride, window.dilation, pads, call.x[2:], call.y[2:], strict=True
        )
    ]
    return Window(
        batch=call.x[0],
        groups=told.groups,
        in_channels=call.x[1] // told.groups,
        out_channels=told.out_channels // told.groups,
        y=axes[0] if len(axes) == 2 else Axis(),
        x=axes[-1],
    )


def left_out(report: Report) -> str:
    """What no simulator is told of, counted by op, most first; empty if nothing is left out."""
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
        from fractions import Fraction

        total = sum(layer.cost.ops.mac for layer in report.layers)
        line += f"; {percent_text(Fraction(macs, total))}% of the MACs are theirs"
    return line


def unique(names: Iterable[str]) -> list[str]:
    """Names told apart by a number where two are alike."""
    taken: set[str] = set()
    found = []
    for name in names:
        free, number = name, 1
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free)
        found.append(free)
    return found
