"""Decoders whose layers differ in their attention: MiMo-V2-Flash and MiniMax-M3.

MiMo-V2-Flash has more key heads, and sinks, in the layers of a window. Most layers of MiniMax-M3
select blocks of keys by the scores of an indexer, whose keys are cached beside those of the heads.
"""

from __future__ import annotations

from layerscope.errors import FormatError
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import DecoderLayer, HeadAttention, LanguageModel, Weights
from layerscope.llm.families.llama import SLIDING, LlamaForm, expert_parts
from layerscope.llm.families.shapes import (
    feed_forward,
    linear,
    merged,
    norm,
    outer_parts,
    projections,
)

NORMS = ("input_layernorm", "post_attention_layernorm")
MIMO = LlamaForm(score_bias=True)
MINIMAX = LlamaForm(score_bias=True, shared="shared_intermediate_size")
DENSE_SIZES = {
    "mimo_v2_flash": "intermediate_size",
    "minimax_m3_vl_text": "dense_intermediate_size",
}
INDEXED = "minimax_m3_sparse"
INTERVAL = 6  # MiMo-V2-Flash: so many layers have one without a window, if none are listed


def _switches(config: ConfigValues, name: str, number: int) -> list[bool]:
    """A list of 0 and 1, one for each layer; empty if it is not given."""
    found = config.items(name)
    if found and (len(found) != number or any(each not in (0, 1) for each in found)):
        raise FormatError(
            f"{config.where}: {name} has {len(found)} items, expected 0 or 1 for {number} layers"
        )
    return [bool(each) for each in found]


def _sparse(config: ConfigValues, number: int, otherwise: int) -> list[bool]:
    """Which layers have experts; where no list says it, those from `otherwise` on."""
    kinds = config.items("mlp_layer_types")
    if kinds:
        if len(kinds) != number:
            found = f"mlp_layer_types has {len(kinds)} items, expected {number}"
            raise FormatError(f"{config.where}: {found}")
        return [kind == "sparse" for kind in kinds]
    listed = _switches(config, "moe_layer_freq", number)
    return listed or [i >= otherwise for i in range(number)]


def _model(config: ConfigValues, layers: list[DecoderLayer]) -> LanguageModel:
    hidden, vocabulary = config.size("hidden_size"), config.size("vocab_size")
    tied = config.flag("tie_word_embeddings")
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=tuple(layers),
        vocabulary=vocabulary,
        outer=outer_parts(hidden, vocabulary, tied, norm("norm", hidden)),
    )


def _layer(
    config: ConfigValues, mixer: HeadAttention, parts: dict[str, Weights], form: LlamaForm | None
) -> DecoderLayer:
    """A layer with the experts of a form, or with a feed-forward layer if there is none."""
    hidden = config.size("hidden_size")
    if form is not None:
        found, experts = expert_parts(config, form, hidden)
        return DecoderLayer(parts={**parts, **found}, mixer=mixer, experts=experts)
    inner = config.size(DENSE_SIZES[config.model_type])
    return DecoderLayer(parts={**parts, "mlp": feed_forward(hidden, inner)}, mixer=mixer)


def mimo_v2_flash(config: ConfigValues) -> LanguageModel:
    """MiMo-V2-Flash: layers of a window have twice the key heads, and a learned score per head."""
    number, hidden = config.layers(), config.size("hidden_size")
    norms = merged(*(norm(name, hidden) for name in NORMS))
    layers = []
    sparse = _sparse(config, number, 1)
    for is_sliding, has_experts in zip(_sliding(config, number), sparse, strict=True):
        mixer = _mimo_attention(config, is_sliding)
        bias = config.flag("attention_bias")
        weights = dict(projections(hidden, mixer, bias))
        if is_sliding:
            weights["sinks"] = (mixer.heads,)
        parts: dict[str, Weights] = {"attention": weights, "norms": norms}
        layers.append(_layer(config, mixer, parts, MIMO if has_experts else None))
    return _model(config, layers)


def _sliding(config: ConfigValues, number: int) -> list[bool]:
    if config.items("layer_types"):
        return [kind in SLIDING for kind in config.layer_types(number)]
    listed = _switches(config, "hybrid_layer_pattern", number)
    return listed or [i > 0 and (i + 1) % INTERVAL != 0 for i in range(number)]


def _mimo_attention(config: ConfigValues, is_sliding: bool) -> HeadAttention:
    heads, key_dim = config.size("num_attention_heads"), config.size("head_dim")
    kv_heads, value_dim = config.size("num_key_value_heads"), config.size("v_head_dim")
    if not is_sliding:
        return HeadAttention(heads=heads, kv_heads=kv_heads, key_dim=key_dim, value_dim=value_dim)
    before = config.count("sliding_window_size", otherwise=0)  # without the query's own
    return HeadAttention(
        heads=config.size("swa_num_attention_heads", otherwise=heads),
        kv_heads=config.size("swa_num_key_value_heads", otherwise=2 * kv_heads),
        key_dim=config.size("swa_head_dim", otherwise=key_dim),
        value_dim=config.size("swa_v_head_dim", otherwise=value_dim),
        window=before + 1 if before else config.size("sliding_window"),
    )


def minimax_m3(config: ConfigValues) -> LanguageModel:
    """MiniMax-M3: attention to selected blocks of keys, experts with a shared one."""
    config = config.with_value("moe_intermediate_size", None)  # experts have intermediate_size
    number, hidden = config.layers(), config.size("hidden_size")
    layers = []
    sparse = _sparse(config, number, 0)
    for is_indexed, has_experts in zip(_indexed(config, number), sparse, strict=True):
        mixer = _minimax_attention(config, is_indexed)
        norms = {
            **merged(*(norm(name, hidden) for name in NORMS)),
            **norm("q_norm", mixer.key_dim),
            **norm("k_norm", mixer.key_dim),
        }
        parts: dict[str, Weights] = {"attention": projections(hidden, mixer), "norms": norms}
        if is_indexed:
            parts["indexer"] = {
                **linear("index_q_proj", mixer.index_heads * mixer.index_dim, hidden),
                **linear("index_k_proj", mixer.index_dim, hidden),
                **norm("index_q_norm", mixer.index_dim),
                **norm("index_k_norm", mixer.index_dim),
            }
        layers.append(_layer(config, mixer, parts, MINIMAX if has_experts else None))
    return _model(config, layers)


def _selection(config: ConfigValues) -> ConfigValues:
    """The values of the indexer, which a published configuration has in a part."""
    name = "sparse_attention_config"
    return config if config.value(name) is None else config.part(name, config.model_type)


def _indexed(config: ConfigValues, number: int) -> list[bool]:
    if config.items("layer_types"):
        return [kind == INDEXED for kind in config.layer_types(number)]
    return _switches(_selection(config), "sparse_attention_freq", number) or [False] * number


def _minimax_attention(config: ConfigValues, is_indexed: bool) -> HeadAttention:
    found = _selection(config)
    blocks = found.size("sparse_topk_blocks", "index_topk_blocks") if is_indexed else 0
    head = config.size("head_dim")
    return HeadAttention(
        heads=config.size("num_attention_heads"),
        kv_heads=config.size("num_key_value_heads"),
        key_dim=head,
        value_dim=head,
        index_dim=found.size("sparse_index_dim", "index_head_dim") if is_indexed else 0,
        index_heads=found.size("sparse_num_index_heads", "index_n_heads") if is_indexed else 0,
        index_keys=blocks * found.size("sparse_block_size", "index_block_size"),
    )


FAMILY = {"mimo_v2_flash": mimo_v2_flash, "minimax_m3_vl_text": minimax_m3}
