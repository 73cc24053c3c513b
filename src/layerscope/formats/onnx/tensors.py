"""Tensors of an ONNX file: shape, dtype and the span of their data; small ones are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from layerscope.codecs.protobuf import LEN, VARINT, Wire, signed
from layerscope.formats.onnx.dtypes import BITS, DTYPES, Number, decode
from layerscope.limits import ARRAY_RANK

MOST_VALUES = 4096  # elements of a constant that is decoded; weights have more
MOST_AXES = ARRAY_RANK.most
Span = tuple[int, int]


class StoredTensor(Struct, frozen=True, gc=False):
    """A tensor in the file: shape, dtype and the span of its data."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: Span | None = None  # of raw bytes
    packed: tuple[int, tuple[tuple[int, int, int], ...]] | None = None  # field number, its chunks
    external: str = ""  # the file that has its data, which is never opened
    at: int = 0
    role: str = ""  # parameter, buffer or constant, from the file's metadata


def pairs(wire: Wire, spans: Iterable[Span]) -> Iterator[tuple[str, str]]:
    """Keys and values of metadata."""
    for start, end in spans:
        key = value = ""
        for number, kind, begin, stop in wire.fields(start, end):
            if number == 1 and kind == LEN:
                key = wire.text(begin, stop)
            elif number == 2 and kind == LEN:
                value = wire.text(begin, stop)
        yield key, value


ROLE = "layerscope.role"


def role_in(wire: Wire, spans: Sequence[Span]) -> str:
    """The role of an array in metadata: parameter, buffer or constant."""
    return next((value for key, value in pairs(wire, spans) if key == ROLE), "")


HEAD = 512  # bytes in which the fields before the data of a tensor are expected


def usual_tensor(wire: Wire, start: int, end: int) -> StoredTensor | None:
    """A tensor of dims, dtype, name and raw data, as nearly all are, by a faster parser.

    None if it has other fields, or its data another size than its shape needs.
    """
    head = wire.data[start : min(end, start + HEAD)]
    dims: list[int] = []
    name, code, at, fields = b"", 0, 0, 0
    span: Span | None = None
    count, size = 1, end - start
    try:
        while at < size:
            tag, value = head[at], head[at + 1]
            at += 2
            if value > 127:
                shift = 7
                while value >> shift:  # the next byte of a varint
                    value += (head[at] - 1) << shift
                    at += 1
                    shift += 7
                if value >> 63:
                    return None
            fields += 1
            if tag == 0x08:
                dims.append(value)
                count *= value
            elif tag == 0x10:
                code = value
            elif tag == 0x42:
                name = head[at : at + value]
                if len(name) < value:
                    return None
                at += value
            elif tag == 0x4A:
                span = (start + at, start + at + value)
                at += value
            else:
                return None
        text = name.decode()
    except (IndexError, UnicodeDecodeError):
        return None
    dtype = DTYPES.get(code, "")
    bits = BITS.get(dtype)
    if at != size or span is None or bits is None or len(dims) > MOST_AXES:
        return None
    if span[1] - span[0] != (count * bits + 7) // 8:
        return None
    wire.left -= fields
    if wire.left < 0:
        wire.spend(start, 0)
    return StoredTensor(text, tuple(dims), dtype, span, None, "", start)


def stored_of(wire: Wire, start: int, end: int) -> StoredTensor:
    """A tensor, without decoding its data; a branch for every field of the message."""
    name, dtype, at = "", "", start
    dims: list[int] = []
    data: Span | None = None
    chunks: list[tuple[int, int, int]] = []
    field, external, outside, role = 0, "", False, ""
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1:
            if kind == VARINT:
                dims.append(signed(begin))
            else:
                dims.extend(map(signed, wire.varints(begin, stop)))
        elif number == 2 and kind == VARINT:
            dtype = DTYPES.get(begin, "")
            if not dtype:
                raise wire.error(start, f"a tensor of type {begin}, which is not supported")
        elif number == 8 and kind == LEN:
            name = wire.text(begin, stop)
        elif number == 9 and kind == LEN:
            data = (begin, stop)
        elif number in (4, 5, 6, 7, 10, 11):
            field = number
            if len(chunks) <= MOST_VALUES:  # written one by one rather than packed
                chunks.append((kind, begin, stop))
        elif number == 13 and kind == LEN:
            for key, value in pairs(wire, [(begin, stop)]):
                external = value if key == "location" else external
        elif number == 14 and kind == VARINT:
            outside = begin == 1
        elif number == 16 and kind == LEN:
            role = role_in(wire, [(begin, stop)]) or role
    if len(dims) > MOST_AXES or (dims and min(dims) < 0):
        raise wire.error(start, f"tensor {name!r} of shape {dims[:8]}, expected sizes from 0 on")
    stored = StoredTensor(
        name,
        tuple(dims),
        dtype,
        data,
        (field, tuple(chunks)) if chunks else None,
        (external or "?") if outside else "",
        at,
        role,
    )
    _check_payload(wire, stored)
    return stored


def _check_payload(wire: Wire, stored: StoredTensor) -> None:
    """Raise if a tensor has another number of bytes than its shape needs."""
    if stored.external:
        return
    count = 1
    for size in stored.shape:
        count *= size
    wrong = ""
    if stored.data is not None and stored.dtype != "string":
        bits = BITS.get(stored.dtype)
        if bits is None:
            raise wire.error(stored.at, f"{_described(stored)} has no type")
        length, needed = stored.data[1] - stored.data[0], (count * bits + 7) // 8
        if length != needed:
            wrong = f" and type {stored.dtype} in {length} bytes, expected {needed}"
    elif stored.packed is None and count:
        wrong = " without any numbers"
    elif stored.packed is not None and len(stored.packed[1]) <= MOST_VALUES:
        most = sum(b - a if kind == LEN else 1 for kind, a, b in stored.packed[1])
        strings = stored.packed[0] == 6
        if count > most * 2 and not strings:  # an element takes at least 4 bits
            wrong = f" in {most} bytes"
    if wrong:
        raise wire.error(stored.at, f"{_described(stored)}{wrong}")


def _described(stored: StoredTensor) -> str:
    return f"tensor {stored.name!r} of shape {list(stored.shape)}"


def sparse_of(wire: Wire, start: int, end: int) -> StoredTensor:
    """The values of a sparse tensor."""
    values: StoredTensor | None = None
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            values = stored_of(wire, begin, stop)
    if values is None:
        raise wire.error(start, "a sparse tensor without values")
    return values


def numbers_of(wire: Wire, stored: StoredTensor) -> list[Number] | None:
    """Elements of a small tensor, row by row; None if it is large or in another file."""
    count = 1
    for size in stored.shape:
        count *= size
    if count > MOST_VALUES or stored.external or stored.dtype == "string":
        return None
    if stored.data is not None:
        return decode(bytes(wire.data[stored.data[0] : stored.data[1]]), stored.dtype, count)
    if stored.packed is None:
        return []
    field, chunks = stored.packed
    values: list[Number] = []
    for kind, start, end in chunks:
        if field in (5, 7, 11):
            values.extend([start] if kind == VARINT else wire.varints(start, end))
        elif field in (4, 10):
            values.extend(wire.floats(start, end, wide=field == 10))
    if field in (5, 7):
        values = [signed(int(value)) for value in values]
    values = values[:count]
    if stored.dtype in ("fp16", "bf16", "fp8", "uint4", "int4", "complex64", "complex128", "fp4"):
        return None  # bit patterns in integers; no shape depends on these dtypes
    if len(values) != count:
        raise wire.error(
            stored.at, f"tensor {stored.name!r} of {count} numbers holds {len(values)}"
        )
    return values
