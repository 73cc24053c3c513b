"""Attributes of attention and rotary embeddings."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Attention(Struct, frozen=True, gc=False):
    """softmax(Q·Kᵀ·scale)·V per head, on N x T x (heads · size) or N x heads x T x size.

    With fewer `kv_heads` each serves several query heads. `past` is the length of a cache of keys
    and values before the given ones; `cached` says that the node supports such a cache.
    """

    heads: int
    kv_heads: int = 0  # 0: the same as heads
    causal: bool = False
    cached: bool = False
    past: int = 0
    scaled: bool = True  # False: scores are not scaled
    mask: Literal["", "add", "bool"] = ""  # how the fourth input is used
    softcap: float = 0.0  # scores s become softcap·tanh(s / softcap); 0: unchanged
    dropout: float = 0.0  # of attention weights, in training
    fused: bool = True  # False: PyTorch runs it as separate operators


class Rotary(Struct, frozen=True, gc=False):
    """Rotation of pairs of features of each head by their position."""

    heads: int
