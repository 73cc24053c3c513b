"""What onnxruntime makes of a graph when it optimises it and saves the result."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.operators.convolution import finished, weights
from layerscope.formats.onnx.operators.pooling import pool, whole
from layerscope.formats.onnx.operators.products import product
from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at

BLOCKED = "com.microsoft.nchwc"
BLOCKS = (16, 8, 4)  # channels that such a tensor has in a row, by the machine


def fused_gemm(s: Site) -> None:
    """A product with an activation behind it."""
    made = product(s, part="gemm")
    activated(s, s.text("activation"), made)


def gemm_gelu(s: Site) -> None:
    """GemmFastGelu: a product, a bias, the function by tanh."""
    made = s.emit("matmul", (s.given(0), s.given(1)), part="product")[0]
    if s.has(2):
        made = s.emit("add", (made, s.given(2)), part="bias", roles="bias")[0]
    s.emit("gelu_tanh", (made,))


def bias_softmax(s: Site) -> None:
    """A mask added to scores, then softmax over all axes from one on."""
    made = s.emit("add", (s.given(0), s.given(1)), part="add")[0]
    rank = len(s.shape(0))
    axis = s.whole("axis", 1)
    tail = axis % max(rank, 1) != rank - 1
    s.emit("softmax", (made,), at.Softmax(axis, tail=tail))


def bias_add(s: Site) -> None:
    """A bias, and what is handed past it."""
    known = [s.given(n) for n in range(3) if s.has(n)]
    s.emit("add", known, roles="bias")


def bias_dropout(s: Site) -> None:
    """A bias, dropout, and what is handed past it; dropout does nothing at inference."""
    known = [s.given(n) for n in range(3) if s.has(n)]
    for n in (3, 4):
        s.value(n)
    s.emit("add", known, roles="bias", outputs=s.operator.outputs[:1])
    s.extra(1, s.shape(0), "bool")


def bias_split_gelu(s: Site) -> None:
    """A bias, then one half times the function of the other."""
    x = s.shape(0)
    made = s.emit("add", (s.given(0), s.given(1)), part="bias", roles="bias")[0]
    left, right = s.emit("split", (made,), at.Split(len(x) - 1, parts=2), part="halves")
    gate = s.emit("gelu", (right,), part="gelu")[0]
    s.emit("mul", (left, gate))


def to_first(s: Site, known: Known, *, part: str) -> Known:
    """A tensor with its channels last, as one with them in front; only a matter of naming."""
    shape = known.shape
    assert shape is not None
    told = at.DeclaredOutputs(((shape[0], shape[-1], *shape[1:-1]),), (known.dtype,))
    return s.emit("select", (known,), told, part=part)[0]


def to_last(s: Site, known: Known) -> None:
    """The outputs, from a tensor with its channels in front."""
    shape = known.shape
    assert shape is not None
    s.told_node("select", (known,), ((shape[0], *shape[2:], shape[1]),), (known.dtype,))


def nhwc_conv(s: Site) -> None:
    """NhwcFusedConv: channels last in the input, the output and what is added."""
    x = to_first(s, s.given(0), part="input")
    kernel = s.shape(1)
    assert x.shape is not None
    told = at.Conv(window(s, kernel[2:]), kernel[0], s.whole("group", 1), s.has(2))
    params, given = weights(s, 1, 2)
    made = s.emit("conv", (x, *given), told, params=params, part="conv")[0]
    if s.has(3):
        other = to_first(s, s.given(3), part="sum")
        made = s.emit("add", (made, other), part="add")[0]
    if s.text("activation"):
        made = activated(s, s.text("activation"), made, part="activation")
    to_last(s, made)


def nhwc_pool(s: Site) -> None:
    """NhwcMaxPool."""
    x = to_first(s, s.given(0), part="input")
    assert x.shape is not None
    told = at.Pool(window(s, s.wholes("kernel_shape")))
    to_last(s, s.emit("max_pool", (x,), told, part="pool")[0])


def blocked_conv(s: Site) -> None:
    """A convolution of blocks of channels: those that fill up a block are stored and reckoned."""
    kernel = s.shape(1)
    x = s.given(0)
    if x.shape is None or len(x.shape) != 4 or len(kernel) != 4:
        raise ShapeError(f"a convolution of {x.shape} by {kernel}, expected four axes each")
    groups = s.whole("group", 1)
    if groups > 1 and kernel[1] == 1:
        groups = kernel[0]  # channels that fill up a block are groups as well
    if x.shape[1] != kernel[1] * groups:
        x = _filled(s, x, kernel[1] * groups)
    assert x.shape is not None
    told = at.Conv(window(s, kernel[2:]), kernel[0], groups, s.has(2))
    finished(s, x, told)


def _filled(s: Site, x: Known, channels: int) -> Known:
    """The input with its last block of channels filled up."""
    assert x.shape is not None
    if channels < x.shape[1]:
        raise ShapeError(f"{x.shape[1]} channels and a kernel for {channels}")
    told = at.DeclaredOutputs(((x.shape[0], channels, *x.shape[2:]),), (x.dtype,))
    return s.emit("select", (x,), told, part="filled")[0]


def _block(s: Site) -> int:
    """How many channels stand in a row here: as many as divide those of every convolution."""
    reader = s.reader
    if not reader.block:
        sizes = [
            known.shape[0]
            for node in reader.model.graph.nodes
            if node.domain == BLOCKED and node.op == "Conv" and len(node.inputs) > 1
            if (known := s.env.get(node.inputs[1])) is not None and known.shape
        ]
        fits = (block for block in BLOCKS if all(size % block == 0 for size in sizes))
        reader.block = next(fits, 1) if sizes else 1
    return reader.block


def reorder_input(s: Site) -> None:
    """Channels into blocks, the last one filled up."""
    x = s.given(0)
    if s.whole("channels_last"):
        x = _permuted(s, x, first=True, part="order")
    block = _block(s)
    assert x.shape is not None
    more = -x.shape[1] % block
    s.emit("pad", (x,), at.Pad(((0, 0), (0, more), *((0, 0) for _ in x.shape[2:]))))


def reorder_output(s: Site) -> None:
    """Channels out of blocks, without those that only filled them up."""
    channels = s.whole("channels") or s.shape(0)[1]
    last = bool(s.whole("channels_last"))
    told = at.Slice((1,), (0,), (channels,))
    made = s.emit("slice", (s.given(0),), told, part="channels" if last else "")[0]
    if last:
        _permuted(s, made, first=False)


def _permuted(s: Site, x: Known, *, first: bool, part: str = "") -> Known:
    """Channels from the end to the front, or back."""
    assert x.shape is not None
    rank = len(x.shape)
    order = (0, rank - 1, *range(1, rank - 1)) if first else (0, *range(2, rank), 1)
    return s.emit("permute", (x,), at.Permute(order), part=part)[0]


def blocked_upsample(s: Site) -> None:
    """Upsample by whole factors."""
    x = s.shape(0)
    scales = s.wholes("scales", (1, 1, 1, 1))
    size = tuple(n * scale for n, scale in zip(x, scales, strict=True))[2:]
    mode: at.Resize = at.Resize("bilinear" if s.text("mode") == "linear" else "nearest", size)
    if s.text("coordinate_transformation_mode") == "align_corners":
        mode = replace(mode, align_corners=True)
    s.emit("resize", (s.given(0),), mode)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("com.microsoft", "FusedGemm"): fused_gemm,
    ("com.microsoft", "GemmFastGelu"): gemm_gelu,
    ("com.microsoft", "BiasSoftmax"): bias_softmax,
    ("com.microsoft", "BiasAdd"): bias_add,
    ("com.microsoft", "BiasDropout"): bias_dropout,
    ("com.microsoft", "BiasSplitGelu"): bias_split_gelu,
    ("com.microsoft", "NhwcFusedConv"): nhwc_conv,
    ("com.microsoft", "NhwcConv"): nhwc_conv,
    ("com.microsoft", "NhwcMaxPool"): nhwc_pool,
    (BLOCKED, "Conv"): blocked_conv,
    (BLOCKED, "MaxPool"): pool,
    (BLOCKED, "AveragePool"): pool,
    (BLOCKED, "GlobalMaxPool"): whole,
    (BLOCKED, "GlobalAveragePool"): whole,
    (BLOCKED, "ReorderInput"): reorder_input,
    (BLOCKED, "ReorderOutput"): reorder_output,
    (BLOCKED, "Upsample"): blocked_upsample,
}
