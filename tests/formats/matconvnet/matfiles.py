"""MatConvNet's files, written as MATLAB does: version 5 by scipy, version 7.3 by h5py.

A struct is a dict, a cell a list, an array of structs `Structs`, numbers a tuple (a row), `Zeros`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np  # noqa: TID251
import scipy.io


class Zeros(NamedTuple):
    """An array that is only known by its shape."""

    shape: tuple[int, ...]


class Structs(NamedTuple):
    """An array of structs, all of the same fields."""

    each: list[dict[str, Any]]


def write(path: Path, variables: dict[str, Any], version: str = "7") -> str:
    """Write a file of version 5 (not compressed), 7 or 7.3; return its path."""
    if version == "7.3":
        _write_hdf5(path, variables)
    else:
        told = {name: _value(value) for name, value in variables.items()}
        scipy.io.savemat(
            path, told, do_compression=version == "7", oned_as="row", long_field_names=True
        )
    return str(path)


def _value(value: Any) -> Any:
    """As scipy takes it: a cell is an array of objects, structs an array of records."""
    if isinstance(value, Zeros):
        return np.zeros(value.shape, dtype="float32", order="F")
    if isinstance(value, Structs):
        names = list(value.each[0]) if value.each else ["name"]
        made = np.empty((1, len(value.each)), dtype=[(name, object) for name in names])
        for n, one in enumerate(value.each):
            for name in names:
                made[name][0, n] = _value(one[name])
        return made
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}
    if isinstance(value, list):
        cell = np.empty((1, len(value)), dtype=object)
        for n, each in enumerate(value):
            cell[0, n] = _value(each)
        return cell
    if isinstance(value, tuple):
        return np.array(value, dtype=float).reshape(1, -1)
    return value


def _write_hdf5(path: Path, variables: dict[str, Any]) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        refs = file.create_group("#refs#")
        refs.attrs["count"] = 0
        for name, value in variables.items():
            _put(file, name, value, refs)
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(124)
    with path.open("r+b") as block:
        block.write(head + b"\x00\x02IM")


def _kind(item: Any, name: str) -> None:
    item.attrs["MATLAB_class"] = np.bytes_(name)


def _put(group: Any, name: str, value: Any, refs: Any) -> None:
    if isinstance(value, dict):
        _kind(group.create_group(name), "struct")
        for field, each in value.items():
            _put(group[name], field, each, refs)
    elif isinstance(value, Structs) and value.each:
        _kind(group.create_group(name), "struct")
        for field in value.each[0]:
            _refer(group[name], field, [one[field] for one in value.each], refs)
    elif isinstance(value, list) and value:
        _refer(group, name, value, refs)
        _kind(group[name], "cell")
    elif isinstance(value, str) and value:
        codes = list(memoryview(value.encode("utf-16-le")).cast("H"))
        group[name] = np.array(codes, dtype="uint16").reshape(-1, 1)
        group[name].attrs["MATLAB_int_decode"] = np.int32(2)
        _kind(group[name], "char")
    elif isinstance(value, (str, list, Structs)) or value == Zeros((0, 0)):
        group[name] = np.array([0, 0], dtype="uint64")
        group[name].attrs["MATLAB_empty"] = np.uint8(1)
        kinds = {str: "char", list: "cell", Structs: "struct"}
        _kind(group[name], kinds.get(type(value), "single"))
    elif isinstance(value, Zeros):
        shape = _squeezed(value.shape)[::-1]
        group.create_dataset(name, shape, dtype="f4", chunks=True)  # takes no room
        _kind(group[name], "single")
    else:
        row = value if isinstance(value, tuple) else (value,)
        group[name] = np.array(row, dtype=float).reshape(-1, 1)
        _kind(group[name], "double")


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the trailing ones, which MATLAB never stores."""
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _refer(group: Any, name: str, values: list[Any], refs: Any) -> None:
    pointers = np.empty((len(values), 1), dtype=h5py.ref_dtype)
    for n, value in enumerate(values):
        own = f"r{refs.attrs['count']}"
        refs.attrs["count"] += 1
        _put(refs, own, value, refs)
        pointers[n, 0] = refs[own].ref
    group.create_dataset(name, data=pointers, dtype=h5py.ref_dtype)
