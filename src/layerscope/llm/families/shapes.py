"""Shapes of the weights that families share: projections, feed-forward layers, norms, experts."""

from __future__ import annotations

from layerscope.llm.description import DecoderLayer, HeadAttention, LatentAttention, Parts, Weights

NORM_NAMES = ("weight", "bias")


def linear(name: str, rows: int, columns: int, bias: bool = False) -> Weights:
    """A matrix of outputs x inputs, and its bias."""
    weights = {name: (rows, columns)}
    return {**weights, f"{name}.bias": (rows,)} if bias else weights


def norm(name: str, size: int, vectors: int = 1) -> Weights:
    """A norm with one vector (a scale), two (also a bias) or none."""
    return {f"{name}.{each}": (size,) for each in NORM_NAMES[:vectors]}


def projections(
    hidden: int, attention: HeadAttention, bias: bool = False, out_bias: bool = False
) -> Weights:
    """The q, k, v and o matrices of attention with heads."""
    keys, values = attention.kv_heads, attention.kv_heads
    return {
        **linear("q_proj", attention.heads * attention.key_dim, hidden, bias),
        **linear("k_proj", keys * attention.key_dim, hidden, bias),
        **linear("v_proj", values * attention.value_dim, hidden, bias),
        **linear("o_proj", hidden, attention.heads * attention.value_dim, out_bias),
    }


def latent_projections(
    hidden: int, attention: LatentAttention, query_rank: int, bias: bool = False
) -> Weights:
    """The matrices and norms of latent attention; without a rank, queries have one matrix."""
    heads, key_dim = attention.heads, attention.nope_dim + attention.rope_dim
    queries = (
        {
            **linear("q_a_proj", query_rank, hidden, bias),
            **norm("q_a_layernorm", query_rank),
            **linear("q_b_proj", heads * key_dim, query_rank),
        }
        if query_rank
        else linear("q_proj", heads * key_dim, hidden)
    )
    return {
        **queries,
        **linear("kv_a_proj_with_mqa", attention.latent + attention.rope_dim, hidden, bias),
        **norm("kv_a_layernorm", attention.latent),
        **linear("kv_b_proj", heads * (attention.nope_dim + attention.value_dim), attention.latent),
        **linear("o_proj", hidden, heads * attention.value_dim, bias),
    }


def feed_forward(hidden: int, inner: int, gated: bool = True, bias: bool = False) -> Weights:
    """A feed-forward layer, of three matrices if it is gated, else of two."""
    gate = linear("gate_proj", inner, hidden, bias) if gated else {}
    return {
        **gate,
        **linear("up_proj", inner, hidden, bias),
        **linear("down_proj", hidden, inner, bias),
    }


def with_predictor(layer: DecoderLayer, hidden: int, vocabulary: int) -> DecoderLayer:
    """A layer of multi-token prediction, as checkpoints store it.

    It is one more layer with a projection, three norms, and copies of the embedding and the head.
    """
    names = ("enorm", "hnorm", "shared_head.norm")
    extra = {
        **linear("eh_proj", hidden, 2 * hidden),
        **merged(*(norm(name, hidden) for name in names)),
    }
    copies = {"embed_tokens": (vocabulary, hidden), "shared_head.head": (vocabulary, hidden)}
    parts = {**layer.parts, "predictor": extra, "copies": copies}
    return DecoderLayer(parts=parts, mixer=layer.mixer, experts=layer.experts)


def stacked(weights: Weights, count: int) -> Weights:
    """The weights of one expert as the stacks of all experts."""
    return {name: (count, *shape) for name, shape in weights.items()}


def merged(*groups: Weights) -> Weights:
    """Weights of several groups together."""
    return {name: shape for group in groups for name, shape in group.items()}


def outer_parts(hidden: int, vocabulary: int, tied: bool, final: Weights) -> Parts:
    """The embedding, the final norm, and the head unless it is the embedding again."""
    parts: dict[str, Weights] = {"embedding": {"embed_tokens": (vocabulary, hidden)}, "norm": final}
    return parts if tied else {**parts, "head": {"lm_head": (vocabulary, hidden)}}
