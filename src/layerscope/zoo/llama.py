"""Llama of Touvron et al. 2023 and Llama 3 as Hugging Face has them, on 128 tokens."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph


class LlamaConfig(Struct, frozen=True):
    """What tells one Llama from another; with fewer `kv_heads`, query heads share keys."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    hidden: int
    vocabulary: int
    eps: float = 1e-5


CONFIGS = {
    "llama-7b": LlamaConfig(
        layers=32, heads=32, kv_heads=32, width=4096, hidden=11008, vocabulary=32000, eps=1e-6
    ),
    "llama-3-8b": LlamaConfig(
        layers=32, heads=32, kv_heads=8, width=4096, hidden=14336, vocabulary=128256
    ),
    "llama-3-405b": LlamaConfig(
        layers=126, heads=128, kv_heads=8, width=16384, hidden=53248, vocabulary=128256
    ),
}
LAYER = ("self_attn", "mlp", "input_layernorm", "post_attention_layernorm")  # as declared


def llama(name: str) -> Graph:
    """The Llama of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: LlamaConfig) -> Graph:
    """A Llama of this configuration; its head has a matrix of its own."""
    b = Builder(name, "LlamaForCausalLM")
    ids = b.input("input_ids", (1, 128), "int64")
    with b.scope("model", "LlamaModel"):
        x = b.embedding(ids, config.vocabulary, config.width, name="embed_tokens")
        with b.scope("layers", "ModuleList"):
            for n in range(config.layers):
                with b.scope(str(n), "LlamaDecoderLayer", order=LAYER):
                    x = _layer(b, x, config)
        x = b.rms_norm(x, eps=config.eps, name="norm")
    return b.build(b.linear(x, config.vocabulary, bias=False, name="lm_head"))


def _layer(b: Builder, x: str, config: LlamaConfig) -> str:
    y = b.rms_norm(x, eps=config.eps, name="input_layernorm")
    with b.scope("self_attn", "LlamaAttention"):
        y = _attention(b, y, config)
    x = b.add(x, y)
    y = b.rms_norm(x, eps=config.eps, name="post_attention_layernorm")
    with b.scope("mlp", "LlamaMLP", order=("gate_proj", "up_proj", "down_proj", "act_fn")):
        gate = b.linear(y, config.hidden, bias=False, name="gate_proj")
        gate = b.activation("silu", gate, name="act_fn")
        y = b.mul(gate, b.linear(y, config.hidden, bias=False, name="up_proj"))
        y = b.linear(y, config.width, bias=False, name="down_proj")
    return b.add(x, y)


def _attention(b: Builder, x: str, config: LlamaConfig) -> str:
    heads, kv_heads = config.heads, config.kv_heads
    narrow = config.width // heads * kv_heads
    q = b.linear(x, config.width, bias=False, name="q_proj")
    k = b.linear(x, narrow, bias=False, name="k_proj")
    v = b.linear(x, narrow, bias=False, name="v_proj")
    q = b.rotary(q, heads=heads, name="rotary_q")
    k = b.rotary(k, heads=kv_heads, name="rotary_k")
    x = b.attention(
        q, k, v, heads=heads, kv_heads=kv_heads, causal=True, cached=True, name="attention"
    )
    return b.linear(x, config.width, bias=False, name="o_proj")
