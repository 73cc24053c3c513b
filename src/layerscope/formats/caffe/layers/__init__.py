"""Every type of layer that is known, by name: the table that turns layers into nodes.

Names are in lower case without underscores; spellings and older names are in `names.ALIASES`. What
is not here becomes a node that nothing can count, by its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from layerscope.formats.caffe.layer import Layer
from layerscope.formats.caffe.layers import (
    activations,
    losses,
    norms,
    products,
    regions,
    resampling,
    shapes,
    targets,
    tensors,
    windows,
)

Maker = Callable[[Layer], tuple[str, ...]]


def _merged(*tables: Mapping[str, Maker]) -> dict[str, Maker]:
    merged: dict[str, Maker] = {}
    for table in tables:
        for name, make in table.items():
            if name in merged:
                raise ValueError(f"layer type {name!r} is in two tables")
            merged[name] = make
    return merged


LAYERS = _merged(
    windows.LAYERS,
    resampling.LAYERS,
    products.LAYERS,
    norms.LAYERS,
    activations.LAYERS,
    shapes.LAYERS,
    losses.LAYERS,
    regions.LAYERS,
    tensors.LAYERS,
    targets.LAYERS,
)
UNCOUNTED = frozenset(targets.LAYERS)  # whose fields change no figure, as there are none
