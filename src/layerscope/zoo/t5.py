"""T5 of Raffel et al. 2019 as Hugging Face has it: encoder and decoder, on 128 tokens each."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph

DROP, BUCKETS, VOCABULARY = 0.1, 32, 32128
SHARED = "shared.weight"  # of both embeddings and of the head


class T5Config(Struct, frozen=True):
    """What tells one T5 from another; heads together need not be as wide as the rest."""

    layers: int
    heads: int
    head_size: int
    width: int
    hidden: int


class RelativeBias(Struct, frozen=True):
    """Distances between tokens, which the first block embeds as a bias for each head."""

    tensor: str
    embedded: bool = False


class ScoreMask(Struct, frozen=True):
    """What is added to the scores of attention, and whether later tokens are hidden."""

    bias: str | None = None
    causal: bool = False


UNMASKED = ScoreMask()
CONFIGS = {
    "t5-small": T5Config(layers=6, heads=8, head_size=64, width=512, hidden=2048),
}


def t5(name: str) -> Graph:
    """The T5 of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: T5Config) -> Graph:
    """A T5 of this configuration, which reads one text and scores the next token of another."""
    b = Builder(name, "T5ForConditionalGeneration")
    ids = b.input("input_ids", (1, 128), "int64")
    written = b.input("decoder_input_ids", (1, 128), "int64")
    with b.scope("encoder", "T5Stack"):
        read = _stack(b, ids, config)
    with b.scope("decoder", "T5Stack"):
        x = _stack(b, written, config, read)
    x = b.mul(x, name="scale")  # by 1/√width, where the head is tied
    return b.build(b.linear(x, VOCABULARY, bias=False, tied=SHARED, name="lm_head"))


def _stack(b: Builder, ids: str, config: T5Config, read: str | None = None) -> str:
    """An encoder, or with the `read` text a decoder. The first block's table serves them all."""
    x = b.embedding(ids, VOCABULARY, config.width, tied=SHARED, name="embed_tokens")
    x = b.dropout(x, DROP, name="dropout")
    bias = RelativeBias(_distances(b, ids))
    with b.scope("block", "ModuleList"):
        for n in range(config.layers):
            with b.scope(str(n), "T5Block"), b.scope("layer", "ModuleList"):
                x, bias = _block(b, x, config, bias, read)
    x = b.rms_norm(x, name="final_layer_norm")
    return b.dropout(x, DROP, name="dropout")


def _distances(b: Builder, ids: str) -> str:
    """T x T: how far apart two tokens are, which says their row of the table."""
    positions = b.positions(ids, name="positions")
    return b.sub(positions, b.reshape(positions, (-1, 1)), name="distances")


def _block(
    b: Builder, x: str, config: T5Config, bias: RelativeBias, read: str | None
) -> tuple[str, RelativeBias]:
    with b.scope("0", "T5LayerSelfAttention"):
        y = b.rms_norm(x, name="layer_norm")
        with b.scope("SelfAttention", "T5Attention"):
            if not bias.embedded:
                distances = bias.tensor
                table = b.embedding(
                    distances, BUCKETS, config.heads, name="relative_attention_bias"
                )
                bias = RelativeBias(b.permute(table, (2, 0, 1)), embedded=True)  # heads x T x T
            y = _attention(b, y, y, config, ScoreMask(bias.tensor, causal=read is not None))
        x = b.add(x, b.dropout(y, DROP, name="dropout"))
    if read is not None:
        with b.scope("1", "T5LayerCrossAttention"):
            y = b.rms_norm(x, name="layer_norm")
            with b.scope("EncDecAttention", "T5Attention"):
                y = _attention(b, y, read, config)
            x = b.add(x, b.dropout(y, DROP, name="dropout"))
    with b.scope("1" if read is None else "2", "T5LayerFF"):
        y = b.rms_norm(x, name="layer_norm")
        with b.scope("DenseReluDense", "T5DenseActDense", order=("wi", "wo", "dropout", "act")):
            y = b.relu(b.linear(y, config.hidden, bias=False, name="wi"), name="act")
            y = b.linear(b.dropout(y, DROP, name="dropout"), config.width, bias=False, name="wo")
        return b.add(x, b.dropout(y, DROP, name="dropout")), bias


def _attention(b: Builder, x: str, read: str, config: T5Config, mask: ScoreMask = UNMASKED) -> str:
    """Attention to the `read` tokens, with scores that are not scaled."""
    inner = config.heads * config.head_size
    q = b.linear(x, inner, bias=False, name="q")
    k = b.linear(read, inner, bias=False, name="k")
    v = b.linear(read, inner, bias=False, name="v")
    x = b.attention(
        q, k, v, heads=config.heads, mask=mask.bias, causal=mask.causal, scaled=False,
        name="attention",
    )  # fmt: skip
    return b.linear(x, config.width, bias=False, name="o")
