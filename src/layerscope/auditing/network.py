"""The layers of a network beside the rows of a table: sizes, kinds, which row is which layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.graph.attributes.window import Window
from layerscope.graph.types import Shape
from layerscope.report import Report
from layerscope.report.align import Item, align
from layerscope.report.layer import Layer
from layerscope.sheets.kinds import Kind, kind_of, plain
from layerscope.sheets.sheet import Sheet
from layerscope.sheets.structure import RowLayer

# kinds that rows and layers are aligned by; others are aligned by themselves
COARSE: Mapping[str, str] = {
    **dict.fromkeys(("max_pool", "avg_pool", "pool", "global_pool"), "pool"),
    **dict.fromkeys(("conv", "depthwise"), "conv"),
    **dict.fromkeys(("activation", "prelu"), "activation"),
    **dict.fromkeys(("softmax", "loss"), "softmax"),
    **dict.fromkeys(("batch_norm", "norm", "lrn"), "norm"),
}
NORMS = ("layer_norm", "group_norm", "instance_norm", "rms_norm", "l2_norm")


class NetworkLayer(Struct, frozen=True):
    """A layer of a network, or one of its inputs, which has no layer of the report."""

    name: str
    kind: Kind
    index: int  # in the layers of a report; -1 for an input
    sizes: Mapping[str, int]
    elements: int | None  # of its first output


def layers_of_network(report: Report) -> list[NetworkLayer]:
    """The inputs and the layers of a network in order."""
    inputs = [
        NetworkLayer(tensor.name, "input", -1, _shape(tensor.shape, "out"), _elements(tensor.shape))
        for tensor in report.inputs
    ]
    return [*inputs, *(_layer(layer, n) for n, layer in enumerate(report.layers))]


def _layer(layer: Layer, index: int) -> NetworkLayer:
    sizes = {**_shape(layer.output, "out")}
    if len(layer.inputs) == 1:  # of several, a table may print any or their sum
        sizes |= _shape(layer.inputs[0].shape, "in")
        groups = getattr(layer.node.attributes, "groups", 1)
        if "cin" in sizes and isinstance(groups, int) and sizes["cin"] % groups == 0:
            sizes["cin_of_group"] = sizes["cin"] // groups
    window = getattr(layer.node.attributes, "window", None)
    if isinstance(window, Window) and window.rank == 2:
        sizes |= dict(zip(("kh", "kw", "sh", "sw"), (*window.kernel, *window.stride), strict=True))
        if not isinstance(window.pads, str) and all(low == high for low, high in window.pads):
            sizes |= {"ph": window.pads[0][0], "pw": window.pads[1][0]}
    kind: Kind = "norm" if layer.op in NORMS else kind_of(layer.op)
    return NetworkLayer(layer.name, kind, index, sizes, _elements(layer.output))


def _shape(shape: Shape | None, side: str) -> dict[str, int]:
    """Channels, height and width by name; only channels where there is another number of axes."""
    if shape is None or len(shape) < 2 or any(not isinstance(size, int) for size in shape):
        return {}
    sizes = [int(size) for size in shape[1:]]
    if len(sizes) == 3:
        return {f"c{side}": sizes[0], f"h{side}": sizes[1], f"w{side}": sizes[2]}
    if len(sizes) == 1:
        return {f"c{side}": sizes[0], f"h{side}": 1, f"w{side}": 1}
    return {}


def _elements(shape: Shape | None) -> int | None:
    if shape is None or any(not isinstance(size, int) for size in shape):
        return None
    count = 1
    for size in shape[1:]:
        count *= int(size)
    return count


def aligned(
    sheet: Sheet, rows: Sequence[RowLayer], layers: Sequence[NetworkLayer]
) -> dict[int, NetworkLayer]:
    """The layer of each row that has one: by name, then by order, kind and output."""
    named: dict[str, int] = {}
    for n, layer in enumerate(layers):
        key = _bare_name(layer.name)
        named[key] = -1 if key in named else n  # a name that occurs twice says nothing
    by_name = {n: at for n, row in enumerate(rows) if (at := _named(sheet, row, named)) >= 0}
    count = Counter(by_name.values())
    unique = {n: at for n, at in by_name.items() if count[at] == 1}
    if len(unique) * 2 < len(rows):  # too few names to go by them whatever the order
        unique = {}
    left = [n for n in range(len(rows)) if n not in unique]
    taken = {*unique.values()}
    others = [at for at in range(len(layers)) if at not in taken]
    first = [_row_item(rows[n], by_name.get(n), layers) for n in left]
    second = [Item(_bare_name(layers[at].name), *_signs(layers[at].kind, layers[at].sizes))
              for at in others]  # fmt: skip
    pairs = unique | {left[n]: others[at] for n, at in align(first, second).items()}
    return {rows[n].row.at: layers[at] for n, at in pairs.items()}


def _named(sheet: Sheet, row: RowLayer, named: Mapping[str, int]) -> int:
    """The number of the layer that has the name of a row; -1 if none has."""
    columns = [n for n, h in enumerate(sheet.headings) if h and h.meaning in ("name", "index")]
    texts = [row.row.label, *(row.row.cells[n].text for n in columns if n < len(row.row.cells))]
    texts += [text.rpartition(" (")[0] for text in texts if text.endswith(")")]  # conv1 (Conv2D)
    return next((at for text in texts if (at := named.get(_bare_name(text), -1)) >= 0), -1)


def _row_item(row: RowLayer, at: int | None, layers: Sequence[NetworkLayer]) -> Item:
    """What a row is aligned by; a row that has a layer's name takes its kind."""
    sizes = {name: size.value for name, size in row.sizes.items()}
    if at is not None:
        return Item(_bare_name(layers[at].name), *_signs(layers[at].kind, sizes))
    return Item(f"row {row.row.at}", *_signs(row.kind, sizes))


def _signs(kind: Kind, sizes: Mapping[str, int]) -> tuple[str, int, int]:
    """Kind, and two numbers: one for equal kind and output, one for equal kind."""
    coarse = COARSE.get(kind, kind)
    output = tuple(sizes.get(name) for name in ("cout", "hout", "wout"))
    return coarse, hash((coarse, *output)), hash(coarse)


def _bare_name(text: str) -> str:
    """A name without signs, in lower case."""
    return re.sub(r"[^a-z0-9]", "", plain(text))
