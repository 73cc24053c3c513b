"""Caches as the dynamic cache of transformers keeps them after a forward pass."""

from __future__ import annotations

from math import prod

from layerscope.llm.block_formats import block_format
from layerscope.llm.cache import (
    CacheOptions,
    LayerCache,
    cross_bytes,
    head_rows,
    kind_of,
    latent_rows,
)
from layerscope.llm.description import DecoderLayer, LatentAttention, Recurrence


def allocated(layer: DecoderLayer, options: CacheOptions) -> LayerCache:
    """What transformers keeps for a layer."""
    mixer, kind = layer.mixer, kind_of(layer)
    if mixer is None or kind == "shared":
        return LayerCache(kind)
    keys, values = block_format(options.keys), block_format(options.values)
    if isinstance(mixer, Recurrence):
        inputs = keys.row_bytes(mixer.conv_channels * mixer.conv_kernel)
        states = block_format(options.states or options.keys).row_bytes(prod(mixer.state))
        return LayerCache(kind, state=options.sequences * (inputs + states))
    tokens = options.tokens
    if isinstance(mixer, LatentAttention):
        cells = tokens * options.sequences
        return LayerCache(kind, cells, *latent_rows(mixer, cells, options))
    window = mixer.window or mixer.chunk
    if window:
        tokens = min(tokens, window - 1) if window > 1 else tokens
    cells = tokens * options.sequences
    rows = head_rows(mixer, cells, (keys, values))
    return LayerCache(kind, cells, *rows, cross=cross_bytes(layer, options))
