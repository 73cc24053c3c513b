"""Encoders and decoders: T5, BART and Whisper; decoder layers also attend to the encoder."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import FormatError
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import DecoderLayer, HeadAttention, LanguageModel, Weights
from layerscope.llm.families.shapes import feed_forward, linear, merged, norm, projections

POSITION_OFFSET = 2  # rows of BART's tables of positions beside the positions
MEL_KERNEL = 3


def _attention(heads: int, head: int, is_causal: bool) -> HeadAttention:
    if head < 1:
        raise FormatError(f"{heads} heads of less than one channel each")
    return HeadAttention(
        heads=heads, kv_heads=heads, key_dim=head, value_dim=head, is_causal=is_causal
    )


def t5(config: ConfigValues) -> LanguageModel:
    """T5 in all versions: gated feed-forward layers and an untied head since 1.1."""
    hidden, vocabulary = config.size("d_model"), config.size("vocab_size")
    heads, head = config.size("num_heads"), config.size("d_kv")
    kind = config.value("feed_forward_proj")
    gated = str(kind).startswith("gated") if kind is not None else config.flag("is_gated_act")
    mlp = feed_forward(hidden, config.size("d_ff"), gated)
    number = config.layers("num_layers")
    decoders = config.layers("num_decoder_layers", "num_layers")
    buckets = {"relative_attention_bias": (config.size("relative_attention_num_buckets"), heads)}
    every = config.model_type == "umt5"  # a bias of its own in every layer

    def layer(i: int, is_decoder: bool) -> DecoderLayer:
        attention = _attention(heads, head, is_decoder)
        weights = {**projections(hidden, attention), **(buckets if every or i == 0 else {})}
        parts: dict[str, Weights] = {
            "attention": weights,
            "mlp": mlp,
            "norms": merged(*(norm(f"layer_norm_{j}", hidden) for j in range(2 + is_decoder))),
        }
        if is_decoder:
            parts["cross attention"] = projections(hidden, attention)
        cross = _attention(heads, head, False) if is_decoder else None
        return DecoderLayer(parts=parts, mixer=attention, cross=cross)

    outer: dict[str, Weights] = {
        "embedding": {"shared": (vocabulary, hidden)},
        "norm": merged(norm("encoder.final", hidden), norm("decoder.final", hidden)),
    }
    if config.value("tie_word_embeddings") is False:
        outer["head"] = {"lm_head": (vocabulary, hidden)}
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=tuple(layer(i, True) for i in range(decoders)),
        vocabulary=vocabulary,
        outer=outer,
        encoder=tuple(layer(i, False) for i in range(number)),
    )


def _bart_layer(config: ConfigValues, side: str, key_bias: bool) -> DecoderLayer:
    hidden, is_decoder = config.size("d_model"), side == "decoder"
    heads = config.size(f"{side}_attention_heads")
    attention = _attention(heads, hidden // heads, is_decoder)
    weights = dict(projections(hidden, attention, True, True))
    if not key_bias:
        del weights["k_proj.bias"]
    parts: dict[str, Weights] = {
        "attention": weights,
        "mlp": feed_forward(hidden, config.size(f"{side}_ffn_dim"), False, True),
        "norms": merged(*(norm(f"layer_norm_{j}", hidden, 2) for j in range(2 + is_decoder))),
    }
    if not is_decoder:
        return DecoderLayer(parts=parts, mixer=attention)
    parts["cross attention"] = weights
    cross = _attention(heads, hidden // heads, False)
    return DecoderLayer(parts=parts, mixer=attention, cross=cross)


def _bart_layers(config: ConfigValues, side: str, key_bias: bool) -> tuple[DecoderLayer, ...]:
    return (_bart_layer(config, side, key_bias),) * config.layers(f"{side}_layers")


def bart(config: ConfigValues) -> LanguageModel:
    """BART and mBART, whose sides have norms at their ends too."""
    hidden, vocabulary = config.size("d_model"), config.size("vocab_size")
    rows = config.size("max_position_embeddings") + POSITION_OFFSET
    ends = ("layernorm_embedding", "layer_norm")[: 1 + (config.model_type == "mbart")]
    outer: dict[str, Weights] = {
        "embedding": {"shared": (vocabulary, hidden)},
        "positions": {f"{side}.embed_positions": (rows, hidden) for side in ("encoder", "decoder")},
        "norm": merged(
            *(norm(f"{side}.{end}", hidden, 2) for side in ("encoder", "decoder") for end in ends)
        ),
        "buffers": {"final_logits_bias": (1, vocabulary)},
    }
    if config.value("tie_word_embeddings") is False:
        outer["head"] = {"lm_head": (vocabulary, hidden)}
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=_bart_layers(config, "decoder", True),
        vocabulary=vocabulary,
        outer=outer,
        encoder=_bart_layers(config, "encoder", True),
    )


def whisper(config: ConfigValues) -> LanguageModel:
    """Whisper, whose encoder reads a spectrogram and whose keys have no bias."""
    hidden, vocabulary = config.size("d_model"), config.size("vocab_size")
    bins = config.size("num_mel_bins")
    outer: dict[str, Weights] = {
        "embedding": {"embed_tokens": (vocabulary, hidden)},
        "positions": {
            "encoder.embed_positions": (config.size("max_source_positions"), hidden),
            "decoder.embed_positions": (config.size("max_target_positions"), hidden),
        },
        "convolutions": {
            "conv1": (hidden, bins, MEL_KERNEL),
            "conv1.bias": (hidden,),
            "conv2": (hidden, hidden, MEL_KERNEL),
            "conv2.bias": (hidden,),
        },
        "norm": merged(
            norm("encoder.layer_norm", hidden, 2), norm("decoder.layer_norm", hidden, 2)
        ),
    }
    if config.value("tie_word_embeddings") is False:
        outer["head"] = linear("proj_out", vocabulary, hidden)
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=_bart_layers(config, "decoder", False),
        vocabulary=vocabulary,
        outer=outer,
        encoder=_bart_layers(config, "encoder", False),
        encoded=config.size("max_source_positions"),
    )


FAMILY: dict[str, Callable[[ConfigValues], LanguageModel]] = {
    "bart": bart,
    "mbart": bart,
    "mt5": t5,
    "t5": t5,
    "umt5": t5,
    "whisper": whisper,
}
