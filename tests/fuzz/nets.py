"""Random networks that are nearly right: known layer types with any settings that they have."""

from __future__ import annotations

from random import Random

from layerscope.codecs.schema import CountedArray, Enum, FieldType, Schema
from layerscope.formats.caffe.names import WORDS
from layerscope.formats.caffe.schema import OF_TYPE, SETTINGS
from tests.codecs.wire import blobs, dims, field, layer

SIZES = (0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, -1, -2, 100, 2**31 - 1, 2**31, 2**62, -(2**63))
REALS = (0.0, 1.0, -1.0, 0.5, 1e-5, 1e30, float("inf"), float("nan"))
SHAPES = ((1, 4, 8, 8), (2, 4), (3,), (1, 2, 4, 4, 4), (4, 1, 6), (5, 1, 1, 3), (7, 5), (1, 1))


def settings(source: Random, schema: Schema, depth: int = 0) -> bytes:
    """Some of the fields of a schema, each with anything that it can hold."""
    made = b""
    for number, (_, holds) in schema.fields.items():
        if source.random() < 0.4:
            for _ in range(source.choice((1, 1, 1, 2, 3))):
                made += field(number, value(source, holds, depth))
    return made


def value(source: Random, holds: FieldType, depth: int) -> int | float | bytes:
    if isinstance(holds, Schema):
        return settings(source, holds, depth + 1)
    if isinstance(holds, Enum):
        return source.randrange(len(holds.words) + 1)
    if isinstance(holds, CountedArray) or holds == "text" or not isinstance(holds, str):
        return source.choice((b"", b"x", b"ProposalLayer", b"data"))
    if holds == "float":
        return source.choice(REALS)
    return source.choice((0, 1)) if holds == "bool" else source.choice(SIZES)


def net(seed: int) -> bytes:
    """A .caffemodel of some layers, inputs of some shapes, and here and there an array."""
    source = Random(seed)
    names = {name: (number, holds) for name, (number, _, holds) in SETTINGS.items()}
    known = ["data", "more", "label"]
    made = field(3, *known) + b"".join(field(8, dims(*source.choice(SHAPES))) for _ in known)
    for n in range(source.randrange(1, 6)):
        word = source.choice(WORDS)
        told = names.get(_setting(word))
        own = OF_TYPE.get(word.lower())
        if own is not None:
            told = (200, own[1])
        more = b""
        if told is not None and isinstance(told[1], Schema):
            more = field(told[0], settings(source, told[1]))
        if source.random() < 0.2:
            sizes = [source.choice(SHAPES) for _ in range(source.randrange(4))]
            more += blobs(*sizes)
        bottoms = " ".join(source.choice(known) for _ in range(source.choice((0, 1, 1, 1, 2, 3))))
        tops = " ".join(f"x{n}{letter}" for letter in "ab"[: source.choice((0, 1, 1, 1, 2))])
        made += layer(f"l{n}", word, bottoms, tops, more)
        known += tops.split()
    return made


def _setting(word: str) -> str:
    """The name of a type's settings: InnerProduct has inner_product_param."""
    plain = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word)
    table = {name.replace("_", ""): name for name in SETTINGS}
    usual = {"Deconvolution": "convolution_param", "LSTM": "recurrent_param"}
    return usual.get(word) or table.get(f"{plain}param".replace("_", ""), "convolution_param")
