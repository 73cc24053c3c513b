"""Rows whose name or type contradicts their figures, and rows whose kind only the figures show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from msgspec import Struct

from layerscope.documents.figures import RULES, Figure
from layerscope.sheets.kinds import POOLS, Kind, is_block, plain
from layerscope.sheets.rules import WEIGHTS, Rule
from layerscope.sheets.structure import RowLayer, refill


class Renamed(Struct, frozen=True):
    """A row that says one kind and has the figures of another."""

    row: int
    says: Kind
    is_: Kind


def correct_kinds(layers: Iterable[RowLayer]) -> Iterator[Renamed]:
    """Set the kind that a row's parameters show; yields rows whose own word contradicts it."""
    for layer in layers:
        figure = _params(layer)
        if layer.kind == "fc" and _is_window(layer):
            _become(layer, "conv")  # `local fully connected`: a convolution by its kernel
        elif layer.kind in POOLS and figure is not None and figure.mantissa:
            if not _explains(WEIGHTS.get(layer.kind, ()), layer, figure) and _is_of_kind(
                layer, "conv", figure
            ):
                yield Renamed(layer.row.at, layer.row.kind, "conv")
        elif layer.kind == "softmax" and figure is not None and figure.mantissa:
            if not _is_of_kind(layer, "fc", figure) and _changes(layer):
                _become(layer, "fc")  # whose function it is
        elif layer.kind == "unknown" and figure is not None and figure.mantissa:
            if is_block(plain(layer.row.named)):
                continue  # the figures of several layers
            if _is_matrix(layer):
                _become(layer, "fc")
                continue
            any(_is_of_kind(layer, kind, figure) for kind in ("fc", "conv"))


def _changes(layer: RowLayer) -> bool:
    """Whether a row prints another number of channels than it takes."""
    got, out = layer.get("cin", "hin", "win"), layer.printed.get("cout")
    return got is not None and out is not None and prod(got) != out.value


def _params(layer: RowLayer) -> Figure | None:
    return next(
        (c.figure for c in layer.row.claims if c.meaning in ("params", "weights") and c.figure),
        None,
    )


def _is_window(layer: RowLayer) -> bool:
    area, kernel = layer.get("hout", "wout"), layer.get("kh", "kw")
    if kernel is None or "kh" not in layer.printed or kernel == layer.get("cin", "cout"):
        return False  # 120x84 is the matrix of a fully connected layer
    return area is not None and area != (1, 1)


def _is_matrix(layer: RowLayer) -> bool:
    """Whether the kernel is the matrix of a fully connected layer: inputs and outputs."""
    got, kernel, out = layer.get("cin", "hin", "win"), layer.get("kh", "kw"), layer.get("cout")
    if got is None or kernel is None or out is None or "kh" not in layer.printed:
        return False
    return kernel[0] in (got[0], prod(got)) and kernel[1] == out[0] > 1


def _is_of_kind(layer: RowLayer, kind: Kind, figure: Figure) -> bool:
    """Whether the parameters are those of another kind, which the layer then is."""
    was, sizes = layer.kind, layer.sizes
    _become(layer, kind)
    if _explains(WEIGHTS[kind], layer, figure):
        return True
    layer.kind, layer.sizes = was, sizes
    return False


def _become(layer: RowLayer, kind: Kind) -> None:
    layer.kind = kind
    refill(layer)


def _explains(rules: Iterable[Rule], layer: RowLayer, figure: Figure) -> bool:
    counts = [count for rule in rules if (count := rule.count(layer)) is not None]
    return any(
        figure.stands_for(count, base, how)
        for count in counts
        for base in (1000, 1024)
        for how in RULES[:2]
    )
