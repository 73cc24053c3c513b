"""What an editor marks in a prototxt: fields and types that Caffe does not have, with a fix.

Such a layer is unknown, and no error: a fork of Caffe may have the field. A text that cannot be
read raises as the reader does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice

from layerscope.codecs.message import Message
from layerscope.codecs.prototxt import Text, parse
from layerscope.errors import FormatError, TextSpan
from layerscope.formats.caffe.fields import close_field, unknown_fields, unknown_of_source
from layerscope.formats.caffe.layers import FIELDS_UNCHECKED, LAYERS
from layerscope.formats.caffe.names import WORDS, key
from layerscope.formats.caffe.network import SINKS

MOST_MARKS = 100
# words of an error of shapes, and the fields that have the value
FIELDS_OF = {
    "kernel": ("kernel_size", "kernel_h", "kernel_w"), "groups": ("group",),
    "stride": ("stride", "stride_h", "stride_w"), "axis": ("axis",), "offset": ("offset",),
    "reshape": ("dim",), "sizes": ("slice_point",), "channels": ("num_output",),
}  # fmt: skip


def problems(text: str, name: str) -> list[FormatError]:
    """Fields and types of a prototxt that are unknown, in its order."""
    found = parse(text.encode(), name)
    layers = [*found.messages("layer"), *found.messages("layers")]
    marks = [mark for layer in layers for mark in islice(_of_layer(layer), MOST_MARKS)]
    return sorted(marks[:MOST_MARKS], key=lambda each: each.span or TextSpan(0, 0))


def _of_layer(layer: Message) -> Iterator[FormatError]:
    source = layer.locator
    assert isinstance(source, Text)
    word = layer.text("type")
    kind = key(word)
    has_bottoms = "bottom" in layer
    name = layer.text("name")[:60]
    if word and has_bottoms and kind not in LAYERS and kind not in SINKS:
        near = next(iter(get_close_matches(word[:100], WORDS, n=1, cutoff=0.7)), None)
        meant = f"; did you mean {near}?" if near else ""
        fix = None if near is None else f'"{near}"'
        at = layer.fields["type"][-1].at
        yield source.error(at, f"{name}: no rule for type {word[:60]!r}{meant}", fix)
        return
    if kind in FIELDS_UNCHECKED:
        return
    fields = unknown_fields(layer) if has_bottoms else unknown_of_source(layer)
    for path, value in fields:
        field = path.rpartition(".")[2]
        near = close_field(path)
        meant = f"; did you mean {near}?" if near else ""
        at = source.name_before(value.at, field)
        yield source.error(at, f"{name}: {path[:100]} is no field of Caffe{meant}", near)


def span_of_shape(text: str, name: str, line: int, what: str) -> TextSpan | None:
    """The value that an error of shapes is about, in the layer that begins on a line."""
    found = parse(text.encode(), name)
    words = set(re.findall(r"[a-z]+", what.rpartition(": ")[2]))
    for layer in (*found.messages("layer"), *found.messages("layers")):
        if layer.line != line:
            continue
        source = layer.locator
        assert isinstance(source, Text)
        for word, fields in FIELDS_OF.items():
            at = _value_of(layer, fields) if word in words else None
            if at is not None:
                return source.span(at)
        return source.span(layer.fields["name"][-1].at if "name" in layer else layer.at)
    return None


def _value_of(layer: Message, fields: tuple[str, ...]) -> int | None:
    """The offset of the first of these fields in a layer and its settings."""
    waiting: list[Message] = [layer]
    while waiting:
        message = waiting.pop()
        for name, values in message.fields.items():
            if name in fields:
                return values[0].at
            waiting += [value for value in values if isinstance(value, Message)]
    return None
