"""Formats of stored numbers: bytes of a block of numbers with its scales.

Blocks of ggml are those of its `type_traits`; the others state their scales in `FORMATS`.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.graph.block_dtypes import GGML_DTYPES
from layerscope.graph.dtype_names import dtype_name
from layerscope.graph.types import Shape


class BlockFormat(Struct, frozen=True):
    """Numbers stored in blocks of equal size."""

    name: str
    block: int  # numbers in a block
    block_bytes: int
    ggml_type: int | None = None  # the number of the type in GGUF files
    keeps: str = ""  # what it quantizes, if embeddings, heads and routers stay in a plain dtype
    has_scales: bool = True  # false: a name of bits alone, such as int4, which says no scales

    @property
    def bits(self) -> Fraction:
        """Bits per number, scales included."""
        return Fraction(8 * self.block_bytes, self.block)

    def row_bytes(self, numbers: int) -> int:
        """Bytes of a row of so many numbers; its last block is a whole one."""
        return -(-numbers // self.block) * self.block_bytes


LINEAR = "linear layers alone"
_OTHERS = (
    BlockFormat("q6_0", 32, 26),  # a type of ik_llama.cpp's caches
    # Names of bits alone: how many numbers share a scale is not said, so that none are counted.
    BlockFormat("fp8", 1, 1, keeps=LINEAR, has_scales=False),
    BlockFormat("int8", 1, 1, keeps=LINEAR, has_scales=False),
    BlockFormat("int4", 2, 1, keeps=LINEAR, has_scales=False),
    BlockFormat("nvfp4", 16, 9, keeps=LINEAR),  # an fp8 scale for 16 numbers
    BlockFormat("nf4", 64, 36, keeps=LINEAR),  # an fp32 scale for 64 numbers
    # Scales in 8 bits for 64 numbers, and an fp32 scale for 256 of these.
    BlockFormat("nf4_double", 64 * 256, 8192 + 256 + 4, keeps=LINEAR),
    # Groups of 128: a scale of 16 bits and a zero point of 4 bits.
    BlockFormat("awq", 256, 133, keeps=LINEAR),
    BlockFormat("gptq", 256, 133, keeps=LINEAR),
)
FORMATS = {
    each.name: each
    for each in (
        *(BlockFormat(name, n, size, kind) for name, n, size, kind in GGML_DTYPES),
        *_OTHERS,
    )
}
GGML_TYPES = {each.ggml_type: each for each in FORMATS.values() if each.ggml_type is not None}
ALIASES = {"fp32": "f32", "fp16": "f16", "fp64": "f64", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}
MIXED = ("_s", "_m", "_l", "_xl")  # q4_k_m: a file of several types
# llama.cpp's type for rows that are no multiple of 256.
FALLBACK = {
    "q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
    "iq2_xxs": "iq4_nl", "iq2_xs": "iq4_nl", "iq2_s": "iq4_nl", "iq3_xxs": "iq4_nl",
    "iq1_s": "iq4_nl", "iq1_m": "iq4_nl", "iq3_s": "iq4_nl", "iq4_xs": "iq4_nl",
    "tq1_0": "q4_0", "tq2_0": "q4_0",
}  # fmt: skip


def block_format(name: str) -> BlockFormat:
    """The format of that name; names of PyTorch's dtypes are accepted too."""
    wanted = name.strip().lower()
    if wanted in FORMATS:
        return FORMATS[wanted]
    wanted = ALIASES.get(wanted) or ALIASES.get(dtype_name(wanted)) or dtype_name(wanted)
    if wanted in FORMATS:
        return FORMATS[wanted]
    stem = wanted.rpartition("_")[0]
    if wanted.endswith(MIXED) and stem in FORMATS:
        raise UsageError(
            f"{name} is a file of several types, whose bytes only the file has; give the GGUF "
            f"file, or {stem} for all matrices in one type"
        )
    raise UnknownName("format", name, FORMATS, f"; known: {', '.join(FORMATS)}")


def fitting(chosen: BlockFormat, columns: int) -> BlockFormat:
    """The format of rows of so many numbers: another one where blocks do not divide them."""
    while columns % chosen.block:
        chosen = FORMATS[FALLBACK.get(chosen.name, "f16")]
    return chosen


def matrix_bytes(shape: Shape, chosen: BlockFormat) -> int:
    """Bytes of a matrix, or of a stack of them, whose rows are the last axis."""
    *rows, columns = shape
    found = fitting(chosen, columns) if chosen.ggml_type is not None else chosen
    count = 1
    for size in rows:
        count *= size
    if found.ggml_type is None:  # blocks of these formats go on from row to row
        return found.row_bytes(count * columns)
    return count * found.row_bytes(columns)
