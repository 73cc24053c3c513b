"""Converters of Caffe's layer types, one file per family of ops: the table of all of them.

Types are in lower case without underscores; other spellings and older names are in `names.ALIASES`.
A type that is not here becomes a node without a rule, with the type as its op.
"""

from __future__ import annotations

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
from layerscope.tables import merge_tables

LAYERS: dict[str, Converter] = merge_tables(
    "layer types",
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
