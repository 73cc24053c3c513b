"""Bytes of caches and states: what the next token needs of those before it, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.llm.block_formats import BlockFormat, block_format
from layerscope.llm.description import (
    DecoderLayer,
    HeadAttention,
    LanguageModel,
    LatentAttention,
    Recurrence,
)


class CacheOptions(Struct, frozen=True, kw_only=True):
    """How much is cached, and in which formats; the last fields apply to some runtimes."""

    tokens: int  # of each sequence
    sequences: int = 1
    keys: str = "f16"
    values: str = "f16"
    states: str = ""  # the format of recurrent states; "" is that of the runtime
    encoded: int = 0  # tokens of the encoder
    cell_step: int = 256  # llama.cpp: cells are a multiple of this (older builds: 32)
    micro_batch: int = 512  # llama.cpp: tokens of a batch that is computed at once (ubatch)
    is_unified: bool = False  # llama.cpp: all sequences share the cells
    is_full_window: bool = False  # llama.cpp: window layers keep all tokens (swa-full)
    copies: int = 0  # llama.cpp: states to roll back to, for speculative decoding
    latent: str = "latent"  # latent, copied (also the latent as values), or expanded
    block: int = 16  # vLLM: tokens of a block

    def __post_init__(self) -> None:
        for name in ("sequences", "cell_step", "micro_batch", "block"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}, expected at least 1")
        for name in ("tokens", "encoded", "copies"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} {getattr(self, name)}, expected at least 0")
        if self.latent not in LATENT:
            raise UsageError(f"latent {self.latent!r}, expected {', '.join(LATENT)}")


LATENT = ("latent", "copied", "expanded")


class LayerCache(Struct, frozen=True):
    """Bytes that one layer caches for all sequences."""

    kind: str
    cells: int = 0  # tokens with room, of all sequences
    keys: int = 0
    values: int = 0
    state: int = 0
    cross: int = 0  # keys and values of the encoder's tokens

    @property
    def total(self) -> int:
        """All bytes of the layer."""
        return self.keys + self.values + self.state + self.cross


def kind_of(layer: DecoderLayer) -> str:
    """What a layer caches."""
    mixer = layer.mixer
    if mixer is None:
        return "none"
    if isinstance(mixer, HeadAttention) and not mixer.is_cached:
        return "shared"
    return mixer.kind


def head_rows(
    attention: HeadAttention, cells: int, formats: tuple[BlockFormat, BlockFormat]
) -> tuple[int, int]:
    """Bytes of the keys, those of an indexer included, and of the values in so many cells."""
    keys, values = formats
    index = cells * keys.row_bytes(attention.index_dim) if attention.index_dim else 0
    return (
        cells * keys.row_bytes(attention.kv_heads * attention.key_dim) + index,
        cells * values.row_bytes(attention.kv_heads * attention.value_dim),
    )


def latent_rows(attention: LatentAttention, cells: int, options: CacheOptions) -> tuple[int, int]:
    """Bytes of latents as keys, and of what is stored as values."""
    keys, values = block_format(options.keys), block_format(options.values)
    index = cells * keys.row_bytes(attention.index_dim) if attention.index_dim else 0
    if options.latent == "expanded":
        key = attention.heads * (attention.nope_dim + attention.rope_dim)
        return (
            cells * keys.row_bytes(key) + index,
            cells * values.row_bytes(attention.heads * attention.value_dim),
        )
    found = cells * keys.row_bytes(attention.latent + attention.rope_dim) + index
    if options.latent == "copied":
        return found, cells * values.row_bytes(attention.latent)
    return found, 0


def cross_bytes(layer: DecoderLayer, options: CacheOptions) -> int:
    """Bytes of the keys and values of the encoder's tokens."""
    if layer.cross is None:
        return 0
    formats = block_format(options.keys), block_format(options.values)
    return sum(head_rows(layer.cross, options.encoded * options.sequences, formats))


def needed_tokens(attention: HeadAttention, tokens: int) -> int:
    """Tokens before the next one that it sees."""
    if attention.window:
        return min(tokens, attention.window - 1)
    return tokens % attention.chunk if attention.chunk else tokens


def state_numbers(mixer: Recurrence) -> tuple[int, int]:
    """Numbers of the convolution's inputs, and of the state, of one sequence."""
    return mixer.conv_channels * (mixer.conv_kernel - 1), prod(mixer.state)


def state_bytes(mixer: Recurrence, options: CacheOptions, kind: str) -> int:
    """Bytes of the states of all sequences; `kind` is their format if none is chosen."""
    states = block_format(options.states or kind)
    return options.sequences * sum(states.row_bytes(each) for each in state_numbers(mixer))


def needed(layer: DecoderLayer, options: CacheOptions) -> LayerCache:
    """What the mathematics of a layer needs for its next token."""
    mixer, kind = layer.mixer, kind_of(layer)
    if mixer is None or kind == "shared":
        return LayerCache(kind)
    if isinstance(mixer, Recurrence):
        return LayerCache(kind, state=state_bytes(mixer, options, options.keys))
    cross = cross_bytes(layer, options)
    if isinstance(mixer, LatentAttention):
        cells = options.tokens * options.sequences
        return LayerCache(kind, cells, *latent_rows(mixer, cells, options))
    cells = needed_tokens(mixer, options.tokens) * options.sequences
    formats = block_format(options.keys), block_format(options.values)
    return LayerCache(kind, cells, *head_rows(mixer, cells, formats), cross=cross)


Rule = Callable[[DecoderLayer, CacheOptions], LayerCache]


def layer_caches(
    model: LanguageModel, options: CacheOptions, rule: Rule = needed
) -> tuple[LayerCache, ...]:
    """What every layer of the decoder caches under a rule."""
    found: dict[int, LayerCache] = {}  # layers of the same object are counted once
    for layer in model.layers:
        if id(layer) not in found:
            found[id(layer)] = rule(layer, options)
    return tuple(found[id(layer)] for layer in model.layers)


def cache_bytes(model: LanguageModel, options: CacheOptions, rule: Rule = needed) -> int:
    """Bytes that all layers cache under a rule."""
    return sum(each.total for each in layer_caches(model, options, rule))
