"""Caches as llama.cpp allocates them.

Cells are rounded up to 256; a build of March 2025 rounded less. A window layer has room for its
window (of every sequence, if they share cells) and one micro-batch. Recurrent states are f32, with
copies for speculative decoding.
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

STATE = "f32"


def padded(cells: int, options: CacheOptions) -> int:
    """Cells rounded up to a multiple of the step."""
    return -(-cells // options.cell_step) * options.cell_step


def cells_of(attention: HeadAttention | LatentAttention, options: CacheOptions) -> int:
    """Cells of a layer for all sequences."""
    streams = 1 if options.is_unified else options.sequences
    each = padded(options.tokens * (options.sequences if options.is_unified else 1), options)
    window = 0
    if isinstance(attention, HeadAttention) and not options.is_full_window:
        window = attention.window or attention.chunk
    if window:
        sharing = options.sequences if options.is_unified else 1
        each = min(each, padded(window * sharing + options.micro_batch, options))
    return each * streams


def allocated(layer: DecoderLayer, options: CacheOptions) -> LayerCache:
    """What llama.cpp allocates for a layer."""
    mixer, kind = layer.mixer, kind_of(layer)
    if mixer is None or kind == "shared":
        return LayerCache(kind)
    if isinstance(mixer, Recurrence):
        size = state_bytes(mixer, options, STATE)
        return LayerCache(kind, state=(1 + options.copies) * size)
    cells = cells_of(mixer, options)
    if isinstance(mixer, LatentAttention):
        return LayerCache(kind, cells, *latent_rows(mixer, cells, options))
    formats = block_format(options.keys), block_format(options.values)
    rows = head_rows(mixer, cells, formats)
    return LayerCache(kind, cells, *rows, cross=cross_bytes(layer, options))
