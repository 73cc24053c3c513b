"""The input of a network whose document has no row for it, from what its first rows print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layerscope.formats.document.choices import choose
from layerscope.formats.document.rows import LayerRow
from layerscope.graph.types import Shape

CHANNELS = (3, 1, 4, 2)
STRIDES = (1, 2, 4)
MOST = 1 << 20  # features of an input that are looked for


def first_input(rows: Sequence[LayerRow]) -> LayerRow:
    """A row for the input; its shape is None if nothing tells it."""
    row = rows[0] if rows else LayerRow("input")
    shape = row.given
    if shape is None:
        shape = next(
            (each for each in _shapes(row) if (c := choose(row, (each,))) and c.is_full), None
        )
    if shape is None and row.kind not in ("conv", "fc", "unknown") and row.output is not None:
        shape = row.output
    return LayerRow("input", "input", output=shape, line=row.line, column=row.column)


def _shapes(row: LayerRow) -> Iterator[Shape]:
    """Shapes that the input may have, images first."""
    out = row.output
    if row.kind == "fc":
        yield from _features(row)
    if out is None or len(out) < 3:
        return
    for channels in dict.fromkeys((*CHANNELS, out[1])):
        for step in row.stride or STRIDES:
            size = row.kernel or (1,) * (len(out) - 2)
            pads = row.pads
            exact = tuple(
                (n - 1) * step + k - sum(pads[i] if pads else ((k - 1) // 2,) * 2)
                for i, (n, k) in enumerate(zip(out[2:], size, strict=False))
            )
            for sizes in (tuple(step * n for n in out[2:]), exact):
                if len(sizes) == len(out) - 2 and min(sizes) > 0:
                    yield (out[0], channels, *sizes)


def _features(row: LayerRow) -> Iterator[Shape]:
    """The features of a fully connected layer, from its parameters."""
    counted = row.amounts.get("params") or row.amounts.get("weights")
    filters = row.filters or (row.output[1] if row.output and len(row.output) > 1 else 0)
    if counted is None or not filters:
        return
    near = int(counted.figure.value() * counted.scale / filters)
    for features in (near - 1, near, near + 1):  # with biases, and without
        if 0 < features <= MOST:
            yield (row.output[0] if row.output else 1, features)
