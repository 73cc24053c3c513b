"""MATLAB's files of version 7.3, which are HDF5: walked by h5py, large arrays never read.

HDF5 loops or crashes on some broken files, so the walk is done in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import msgspec

from layerscope.codecs.confined import confined
from layerscope.codecs.matlab import (
    BYTES_PER_VALUE,
    MOST_NUMBERS,
    MOST_TEXT,
    NUMBERS_PER_VALUE,
    Array,
    Other,
    Value,
)
from layerscope.errors import FormatError, MissingExtra
from layerscope.limits import CHILD_SECONDS, MATLAB_DEPTH, MATLAB_VALUES

SIGNATURE = b"\x89HDF\r\n\x1a\n"
BYTES_PER_SECOND = 1 << 22  # of a large file, for each second of CPU time
MOST_CHUNK = 1 << 26  # bytes that a single read may unpack


def is_hdf5(head: bytes) -> bool:
    """Whether a file begins as HDF5 does, at its start or after a block of MATLAB's own."""
    return any(head[at : at + len(SIGNATURE)] == SIGNATURE for at in (0, 512, 1024, 2048))


def load(path: str, ignored: frozenset[str] = frozenset()) -> dict[str, Value]:
    """The variables of a file by name, without the fields whose names are ignored."""
    if find_spec("h5py") is None:
        raise MissingExtra("a MatConvNet file of version 7.3", "mat")
    try:
        seconds = CHILD_SECONDS.at_least(os.path.getsize(path) // BYTES_PER_SECOND)
        error, found = msgspec.msgpack.decode(confined(answer, [path, *sorted(ignored)], seconds))
        if error:
            raise FormatError(f"no readable HDF5: {error}")
    except (FormatError, msgspec.DecodeError, ValueError, OSError) as error:
        raise FormatError(f"{path}: {error}") from None
    return {name: _unpacked(value) for name, value in found.items()}


def answer(path: str, *ignored: str) -> None:
    """Write what went wrong, if anything, and the variables to the standard output, packed."""
    told, found = "", {}
    try:
        found = {name: _packed(value) for name, value in walk(path, frozenset(ignored)).items()}
    except Exception as error:  # of a broken file h5py may raise nearly anything
        told = " ".join(str(error).split()) or type(error).__name__
    sys.stdout.buffer.write(msgspec.msgpack.encode((told, found)))


def walk(path: str, ignored: frozenset[str] = frozenset()) -> dict[str, Value]:
    """The same as `load` in this process, which a broken file may bring down."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        return _Walk(h5py, file, ignored).fields(file, 0)


def _packed(value: Value) -> Any:
    """A value in texts, numbers, lists and dicts alone."""
    if isinstance(value, Array):
        return ["array", value.shape, value.numbers]
    if isinstance(value, Other):
        return ["other", value.kind]
    if isinstance(value, list):
        return ["list", *map(_packed, value)]
    return {name: _packed(v) for name, v in value.items()} if isinstance(value, dict) else value


def _unpacked(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: _unpacked(each) for name, each in value.items()}
    if isinstance(value, str):
        return value
    kind, *rest = value
    if kind == "array":
        return Array(tuple(rest[0]), None if rest[1] is None else tuple(rest[1]))
    return Other(rest[0]) if kind == "other" else [_unpacked(each) for each in rest]


class _Walk:
    """One walk over a file; counts what it meets, so that no file is without an end.

    A large network has ten thousand values, so each is opened once, and attributes and storage are
    asked for by h5py's quicker low-level calls.
    """

    def __init__(self, h5py: Any, file: Any, ignored: frozenset[str]) -> None:
        self.h5py, self.file, self.ignored = h5py, file, ignored
        self.most = MATLAB_VALUES.at_least(file.id.get_filesize() // BYTES_PER_VALUE)
        self.values = 0

    def fields(self, group: Any, nested: int) -> dict[str, Value]:
        """What a group holds."""
        return {name: self.value(item, nested + 1) for name, item in self.members(group)}

    def members(self, group: Any) -> Iterator[tuple[str, Any]]:
        """Members that are wanted; links out of the file are not followed."""
        links, hard = group.id.links, self.h5py.h5l.TYPE_HARD
        names: dict[bytes, None] = {}

        def meet(name: bytes) -> None:
            if name in names:  # a broken file may lead in a circle
                raise FormatError(f"{group.name}: the same name twice in one group")
            names[name] = None

        links.iterate(meet, order=self.h5py.h5.ITER_NATIVE)
        for own in names:
            name = own.decode("utf-8", "replace")
            if name in self.ignored or name.startswith("#"):
                continue
            if links.get_info(own).type == hard:
                yield name, group[own]

    def spend(self, count: int) -> None:
        """Count values; raise where a file of its size has too many."""
        self.values += count
        if self.values > self.most.most:
            raise FormatError(self.most.refusal(self.values))

    def has(self, item: Any, attribute: bytes) -> bool:
        return bool(self.h5py.h5a.exists(item.id, attribute))

    def value(self, item: Any, nested: int) -> Value:
        """A group is a struct or several, a dataset anything else."""
        self.spend(1)
        if nested > MATLAB_DEPTH.most:
            raise FormatError(MATLAB_DEPTH.refusal(nested))
        kind = _text(item.attrs["MATLAB_class"]) if self.has(item, b"MATLAB_class") else ""
        if kind == "function_handle" or self.has(item, b"MATLAB_object_decode"):
            return Other("function" if kind == "function_handle" else "object")
        if isinstance(item, self.h5py.Group):
            return self.struct(item, nested)
        if not isinstance(item, self.h5py.Dataset):
            return Other("value")
        if self.has(item, b"MATLAB_empty") and item.attrs["MATLAB_empty"]:
            return self.empty(item, kind)
        if self.refers(item):
            return [self.target(ref, nested) for ref in self.read(item, self.most.most) or ()]
        array = Array(tuple(reversed(item.shape or ())))
        if kind == "char":
            return self.text(item, array.shape)
        few = array.elements <= MOST_NUMBERS and item.dtype.kind in "fiub"
        numbers = self.read(item, MOST_NUMBERS) if few else None
        return array if numbers is None else Array(array.shape, tuple(numbers))

    def struct(self, group: Any, nested: int) -> Value:
        """One struct; or several, when each field is a list of references and no cell."""
        members = dict(self.members(group))
        for item in members.values():
            several = isinstance(item, self.h5py.Dataset) and self.refers(item)
            if not several or self.has(item, b"MATLAB_class"):
                break
        else:
            if members:
                return self.structs(group, members, nested)
        return {name: self.value(item, nested + 1) for name, item in members.items()}

    def structs(self, group: Any, members: dict[str, Any], nested: int) -> Value:
        columns = {name: self.read(item, self.most.most) or [] for name, item in members.items()}
        count = max(map(len, columns.values()))
        if any(len(column) != count for column in columns.values()):
            raise FormatError(f"{group.name}: fields of different lengths in an array of structs")
        return [
            {name: self.target(column[n], nested) for name, column in columns.items()}
            for n in range(count)
        ]

    def target(self, ref: Any, nested: int) -> Value:
        return self.value(self.file[ref], nested + 1) if ref else Other("nothing")

    def refers(self, item: Any) -> bool:
        return self.h5py.check_ref_dtype(item.dtype) is self.h5py.Reference

    def read(self, item: Any, most: int) -> list[Any] | None:
        """What a small dataset of this file holds, in MATLAB's order; None if it lies elsewhere."""
        size = item.size or 0
        if size > most:
            raise FormatError(f"{item.name}: {size} values, expected at most {most}")
        stored = item.id.get_create_plist()
        layout, h5d = stored.get_layout(), self.h5py.h5d
        at_once = Array(stored.get_chunk()).elements if layout == h5d.CHUNKED else size
        away = layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and stored.get_external_count())
        if away or at_once * item.dtype.itemsize > MOST_CHUNK:
            return None
        self.spend(1 + size // NUMBERS_PER_VALUE)
        values: list[Any] = item[()].ravel().tolist() if size else []
        return values

    def text(self, item: Any, shape: tuple[int, ...]) -> Value:
        short = item.dtype.kind == "u" and (item.size or 0) <= MOST_TEXT and shape[:1] != (0,)
        codes = self.read(item, MOST_TEXT) if short and max(shape[:1], default=1) == 1 else None
        if codes is None:
            return Other("text")
        pairs = b"".join([min(code, 0xFFFF).to_bytes(2, "little") for code in codes])
        return pairs.decode("utf-16-le", "replace")

    def empty(self, item: Any, kind: str) -> Value:
        """Nothing; the dataset tells the sizes instead."""
        if kind in ("cell", "struct", "char"):
            return "" if kind == "char" else []
        sizes = self.read(item, MOST_NUMBERS) if item.dtype.kind in "iu" else None
        return Array(tuple(sizes or (0, 0)), ())


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
