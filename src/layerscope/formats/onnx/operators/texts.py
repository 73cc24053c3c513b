"""Strings, vocabularies and maps: what they make is counted where their length is not data."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import broadcast

NO_NUMBERS = "work on strings, which is no arithmetic, is not counted"


def concat(s: Site) -> None:
    """StringConcat."""
    shape = broadcast((s.shape(0), s.shape(1)))
    s.counted((s.given(0), s.given(1)), at.CustomCost((shape,), ("string",)), note=NO_NUMBERS)


def match(s: Site) -> None:
    """RegexFullMatch."""
    s.counted((s.given(0),), at.CustomCost((s.shape(0),), ("bool",)), note=NO_NUMBERS)


def split(s: Site) -> None:
    """StringSplit: as many columns as the longest string has parts."""
    raise NeedsValue("the number of parts of the longest string is data")


def normalize(s: Site) -> None:
    """StringNormalizer; with stopwords, how many strings are left only the run shows."""
    if s.count("stopwords"):
        raise NeedsValue("how many strings are among the stopwords is data")
    s.counted((s.given(0),), at.CustomCost((s.shape(0),), ("string",)), note=NO_NUMBERS)


def n_grams(s: Site) -> None:
    """TfIdfVectorizer: every n-gram of a row against every one of its length in the pool."""
    x = s.shape(0)
    if not 1 <= len(x) <= 2:
        raise ShapeError(f"n-grams of {x}, expected one or two axes")
    least, most, skips = (
        s.whole(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count")
    )
    starts = s.wholes("ngram_counts")
    pool = s.count("pool_int64s") or s.count("pool_strings")
    indexes = s.wholes("ngram_indexes")
    if not indexes or not 1 <= least <= most <= len(starts) or skips < 0:
        raise ShapeError(f"{least} to {most} items of {len(starts)} lengths in the pool")
    width = max(indexes) + 1
    rows = x[0] if len(x) == 2 else 1
    ends = (*starts[1:], pool)
    found = compared = 0
    for size in range(least, most + 1):
        grams = (ends[size - 1] - starts[size - 1]) // size
        seen = sum_of_windows(x[-1], size, skips)
        found += seen
        compared += seen * grams * size
    shape = (*x[:-1], width)
    scaled = rows * width if s.text("mode", "TF") != "TF" else 0
    told = at.CustomCost(
        (shape,), ("fp32",), add=rows * found, comp=rows * compared, mul=scaled,
        estimate="a bound: every n-gram compared with all of its length",
    )  # fmt: skip
    weights = []
    if s.count("weights"):
        from layerscope.formats.onnx.operators.trees import told_param

        weights = [told_param(s, "weights", (s.count("weights"),), "statistic")]
    s.counted((s.given(0),), told, params=weights)


def sum_of_windows(length: int, size: int, skips: int) -> int:
    """How many n-grams a row has, with every number of items skipped from none to `skips`.

    With k skipped between two items, n of them span (n - 1)(k + 1) + 1 items.
    """
    if size == 1:
        return length
    count = min(skips, (length - 1) // (size - 1) - 1) + 1  # further apart they do not fit
    if count < 1:
        return 0
    return count * length - (size - 1) * count * (count + 1) // 2


def vocabulary(s: Site) -> None:
    """DictVectorizer: a map as a row of its vocabulary."""
    count = s.count("string_vocabulary") or s.count("int64_vocabulary")
    if not count:
        raise ShapeError("a DictVectorizer without a vocabulary")
    s.counted((s.given(0),), at.CustomCost(((1, count),), (s.dtype(0),)), shapes=False)


def cast_map(s: Site) -> None:
    """CastMap: the values of a map side by side; sparse ones have a width that is told."""
    if s.text("map_form", "DENSE") != "SPARSE":
        raise NeedsValue("the number of entries of the map is data")
    dtype = {"TO_FLOAT": "fp32", "TO_INT64": "int64", "TO_STRING": "string"}
    kind = dtype.get(s.text("cast_to", "TO_FLOAT"), "fp32")
    s.counted(
        (s.given(0),), at.CustomCost(((1, s.whole("max_map", 1)),), (kind,)), shapes=False
    )  # fmt: skip


def decode(s: Site) -> None:
    """ImageDecoder: the image's size stands in the encoded bytes."""
    raise NeedsValue("height and width of the image are in its encoded bytes")


def tokenize(s: Site) -> None:
    """Tokenizer of com.microsoft."""
    raise NeedsValue("the number of tokens of the longest string is data")


def hash_(s: Site) -> None:
    """MurmurHash3: 32 bits of each element."""
    dtype = "uint32" if s.whole("positive", 1) else "int32"
    if s.dtype(0) == "string":
        raise NeedsValue("the length of the strings that are hashed is data")
    # a word: two products, three rotations and shifts, sums; and the same to finish
    count = elements(s.shape(0)) * (2 if s.dtype(0) in ("int64", "uint64", "fp64") else 1)
    told = at.CustomCost((s.shape(0),), (dtype,), mul=5 * count, add=2 * count, comp=8 * count,
                      estimate="rounds of the hash by words of 32 bits")  # fmt: skip
    s.counted((s.given(0),), told)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "StringConcat"): concat,
    ("", "StringSplit"): split,
    ("", "StringNormalizer"): normalize,
    ("", "RegexFullMatch"): match,
    ("", "TfIdfVectorizer"): n_grams,
    ("", "ImageDecoder"): decode,
    ("ai.onnx.ml", "DictVectorizer"): vocabulary,
    ("ai.onnx.ml", "CastMap"): cast_map,
    ("com.microsoft", "Tokenizer"): tokenize,
    ("com.microsoft", "MurmurHash3"): hash_,
}
