"""Gemma 4: wider heads in layers that see all keys, layers that share keys and values."""

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
from layerscope.llm.families.llama import FOUR
from layerscope.llm.families.shapes import (
    feed_forward,
    linear,
    merged,
    norm,
    outer_parts,
    projections,
    stacked,
)

INTERVAL = 6
WIDE = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
GLOBAL_HEAD = 512  # the default of transformers
SPARSE_NORMS = (
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm_2",
    "pre_feedforward_layernorm_2",
)


def describe(config: ConfigValues) -> LanguageModel:
    """The layers of Gemma 4's decoder."""
    hidden, number = config.size("hidden_size"), config.layers()
    vocabulary = config.size("vocab_size")
    kinds = config.layer_types(number, INTERVAL)
    full = [kind == "full_attention" for kind in kinds]
    if full:
        full[-1] = True  # as transformers does
    first_shared = number - config.count("num_kv_shared_layers", otherwise=0)
    layers = tuple(
        _layer(_of_layer(config, i), hidden, full[i], i >= first_shared) for i in range(number)
    )
    outer = dict(
        outer_parts(hidden, vocabulary, config.flag("tie_word_embeddings"), norm("norm", hidden))
    )
    width = config.count("hidden_size_per_layer_input", otherwise=0)
    if width:
        rows = config.size("vocab_size_per_layer_input", otherwise=vocabulary)
        outer["layer embeddings"] = {
            "embed_tokens_per_layer": (rows, number * width),
            "per_layer_model_projection": (number * width, hidden),
            **norm("per_layer_projection_norm", width),
        }
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        outer=outer,
    )


def _of_layer(config: ConfigValues, i: int) -> ConfigValues:
    """The configuration of one layer, with the values that it lists for that layer alone."""
    listed = config.value("per_layer_config")
    if not isinstance(listed, dict):
        return config
    own = next((each for key, each in listed.items() if str(key).lstrip("0") == str(i or "")), None)
    if not isinstance(own, dict):
        return config
    for name, value in own.items():
        config = config.with_value(str(name), value)
        wide = WIDE.get(str(name))
        config = config.with_value(wide, value) if wide else config
    return config


def _attention(config: ConfigValues, is_full: bool, is_shared: bool) -> HeadAttention:
    head = config.size("head_dim")
    kv_heads = config.size("num_key_value_heads")
    if is_full:
        head = config.size("global_head_dim", otherwise=GLOBAL_HEAD)
        if config.flag("attention_k_eq_v"):
            kv_heads = config.size("num_global_key_value_heads", otherwise=kv_heads)
    return HeadAttention(
        heads=config.size("num_attention_heads"),
        kv_heads=kv_heads,
        key_dim=head,
        value_dim=head,
        window=0 if is_full else config.size("sliding_window"),
        is_cached=not is_shared,
    )


def _layer(config: ConfigValues, hidden: int, is_full: bool, is_shared: bool) -> DecoderLayer:
    attention = _attention(config, is_full, is_shared)
    bias = config.flag("attention_bias")
    weights = dict(projections(hidden, attention, bias, bias))
    norms = {**merged(*(norm(name, hidden) for name in FOUR)), "q_norm": (attention.key_dim,)}
    norms["k_norm"] = (attention.key_dim,)
    if is_shared:  # keys and values are those of an earlier layer
        del norms["k_norm"]
        weights = {name: shape for name, shape in weights.items() if name[0] not in "kv"}
    elif is_full and config.flag("attention_k_eq_v"):
        weights = {name: shape for name, shape in weights.items() if name[0] != "v"}
    inner = config.size("intermediate_size")
    if is_shared and config.flag("use_double_wide_mlp"):
        inner *= 2
    parts: dict[str, Weights] = {
        "attention": weights,
        "norms": norms,
        "mlp": feed_forward(hidden, inner),
        "buffers": {"layer_scalar": (1,)},
    }
    width = config.count("hidden_size_per_layer_input", otherwise=0)
    if width:
        parts["layer embeddings"] = {
            "per_layer_input_gate": (width, hidden),
            "per_layer_projection": (hidden, width),
            **norm("post_per_layer_input_norm", hidden),
        }
    if not config.flag("enable_moe_block"):
        return DecoderLayer(parts=parts, mixer=attention)
    count = config.size("num_experts")
    size = config.size("moe_intermediate_size", "expert_intermediate_size")
    norms.update(merged(*(norm(name, hidden) for name in SPARSE_NORMS)))
    parts[EXPERTS] = stacked(feed_forward(hidden, size), count)
    parts["router"] = {
        **linear("proj", count, hidden),
        "scale": (hidden,),
        "per_expert_scale": (count,),
    }
    experts = Experts(count, config.size("top_k_experts"))
    return DecoderLayer(parts=parts, mixer=attention, experts=experts)
