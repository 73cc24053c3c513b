"""Caches as programs allocate them, one file per program."""

from __future__ import annotations

from layerscope.errors import UnknownName
from layerscope.llm.cache import CacheOptions, Rule
from layerscope.llm.runtimes import llama_cpp, mlx, transformers, vllm

RUNTIMES: dict[str, Rule] = {
    "llama.cpp": llama_cpp.allocated,
    "mlx": mlx.allocated,
    "transformers": transformers.allocated,
    "vllm": vllm.allocated,
}


# How each of them allocates a cache.
RULES = {
    "llama.cpp": "cells are a multiple of {cells}, a window layer has room for its window and a "
    "micro-batch of {micro_batch}",
    "mlx": "tokens are a multiple of 256, up to a window",
    "transformers": "one token less than a window, and nothing is rounded",
    "vllm": "blocks of {block} tokens, without those before a window",
}


def allocation(name: str, options: CacheOptions) -> str:
    """How a program allocates a cache, in one sentence."""
    return RULES[name].format(
        cells=options.cell_step, micro_batch=options.micro_batch, block=options.block
    )


def runtime(name: str) -> Rule:
    """The rule of a program."""
    if name not in RUNTIMES:
        raise UnknownName("runtime", name, RUNTIMES, f"; choose from {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
