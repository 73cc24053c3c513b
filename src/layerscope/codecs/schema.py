"""Decodes protobuf messages by a schema of the fields to keep, with their names and types.

Other fields are skipped, and so are fields of a wire type that the schema does not allow, as in
protobuf itself. A `closed` schema keeps the offset of the first skipped field of each number, as
`field N`. Of arrays only the number of elements is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from layerscope.codecs.message import Kind, Message, Scalar
from layerscope.codecs.protobuf import FIXED32, FIXED64, LEN, VARINT, Wire, signed

ScalarType = Literal["int", "bool", "float", "text", "skip"]
INT: ScalarType = "int"
BOOL: ScalarType = "bool"
FLOAT: ScalarType = "float"
TEXT: ScalarType = "text"
SKIP: ScalarType = "skip"  # a field of the schema whose value is not needed

MOST_DEPTH = 100
KEPT = 20  # cost of a kept field, in skipped fields


class CountedArray(Struct, frozen=True):
    """Numbers of `bytes` bytes each that are counted and not decoded."""

    bytes: int


class Enum(Struct, frozen=True):
    """The words of an enum for the numbers from 0 on; "" for a number without a word."""

    words: tuple[str, ...]


class Schema(Struct, frozen=True):
    """Field number -> name and type of the field."""

    fields: Mapping[int, tuple[str, FieldType]]
    closed: bool = False  # whether skipped fields are noted
    scalars: bool = True  # whether skipped scalars are noted as well


class ByWire(Struct, frozen=True):
    """A field number that versions of a format use for different fields, by wire type."""

    fields: Mapping[int, tuple[str, FieldType]]


SchemaOf = Callable[[Wire, int, int], Schema]  # a schema that depends on the message
FieldType = ScalarType | CountedArray | Enum | Schema | ByWire | SchemaOf
BYTES, FLOATS, DOUBLES = CountedArray(1), CountedArray(4), CountedArray(8)


def read(wire: Wire, schema: Schema, start: int = 0, end: int | None = None) -> Message:
    """Decode the message between two offsets."""
    return _read(wire, schema, start, wire.size if end is None else end, 0)


def _read(wire: Wire, schema: Schema, start: int, end: int, depth: int) -> Message:
    if depth > MOST_DEPTH:
        raise wire.error(start, f"messages nested deeper than {MOST_DEPTH}")
    message = Message(wire, start)
    counts: dict[str, int] = {}
    for number, kind, value, after in wire.fields(start, end):
        field = schema.fields.get(number)
        if field is not None and isinstance(field[1], ByWire):
            field = field[1].fields.get(kind)
        if field is None or not _fits(field[1], kind):
            if schema.closed and (schema.scalars or kind == LEN):
                _note_skipped(wire, message, number, after - 1 if kind == VARINT else value)
            continue
        name, field_type = field
        if field_type == SKIP:
            continue
        if isinstance(field_type, CountedArray):
            if (after - value) % field_type.bytes:
                raise wire.error(value, f"{name} of {after - value} bytes, {field_type.bytes} each")
            counts[name] = counts.get(name, 0) + (after - value) // field_type.bytes
            continue
        wire.spend(start, KEPT)
        if isinstance(field_type, str):
            _scalars(wire, message, name, field_type, (kind, value, after))
        elif isinstance(field_type, Enum):
            word = field_type.words[value] if value < len(field_type.words) else ""
            message.put(name, Scalar("word", word or str(signed(value)), after - 1))
        elif not isinstance(field_type, ByWire):
            inner = field_type if isinstance(field_type, Schema) else field_type(wire, value, after)
            message.put(name, _read(wire, inner, value, after, depth + 1))
    for name, count in counts.items():
        message.put(name, Scalar("number", str(count), start))
    return message


WIRES: Mapping[str, tuple[int, ...]] = {
    "int": (VARINT, LEN),
    "bool": (VARINT, LEN),
    "float": (FIXED32, FIXED64, LEN),
    "text": (LEN,),
    "skip": (VARINT, FIXED32, FIXED64, LEN),
}


def _fits(field_type: FieldType, kind: int) -> bool:
    """Whether a field of a type can have a wire type."""
    if isinstance(field_type, str):
        return kind in WIRES[field_type]
    if isinstance(field_type, Enum):
        return kind == VARINT
    return kind != VARINT if isinstance(field_type, CountedArray) else kind == LEN


def _note_skipped(wire: Wire, message: Message, number: int, at: int) -> None:
    """Keep the offset of the first field of a number that is not in the schema."""
    name = f"field {number}"
    if name not in message:
        wire.spend(at, KEPT)
        message.put(name, Scalar("number", "0", at))


def _scalars(
    wire: Wire, message: Message, name: str, field_type: ScalarType, field: tuple[int, int, int]
) -> None:
    """Keep the value of a scalar field, or all values of a packed one."""
    kind, value, after = field
    at = after - 1 if kind == VARINT else value
    written: tuple[Kind, list[str]] = ("number", [])
    if field_type == TEXT and kind == LEN:
        written = "string", [wire.text(value, after)]
    elif field_type == FLOAT and kind in (FIXED32, LEN):
        written = "number", [_shortest(number) for number in wire.floats(value, after)]
    elif field_type == FLOAT and kind == FIXED64:
        written = "number", [repr(wire.floats(value, after, wide=True)[0])]
    elif field_type in (INT, BOOL) and kind in (VARINT, LEN):
        numbers = [value] if kind == VARINT else list(wire.varints(value, after))
        if field_type == BOOL:
            written = "word", ["true" if number else "false" for number in numbers]
        else:
            written = "number", [str(signed(number)) for number in numbers]
    wire.spend(at, KEPT * len(written[1]))
    for text in written[1]:
        message.put(name, Scalar(written[0], text, at))


def _shortest(number: float) -> str:
    """The shortest decimal of a float32: 0.1, not 0.10000000149011612."""
    for digits in (6, 7, 8):
        text = f"{number:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == struct.pack("<f", number):
                return text
        except OverflowError:  # rounded up beyond the largest float32
            continue
    return f"{number:.9g}"
