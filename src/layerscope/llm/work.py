"""Work of one step of a language model, layer by layer: bytes that are read, operations.

A step reads `tokens` new tokens of each of `batch` sequences, after `past` tokens in the cache. It
is a prefill with many tokens and a decode step with one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.graph.types import Shape
from layerscope.llm.cache import CacheOptions, needed
from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    Experts,
    HeadAttention,
    LanguageModel,
    LatentAttention,
    Mixer,
    Weights,
)
from layerscope.llm.macs import sum_in_chunks, sum_to
from layerscope.llm.parameters import BUFFERS

SizeOf = Callable[[str, str, Shape], float]  # bytes of a weight: its part, name and shape
LOOKED_UP = ("embedding", "positions", "layer embeddings")  # a token reads one row
STATE_PASSES = 3  # decay, add, read: multiply-adds of each number of a recurrent state


class Step(Struct, frozen=True, kw_only=True):
    """What one pass computes."""

    tokens: int  # new ones of each sequence
    past: int = 0
    batch: int = 1

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("past", 0), ("batch", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} {getattr(self, name)}, expected at least {least}")

    @property
    def all_tokens(self) -> int:
        """New tokens of all sequences."""
        return self.tokens * self.batch


Phase = Literal["prefill", "decode"]


def phase_of(step: Step) -> Phase:
    """Several tokens are a prompt, one is generated."""
    return "prefill" if step.tokens > 1 else "decode"


class Work(Struct, frozen=True, kw_only=True):
    """Bytes and operations of one layer in a step."""

    name: str
    kind: str
    weight_bytes: float = 0  # expected: of experts, those that some token is sent to
    least_weight_bytes: float = 0  # all tokens are sent to the same experts
    cache_bytes: float = 0
    flops: int = 0  # two for each multiply-add with a weight
    expert_flops: int = 0  # part of `flops`
    attention_flops: int = 0  # of queries with keys, of scores with values, of states
    products: int = 0  # kernels of a product


def touched_share(experts: Experts, tokens: int, skew: float = 0.0) -> float:
    """Expected share of the experts that at least one of so many tokens is sent to.

    Tokens choose independently; without a skew evenly, else the expert of rank i is chosen in
    proportion to i^-skew, at most once by a token.
    """
    if not skew:
        return 1 - (1 - experts.per_token / experts.count) ** tokens
    chances = _chances(experts, skew)
    return sum(1 - (1 - each) ** tokens for each in chances) / experts.count


@lru_cache(maxsize=64)
def _chances(experts: Experts, skew: float) -> tuple[float, ...]:
    """The chance of each expert to be among those of a token; their sum is `per_token`."""
    shares = [rank**-skew for rank in range(1, experts.count + 1)]
    certain = 0  # the first experts, which every token is sent to
    while certain < experts.per_token:
        scale = (experts.per_token - certain) / sum(shares[certain:])
        if scale * shares[certain] <= 1:
            rest = [scale * each for each in shares[certain:]]
            return (*[1.0] * certain, *rest)
        certain += 1
    return (*[1.0] * certain, *[0.0] * (experts.count - certain))


def pairs(step: Step, window: int = 0, chunk: int = 0) -> int:
    """Pairs of a new token and a token that it sees, itself included, of one sequence."""
    last = step.past + step.tokens
    if chunk:
        return sum_in_chunks(last, chunk) - sum_in_chunks(step.past, chunk)
    return sum_to(last, window) - sum_to(step.past, window)


def layer_works(
    model: LanguageModel, step: Step, size_of: SizeOf, cache: str, skew: float = 0.0
) -> tuple[Work, ...]:
    """The work of the embedding, of each layer and of the head; the encoder is left out.

    The caches are those that the mathematics needs, in the format `cache`; `skew` is that of the
    choice of experts.
    """
    found: dict[int, Work] = {}  # layers of the same object do the same work
    for layer in model.layers:
        if id(layer) not in found:
            found[id(layer)] = _layer_work(layer, step, size_of, cache, skew)
    rows = [replace(found[id(layer)], name=f"layers.{n}") for n, layer in enumerate(model.layers)]
    return (_looked_up(model, step, size_of), *rows, _head(model, step, size_of))


def _layer_work(layer: DecoderLayer, step: Step, size_of: SizeOf, cache: str, skew: float) -> Work:
    weight_bytes, least_bytes, flops, expert_flops, products = 0.0, 0.0, 0, 0, 0
    for part, weights in layer.parts.items():
        if part == BUFFERS:
            continue
        read, used = 1.0, 1.0
        if part == EXPERTS and layer.experts is not None:
            read = touched_share(layer.experts, step.all_tokens, skew)
            used = layer.experts.per_token / layer.experts.count
        stored = sum(size_of(part, name, shape) for name, shape in weights.items())
        weight_bytes += read * stored
        least_bytes += used * stored
        each = 2 * round(_matrix_elements(weights) * used) * step.all_tokens
        flops += each
        expert_flops += each if part == EXPERTS else 0
        products += sum(len(shape) > 1 for shape in weights.values())
    attention = step.batch * (mixer_flops(layer.mixer, step) if layer.mixer is not None else 0)
    options = CacheOptions(tokens=step.past, sequences=step.batch, keys=cache, values=cache)
    return Work(
        name="",
        kind=layer.mixer.kind if layer.mixer is not None else "feed-forward",
        weight_bytes=weight_bytes,
        least_weight_bytes=least_bytes,
        cache_bytes=needed(layer, options).total,
        flops=flops,
        expert_flops=expert_flops,
        attention_flops=attention,
        products=products + (layer.mixer is not None),
    )


def mixer_flops(mixer: Mixer, step: Step) -> int:
    """Operations without weights of one sequence: pairs that mask and window need, or states."""
    if isinstance(mixer, HeadAttention):
        width = mixer.heads * (mixer.key_dim + mixer.value_dim)
        return 2 * width * pairs(step, mixer.window or mixer.index_keys, mixer.chunk)
    if isinstance(mixer, LatentAttention):
        width = mixer.nope_dim + mixer.rope_dim + mixer.value_dim
        if step.tokens == 1:  # queries and values meet the latents, which are not expanded
            width = 2 * mixer.latent + mixer.rope_dim
        return 2 * mixer.heads * width * pairs(step, mixer.index_keys)
    return 2 * STATE_PASSES * prod(mixer.state) * step.tokens


def _matrix_elements(weights: Weights) -> int:
    return sum(prod(shape) for shape in weights.values() if len(shape) > 1)


def _looked_up(model: LanguageModel, step: Step, size_of: SizeOf) -> Work:
    rows = 0.0
    for part in LOOKED_UP:
        for name, shape in model.outer.get(part, {}).items():
            rows += size_of(part, name, shape) / max(shape[0], 1)
    size = rows * step.all_tokens
    return Work(name="embedding", kind="embedding", weight_bytes=size, least_weight_bytes=size)


def _head(model: LanguageModel, step: Step, size_of: SizeOf) -> Work:
    """The head of the last token of each sequence, which is what generating needs."""
    part = "head" if "head" in model.outer else "embedding"
    weights = {name: shape for name, shape in model.outer[part].items() if prod(shape[:1]) > 1}
    size = sum(size_of(part, name, shape) for name, shape in weights.items())
    flops = 2 * _matrix_elements(weights) * step.batch
    return Work(
        name="head", kind="head", weight_bytes=size, least_weight_bytes=size, flops=flops,
        products=1,
    )  # fmt: skip
