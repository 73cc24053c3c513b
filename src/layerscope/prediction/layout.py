"""Which rows an engine runs on images in blocks of channels, and where images change their layout.

Told from the source graph alone, as ONNX Runtime decides it: convolutions go over to blocks where
their channels allow it, pools where these fill whole blocks, and what works element by element
stays in what it is given. A tensor that somebody reads in the other layout is reordered once, and
the time of that is with the layer that makes it; inputs of the network that are reordered, which
images of few channels are not, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from layerscope.graph.attributes import Window
from layerscope.report import Layer, Report

Row = Sequence[Layer]
Wish = Literal["blocks", "plain"]

ALIGNED = 4  # channels that a reorder moves at once: blocks are filled up from there on
POOLS = ("max_pool", "avg_pool", "global_avg_pool", "global_max_pool", "adaptive_avg_pool")
BY_ELEMENT = (
    "relu", "relu6", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "hard_swish", "silu", "clip",
    "batch_norm", "add", "mul",
)  # fmt: skip
HANDED_ON = ("dropout", "identity")


class Layouts(Struct, frozen=True):
    """Layers that run in blocks, and bytes that are reordered, by the layer that makes them."""

    blocked: frozenset[str]
    reordered: Mapping[str, tuple[int, ...]]
    block: int  # channels that are held together: fewer are filled up

    def filled(self, layer: str, channels: int) -> int:
        """Channels that a layer works on to make so many."""
        return -(-channels // self.block) * self.block if layer in self.blocked else channels


NONE = Layouts(frozenset(), {}, 0)


def layouts_of(report: Report, rows: Iterable[Row], block: int) -> Layouts:
    """How rows of a network lie; with a block of 0 the engine has no such layout."""
    if not block or report.dtype != "fp32":  # of other numbers there are no blocks
        return NONE
    walk = _Walk(report, block)
    for row in rows:
        walk.row(row)
    return walk.found()


class _Walk:
    """Rows in order of execution."""

    def __init__(self, report: Report, block: int) -> None:
        self.report, self.block = report, block
        self.blocked: set[str] = set()
        self.tensors: dict[str, bool] = {}  # in blocks or not
        self.wishes: dict[str, set[Wish]] = {}
        self.seen: set[str] = set()  # layers that are in a row
        self.handed = {
            layer.node.outputs[0]: layer.node.inputs[0]
            for layer in report.layers
            if layer.op in HANDED_ON
        }

    def row(self, row: Row) -> None:
        first = row[0]
        self.seen.update(layer.name for layer in row)
        inside = {name for layer in row for name in layer.node.outputs}
        given = [
            self._made(tensor.name)
            for layer in row
            for tensor in layer.inputs
            if tensor.name not in inside and tensor.shape is not None and len(tensor.shape) == 4
        ]
        blocks = self._in_blocks(first, given)
        wish: Wish = "blocks" if blocks else "plain"
        for n, name in enumerate(given):
            direct = n == 0 and first.op == "conv" and first.call and first.call.x[1] < self.block
            self.wishes.setdefault(name, set()).add("plain" if direct else wish)
        for name in inside:
            self.tensors[name] = blocks
        if blocks:
            self.blocked.update(layer.name for layer in row)

    def _made(self, name: str) -> str:
        """What a tensor is that is only handed on."""
        while name in self.handed:
            name = self.handed[name]
        return name

    def _in_blocks(self, first: Layer, given: list[str]) -> bool:
        call = first.call
        if call is None or not call.outputs or len(call.y) != 4:
            return False
        if first.op == "conv":
            return self._convolves_in_blocks(first)
        if first.op in POOLS:
            return call.x[1] % self.block == 0 and self._all(given)
        if first.op == "concat":
            return self._all(given) and all(shape[1] % self.block == 0 for shape in call.inputs)
        alike = len(set(call.inputs)) == 1
        return first.op in BY_ELEMENT and alike and self._all(given)

    def _all(self, given: list[str]) -> bool:
        return bool(given) and all(self.tensors.get(name, False) for name in given)

    def _convolves_in_blocks(self, layer: Layer) -> bool:
        call = layer.call
        assert call is not None
        window: Window = layer.node.attributes.window
        if window.rank != 2:
            return False
        groups: int = layer.node.attributes.groups
        channels, made = call.x[1], call.y[1]
        if groups == 1:
            return channels < self.block or channels % ALIGNED == 0
        if groups == channels == made:
            return made % ALIGNED == 0
        return (channels // groups) % self.block == 0 == (made // groups) % self.block

    def found(self) -> Layouts:
        report = self.report
        for name in report.graph.outputs:
            self.wishes.setdefault(self._made(name), set()).add("plain")
        for layer in report.layers:  # views and what else is in no row
            if layer.name not in self.seen and layer.op not in HANDED_ON:
                for given in layer.node.inputs:
                    self.wishes.setdefault(self._made(given), set()).add("plain")
        moved: dict[str, tuple[int, ...]] = {}
        for layer in report.layers:
            for tensor in layer.outputs:
                other: Wish = "plain" if self.tensors.get(tensor.name, False) else "blocks"
                if other in self.wishes.get(tensor.name, ()) and len(tensor.shape or ()) == 4:
                    moved[layer.name] = (*moved.get(layer.name, ()), tensor.bytes)
        return Layouts(frozenset(self.blocked), moved, self.block)
