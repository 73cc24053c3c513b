"""Multiply-adds of a decoder in closed form: its matrices and its attention.

They are those of all pairs of queries and keys, or of the pairs that masks and windows leave.
Recurrent layers have no closed form here: their scans differ from program to program.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct

from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    HeadAttention,
    LanguageModel,
    LatentAttention,
    Recurrence,
)

TABLES = ("embedding", "positions")  # rows are looked up, not multiplied
LOOKED_UP = "embed_tokens_per_layer"


class MacCount(Struct, frozen=True):
    """Multiply-adds of one pass."""

    matrices: int
    attention: int  # of all pairs
    needed: int  # of the pairs that masks and windows leave

    @property
    def total(self) -> int:
        """Multiply-adds with attention over all pairs."""
        return self.matrices + self.attention


def macs(model: LanguageModel, tokens: int, past: int = 0, batch: int = 1) -> MacCount | None:
    """Multiply-adds of `tokens` new tokens after a cache of `past`; None if they are unknown."""
    if model.encoder or any(isinstance(layer.mixer, Recurrence) for layer in model.layers):
        return None
    matrices = sum(_layer_matrices(layer, tokens, past) for layer in model.layers)
    for part, weights in model.outer.items():
        if part not in (*TABLES, "head"):
            names = {name: shape for name, shape in weights.items() if name != LOOKED_UP}
            matrices += tokens * _products(names)
    matrices += tokens * model.vocabulary * model.hidden  # the head, tied or not
    pairs = [_attention(layer, tokens, past) for layer in model.layers]
    return MacCount(
        batch * matrices,
        batch * sum(each for each, _ in pairs),
        batch * sum(each for _, each in pairs),
    )


def _products(weights: dict[str, tuple[int, ...]]) -> int:
    """Elements of the matrices: one multiply-add each for a token."""
    return sum(prod(shape) for name, shape in weights.items() if len(shape) > 1)


def _layer_matrices(layer: DecoderLayer, tokens: int, past: int) -> int:
    count = 0
    for part, weights in layer.parts.items():
        # norms of queries may have a row per head, and experts are read for their own tokens
        if part in ("norms", "buffers"):
            continue
        matrices = {n: s for n, s in weights.items() if not n.endswith(".bias")}
        found = _products(matrices) * tokens
        if part == EXPERTS and layer.experts is not None:
            found = found // layer.experts.count * layer.experts.per_token
        count += found
    if isinstance(layer.mixer, LatentAttention):  # latents of the cache are projected again
        count += past * prod(layer.parts["attention"]["kv_b_proj"])
    return count


def visible_pairs(attention: HeadAttention, tokens: int, past: int) -> int:
    """Pairs of a query and a key that the mask and the window leave."""
    if not attention.is_causal:
        return tokens * (past + tokens)
    if attention.window:
        return sum_to(past + tokens, attention.window) - sum_to(past, attention.window)
    if attention.chunk:
        return sum_in_chunks(past + tokens, attention.chunk) - sum_in_chunks(past, attention.chunk)
    return sum_to(past + tokens) - sum_to(past)


def sum_to(tokens: int, most: int = 0) -> int:
    """Keys that the first queries see in all, each at most `most` of them (0 is all)."""
    short = min(tokens, most) if most else tokens
    return short * (short + 1) // 2 + (tokens - short) * most


def sum_in_chunks(tokens: int, size: int) -> int:
    """Keys that the first queries see in all, each those of its own chunk."""
    whole, rest = divmod(tokens, size)
    return whole * sum_to(size) + sum_to(rest)


def _attention(layer: DecoderLayer, tokens: int, past: int) -> tuple[int, int]:
    """Multiply-adds of all pairs, and of the visible ones."""
    mixer = layer.mixer
    if isinstance(mixer, LatentAttention):
        size = mixer.heads * (mixer.nope_dim + mixer.rope_dim + mixer.value_dim)
        index = mixer.index_heads * mixer.index_dim
        causal = sum_to(past + tokens) - sum_to(past)
        return (size + index) * tokens * (past + tokens), (size + index) * causal
    if not isinstance(mixer, HeadAttention):
        return 0, 0
    size = mixer.heads * (mixer.key_dim + mixer.value_dim)
    window = mixer.window or mixer.chunk
    kept = min(past, window - 1) if window > 1 else past  # in the cache of a window
    size += mixer.index_heads * mixer.index_dim
    return size * tokens * (kept + tokens), size * visible_pairs(mixer, tokens, past)
