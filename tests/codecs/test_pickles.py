"""The reader of pickles: values of every protocol, and an end for every cut or changed byte."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from layerscope.codecs import pickles
from layerscope.errors import FormatError

VALUES: tuple[Any, ...] = (
    True, False, 0, 1, 255, 65_536, -5, 2**70, 1.5, None, "text", (), (1,), (1, 2, 3, 4),
    [1, True, [2]], {"a": False, "b": {1: "c"}},
)  # fmt: skip


class Inert:
    """Hooks that import and call nothing."""

    def find_class(self, module: str, name: str) -> Any:
        return f"{module}.{name}"

    def call(self, function: Any, args: Any) -> Any:
        return function

    def build(self, obj: Any, state: Any, /) -> None:
        pass

    def persistent_load(self, pid: Any, /) -> Any:
        return pid


class Counted(bytes):
    """Bytes that can be looked at a limited number of times, so that no loop is endless."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        self.looks += 1
        assert self.looks <= 20 * len(self) + 20, "read again and again"
        return super().__getitem__(key)


def read(data: bytes) -> Any:
    return pickles.load(Counted(data), 0, Inert())[0]


@pytest.mark.parametrize("protocol", range(6))
def test_values_of_every_protocol(protocol: int) -> None:
    for value in VALUES:
        assert read(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(6))
def test_every_cut_and_every_changed_last_byte_ends(protocol: int) -> None:
    for value in VALUES:
        whole = pickle.dumps(value, protocol)
        for end in range(len(whole)):
            with pytest.raises(FormatError):
                read(whole[:end])
            for last in range(256):
                try:
                    read(whole[:end] + bytes([last]))
                except FormatError:
                    continue
