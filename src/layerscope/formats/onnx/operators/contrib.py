"""Fused operators of com.microsoft that are few standard ones in a row."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.attending import view
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.operators.control import body
from layerscope.formats.onnx.operators.packed import packed_param
from layerscope.formats.onnx.operators.products import product
from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of


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
    s.counted(known, at.CustomCost(((),), ("bool",), comp=2 * count))


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
    s.counted((s.given(0),), at.CustomCost((shape,), (s.dtype(0),)))


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
    told = at.Pool(window(s, s.wholes("kernel_shape")))
    s.emit("max_pool", (s.given(0),), told)


def n_gram_block(s: Site) -> None:
    """NGramRepeatBlock: scores of tokens that would repeat an n-gram are set to -inf."""
    tokens, scores = s.shape(0), s.shape(1)
    size = s.whole("ngram_size", 1)
    windows = max(tokens[-1] - size + 1, 0)
    told = at.CustomCost(
        (scores,), (s.dtype(1),), comp=tokens[0] * windows * max(size - 1, 0),
        estimate="a bound: every n-gram is compared to its end",
    )  # fmt: skip
    s.counted((s.given(0), s.given(1)), told)


def _streams(s: Site) -> tuple[int, int, int]:
    """Rows, streams and features of (..., C, H), or of (..., C · H) with a number of branches."""
    x, count = s.shape(0), s.whole("num_branches")
    if count > 0 and x and not x[-1] % count and (len(x) < 2 or x[-2] != count):
        return elements(x[:-1]), count, x[-1] // count
    if len(x) < 2:
        raise ShapeError(f"streams of {x}, expected (..., C, H)")
    return elements(x[:-2]), x[-2], x[-1]


def branch_norm(s: Site) -> None:
    """BranchwiseRMSNorm: each branch divided by the root of its mean square."""
    rows, branches, width = _streams(s)
    made = view(s, s.given(0), (rows, branches, width), "branches")
    squares = s.emit("square", (made,), part="squares")[0]
    mean = s.emit("reduce_mean", (squares,), at.Reduce((-1,), keep=True), part="mean")[0]
    root = s.emit("sqrt", (mean,), part="root")[0]
    made = s.emit("div", (made, root), part="divided")[0]
    if s.has(1):
        scale = view(s, s.given(1), (elements(s.shape(1)) // width, width), "scale")
        made = s.emit("mul", (made, scale), part="scaled", roles="scale")[0]
    view(s, made, s.shape(0), "", s.operator.outputs[:1])


def pre_mix(s: Site) -> None:
    """HyperConnectionPreMix: a weighted sum of streams."""
    rows, streams, width = _streams(s)
    x = s.shape(0)
    lead = x[:-2] if len(x) > 1 and x[-2:] == (streams, width) else x[:-1]
    told = at.CustomCost(
        ((*lead, width),), (s.dtype(0),), mac=rows * streams * width, mul=rows * width
    )
    s.counted((s.given(0), s.given(1)), told)


def post_mix(s: Site) -> None:
    """HyperConnectionPostMix: streams mixed with each other, and a block's output added."""
    rows, streams, width = _streams(s)
    mixed = rows * streams * streams * width if s.has(3) else 0
    told = at.CustomCost((s.shape(0),), (s.dtype(0),), mac=mixed + rows * streams * width)
    s.counted([known for known in s.inputs if known is not None], told)


def block_matmul(s: Site) -> None:
    """MatMulBlockQuantizedFp4Weight, MatMulBlockQuantizedFp8Weight: by stored weights in blocks."""
    small = s.op == "MatMulBlockQuantizedFp4Weight"
    features, packed = s.shape(1)
    inner = packed * 2 if small else packed
    if s.shape(0)[-1:] != (inner,):
        raise ShapeError(f"matrix product of {s.shape(0)} by {inner} x {features}")
    params = [packed_param(s, 1, "weight", (features, inner), 4 if small else 8)]
    params.append(s.param(2, "scales", "statistic"))
    bias = 5 if small else 4
    for n in range(3, bias):
        s.reader.uses(s.given(n) if s.has(n) else None)
    biased = s.stored(bias)
    if biased:
        params.append(s.param(bias, "bias", "bias"))
    s.emit("linear", (s.given(0),), at.Linear(features, bias=biased), params=params)


def n_gram_hash(s: Site) -> None:
    """NGramHashMapping: products of the last tokens joined by xor, then a remainder a head."""
    batch, steps = s.shape(0)
    most, heads = s.whole("max_ngram_size"), s.whole("n_head_per_ngram")
    if most < 2 or heads < 1:
        raise ShapeError(f"n-grams of 2 to {most} tokens by {heads} heads")
    width, tokens = (most - 1) * heads, batch * steps
    joined = sum(range(1, most)) if most < 64 else most * (most - 1) // 2
    told = at.CustomCost(
        ((batch, steps, width), (batch, most - 1)), (s.dtype(0), s.dtype(0)),
        mul=tokens * most, comp=tokens * joined, div=tokens * width,
        add=tokens * width if s.has(4) else 0,
    )  # fmt: skip
    s.counted([known for known in s.inputs if known is not None], told)


def engram_gate(s: Site) -> None:
    """EngramGate: normalized keys by normalized queries as a gate on a shared value."""
    shape = s.shape(0)
    rows, width = elements(shape[:-1]), shape[-1]
    # norms of two sides (square, mean, root, division, scale), their product, the gate, the value
    told = at.CustomCost(
        (shape, shape), (s.dtype(0), s.dtype(0)),
        mac=rows * width, mul=rows * (5 * width + 1), add=rows * 2 * width,
        div=rows * (2 * width + 3), exp=rows * 4, comp=rows * 3,
        estimate="by the steps of its definition",
    )  # fmt: skip
    s.counted([known for known in s.inputs if known is not None], told)


def flex_attention(s: Site) -> None:
    """FlexAttention: products, softmax, products, with graphs between that change the scores."""
    q, k, v = s.shape(0), s.shape(1), s.shape(2)
    if not len(q) == len(k) == len(v) == 4 or q[3] != k[3] or k[1] < 1 or q[1] % k[1]:
        raise ShapeError(f"attention of {q}, {k} and {v}")
    groups = q[1] // k[1]
    folded = view(s, s.given(0), (q[0], k[1], groups * q[2], q[3]), "queries")
    made = s.emit("matmul", (folded, s.given(1)), at.MatMul(False, True), part="scores")[0]
    made = s.emit("mul", (made,), part="scale")[0]
    scores = (q[0], q[1], q[2], k[2])
    made = _modified(s, "score_mod", view(s, made, scores, "of_heads"))
    made = s.emit("softmax", (made,), at.Softmax(-1), part="softmax")[0]
    made = _modified(s, "prob_mod", made)
    made = view(s, made, (q[0], k[1], groups * q[2], k[2]), "weights")
    made = s.emit("matmul", (made, s.given(2)), part="context")[0]
    view(s, made, (*q[:3], v[3]), "", s.operator.outputs[:1])


def _modified(s: Site, name: str, known: Known) -> Known:
    if name not in s.attributes:
        return known
    part = s.graph(name)
    if len(part.inputs) != 1 or len(part.outputs) != 1:
        raise ShapeError(f"{name} of {len(part.inputs)} inputs, expected one")
    env = body(s, part, (*s.inner, name), {part.inputs[0].name: known})
    made = env[part.outputs[0].name]
    if made.shape != known.shape:
        raise ShapeError(f"{name} makes {made.shape} of {known.shape}")
    return made


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
    ("com.microsoft", "MatMulBlockQuantizedFp4Weight"): block_matmul,
    ("com.microsoft", "MatMulBlockQuantizedFp8Weight"): block_matmul,
    ("com.microsoft", "BranchwiseRMSNorm"): branch_norm,
    ("com.microsoft", "HyperConnectionPreMix"): pre_mix,
    ("com.microsoft", "HyperConnectionPostMix"): post_mix,
    ("com.microsoft", "NGramHashMapping"): n_gram_hash,
    ("com.microsoft", "EngramGate"): engram_gate,
    ("ai.onnx.preview", "FlexAttention"): flex_attention,
}
