"""What fits in a memory: the largest batch, the longest context, and the table of both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.llm.account import DeployedMemory, Deployment, memory_use

MOST = 2**40  # of a batch or a context: ends the search where memory does not grow
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Largest(Struct, frozen=True):
    """The largest number that fits; at MOST, every number does."""

    number: int  # 0: not even one fits
    use: DeployedMemory  # of that number, or of one if none fits


class LanguageFit(Struct, frozen=True):
    """What fits in a memory beside the weights."""

    memory_bytes: int
    usable_bytes: int  # what the runtime takes of it
    batch: int  # asked for
    tokens: int
    largest_batch: Largest  # at these tokens
    longest_context: Largest  # at this batch
    contexts: tuple[tuple[int, int], ...]  # by batch, the longest context of each sequence


def language_fit(deployment: Deployment, memory_bytes: int) -> LanguageFit:
    """The largest batch and the longest context of a deployment in a memory."""
    if memory_bytes < 1:
        raise UsageError(f"memory of {memory_bytes} bytes, expected at least 1")
    deployment = replace(deployment, device_bytes=memory_bytes)
    usable = deployment.usable_bytes or 0
    batch, tokens = deployment.cache.sequences, deployment.cache.tokens
    weights = memory_use(deployment).weights  # the same for all

    def use(sequences: int, length: int) -> DeployedMemory:
        return memory_use(deployment.sized(sequences, length), weights)

    def largest(of: Callable[[int], DeployedMemory]) -> Largest:
        number = _search(lambda each: of(each).total <= usable)
        return Largest(number, of(max(number, 1)))

    contexts = []
    for each in sorted({*BATCHES, batch}):
        longest = largest(partial(use, each)).number
        if not longest:
            break
        contexts.append((each, longest))
    return LanguageFit(
        memory_bytes,
        usable,
        batch,
        tokens,
        largest(lambda each: use(each, tokens)),
        largest(lambda length: use(batch, length)),
        tuple(contexts),
    )


def _search(fits: Callable[[int], bool]) -> int:
    """The largest number that fits, 0 if one does not; bytes grow with the number."""
    low, high = 0, 1
    while fits(high):
        if high >= MOST:
            return MOST
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
