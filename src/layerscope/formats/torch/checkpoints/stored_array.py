"""Arrays stored in a file: checks of names, shapes and byte ranges, the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.graph.types import Shape, storage_bytes
from layerscope.limits import (
    ARRAY_ELEMENTS,
    ARRAY_RANK,
    MOST_SIZE,
    NAME_CHARACTERS,
    NAME_DEPTH,
    plain,
)

SHOWN = 80  # characters of a name in an error


class StoredArray(Struct, frozen=True, gc=False):
    """One array of a file; arrays that share their elements have the same `storage`."""

    name: str
    shape: Shape
    dtype: str
    storage: str = ""


class ByteSpan(Struct, frozen=True, gc=False):
    """Bytes of a file that belong to one array: `begin` included, `end` excluded."""

    begin: int
    end: int
    name: str


def short(name: str) -> str:
    """A name as errors print it: shortened, and on one line."""
    text = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
    return text if text.isprintable() else ascii(text)


def check_name(path: str, name: str) -> None:
    """Raise for a name that is too long, or nested too deeply."""
    if len(name) > NAME_CHARACTERS.most:
        NAME_CHARACTERS.check(len(name), f"{path}: {short(name)}")
    if name.count(".") >= NAME_DEPTH.most:
        NAME_DEPTH.check(name.count(".") + 1, f"{path}: {short(name)}")


def check_sizes(where: str, sizes: Sequence[object], what: str = "size") -> Shape:
    """Check that every size is a whole number from 0 to 2^63 - 1, and return the shape."""
    if len(sizes) > ARRAY_RANK.most:
        ARRAY_RANK.check(len(sizes), where)
    for size in sizes:
        if type(size) is not int or not 0 <= size <= MOST_SIZE:
            raise FormatError(
                f"{where}: a {what} of {_text(size)}, expected a whole number from 0 on"
            )
    return tuple(sizes)  # type: ignore[arg-type]


def check_elements(where: str, shape: Shape) -> int:
    """Number of elements of a shape whose sizes have been checked."""
    if len(shape) > ARRAY_RANK.most:
        ARRAY_RANK.check(len(shape), where)
    elements = prod(shape)
    if elements > ARRAY_ELEMENTS.most:
        ARRAY_ELEMENTS.check(elements, where)
    return elements


def array_bytes(where: str, shape: Shape, dtype: str) -> int:
    """Bytes of an array whose sizes have been checked."""
    return storage_bytes(check_elements(where, shape), dtype)


def check_spans(path: str, spans: Iterable[ByteSpan], size: int) -> None:
    """Raise unless all spans lie within `size` bytes of data and no two overlap."""
    before = ByteSpan(0, 0, "")
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        if not 0 <= span.begin <= span.end <= size:
            raise FormatError(
                f"{path}: {short(span.name)}: bytes {span.begin:,} to {span.end:,}, expected them "
                f"within the {size:,} bytes of data; is the file cut short?"
            )
        if span.begin < before.end and span.end > span.begin:
            raise FormatError(
                f"{path}: {short(span.name)}: its bytes from {span.begin:,} on belong to "
                f"{short(before.name)} too"
            )
        if span.end > before.end:
            before = span


def _text(size: object) -> str:
    if type(size) is int:
        return plain(size)
    text = repr(size) if isinstance(size, (bool, float, str)) or size is None else ""
    return text if 0 < len(text) <= SHOWN else f"type {type(size).__name__}"
