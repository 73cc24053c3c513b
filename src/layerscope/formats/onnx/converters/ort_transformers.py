"""Transformer blocks that onnxruntime fuses into one operator, besides attention."""

from __future__ import annotations

from typing import NamedTuple

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import apply_activation
from layerscope.formats.onnx.converters.attention_core import output, view
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.converters.quantization import mark_quantized
from layerscope.formats.onnx.converters.subbyte import packed_param
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue, TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, elements


def skip_norm(node: OnnxNode) -> None:
    """SkipLayerNormalization, SkipSimplifiedLayerNormalization: a sum, then a norm of it."""
    x = node.shape("input")
    wanted = output(node, 3)
    total = node.emit(
        "add", (node.input("input"), node.input("skip"), *node.given("bias")), part="sum",
        outputs=[wanted] if wanted else None, roles="bias",
    )[0]  # fmt: skip
    names, eps = node.outputs[:1], node.float_attr("epsilon", 1e-12)
    params, given = arrays(node, (("gamma", "weight", "scale"), ("beta", "bias", "bias")))
    if node.op.startswith("SkipSimplified"):
        rms = at.RMSNorm(-1, eps=eps)
        node.emit("rms_norm", (total, *given), rms, params=params, outputs=names)
    else:
        attrs = at.LayerNorm(-1, bias=node.has("beta"), eps=eps)
        node.emit("layer_norm", (total, *given), attrs, params=params, outputs=names)
    for n in (1, 2):
        node.extra_output(n, (*x[:-1], 1), "fp32")


def embedding(node: OnnxNode) -> None:
    """EmbedLayerNormalization: word, position and segment embeddings added, then a norm."""
    quantized = node.op == "QEmbedLayerNormalization"
    suffix = "_quant" if quantized else ""
    ids = node.input("input_ids")
    if ids.shape is None or len(ids.shape) != 2:
        raise ShapeError(f"words of {ids.shape}, expected N x T")
    added = []
    if node.has("segment_ids") and node.has("segment_embedding"):
        segments = node.input("segment_ids")
        added.append(_table(node, "segment_embedding", segments, "segments", quantized))
    position_ids = node.optional("position_ids")
    if position_ids is None:
        position_ids = node.emit("positions", (ids,), part="places")[0]
    words = _table(node, f"word_embedding{suffix}", ids, "words", quantized)
    table = f"position_embedding{suffix}"
    positions = _table(node, table, position_ids, "positions", quantized)
    wanted = output(node, 2)
    total = node.emit(
        "add", (words, positions, *added), part="sum", outputs=[wanted] if wanted else None
    )[0]
    gamma, beta = f"gamma{suffix}", f"beta{suffix}"
    params, given = arrays(node, ((gamma, "weight", "scale"), (beta, "bias", "bias")))
    for name in ("gamma_scale", "beta_scale", "gamma_zero_point", "beta_zero_point"):
        if node.stored(name):
            params.append(node.param(name, f"scale_or_zero{node.index(name)}", "statistic"))
    attrs = at.LayerNorm(-1, bias=node.has(beta), eps=node.float_attr("epsilon", 1e-12))
    names = node.outputs
    node.emit("layer_norm", (total, *given), attrs, params=params, outputs=names[:1])
    if output(node, 1):
        if node.has("mask"):
            summed = node.emit("reduce_sum", (node.input("mask"),), at.Reduce((1,)), part="lengths")
            node.emit("cast", summed, at.Cast("int32"), part="mask_index", outputs=names[1:2])
        else:
            node.extra_output(1, ids.shape[:1], "int32")


def _table(node: OnnxNode, name: str, ids: TensorInfo, part: str, quantized: bool) -> TensorInfo:
    """Rows of a table by index; those of a quantized one are dequantized."""
    shape = node.shape(name)
    if quantized:
        mark_quantized(node, name)
    if quantized or not node.stored(name):
        y = node.emit("gather", (node.input(name), ids), at.Gather(0), part=part, roles="embedding")
    else:
        params = [node.param(name, "weight", "embedding")]
        y = node.emit("embedding", (ids,), at.Embedding(*shape), params=params, part=part)
    if not quantized:
        return y[0]
    stem = name.removesuffix("_quant")
    more = [
        node.param(f"{stem}_{kind}", kind, "statistic")
        for kind in ("scale", "zero_point")
        if node.stored(f"{stem}_{kind}")
    ]
    attrs = at.Quantize(node.dtype(name))
    return node.emit("dequantize", y, attrs, params=more, part=f"{part}_widened")[0]


def group_norm(node: OnnxNode) -> None:
    """GroupNorm, SkipGroupNorm: a sum, a norm with channels last, an activation."""
    x = node.input("X")
    if node.op == "SkipGroupNorm":
        skip = node.input("skip")
        rank = len(node.shape("X"))
        assert skip.shape is not None
        if len(skip.shape) == 2:
            shape = (skip.shape[0], *(1,) * (rank - 2), skip.shape[1])
            skip = view(node, skip, shape, "skip_places")
        wanted = output(node, 1)
        x = node.emit(
            "add", (x, skip, *node.given("bias")), part="sum", outputs=[wanted] if wanted else None,
            roles="bias",
        )[0]  # fmt: skip
    shape = x.shape or ()
    last = node.int_attr("channels_last", 1)
    if last:
        x = view(node, x, (shape[0], shape[-1], *shape[1:-1]), "channels_first")
    params, given = arrays(node, (("gamma", "weight", "scale"), ("beta", "bias", "bias")))
    attrs = at.GroupNorm(node.int_attr("groups", 1), eps=node.float_attr("epsilon", 1e-5))
    active = node.int_attr("activation")
    part = "norm" if active or last else ""
    names = node.outputs[:1]
    y = node.emit(
        "group_norm", (x, *given), attrs, params=params, part=part,
        outputs=None if part else names,
    )[0]  # fmt: skip
    if active:
        outputs = None if last else names
        y = node.emit("silu", (y,), part="silu" if last else "", outputs=outputs)[0]
    if last:
        view(node, y, shape, "", names)


def experts(node: OnnxNode) -> None:
    """MoE, QMoE: every row through the `k` experts with the highest scores."""
    x, k = node.shape("input"), node.int_attr("k", 1)
    rows, features = elements(x[:-1]), x[-1]
    rows_in = _routed(node, rows, k)
    first = _expert(node, rows_in.rows, features, "fc1")
    kind = node.str_attr("activation_type", "relu")
    gated = node.has("fc3_experts_weights")
    if kind == "swiglu" and not gated:
        gate, value = node.emit("split", (first,), at.Split(2, parts=2), part="halves")
        gate = node.emit("silu", (gate,), part="silu")[0]
        inner = node.emit("mul", (gate, value), part="gated")[0]
    else:
        inner = first
        if kind != "identity":
            op = "swish" if kind in ("silu", "swiglu") else kind
            inner = apply_activation(node, op, first, part=kind)
        if gated:
            other = _expert(node, rows_in.rows, features, "fc3")
            inner = node.emit("mul", (inner, other), part="gated")[0]
    assert inner.shape is not None
    y = _expert(node, inner, inner.shape[-1], "fc2")
    weights = view(node, rows_in.weights, (rows, k, 1), "shares_of_rows")
    y = node.emit("mul", (y, weights), part="weighted")[0]
    y = node.emit("reduce_sum", (y,), at.Reduce((1,)), part="mixed")[0]
    view(node, y, x, "", node.outputs[:1])


class Routing(NamedTuple):
    """Rows of the input for every chosen expert, and the weights of these experts."""

    rows: TensorInfo
    weights: TensorInfo


def _routed(node: OnnxNode, rows: int, k: int) -> Routing:
    """The `k` experts of every row, by their scores."""
    probabilities = node.emit(
        "softmax", (node.input("router_probs"),), at.Softmax(-1), part="chances"
    )
    best, indices = node.emit("top_k", probabilities, at.TopK(k, -1), part="chosen")
    weights = node.optional("router_weights")
    if weights is not None:
        chosen = at.Gather(1, elements=True)
        best = node.emit("gather", (weights, indices), chosen, part="weights")[0]
    if node.int_attr("normalize_routing_weights"):
        total = node.emit("reduce_sum", (best,), at.Reduce((-1,), keep=True), part="sum")[0]
        best = node.emit("div", (best, total), part="shares")[0]
    x = node.input("input")
    shape = (rows, k, node.shape("input")[-1])
    return Routing(
        node.emit_shaped("select", (x, best), (shape,), (x.dtype,), part="rows")[0], best
    )


def _expert(node: OnnxNode, x: TensorInfo, features: int, name: str) -> TensorInfo:
    """One layer of all experts, fc1, fc2 or fc3: every row is multiplied by one expert's matrix."""
    quantized = node.op == "QMoE"
    weight, bias = f"{name}_experts_weights", f"{name}_experts_bias"
    shape = node.shape(weight)
    if len(shape) != 3:
        raise ShapeError(f"matrices of experts of {shape}, expected three axes")
    if not node.stored(weight):
        raise NeedsValue(f"{name} {node.input(weight).name!r} is computed, expected a stored array")
    bits = 8
    if quantized:
        bits = node.int_attr(f"{name}_expert_weight_bits") or node.int_attr("expert_weight_bits", 4)
    pack = 8 // bits
    if shape[2] * pack == features:  # experts x out x in
        out = shape[1]
        unpacked = (shape[0], out, features)
    elif shape[1] == features:  # until 2025: experts x in x out
        out = shape[2] * pack
        unpacked = (shape[0], features, out)
    else:
        raise ShapeError(f"matrices of experts of {shape} for {features} features")
    params: list[Param] = []
    if quantized and node.dtype(weight) in ("uint8", "int8"):
        params.append(packed_param(node, (weight, "weight", "weight"), unpacked, bits))
    else:
        params.append(node.param(weight, "weight", "weight"))
    if node.stored(bias):
        params.append(node.param(bias, "bias", "bias"))
    params += [
        node.param(f"{name}_{kind}", kind, "statistic")
        for kind in ("scales", "zero_points")
        if node.stored(f"{name}_{kind}")
    ]
    linear = at.Linear(out, bias=node.stored(bias))
    return node.emit("linear", (x,), linear, params=params, part=name)[0]


def position_bias(node: OnnxNode) -> None:
    """RelativePositionBias: rows of a table by the binned distance of queries and keys."""
    lengths = [node.need_value(name).item for name in ("query_length", "key_length")]
    queries, keys = map(int, lengths)
    heads = node.shape("bias_table")[1]
    apart = node.emit_shaped("constant", (), ((queries, keys),), ("int64",), part="bins")[0]
    if node.stored("bias_table"):
        attrs = at.Embedding(*node.shape("bias_table"))
        params = (node.param("bias_table", "weight", "embedding"),)
        y = node.emit("embedding", (apart,), attrs, params=params, part="table")[0]
        y.dtype = node.dtype("bias_table")
    else:
        y = node.emit("gather", (node.input("bias_table"), apart), at.Gather(0), part="table")[0]
    y = node.emit("permute", (y,), at.Permute((2, 0, 1)), part="heads")[0]
    view(node, y, (1, heads, queries, keys), "", node.outputs[:1])


def gated_bias(node: OnnxNode) -> None:
    """GatedRelativePositionBias, by the steps of its definition."""
    heads = node.int_attr("num_heads", 1)
    x, bias = node.input("query_layer"), node.input("rel_pos")
    assert bias.shape is not None
    steps = bias.shape[2]
    y = node.emit("add", (x, node.input("query_bias")), part="query", roles="bias")[0]
    shape = y.shape
    assert shape is not None
    packed = node.has("token_offset") and len(shape) == 2
    batch = node.shape("token_offset")[0] if packed else shape[0]
    size, width = node.shape("weight")
    y = view(node, y, (batch, heads, steps, size), "heads")
    params = [node.param("weight", "weight", "weight"), node.param("bias", "bias", "bias")]
    y = node.emit("linear", (y,), at.Linear(width), params=params, part="gates")[0]
    y = view(node, y, (batch, heads, steps, 2, width // 2), "halves")
    y = node.emit("reduce_sum", (y,), at.Reduce((4,)), part="sums")[0]
    y = node.emit("sigmoid", (y,), part="sigmoid")[0]
    first, second = node.emit("split", (y,), at.Split(3, parts=2), part="both")
    y = node.emit("mul", (second, node.input("eco_a")), part="eco", roles="scale")[0]
    y = node.emit("sub", (y,), part="less")[0]
    y = node.emit("mul", (first, y), part="product")[0]
    y = node.emit("add", (y,), part="more")[0]
    node.emit("mul", (y, bias))


def padding(node: OnnxNode) -> None:
    """RemovePadding, RestorePadding: the number of tokens is run-time data."""
    raise NeedsValue("the number of tokens that are not padding is run-time data")


OPERATORS: ConverterTable = {
    ("com.microsoft", "SkipLayerNormalization"): Converter(skip_norm, "input skip gamma beta bias"),
    ("com.microsoft", "SkipSimplifiedLayerNormalization"): Converter(
        skip_norm, "input skip gamma bias"
    ),
    ("com.microsoft", "EmbedLayerNormalization"): Converter(
        embedding,
        "input_ids segment_ids word_embedding position_embedding segment_embedding gamma beta mask "
        "position_ids",
    ),
    ("com.microsoft", "QEmbedLayerNormalization"): Converter(
        embedding,
        "input_ids segment_ids word_embedding_quant position_embedding_quant segment_embedding "
        "gamma_quant beta_quant mask word_embedding_scale position_embedding_scale "
        "segment_embedding_scale gamma_scale beta_scale word_embedding_zero_point "
        "position_embedding_zero_point segment_embedding_zero_point gamma_zero_point "
        "beta_zero_point",
    ),
    ("com.microsoft", "GroupNorm"): Converter(group_norm, "X gamma beta"),
    ("com.microsoft", "SkipGroupNorm"): Converter(group_norm, "X gamma beta skip bias"),
    ("com.microsoft", "MoE"): Converter(
        experts,
        "input router_probs fc1_experts_weights fc1_experts_bias fc2_experts_weights "
        "fc2_experts_bias fc3_experts_weights fc3_experts_bias",
    ),
    ("com.microsoft", "QMoE"): Converter(
        experts,
        "input router_probs fc1_experts_weights fc1_scales fc1_experts_bias fc2_experts_weights "
        "fc2_scales fc2_experts_bias fc3_experts_weights fc3_scales fc3_experts_bias "
        "fc1_zero_points fc2_zero_points fc3_zero_points router_weights fc1_global_scale "
        "fc2_global_scale fc1_act_scale fc2_act_scale fc1_act_block_scale fc2_act_block_scale",
    ),
    ("com.microsoft", "RemovePadding"): Converter(padding, "input sequence_token_count"),
    ("com.microsoft", "RestorePadding"): Converter(padding, "input token_offset"),
    ("com.microsoft", "RelativePositionBias"): Converter(
        position_bias, "bias_table query_length key_length"
    ),
    ("com.microsoft", "GatedRelativePositionBias"): Converter(
        gated_bias, "query_layer query_bias rel_pos weight bias eco_a token_offset"
    ),
}
