"""Which rows run on images in blocks of channels (NCHWc), and which tensors are reordered.

Follows the rules that calibration found for the engine on this processor: convolutions and pools
use blocks if their channels allow it, elementwise ops keep the layout of their inputs. A tensor
that is read in the other layout is reordered once; the time counts for the layer that produces it.
Reorders of the network's inputs are left out; images of few channels have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from layerscope.prediction.engine_rules import NO_RULES, EngineRules
from layerscope.report import Layer, Report

Row = Sequence[Layer]
ImageLayout = Literal["blocks", "plain"]

PASSED_THROUGH = ("dropout", "identity")


class Layouts(Struct, frozen=True):
    """Layers that run in blocks, and bytes that are reordered by the layer that produces them."""

    blocked: frozenset[str]
    reordered: Mapping[str, tuple[int, ...]]
    rules: EngineRules

    def filled(self, layer: str, channels: int) -> int:
        """Channels that a layer computes: in blocks, a multiple of the block size."""
        block = self.rules.block
        return -(-channels // block) * block if layer in self.blocked else channels

    def reads_plain(self, channels: int) -> bool:
        """Whether a convolution of that many input channels reads an unblocked image."""
        return channels < self.rules.direct


NONE = Layouts(frozenset(), {}, NO_RULES)


def layouts_of(report: Report, rows: Iterable[Row], rules: EngineRules) -> Layouts:
    """Layouts of the rows of a network."""
    if not rules.block or report.float_dtype != "fp32":  # other dtypes have no blocks
        return Layouts(frozenset(), {}, rules)
    walk = _LayoutWalk(report, rules)
    for row in rows:
        walk.row(row)
    return walk.found()


def convolves_in_blocks(layer: Layer, rules: EngineRules) -> bool:
    """Whether a convolution runs in blocks, by its channels."""
    call = layer.call
    if not rules.block or call is None or layer.node.attributes.window.rank != 2:
        return False
    groups: int = layer.node.attributes.groups
    channels, outputs = call.x[1], call.y[1]
    if groups == 1:
        return channels < rules.direct or _divides(rules.conv_multiple, channels)
    if groups == channels == outputs:
        return _divides(rules.depthwise_multiple, outputs)
    return all(_divides(rules.group_multiple, each // groups) for each in (channels, outputs))


class _LayoutWalk:
    """Rows in order of execution."""

    def __init__(self, report: Report, rules: EngineRules) -> None:
        self.report, self.rules = report, rules
        self.blocked: set[str] = set()
        self.tensors: dict[str, bool] = {}  # in blocks or not
        self.read_as: dict[str, set[ImageLayout]] = {}  # layouts that readers expect
        self.seen: set[str] = set()  # layers that are in a row
        self.sources = {
            layer.node.outputs[0]: layer.node.inputs[0]
            for layer in report.layers
            if layer.op in PASSED_THROUGH
        }

    def row(self, row: Row) -> None:
        first = row[0]
        self.seen.update(layer.name for layer in row)
        inside = {name for layer in row for name in layer.node.outputs}
        given = [
            self._source_of(tensor.name)
            for layer in row
            for tensor in layer.inputs
            if tensor.name not in inside and tensor.shape is not None and len(tensor.shape) == 4
        ]
        blocks = self._in_blocks(first, given)
        layout: ImageLayout = "blocks" if blocks else "plain"
        for n, name in enumerate(given):
            few = first.call is not None and first.call.x[1] < self.rules.direct
            direct = n == 0 and first.op == "conv" and few
            self.read_as.setdefault(name, set()).add("plain" if direct else layout)
        for name in inside:
            self.tensors[name] = blocks
        if blocks:
            self.blocked.update(layer.name for layer in row)

    def _source_of(self, name: str) -> str:
        """The tensor that dropout and identity layers pass through."""
        while name in self.sources:
            name = self.sources[name]
        return name

    def _in_blocks(self, first: Layer, given: list[str]) -> bool:
        call = first.call
        if call is None or not call.outputs or len(call.y) != 4:
            return False
        if first.op == "conv":
            return convolves_in_blocks(first, self.rules)
        rules = self.rules
        if first.op in rules.pools:
            return _divides(rules.pool_multiple, call.x[1]) and self._all_in_layout(given)
        if first.op == "concat":
            fits = all(_divides(rules.concat_multiple, shape[1]) for shape in call.inputs)
            return fits and self._all_in_layout(given)
        equal = len(set(call.inputs)) == 1
        return first.op in rules.by_element and equal and self._all_in_layout(given)

    def _all_in_layout(self, given: list[str]) -> bool:
        return bool(given) and all(self.tensors.get(name, False) for name in given)

    def found(self) -> Layouts:
        report = self.report
        for name in report.graph.outputs:
            self.read_as.setdefault(self._source_of(name), set()).add("plain")
        for layer in report.layers:  # layers in no row, such as views
            if layer.name not in self.seen and layer.op not in PASSED_THROUGH:
                for given in layer.node.inputs:
                    self.read_as.setdefault(self._source_of(given), set()).add("plain")
        moved: dict[str, tuple[int, ...]] = {}
        for layer in report.layers:
            for tensor in layer.outputs:
                other: ImageLayout = "plain" if self.tensors.get(tensor.name, False) else "blocks"
                if other in self.read_as.get(tensor.name, ()) and len(tensor.shape or ()) == 4:
                    moved[layer.name] = (*moved.get(layer.name, ()), tensor.bytes)
        return Layouts(frozenset(self.blocked), moved, self.rules)


def _divides(multiple: int, channels: int) -> bool:
    return multiple > 0 and channels % multiple == 0
