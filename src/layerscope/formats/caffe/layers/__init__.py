"""Converters of Caffe's layer types, one file per family of ops: the table of all of them.

Types are in lower case without underscores; other spellings and older names are in `names.ALIASES`.
A type that is not here becomes a node without a rule, with the type as its op.
"""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.formats.caffe.layer import Converter
from layerscope.formats.caffe.layers import (
    activation,
    caffe_recurrent,
    convolution,
    elementwise,
    flownet,
    indexing,
    layout,
    linear,
    loss,
    normalization,
    pooling,
    reduction,
    resize,
    roi,
    slice_concat,
    uncounted,
)


def _merged(*tables: Mapping[str, Converter]) -> dict[str, Converter]:
    merged: dict[str, Converter] = {}
    for table in tables:
        for name, convert in table.items():
            if name in merged:
                raise ValueError(f"layer type {name!r} is in two tables")
            merged[name] = convert
    return merged


LAYERS = _merged(
    convolution.LAYERS,
    pooling.LAYERS,
    linear.LAYERS,
    normalization.LAYERS,
    activation.LAYERS,
    elementwise.LAYERS,
    layout.LAYERS,
    slice_concat.LAYERS,
    reduction.LAYERS,
    resize.LAYERS,
    indexing.LAYERS,
    caffe_recurrent.LAYERS,
    loss.LAYERS,
    roi.LAYERS,
    flownet.LAYERS,
    uncounted.LAYERS,
)
FIELDS_UNCHECKED = frozenset(uncounted.LAYERS)
