"""DeepSeek V2 and V3 and the models of their form: latent attention, shared and routed experts."""

from __future__ import annotations

from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import DecoderLayer, LanguageModel, LatentAttention, Weights
from layerscope.llm.families.llama import LlamaForm, expert_parts
from layerscope.llm.families.shapes import (
    feed_forward,
    latent_projections,
    linear,
    merged,
    norm,
    outer_parts,
    with_predictor,
)

NORMS = ("input_layernorm", "post_attention_layernorm")
INDEXED = ("deepseek_v32", "glm_moe_dsa")
V2 = LlamaForm(shared_count="n_shared_experts")
V3 = LlamaForm(shared_count="n_shared_experts", score_bias=True)
FORMS = {
    "deepseek_v2": V2,
    "deepseek_v3": V3,
    "deepseek_v32": V3,
    "glm4_moe_lite": V3,
    "glm_moe_dsa": V3,
    "kimi_k2": V3,
}


def describe(config: ConfigValues) -> LanguageModel:
    """The layers of a decoder of DeepSeek's form."""
    hidden, number = config.size("hidden_size"), config.layers()
    vocabulary = config.size("vocab_size")
    more = config.count("num_nextn_predict_layers", otherwise=0)
    layers = tuple(_layer(config, hidden, i) for i in range(number))
    predictors = tuple(
        with_predictor(_layer(config, hidden, number + i), hidden, vocabulary)
        for i in range(min(more, number))
    )
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        outer=outer_parts(
            hidden, vocabulary, config.flag("tie_word_embeddings"), norm("norm", hidden)
        ),
        predictors=predictors,
    )


def latent_attention(config: ConfigValues) -> LatentAttention:
    """The latent attention of a layer."""
    is_indexed = config.model_type in INDEXED
    return LatentAttention(
        heads=config.size("num_attention_heads"),
        latent=config.size("kv_lora_rank"),
        rope_dim=config.count("qk_rope_head_dim"),
        nope_dim=config.count("qk_nope_head_dim"),
        value_dim=config.size("v_head_dim"),
        index_dim=config.count("index_head_dim", otherwise=0) if is_indexed else 0,
        index_heads=config.count("index_n_heads", otherwise=0) if is_indexed else 0,
        index_keys=config.count("index_topk", otherwise=0) if is_indexed else 0,
    )


def _is_dense(config: ConfigValues, i: int) -> bool:
    kinds = config.items("mlp_layer_types")
    if i < len(kinds):
        return kinds[i] == "dense"
    step = config.size("moe_layer_freq", otherwise=1)
    return i < config.count("first_k_dense_replace", otherwise=0) or i % step != 0


def _layer(config: ConfigValues, hidden: int, i: int) -> DecoderLayer:
    mixer = latent_attention(config)
    rank = config.count("q_lora_rank", otherwise=0)
    attention = latent_projections(hidden, mixer, rank, config.flag("attention_bias"))
    parts: dict[str, Weights] = {
        "attention": attention,
        "norms": merged(*(norm(name, hidden) for name in NORMS)),
    }
    if mixer.index_dim:
        parts["indexer"] = _indexer(hidden, mixer, rank)
    if _is_dense(config, i):
        parts["mlp"] = feed_forward(hidden, config.size("intermediate_size"))
        return DecoderLayer(parts=parts, mixer=mixer)
    found, experts = expert_parts(config, FORMS[config.model_type], hidden)
    return DecoderLayer(parts={**parts, **found}, mixer=mixer, experts=experts)


def _indexer(hidden: int, mixer: LatentAttention, rank: int) -> Weights:
    """The projections that score which keys a query attends to."""
    return {
        **linear("wq_b", mixer.index_heads * mixer.index_dim, rank),
        **linear("wk", mixer.index_dim, hidden),
        **norm("k_norm", mixer.index_dim, 2),
        **linear("weights_proj", mixer.index_heads, hidden),
    }
