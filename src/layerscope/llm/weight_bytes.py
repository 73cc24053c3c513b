"""Bytes of the weights of a language model in a format, as the format keeps each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from layerscope.graph.types import Shape
from layerscope.llm.block_formats import FORMATS, BlockFormat, matrix_bytes
from layerscope.llm.description import LanguageModel
from layerscope.llm.parameters import BUFFERS

OUTER = ("embedding", "head", "positions", "layer embeddings")
WIDE = ("f32", "f16", "bf16", "f64", "q8_0", "fp8", "int8")
SMALL = ("norms", "norm", "router", BUFFERS)  # parts that no format quantizes


def weight_bytes(model: LanguageModel, chosen: BlockFormat, default: str = "bf16") -> int:
    """Bytes of all weights."""
    return sum(bytes_by_part(model, chosen, default).values())


def bytes_by_part(
    model: LanguageModel, chosen: BlockFormat, default: str = "bf16"
) -> dict[str, int]:
    """Bytes by part.

    Plain dtypes apply to everything. GGUF keeps vectors and routers in f32 and the output matrix
    in q6_k below 8 bits; other formats keep all but the matrices of layers in `default`.
    """
    found: Counter[str] = Counter()
    for part, name, shape in _weights(model):
        found[part] += stored_bytes(model, (part, name, shape), (chosen, FORMATS[default]))
    return dict(found)


def _weights(model: LanguageModel) -> Iterator[tuple[str, str, Shape]]:
    for parts in (*(each.parts for each in (*model.encoder, *model.layers)), model.outer):
        for part, weights in parts.items():
            for name, shape in weights.items():
                if part != BUFFERS:
                    yield part, name, shape


def stored_bytes(
    model: LanguageModel, weight: tuple[str, str, Shape], formats: tuple[BlockFormat, BlockFormat]
) -> int:
    """Bytes of one weight, by its part, name and shape; the second format is that of the rest."""
    (part, name, shape), (chosen, plain) = weight, formats
    if chosen.block == 1:
        return prod(shape) * chosen.block_bytes
    is_vector = len(shape) < 2 or part in SMALL or name.startswith("conv1d") or name == "A_log"
    is_vector = is_vector or name.endswith(".bias")
    if chosen.ggml_type is None:
        kept = is_vector or (part in OUTER and chosen.keeps != "")
        return prod(shape) * plain.block_bytes if kept else matrix_bytes(shape, chosen)
    if is_vector:
        return prod(shape) * FORMATS["f32"].block_bytes
    is_output = part == "head" or (part == "embedding" and "head" not in model.outer)
    if is_output and chosen.name not in WIDE:
        return matrix_bytes(shape, FORMATS["q6_k"])
    return matrix_bytes(shape, chosen)
