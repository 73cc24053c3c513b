"""Operators on strings, n-grams and maps, if the output shape does not depend on the data."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import broadcast

NO_NUMBERS = "work on strings, which is no arithmetic, is not counted"


def concat(node: OnnxNode) -> None:
    """StringConcat."""
    shape = broadcast((node.shape("X"), node.shape("Y")))
    node.emit_custom(
        (node.input("X"), node.input("Y")), at.CustomCost((shape,), ("string",)), note=NO_NUMBERS
    )


def match(node: OnnxNode) -> None:
    """RegexFullMatch."""
    node.emit_custom((node.input(),), at.CustomCost((node.shape(),), ("bool",)), note=NO_NUMBERS)


def split(node: OnnxNode) -> None:
    """StringSplit: as many columns as the longest string has parts."""
    raise NeedsValue("the number of parts of the longest string is run-time data")


def normalize(node: OnnxNode) -> None:
    """StringNormalizer; with stopwords, the number of strings left is run-time data."""
    if node.attr_length("stopwords"):
        raise NeedsValue("how many strings are among the stopwords is run-time data")
    node.emit_custom((node.input(),), at.CustomCost((node.shape(),), ("string",)), note=NO_NUMBERS)


def n_grams(node: OnnxNode) -> None:
    """TfIdfVectorizer: every n-gram of a row against every one of its length in the pool."""
    x = node.shape()
    if not 1 <= len(x) <= 2:
        raise ShapeError(f"n-grams of {x}, expected one or two axes")
    least, most, skips = (
        node.int_attr(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count")
    )
    starts = node.ints_attr("ngram_counts")
    pool = node.attr_length("pool_int64s") or node.attr_length("pool_strings")
    indexes = node.ints_attr("ngram_indexes")
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
    scaled = rows * width if node.str_attr("mode", "TF") != "TF" else 0
    attrs = at.CustomCost(
        (shape,), ("fp32",), add=rows * found, comp=rows * compared, mul=scaled,
        estimate="a bound: every n-gram compared with all of its length",
    )  # fmt: skip
    weights = []
    if node.attr_length("weights"):
        from layerscope.formats.onnx.converters.ml import attr_param

        weights = [attr_param(node, "weights", (node.attr_length("weights"),), "statistic")]
    node.emit_custom((node.input(),), attrs, params=weights)


def sum_of_windows(length: int, size: int, skips: int) -> int:
    """Number of n-grams in a row, with every number of items skipped from 0 to `skips`.

    With k skipped between two items, n of them span (n - 1)(k + 1) + 1 items.
    """
    if size == 1:
        return length
    count = min(skips, (length - 1) // (size - 1) - 1) + 1  # further apart they do not fit
    if count < 1:
        return 0
    return count * length - (size - 1) * count * (count + 1) // 2


def vocabulary(node: OnnxNode) -> None:
    """DictVectorizer: a map as a row of its vocabulary."""
    count = node.attr_length("string_vocabulary") or node.attr_length("int64_vocabulary")
    if not count:
        raise ShapeError("a DictVectorizer without a vocabulary")
    node.emit_custom((node.input(),), at.CustomCost(((1, count),), (node.dtype(),)), shapes=False)


def cast_map(node: OnnxNode) -> None:
    """CastMap: the values of a map in a row, whose width is `max_map` if the map is sparse."""
    if node.str_attr("map_form", "DENSE") != "SPARSE":
        raise NeedsValue("the number of entries of the map is run-time data")
    dtype = {"TO_FLOAT": "fp32", "TO_INT64": "int64", "TO_STRING": "string"}
    kind = dtype.get(node.str_attr("cast_to", "TO_FLOAT"), "fp32")
    node.emit_custom(
        (node.input(),), at.CustomCost(((1, node.int_attr("max_map", 1)),), (kind,)), shapes=False
    )  # fmt: skip


def decode(node: OnnxNode) -> None:
    """ImageDecoder: the size of the image is in the encoded bytes."""
    raise NeedsValue("height and width of the image are in its encoded bytes")


def tokenize(node: OnnxNode) -> None:
    """Tokenizer of com.microsoft."""
    raise NeedsValue("the number of tokens of the longest string is run-time data")


def hash_(node: OnnxNode) -> None:
    """MurmurHash3: 32 bits of each element."""
    dtype = "uint32" if node.int_attr("positive", 1) else "int32"
    if node.dtype() == "string":
        raise NeedsValue("the length of the strings that are hashed is run-time data")
    # for a word of 32 bits: two products, three rotations and shifts, sums; as much at the end
    count = elements(node.shape()) * (2 if node.dtype() in ("int64", "uint64", "fp64") else 1)
    attrs = at.CustomCost((node.shape(),), (dtype,), mul=5 * count, add=2 * count, comp=8 * count,
                      estimate="rounds of the hash by words of 32 bits")  # fmt: skip
    node.emit_custom((node.input(),), attrs)


OPERATORS: ConverterTable = {
    ("", "StringConcat"): Converter(concat, "X Y"),
    ("", "StringSplit"): Converter(split, "X"),
    ("", "StringNormalizer"): Converter(normalize, "X"),
    ("", "RegexFullMatch"): Converter(match, "X"),
    ("", "TfIdfVectorizer"): Converter(n_grams, "X"),
    ("", "ImageDecoder"): Converter(decode, "encoded_stream"),
    ("ai.onnx.ml", "DictVectorizer"): Converter(vocabulary, "X"),
    ("ai.onnx.ml", "CastMap"): Converter(cast_map, "X"),
    ("com.microsoft", "Tokenizer"): Converter(tokenize, "X"),
    ("com.microsoft", "MurmurHash3"): Converter(hash_, "X"),
}
