"""Operators of onnxruntime and of classical learning: shapes against the engine, counts by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper  # noqa: TID251

import layerscope
from layerscope import Report
from layerscope.errors import ShapeError
from layerscope.export.json import write as write_json
from layerscope.report.findings import findings
from tests.formats.onnx.onnx_contrib import ML, MS, OPSETS, One, floats, number, whole

B, S, H, N = 2, 5, 12, 3  # batch, steps, features, heads
D = H // N


def attention_macs(batch: int, heads: int, queries: int, keys: int, size: int, width: int) -> int:
    return batch * heads * queries * keys * (size + width)


# -- attention ---------------------------------------------------------------------------------

PROJECTED = {"x": floats(B, S, H)}
QKV = {"w": floats(H, 3 * H), "b": floats(3 * H)}
LINEAR = B * S * H * 3 * H


def test_attention(tmp_path: Path) -> None:
    one = One("Attention", PROJECTED, QKV, {"num_heads": N})
    report = one.check(tmp_path)
    assert report.totals.macs == LINEAR + attention_macs(B, N, S, S, D, D)
    assert report.totals.params == H * 3 * H + 3 * H
    scores = B * N * S * S  # softmax takes 5 operations, scaling one
    assert report.totals.flops == 2 * report.totals.macs + B * S * 3 * H + 6 * scores


def test_attention_of_unequal_values(tmp_path: Path) -> None:
    stored = {"w": floats(H, 2 * H + 6), "b": floats(2 * H + 6)}
    one = One("Attention", PROJECTED, stored, {"num_heads": N, "qkv_hidden_sizes": [H, H, 6]})
    report = one.check(tmp_path)
    assert report.totals.macs == B * S * H * (2 * H + 6) + attention_macs(B, N, S, S, D, 2)


@pytest.mark.parametrize(
    "mask",
    [
        np.full((B,), S, np.int32), np.ones((B, S), np.int32), np.ones((B, S, S), np.int32),
    ],
    ids=["lengths", "flags", "square"],
)  # fmt: skip
def test_attention_masked(tmp_path: Path, mask: np.ndarray) -> None:
    one = One("Attention", {**PROJECTED, "m": mask}, QKV, {"num_heads": N}, order="x w b m")
    report = one.check(tmp_path)
    assert report.totals.macs == LINEAR + attention_macs(B, N, S, S, D, D)
    assert report.totals.params == H * 3 * H + 3 * H


@pytest.mark.parametrize("past", [1, 4])
def test_attention_with_a_cache(tmp_path: Path, past: int) -> None:
    fed = {**PROJECTED, "past": floats(2, B, N, past, D)}
    one = One("Attention", fed, QKV, {"num_heads": N, "unidirectional": 1}, 2, order="x w b - past")
    report = one.check(tmp_path)
    assert report.tensors["y1"].shape == (2, B, N, past + S, D)
    assert report.totals.macs == LINEAR + attention_macs(B, N, S, past + S, D, D)


def test_attention_with_a_bias_of_scores(tmp_path: Path) -> None:
    fed = {**PROJECTED, "bias": floats(B, N, S, S)}
    one = One("Attention", fed, QKV, {"num_heads": N}, order="x w b - - bias")
    assert one.check(tmp_path).totals.macs == LINEAR + attention_macs(B, N, S, S, D, D)


def test_attention_of_narrow_numbers(tmp_path: Path) -> None:
    one = One(
        "QAttention",
        {"x": whole(B, S, H)},
        {
            "w": whole(H, 3 * H), "b": floats(3 * H), "xs": number(0.1), "ws": number(0.1),
            "xz": number(3, np.uint8), "wz": number(3, np.uint8),
        },
        {"num_heads": N}, order="x w b xs ws - xz wz",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.macs_by_dtype == {"uint8": LINEAR, "fp32": attention_macs(B, N, S, S, D, D)}
    assert (report.totals.params, report.totals.buffers) == (H * 3 * H + 3 * H, 4)


L = 7
ACROSS = {"q": floats(B, S, H), "k": floats(B, L, H), "v": floats(B, L, 6)}


def test_multi_head_attention(tmp_path: Path) -> None:
    one = One("MultiHeadAttention", ACROSS, {"b": floats(2 * H + 6)}, {"num_heads": N})
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, N, S, L, D, 2)
    assert report.totals.params == 2 * H + 6


def test_multi_head_attention_packed(tmp_path: Path) -> None:
    one = One("MultiHeadAttention", {"q": floats(B, S, N, 3, D)}, {}, {"num_heads": N})
    report = one.check(tmp_path, runs=False)  # on other machines only
    assert report.tensors["y0"].shape == (B, S, H)
    assert report.totals.macs == attention_macs(B, N, S, S, D, D)
    fed = {"q": floats(B, S, H), "k": floats(B, L, N, 2, D)}
    one = One("MultiHeadAttention", fed, {}, {"num_heads": N})
    report = one.check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, S, H)
    assert report.totals.macs == attention_macs(B, N, S, L, D, D)


def test_multi_head_attention_with_a_cache(tmp_path: Path) -> None:
    fed = {
        "q": floats(B, S, H), "k": floats(B, S, H), "v": floats(B, S, H),
        "bias": floats(1, N, S, S + 4), "pk": floats(B, N, 4, D), "pv": floats(B, N, 4, D),
    }  # fmt: skip
    one = One(
        "MultiHeadAttention", fed, {}, {"num_heads": N}, 3, order="q k v - - bias pk pv"
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, N, S, S + 4, D, D)


def test_multi_head_attention_of_an_earlier_run(tmp_path: Path) -> None:
    fed = {"q": floats(B, S, H), "k": floats(B, N, L, D), "v": floats(B, N, L, D)}
    one = One("MultiHeadAttention", fed, {}, {"num_heads": N})
    assert one.check(tmp_path).totals.macs == attention_macs(B, N, S, L, D, D)


def test_decoding_a_step(tmp_path: Path) -> None:
    fed = {
        "q": floats(B, 1, H), "k": floats(B, 1, H), "v": floats(B, 1, H),
        "pk": floats(B, N, 9, D), "pv": floats(B, N, 9, D),
    }  # fmt: skip
    stored = {"length": np.array([6], np.int32)}
    one = One(
        "DecoderMaskedMultiHeadAttention", fed, stored,
        {"num_heads": N, "past_present_share_buffer": 1}, 3, order="q k v - - pk pv length",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, N, 1, 7, D, D)


def test_decoding_a_step_by_one_matrix(tmp_path: Path) -> None:
    fed = {"x": floats(B, 1, H), "past": floats(2, B, N, 9, D)}
    one = One(
        "DecoderMaskedSelfAttention", fed, {**QKV, "length": np.array([6], np.int32)},
        {"num_heads": N, "past_present_share_buffer": 1}, 2, order="x w b - past - length",
    )  # fmt: skip
    report = one.check(tmp_path, runs=False)  # on other machines only
    assert report.tensors["y0"].shape == (B, 1, H)
    assert report.tensors["y1"].shape == (2, B, N, 9, D)
    assert report.totals.macs == B * H * 3 * H + attention_macs(B, N, 1, 7, D, D)


def grouped(past: int, total: int | None, **told: Any) -> One:
    heads, shared, size, batch = 4, 2, 16, 1
    fed = {
        "q": floats(batch, S, heads * size), "k": floats(batch, S, shared * size),
        "v": floats(batch, S, shared * size), "pk": floats(batch, shared, past, size),
        "pv": floats(batch, shared, past, size),
        "lengths": np.full((batch,), past + S - 1, np.int32),
    }  # fmt: skip
    stored = {"cos": floats(32, size // 2), "sin": floats(32, size // 2)}
    end = {"total": np.array(past + S if total is None else total, np.int32)}
    (fed if total is None else stored).update(end)
    told = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": 1, **told}
    return One(
        "GroupQueryAttention", fed, stored, told, 3, order="q k v pk pv lengths total cos sin"
    )


@pytest.mark.parametrize("past", [1, 6])
def test_grouped_attention(tmp_path: Path, past: int) -> None:
    report = grouped(past, past + S).check(tmp_path)
    assert report.totals.macs == attention_macs(1, 4, S, past + S, 16, 16)
    assert (report.totals.params, report.totals.buffers) == (0, 2 * 32 * 8)
    assert not report.coverage.estimated


def test_grouped_attention_of_an_untold_length(tmp_path: Path) -> None:
    report = grouped(6, None).check(tmp_path)
    assert report.totals.macs == attention_macs(1, 4, S, 6 + S, 16, 16)
    assert report.coverage.estimated


def test_grouped_attention_packed(tmp_path: Path) -> None:
    fed = {"q": floats(B, S, 8 * 16), "lengths": np.full((B,), S - 1, np.int32)}
    one = One(
        "GroupQueryAttention", fed, {"total": np.array(S, np.int32)},
        {"num_heads": 4, "kv_num_heads": 2, "softcap": 5.0}, 3, order="q - - - - lengths total",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, 4, S, S, 16, 16)


def test_sparse_attention_is_a_bound(tmp_path: Path) -> None:
    fed = {
        "q": floats(1, 16, 32), "k": floats(1, 16, 16), "v": floats(1, 16, 16),
        "pk": floats(1, 2, 16, 8), "pv": floats(1, 2, 16, 8),
        "lengths": np.array([16], np.int32),
    }  # fmt: skip
    stored = {
        "rows": np.array([[0, 1]], np.int32), "columns": np.array([[0]], np.int32),
        "total": np.array(16, np.int32),
    }  # fmt: skip
    one = One(
        "SparseAttention", fed, stored,
        {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16}, 3,
        order="q k v pk pv rows columns total lengths",
    )  # fmt: skip
    report = one.check(tmp_path, runs=False)  # its cache is written in place
    assert report.tensors["y0"].shape == (1, 16, 32)
    assert report.tensors["y1"].shape == report.tensors["y2"].shape == (1, 2, 16, 8)
    assert report.totals.macs == attention_macs(1, 4, 16, 16, 8, 8)
    assert report.coverage.estimated


def test_packed_attention(tmp_path: Path) -> None:
    fed = {
        "x": floats(8, H), "offsets": np.arange(B * S, dtype=np.int32).reshape(B, S),
        "ends": np.array([0, 5, 8], np.int32),
    }  # fmt: skip
    one = One("PackedAttention", fed, QKV, {"num_heads": N}, order="x w b offsets ends")
    report = one.check(tmp_path, runs=False)  # on other machines only
    assert report.tensors["y0"].shape == (8, H)
    assert report.totals.macs == 8 * H * 3 * H + attention_macs(B, N, S, S, D, D)
    assert report.coverage.estimated
    fed = {"q": floats(8, H), "k": floats(8, H), "v": floats(8, H), **fed}
    del fed["x"]
    one = One("PackedMultiHeadAttention", fed, {"b": floats(3 * H)}, {"num_heads": N})
    one.order = "q k v b offsets ends"
    report = one.check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (8, H)
    assert report.totals.macs == attention_macs(B, N, S, S, D, D)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("past", [0, 4])
def test_plain_attention(tmp_path: Path, flat: bool, past: int) -> None:
    shared = 1
    q, k = ((B, S, H), (B, L, shared * D)) if flat else ((B, N, S, D), (B, shared, L, D))
    fed = {"q": floats(*q), "k": floats(*k), "v": floats(*k)}
    told: dict[str, Any] = {"is_causal": 0}
    if flat:
        told |= {"q_num_heads": N, "kv_num_heads": shared}
    order = "q k v"
    if past:
        fed |= {"mask": floats(S, L + past), "pk": floats(B, shared, past, D)}
        fed |= {"pv": floats(B, shared, past, D)}
        order = "q k v mask pk pv"
    outputs = 3 if past else 1
    one = One("Attention", fed, {}, told, outputs, "", order)
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, N, S, L + past, D, D)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_plain_attention_hands_out_scores(tmp_path: Path, mode: int) -> None:
    fed = {"q": floats(B, 4, S, D), "k": floats(B, 2, S, D), "v": floats(B, 2, S, D)}
    told = {"softcap": 3.0, "qk_matmul_output_mode": mode, "is_causal": 1}
    one = One("Attention", fed, {}, told, 4, "")
    report = one.check(tmp_path)
    assert report.totals.macs == attention_macs(B, 4, S, S, D, D)


def test_a_stored_mask_is_no_parameter(tmp_path: Path) -> None:
    fed = {"q": floats(B, N, S, D), "k": floats(B, N, S, D), "v": floats(B, N, S, D)}
    one = One("Attention", fed, {"mask": floats(S, S)}, domain="")
    assert one.check(tmp_path).totals.params == 0


@pytest.mark.parametrize("shape", [(B, S, 4 * 8), (B, 4, S, 8)])
@pytest.mark.parametrize("part", [0, 4])
def test_rotary(tmp_path: Path, shape: tuple[int, ...], part: int) -> None:
    turned = part or 8
    stored = {
        "ids": np.arange(B * S, dtype=np.int64).reshape(B, S), "cos": floats(32, turned // 2),
        "sin": floats(32, turned // 2),
    }  # fmt: skip
    told: dict[str, Any] = {"rotary_embedding_dim": part, "num_heads": 4 if part else 0}
    one = One("RotaryEmbedding", {"x": floats(*shape)}, stored, told)
    report = one.check(tmp_path)
    assert report.totals.flops == 3 * B * S * 4 * turned
    assert (report.totals.params, report.totals.buffers) == (0, 32 * turned)
    told = {"rotary_embedding_dim": part, "num_heads": 4 if len(shape) == 3 else None}
    one = One("RotaryEmbedding", {"x": floats(*shape)}, stored, told, 1, "", "x cos sin ids")
    report = one.check(tmp_path)
    assert report.totals.flops == 3 * B * S * 4 * turned


def test_gemma_rotary(tmp_path: Path) -> None:
    half = np.float16
    fed = {"emb": floats(B, S, 8)}
    fed |= {name: floats(B, N, S, 8, dtype=half) for name in ("q", "qr", "k", "kr")}
    report = One("GemmaRotaryEmbedding", fed, outputs=2).check(tmp_path, runs=False)
    for name in ("y0", "y1"):
        assert (report.tensors[name].shape, report.tensors[name].dtype) == ((B, N, S, 8), "fp16")
    assert report.totals.flops == 2 * B * S * 8 + 2 * 3 * B * N * S * 8


# -- norms, embeddings, experts ----------------------------------------------------------------


def test_skip_norm(tmp_path: Path) -> None:
    fed = {"x": floats(B, S, H), "skip": floats(B, S, H)}
    stored = {"gamma": floats(H), "beta": floats(H), "bias": floats(H)}
    one = One("SkipLayerNormalization", fed, stored, {}, 4)
    report = one.read(tmp_path)
    one.outputs, made = 1, report
    one.check(tmp_path)
    assert made.totals.params == 3 * H
    assert made.tensors["y3"].shape == (B, S, H)
    assert made.tensors["y1"].shape == made.tensors["y2"].shape == (B, S, 1)
    stored = {"gamma": floats(H), "bias": floats(H)}
    one = One("SkipSimplifiedLayerNormalization", fed, stored)
    assert one.check(tmp_path).totals.params == 2 * H


def test_embedding(tmp_path: Path) -> None:
    fed = {
        "ids": whole(B, S, most=20, dtype=np.int32), "kinds": whole(B, S, most=2, dtype=np.int32),
        "mask": np.ones((B, S), np.int32),
    }  # fmt: skip
    stored = {
        "words": floats(20, H), "places": floats(16, H), "segments": floats(2, H),
        "gamma": floats(H), "beta": floats(H),
    }  # fmt: skip
    one = One(
        "EmbedLayerNormalization", fed, stored, {}, 3,
        order="ids kinds words places segments gamma beta mask",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.params == (20 + 16 + 2 + 2) * H
    one.order = "ids - words places - gamma beta"
    del one.fed["mask"], one.fed["kinds"], one.stored["segments"]
    assert one.check(tmp_path).totals.params == (20 + 16 + 2) * H


def test_embedding_of_narrow_numbers(tmp_path: Path) -> None:
    fed = {"ids": whole(B, S, most=20, dtype=np.int32)}
    fed["kinds"] = whole(B, S, most=2, dtype=np.int32)
    names = ("words", "places", "segments", "gamma", "beta")
    sizes = ((20, H), (16, H), (2, H), (H,), (H,))
    stored = {name: whole(*size) for name, size in zip(names, sizes, strict=True)}
    stored |= {f"{name}_s": number(0.1) for name in names}
    stored |= {f"{name}_z": number(1, np.uint8) for name in names}
    order = f"ids kinds {' '.join(names)} - {' '.join(f'{n}_s' for n in names)} "
    order += " ".join(f"{n}_z" for n in names)
    report = One("QEmbedLayerNormalization", fed, stored, {}, 2, order=order).check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == ((20 + 16 + 2 + 2) * H, 10)
    assert report.totals.param_bytes == (20 + 16 + 2 + 2) * H + 5 * 4 + 5


def test_group_norm(tmp_path: Path) -> None:
    stored = {"gamma": floats(8), "beta": floats(8)}
    told = {"groups": 4, "activation": 1}
    report = One("GroupNorm", {"x": floats(B, 3, 4, 8)}, stored, told).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, 3, 4, 8)
    assert report.totals.params == 16
    fed = {"x": floats(B, 3, 4, 8), "skip": floats(B, 8)}
    one = One("SkipGroupNorm", fed, {**stored, "bias": floats(8)}, told, 2)
    one.order = "x gamma beta skip bias"
    report = one.check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == report.tensors["y1"].shape == (B, 3, 4, 8)
    assert report.totals.params == 24


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
def test_experts(tmp_path: Path, kind: str) -> None:
    experts, inner, rows, best = 4, 6, 5, 2
    fed = {"x": floats(rows, 8), "scores": floats(rows, experts)}
    stored = {
        "w1": floats(experts, inner, 8), "b1": floats(experts, inner),
        "w2": floats(experts, 8, inner), "b2": floats(experts, 8),
    }  # fmt: skip
    told = {"k": best, "activation_type": kind, "normalize_routing_weights": 1}
    report = One("MoE", fed, stored, told).check(tmp_path)
    assert report.totals.macs == rows * best * 2 * 8 * inner
    assert report.totals.params == experts * (2 * 8 * inner + inner + 8)


def test_experts_of_gates(tmp_path: Path) -> None:
    experts, inner, rows, best = 4, 8, 5, 2
    fed = {"x": floats(1, rows, 8), "scores": floats(rows, experts)}
    stored = {
        "w1": floats(experts, 2 * inner, 8), "w2": floats(experts, 8, inner),
    }  # fmt: skip
    told = {"k": best, "activation_type": "swiglu", "swiglu_fusion": 1}
    one = One("MoE", fed, stored, told, order="x scores w1 - w2")
    report = one.check(tmp_path)
    assert report.totals.macs == rows * best * 3 * 8 * inner
    assert report.totals.params == experts * 3 * 8 * inner


def test_experts_of_few_bits(tmp_path: Path) -> None:
    experts, inner, rows, best, wide = 4, 32, 5, 2, 32
    fed = {"x": floats(rows, wide), "scores": floats(rows, experts)}
    stored = {
        "w1": whole(experts, 2 * inner, wide // 2), "s1": floats(experts, 2 * inner),
        "w2": whole(experts, wide, inner // 2), "s2": floats(experts, wide),
    }  # fmt: skip
    told = {"k": best, "activation_type": "swiglu", "swiglu_fusion": 1, "expert_weight_bits": 4}
    one = One("QMoE", fed, stored, told, order="x scores w1 s1 - w2 s2")
    report = one.check(tmp_path)
    assert report.macs_by_dtype == {"uint4": rows * best * 3 * wide * inner}
    assert report.totals.params == experts * 3 * wide * inner
    assert report.totals.buffers == experts * (2 * inner + wide)
    assert report.totals.param_bytes == experts * (3 * wide * inner // 2 + 4 * (2 * inner + wide))


def test_position_biases(tmp_path: Path) -> None:
    stored = {
        "table": floats(32, N), "q": np.array([S], np.int64), "k": np.array([S], np.int64),
    }  # fmt: skip
    one = One("RelativePositionBias", {}, stored, {"max_distance": 128})
    one.fed, one.stored = {"x": floats(1)}, stored  # a model needs an input
    one.order = "table q k"
    report = one.check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (1, N, S, S)
    assert report.totals.params == 32 * N
    fed = {"query": floats(B, S, N * D), "rel": floats(1, N, S, S)}
    stored = {
        "bias": floats(N * D), "w": floats(D, 8), "wb": floats(8), "eco": floats(1, N, 1, 1),
    }  # fmt: skip
    one = One("GatedRelativePositionBias", fed, stored, {"num_heads": N})
    one.order = "query bias rel w wb eco"
    report = one.check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, N, S, S)
    assert report.totals.macs == B * N * S * D * 8
    assert report.totals.params == N * D + D * 8 + 8 + N


def test_padding_is_left_open(tmp_path: Path) -> None:
    fed = {"x": floats(B, S, H), "lengths": np.full((B,), S, np.int32)}
    report = One("RemovePadding", fed, {}, {}, 4).read(tmp_path)
    assert report.coverage.unknown == {"com.microsoft::RemovePadding": 1}


@pytest.mark.parametrize("op", ["LongformerAttention", "BeamSearch", "DecoderAttention"])
def test_unknown_by_name(tmp_path: Path, op: str) -> None:
    report = One(op, {"x": floats(B, S, H)}).read(tmp_path)
    assert report.coverage.unknown == {f"com.microsoft::{op}": 1}


# -- fused operators ---------------------------------------------------------------------------


def test_fused_gemm(tmp_path: Path) -> None:
    stored = {"w": floats(7, H), "c": floats(7)}
    one = One("FusedGemm", {"x": floats(S, H)}, stored, {"transB": 1, "activation": "Relu"})
    report = one.check(tmp_path)
    assert (report.totals.macs, report.totals.params) == (S * H * 7, 7 * H + 7)


@pytest.mark.parametrize("turned", [False, True])
def test_fused_matmul(tmp_path: Path, turned: bool) -> None:
    left = floats(S, B, 4) if turned else floats(B, S, 4)
    told: dict[str, Any] = {"alpha": 0.5, "transBatchA": int(turned)}
    report = One("FusedMatMul", {"a": left, "b": floats(B, 4, 6)}, {}, told).check(tmp_path)
    assert report.totals.macs == B * S * 4 * 6
    one = One("FusedMatMul", {"a": floats(B, S, 4)}, {"b": floats(6, 4)}, {"transB": 1})
    report = one.check(tmp_path)
    assert (report.totals.macs, report.totals.params) == (B * S * 4 * 6, 24)
    told = {"transB": 1, "activation": "Relu"}
    one = One("FusedMatMulActivation", {"a": floats(B, S, 4)}, {"b": floats(6, 4)}, told)
    report = one.check(tmp_path, runs=False)  # on other machines only
    assert report.totals.flops == 2 * B * S * 4 * 6 + B * S * 6


def test_gemm_gelu(tmp_path: Path) -> None:
    stored = {"w": floats(H, 7), "c": floats(7)}
    report = One("GemmFastGelu", {"x": floats(S, H)}, stored).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (S, 7)
    assert (report.totals.macs, report.totals.params) == (S * H * 7, 7 * H + 7)


def test_biases(tmp_path: Path) -> None:
    x = {"x": floats(B, S, H)}
    one = One("BiasAdd", {**x, "skip": floats(B, S, H)}, {"b": floats(H)}, order="x b skip")
    report = one.check(tmp_path, runs=False)
    assert (report.totals.flops, report.totals.params) == (2 * B * S * H, H)
    one = One("BiasDropout", x, {"b": floats(H), "r": number(0.5)}, {}, 2, order="x b - r")
    report = one.check(tmp_path, runs=False)
    assert (report.totals.flops, report.totals.params) == (B * S * H, H)
    assert report.tensors["y1"].shape == (B, S, H)
    report = One("BiasSplitGelu", x, {"b": floats(H)}).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, S, H // 2)
    fed = {"x": floats(B, N, S, S), "mask": floats(B, 1, 1, S)}
    one = One("BiasSoftmax", fed, {}, {"axis": 3, "is_inner_broadcast": 0})
    report = one.check(tmp_path, runs=False)
    assert report.totals.flops >= B * N * S * S * 5


def test_channels_last(tmp_path: Path) -> None:
    stored = {"w": floats(8, 3, 3, 3), "b": floats(8)}
    told = {"kernel_shape": [3, 3], "activation": "Relu"}
    one = One("NhwcFusedConv", {"x": floats(1, 9, 7, 3)}, stored, told)
    report = one.check(tmp_path, runs=False)  # of half numbers on some machines only
    assert report.tensors["y0"].shape == (1, 7, 5, 8)
    assert (report.totals.macs, report.totals.params) == (7 * 5 * 8 * 27, 8 * 27 + 8)
    one = One("NhwcConv", {"x": floats(1, 9, 7, 3)}, stored, {"kernel_shape": [3, 3]})
    report = one.check(tmp_path, runs=False)
    assert report.totals.flops == 2 * 7 * 5 * 8 * 27 + 7 * 5 * 8
    one = One("NhwcMaxPool", {"x": whole(1, 9, 7, 3)}, {}, {"kernel_shape": [3, 3]})
    assert one.check(tmp_path).totals.flops == 7 * 5 * 3 * 8


NCHWC = "com.microsoft.nchwc"
BLOCKS = (("", 21), (NCHWC, 1))


@pytest.mark.parametrize(
    ("op", "told"),
    [
        ("GlobalMaxPool", {}), ("GlobalAveragePool", {}),
        ("MaxPool", {"kernel_shape": [2, 2]}), ("AveragePool", {"kernel_shape": [2, 2]}),
        ("Upsample", {"scales": [1, 1, 2, 3], "mode": "nearest"}),
        ("ReorderOutput", {"channels": 15}), ("ReorderInput", {}),
        ("ReorderInput", {"channels_last": 1}),
        ("ReorderOutput", {"channels": 15, "channels_last": 1}),
    ],
)  # fmt: skip
def test_blocks(tmp_path: Path, op: str, told: dict[str, Any]) -> None:
    shape = (1, 4, 6, 16) if told.get("channels_last") and op == "ReorderInput" else (1, 16, 4, 6)
    one = One(op, {"x": floats(*shape)}, {}, told, 1, NCHWC, opsets=BLOCKS)
    try:
        one.run()
    except Exception as error:  # a machine that has no blocks
        pytest.skip(str(error)[:80])
    one.check(tmp_path)


# -- narrow numbers ----------------------------------------------------------------------------


def zeros(*names: str) -> dict[str, np.ndarray]:
    made: dict[str, np.ndarray] = {}
    for name in names:
        made[f"{name}s"] = number(0.1)
        made[f"{name}z"] = number(3, np.uint8)
    return made


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_narrow_sums(tmp_path: Path, op: str) -> None:
    stored = {"b": whole(H), **zeros("x", "b", "y")}
    report = One(op, {"x": whole(B, S, H)}, stored, order="x xs xz b bs bz ys yz").check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == (H, 6)
    assert report.totals.macs == 0


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_narrow_functions(tmp_path: Path, op: str) -> None:
    report = One(op, {"x": whole(B, S)}, zeros("x", "y")).check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == (0, 4)


def test_narrow_softmax(tmp_path: Path) -> None:
    one = One("QLinearSoftmax", {"x": whole(B, S)}, zeros("x", "y"), {"axis": 1, "opset": 13})
    assert one.check(tmp_path).totals.buffers == 4


@pytest.mark.parametrize("last", [0, 1])
def test_narrow_pools(tmp_path: Path, last: int) -> None:
    x = {"x": whole(1, 8, 6, 3) if last else whole(1, 3, 8, 6)}
    told: dict[str, Any] = {"channels_last": last}
    One("QLinearGlobalAveragePool", x, zeros("x", "y"), told).check(tmp_path)
    told |= {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    One("QLinearAveragePool", x, zeros("x", "y"), told).check(tmp_path)


def test_narrow_means_and_joins(tmp_path: Path) -> None:
    one = One("QLinearReduceMean", {"x": whole(B, S, H)}, zeros("x", "y"), {"axes": [1]})
    one.check(tmp_path, runs=False)
    assert one.read(tmp_path).tensors["y0"].shape == (B, 1, H)
    fed = {"a": whole(B, 3), "b": whole(B, 4)}
    one = One("QLinearConcat", fed, zeros("a", "b", "y"), {"axis": 1})
    one.order = "ys yz a as az b bs bz"
    report = one.check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == (0, 6)
    fed = {"c": whole(B, S, most=2).astype(bool), "a": whole(B, S), "b": whole(B, S)}
    one = One("QLinearWhere", fed, zeros("a", "b", "y"), order="c a as az b bs bz ys yz")
    one.check(tmp_path)


@pytest.mark.parametrize("rounds", [True, False])
def test_narrow_gemm(tmp_path: Path, rounds: bool) -> None:
    stored = {"w": whole(7, H), "c": whole(7, dtype=np.int32), **zeros("x", "w", "y")}
    order = "x xs xz w ws wz c ys yz"
    if not rounds:
        del stored["ys"], stored["yz"]
        order = "x xs xz w ws wz c"
    one = One("QGemm", {"x": whole(S, H)}, stored, {"transB": 1}, order=order)
    report = one.check(tmp_path)
    assert report.macs_by_dtype == {"uint8": S * H * 7}
    assert (report.totals.params, report.totals.buffers) == (7 * H + 7, 6 if rounds else 4)


def test_narrow_products(tmp_path: Path) -> None:
    stored = {"w": whole(H, 7), "ws": floats(1), "wz": whole(1), "b": floats(7)}
    report = One("DynamicQuantizeMatMul", {"x": floats(B, S, H)}, stored).check(tmp_path)
    assert report.macs_by_dtype == {"uint8": B * S * H * 7}
    assert (report.totals.params, report.totals.buffers) == (7 * H + 7, 2)
    stored = {
        "w": whole(H, 7), "xs": floats(1), "ws": floats(1), "xz": whole(1), "wz": whole(1),
        "b": floats(7),
    }  # fmt: skip
    report = One("MatMulIntegerToFloat", {"x": whole(B, S, H)}, stored).check(tmp_path)
    assert report.macs_by_dtype == {"uint8": B * S * H * 7}
    assert (report.totals.params, report.totals.buffers) == (7 * H + 7, 4)
    fed = {"a": whole(S, H, dtype=np.int16)}
    one = One("MatMulInteger16", fed, {"b": whole(H, 7, dtype=np.int16)})
    report = one.check(tmp_path, runs=False)
    assert report.macs_by_dtype == {"int16": S * H * 7}
    assert report.tensors["y0"].dtype == "int32"
    fed = {"a": whole(S, H), "b": whole(S, H)}
    one = One("MulInteger", fed, {"az": whole(1), "bz": whole(1)}, order="a az b bz")
    report = one.check(tmp_path, runs=False)
    assert report.totals.flops == 3 * S * H


@pytest.mark.parametrize(("bits", "inner"), [(4, 64), (4, 50), (8, 64)])
def test_few_bits(tmp_path: Path, bits: int, inner: int) -> None:
    features, block = 7, 32
    blocks = -(-inner // block)
    stored = {
        "w": whole(features, blocks, block * bits // 8, most=255),
        "s": floats(features, blocks), "z": whole(features, -(-blocks * bits // 8)),
    }  # fmt: skip
    told = {"K": inner, "N": features, "bits": bits, "block_size": block}
    report = One("MatMulNBits", {"x": floats(B, S, inner)}, stored, told).check(tmp_path)
    dtype = f"uint{bits}"
    assert report.macs_by_dtype == {dtype: B * S * inner * features}
    assert report.totals.params == inner * features
    assert report.totals.buffers == 2 * features * blocks
    held = -(-inner * features * bits // 8) + 4 * features * blocks
    assert report.totals.param_bytes == held + -(-features * blocks * bits // 8)


def test_four_bits_of_other_kinds(tmp_path: Path) -> None:
    inner, features = 64, 8
    stored = {"w": whole(inner * features // 2), "absmax": floats(inner * features // 32)}
    told = {"K": inner, "N": features, "block_size": 32, "quant_type": 1}
    report = One("MatMulBnb4", {"x": floats(S, inner)}, stored, told).check(tmp_path)
    assert report.macs_by_dtype == {"uint4": S * inner * features}
    assert (report.totals.params, report.totals.buffers) == (inner * features, 16)
    stored = {"w": whole(2048), "shape": np.array([inner, features], np.int64)}
    report = One("MatMulFpQ4", {"x": floats(S, inner)}, stored).check(tmp_path, runs=False)
    assert report.totals.params == inner * features
    assert report.tensors["y0"].shape == (S, features)


@pytest.mark.parametrize("packed", [True, False])
def test_gather_of_few_bits(tmp_path: Path, packed: bool) -> None:
    fed = {"ids": whole(B, S, most=8, dtype=np.int64)}
    stored = {"s": floats(8, 2)}
    told = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16}
    one = One("GatherBlockQuantized", fed, stored, told, order="w ids s")
    if packed:
        one.stored["w"] = whole(8, 16)
    else:
        one.packed["w"] = (TensorProto.UINT4, (8, 32))
    report = one.check(tmp_path)
    assert report.tensors["y0"].shape == (B, S, 32)
    assert (report.totals.params, report.totals.buffers) == (8 * 32, 16)
    assert report.totals.param_bytes == 8 * 16 + 16 * 4


def test_orders_of_memory(tmp_path: Path) -> None:
    told = {"order_input": 1, "order_output": 1}
    x = {"x": floats(B, S, H)}
    report = One("QuantizeWithOrder", x, {"s": number(0.1)}, told).read(tmp_path)
    assert (report.tensors["y0"].shape, report.tensors["y0"].dtype) == ((B, S, H), "int8")
    x = {"x": whole(B, S, H, dtype=np.int8)}
    report = One("DequantizeWithOrder", x, {"s": number(0.1)}, told).read(tmp_path)
    assert (report.tensors["y0"].shape, report.tensors["y0"].dtype) == ((B, S, H), "fp32")


@pytest.mark.parametrize("last", [0, 1])
def test_narrow_convolution(tmp_path: Path, last: int) -> None:
    x = {"x": whole(1, 8, 6, 3) if last else whole(1, 3, 8, 6)}
    stored = {"w": whole(5, 3, 3, 3), "b": whole(5, dtype=np.int32), **zeros("x", "w", "y")}
    one = One(
        "QLinearConv", x, stored, {"channels_last": last, "kernel_shape": [3, 3]},
        order="x xs xz w ws wz ys yz b",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.macs_by_dtype == {"uint8": 6 * 4 * 5 * 27}
    assert (report.totals.params, report.totals.buffers) == (5 * 27 + 5, 6)


# -- weights behind DequantizeLinear -----------------------------------------------------------


def behind(nodes: list[Any], stored: dict[str, np.ndarray], x: np.ndarray, folder: Path) -> Report:
    """A model of a few operators that reads x and makes y."""
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    outputs = [onnx.ValueInfoProto(name="y")]
    arrays = [numpy_helper.from_array(array, name) for name, array in stored.items()]
    graph = helper.make_graph(nodes, "few", inputs, outputs, arrays)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    data = model.SerializeToString()
    (folder / "few.onnx").write_bytes(data)
    made = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(["y"], {"x": x})[0]
    report = layerscope.analyze(str(folder / "few.onnx"))
    assert report.tensors["y"].shape == made.shape
    assert not report.coverage.unknown
    return report


@pytest.mark.parametrize("domain", ["", MS])
def test_convolution_of_widened_weights(tmp_path: Path, domain: str) -> None:
    stored = {
        "w": whole(5, 3, 3, 3, dtype=np.int8), "ws": floats(5), "wz": np.zeros(5, np.int8),
        "b": whole(5, dtype=np.int32), "bs": floats(5), "bz": np.zeros(5, np.int32),
        "xs": number(0.1), "xz": number(3, np.uint8),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0, domain=domain),
        node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0),
        node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], domain=domain),
        node("DequantizeLinear", ["xq", "xs", "xz"], ["xf"], domain=domain),
        node("Conv", ["xf", "wf", "bf"], ["y"]),
    ]
    report = behind(nodes, stored, floats(1, 3, 8, 6), tmp_path)
    assert report.macs_by_dtype == {"int8": 6 * 4 * 5 * 27}
    assert (report.totals.params, report.totals.buffers) == (5 * 27 + 5, 4 * 5 + 2)
    assert report.totals.param_bytes == 5 * 27 + 5 * 4 + 5 * 4 + 5 + 5 * 4 + 5 * 4 + 4 + 1


def test_products_of_widened_weights(tmp_path: Path) -> None:
    stored = {"w": whole(2, H, 7, dtype=np.int8), "s": number(0.1), "v": whole(7, 32)}
    stored |= {"vs": floats(1, 32), "vz": whole(1, 32)}
    node = helper.make_node
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["wf"]),
        node("MatMul", ["x", "wf"], ["a"]),  # a batch of matrices, not a linear layer
        node("DequantizeLinear", ["v", "vs", "vz"], ["vf"], axis=0, block_size=7),
        node("MatMul", ["a", "vf"], ["y"]),
    ]
    report = behind(nodes, stored, floats(2, S, H), tmp_path)
    assert report.totals.params == 2 * H * 7 + 7 * 32
    assert report.totals.buffers == 1 + 32 + 32
    assert report.totals.macs == 2 * S * H * 7 + 2 * S * 7 * 32


def test_tables_of_narrow_numbers(tmp_path: Path) -> None:
    stored = {"table": whole(20, H), "s": number(0.1), "z": number(3, np.uint8)}
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "x"], ["rows"]),
        node("DequantizeLinear", ["rows", "s", "z"], ["y"]),
    ]
    ids = whole(B, S, most=20, dtype=np.int64)
    report = behind(nodes, stored, ids, tmp_path)
    assert (report.totals.params, report.totals.buffers) == (20 * H, 2)
    nodes = [
        node("DequantizeLinear", ["table", "s", "z"], ["wide"]),
        node("Gather", ["wide", "x"], ["y"]),
    ]
    report = behind(nodes, stored, ids, tmp_path)
    assert (report.totals.params, report.totals.buffers) == (20 * H, 2)


def test_precisions_are_told(tmp_path: Path) -> None:
    stored = {"w": whole(H, 7), "z": whole(7), "v": floats(7, 5)}
    node = helper.make_node
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]),
        node("MatMulInteger", ["q", "w", "qz", "z"], ["i"]),
        node("Cast", ["i"], ["f"], to=1),
        node("MatMul", ["f", "v"], ["y"]),
    ]
    report = behind(nodes, stored, floats(S, H), tmp_path)
    assert report.macs_by_dtype == {"uint8": S * H * 7, "fp32": S * 7 * 5}
    line = f"MACs by precision: uint8 {S * H * 7}, fp32 {S * 7 * 5}."
    assert line in findings(report)
    assert json.loads(write_json(report))["totals"]["macs_by_dtype"] == report.macs_by_dtype
    plain = behind([node("MatMul", ["x", "v"], ["y"])], {"v": floats(H, 5)}, floats(S, H), tmp_path)
    assert not any("precision" in line for line in findings(plain))


# -- classical learning ------------------------------------------------------------------------

X = {"x": floats(S, 4)}


def learned(op: str, outputs: int = 1, **told: Any) -> One:
    old = op in ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
    opsets = (("", 20), (ML, 3)) if old else OPSETS
    return One(op, X, {}, told, outputs, ML, opsets=opsets)


def test_linear_classifier(tmp_path: Path) -> None:
    one = learned(
        "LinearClassifier", 2, coefficients=floats(12).tolist(), intercepts=[0.0, 1.0, 2.0],
        classlabels_ints=[0, 1, 2], post_transform="SOFTMAX",
    )  # fmt: skip
    report = one.check(tmp_path)
    assert (report.totals.params, report.totals.macs) == (15, S * 12)
    one = learned(
        "LinearClassifier", 2, coefficients=floats(4).tolist(), intercepts=[0.0],
        classlabels_strings=["no", "yes"], post_transform="LOGISTIC",
    )  # fmt: skip
    assert one.check(tmp_path).totals.params == 5


def test_linear_regressor(tmp_path: Path) -> None:
    one = learned(
        "LinearRegressor", coefficients=floats(8).tolist(), intercepts=[0.0, 1.0], targets=2
    )
    report = one.check(tmp_path)
    assert (report.totals.params, report.totals.macs) == (10, S * 8)


def test_many_coefficients_are_counted_unread(tmp_path: Path) -> None:
    wide = 5000
    one = One(
        "LinearRegressor", {"x": floats(2, wide)}, {},
        {"coefficients": floats(wide).tolist(), "intercepts": [1.0]}, 1, ML,
    )  # fmt: skip
    assert one.check(tmp_path).totals.params == wide + 1


@pytest.mark.parametrize(
    ("op", "told", "buffers"),
    [
        ("Scaler", {"offset": [1.0] * 4, "scale": [2.0] * 4}, 8),
        ("Scaler", {"offset": [1.0], "scale": [2.0]}, 2),
        ("Normalizer", {"norm": "L1"}, 0), ("Normalizer", {"norm": "L2"}, 0),
        ("Normalizer", {"norm": "MAX"}, 0), ("Binarizer", {"threshold": 0.5}, 0),
        ("Imputer", {"imputed_value_floats": [1.0] * 4, "replaced_value_float": 0.0}, 4),
        ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1]}, 0),
        ("LabelEncoder", {"keys_floats": [1.0], "values_strings": ["a"]}, 0),
        ("OneHotEncoder", {"cats_int64s": [0, 1, 2]}, 0),
    ],
)  # fmt: skip
def test_preparation(tmp_path: Path, op: str, told: dict[str, Any], buffers: int) -> None:
    report = learned(op, **told).check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == (0, buffers)


def test_columns(tmp_path: Path) -> None:
    places = {"places": np.array([0, 2], np.int64)}
    One("ArrayFeatureExtractor", X, places, {}, 1, ML).check(tmp_path)
    fed = {**X, "more": floats(S, 3)}
    One("FeatureVectorizer", fed, {}, {"inputdimensions": [4, 3]}, 1, ML).check(tmp_path)
    fed = {"x": np.array(["a", "b"], object)}
    told = {"cats_strings": ["a", "b"], "cats_int64s": [0, 1]}
    One("CategoryMapper", fed, {}, told, 1, ML).check(tmp_path)


def test_names_on_scores(tmp_path: Path) -> None:
    report = learned("ZipMap", classlabels_int64s=[0, 1, 2, 3]).read(tmp_path)
    assert not report.coverage.unknown
    assert not report.layers


def test_a_dense_map_is_unknown_by_name(tmp_path: Path) -> None:
    report = learned("CastMap").read(tmp_path)
    assert report.coverage.unknown == {f"{ML}::CastMap": 1}
    assert report.layers[0].cost.note == "the number of entries of the map is run-time data"


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(tmp_path: Path, kernel: str) -> None:
    vectors = 6
    told: dict[str, Any] = {
        "kernel_type": kernel, "kernel_params": [0.1, 0.0, 3.0], "rho": [0.5],
        "support_vectors": floats(vectors * 4).tolist(),
    }  # fmt: skip
    one = learned(
        "SVMRegressor", coefficients=floats(vectors).tolist(), n_supports=vectors, **told
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.params == vectors * 4 + vectors + 1
    products = 0 if kernel == "RBF" else S * vectors * 4
    squares = S * vectors * 4 if kernel == "RBF" else 0
    assert report.totals.macs in (products + S * vectors, products + S * vectors + squares)
    told["rho"] = [0.1, 0.2, 0.3]
    one = learned(
        "SVMClassifier", 2, coefficients=floats(2 * vectors).tolist(),
        vectors_per_class=[1, 2, 3], classlabels_ints=[0, 1, 2], **told,
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.params == vectors * 4 + 2 * vectors + 3


def test_support_vectors_with_chances(tmp_path: Path) -> None:
    one = learned(
        "SVMClassifier", 2, coefficients=floats(6).tolist(), vectors_per_class=[3, 3],
        classlabels_ints=[0, 1], kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0], rho=[0.1],
        support_vectors=floats(24).tolist(), prob_a=[1.0], prob_b=[0.5],
    )  # fmt: skip
    assert one.check(tmp_path).totals.params == 24 + 6 + 1 + 2
    one = learned(
        "SVMClassifier", 2, coefficients=floats(12).tolist(), classlabels_ints=[0, 1, 2],
        rho=[0.1, 0.2, 0.3], kernel_type="LINEAR", kernel_params=[0.1, 0.0, 3.0],
    )  # fmt: skip
    assert one.check(tmp_path).totals.params == 12 + 3


# two trees: one of two comparisons at most, one of a single comparison
TREES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0], "nodes_values": [0.5, 0.3, 0, 0, 0, 0.7, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF",
                    "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
}  # fmt: skip
LEAVES = ([0, 0, 0, 1, 1], [2, 3, 4, 1, 2])


def test_trees_that_regress(tmp_path: Path) -> None:
    one = learned(
        "TreeEnsembleRegressor", **TREES, target_treeids=LEAVES[0], target_nodeids=LEAVES[1],
        target_ids=[0] * 5, target_weights=floats(5).tolist(), n_targets=1, base_values=[1.0],
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.params == 8 + 5 + 1
    assert report.totals.ops.comp == S * (2 + 1)
    assert report.coverage.estimated == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_that_classify(tmp_path: Path, classes: int) -> None:
    ids = [0, 1, 2, 1, 0] if classes == 3 else [0] * 5
    one = learned(
        "TreeEnsembleClassifier", 2, **TREES, class_treeids=LEAVES[0], class_nodeids=LEAVES[1],
        class_ids=ids, class_weights=floats(5).tolist(), post_transform="LOGISTIC",
        classlabels_int64s=list(range(classes)),
    )  # fmt: skip
    assert one.check(tmp_path).totals.params == 8 + 5


def test_trees_by_roots(tmp_path: Path) -> None:
    def tensor(values: list[float], dtype: Any = np.float32) -> Any:
        return numpy_helper.from_array(np.array(values, dtype))

    one = learned(
        "TreeEnsemble", n_targets=2, tree_roots=[0], nodes_featureids=[0, 0, 0],
        nodes_splits=tensor([3.14, 1.2, 4.2]), nodes_modes=tensor([0, 0, 0], np.uint8),
        nodes_truenodeids=[1, 0, 1], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 2, 3],
        nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 0, 1], aggregate_function=1,
        leaf_weights=tensor([5.23, 12.12, -12.23, 7.21]), post_transform=0,
    )  # fmt: skip
    report = one.check(tmp_path)
    assert report.totals.params == 3 + 4
    assert report.totals.ops.comp == S * 2


def test_trees_in_a_circle_are_refused(tmp_path: Path) -> None:
    turned = {**TREES, "nodes_modes": ["BRANCH_LEQ"] * 8}  # leaves point back at the root
    one = learned("TreeEnsembleRegressor", **turned, target_weights=[1.0], n_targets=1)
    with pytest.raises(ShapeError):
        one.read(tmp_path)


# -- signals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("inverse", "onesided", "length"), [(0, 0, 0), (0, 1, 0), (1, 0, 16)])
def test_transform(tmp_path: Path, inverse: int, onesided: int, length: int) -> None:
    stored = {"axis": np.array(1, np.int64)}
    order = "x - axis"
    if length:
        stored["length"] = np.array(length, np.int64)
        order = "x length axis"
    parts = 1 if onesided else 2
    told = {"inverse": inverse, "onesided": onesided}
    One("DFT", {"x": floats(B, 12, parts)}, stored, told, 1, "", order).check(tmp_path)


def test_short_transform(tmp_path: Path) -> None:
    stored = {"step": np.array(4, np.int64), "window": floats(8)}
    report = One("STFT", {"x": floats(B, 32, 1)}, stored, {}, 1, "").check(tmp_path)
    assert (report.totals.params, report.totals.buffers) == (0, 0)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_tapers(tmp_path: Path, op: str) -> None:
    one = One(op, X, {"size": np.array(16, np.int64)}, {}, 1, "", "size")
    assert one.check(tmp_path).totals.flops == 0


def test_mel(tmp_path: Path) -> None:
    stored = {
        "bins": np.array(8, np.int64), "length": np.array(32, np.int64),
        "rate": np.array(8192, np.int64), "low": number(0.0), "high": number(4096.0),
    }  # fmt: skip
    One("MelWeightMatrix", X, stored, {}, 1, "", "bins length rate low high").check(tmp_path)


def test_grids_and_matrices(tmp_path: Path) -> None:
    size = {"size": np.array([B, 3, 5, 6], np.int64)}
    One("AffineGrid", {"x": floats(B, 2, 3)}, size, {}, 1, "").check(tmp_path)
    One("Det", {"x": floats(B, 4, 4)}, {}, {}, 1, "").check(tmp_path)
    report = One("Inverse", {"x": floats(B, 4, 4)}).check(tmp_path)
    assert report.totals.macs == B * 4**3
    assert report.coverage.estimated == 1
    stored = {"image": np.array([5, 5], np.int64), "block": np.array([2, 2], np.int64)}
    report = One("Col2Im", {"x": floats(1, 12, 16)}, stored, {}, 1, "").check(tmp_path)
    assert report.totals.flops == 12 * 16


def test_transforms_of_real_numbers(tmp_path: Path) -> None:
    told = {"normalized": 0, "onesided": 1, "signal_ndim": 1}
    report = One("Rfft", {"x": floats(B, 16)}, {}, told).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, 9, 2)
    report = One("Irfft", {"x": floats(B, 9, 2)}, {}, told).check(tmp_path, runs=False)
    assert report.tensors["y0"].shape == (B, 16)


def test_crops(tmp_path: Path) -> None:
    fed = {"x": floats(1, 3, 8, 8), "rois": floats(4, 4), "batch": np.zeros(4, np.int32)}
    One("CropAndResize", fed, {"size": np.array([2, 3], np.int32)}).check(tmp_path)


def test_pairs(tmp_path: Path) -> None:
    fed = {"a": floats(4, 3), "b": floats(5, 3)}
    for metric in ("euclidean", "sqeuclidean"):
        One("CDist", fed, {}, {"metric": metric}).check(tmp_path)
    fed = {"a": floats(4, 2), "b": floats(4, 2)}
    for op in ("ComplexMul", "ComplexMulConj"):
        report = One(op, fed).check(tmp_path, runs=False)
        assert report.totals.flops == 4 * 6
    pads = {"pads": np.array([0, 1, 2, 0], np.int64)}
    assert One("Pad", X, pads).check(tmp_path).tensors["y0"].shape == (S + 2, 5)
    One("ExpandDims", X, {"axis": np.array(1, np.int32)}).check(tmp_path)


def test_pictures_are_unknown_by_name(tmp_path: Path) -> None:
    report = One("ImageDecoder", X, domain="").read(tmp_path)
    assert report.coverage.unknown == {"ImageDecoder": 1}
    assert report.layers[0].cost.note == "height and width of the image are in its encoded bytes"
