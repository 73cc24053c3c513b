"""Fused operators of com.microsoft that are a few standard operators in a row."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import apply_activation
from layerscope.formats.onnx.converters.attention_core import view
from layerscope.formats.onnx.converters.control import body
from layerscope.formats.onnx.converters.convolution import window
from layerscope.formats.onnx.converters.linear import product
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.converters.subbyte import packed_param
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of


def scaled_silu(node: OnnxNode) -> None:
    """ScaledSiLU."""
    x = node.emit("mul", (node.input("X"), *node.given("scale")), part="scale")[0]
    node.emit("silu", (x,))


def gated_add(node: OnnxNode) -> None:
    """GatedAdd: X + Y · gate."""
    y = node.emit("mul", (node.input("Y"), node.input("gate")), part="gate")[0]
    node.emit("add", (node.input("X"), y))


def _rms(node: OnnxNode, x: TensorInfo, width: int, part: str) -> TensorInfo:
    """RMS normalization over the last `width` elements of every row."""
    shape = x.shape or ()
    if width < 1 or not shape or shape[-1] % width:
        raise ShapeError(f"rows of {width} in {shape}")
    rows = view(node, x, (*shape[:-1], shape[-1] // width, width), f"{part}_rows")
    params, more = arrays(node, (("scale", "weight", "scale"),))
    attrs = at.RMSNorm(-1, eps=node.float_attr("epsilon", 1e-5))
    y = node.emit("rms_norm", (rows, *more), attrs, params=params, part=part)[0]
    return view(node, y, shape, f"{part}_flat")


def gated_rms(node: OnnxNode) -> None:
    """GatedRMSNorm."""
    y = _rms(node, node.input("X"), elements(node.shape("scale")), "norm")
    kind = node.str_attr("activation", "silu")
    gate = apply_activation(
        node, "swish" if kind == "silu" else kind, node.input("gate"), part="gate"
    )
    node.emit("mul", (y, gate))


def all_finite(node: OnnxNode) -> None:
    """IsAllFinite: one flag for all elements of all inputs."""
    tensors = node.given()
    count = sum([elements(tensor.shape or ()) for tensor in tensors])
    node.emit_custom(tensors, at.CustomCost(((),), ("bool",), comp=2 * count))


def integer_sum(node: OnnxNode) -> None:
    """ReduceSumInteger: sums in int32."""
    x = node.emit("cast", (node.input(),), at.Cast("int32"), part="wide")[0]
    axes = node.ints_attr("axes") or tuple(range(len(node.shape())))
    node.emit("reduce_sum", (x,), at.Reduce(axes, keep=bool(node.int_attr("keepdims", 1))))


def bitmask_dropout(node: OnnxNode) -> None:
    """BitmaskDropout and BitmaskBiasDropout, which at inference drop nothing."""
    fused = node.op == "BitmaskBiasDropout"
    names, x = node.outputs, node.input("data")
    node.mark_constant("ratio", "training_mode")
    if fused:
        tensors = node.given("data", "bias", "residual")
        node.emit("add", tensors, roles="bias", outputs=names[:1])
    else:
        node.emit("dropout", (x,), at.Dropout(0.5), outputs=names[:1])
    node.extra_output(1, (-(-elements(node.shape("data")) // 32),), "uint32")


def unfold(node: OnnxNode) -> None:
    """UnfoldTensor: all windows of an axis, on an axis of their own."""
    x = node.shape()
    axis = axis_of(node.int_attr("dim", -1), len(x))
    size, step = node.int_attr("size"), node.int_attr("step", 1)
    if not 1 <= size <= x[axis] or step < 1:
        raise ShapeError(f"windows of {size} by {step} over {x[axis]}")
    shape = (*x[:axis], (x[axis] - size) // step + 1, *x[axis + 1 :], size)
    node.emit_custom((node.input(),), at.CustomCost((shape,), (node.dtype(),)))


def gemm8(node: OnnxNode) -> None:
    """GemmFloat8: a product with scales of both sides, and an optional activation."""
    node.mark_constant("scaleA", "scaleB", "scaleY")
    named = node.str_attr("activation", "NONE")
    y = product(node, part="gemm")
    if named.upper() in ("", "NONE"):
        node.emit("identity", (y,))
    else:
        apply_activation(node, named, y)


def masked_pool(node: OnnxNode) -> None:
    """MaxpoolWithMask, counted as if the mask selected all elements."""
    attrs = at.Pool(window(node, node.ints_attr("kernel_shape")))
    node.emit("max_pool", (node.input("X"),), attrs)


def n_gram_block(node: OnnxNode) -> None:
    """NGramRepeatBlock: scores of tokens that would repeat an n-gram are set to -inf."""
    tokens, scores = node.shape("input_ids"), node.shape("scores")
    size = node.int_attr("ngram_size", 1)
    windows = max(tokens[-1] - size + 1, 0)
    attrs = at.CustomCost(
        (scores,), (node.dtype("scores"),), comp=tokens[0] * windows * max(size - 1, 0),
        estimate="a bound: every n-gram is compared to its end",
    )  # fmt: skip
    node.emit_custom((node.input("input_ids"), node.input("scores")), attrs)


def _streams(node: OnnxNode) -> tuple[int, int, int]:
    """Rows, streams and features of (..., C, H), or of (..., C · H) with `num_branches`."""
    x, count = node.shape(), node.int_attr("num_branches")
    if count > 0 and x and not x[-1] % count and (len(x) < 2 or x[-2] != count):
        return elements(x[:-1]), count, x[-1] // count
    if len(x) < 2:
        raise ShapeError(f"streams of {x}, expected (..., C, H)")
    return elements(x[:-2]), x[-2], x[-1]


def branch_norm(node: OnnxNode) -> None:
    """BranchwiseRMSNorm: each branch divided by the root of its mean square."""
    rows, branches, width = _streams(node)
    y = view(node, node.input("X"), (rows, branches, width), "branches")
    squares = node.emit("square", (y,), part="squares")[0]
    mean = node.emit("reduce_mean", (squares,), at.Reduce((-1,), keep=True), part="mean")[0]
    root = node.emit("sqrt", (mean,), part="root")[0]
    y = node.emit("div", (y, root), part="divided")[0]
    if node.has("scale"):
        scale = view(
            node, node.input("scale"), (elements(node.shape("scale")) // width, width), "scale"
        )
        y = node.emit("mul", (y, scale), part="scaled", roles="scale")[0]
    view(node, y, node.shape("X"), "", node.outputs[:1])


def pre_mix(node: OnnxNode) -> None:
    """HyperConnectionPreMix: a weighted sum of streams."""
    rows, streams, width = _streams(node)
    x = node.shape("streams")
    lead = x[:-2] if len(x) > 1 and x[-2:] == (streams, width) else x[:-1]
    attrs = at.CustomCost(
        ((*lead, width),), (node.dtype("streams"),), mac=rows * streams * width, mul=rows * width
    )
    node.emit_custom((node.input("streams"), node.input("pre_mix")), attrs)


def post_mix(node: OnnxNode) -> None:
    """HyperConnectionPostMix: streams mixed with each other, and a block's output added."""
    rows, streams, width = _streams(node)
    mixed = rows * streams * streams * width if node.has("stream_mix") else 0
    attrs = at.CustomCost(
        (node.shape("streams"),), (node.dtype("streams"),), mac=mixed + rows * streams * width
    )
    node.emit_custom(node.given(), attrs)


def block_matmul(node: OnnxNode) -> None:
    """MatMulBlockQuantizedFp4Weight, MatMulBlockQuantizedFp8Weight: by weights scaled in blocks."""
    small = node.op == "MatMulBlockQuantizedFp4Weight"
    features, packed = node.shape("B")
    inner = packed * 2 if small else packed
    if node.shape("A")[-1:] != (inner,):
        raise ShapeError(f"matrix product of {node.shape('A')} by {inner} x {features}")
    params = [packed_param(node, ("B", "weight", "weight"), (features, inner), 4 if small else 8)]
    params.append(node.param("weight_scale" if small else "b_scale", "scales", "statistic"))
    node.mark_constant("weight_scale_2", "input_scale", "a_scale")
    biased = node.stored("bias")
    if biased:
        params.append(node.param("bias", "bias", "bias"))
    node.emit("linear", (node.input("A"),), at.Linear(features, bias=biased), params=params)


def n_gram_hash(node: OnnxNode) -> None:
    """NGramHashMapping: products of the last tokens combined by xor, then a remainder per head."""
    batch, steps = node.shape("input_ids")
    most, heads = node.int_attr("max_ngram_size"), node.int_attr("n_head_per_ngram")
    if most < 2 or heads < 1:
        raise ShapeError(f"n-grams of 2 to {most} tokens by {heads} heads")
    width, tokens = (most - 1) * heads, batch * steps
    joined = sum(range(1, most)) if most < 64 else most * (most - 1) // 2
    attrs = at.CustomCost(
        ((batch, steps, width), (batch, most - 1)), (node.dtype("input_ids"),) * 2,
        mul=tokens * most, comp=tokens * joined, div=tokens * width,
        add=tokens * width if node.has("head_offsets") else 0,
    )  # fmt: skip
    node.emit_custom(node.given(), attrs)


def engram_gate(node: OnnxNode) -> None:
    """EngramGate: normalized keys times normalized queries as a gate of a shared value."""
    shape = node.shape("key")
    rows, width = elements(shape[:-1]), shape[-1]
    # norms of two sides (square, mean, root, division, scale), their product, the gate, the value
    attrs = at.CustomCost(
        (shape, shape), (node.dtype("key"), node.dtype("key")),
        mac=rows * width, mul=rows * (5 * width + 1), add=rows * 2 * width,
        div=rows * (2 * width + 3), exp=rows * 4, comp=rows * 3,
        estimate="by the steps of its definition",
    )  # fmt: skip
    node.emit_custom(node.given(), attrs)


def flex_attention(node: OnnxNode) -> None:
    """FlexAttention: attention with subgraphs that modify scores and probabilities."""
    q, k, v = node.shape("Q"), node.shape("K"), node.shape("V")
    if not len(q) == len(k) == len(v) == 4 or q[3] != k[3] or k[1] < 1 or q[1] % k[1]:
        raise ShapeError(f"attention of {q}, {k} and {v}")
    groups = q[1] // k[1]
    folded = view(node, node.input("Q"), (q[0], k[1], groups * q[2], q[3]), "queries")
    y = node.emit("matmul", (folded, node.input("K")), at.MatMul(False, True), part="scores")[0]
    y = node.emit("mul", (y,), part="scale")[0]
    scores = (q[0], q[1], q[2], k[2])
    y = _modified(node, "score_mod", view(node, y, scores, "of_heads"))
    y = node.emit("softmax", (y,), at.Softmax(-1), part="softmax")[0]
    y = _modified(node, "prob_mod", y)
    y = view(node, y, (q[0], k[1], groups * q[2], k[2]), "weights")
    y = node.emit("matmul", (y, node.input("V")), part="context")[0]
    view(node, y, (*q[:3], v[3]), "", node.outputs[:1])


def _modified(node: OnnxNode, name: str, tensor: TensorInfo) -> TensorInfo:
    if name not in node.attributes:
        return tensor
    part = node.graph(name)
    if len(part.inputs) != 1 or len(part.outputs) != 1:
        raise ShapeError(f"{name} of {len(part.inputs)} inputs, expected one")
    env = body(node, part, (*node.inner_scope, name), {part.inputs[0].name: tensor})
    y = env[part.outputs[0].name]
    if y.shape != tensor.shape:
        raise ShapeError(f"{name} makes {y.shape} of {tensor.shape}")
    return y


# -- several products of one input with sub-byte weights


def _projected(node: OnnxNode, x: TensorInfo, features: int, part: str) -> TensorInfo:
    """One product of MatMulNBitsMlp or MatMulNBitsQkv, by the inputs whose names begin so."""
    inner, bits = node.int_attr("K"), node.int_attr("bits", 4)
    if inner < 1 or features < 1 or (x.shape or ())[-1:] != (inner,):
        raise ShapeError(f"matrix product of {x.shape} by {inner} x {features}")
    shape = (features, inner)
    params = [packed_param(node, (f"{part}_B", f"{part}_weight", "weight"), shape, bits)]
    if node.stored(f"{part}_scales"):
        params.append(node.param(f"{part}_scales", f"{part}_scales", "statistic"))
    biased = node.stored(f"{part}_bias")
    if biased:
        params.append(node.param(f"{part}_bias", f"{part}_bias", "bias"))
    return node.emit("linear", (x,), at.Linear(features, bias=biased), params=params, part=part)[0]


def _normed(node: OnnxNode, last: int) -> TensorInfo:
    """The input, after an optional sum, which may be the output `last`, and an optional norm."""
    x, skip = node.input("A"), node.optional("skip")
    names = node.outputs
    if skip is not None:
        out = names[last : last + 1] if len(names) > last and names[last] else None
        x = node.emit("add", (x, skip), part="skip", outputs=out)[0]
    if node.has("norm_scale"):
        params, more = arrays(node, (("norm_scale", "norm_scale", "scale"),))
        attrs = at.RMSNorm(-1, eps=node.float_attr("epsilon", 1e-5))
        x = node.emit("rms_norm", (x, *more), attrs, params=params, part="norm")[0]
    return x


def few_bits_mlp(node: OnnxNode) -> None:
    """MatMulNBitsMlp: gate and up projections of one input, activated and multiplied."""
    x = _normed(node, 1)
    features = node.int_attr("N")
    gate = _projected(node, x, features, "gate")
    up = _projected(node, x, features, "up")
    named = node.str_attr("activation", "silu")
    gate = apply_activation(node, "swish" if named == "silu" else named, gate, part="activation")
    node.emit("mul", (gate, up), outputs=node.outputs[:1])


def few_bits_qkv(node: OnnxNode) -> None:
    """MatMulNBitsQkv: three projections of one normalized input."""
    x = _normed(node, 3)
    names = node.outputs
    for n, (part, features) in enumerate((("q", "Nq"), ("k", "Nkv"), ("v", "Nkv"))):
        y = _projected(node, x, node.int_attr(features), part)
        node.emit("identity", (y,), part=f"{part}_out", outputs=names[n : n + 1])


OPERATORS: ConverterTable = {
    ("com.microsoft", "ScaledSiLU"): Converter(scaled_silu, "X scale"),
    ("com.microsoft", "GatedAdd"): Converter(gated_add, "X Y gate"),
    ("com.microsoft", "GatedRMSNorm"): Converter(gated_rms, "X scale gate"),
    ("com.microsoft", "IsAllFinite"): Converter(all_finite, "input"),
    ("com.microsoft", "ReduceSumInteger"): Converter(integer_sum, "data"),
    ("com.microsoft", "BitmaskDropout"): Converter(bitmask_dropout, "data ratio training_mode"),
    ("com.microsoft", "BitmaskBiasDropout"): Converter(
        bitmask_dropout, "data bias residual ratio training_mode"
    ),
    ("com.microsoft", "UnfoldTensor"): Converter(unfold, "input"),
    ("com.microsoft", "GemmFloat8"): Converter(gemm8, "A B C scaleA scaleB scaleY"),
    ("com.microsoft", "MaxpoolWithMask"): Converter(masked_pool, "X M"),
    ("com.microsoft", "NGramRepeatBlock"): Converter(n_gram_block, "input_ids scores"),
    ("com.microsoft", "MatMulNBitsMlp"): Converter(
        few_bits_mlp, "A skip norm_scale gate_B gate_scales gate_bias up_B up_scales up_bias"
    ),
    ("com.microsoft", "MatMulNBitsQkv"): Converter(
        few_bits_qkv,
        "A skip norm_scale q_B q_scales q_bias k_B k_scales k_bias v_B v_scales v_bias",
    ),
    ("com.microsoft", "MatMulBlockQuantizedFp4Weight"): Converter(
        block_matmul, "A B weight_scale weight_scale_2 input_scale bias"
    ),
    ("com.microsoft", "MatMulBlockQuantizedFp8Weight"): Converter(
        block_matmul, "A B b_scale a_scale bias"
    ),
    ("com.microsoft", "BranchwiseRMSNorm"): Converter(branch_norm, "X scale"),
    ("com.microsoft", "HyperConnectionPreMix"): Converter(pre_mix, "streams pre_mix"),
    ("com.microsoft", "HyperConnectionPostMix"): Converter(
        post_mix, "streams block_output post_mix stream_mix"
    ),
    ("com.microsoft", "NGramHashMapping"): Converter(
        n_gram_hash,
        "input_ids multipliers vocab_sizes past_ids head_offsets eos_token_id segment_ids",
    ),
    ("com.microsoft", "EngramGate"): Converter(
        engram_gate, "key query value key_norm_scale query_norm_scale conv_norm_scale"
    ),
    ("ai.onnx.preview", "FlexAttention"): Converter(flex_attention, "Q K V"),
}
