"""Blocks of transformers that onnxruntime has in one operator, besides attention."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.attending import output, view
from layerscope.formats.onnx.known import Known, NeedsValue
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.operators.normalization import arrays
from layerscope.formats.onnx.operators.packed import packed_param
from layerscope.formats.onnx.operators.quantized import learned
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, elements


def skip_norm(s: Site) -> None:
    """SkipLayerNormalization and its simplified kin: a sum, then a norm of it."""
    simple = s.op.startswith("SkipSimplified")
    x = s.shape(0)
    bias = 3 if simple else 4
    known = [s.given(0), s.given(1), *([s.given(bias)] if s.has(bias) else [])]
    wanted = output(s, 3)
    total = s.emit(
        "add", known, part="sum", outputs=[wanted] if wanted else None, roles="bias"
    )[0]  # fmt: skip
    shape = total.shape
    assert shape is not None
    names = s.operator.outputs[:1]
    if simple:
        params, given = arrays(s, ((2, "weight", "scale"),))
        rms = at.RMSNorm(-1, eps=s.real("epsilon", 1e-12))
        s.emit("rms_norm", (total, *given), rms, params=params, outputs=names)
    else:
        params, given = arrays(s, ((2, "weight", "scale"), (3, "bias", "bias")))
        told = at.LayerNorm(-1, bias=s.has(3), eps=s.real("epsilon", 1e-12))
        s.emit("layer_norm", (total, *given), told, params=params, outputs=names)
    for n in (1, 2):
        s.extra(n, (*x[:-1], 1), "fp32")


def embedding(s: Site) -> None:
    """EmbedLayerNormalization: words, positions and segments added up, then a norm."""
    quantized = s.op == "QEmbedLayerNormalization"
    ids = s.given(0)
    if ids.shape is None or len(ids.shape) != 2:
        raise ShapeError(f"words of {ids.shape}, expected N x T")
    added = []
    if s.has(1) and s.has(4):
        added.append(_table(s, 4, s.given(1), "segments", quantized))
    places = s.given(8) if s.has(8) and not quantized else None
    if places is None:
        places = s.emit("positions", (ids,), part="places")[0]
    words = _table(s, 2, ids, "words", quantized)
    positions = _table(s, 3, places, "positions", quantized)
    wanted = output(s, 2)
    total = s.emit(
        "add", (words, positions, *added), part="sum", outputs=[wanted] if wanted else None
    )[0]
    params, given = arrays(s, ((5, "weight", "scale"), (6, "bias", "bias")))
    if quantized:
        params += [
            s.param(n, f"scale_or_zero{n}", "statistic") for n in (11, 12, 16, 17) if s.stored(n)
        ]
    told = at.LayerNorm(-1, bias=s.has(6), eps=s.real("epsilon", 1e-12))
    names = s.operator.outputs
    s.emit("layer_norm", (total, *given), told, params=params, outputs=names[:1])
    if output(s, 1):
        if s.has(7):
            summed = s.emit("reduce_sum", (s.given(7),), at.Reduce((1,)), part="lengths")[0]
            s.emit("cast", (summed,), at.Cast("int32"), part="mask_index", outputs=names[1:2])
        else:
            s.extra(1, ids.shape[:1], "int32")


def _table(s: Site, n: int, ids: Known, part: str, quantized: bool) -> Known:
    """Rows of a table by index; narrow ones are widened."""
    shape = s.shape(n)
    if quantized:
        learned(s, n)
    if quantized or not s.stored(n):
        made = s.emit("gather", (s.given(n), ids), at.Gather(0), part=part, roles="embedding")[0]
    else:
        params = [s.param(n, "weight", "embedding")]
        made = s.emit("embedding", (ids,), at.Embedding(*shape), params=params, part=part)[0]
    if not quantized:
        return made
    more = [
        s.param(place, name, "statistic")
        for place, name in ((n + 6, "scale"), (n + 11, "zero_point"))
        if s.stored(place)
    ]
    told = at.Quantize(s.dtype(n))
    return s.emit("dequantize", (made,), told, params=more, part=f"{part}_widened")[0]


def group_norm(s: Site) -> None:
    """GroupNorm with channels last, a sum in front and an activation behind it."""
    known = s.given(0)
    skips = s.op == "SkipGroupNorm"
    if skips:
        skip = s.given(3)
        rank = len(s.shape(0))
        assert skip.shape is not None
        if len(skip.shape) == 2:
            skip = view(s, skip, (skip.shape[0], *(1,) * (rank - 2), skip.shape[1]), "skip_places")
        more = [s.given(4)] if s.has(4) else []
        wanted = output(s, 1)
        known = s.emit(
            "add", (known, skip, *more), part="sum", outputs=[wanted] if wanted else None,
            roles="bias",
        )[0]  # fmt: skip
    shape = known.shape
    assert shape is not None
    last = s.whole("channels_last", 1)
    if last:
        known = view(s, known, (shape[0], shape[-1], *shape[1:-1]), "channels_first")
    params, given = arrays(s, ((1, "weight", "scale"), (2, "bias", "bias")))
    told = at.GroupNorm(s.whole("groups", 1), eps=s.real("epsilon", 1e-5))
    active = s.whole("activation")
    part = "norm" if active or last else ""
    names = s.operator.outputs[:1]
    made = s.emit(
        "group_norm", (known, *given), told, params=params, part=part,
        outputs=None if part else names,
    )[0]  # fmt: skip
    if active:
        outputs = None if last else names
        made = s.emit("silu", (made,), part="silu" if last else "", outputs=outputs)[0]
    if last:
        view(s, made, shape, "", names)


def experts(s: Site) -> None:
    """MoE and QMoE: every row through the `k` experts that its scores choose."""
    quantized = s.op == "QMoE"
    x, k = s.shape(0), s.whole("k", 1)
    rows, features = elements(x[:-1]), x[-1]
    names = s.operator.outputs[:1]
    chances = s.emit("softmax", (s.given(1),), at.Softmax(-1), part="chances")[0]
    best, places = s.emit("top_k", (chances,), at.TopK(k, -1), part="chosen")
    if s.has(14) and quantized:
        chosen = at.Gather(1, elements=True)
        best = s.emit("gather", (s.given(14), places), chosen, part="weights")[0]
    if s.whole("normalize_routing_weights"):
        total = s.emit("reduce_sum", (best,), at.Reduce((-1,), keep=True), part="sum")[0]
        best = s.emit("div", (best, total), part="shares")[0]
    told = at.DeclaredOutputs(((rows, k, features),), (s.dtype(0),))
    given = s.emit("select", (s.given(0), best), told, part="rows")[0]
    step = 3 if quantized else 2
    first = _expert(s, given, 2, features, quantized, "fc1")
    third = 2 + 2 * step
    kind = s.text("activation_type", "relu")
    assert first.shape is not None
    if kind == "swiglu" and not s.has(third):
        gate, value = s.emit("split", (first,), at.Split(2, parts=2), part="halves")
        gate = s.emit("silu", (gate,), part="silu")[0]
        inner = s.emit("mul", (gate, value), part="gated")[0]
    else:
        if kind == "identity":
            inner = first
        else:
            op = "swish" if kind in ("silu", "swiglu") else kind
            inner = activated(s, op, first, part=kind)
        if s.has(third):
            other = _expert(s, given, third, features, quantized, "fc3")
            inner = s.emit("mul", (inner, other), part="gated")[0]
    assert inner.shape is not None
    made = _expert(s, inner, 2 + step, inner.shape[-1], quantized, "fc2")
    weights = view(s, best, (rows, k, 1), "shares_of_rows")
    made = s.emit("mul", (made, weights), part="weighted")[0]
    made = s.emit("reduce_sum", (made,), at.Reduce((1,)), part="mixed")[0]
    view(s, made, x, "", names)


def _expert(s: Site, x: Known, n: int, features: int, quantized: bool, name: str) -> Known:
    """The matrices of all experts, of which every row meets one."""
    shape = s.shape(n)
    if len(shape) != 3:
        raise ShapeError(f"matrices of experts of {shape}, expected three axes")
    if not s.stored(n):
        raise NeedsValue(f"{name} {s.given(n).name!r} is computed, expected a stored array")
    bits = 8
    if quantized:
        bits = s.whole(f"{name}_expert_weight_bits") or s.whole("expert_weight_bits", 4)
    pack = 8 // bits
    if shape[2] * pack == features:  # experts x out x in
        made = shape[1]
        whole = (shape[0], made, features)
    elif shape[1] == features:  # as it was until 2025: experts x in x out
        made = shape[2] * pack
        whole = (shape[0], features, made)
    else:
        raise ShapeError(f"matrices of experts of {shape} for {features} features")
    params: list[Param] = []
    if quantized and s.dtype(n) in ("uint8", "int8"):
        params.append(packed_param(s, n, "weight", whole, bits))
    else:
        params.append(s.param(n, "weight", "weight"))
    bias = n + 2 if quantized else n + 1
    if s.stored(bias):
        params.append(s.param(bias, "bias", "bias"))
    if quantized:
        zero = {"fc1": 11, "fc2": 12, "fc3": 13}[name]
        for place, told in ((n + 1, "scales"), (zero, "zero_points")):
            if s.stored(place):
                params.append(s.param(place, told, "statistic"))
    linear = at.Linear(made, bias=s.stored(bias))
    return s.emit("linear", (x,), linear, params=params, part=name)[0]


def position_bias(s: Site) -> None:
    """RelativePositionBias: a table by how far queries and keys are apart, in bins."""
    queries, keys = int(s.need(1).item), int(s.need(2).item)
    heads = s.shape(0)[1]
    apart = s.emit("constant", (), at.DeclaredOutputs(((queries, keys),), ("int64",)), part="bins")[
        0
    ]
    if s.stored(0):
        told = at.Embedding(*s.shape(0))
        params = (s.param(0, "weight", "embedding"),)
        made = s.emit("embedding", (apart,), told, params=params, part="table")[0]
        made.dtype = s.dtype(0)
    else:
        made = s.emit("gather", (s.given(0), apart), at.Gather(0), part="table")[0]
    made = s.emit("permute", (made,), at.Permute((2, 0, 1)), part="heads")[0]
    view(s, made, (1, heads, queries, keys), "", s.operator.outputs[:1])


def gated_bias(s: Site) -> None:
    """GatedRelativePositionBias, as its definition has it."""
    heads = s.whole("num_heads", 1)
    x, bias = s.given(0), s.given(2)
    assert bias.shape is not None
    steps = bias.shape[2]
    made = s.emit("add", (x, s.given(1)), part="query", roles="bias")[0]
    shape = made.shape
    assert shape is not None
    batch = s.shape(6)[0] if s.has(6) and len(shape) == 2 else shape[0]
    size, width = s.shape(3)
    made = view(s, made, (batch, heads, steps, size), "heads")
    params = [s.param(3, "weight", "weight"), s.param(4, "bias", "bias")]
    made = s.emit("linear", (made,), at.Linear(width), params=params, part="gates")[0]
    made = view(s, made, (batch, heads, steps, 2, width // 2), "halves")
    made = s.emit("reduce_sum", (made,), at.Reduce((4,)), part="sums")[0]
    made = s.emit("sigmoid", (made,), part="sigmoid")[0]
    first, second = s.emit("split", (made,), at.Split(3, parts=2), part="both")
    made = s.emit("mul", (second, s.given(5)), part="eco", roles="scale")[0]
    made = s.emit("sub", (made,), part="less")[0]
    made = s.emit("mul", (first, made), part="product")[0]
    made = s.emit("add", (made,), part="more")[0]
    s.emit("mul", (made, bias))


def padding(s: Site) -> None:
    """RemovePadding and RestorePadding: how many tokens there are only the run knows."""
    raise NeedsValue("the number of tokens that are not padding is data")


def branches(*names: str) -> Sequence[tuple[str, str]]:
    """Operators of onnxruntime by name."""
    return [("com.microsoft", name) for name in names]


OPERATORS: dict[tuple[str, str], Convert] = {
    **dict.fromkeys(
        branches("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), skip_norm
    ),
    **dict.fromkeys(branches("EmbedLayerNormalization", "QEmbedLayerNormalization"), embedding),
    **dict.fromkeys(branches("GroupNorm", "SkipGroupNorm"), group_norm),
    **dict.fromkeys(branches("MoE", "QMoE"), experts),
    **dict.fromkeys(branches("RemovePadding", "RestorePadding"), padding),
    ("com.microsoft", "RelativePositionBias"): position_bias,
    ("com.microsoft", "GatedRelativePositionBias"): gated_bias,
}
