"""Decoders of GPT's form: layer norms with bias, feed-forward layers of two matrices."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import FormatError
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import DecoderLayer, HeadAttention, LanguageModel, Weights
from layerscope.llm.families.shapes import feed_forward, linear, merged, norm, projections


def _heads(heads: int, kv_heads: int, head: int) -> HeadAttention:
    if head < 1:
        raise FormatError(f"{heads} heads of less than one channel each")
    return HeadAttention(heads=heads, kv_heads=kv_heads, key_dim=head, value_dim=head)


def _layer(
    attention: HeadAttention, weights: Weights, norms: Weights, mlp: Weights
) -> DecoderLayer:
    return DecoderLayer(parts={"attention": weights, "norms": norms, "mlp": mlp}, mixer=attention)


def _model(
    config: ConfigValues, hidden: int, layers: tuple[DecoderLayer, ...], outer: dict[str, Weights]
) -> LanguageModel:
    vocabulary = config.size("vocab_size")
    head = outer.pop("head", {"lm_head": (vocabulary, hidden)})
    parts: dict[str, Weights] = {"embedding": {"embed_tokens": (vocabulary, hidden)}, **outer}
    if not config.flag("tie_word_embeddings"):
        parts["head"] = head
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        outer=parts,
    )


def _two_norms(hidden: int, vectors: int = 2) -> Weights:
    return merged(norm("ln_1", hidden, vectors), norm("ln_2", hidden, vectors))


def gpt2(config: ConfigValues) -> LanguageModel:
    """GPT-2 and GPT-BigCode, whose keys and values may have one head."""
    hidden, heads = config.size("n_embd", "hidden_size"), config.size("n_head")
    kv_heads = 1 if config.flag("multi_query") else heads
    attention = _heads(heads, kv_heads, hidden // heads)
    inner = config.size("n_inner", otherwise=4 * hidden)
    layer = _layer(
        attention,
        projections(hidden, attention, True, True),
        _two_norms(hidden),
        feed_forward(hidden, inner, False, True),
    )
    positions = {"wpe": (config.size("n_positions", "n_ctx"), hidden)}
    return _model(
        config, hidden, (layer,) * config.layers("n_layer"),
        {"positions": positions, "norm": norm("ln_f", hidden, 2)},
    )  # fmt: skip


def gpt_neox(config: ConfigValues) -> LanguageModel:
    """GPT-NeoX and Pythia."""
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    attention = _heads(heads, heads, hidden // heads)
    bias = config.value("attention_bias") is not False
    layer = _layer(
        attention,
        projections(hidden, attention, bias, bias),
        _two_norms(hidden),
        feed_forward(hidden, config.size("intermediate_size"), False, True),
    )
    outer = {"norm": norm("final_layer_norm", hidden, 2)}
    return _model(config, hidden, (layer,) * config.layers(), outer)


def gptj(config: ConfigValues) -> LanguageModel:
    """GPT-J, whose attention and feed-forward layer share a norm."""
    hidden, heads = config.size("n_embd"), config.size("n_head")
    attention = _heads(heads, heads, hidden // heads)
    inner = config.size("n_inner", otherwise=4 * hidden)
    layer = _layer(
        attention,
        projections(hidden, attention),
        norm("ln_1", hidden, 2),
        feed_forward(hidden, inner, False, True),
    )
    head = linear("lm_head", config.size("vocab_size"), hidden, True)
    outer: dict[str, Weights] = {"norm": norm("ln_f", hidden, 2), "head": head}
    return _model(config, hidden, (layer,) * config.layers("n_layer"), outer)


def opt(config: ConfigValues) -> LanguageModel:
    """OPT; its table of positions has two more rows than positions."""
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    attention = _heads(heads, heads, hidden // heads)
    bias = config.value("enable_bias") is not False
    vectors = 0 if config.value("layer_norm_elementwise_affine") is False else 2
    layer = _layer(
        attention,
        projections(hidden, attention, bias, bias),
        _two_norms(hidden, vectors),
        feed_forward(hidden, config.size("ffn_dim"), False, bias),
    )
    outer: dict[str, Weights] = {
        "positions": {"embed_positions": (config.size("max_position_embeddings") + 2, hidden)}
    }
    has_norm = config.value("do_layer_norm_before") is not False
    if has_norm and not config.flag("_remove_final_layer_norm"):
        outer["norm"] = norm("final_layer_norm", hidden, vectors)
    width = config.size("word_embed_proj_dim", otherwise=hidden)
    model = _model(config, width, (layer,) * config.layers(), outer)
    if width == hidden:
        return model
    outer["projections"] = {"project_in": (hidden, width), "project_out": (width, hidden)}
    return _model(config, width, model.layers, outer)


def bloom(config: ConfigValues) -> LanguageModel:
    """BLOOM, with a norm of the embedding."""
    hidden = config.size("hidden_size", "n_embed")
    heads = config.size("n_head", "num_attention_heads")
    attention = _heads(heads, heads, hidden // heads)
    layer = _layer(
        attention,
        projections(hidden, attention, True, True),
        _two_norms(hidden),
        feed_forward(hidden, 4 * hidden, False, True),
    )
    norms = merged(norm("word_embeddings_layernorm", hidden, 2), norm("ln_f", hidden, 2))
    number = config.layers("n_layer", "num_hidden_layers")
    return _model(config, hidden, (layer,) * number, {"norm": norms})


def falcon(config: ConfigValues) -> LanguageModel:
    """Falcon of all three architectures: multi-query, grouped, and multi-head with ALiBi."""
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads", "n_head")
    is_new = config.flag("new_decoder_architecture")
    kv_heads = heads
    if is_new:
        kv_heads = config.size("num_kv_heads", otherwise=heads)
    elif config.flag("multi_query"):
        kv_heads = 1
    attention = _heads(heads, kv_heads, hidden // heads)
    bias = config.flag("bias")
    norms = 2 if is_new else 1
    if is_new:
        norms = config.count("num_ln_in_parallel_attn", otherwise=2)
    elif not config.flag("parallel_attn"):
        norms = 2
    inner = config.size("ffn_hidden_size", otherwise=4 * hidden)
    layer = _layer(
        attention,
        projections(hidden, attention, bias, bias),
        merged(*(norm(f"ln_{i}", hidden, 2) for i in range(norms))),
        feed_forward(hidden, inner, False, bias),
    )
    number = config.layers("num_hidden_layers", "n_layer")
    return _model(config, hidden, (layer,) * number, {"norm": norm("ln_f", hidden, 2)})


def phi(config: ConfigValues) -> LanguageModel:
    """Phi 1 and 2, whose head has a bias."""
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    kv_heads = config.size("num_key_value_heads", otherwise=heads)
    attention = _heads(heads, kv_heads, hidden // heads)
    norms = norm("input_layernorm", hidden, 2)
    if config.flag("qk_layernorm"):
        size = attention.key_dim
        norms = merged(norms, norm("q_layernorm", size, 2), norm("k_layernorm", size, 2))
    layer = _layer(
        attention,
        projections(hidden, attention, True, True),
        norms,
        feed_forward(hidden, config.size("intermediate_size"), False, True),
    )
    head = linear("lm_head", config.size("vocab_size"), hidden, True)
    outer: dict[str, Weights] = {"norm": norm("final_layernorm", hidden, 2), "head": head}
    return _model(config, hidden, (layer,) * config.layers(), outer)


FAMILY: dict[str, Callable[[ConfigValues], LanguageModel]] = {
    "bloom": bloom,
    "falcon": falcon,
    "gpt2": gpt2,
    "gpt_bigcode": gpt2,
    "gpt_neox": gpt_neox,
    "gptj": gptj,
    "opt": opt,
    "phi": phi,
}
