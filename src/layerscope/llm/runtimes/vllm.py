"""Caches as vLLM allocates them: blocks of tokens, from a pool.

A sequence takes whole blocks; those before its window are freed. What vLLM adds to the blocks of a
hybrid, so that they are as large as its states, is not counted.
"""

from __future__ import annotations

from layerscope.llm.block_formats import block_format
from layerscope.llm.cache import (
    CacheOptions,
    LayerCache,
    cross_bytes,
    head_rows,
    kind_of,
    latent_rows,
    state_bytes,
)
from layerscope.llm.description import DecoderLayer, HeadAttention, LatentAttention, Recurrence


def blocks_of(attention: HeadAttention | LatentAttention, options: CacheOptions) -> int:
    """Blocks of one sequence."""
    blocks = -(-options.tokens // options.block)
    if isinstance(attention, HeadAttention) and (attention.window or attention.chunk):
        past = options.tokens - attention.window + 1
        if attention.chunk:
            past = options.tokens - options.tokens % attention.chunk
        blocks -= max(past, 0) // options.block
    return blocks


def allocated(layer: DecoderLayer, options: CacheOptions) -> LayerCache:
    """What vLLM allocates for a layer."""
    mixer, kind = layer.mixer, kind_of(layer)
    if mixer is None or kind == "shared":
        return LayerCache(kind)
    if isinstance(mixer, Recurrence):
        return LayerCache(kind, state=state_bytes(mixer, options, options.keys))
    cells = blocks_of(mixer, options) * options.block * options.sequences
    if isinstance(mixer, LatentAttention):
        return LayerCache(kind, cells, *latent_rows(mixer, cells, options))
    formats = block_format(options.keys), block_format(options.values)
    rows = head_rows(mixer, cells, formats)
    return LayerCache(kind, cells, *rows, cross=cross_bytes(layer, options))
