from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from layerscope.codecs.protobuf import (
    FIXED32,
    FIXED64,
    LEN,
    RELEASE_BYTES,
    VARINT,
    Wire,
    mapped,
    signed,
)
from layerscope.errors import FormatError
from tests.codecs.wire import field, varint


def walk(data: bytes) -> list[tuple[int, int, int, int]]:
    return list(Wire(data, "x").fields())


def test_fields_by_hand() -> None:
    # field 1 = 150 and field 2 = "testing": the two examples of protobuf's own page on encoding
    data = bytes.fromhex("089601") + bytes.fromhex("120774657374696e67")
    wire = Wire(data, "x")
    assert list(wire.fields()) == [(1, VARINT, 150, 3), (2, LEN, 5, 12)]
    assert wire.text(5, 12) == "testing"


def test_every_wire_type() -> None:
    data = field(1, 7) + b"\x11" + struct.pack("<d", 0.5) + field(3, "a") + field(4, 1.5)
    wire = Wire(data, "x")
    assert [(number, kind) for number, kind, _, _ in wire.fields()] == [
        (1, VARINT),
        (2, FIXED64),
        (3, LEN),
        (4, FIXED32),
    ]
    spans = {number: (start, end) for number, _, start, end in wire.fields()}
    assert wire.floats(*spans[2], wide=True) == (0.5,)
    assert wire.floats(*spans[4]) == (1.5,)


def test_packed_numbers() -> None:
    data = b"".join(map(varint, (0, 1, 127, 128, 2**40, -1)))
    assert [signed(v) for v in Wire(data, "x").varints(0, len(data))] == [
        0, 1, 127, 128, 2**40, -1,
    ]  # fmt: skip


@given(st.integers(0, 2**64 - 1))
def test_varints_are_what_was_written(value: int) -> None:
    data = varint(value)
    assert Wire(data, "x").varint(0, len(data)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_are_what_was_written(value: int) -> None:
    assert signed(Wire(varint(value), "x").varint(0, 10)[0]) == value


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.binary(max_size=40))))
def test_spans_are_what_was_written(fields: list[tuple[int, bytes]]) -> None:
    data = b"".join(field(number, payload) for number, payload in fields)
    assert [(n, data[start:end]) for n, _, start, end in walk(data)] == fields


@pytest.mark.parametrize(
    "data, said",
    [
        (b"\x08", "x: byte 1: a number that is cut off"),
        (b"\x08\x80", "x: byte 1: a number that is cut off"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "x: byte 1: a number of more than 10 bytes"),
        (b"\x08" + b"\xff" * 9 + b"\x02", "x: byte 1: a number of more than 64 bits"),
        (b"\x00\x00", "x: byte 0: field number 0, expected 1 to 536870911"),
        (varint(2**32) + b"\x00", "x: byte 0: field number 536870912"),
        (b"\x0b\x0c", "x: byte 0: a group in field 1, expected wire type 0, 1, 2, 5"),
        (b"\x0e", "x: byte 0: wire type 6 in field 1"),
        (b"\x12\x05abc", "x: byte 0: field 2 of 5 bytes, but only 3 are left"),
        (b"\x12" + varint(2**60), f"x: byte 0: field 2 of {2**60} bytes, but only 0 are left"),
        (b"\x0d\x00", "x: byte 0: field 1 of 4 bytes, but only 1 are left"),
        (b"\x09\x00", "x: byte 0: field 1 of 8 bytes, but only 1 are left"),
    ],
)
def test_errors_say_where(data: bytes, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        walk(data)
    assert str(caught.value).startswith(said)


def test_a_length_may_not_leave_its_message() -> None:
    inner = b"\x0a\x7f" + b"x" * 4  # claims 127 bytes of the 4 it has
    wire = Wire(field(1, inner) + bytes(200), "x")
    _, _, start, end = next(iter(wire.fields()))
    with pytest.raises(FormatError, match="of 127 bytes, but only 4 are left"):
        list(wire.fields(start, end))


def test_floats_are_whole() -> None:
    with pytest.raises(FormatError, match="byte 0: 7 bytes, expected a multiple of 4"):
        Wire(bytes(7), "x").floats(0, 7)


def test_long_texts_and_many_fields_are_refused() -> None:
    wire = Wire(bytes(2 << 20), "x")
    with pytest.raises(FormatError, match="a text of"):
        wire.text(0, wire.size)
    for read in (
        lambda wire: list(wire.fields()),
        lambda wire: list(wire.varints(0, 100)),
        lambda wire: wire.floats(0, 100),
    ):
        with pytest.raises(FormatError, match="no network has"):
            read(Wire(b"\x08\x08" * 50, "x", most=9))


def test_text_that_is_none_is_escaped() -> None:
    assert Wire(b"a\xffb", "x").text(0, 3) == "a\\xffb"


@given(st.binary())
@example(b"\x0a\x00" * 3)
def test_any_bytes_are_fields_or_a_named_error(data: bytes) -> None:
    try:
        found = walk(data)
    except FormatError as error:
        assert str(error).startswith("x: byte ")  # noqa: PT017
    else:
        assert all(end <= len(data) for _, _, _, end in found)


def test_an_empty_file_has_no_fields(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with mapped(str(path)) as wire:
        assert list(wire.fields()) == []


def test_a_missing_file_is_a_named_error(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(FormatError, match="No such file"), mapped(path):
        pass


def test_payloads_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:  # holes: a file of 40 GB that takes no room
        for number in range(1, 11):
            size = 4 << 30
            file.write(varint(number << 3 | 2) + varint(size))
            file.seek(size, 1)
        file.truncate(file.tell())
    tracemalloc.start()
    begin = time.process_time()
    with mapped(str(path)) as wire:
        spans = list(wire.fields())
    took = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [end - start for _, _, start, end in spans] == [4 << 30] * 10
    assert took < 0.2
    assert peak < 100_000


def test_pages_inside_a_message_that_was_passed_over_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload, count = 4 << 20, 16
    path = tmp_path / "large.bin"
    head = b"\x2a" + varint(payload)
    with path.open("wb") as file:
        file.write(b"\x3a" + varint(count * (len(head) + payload)))
        for _ in range(count):
            file.write(head)
            file.seek(payload, 1)
        file.truncate(file.tell())
    released: list[int] = []
    monkeypatch.setattr(Wire, "_release", _noted(released))
    with mapped(str(path)) as wire:
        ((_, _, start, end),) = wire.fields()
        assert len(list(wire.fields(start, end))) == count
    assert len(released) >= count * payload // RELEASE_BYTES


def _noted(released: list[int]) -> Callable[[Wire, int], None]:
    """A release that is noted."""
    release = Wire._release

    def noted(self: Wire, at: int) -> None:
        released.append(at)
        release(self, at)

    return noted
