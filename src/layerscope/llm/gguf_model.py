"""The language model of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from layerscope.formats.gguf import GgufFile, gguf_file
from layerscope.formats.gguf_config import gguf_config
from layerscope.graph.types import storage_bytes
from layerscope.llm.description import EXPERTS, LanguageModel
from layerscope.llm.families import describe

OUTER = {
    "token_embd.weight": "embedding", "output.weight": "head", "output_norm.weight": "norm",
}  # fmt: skip


def gguf_model(found: GgufFile, path: str) -> LanguageModel:
    """The language model of a GGUF file of one of these architectures."""
    return describe(gguf_config(found, path), path)


def file_bits(network: str) -> Mapping[str, float]:
    """Mean bits of the weights of a file by part: embedding, head, experts, and layers beside."""
    counts: dict[str, tuple[int, int]] = {}
    for array in gguf_file(network.removeprefix("hf:")).arrays:
        number = prod(array.shape)
        before, size = counts.get(_part_of_model(array.name), (0, 0))
        counts[_part_of_model(array.name)] = (
            before + number,
            size + storage_bytes(number, array.dtype),
        )
    every = sum(number for number, _ in counts.values()), sum(size for _, size in counts.values())
    counts.setdefault("layers", every)
    return {part: 8 * size / max(number, 1) for part, (number, size) in counts.items()}


def _part_of_model(name: str) -> str:
    if name.startswith("blk."):
        return EXPERTS if "_exps" in name else "layers"
    return OUTER.get(name, "others")
