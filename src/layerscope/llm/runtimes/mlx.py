"""Caches as MLX allocates them: in steps of 256 tokens."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.llm.cache import CacheOptions, LayerCache, needed
from layerscope.llm.description import DecoderLayer, HeadAttention

STEP = 256


def allocated(layer: DecoderLayer, options: CacheOptions) -> LayerCache:
    """What MLX allocates for a layer."""
    mixer = layer.mixer
    tokens = -(-options.tokens // STEP) * STEP
    if isinstance(mixer, HeadAttention) and mixer.window:
        tokens = min(tokens, mixer.window)
        layer = replace(layer, mixer=replace(mixer, window=0))
        return replace(needed(layer, replace(options, tokens=tokens)), kind=mixer.kind)
    return needed(layer, replace(options, tokens=tokens))
