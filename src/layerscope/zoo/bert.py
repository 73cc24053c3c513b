"""BERT of Devlin et al. 2018 as Hugging Face has it: BertModel with its pooler, on 128 tokens."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph

EPS, DROP = 1e-12, 0.1
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2


class BertConfig(Struct, frozen=True):
    """What tells one BERT from another."""

    layers: int
    heads: int
    width: int
    hidden: int


CONFIGS = {
    "bert_base": BertConfig(layers=12, heads=12, width=768, hidden=3072),
}


def bert(name: str) -> Graph:
    """The BERT of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: BertConfig) -> Graph:
    """A BERT of this configuration; it gives a vector a token and one for them all."""
    b = Builder(name, "BertModel")
    ids = b.input("input_ids", (1, 128), "int64")
    with b.scope("embeddings", "BertEmbeddings"):
        words = b.embedding(ids, VOCABULARY, config.width, name="word_embeddings")
        # All tokens are of one type: of the ids only their number matters here.
        types = b.embedding(ids, TYPES, config.width, name="token_type_embeddings")
        positions = b.positions(ids, name="position_ids")
        positions = b.embedding(positions, POSITIONS, config.width, name="position_embeddings")
        x = b.layer_norm(b.add(b.add(words, types), positions), eps=EPS, name="LayerNorm")
        x = b.dropout(x, DROP, name="dropout")
    with b.scope("encoder", "BertEncoder"), b.scope("layer", "ModuleList"):
        for n in range(config.layers):
            with b.scope(str(n), "BertLayer"):
                x = _layer(b, x, config)
    with b.scope("pooler", "BertPooler"):
        first = b.flatten(b.slice(x, 1, 0, 1))
        pooled = b.activation(
            "tanh", b.linear(first, config.width, name="dense"), name="activation"
        )
    return b.build(x, pooled)


def _layer(b: Builder, x: str, config: BertConfig) -> str:
    with b.scope("attention", "BertAttention"):
        with b.scope("self", "BertSelfAttention"):
            q, k, v = (b.linear(x, config.width, name=part) for part in ("query", "key", "value"))
            y = b.attention(q, k, v, heads=config.heads, name="attention")
        with b.scope("output", "BertSelfOutput", order=("dense", "LayerNorm", "dropout")):
            x = _output(b, y, x, config.width)
    with b.scope("intermediate", "BertIntermediate"):
        y = b.linear(x, config.hidden, name="dense")
        y = b.activation("gelu", y, name="intermediate_act_fn")
    with b.scope("output", "BertOutput", order=("dense", "LayerNorm", "dropout")):
        return _output(b, y, x, config.width)


def _output(b: Builder, y: str, x: str, width: int) -> str:
    y = b.dropout(b.linear(y, width, name="dense"), DROP, name="dropout")
    return b.layer_norm(b.add(y, x), eps=EPS, name="LayerNorm")
