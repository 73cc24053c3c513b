"""Messages from the wire: a schema tells which fields are kept and under which names.

What it does not name is unread, and so is, as in protobuf itself, what has another wire type than
it says. A `closed` schema keeps the place of the first such field of each number, as `field N`. Of
long arrays only the number of elements is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from layerscope.codecs.message import Kind, Message, Value
from layerscope.codecs.protobuf import FIXED32, FIXED64, SPAN, VARINT, Wire, signed

Scalar = Literal["int", "bool", "float", "text", "skip"]
INT: Scalar = "int"
BOOL: Scalar = "bool"
FLOAT: Scalar = "float"
TEXT: Scalar = "text"
SKIP: Scalar = "skip"  # known, and not read

MOST_DEPTH = 100
KEPT = 20  # a field that is kept is worth so many that are skipped


class Array(Struct, frozen=True):
    """Numbers of so many bytes each, which are counted and not read."""

    bytes: int


class Enum(Struct, frozen=True):
    """Words for numbers from 0 on; "" for one that has none."""

    words: tuple[str, ...]


class Schema(Struct, frozen=True):
    """Field number -> its name, and what it holds."""

    fields: Mapping[int, tuple[str, Holds]]
    closed: bool = False  # whether fields that it does not name matter
    scalars: bool = True  # whether they matter too where they are plain numbers


class ByWire(Struct, frozen=True):
    """A number that versions of a format use for different fields, told apart by wire type."""

    fields: Mapping[int, tuple[str, Holds]]


Chosen = Callable[[Wire, int, int], Schema]  # by what is in the message
Holds = Scalar | Array | Enum | Schema | ByWire | Chosen
BYTES, FLOATS, DOUBLES = Array(1), Array(4), Array(8)


def read(wire: Wire, schema: Schema, start: int = 0, end: int | None = None) -> Message:
    """The message in a span, by its schema."""
    return _read(wire, schema, start, wire.size if end is None else end, 0)


def _read(wire: Wire, schema: Schema, start: int, end: int, depth: int) -> Message:
    if depth > MOST_DEPTH:
        raise wire.error(start, f"messages nested deeper than {MOST_DEPTH}")
    message = Message(wire, start)
    counts: dict[str, int] = {}
    for number, kind, value, after in wire.fields(start, end):
        known = schema.fields.get(number)
        if known is not None and isinstance(known[1], ByWire):
            known = known[1].fields.get(kind)
        if known is None or not _fits(known[1], kind):
            if schema.closed and (schema.scalars or kind == SPAN):
                _unnamed(wire, message, number, after - 1 if kind == VARINT else value)
            continue
        name, holds = known
        if holds == SKIP:
            continue
        if isinstance(holds, Array):
            if (after - value) % holds.bytes:
                raise wire.error(value, f"{name} of {after - value} bytes, {holds.bytes} each")
            counts[name] = counts.get(name, 0) + (after - value) // holds.bytes
            continue
        wire.spend(start, KEPT)
        if isinstance(holds, str):
            _scalars(wire, message, name, holds, (kind, value, after))
        elif isinstance(holds, Enum):
            word = holds.words[value] if value < len(holds.words) else ""
            message.put(name, Value("word", word or str(signed(value)), after - 1))
        elif not isinstance(holds, ByWire):
            inner = holds if isinstance(holds, Schema) else holds(wire, value, after)
            message.put(name, _read(wire, inner, value, after, depth + 1))
    for name, count in counts.items():
        message.put(name, Value("number", str(count), start))
    return message


WIRES: Mapping[str, tuple[int, ...]] = {
    "int": (VARINT, SPAN),
    "bool": (VARINT, SPAN),
    "float": (FIXED32, FIXED64, SPAN),
    "text": (SPAN,),
    "skip": (VARINT, FIXED32, FIXED64, SPAN),
}


def _fits(holds: Holds, kind: int) -> bool:
    """Whether a field can have a wire type."""
    if isinstance(holds, str):
        return kind in WIRES[holds]
    if isinstance(holds, Enum):
        return kind == VARINT
    return kind != VARINT if isinstance(holds, Array) else kind == SPAN


def _unnamed(wire: Wire, message: Message, number: int, at: int) -> None:
    """Keep where a field that no schema names stands first."""
    name = f"field {number}"
    if name not in message:
        wire.spend(at, KEPT)
        message.put(name, Value("number", "0", at))


def _scalars(
    wire: Wire, message: Message, name: str, holds: Scalar, field: tuple[int, int, int]
) -> None:
    """Keep one value, or every value of a packed field."""
    kind, value, after = field
    at = after - 1 if kind == VARINT else value
    written: tuple[Kind, list[str]] = ("number", [])
    if holds == TEXT and kind == SPAN:
        written = "string", [wire.text(value, after)]
    elif holds == FLOAT and kind in (FIXED32, SPAN):
        written = "number", [_shortest(number) for number in wire.floats(value, after)]
    elif holds == FLOAT and kind == FIXED64:
        written = "number", [repr(wire.floats(value, after, wide=True)[0])]
    elif holds in (INT, BOOL) and kind in (VARINT, SPAN):
        numbers = [value] if kind == VARINT else list(wire.varints(value, after))
        if holds == BOOL:
            written = "word", ["true" if number else "false" for number in numbers]
        else:
            written = "number", [str(signed(number)) for number in numbers]
    wire.spend(at, KEPT * len(written[1]))
    for text in written[1]:
        message.put(name, Value(written[0], text, at))


def _shortest(number: float) -> str:
    """The shortest decimal that is this float32: 0.1, and not 0.10000000149011612."""
    for digits in (6, 7, 8):
        text = f"{number:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == struct.pack("<f", number):
                return text
        except OverflowError:  # rounded up past the largest
            continue
    return f"{number:.9g}"
