"""Operators of recent opsets, of strings, losses and optimizers: shapes as engines make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import pytest

import layerscope
from layerscope import Report
from tests.formats.onnx.onnx_contrib import One, floats, number, whole
from tests.formats.onnx.onnx_files import array, model, node

OPSETS = (("", 22), ("com.microsoft", 1), ("ai.onnx.ml", 5))


def standard(op: str, fed: dict[str, Any], outputs: int = 1, **told: Any) -> One:
    return One(op, fed, {}, told, outputs, "", opsets=OPSETS)


def texts(*words: str) -> np.ndarray:
    return np.array(words, object)


# -- losses: closed forms. N samples, C classes, D positions of each


N, C, D = 3, 5, 4
SCORES = {"x": floats(N, C, D), "t": whole(N, D, most=C, dtype=np.int64)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(op: str, reduction: str, weighted: bool, tmp_path: Path) -> None:
    fed = {**SCORES, "w": floats(C)} if weighted else SCORES
    report = standard(op, fed, reduction=reduction).check(tmp_path)
    assert report.tensors["y0"].shape == ((N, D) if reduction == "none" else ())
    plain = standard(op, SCORES).read(tmp_path).totals.flops
    count = N * D
    if op == "NegativeLogLikelihoodLoss":
        negated, weights = count, count if weighted else 0
        sums = {"none": 0, "sum": count - 1, "mean": (2 if weighted else 1) * (count - 1) + 1}
        if weighted or reduction != "mean":
            assert report.totals.flops == negated + weights + sums[reduction]
    else:  # the softmax and its logarithm are the same whatever is done with them
        bare = standard("NegativeLogLikelihoodLoss", SCORES).read(tmp_path).totals.flops
        other = standard("NegativeLogLikelihoodLoss", fed, reduction=reduction).read(tmp_path)
        assert report.totals.flops - other.totals.flops == plain - bare


def test_log_probabilities_come_with_a_loss(tmp_path: Path) -> None:
    for reduction in ("none", "mean"):
        one = standard("SoftmaxCrossEntropyLoss", SCORES, 2, reduction=reduction)
        assert one.check(tmp_path).tensors["y1"].shape == (N, C, D)


# -- strings


def test_strings(tmp_path: Path) -> None:
    x, y = texts("a b", "c"), texts("d", "e")
    standard("StringConcat", {"x": x, "y": y}).check(tmp_path)
    standard("RegexFullMatch", {"x": x}, pattern="a.*").check(tmp_path)
    one = standard("StringNormalizer", {"x": x}, case_change_action="UPPER")
    assert one.check(tmp_path, runs=False).tensors["y0"].shape == (2,)  # running needs a locale


def note(report: Report) -> str:
    (layer,) = report.layers
    assert layer.status == "unknown"
    return layer.cost.note


def test_strings_of_which_data_decides_how_many_there_are(tmp_path: Path) -> None:
    x = {"x": texts("a b", "c")}
    one = standard("StringNormalizer", x, stopwords=["c"])
    assert note(one.read(tmp_path)) == "how many strings are among the stopwords is run-time data"
    one = standard("StringSplit", x, 2)
    assert note(one.read(tmp_path)) == "the number of parts of the longest string is run-time data"


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("skips", [0, 1, 5])
def test_n_grams(rows: int, skips: int, tmp_path: Path) -> None:
    length = 7
    shape = (rows, length) if rows else (length,)
    fed = {"x": whole(*shape, dtype=np.int64)}
    told: dict[str, Any] = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": skips,
        "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
        "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    }  # fmt: skip
    report = standard("TfIdfVectorizer", fed, **told).check(tmp_path)
    singles = length * 4  # against four items of one
    spans = range(1, skips + 2)
    pairs = sum(max(length - span, 0) for span in spans) * 3 * 2  # against three of two
    assert report.totals.ops.comp == max(rows, 1) * (singles + pairs)
    assert report.layers[0].status == "estimate"


# -- what data decides


def test_elements_that_are_unlike(tmp_path: Path) -> None:
    report = standard("Unique", {"x": floats(6)}, 4).read(tmp_path)
    assert note(report) == "the number of unique elements is run-time data"


def test_a_condition_that_is_computed(tmp_path: Path) -> None:
    fed: dict[str, Any] = {"x": floats(3, 2), "c": np.array([True, False, True])}
    assert "condition is unknown: the values of graph input 'c' are run-time data" in note(
        standard("Compress", fed, axis=0).read(tmp_path)
    )
    one = One("Compress", {"x": fed["x"]}, {"c": fed["c"]}, {"axis": 0}, 1, "", opsets=OPSETS)
    assert one.check(tmp_path).tensors["y0"].shape == (2, 2)


def test_boxes_without_a_limit_that_is_known(tmp_path: Path) -> None:
    fed = {"b": floats(1, 6, 4), "s": floats(1, 2, 6), "m": np.array([3], np.int64)}
    report = standard("NonMaxSuppression", fed).read(tmp_path)
    (layer,) = report.layers
    assert layer.status == "estimate"
    assert "max_output_boxes_per_class is unknown: the values of graph input 'm'" in layer.cost.note
    assert report.tensors["y0"].shape == (12, 3)
    two = standard("NonMaxSuppression", {"b": fed["b"], "s": fed["s"]})
    assert two.check(tmp_path).tensors["y0"].shape == (0, 3)


def test_a_running_sum_has_a_bound(tmp_path: Path) -> None:
    fed = {"x": floats(2, 5), "axis": np.array(0, np.int64)}
    assert standard("CumSum", fed).check(tmp_path).totals.ops.add == 2 * 4


def test_one_of_a_depth_that_is_stored(tmp_path: Path) -> None:
    stored: dict[str, Any] = {"d": np.array(5, np.int64), "v": np.array([0, 1], np.float32)}
    fed = {"x": whole(2, 3, most=5, dtype=np.int64)}
    report = One("OneHot", fed, stored, {}, 1, "", opsets=OPSETS).check(tmp_path)
    assert report.tensors["y0"].shape == (2, 3, 5)


# -- optimizers


@pytest.mark.parametrize(
    ("op", "states", "told", "flops"),
    [
        ("Momentum", 1, {"mode": "standard"}, 7), ("Momentum", 1, {"mode": "nesterov"}, 9),
        ("Adagrad", 1, {}, 9), ("Adam", 2, {}, 15),
    ],
)  # fmt: skip
def test_steps_of_optimizers(
    op: str, states: int, told: dict[str, Any], flops: int, tmp_path: Path
) -> None:
    fed: dict[str, Any] = {"r": number(0.1), "t": np.array(1, np.int64)}
    for kind in range(2 + states):
        for n, shape in enumerate(((3, 4), (5,))):
            fed[f"k{kind}n{n}"] = floats(*shape)
    outputs = 2 * (1 + states)
    domain = "ai.onnx.preview.training"
    needed = {"alpha": 0.9, "beta": 0.9, "norm_coefficient": 0.01} if op == "Momentum" else {}
    one = One(op, fed, {}, {**needed, **told}, outputs, domain, opsets=(("", 22), (domain, 1)))
    report = one.check(tmp_path, runs=False)
    assert report.totals.flops == flops * (12 + 5)
    assert [report.tensors[f"y{n}"].shape for n in range(2)] == [(3, 4), (5,)]


# -- recurrences


@pytest.mark.parametrize(
    ("rule", "mac", "mul"),
    [("linear", 2, 0), ("gated", 2, 1), ("delta", 3, 0), ("gated_delta", 3, 1)],
)
def test_linear_attention(rule: str, mac: int, mul: int, tmp_path: Path) -> None:
    batch, steps, heads, size, width = 2, 3, 4, 5, 6
    fed = {
        "q": floats(batch, steps, heads * size), "k": floats(batch, steps, heads * size),
        "v": floats(batch, steps, heads * width), "s": floats(batch, heads, size, width),
        "g": floats(batch, steps, heads), "b": floats(batch, steps, heads),
    }  # fmt: skip
    told = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    report = One("LinearAttention", fed, {}, told, 2).check(tmp_path, runs=False)
    cells = batch * steps * heads * size * width
    rows = batch * steps * heads * width
    assert report.total_macs == mac * cells
    assert report.totals.ops.mul == mul * cells + rows * (2 if "delta" in rule else 1)
    assert report.tensors["y0"].shape == (batch, steps, heads * width)
    assert report.tensors["y1"].shape == (batch, heads, size, width)


def test_a_causal_convolution_with_a_state(tmp_path: Path) -> None:
    fed = {"x": floats(2, 3, 8)}
    stored = {"w": floats(3, 1, 4), "b": floats(3)}
    report = One("CausalConvWithState", fed, stored, {"activation": "silu"}, 2).check(
        tmp_path, runs=False
    )
    assert report.total_macs == 2 * 3 * 8 * 4
    assert report.total_params == 12 + 3
    assert report.tensors["y1"].shape == (2, 3, 3)


# -- opsets before 7


OLD: dict[str, tuple[int, str, str, dict[str, Any], tuple[int, ...]]] = {
    "Affine": (1, "x 1x3x8x8", "x", {"alpha": 2.0, "beta": 1.0}, (1, 3, 8, 8)),
    "ImageScaler": (1, "x 1x3x8x8", "x", {"bias": [0.1] * 3, "scale": 2.0}, (1, 3, 8, 8)),
    "ScaledTanh": (1, "x 1x3x8x8", "x", {"alpha": 2.0, "beta": 1.0}, (1, 3, 8, 8)),
    "ParametricSoftplus": (1, "x 4", "x", {}, (4,)),
    "Crop": (1, "x 1x3x8x8", "x", {"border": [1, 2, 3, 1]}, (1, 3, 5, 4)),
    "ConstantFill": (1, "x 2x3", "x", {"input_as_shape": 0, "extra_shape": [5]}, (2, 3, 5)),
    "Reshape": (1, "x 1x3x8x8", "x", {"shape": [0, -1]}, (1, 192)),
    "Pad": (1, "x 1x3x8x8", "x", {"paddings": [0, 0, 1, 1, 0, 0, 1, 1]}, (1, 3, 10, 10)),
    "Slice": (1, "x 1x3x8x8", "x", {"starts": [2], "ends": [-1], "axes": [2]}, (1, 3, 5, 8)),
    "Upsample": (1, "x 1x3x8x8", "x", {"height_scale": 2.0, "width_scale": 3.0}, (1, 3, 16, 24)),
    "Squeeze": (1, "x 1x3x8x8", "x", {"axes": [0]}, (3, 8, 8)),
    "Unsqueeze": (1, "x 3x8", "x", {"axes": [0, 2]}, (1, 3, 1, 8)),
    "Cast": (1, "x 4", "x", {"to": "INT64"}, (4,)),
    "Clip": (1, "x 4", "x", {"min": 0.0, "max": 6.0}, (4,)),
    "Dropout": (1, "x 4", "x", {"is_test": 1, "ratio": 0.3}, (4,)),
    "Add": (1, "x 1x3x8x8, b 3", "x b", {"broadcast": 1, "axis": 1}, (1, 3, 8, 8)),
    "Concat": (1, "x 1x3x8x8, b 1x2x8x8", "x b", {}, (1, 5, 8, 8)),
    "Softmax": (1, "x 1x3x8x8", "x", {}, (1, 3, 8, 8)),
    "Gemm": (1, "x 2x3, b 3x4, c 4", "x b c", {"broadcast": 1}, (2, 4)),
    "ReduceSum": (1, "x 1x3x8x8", "x", {"axes": [2, 3], "keepdims": 0}, (1, 3)),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("FLOAT", "fp32"), ("DOUBLE", "fp64"), ("FLOAT16", "fp16"), ("BOOL", "bool")],
)
def test_dtypes_by_name(name: str, dtype: str, tmp_path: Path) -> None:
    nodes = [node("a = Cast x", to=name), node("b = Cast one", to=name), node("y = Add a b")]
    made = model(nodes, "x 4 int64", "y", [array("one", [1, 2, 3, 4])], opset=5, ir=3)
    path = tmp_path / "old.onnx"
    path.write_bytes(made.SerializeToString())
    assert layerscope.analyze(str(path)).tensors["y"].dtype == dtype


@pytest.mark.parametrize("op", sorted(OLD))
def test_attributes_of_old_opsets(op: str, tmp_path: Path) -> None:
    opset, inputs, names, told, shape = OLD[op]
    path = tmp_path / "old.onnx"
    made = model([node(f"y = {op} {names}", **told)], inputs, "y", opset=opset, ir=3)
    path.write_bytes(made.SerializeToString())
    report = layerscope.analyze(str(path))
    assert not report.coverage.unknown
    assert report.tensors["y"].shape == shape


# -- fused operators of ONNX Runtime


MS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], int]] = {
    "GridSample": ({"x": floats(1, 2, 4, 4), "g": floats(1, 3, 3, 2)}, {}, {}, 0),
    "TorchEmbedding": ({"i": whole(2, 3, most=4, dtype=np.int64)}, {"w": floats(4, 5)}, {}, 0),
    "UnfoldTensor": ({"x": floats(2, 9)}, {}, {"dim": 1, "size": 3, "step": 2}, 0),
    "IsAllFinite": ({"a": floats(2, 3), "b": floats(4)}, {}, {}, 0),
    "ReduceSumInteger": ({"x": whole(2, 3, dtype=np.int8)}, {}, {"axes": [1], "keepdims": 1}, 0),
    "MurmurHash3": ({"x": whole(4, dtype=np.int32)}, {}, {}, 0),
    "BitmaskDropout": ({"x": floats(5, 10)}, {}, {}, 0),
    "MaxpoolWithMask": (
        {"x": floats(1, 2, 6, 6), "m": whole(1, 2, 6, 6, most=2, dtype=np.int32)}, {},
        {"kernel_shape": [2, 2], "strides": [2, 2]}, 0,
    ),
    "NGramRepeatBlock": (
        {"i": whole(2, 6, dtype=np.int64), "s": floats(2, 9)}, {}, {"ngram_size": 2}, 0,
    ),
}  # fmt: skip
RUN = {
    "GridSample", "UnfoldTensor", "MurmurHash3", "MaxpoolWithMask", "NGramRepeatBlock",
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(MS))
def test_operators_of_onnxruntime(op: str, tmp_path: Path) -> None:
    fed, stored, told, macs = MS[op]
    order = "w i" if op == "TorchEmbedding" else ""
    report = One(op, fed, stored, told, 1, order=order).check(tmp_path, runs=op in RUN)
    assert report.total_macs == macs


def test_gates_and_norms(tmp_path: Path) -> None:
    x = floats(2, 3, 8)
    one = One("GatedRMSNorm", {"x": x, "g": x}, {"s": floats(4)}, {}, order="x s g")
    assert one.check(tmp_path, runs=False).total_params == 4
    One("ScaledSiLU", {"x": x}, {}, {"alpha": 2.0}).check(tmp_path, runs=False)
    report = One("GatedAdd", {"x": x, "y": x, "g": floats(2, 3, 1)}).check(tmp_path, runs=False)
    assert report.totals.flops == 2 * 48
    report = One("HyperConnectionPreMix", {"x": x, "g": floats(2, 3)}).check(tmp_path, runs=False)
    assert report.total_macs == 48
    assert report.tensors["y0"].shape == (2, 8)
    mix = {"x": x, "b": floats(2, 8), "p": floats(2, 3), "s": floats(2, 3, 3)}
    report = One("HyperConnectionPostMix", mix).check(tmp_path, runs=False)
    assert report.total_macs == 2 * 3 * 3 * 8 + 48
    stored = {"s": floats(24)}
    report = One("BranchwiseRMSNorm", {"x": x}, stored).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == x.shape


K, FEATURES = 32, 16


def bits(features: int) -> dict[str, np.ndarray]:
    return {"b": whole(features, 1, K // 2), "s": floats(features)}


def test_projections_of_a_few_bits(tmp_path: Path) -> None:
    fed = {"a": floats(2, K)}
    told = {"K": K, "bits": 4, "block_size": K}
    stored = {"norm": floats(K)}
    for side, features in (("q", FEATURES), ("k", 8), ("v", 8)):
        stored |= {f"{side}{key}": value for key, value in bits(features).items()}
    one = One(
        "MatMulNBitsQkv", fed, stored, {**told, "Nq": FEATURES, "Nkv": 8}, 3,
        order="a - norm qb qs - kb ks - vb vs -",
    )  # fmt: skip
    report = one.check(tmp_path, runs=False)
    assert report.total_macs == 2 * K * (FEATURES + 8 + 8)
    assert report.total_params == K * (FEATURES + 8 + 8) + K
    stored = {f"{side}{key}": value for side in "gu" for key, value in bits(FEATURES).items()}
    one = One(
        "MatMulNBitsMlp", fed, stored, {**told, "N": FEATURES, "activation": "silu"}, 1,
        order="a - - gb gs - ub us -",
    )  # fmt: skip
    report = one.check(tmp_path, runs=False)
    assert report.total_macs == 2 * 2 * K * FEATURES
    assert report.tensors["y0"].shape == (2, FEATURES)
