"""Llama 4: chunked attention, and every few layers all keys; experts beside a shared one."""

from __future__ import annotations

from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    Experts,
    HeadAttention,
    LanguageModel,
    Weights,
)
from layerscope.llm.families.shapes import (
    feed_forward,
    linear,
    merged,
    norm,
    outer_parts,
    projections,
    stacked,
)

NO_ROPE_INTERVAL = 4


def describe(config: ConfigValues) -> LanguageModel:
    """The layers of Llama 4's decoder."""
    hidden, number = config.size("hidden_size"), config.layers()
    vocabulary = config.size("vocab_size")
    step = config.size("interleave_moe_layer_step", otherwise=1)
    listed = config.items("moe_layers")
    sparse = {*listed} if listed else {*range(step - 1, number, step)}
    chunked = _chunked(config, number)
    layers = tuple(_layer(config, hidden, chunked[i], i in sparse) for i in range(number))
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        outer=outer_parts(
            hidden, vocabulary, config.flag("tie_word_embeddings"), norm("norm", hidden)
        ),
    )


def _chunked(config: ConfigValues, number: int) -> list[bool]:
    """Whether each layer sees its own chunk alone: those with rotary positions."""
    if config.items("layer_types"):
        return [kind == "chunked_attention" for kind in config.layer_types(number)]
    rotary = config.items("no_rope_layers")  # 1 where positions are rotary
    if len(rotary) >= number:
        return [bool(each) for each in rotary[:number]]
    interval = config.size("no_rope_layer_interval", otherwise=NO_ROPE_INTERVAL)
    return [(i + 1) % interval != 0 for i in range(number)]


def _layer(config: ConfigValues, hidden: int, is_chunked: bool, is_sparse: bool) -> DecoderLayer:
    heads = config.size("num_attention_heads")
    head = config.size("head_dim", otherwise=hidden // heads)
    attention = HeadAttention(
        heads=heads,
        kv_heads=config.size("num_key_value_heads", otherwise=heads),
        key_dim=head,
        value_dim=head,
        chunk=config.count("attention_chunk_size", otherwise=0) if is_chunked else 0,
    )
    bias = config.flag("attention_bias")
    parts: dict[str, Weights] = {
        "attention": projections(hidden, attention, bias, bias),
        "norms": merged(norm("input_layernorm", hidden), norm("post_attention_layernorm", hidden)),
    }
    if not is_sparse:
        parts["mlp"] = feed_forward(hidden, config.size("intermediate_size_mlp"))
        return DecoderLayer(parts=parts, mixer=attention)
    count, inner = config.size("num_local_experts"), config.size("intermediate_size")
    parts[EXPERTS] = stacked(feed_forward(hidden, inner), count)
    parts["shared expert"] = feed_forward(hidden, inner)
    parts["router"] = linear("router", count, hidden)
    experts = Experts(count, config.size("num_experts_per_tok"))
    return DecoderLayer(parts=parts, mixer=attention, experts=experts)
