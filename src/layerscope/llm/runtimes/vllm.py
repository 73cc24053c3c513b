"""Caches as vLLM allocates them: blocks of tokens, from a pool. The pool is what a run leaves.

A sequence takes whole blocks; those before its window are freed. What vLLM adds to the blocks of a
hybrid, so that they are as large as its states, is not counted.

vLLM takes a share of the memory, `gpu_memory_utilization`. At start it runs a batch of as many
tokens and sequences as it may schedule, and the pool has what the peak of that run leaves.
"""

from __future__ import annotations

from msgspec import Struct

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

PERCENT = 90  # of the memory: the default of gpu_memory_utilization


class ProfileRun(Struct, frozen=True):
    """The largest batch that vLLM schedules by default."""

    tokens: int  # max_num_batched_tokens
    sequences: int  # max_num_seqs


SMALL, LARGE = ProfileRun(2048, 256), ProfileRun(8192, 1024)
LARGE_MEMORY = 70 * 2**30  # from here on a server schedules more, but for A100


def profile_run(memory_bytes: int | None) -> ProfileRun:
    """The defaults of a server on a device; those of a smaller one if its memory is not given."""
    return LARGE if memory_bytes is not None and memory_bytes >= LARGE_MEMORY else SMALL


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
