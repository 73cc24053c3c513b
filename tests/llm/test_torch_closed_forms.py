"""Multiply-adds of captured language models against closed forms of their configurations.

The forms are sums of terms that architectures share, written here; none is from the package.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layerscope.api.networks import analyze
from tests.llm.test_torch_families import _modules, _small

pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")
LAYERS, LONGEST = 3, 8200
LENGTHS = ((1, 0), (128, 0), (4096, 0), (1, 1024), (1, 8192))  # new tokens, tokens before them
Config = dict[str, Any]
Form = Callable[[Config, int], int]  # of a configuration and the number of a layer


def first(c: Config, *names: str) -> int:
    """The value of the first name that a configuration has."""
    return next(int(c[name]) for name in names if c.get(name) is not None)


def hidden(c: Config) -> int:
    return first(c, "hidden_size", "n_embd")


def heads(c: Config) -> tuple[int, int, int]:
    """Heads, heads of keys and values, and their size."""
    count = first(c, "num_attention_heads", "n_head")
    kv = first(c | {"all": count}, "num_key_value_heads", "all")
    return count, kv, first(c | {"share": hidden(c) // count}, "head_dim", "share")


# Matrices of one layer for one token


def grouped(c: Config, _layer: int) -> int:
    """Queries and output of all heads, keys and values of their own heads."""
    count, kv, size = heads(c)
    return hidden(c) * size * (2 * count + 2 * kv)


def one_kv_head(c: Config, _layer: int) -> int:
    count, _, size = heads(c)
    return hidden(c) * size * (2 * count + 2)


def latent(c: Config, _layer: int) -> int:
    """Queries through their own low rank; keys and values through one latent per token."""
    count, width = c["num_attention_heads"], hidden(c)
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    query = c["q_lora_rank"] * (width + count * (nope + rope))
    down = width * (c["kv_lora_rank"] + rope)
    return int(query + down + expanded(c) + count * value * width)


def expanded(c: Config) -> int:
    """Keys and values of all heads from the latent of one token."""
    size = c["qk_nope_head_dim"] + c["v_head_dim"]
    return int(c["kv_lora_rank"] * c["num_attention_heads"] * size)


def gated(c: Config, _layer: int) -> int:
    return 3 * hidden(c) * int(c["intermediate_size"])


def plain(c: Config, _layer: int) -> int:
    wide = c | {"four": 4 * hidden(c)}
    return 2 * hidden(c) * first(wide, "intermediate_size", "ffn_dim", "n_inner", "four")


def four_times(c: Config, _layer: int) -> int:
    return 8 * hidden(c) ** 2


def routed(c: Config, count: int, inner: int) -> int:
    """A router, and three matrices of each expert that a token is sent to."""
    return hidden(c) * (count + 3 * int(c["num_experts_per_tok"]) * inner)


def mixture(c: Config, _layer: int) -> int:
    count = first(c, "num_local_experts", "num_experts", "n_routed_experts")
    return routed(c, count, first(c, "moe_intermediate_size", "intermediate_size"))


def mixture_after_dense(c: Config, layer: int) -> int:
    """The first layers are dense; the others have shared experts beside the routed ones."""
    if layer < c["first_k_dense_replace"]:
        return gated(c, layer)
    inner = int(c["moe_intermediate_size"])
    return mixture(c, layer) + 3 * hidden(c) * inner * int(c["n_shared_experts"])


def every_expert(c: Config, _layer: int) -> int:
    """transformers multiplies every token by every expert of Llama 4, and by a shared one."""
    count = int(c["num_local_experts"])
    return hidden(c) * count + 3 * hidden(c) * int(c["intermediate_size"]) * (count + 1)


FORMS: dict[str, tuple[Form, Form]] = {
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo",
         "olmo2", "granite", "cohere2"),
        (grouped, gated),
    ),
    **dict.fromkeys(("phi", "gpt2", "gpt_neox", "opt", "starcoder2"), (grouped, plain)),
    "bloom": (grouped, four_times),
    "falcon": (one_kv_head, plain),
    **dict.fromkeys(("mixtral", "qwen3_moe", "gpt_oss"), (grouped, mixture)),
    "glm4_moe": (grouped, mixture_after_dense),
    "llama4_text": (grouped, every_expert),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), (latent, mixture_after_dense)),
}  # fmt: skip


def keys(c: Config, layer: int, tokens: int, past: int) -> int:
    """Keys that are multiplied: a cache of a window or chunk keeps all but one of its tokens."""
    window = c.get("sliding_window") or c.get("attention_chunk_size") or 0
    kinds = c.get("layer_types") or ["sliding_attention" if window else "full_attention"] * LAYERS
    is_short = kinds[layer] in ("sliding_attention", "chunked_attention")
    return tokens + (min(past, window - 1) if is_short else past)


def closed_form(kind: str, c: Config, tokens: int, past: int) -> int:
    attention, feed_forward = FORMS[kind]
    total = tokens * hidden(c) * int(c["vocab_size"])
    for layer in range(LAYERS):
        total += tokens * (attention(c, layer) + feed_forward(c, layer))
        if attention is latent:  # cached latents are expanded again
            total += past * expanded(c)
            size = c["qk_nope_head_dim"] + c["qk_rope_head_dim"] + c["v_head_dim"]
            total += c["num_attention_heads"] * size * tokens * (past + tokens)
        else:
            count, _, size = heads(c)
            total += 2 * count * size * tokens * keys(c, layer, tokens, past)
    return total


def configuration(kind: str) -> Config:
    """A small configuration of three layers, long enough for all lengths."""
    _, transformers = _modules()
    config: Config = _small(transformers, kind).to_dict()
    names = {"max_position_embeddings", "n_positions"} & {*config}
    config.update(dict.fromkeys(names, LONGEST), model_type=kind)
    config.update({name: LAYERS for name in ("num_hidden_layers", "n_layer") if name in config})
    if isinstance(config.get("layer_types"), list):
        config["layer_types"] = config["layer_types"][-LAYERS:]
    for name in ("no_rope_layers", "moe_layers"):
        config.pop(name, None)
    mapping = transformers.AutoModelForCausalLM._model_mapping
    config["architectures"] = [mapping[transformers.CONFIG_MAPPING[kind]].__name__]
    return config


def test_there_are_25_architectures() -> None:
    assert len(FORMS) >= 25


@pytest.mark.parametrize("kind", FORMS)
def test_multiply_adds_are_those_of_the_closed_form(kind: str, tmp_path: Path) -> None:
    config = configuration(kind)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    found, expected = {}, {}
    for tokens, past in LENGTHS:
        prompt, cache = (None, past) if past else (tokens, None)
        found[tokens, past] = analyze(f"hf:{path}", tokens=prompt, decode=cache).total_macs
        expected[tokens, past] = closed_form(kind, config, tokens, past)
    assert found == expected
