"""Hybrids of attention with state-space layers or gated delta nets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layerscope.errors import FormatError
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    Experts,
    HeadAttention,
    LanguageModel,
    Mixer,
    Recurrence,
    Weights,
)
from layerscope.llm.families.llama import LlamaForm, expert_parts, sparse_layers
from layerscope.llm.families.recurrent import (
    delta_net,
    mamba2,
    mamba2_weights,
    mamba_weights,
    step_rank,
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

ATTENTION = ("full_attention", "attention")
RECURRENT = ("linear_attention", "mamba")
NEMOTRON = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
QWEN = LlamaForm(shared="shared_expert_intermediate_size", shared_gate=True)
PLAIN = LlamaForm()
MAMBA_NAMES = ("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv")


def _attention(config: ConfigValues) -> HeadAttention:
    heads = config.size("num_attention_heads")
    head = config.size("head_dim", otherwise=config.size("hidden_size") // heads)
    kv_heads = config.size("num_key_value_heads", otherwise=heads)
    return HeadAttention(heads=heads, kv_heads=kv_heads, key_dim=head, value_dim=head)


def _model(
    config: ConfigValues, layers: Iterable[DecoderLayer], predictors: tuple[DecoderLayer, ...] = ()
) -> LanguageModel:
    hidden, vocabulary = config.size("hidden_size"), config.size("vocab_size")
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=tuple(layers),
        vocabulary=vocabulary,
        outer=outer_parts(
            hidden, vocabulary, config.flag("tie_word_embeddings"), norm("norm", hidden)
        ),
        predictors=predictors,
    )


def _two_norms(hidden: int) -> Weights:
    return merged(norm("input_layernorm", hidden), norm("post_attention_layernorm", hidden))


def qwen3_next(config: ConfigValues) -> LanguageModel:
    """Qwen3-Next and Qwen3.5: gated delta nets, and every few layers gated attention."""
    number = config.layers()
    interval = config.size("full_attention_interval", otherwise=4)
    kinds = config.layer_types(number, interval)
    has_experts = config.model_type != "qwen3_5_text"
    sparse = sparse_layers(config, number) if has_experts else ()
    layers = [_qwen3_next_layer(config, kind, i in sparse) for i, kind in enumerate(kinds)]
    more = config.count("mtp_num_hidden_layers", otherwise=0)
    last = _qwen3_next_layer(config, "full_attention", has_experts)
    hidden = config.size("hidden_size")
    extra = {
        **linear("fc", hidden, 2 * hidden),
        **merged(*(norm(f"pre_fc_norm_{name}", hidden) for name in ("embedding", "hidden"))),
        **norm("norm", hidden),
    }
    predictor = DecoderLayer(
        parts={**last.parts, "predictor": extra}, mixer=last.mixer, experts=last.experts
    )
    return _model(config, layers, (predictor,) * min(more, number))


def _qwen3_next_layer(config: ConfigValues, kind: str, is_sparse: bool) -> DecoderLayer:
    hidden = config.size("hidden_size")
    norms = dict(_two_norms(hidden))
    mixer: Mixer
    if kind in ATTENTION:
        mixer = _attention(config)
        bias = config.flag("attention_bias")
        weights = {
            **projections(hidden, mixer, bias, bias),
            **linear("q_proj", 2 * mixer.heads * mixer.key_dim, hidden, bias),  # with the gate
        }
        norms.update({"q_norm": (mixer.key_dim,), "k_norm": (mixer.key_dim,)})
        parts: dict[str, Weights] = {"attention": weights, "norms": norms}
    else:
        mixer, found = delta_net(config)
        parts = {"recurrence": found, "norms": norms}
    if is_sparse:
        more, experts = expert_parts(config, QWEN, hidden)
        return DecoderLayer(parts={**parts, **more}, mixer=mixer, experts=experts)
    mlp = feed_forward(hidden, config.size("intermediate_size"))
    return DecoderLayer(parts={**parts, "mlp": mlp}, mixer=mixer)


def jamba(config: ConfigValues) -> LanguageModel:
    """Jamba: Mamba layers, attention and experts every few layers."""
    return _model(config, [_jamba_layer(config, i) for i in range(config.layers())])


def _jamba_layer(config: ConfigValues, i: int) -> DecoderLayer:
    hidden = config.size("hidden_size")
    parts: dict[str, Weights] = {"norms": _two_norms(hidden)}
    mixer: Mixer
    if i % config.size("attn_layer_period") == config.count("attn_layer_offset"):
        mixer = _attention(config)
        parts["attention"] = projections(hidden, mixer)
    else:
        inner, state = config.size("mamba_expand") * hidden, config.size("mamba_d_state")
        kernel = config.size("mamba_d_conv")
        mixer = Recurrence(
            kind="mamba", conv_channels=inner, conv_kernel=kernel, state=(inner, state)
        )
        rank = step_rank(config, "mamba_dt_rank", hidden)
        biases = (config.flag("mamba_proj_bias"), config.flag("mamba_conv_bias"))
        parts["recurrence"] = {
            **mamba_weights(hidden, mixer, rank, biases),
            **norm("dt_layernorm", rank),
            **norm("b_layernorm", state),
            **norm("c_layernorm", state),
        }
    is_sparse = i % config.size("expert_layer_period") == config.count("expert_layer_offset")
    if is_sparse and config.size("num_experts") > 1:
        found, experts = expert_parts(config, PLAIN, hidden)
        return DecoderLayer(parts={**parts, **found}, mixer=mixer, experts=experts)
    parts["mlp"] = feed_forward(hidden, config.size("intermediate_size"))
    return DecoderLayer(parts=parts, mixer=mixer)


def granite_hybrid(config: ConfigValues) -> LanguageModel:
    """Granite 4: Mamba-2 layers, some attention, a shared feed-forward layer beside experts."""
    number = config.layers()
    listed = config.items("layers_block_type") or config.layer_types(number, 0, RECURRENT[0])
    if len(listed) < number:
        raise FormatError(f"{config.where}: {len(listed)} layer types, expected {number}")
    return _model(config, [_granite_layer(config, str(kind)) for kind in listed[:number]])


def _mamba2_part(config: ConfigValues) -> tuple[Recurrence, Weights]:
    mixer = mamba2(MAMBA_NAMES, config)
    biases = (config.flag("mamba_proj_bias"), config.flag("mamba_conv_bias"))
    return mixer, mamba2_weights(config.size("hidden_size"), mixer, biases)


def _granite_layer(config: ConfigValues, kind: str) -> DecoderLayer:
    hidden = config.size("hidden_size")
    parts: dict[str, Weights] = {"norms": _two_norms(hidden)}
    mixer: Mixer
    if kind in RECURRENT:
        mixer, parts["recurrence"] = _mamba2_part(config)
    else:
        mixer = _attention(config)
        bias = config.flag("attention_bias")
        parts["attention"] = projections(hidden, mixer, bias, bias)
    parts["mlp"] = feed_forward(hidden, config.size("shared_intermediate_size"))
    if not config.count("num_local_experts", otherwise=0):
        return DecoderLayer(parts=parts, mixer=mixer)
    found, experts = expert_parts(config, PLAIN, hidden)
    return DecoderLayer(parts={**parts, **found}, mixer=mixer, experts=experts)


def bamba(config: ConfigValues) -> LanguageModel:
    """Bamba: Mamba-2 layers and attention, each with a feed-forward layer."""
    chosen = {*config.items("attn_layer_indices")}
    hidden = config.size("hidden_size")
    layers = []
    for i in range(config.layers()):
        parts: dict[str, Weights] = {
            "norms": _two_norms(hidden),
            "mlp": feed_forward(
                hidden, config.size("intermediate_size"), bias=config.flag("mlp_bias")
            ),
        }
        mixer: Mixer
        if i in chosen:
            mixer = _attention(config)
            bias = config.flag("attention_bias")
            parts["attention"] = projections(hidden, mixer, bias, bias)
        else:
            mixer, parts["recurrence"] = _mamba2_part(config)
        layers.append(DecoderLayer(parts=parts, mixer=mixer))
    return _model(config, layers)


def nemotron_h(config: ConfigValues) -> LanguageModel:
    """Nemotron-H: each layer is a Mamba-2 layer, attention, a feed-forward layer or experts."""
    listed = config.items("layers_block_type")
    pattern = config.value("hybrid_override_pattern")
    if not listed and isinstance(pattern, str):
        listed = [NEMOTRON.get(letter, letter) for letter in pattern]
    if not listed:
        raise FormatError(f"{config.where}: no layers_block_type or hybrid_override_pattern")
    return _model(config, [_nemotron_layer(config, str(kind)) for kind in listed])


def _nemotron_layer(config: ConfigValues, kind: str) -> DecoderLayer:
    hidden = config.size("hidden_size")
    parts: dict[str, Weights] = {"norms": norm("norm", hidden)}
    bias = config.flag("mlp_bias")
    if kind in RECURRENT:
        names = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel")
        mixer = mamba2(names, config)
        biases = (config.flag("use_bias"), config.flag("use_conv_bias"))
        parts["recurrence"] = mamba2_weights(hidden, mixer, biases)
        return DecoderLayer(parts=parts, mixer=mixer)
    if kind in ATTENTION:
        attention = _attention(config)
        parts["attention"] = projections(hidden, attention)
        return DecoderLayer(parts=parts, mixer=attention)
    if kind == "mlp":
        parts["mlp"] = feed_forward(hidden, config.size("intermediate_size"), False, bias)
        return DecoderLayer(parts=parts)
    if kind != "moe":
        raise FormatError(f"{config.where}: a layer of type {kind[:40]!r}")
    count, latent = config.size("n_routed_experts"), config.count("moe_latent_size", otherwise=0)
    size = config.size("moe_intermediate_size")
    shared = config.size("moe_shared_expert_intermediate_size")
    parts[EXPERTS] = stacked(feed_forward(latent or hidden, size, False, bias), count)
    parts["router"] = linear("router", count, hidden)
    parts["shared expert"] = feed_forward(hidden, shared, False, bias)
    parts["buffers"] = {"e_score_correction_bias": (count,)}
    if latent:
        parts["latent"] = {
            **linear("fc1_latent_proj", latent, hidden, bias),
            **linear("fc2_latent_proj", hidden, latent, bias),
        }
    return DecoderLayer(parts=parts, experts=Experts(count, config.size("num_experts_per_tok")))


FAMILY: dict[str, Callable[[ConfigValues], LanguageModel]] = {
    "bamba": bamba,
    "granitemoehybrid": granite_hybrid,
    "jamba": jamba,
    "nemotron_h": nemotron_h,
    "qwen3_5_moe_text": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_next": qwen3_next,
}
