"""Decoders of Llama's form: attention, a feed-forward layer or experts, norms around both.

`FORMS` says in what each model_type differs from Llama.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    Experts,
    HeadAttention,
    LanguageModel,
    Parts,
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
    with_predictor,
)

ALWAYS = "always"  # a bias that no value of the configuration turns off
SLIDING = ("sliding_attention", "hybrid_sliding")
SWITCHED = ("mimo", "qwen")  # types that obey use_sliding_window
EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token")
EXPERT_SIZES = ("moe_intermediate_size", "intermediate_size")


class LlamaForm(Struct, frozen=True):
    """In what a decoder differs from Llama; names are those of values in its configuration."""

    bias: str = ""  # of queries, keys and values
    out_bias: str = ""
    mlp_bias: str = ""
    gated: bool = True
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    vectors: int = 1  # of a norm
    query_norm: str = ""  # head: a vector of one head; all: of all heads; heads: one for each head
    norm_flag: str = ""  # the value that turns on norms of queries
    inner_norms: bool = False  # before the output of attention and of the feed-forward layer
    interval: int = 0  # every so many layers see all keys, if layer_types is not given
    router_bias: bool = False
    score_bias: bool = False  # of the router, added to scores and no parameter
    shared: str = ""  # the size of the shared expert
    shared_count: str = ""  # the number of shared experts of the size of the others
    shared_gate: bool = False
    sinks: bool = False  # one learned score per head
    head_bias: str = ""


QK = ("self_attn.q_norm", "self_attn.k_norm")
POST = ("post_attention_layernorm", "post_feedforward_layernorm")
FOUR = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
BIASED = LlamaForm("attention_bias", "attention_bias", "mlp_bias")
QWEN3 = LlamaForm("attention_bias", "attention_bias", query_norm="head")
QWEN3_SPARSE = LlamaForm("attention_bias", "attention_bias", query_norm="head")
ERNIE = LlamaForm("use_bias", "use_bias", "use_bias")

FORMS = {
    "apertus": LlamaForm(
        "attention_bias", "attention_bias", "mlp_bias", gated=False, query_norm="head"
    ),
    "arcee": LlamaForm("attention_bias", "attention_bias", "mlp_bias", gated=False),
    "bitnet": LlamaForm("attention_bias", "attention_bias", inner_norms=True),
    "cohere": LlamaForm(
        "attention_bias", "attention_bias", norms=FOUR[:1], query_norm="heads",
        norm_flag="use_qk_norm",
    ),
    "cohere2": LlamaForm("attention_bias", "attention_bias", norms=FOUR[:1], interval=4),
    "dots1": LlamaForm(
        "attention_bias", "attention_bias", query_norm="head", score_bias=True,
        shared_count="n_shared_experts",
    ),
    "ernie4_5": ERNIE,
    "exaone4": LlamaForm(norms=POST, query_norm="head"),
    "gemma": LlamaForm("attention_bias", "attention_bias"),
    "gemma2": LlamaForm("attention_bias", "attention_bias", norms=FOUR, interval=2),
    "gemma3_text": LlamaForm(
        "attention_bias", "attention_bias", norms=FOUR, query_norm="head", interval=6
    ),
    "glm": LlamaForm("attention_bias"),
    "glm4": LlamaForm("attention_bias", norms=FOUR),
    "glm4_moe": LlamaForm(
        "attention_bias", query_norm="head", norm_flag="use_qk_norm", score_bias=True,
        shared_count="n_shared_experts",
    ),
    "gpt_oss": LlamaForm("attention_bias", "attention_bias", ALWAYS, interval=2, router_bias=True,
                         sinks=True),
    "granite": BIASED,
    "granitemoe": LlamaForm("attention_bias", "attention_bias"),
    "granitemoeshared": LlamaForm(
        "attention_bias", "attention_bias", shared="shared_intermediate_size"
    ),
    "helium": LlamaForm("attention_bias", "", "mlp_bias"),
    "hunyuan_v1_dense": LlamaForm("attention_bias", "attention_bias", query_norm="head"),
    "hunyuan_v1_moe": LlamaForm(
        "attention_bias", "attention_bias", query_norm="head", shared="intermediate_size"
    ),
    "llama": BIASED,
    "mimo": LlamaForm("attention_bias"),
    "minimax_m2": LlamaForm(query_norm="all", score_bias=True),
    "ministral": LlamaForm(),
    "mistral": LlamaForm(),
    "mixtral": LlamaForm(),
    "nemotron": LlamaForm(
        "attention_bias", "attention_bias", "mlp_bias", gated=False, vectors=2
    ),
    "olmo": LlamaForm("attention_bias", "attention_bias", vectors=0),
    "olmo2": LlamaForm("attention_bias", "attention_bias", norms=POST, query_norm="all"),
    "olmo3": LlamaForm(
        "attention_bias", "attention_bias", norms=POST, query_norm="all", interval=4
    ),
    "olmoe": LlamaForm("attention_bias", "attention_bias", query_norm="all"),
    "phi3": LlamaForm(),
    "phimoe": LlamaForm("attention_bias", "attention_bias", vectors=2, head_bias="lm_head_bias"),
    "qwen2": LlamaForm(ALWAYS),
    "qwen2_moe": LlamaForm(
        "qkv_bias", shared="shared_expert_intermediate_size", shared_gate=True
    ),
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3_SPARSE,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": QWEN3_SPARSE,
    "seed_oss": LlamaForm("attention_bias", "attention_out_bias", "mlp_bias"),
    "smollm3": BIASED,
    "stablelm": LlamaForm("use_qkv_bias", vectors=2, query_norm="heads", norm_flag="qk_layernorm"),
    "starcoder2": LlamaForm("use_bias", "use_bias", "use_bias", gated=False, vectors=2),
}  # fmt: skip
# Their configurations may name experts, but only these have a router.
SPARSE = frozenset({
    "dots1", "glm4_moe", "gpt_oss", "granitemoe", "granitemoeshared", "hunyuan_v1_moe",
    "minimax_m2", "mixtral", "olmoe", "phimoe", "qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text",
})  # fmt: skip


def _mimo_predictor(layer: DecoderLayer, hidden: int, _vocabulary: int) -> DecoderLayer:
    """MiMo's layer of multi-token prediction, without copies of the embedding and of the head.

    The names are those of its modeling_mimo.py, which vLLM's mimo_mtp.py repeats.
    """
    names = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    extra = {
        **linear("input_proj", hidden, 2 * hidden),
        **merged(*(norm(name, hidden) for name in names)),
    }
    return replace(layer, parts={**layer.parts, "predictor": extra})


# Whose checkpoints have layers of multi-token prediction.
PREDICTORS = {"glm4_moe": with_predictor, "mimo": _mimo_predictor}
UNCHECKED = {
    "mimo": "a layer of multi-token prediction as the published code of the model has it: no "
    "published count of parameters checks it",
}


def describe(config: ConfigValues) -> LanguageModel:
    """The layers of a decoder of Llama's form."""
    form = FORMS[config.model_type]
    hidden, number = config.size("hidden_size"), config.layers()
    vocabulary = config.size("vocab_size")
    layers = tuple(_layer(config, form, hidden, each) for each in attentions(config, form, number))
    sparse = sparse_layers(config, number) if config.model_type in SPARSE else ()
    layers = tuple(
        _with_mlp(config, form, hidden, layer, i in sparse) for i, layer in enumerate(layers)
    )
    outer = dict(
        outer_parts(
            hidden, vocabulary, config.flag("tie_word_embeddings"),
            norm("norm", hidden, form.vectors),
        )
    )  # fmt: skip
    if "head" in outer and has(config, form.head_bias):
        outer["head"] = linear("lm_head", vocabulary, hidden, True)
    more = config.count("num_nextn_predict_layers", otherwise=0)
    last = layers[-1:] * min(more, number)
    predictor = PREDICTORS.get(config.model_type)
    return LanguageModel(
        model_type=config.model_type,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        outer=outer,
        predictors=tuple(predictor(layer, hidden, vocabulary) for layer in last if predictor),
        notes=(UNCHECKED[config.model_type],) if last and config.model_type in UNCHECKED else (),
    )


def has(config: ConfigValues, name: str) -> bool:
    """Whether a form has what a value of the configuration turns on."""
    return name == ALWAYS or (name != "" and config.flag(name))


def attentions(config: ConfigValues, form: LlamaForm, number: int) -> list[HeadAttention]:
    """The attention of every layer, with its window."""
    heads = config.size("num_attention_heads")
    head = config.size("head_dim", otherwise=config.size("hidden_size") // heads)
    windows = _windows(config, form, number)
    return [
        HeadAttention(
            heads=heads,
            kv_heads=config.size("num_key_value_heads", otherwise=heads),
            key_dim=head,
            value_dim=head,
            window=window,
        )
        for window in windows
    ]


def _windows(config: ConfigValues, form: LlamaForm, number: int) -> list[int]:
    """Windows of the layers: by layer_types, else by the rule of the model_type."""
    size = config.count("sliding_window", otherwise=0)
    if config.value("use_sliding_window") is False and config.model_type.startswith(SWITCHED):
        size = 0
    if not size:
        return [0] * number
    if config.items("layer_types"):
        return [size if kind in SLIDING else 0 for kind in config.layer_types(number)]
    if config.value("max_window_layers") is not None:
        first = config.count("max_window_layers")
        return [size if i >= first else 0 for i in range(number)]
    interval = config.count("sliding_window_pattern", "_sliding_window_pattern",
                            otherwise=form.interval)  # fmt: skip
    if interval:
        return [size if (i + 1) % interval else 0 for i in range(number)]
    return [size] * number


def _layer(
    config: ConfigValues, form: LlamaForm, hidden: int, attention: HeadAttention
) -> DecoderLayer:
    weights = dict(
        projections(hidden, attention, has(config, form.bias), has(config, form.out_bias))
    )
    if form.sinks:
        weights["sinks"] = (attention.heads,)
    names = form.norms
    if config.model_type == "stablelm" and config.flag("use_parallel_residual"):
        names = names[:1]
    norms = merged(*(norm(name, hidden, form.vectors) for name in names))
    if form.query_norm and (not form.norm_flag or config.flag(form.norm_flag)):
        norms = {**norms, **_query_norms(form.query_norm, attention)}
    if form.inner_norms:
        inner = config.size("intermediate_size")
        norms = {**norms, **norm("attn_sub_norm", hidden), **norm("ffn_sub_norm", inner)}
    return DecoderLayer(parts={"attention": weights, "norms": norms}, mixer=attention)


def _query_norms(kind: str, attention: HeadAttention) -> Weights:
    sizes = {
        "head": ((attention.key_dim,), (attention.key_dim,)),
        "all": (
            (attention.heads * attention.key_dim,),
            (attention.kv_heads * attention.key_dim,),
        ),
        "heads": (
            (attention.heads, attention.key_dim),
            (attention.kv_heads, attention.key_dim),
        ),
    }
    return dict(zip(QK, sizes[kind], strict=True))


def sparse_layers(config: ConfigValues, number: int) -> Sequence[int]:
    """Numbers of the layers with experts."""
    first = config.count("first_k_dense_replace", otherwise=0)
    step = config.count("decoder_sparse_step", otherwise=1)
    dense = set(config.items("mlp_only_layers"))
    if step == 0:
        return ()
    return [i for i in range(first, number) if i not in dense and (i + 1) % step == 0]


def _with_mlp(
    config: ConfigValues, form: LlamaForm, hidden: int, layer: DecoderLayer, is_sparse: bool
) -> DecoderLayer:
    """The layer with its feed-forward layer, or with experts."""
    if is_sparse:
        found, experts = expert_parts(config, form, hidden)
        parts = {**layer.parts, **found}
        return DecoderLayer(parts=parts, mixer=layer.mixer, experts=experts)
    inner = config.size("intermediate_size")
    mlp = dict(feed_forward(hidden, inner, form.gated, has(config, form.mlp_bias)))
    if config.model_type == "apertus":
        mlp.update({"act_fn.alpha_p": (1,), "act_fn.alpha_n": (1,)})
    return DecoderLayer(parts={**layer.parts, "mlp": mlp}, mixer=layer.mixer)


def expert_parts(config: ConfigValues, form: LlamaForm, hidden: int) -> tuple[Parts, Experts]:
    """Router, experts and shared expert of a layer."""
    count = config.size(*EXPERT_COUNTS)
    size = config.size(*EXPERT_SIZES)
    bias = has(config, form.mlp_bias)
    parts: dict[str, Weights] = {
        EXPERTS: stacked(feed_forward(hidden, size, form.gated, bias), count),
        "router": linear("router", count, hidden, form.router_bias),
    }
    shared = config.count(form.shared, otherwise=0) if form.shared else 0
    if form.shared_count:
        shared = size * config.count(form.shared_count, otherwise=0)
    if shared:
        gate = linear("shared_expert_gate", 1, hidden) if form.shared_gate else {}
        parts["shared expert"] = {**feed_forward(hidden, shared, form.gated), **gate}
    if form.score_bias:
        parts["buffers"] = {"e_score_correction_bias": (count,)}
    return parts, Experts(count, config.size(*CHOSEN))
