"""Caches as programs allocate them, one file per program."""

from __future__ import annotations

from layerscope.errors import UnknownName
from layerscope.llm.cache import Rule
from layerscope.llm.runtimes import llama_cpp, mlx, transformers, vllm

RUNTIMES: dict[str, Rule] = {
    "llama.cpp": llama_cpp.allocated,
    "mlx": mlx.allocated,
    "transformers": transformers.allocated,
    "vllm": vllm.allocated,
}


def runtime(name: str) -> Rule:
    """The rule of a program."""
    if name not in RUNTIMES:
        raise UnknownName("runtime", name, RUNTIMES, f"; choose from {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
