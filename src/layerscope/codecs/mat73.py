"""Reads MAT-files of version 7.3 (HDF5) with h5py. Of large arrays only the shape is kept.

The HDF5 library hangs or crashes on some broken files, so it runs in a child process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from layerscope.codecs.confined import confined
from layerscope.codecs.matlab import (
    BYTES_PER_VALUE,
    MOST_NUMBERS,
    MOST_TEXT,
    NUMBERS_PER_VALUE,
    MatArray,
    MatOpaque,
    MatValue,
)
from layerscope.errors import FormatError, MissingExtra
from layerscope.limits import CHILD_SECONDS, MATLAB_DEPTH, MATLAB_VALUES

if TYPE_CHECKING:
    from h5py import Dataset, File, Group, Reference

SIGNATURE = b"\x89HDF\r\n\x1a\n"
BYTES_PER_SECOND = 1 << 22  # a large file may take a second of CPU time for so many bytes
MOST_CHUNK = 1 << 26  # bytes of a chunk, which HDF5 decompresses as a whole

# A value as msgpack has it: ["array", shape, numbers], ["other", kind], ["list", …], a dict, a str.
PackedValue = str | list[Any] | dict[str, Any]
Elements = list[Any]  # of a dataset: numbers or references


def is_hdf5(head: bytes) -> bool:
    """Whether a file has the HDF5 signature at its start or behind MATLAB's header."""
    return any(head[at : at + len(SIGNATURE)] == SIGNATURE for at in (0, 512, 1024, 2048))


def load(path: str, ignored: frozenset[str] = frozenset()) -> dict[str, MatValue]:
    """The variables of a file by name; struct fields named in `ignored` are skipped."""
    if find_spec("h5py") is None:
        raise MissingExtra("a MatConvNet file of version 7.3", "mat")
    try:
        seconds = CHILD_SECONDS.at_least(os.path.getsize(path) // BYTES_PER_SECOND)
        error, found = msgspec.msgpack.decode(
            confined(write_variables, [path, *sorted(ignored)], seconds)
        )
        if error:
            raise FormatError(f"no readable HDF5: {error}")
    except (FormatError, msgspec.DecodeError, ValueError, OSError) as error:
        raise FormatError(f"{path}: {error}") from None
    return {name: _unpacked(value) for name, value in found.items()}


def write_variables(path: str, *ignored: str) -> None:
    """Write an error message, if any, and the variables to standard output, as msgpack."""
    message, found = "", {}
    try:
        found = {
            name: _packed(value) for name, value in read_here(path, frozenset(ignored)).items()
        }
    except Exception as error:  # on a broken file h5py may raise almost any exception
        message = " ".join(str(error).split()) or type(error).__name__
    sys.stdout.buffer.write(msgspec.msgpack.encode((message, found)))


def read_here(path: str, ignored: frozenset[str] = frozenset()) -> dict[str, MatValue]:
    """The same as `load` in this process, which a broken file may crash."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        return _Mat73Reader(h5py, file, ignored).fields(file, 0)


def _packed(value: MatValue) -> PackedValue:
    """A value as strings, numbers, lists and dicts, which msgpack has."""
    if isinstance(value, MatArray):
        return ["array", value.shape, value.numbers]
    if isinstance(value, MatOpaque):
        return ["other", value.kind]
    if isinstance(value, list):
        return ["list", *map(_packed, value)]
    return {name: _packed(v) for name, v in value.items()} if isinstance(value, dict) else value


def _unpacked(value: PackedValue) -> MatValue:
    if isinstance(value, dict):
        return {name: _unpacked(each) for name, each in value.items()}
    if isinstance(value, str):
        return value
    kind, *rest = value
    if kind == "array":
        return MatArray(tuple(rest[0]), None if rest[1] is None else tuple(rest[1]))
    return MatOpaque(rest[0]) if kind == "other" else [_unpacked(each) for each in rest]


class _Mat73Reader:
    """Reads one file; counts values against the limit.

    A large network has ten thousand values, so each is opened once, and attributes and storage are
    read with h5py's low-level calls, which are faster.
    """

    def __init__(self, h5py: ModuleType, file: File, ignored: frozenset[str]) -> None:
        self.h5py, self.file, self.ignored = h5py, file, ignored
        self.most = MATLAB_VALUES.at_least(file.id.get_filesize() // BYTES_PER_VALUE)
        self.values = 0

    def fields(self, group: Group, nested: int) -> dict[str, MatValue]:
        """The members of a group."""
        return {name: self.value(item, nested + 1) for name, item in self.members(group)}

    def members(self, group: Group) -> Iterator[tuple[str, Dataset | Group]]:
        """The members of a group that are not ignored; only hard links are followed."""
        links, hard = group.id.links, self.h5py.h5l.TYPE_HARD
        names: dict[bytes, None] = {}

        def add(name: bytes) -> None:
            if name in names:  # links of a broken file may form a cycle
                raise FormatError(f"{group.name}: the same name twice in one group")
            names[name] = None

        links.iterate(add, order=self.h5py.h5.ITER_NATIVE)
        for own in names:
            name = own.decode("utf-8", "replace")
            if name in self.ignored or name.startswith("#"):
                continue
            if links.get_info(own).type == hard:
                yield name, group[own]

    def spend(self, count: int) -> None:
        """Count values; raise where there are too many for the size of the file."""
        self.values += count
        if self.values > self.most.most:
            raise FormatError(self.most.refusal(self.values))

    def has(self, item: Dataset | Group, attribute: bytes) -> bool:
        return bool(self.h5py.h5a.exists(item.id, attribute))

    def value(self, item: Dataset | Group, nested: int) -> MatValue:
        """The value of a group, which is a struct or struct array, or of a dataset."""
        self.spend(1)
        if nested > MATLAB_DEPTH.most:
            raise FormatError(MATLAB_DEPTH.refusal(nested))
        kind = _text(item.attrs["MATLAB_class"]) if self.has(item, b"MATLAB_class") else ""
        if kind == "function_handle" or self.has(item, b"MATLAB_object_decode"):
            return MatOpaque("function" if kind == "function_handle" else "object")
        if isinstance(item, self.h5py.Group):
            return self.struct(item, nested)
        if not isinstance(item, self.h5py.Dataset):
            return MatOpaque("value")
        if self.has(item, b"MATLAB_empty") and item.attrs["MATLAB_empty"]:
            return self.empty(item, kind)
        if self.refers(item):
            return [self.target(ref, nested) for ref in self.read(item, self.most.most) or ()]
        array = MatArray(tuple(reversed(item.shape or ())))
        if kind == "char":
            return self.text(item, array.shape)
        few = array.elements <= MOST_NUMBERS and item.dtype.kind in "fiub"
        numbers = self.read(item, MOST_NUMBERS) if few else None
        return array if numbers is None else MatArray(array.shape, tuple(numbers))

    def struct(self, group: Group, nested: int) -> MatValue:
        """A struct; or a struct array, where each field is a dataset of references and no cell."""
        members = dict(self.members(group))
        for item in members.values():
            several = isinstance(item, self.h5py.Dataset) and self.refers(item)
            if not several or self.has(item, b"MATLAB_class"):
                break
        else:
            if members:
                return self.structs(group, members, nested)
        return {name: self.value(item, nested + 1) for name, item in members.items()}

    def structs(self, group: Group, members: dict[str, Dataset], nested: int) -> MatValue:
        columns = {name: self.read(item, self.most.most) or [] for name, item in members.items()}
        count = max(map(len, columns.values()))
        if any(len(column) != count for column in columns.values()):
            raise FormatError(f"{group.name}: fields of different lengths in an array of structs")
        return [
            {name: self.target(column[n], nested) for name, column in columns.items()}
            for n in range(count)
        ]

    def target(self, ref: Reference, nested: int) -> MatValue:
        return self.value(self.file[ref], nested + 1) if ref else MatOpaque("nothing")

    def refers(self, item: Dataset) -> bool:
        return self.h5py.check_ref_dtype(item.dtype) is self.h5py.Reference

    def read(self, item: Dataset, most: int) -> Elements | None:
        """The elements of a small dataset in MATLAB's order; None if it is in another file."""
        size = item.size or 0
        if size > most:
            raise FormatError(f"{item.name}: {size} values, expected at most {most}")
        stored = item.id.get_create_plist()
        layout, h5d = stored.get_layout(), self.h5py.h5d
        at_once = MatArray(stored.get_chunk()).elements if layout == h5d.CHUNKED else size
        away = layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and stored.get_external_count())
        if away or at_once * item.dtype.itemsize > MOST_CHUNK:
            return None
        self.spend(1 + size // NUMBERS_PER_VALUE)
        values: Elements = item[()].ravel().tolist() if size else []
        return values

    def text(self, item: Dataset, shape: tuple[int, ...]) -> MatValue:
        short = item.dtype.kind == "u" and (item.size or 0) <= MOST_TEXT and shape[:1] != (0,)
        codes = self.read(item, MOST_TEXT) if short and max(shape[:1], default=1) == 1 else None
        if codes is None:
            return MatOpaque("text")
        pairs = b"".join([min(code, 0xFFFF).to_bytes(2, "little") for code in codes])
        return pairs.decode("utf-16-le", "replace")

    def empty(self, item: Dataset, kind: str) -> MatValue:
        """An empty value: the elements of the dataset are its sizes."""
        if kind in ("cell", "struct", "char"):
            return "" if kind == "char" else []
        sizes = self.read(item, MOST_NUMBERS) if item.dtype.kind in "iu" else None
        return MatArray(tuple(sizes or (0, 0)), ())


def _text(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
