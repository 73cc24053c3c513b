"""Attributes of nodes: a node of op `conv` has a `Conv`, as `OpSpec.attributes` says.

The files have the stems of `layerscope.ops`. The Builder or the reader of a file fills in every
field that the framework or file format states; other fields keep their defaults.
"""

from __future__ import annotations

from layerscope.graph.attributes.activation import Activation, PReLU, Softmax
from layerscope.graph.attributes.attention import Attention, Rotary
from layerscope.graph.attributes.caffe_recurrent import Unrolled
from layerscope.graph.attributes.control import CustomCost, DeclaredOutputs, Opaque
from layerscope.graph.attributes.convolution import Conv, DeformConv, Im2Col, TransposedConv
from layerscope.graph.attributes.data_dependent import Compress, Unique
from layerscope.graph.attributes.elementwise import Power, Sum
from layerscope.graph.attributes.fft import DFT, FFT, STFT
from layerscope.graph.attributes.indexing import (
    Combining,
    Embedding,
    Gather,
    GatherND,
    OneHot,
    Scatter,
    Table,
)
from layerscope.graph.attributes.layout import (
    ChannelShuffle,
    Dropout,
    Expand,
    Filling,
    Flatten,
    Flip,
    Pad,
    Permute,
    Repeat,
    Reshape,
    ReverseSequence,
    Tile,
)
from layerscope.graph.attributes.linear import Einsum, Linear, MatMul
from layerscope.graph.attributes.normalization import (
    BatchNorm,
    Bias,
    GroupNorm,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
    Scale,
)
from layerscope.graph.attributes.pooling import AdaptivePool, GlobalPool, Pool, Pyramid
from layerscope.graph.attributes.quantization import Cast, Quantize
from layerscope.graph.attributes.recurrent import Recurrent
from layerscope.graph.attributes.reduction import Reduce
from layerscope.graph.attributes.resize import (
    AffineGrid,
    GridSample,
    Interp,
    PixelShuffle,
    Resize,
    Sampling,
    Unpool,
)
from layerscope.graph.attributes.roi import (
    Detections,
    NonMaxSuppression,
    PriorBox,
    Proposals,
    PSRoIPool,
    RoIAlign,
    RoIPool,
)
from layerscope.graph.attributes.search import CumSum, Distance, EmbeddingBag, TopK
from layerscope.graph.attributes.slice_concat import Concat, Crop, Slice, Split
from layerscope.graph.attributes.window import Pads, Rounding, Same, Window

__all__ = [
    "DFT",
    "FFT",
    "STFT",
    "Activation",
    "AdaptivePool",
    "AffineGrid",
    "Attention",
    "BatchNorm",
    "Bias",
    "Cast",
    "ChannelShuffle",
    "Combining",
    "Compress",
    "Concat",
    "Conv",
    "Crop",
    "CumSum",
    "CustomCost",
    "DeclaredOutputs",
    "DeformConv",
    "Detections",
    "Distance",
    "Dropout",
    "Einsum",
    "Embedding",
    "EmbeddingBag",
    "Expand",
    "Filling",
    "Flatten",
    "Flip",
    "Gather",
    "GatherND",
    "GlobalPool",
    "GridSample",
    "GroupNorm",
    "Im2Col",
    "InstanceNorm",
    "Interp",
    "L2Norm",
    "LayerNorm",
    "Linear",
    "LocalResponseNorm",
    "MatMul",
    "NonMaxSuppression",
    "OneHot",
    "Opaque",
    "PReLU",
    "PSRoIPool",
    "Pad",
    "Pads",
    "Permute",
    "PixelShuffle",
    "Pool",
    "Power",
    "PriorBox",
    "Proposals",
    "Pyramid",
    "Quantize",
    "RMSNorm",
    "Recurrent",
    "Reduce",
    "Repeat",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RoIAlign",
    "RoIPool",
    "Rotary",
    "Rounding",
    "Same",
    "Sampling",
    "Scale",
    "Scatter",
    "Slice",
    "Softmax",
    "Split",
    "Sum",
    "Table",
    "Tile",
    "TopK",
    "TransposedConv",
    "Unique",
    "Unpool",
    "Unrolled",
    "Window",
]
