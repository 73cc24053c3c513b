"""Fused operators of com.microsoft that are few standard ones in a row."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.attending import view
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.operators.packed import packed_param
from layerscope.formats.onnx.operators.pooling import pool
from layerscope.formats.onnx.operators.products import product
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.rule import axis_of


def scaled_silu(s: Site) -> None:
    """ScaledSiLU."""
    x = s.emit("mul", (s.given(0), *([s.given(1)] if s.has(1) else [])), part="scale")[0]
    s.emit("silu", (x,))


def gated_add(s: Site) -> None:
    """GatedAdd: X + Y · gate."""
    made = s.emit("mul", (s.given(1), s.given(2)), part="gate")[0]
    s.emit("add", (s.given(0), made))


def _rms(s: Site, x: Known, width: int, part: str) -> Known:
    """RMS normalization over the last `width` elements of every row, by a stored scale."""
    shape = x.shape or ()
    if width < 1 or not shape or shape[-1] % width:
        raise ShapeError(f"rows of {width} in {shape}")
    rows = view(s, x, (*shape[:-1], shape[-1] // width, width), f"{part}_rows")
    params = [s.param(1, "weight", "scale")] if s.stored(1) else []
    more = [s.given(1)] if s.has(1) and not params else []
    told = at.RMSNorm(-1, eps=s.real("epsilon", 1e-5))
    made = s.emit("rms_norm", (rows, *more), told, params=params, part=part)[0]
    return view(s, made, shape, f"{part}_flat")


def gated_rms(s: Site) -> None:
    """GatedRMSNorm."""
    made = _rms(s, s.given(0), elements(s.shape(1)), "norm")
    kind = s.text("activation", "silu")
    gate = activated(s, "swish" if kind == "silu" else kind, s.given(2), part="gate")
    s.emit("mul", (made, gate))


def all_finite(s: Site) -> None:
    """IsAllFinite: one flag of all elements of all inputs."""
    known = [known for known in s.inputs if known is not None]
    count = sum([elements(k.shape or ()) for k in known])
    s.counted(known, at.Counted(((),), ("bool",), comp=2 * count))


def integer_sum(s: Site) -> None:
    """ReduceSumInteger: sums in 32 bits."""
    x = s.emit("cast", (s.given(0),), at.Cast("int32"), part="wide")[0]
    axes = s.wholes("axes") or tuple(range(len(s.shape(0))))
    s.emit("reduce_sum", (x,), at.Reduce(axes, keep=bool(s.whole("keepdims", 1))))


def bitmask_dropout(s: Site) -> None:
    """BitmaskDropout and BitmaskBiasDropout, which at inference drop nothing."""
    fused = s.op == "BitmaskBiasDropout"
    names, x = s.operator.outputs, s.given(0)
    for n in (3, 4) if fused else (1, 2):
        s.value(n)
    if fused:
        known = [s.given(n) for n in range(3) if s.has(n)]
        s.emit("add", known, roles="bias", outputs=names[:1])
    else:
        s.emit("dropout", (x,), at.Dropout(0.5), outputs=names[:1])
    s.extra(1, (-(-elements(s.shape(0)) // 32),), "uint32")


def unfold(s: Site) -> None:
    """UnfoldTensor: all windows of an axis, on an axis of their own."""
    x = s.shape(0)
    axis = axis_of(s.whole("dim", -1), len(x))
    size, step = s.whole("size"), s.whole("step", 1)
    if not 1 <= size <= x[axis] or step < 1:
        raise ShapeError(f"windows of {size} by {step} over {x[axis]}")
    shape = (*x[:axis], (x[axis] - size) // step + 1, *x[axis + 1 :], size)
    s.counted((s.given(0),), at.Counted((shape,), (s.dtype(0),)))


def gemm8(s: Site) -> None:
    """GemmFloat8: a product, scales of both sides, and an activation that may be behind it."""
    for n in (3, 4, 5):
        s.reader.uses(s.given(n) if s.has(n) else None)
    named = s.text("activation", "NONE")
    made = product(s, part="gemm")
    if named.upper() in ("", "NONE"):
        s.emit("identity", (made,))
    else:
        activated(s, named, made)


def masked_pool(s: Site) -> None:
    """MaxpoolWithMask: the mask says which elements take part; all may."""
    s.inputs = s.inputs[:1]
    pool(s)


def n_gram_block(s: Site) -> None:
    """NGramRepeatBlock: scores of tokens that would repeat an n-gram are set to -inf."""
    tokens, scores = s.shape(0), s.shape(1)
    size = s.whole("ngram_size", 1)
    windows = max(tokens[-1] - size + 1, 0)
    told = at.Counted(
        (scores,), (s.dtype(1),), comp=tokens[0] * windows * max(size - 1, 0),
        estimate="a bound: every n-gram is compared to its end",
    )  # fmt: skip
    s.counted((s.given(0), s.given(1)), told)


# -- several products by weights of a few bits, of one input


def _projected(s: Site, x: Known, first: int, features: int, part: str) -> Known:
    """One product of MatMulNBitsMlp or MatMulNBitsQkv: weights, scales and a bias from `first`."""
    inner, bits = s.whole("K"), s.whole("bits", 4)
    if inner < 1 or features < 1 or (x.shape or ())[-1:] != (inner,):
        raise ShapeError(f"matrix product of {x.shape} by {inner} x {features}")
    params = [packed_param(s, first, f"{part}_weight", (features, inner), bits)]
    if s.stored(first + 1):
        params.append(s.param(first + 1, f"{part}_scales", "statistic"))
    biased = s.stored(first + 2)
    if biased:
        params.append(s.param(first + 2, f"{part}_bias", "bias"))
    return s.emit("linear", (x,), at.Linear(features, bias=biased), params=params, part=part)[0]


def _normed(s: Site, last: int) -> Known:
    """The input, with what is added to it and the norm behind that, where they are given."""
    x = s.given(0)
    names = s.operator.outputs
    if s.has(1):
        out = names[last : last + 1] if len(names) > last and names[last] else None
        x = s.emit("add", (x, s.given(1)), part="skip", outputs=out)[0]
    if s.has(2):
        params = [s.param(2, "norm_scale", "scale")] if s.stored(2) else []
        more = [] if params else [s.given(2)]
        told = at.RMSNorm(-1, eps=s.real("epsilon", 1e-5))
        x = s.emit("rms_norm", (x, *more), told, params=params, part="norm")[0]
    return x


def few_bits_mlp(s: Site) -> None:
    """MatMulNBitsMlp: gate and up projections of one input, activated and multiplied."""
    x = _normed(s, 1)
    features = s.whole("N")
    gate = _projected(s, x, 3, features, "gate")
    up = _projected(s, x, 6, features, "up")
    named = s.text("activation", "silu")
    gate = activated(s, "swish" if named == "silu" else named, gate, part="activation")
    s.emit("mul", (gate, up), outputs=s.operator.outputs[:1])


def few_bits_qkv(s: Site) -> None:
    """MatMulNBitsQkv: three projections of one normalized input."""
    x = _normed(s, 3)
    names = s.operator.outputs
    for n, (part, features) in enumerate((("q", "Nq"), ("k", "Nkv"), ("v", "Nkv"))):
        made = _projected(s, x, 3 + 3 * n, s.whole(features), part)
        s.emit("identity", (made,), part=f"{part}_out", outputs=names[n : n + 1])


OPERATORS: dict[tuple[str, str], Convert] = {
    ("com.microsoft", "ScaledSiLU"): scaled_silu,
    ("com.microsoft", "GatedAdd"): gated_add,
    ("com.microsoft", "GatedRMSNorm"): gated_rms,
    ("com.microsoft", "IsAllFinite"): all_finite,
    ("com.microsoft", "ReduceSumInteger"): integer_sum,
    ("com.microsoft", "BitmaskDropout"): bitmask_dropout,
    ("com.microsoft", "BitmaskBiasDropout"): bitmask_dropout,
    ("com.microsoft", "UnfoldTensor"): unfold,
    ("com.microsoft", "GemmFloat8"): gemm8,
    ("com.microsoft", "MaxpoolWithMask"): masked_pool,
    ("com.microsoft", "NGramRepeatBlock"): n_gram_block,
    ("com.microsoft", "MatMulNBitsMlp"): few_bits_mlp,
    ("com.microsoft", "MatMulNBitsQkv"): few_bits_qkv,
}
