"""Descriptions of language models against the models that transformers builds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.families import FAMILIES, describe
from layerscope.llm.parameters import total_params
from layerscope.llm.runtimes import RUNTIMES
from tests.formats.torch.torch_nets import torch as pytorch
from tests.formats.torch.torch_nets import vision

pytestmark = pytest.mark.filterwarnings("ignore")
NOT_THERE = {"kimi_k2", "mimo"}  # their classes are remote code
TEXT = {"qwen3_vl_text": "Qwen3VLTextModel", "qwen3_vl_moe_text": "Qwen3VLMoeTextModel"}
# Values without which transformers itself does not build the model of a default configuration.
NEEDED: dict[str, dict[str, object]] = {
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "nemotron": {"head_dim": 128, "num_key_value_heads": 8},
}
# Small sizes: layers of every kind, windows shorter than the prompt.
SMALL: dict[str, object] = {
    "hidden_size": 64, "n_embd": 64, "d_model": 64, "num_hidden_layers": 6, "n_layer": 6,
    "num_layers": 3, "num_decoder_layers": 2, "encoder_layers": 2, "decoder_layers": 3,
    "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "d_kv": 16,
    "intermediate_size": 96, "intermediate_size_mlp": 80, "ffn_dim": 96, "d_ff": 96,
    "encoder_ffn_dim": 96, "decoder_ffn_dim": 80, "moe_intermediate_size": 40, "n_inner": 96,
    "num_experts": 6, "num_local_experts": 6, "n_routed_experts": 6, "num_experts_per_tok": 2,
    "shared_intermediate_size": 56, "shared_expert_intermediate_size": 48, "vocab_size": 128,
    "sliding_window": 7, "attention_chunk_size": 8, "kv_lora_rank": 20, "q_lora_rank": 28,
    "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 2, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "max_position_embeddings": 64,
    "n_positions": 64, "index_n_heads": 4, "index_head_dim": 16, "index_topk": 4,
    "index_block_size": 4, "index_topk_blocks": 3, "dense_intermediate_size": 88,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 12,
    "linear_value_head_dim": 10, "mamba_n_heads": 8, "mamba_d_state": 12, "mamba_d_head": 16,
    "mamba_n_groups": 2, "mamba_expand": 2, "state_size": 12, "n_groups": 2,
    "ssm_state_size": 12, "mamba_num_heads": 6, "mamba_head_dim": 10, "attn_layer_period": 3,
    "attn_layer_offset": 1, "attn_layer_indices": [1, 4], "max_source_positions": 32,
    "max_target_positions": 64, "num_mel_bins": 8, "vocab_size_per_layer_input": 128,
    "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 2, "rotary_dim": 8,
    "moe_shared_expert_intermediate_size": 40, "global_head_dim": 32, "word_embed_proj_dim": 64,
}  # fmt: skip
# Where those sizes do not divide each other, or a class has no value of that name.
CHANGED: dict[str, dict[str, object]] = {
    "minimax_m3_vl_text": {
        "layer_types": ["full_attention", *["minimax_m3_sparse"] * 5],
        "mlp_layer_types": ["dense", *["sparse"] * 5],
    },
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "bitnet": {"head_dim": 16},
    **{
        kind: {"num_key_value_heads": 4}
        for kind in ("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa")
    },
    "gemma4_text": {"num_hidden_layers": 12},
    "helium": {"head_dim": 16},
    "stablelm": {"head_dim": 16},
    "nemotron_h": {
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
        "num_hidden_layers": None,
    },
    "granitemoehybrid": {
        "layer_types": ["linear_attention", "full_attention"] * 3, "head_dim": None,
    },
    "jamba": {"head_dim": None},
    "bamba": {"head_dim": None},
    "falcon": {"head_dim": None, "multi_query": True, "new_decoder_architecture": False},
    "qwen2": {"use_sliding_window": True, "max_window_layers": 2},
}  # fmt: skip
TOKENS = 21


def _modules() -> tuple[Any, Any]:
    """PyTorch and transformers, which imports torchvision."""
    vision()
    return pytorch, pytest.importorskip("transformers", reason="make test-torch")


def _build(transformers: Any, kind: str, config: Any) -> Any:
    if kind in TEXT:
        return getattr(transformers, TEXT[kind])(config)
    if kind == "whisper":
        return transformers.WhisperForConditionalGeneration(config)
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM.from_config(config)
    return transformers.AutoModelForCausalLM.from_config(config)


def _count(model: Any) -> int:
    return sum(int(each.numel()) for each in model.parameters())


def _described(kind: str, values: Mapping[str, object]) -> Any:
    model = describe({**values, "model_type": kind}, kind)
    if kind in TEXT:  # these classes have no head
        model = replace(model, outer={k: v for k, v in model.outer.items() if k != "head"})
    return model


@pytest.mark.parametrize("kind", sorted({*FAMILIES} - NOT_THERE))
def test_parameters_are_those_of_the_built_model(kind: str) -> None:
    torch, transformers = _modules()
    config = transformers.CONFIG_MAPPING[kind](**NEEDED.get(kind, {}))
    with torch.device("meta"):
        model = _build(transformers, kind, config)
    assert total_params(_described(kind, config.to_dict())) == _count(model)


@pytest.mark.parametrize("kind", sorted({*FAMILIES} - NOT_THERE - {"nemotron_h"}))
def test_defaults_are_those_of_transformers(kind: str) -> None:
    _, transformers = _modules()
    config = transformers.CONFIG_MAPPING[kind](**NEEDED.get(kind, {}))
    given = describe({**config.to_dict(), "model_type": kind}, kind)
    found = describe({**NEEDED.get(kind, {}), "model_type": kind}, kind)
    assert replace(found, predictors=()) == replace(given, predictors=())


def _small(transformers: Any, kind: str) -> Any:
    import dataclasses

    kind_of_config = transformers.CONFIG_MAPPING[kind]
    names = {each.name for each in dataclasses.fields(kind_of_config)}
    names |= {*getattr(kind_of_config, "attribute_map", {})}
    values = {name: value for name, value in SMALL.items() if name in names}
    values.update(CHANGED.get(kind, {}))
    if kind == "gemma4_text":
        values["global_head_dim"] = SMALL["global_head_dim"]
    values = {name: value for name, value in values.items() if value is not None}
    return kind_of_config(**{**NEEDED.get(kind, {}), **values})


def _tensors(value: Any, torch: Any, seen: set[int]) -> int:
    """Bytes of all tensors in a cache: of its layers' keys, values and states."""
    if isinstance(value, torch.Tensor):
        is_new = id(value) not in seen
        seen.add(id(value))
        return int(value.numel() * value.element_size()) if is_new and value.dim() > 1 else 0
    if isinstance(value, (list, tuple)):
        return sum(_tensors(each, torch, seen) for each in value)
    if isinstance(value, dict):
        return sum(_tensors(each, torch, seen) for each in value.values())
    if hasattr(value, "__dict__") and type(value).__module__.startswith("transformers."):
        return sum(_tensors(each, torch, seen) for k, each in vars(value).items() if k != "config")
    return 0


@pytest.mark.parametrize("kind", sorted({*FAMILIES} - NOT_THERE - {*TEXT}))
def test_a_small_copy_has_these_parameters_and_this_cache(kind: str) -> None:
    torch, transformers = _modules()
    config = _small(transformers, kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = _build(transformers, kind, config).eval()
    described = _described(kind, config.to_dict())
    assert total_params(described) == _count(model)
    ids = torch.ones(2, TOKENS, dtype=torch.int64)
    given: dict[str, object] = {"input_ids": ids}
    encoded = 0
    if config.is_encoder_decoder:
        given, encoded = {"input_ids": ids[:, :9], "decoder_input_ids": ids}, 9
        if kind == "whisper":
            given, encoded = {"input_features": torch.ones(2, 8, 64), "decoder_input_ids": ids}, 32
    with torch.no_grad():
        result = model(**given, use_cache=True)
    cache = getattr(result, "past_key_values", None)
    cache = getattr(result, "cache_params", None) if cache is None else cache
    options = CacheOptions(tokens=TOKENS, sequences=2, keys="f32", values="f32", encoded=encoded)
    counted = cache_bytes(described, options, RUNTIMES["transformers"])
    assert counted == _tensors(cache, torch, set())


MIXED: dict[str, dict[str, object]] = {
    "mimo_v2_flash": {
        "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0], "moe_layer_freq": [0, 1, 1, 1, 1, 1],
        "sliding_window_size": 6, "swa_num_key_value_heads": 4,
    },
    "minimax_m3_vl_text": {
        "moe_layer_freq": [0, 0, 1, 1, 1, 1],
        "sparse_attention_config": {
            "sparse_attention_freq": [0, 1, 0, 1, 1, 1], "sparse_block_size": 4,
            "sparse_index_dim": 12, "sparse_num_index_heads": 2, "sparse_topk_blocks": 3,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", MIXED)
def test_lists_of_layers_as_publishers_write_them_are_those_of_transformers(kind: str) -> None:
    torch, transformers = _modules()
    values = {**SMALL, **MIXED[kind]}
    config = transformers.CONFIG_MAPPING[kind](**values)
    with torch.device("meta"):
        model = _build(transformers, kind, config)
    found = describe({**values, "model_type": kind}, kind)
    assert total_params(found) == _count(model)
    assert replace(found, predictors=()) == describe({**config.to_dict(), "model_type": kind}, kind)


@pytest.mark.parametrize("name", ["moe_layer_freq", "hybrid_layer_pattern"])
@pytest.mark.parametrize("value", [[0, 1], [0, 1, 1, 1, 1, 2]])
def test_lists_of_another_length_or_other_values_are_refused(name: str, value: object) -> None:
    with pytest.raises(FormatError, match=f"{name} has"):
        describe({"model_type": "mimo_v2_flash", "num_hidden_layers": 6, name: value})
