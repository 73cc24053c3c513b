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
WIDE = ("f32", "f16", "bf16", "f64", "q8_0")
SMALL = ("norms", "norm", "router", BUFFERS)  # parts that no format quantizes


def weight_bytes(model: LanguageModel, chosen: BlockFormat, default: str = "bf16") -> int:
    """Bytes of all weights."""
    return sum(bytes_by_part(model, chosen, default).values())


def bytes_by_part(
    model: LanguageModel, chosen: BlockFormat, default: str = "bf16"
) -> dict[str, int]:
    """Bytes by part.

    Plain dtypes apply to everything. GGUF keeps vectors and routers in f32 and the output matrix
    in q6_k below 8 bits; other formats keep all but the matrices of layers in `default`, and so do
    int4, int8 and fp8, whose scales are not counted.
    """
    found: Counter[str] = Counter()
    for part, name, shape in _weights(model):
        found[part] += stored_bytes(model, (part, name, shape), (chosen, FORMATS[default]))
    return dict(found)


def format_lines(chosen: BlockFormat, plain: str, what: str = "weights") -> list[str]:
    """What a format leaves in a plain dtype, and which scales are not counted."""
    found = []
    if chosen.keeps and what == "weights" and plain != chosen.name:
        found.append(
            f"{chosen.name} applies to the matrices of layers; embedding, head, router, norms and "
            f"biases stay in {plain}."
        )
    if not chosen.has_scales:
        found.append(
            f"{chosen.name} does not say how many numbers share a scale: scales of {what} are not "
            "counted."
        )
    return found


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
    if chosen.block == 1 and not chosen.keeps:
        return prod(shape) * chosen.block_bytes
    is_vector = len(shape) < 2 or part in SMALL or name.startswith("conv1d") or name == "A_log"
    is_vector = is_vector or name.endswith(".bias")
    if chosen.ggml_type is None:
        kept = is_vector or (part in OUTER and chosen.keeps != "")
        return plain.row_bytes(prod(shape)) if kept else matrix_bytes(shape, chosen)
    if is_vector:
        return prod(shape) * FORMATS["f32"].block_bytes
    is_output = part == "head" or (part == "embedding" and "head" not in model.outer)
    if is_output and chosen.name not in WIDE:
        return matrix_bytes(shape, FORMATS["q6_k"])
    return matrix_bytes(shape, chosen)
