"""Multiply-adds of recurrent models and of encoders with decoders against closed forms.

As in test_torch_closed_forms.py no term is from the package. Recurrences are those of the PyTorch
code of transformers, which runs where no kernel is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope.api.networks import analyze
from tests.llm.test_torch_closed_forms import LENGTHS, Config, gated, grouped, heads, hidden, routed
from tests.llm.test_torch_families import _modules, _small

pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")
LONGEST, ENCODED = 8200, 128  # tokens of an encoder for a step of decoding
CHUNK = 64  # tokens of a chunk of a gated delta net


# Convolutions over time: padded on both sides and cut for a prompt, two outputs for one token


def convolved(channels: int, kernel: int, tokens: int, past: int) -> int:
    outputs = 2 if past else max(tokens, kernel) + kernel - 1
    return channels * kernel * outputs


def mamba(c: Config, tokens: int, past: int) -> int:
    """Each token: projections, the steps of time, and the state times the row that reads it."""
    kernel = int(c.get("conv_kernel") or c["mamba_d_conv"])
    inner = int(c.get("expand") or c["mamba_expand"]) * hidden(c)
    state = int(c.get("state_size") or c["mamba_d_state"])
    rank = int(c.get("time_step_rank") or c["mamba_dt_rank"])
    each = 3 * hidden(c) * inner + inner * (rank + 2 * state) + rank * inner + inner * state
    return tokens * each + convolved(inner, kernel, tokens, past)


def mamba2(c: Config, tokens: int, past: int) -> int:
    """A prompt in chunks: pairs inside of each, states between them."""
    count, size, state = c["num_heads"], c["head_dim"], c["state_size"]
    inner, channels = count * size, count * size + 2 * c["n_groups"] * state
    total = int(tokens * hidden(c) * (inner + channels + count + inner))
    total += convolved(channels, c["conv_kernel"], tokens, past)
    if past:
        return total + int(inner * state)
    chunk = c["chunk_size"]
    number = -(-tokens // chunk)
    pairs = number * chunk * chunk * count * (state + size)
    states = 2 * number * chunk * count * state * size
    return total + int(pairs + states + (number + 1) ** 2 * count * state * size)


def delta(c: Config, tokens: int, past: int) -> int:
    """A prompt in chunks, whose products with the inverse of a triangle are solved."""
    keys, values = c["linear_num_key_heads"], c["linear_num_value_heads"]
    key, value = c["linear_key_head_dim"], c["linear_value_head_dim"]
    wide = 2 * keys * key + 2 * values * value
    total = int(tokens * hidden(c) * (wide + 2 * values + values * value))
    channels = 2 * keys * key + values * value
    total += convolved(channels, c["linear_conv_kernel_dim"], tokens, past)
    if past:
        return total  # the step of one token has sums of products, and no matrix product
    each = 2 * CHUNK * CHUNK * key + CHUNK * (CHUNK - 1) // 2 * (key + value)
    each += 3 * CHUNK * key * value + CHUNK * CHUNK * value
    return total + int(-(-tokens // CHUNK) * values * each)


def attention(c: Config, tokens: int, past: int) -> int:
    count, _, size = heads(c)
    return tokens * grouped(c, 0) + 2 * count * size * tokens * (past + tokens)


# Whole decoders


def with_head(c: Config, tokens: int, layers: int) -> int:
    return layers + tokens * hidden(c) * int(c["vocab_size"])


def of_mamba(c: Config, tokens: int, past: int) -> int:
    return with_head(c, tokens, int(c["num_hidden_layers"]) * mamba(c, tokens, past))


def of_mamba2(c: Config, tokens: int, past: int) -> int:
    return with_head(c, tokens, int(c["num_hidden_layers"]) * mamba2(c, tokens, past))


def of_qwen3_next(c: Config, tokens: int, past: int) -> int:
    count, _, size = heads(c)
    total = 0
    for kind in c["layer_types"]:
        if kind == "linear_attention":
            total += delta(c, tokens, past)
        else:  # with as many gates as queries
            total += attention(c, tokens, past) + tokens * hidden(c) * count * size
        shared = hidden(c) * (3 * int(c["shared_expert_intermediate_size"]) + 1)
        total += tokens * (routed(c, c["num_experts"], c["moe_intermediate_size"]) + shared)
    return with_head(c, tokens, total)


def of_jamba(c: Config, tokens: int, past: int) -> int:
    total = 0
    for layer in range(c["num_hidden_layers"]):
        is_attention = layer % c["attn_layer_period"] == c["attn_layer_offset"]
        total += attention(c, tokens, past) if is_attention else mamba(c, tokens, past)
        if layer % c["expert_layer_period"] == c["expert_layer_offset"]:
            total += tokens * routed(c, c["num_experts"], c["intermediate_size"])
        else:
            total += tokens * gated(c, layer)
    return with_head(c, tokens, total)


# Encoders and decoders


def crossed(width: int, inner: int, lengths: tuple[int, int], is_cached: bool) -> int:
    """Queries and output for each token, keys and values of the encoder unless they are cached."""
    tokens, encoded = lengths
    keys = 0 if is_cached else 2 * encoded * width * inner
    return keys + 2 * tokens * width * inner + 2 * inner * tokens * encoded


def own(width: int, inner: int, tokens: int, past: int) -> int:
    return 4 * tokens * width * inner + 2 * inner * tokens * (past + tokens)


def of_t5(c: Config, tokens: int, past: int) -> int:
    width, inner = c["d_model"], c["num_heads"] * c["d_kv"]
    feed_forward = 2 * width * c["d_ff"]
    encoded = ENCODED if past else tokens
    total = tokens * width * c["vocab_size"]
    if not past:
        total += c["num_layers"] * (own(width, inner, tokens, 0) + tokens * feed_forward)
    each = own(width, inner, tokens, past) + tokens * feed_forward
    each += crossed(width, inner, (tokens, encoded), bool(past))
    return int(total + c["num_decoder_layers"] * each)


def of_bart(c: Config, tokens: int, past: int) -> int:
    width = c["d_model"]
    whisper = "max_source_positions" in c
    encoded = int(c["max_source_positions"]) if whisper else ENCODED if past else tokens
    total = tokens * width * c["vocab_size"]
    if not past:
        each = own(width, width, encoded, 0) + 2 * encoded * width * c["encoder_ffn_dim"]
        total += c["encoder_layers"] * each
        if whisper:  # two convolutions of three frames, the second at half of the rate
            total += 2 * encoded * 3 * c["num_mel_bins"] * width + encoded * 3 * width * width
    each = own(width, width, tokens, past) + 2 * tokens * width * c["decoder_ffn_dim"]
    each += crossed(width, width, (tokens, encoded), bool(past))
    return int(total + c["decoder_layers"] * each)


FORMS: dict[str, tuple[str, Callable[[Config, int, int], int]]] = {
    "bart": ("BartForConditionalGeneration", of_bart),
    "jamba": ("JambaForCausalLM", of_jamba),
    "mamba": ("MambaForCausalLM", of_mamba),
    "mamba2": ("Mamba2ForCausalLM", of_mamba2),
    "qwen3_next": ("Qwen3NextForCausalLM", of_qwen3_next),
    "t5": ("T5ForConditionalGeneration", of_t5),
    "whisper": ("WhisperForConditionalGeneration", of_bart),
}


@pytest.mark.parametrize("kind", FORMS)
def test_multiply_adds_are_those_of_the_closed_form(kind: str, tmp_path: Path) -> None:
    _, transformers = _modules()
    named, form = FORMS[kind]
    config: Config = _small(transformers, kind).to_dict()
    names = {"max_position_embeddings", "max_target_positions"} & {*config}
    config.update(dict.fromkeys(names, LONGEST), model_type=kind, architectures=[named])
    if kind in ("mamba", "jamba"):  # each token of a prompt is a product of its own
        config["num_hidden_layers"] = 2
        config.pop("layers_block_type", None)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    found, expected = {}, {}
    for tokens, past in LENGTHS:
        prompt, cache = (None, past) if past else (tokens, None)
        found[tokens, past] = analyze(f"hf:{path}", tokens=prompt, decode=cache).total_macs
        expected[tokens, past] = form(config, tokens, past)
    assert found == expected
