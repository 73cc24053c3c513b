"""GPT-2 of Radford et al. 2019 as Hugging Face has it: GPT2LMHeadModel, on 128 tokens."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph

DROP = 0.1
VOCABULARY, POSITIONS = 50257, 1024


class Gpt2Config(Struct, frozen=True):
    """What tells one GPT-2 from another; the hidden layer is four times as wide."""

    layers: int
    heads: int
    width: int


CONFIGS = {
    "gpt2": Gpt2Config(layers=12, heads=12, width=768),
    "gpt2-medium": Gpt2Config(layers=24, heads=16, width=1024),
    "gpt2-large": Gpt2Config(layers=36, heads=20, width=1280),
    "gpt2-xl": Gpt2Config(layers=48, heads=25, width=1600),
}


def gpt2(name: str) -> Graph:
    """The GPT-2 of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: Gpt2Config) -> Graph:
    """A GPT-2 of this configuration; its head shares the matrix of the embedding."""
    b = Builder(name, "GPT2LMHeadModel")
    ids = b.input("input_ids", (1, 128), "int64")
    with b.scope("transformer", "GPT2Model"):
        x = b.embedding(ids, VOCABULARY, config.width, name="wte")
        positions = b.positions(ids, name="position_ids")
        x = b.add(x, b.embedding(positions, POSITIONS, config.width, name="wpe"))
        x = b.dropout(x, DROP, name="drop")
        with b.scope("h", "ModuleList"):
            for n in range(config.layers):
                with b.scope(str(n), "GPT2Block"):
                    x = _block(b, x, config)
        x = b.layer_norm(x, name="ln_f")
    tied = "transformer.wte.weight"
    return b.build(b.linear(x, VOCABULARY, bias=False, tied=tied, name="lm_head"))


def _block(b: Builder, x: str, config: Gpt2Config) -> str:
    width = config.width
    y = b.layer_norm(x, name="ln_1")
    with b.scope("attn", "GPT2Attention"):
        packed = b.linear(y, 3 * width, name="c_attn")
        q, k, v = b.split(packed, (width,) * 3, axis=-1, name="split")
        y = b.attention(q, k, v, heads=config.heads, causal=True, cached=True, name="attention")
        y = b.dropout(b.linear(y, width, name="c_proj"), DROP, name="resid_dropout")
    x = b.add(y, x)
    y = b.layer_norm(x, name="ln_2")
    with b.scope("mlp", "GPT2MLP", order=("c_fc", "c_proj", "act", "dropout")):
        y = b.activation("gelu_tanh", b.linear(y, 4 * width, name="c_fc"), name="act")
        y = b.dropout(b.linear(y, width, name="c_proj"), DROP, name="dropout")
    return b.add(x, y)
