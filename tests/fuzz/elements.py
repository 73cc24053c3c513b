"""Changes to files of nested elements, whose lengths follow: MATLAB's and protobuf's."""

from __future__ import annotations

import struct
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from tests.codecs.wire import varint
from tests.fuzz.targets import MAT_HEADER

Change = Callable[[bytes], bytes]
WORDS = (
    0, 1, 2, 3, 4, 5, 6, 8, 14, 15, 16, 64, 65, 4096, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1,
)  # fmt: skip
LONG = (*WORDS, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2)
MATRIX = 14
Element = list[Any]  # kind, and its bytes or the elements in it


def mat5(data: bytes, source: Random, change: Change) -> bytes:
    """Change an element of a MATLAB file; the lengths of those around it follow."""
    head, body = data[:MAT_HEADER], data[MAT_HEADER:]
    if source.random() < 0.1 or len(head) < MAT_HEADER:
        return change(data)
    order = ">" if head[126:] == b"MI" else "<"
    try:
        tree = _elements(body, order, 0)
        for _ in range(source.choice((1, 1, 2))):
            _change_element(tree, source, change, order)
        return head + _joined(tree, order)
    except (struct.error, ValueError, RecursionError):
        return head + change(body)


def _elements(data: bytes, order: str, depth: int) -> list[Element]:
    found = []
    at = 0
    while at < len(data):
        kind, count = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:
            found.append([kind & 0xFFFF, data[at + 4 : at + 4 + (kind >> 16)]])
            at += 8
            continue
        inner = data[at + 8 : at + 8 + count]
        if len(inner) < count:
            raise ValueError
        nested = kind == MATRIX and depth < 100
        found.append([kind, _elements(inner, order, depth + 1) if nested else inner])
        at += 8 + count + (0 if kind == MATRIX else -count % 8)
    return found


def _joined(elements: list[Element], order: str) -> bytes:
    parts = []
    for kind, inner in elements:
        data = _joined(inner, order) if isinstance(inner, list) else inner
        parts.append(struct.pack(f"{order}II", kind, len(data)) + data)
        parts.append(b"" if kind == MATRIX else bytes(-len(data) % 8))
    return b"".join(parts)


def _change_element(tree: list[Element], source: Random, change: Change, order: str) -> None:
    lists = [tree]
    for each in lists:
        lists += [inner for _, inner in each if isinstance(inner, list)]
    row = source.choice([each for each in lists if each] or [[[MATRIX, []]]])
    n = source.randrange(len(row))
    action = source.randrange(8)
    if action == 0:
        del row[n]
    elif action == 1:
        row[n:n] = deepcopy(row[n : n + 1]) * source.choice((1, 2, 50))
    elif action == 2:
        other = source.choice([each for each in lists if each] or [row])
        row[n] = deepcopy(source.choice(other))
    elif action == 3:
        row[n][0] = source.choice((1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 17, 18, 0))
    elif isinstance(row[n][1], list):
        inner = row[n][1]
        for _ in range(source.choice((1, 80, 250)) if action == 4 else 0):  # cells in cells
            inner = [[6, struct.pack(f"{order}II", 1, 0)], [5, struct.pack(f"{order}ii", 1, 1)],
                     [1, b""], [MATRIX, inner]]  # fmt: skip
        row[n][1] = inner
    elif action < 6 and len(row[n][1]) >= 4:
        data = bytearray(row[n][1])
        at = 4 * source.randrange(len(data) // 4)
        data[at : at + 4] = struct.pack(f"{order}I", source.choice(WORDS))
        row[n][1] = bytes(data)
    else:
        row[n][1] = change(row[n][1])


def protobuf(data: bytes, source: Random, change: Change) -> bytes:
    """Change a field of a message; the lengths of the messages around it follow."""
    if source.random() < 0.2:
        return change(data)
    tree = _fields(data, 0)
    if not tree:
        return change(data)
    for _ in range(source.choice((1, 1, 2, 3))):
        _change_field(tree, source, change)
    return _message(tree)


def _fields(data: bytes, depth: int) -> list[Element] | None:
    """Tag, and number, bytes or fields, of each field; None where the bytes are no message."""
    found: list[Element] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if not 0 < tag >> 3 < 1000 or wire not in (0, 1, 2, 5):
            return None
        if wire == 0:
            value, at = _varint(data, at)
            found.append([tag, value])
            continue
        count = 8 if wire == 1 else 4
        if wire == 2:
            count, at = _varint(data, at)
        if at + count > len(data):
            return None
        inner = data[at : at + count]
        nested = _fields(inner, depth + 1) if wire == 2 and count and depth < 20 else None
        found.append([tag, inner if nested is None else nested])
        at += count
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        at += 1
        shift += 7
        if data[at - 1] < 128:
            break
    return value % (1 << 64), at


def _message(fields: list[Element]) -> bytes:
    parts = []
    for tag, value in fields:
        parts.append(varint(tag))
        if isinstance(value, int):
            parts.append(varint(value))
            continue
        data = _message(value) if isinstance(value, list) else value
        parts.append((varint(len(data)) if tag & 7 == 2 else b"") + data)
    return b"".join(parts)


def _change_field(tree: list[Element], source: Random, change: Change) -> None:
    lists = [tree]
    for each in lists:
        lists += [inner for _, inner in each if isinstance(inner, list)]
    filled = [each for each in lists if each]
    if not filled:
        return
    row = source.choice(filled)
    n = source.randrange(len(row))
    field = row[n]
    action = source.randrange(9)
    if action == 0:
        del row[n]
    elif action == 1:
        row[n:n] = deepcopy(row[n : n + 1]) * source.choice((1, 2, 70))
    elif action == 2:
        row[n] = deepcopy(source.choice(source.choice(filled)))
    elif action == 3:
        row.append(deepcopy(source.choice(source.choice(filled))))
    elif action == 4:
        field[0] = source.choice(source.choice(filled))[0] & ~7 | field[0] & 7
    elif isinstance(field[1], int):
        near = max(0, field[1] + source.choice((-1, 1)))
        field[1] = source.choice(LONG) if action < 7 else near
    elif isinstance(field[1], bytes):
        if field[0] & 7 != 2 and action == 8:  # numbers one by one become packed ones
            field[0] = field[0] & ~7 | 2
        field[1] = change(field[1])
