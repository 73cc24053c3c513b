"""Changes to files that keep them readable: of JSON its values, of a zip archive its members.

Each takes the bytes and a change of plain bytes, which it applies to the parts of a file.
"""

from __future__ import annotations

import io
import json
import pickletools
import struct
import zipfile
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any

from tests.fuzz.targets import MAT_HEADER, zipped

Change = Callable[[bytes], bytes]
Mutator = Callable[[bytes, Random, Change], bytes]
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 65, 255, 512, 513, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1,
           2**63, 2**64, -(2**63), 10**30, 10**500, 0.5, -1.5, 1e308, 1e-320, 1e999)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "1",
    "a/b",
    "\n",
    "é" * 40,
    [],
    {},
    [1],
    [[]],
    {"as_int": 3},
)
WORDS = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    14,
    15,
    16,
    64,
    65,
    4096,
    2**16,
    2**20,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
MATRIX = 14


def json_lines(data: bytes, source: Random, change: Change) -> bytes:
    """Change values of the JSON on one line."""
    lines = data.split(b"\n")
    n = source.randrange(len(lines))
    lines[n] = json_value(lines[n], source, change)
    return b"\n".join(lines)


def json_value(data: bytes, source: Random, change: Change) -> bytes:
    """Change values of JSON, or here and there its bytes."""
    if source.random() < 0.2:
        return change(data)
    try:
        root = [json.loads(data)]
        for _ in range(source.choice((1, 1, 1, 2, 4))):
            _change_value(root, source)
        return json.dumps(root[0]).encode() if root else b""
    except (ValueError, RecursionError):
        return change(data)


def _change_value(root: list[Any], source: Random) -> None:
    """One change somewhere in a value: another value, one less, one more, another key."""
    slots = _slots(root)
    if not slots:
        return
    where, key = source.choice(slots)
    action = source.randrange(9)
    if action < 3:
        where[key] = source.choice(NUMBERS if source.random() < 0.6 else OTHERS)
    elif action == 3 and isinstance(where[key], int):
        where[key] += source.choice((-1, 1))
    elif action == 4:
        del where[key]
    elif action == 5:
        outer, inner = source.choice(slots)
        where[key] = deepcopy(outer[inner])
    elif action == 6 and isinstance(where, list):
        where[key:key] = deepcopy(where[key : key + 1]) * source.choice((1, 1, 2, 100))
    elif action == 6:
        _, other = source.choice(slots)
        where[str(other)] = where.pop(key)
    elif action == 7:
        deep = where[key]
        for _ in range(source.choice((1, 2, 200))):
            deep = [deep] if source.random() < 0.5 else {"x": deep}
        where[key] = deep
    elif isinstance(where[key], str):
        text = where[key]
        at = source.randrange(len(text) + 1)
        where[key] = (
            text[:at] + source.choice(("", ".", "/", "\0", text, "9" * 20)) + text[at + 1 :]
        )


def _slots(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every value in a value, as its container and its key."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting and len(found) < 20_000:
        each = waiting.pop()
        keys = each.keys() if isinstance(each, dict) else range(len(each))
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], (dict, list)):
                waiting.append(each[key])
    return found


def safetensors(data: bytes, source: Random, change: Change) -> bytes:
    """Change the header, and tell its length."""
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8 or source.random() < 0.1:
        return change(data)
    header = json_value(data[8 : 8 + size], source, change)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def archive(data: bytes, source: Random, change: Change) -> bytes:
    """Change one member, its name or how it is packed; checksums are those of the new bytes."""
    if source.random() < 0.3:
        return change(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = {info.filename: file.read(info) for info in file.infolist()[:50]}
    except Exception:  # of a broken archive zipfile raises nearly anything
        return change(data)
    if not members:
        return change(data)
    name = source.choice(sorted(members))
    action = source.randrange(6)
    if action == 0:
        del members[name]
    elif action == 1:
        renamed = change(name.encode()).decode("utf-8", "replace").replace("\0", "")
        members[renamed or "x"] = members.pop(name)
    elif name.endswith(".pkl"):
        members[name] = pickle(members[name], source, change)
    elif name.endswith(".json"):
        members[name] = json_value(members[name], source, change)
    else:
        members[name] = change(members[name])
    return zipped(members, packed=source.random() < 0.3)


def pickle(data: bytes, source: Random, change: Change) -> bytes:
    """Change, leave out, double or swap opcodes."""
    if source.random() < 0.2:
        return change(data)
    codes = _opcodes(data)
    if len(codes) < 3:
        return change(data)
    for _ in range(source.choice((1, 1, 2, 3))):
        n, other = source.randrange(len(codes)), source.randrange(len(codes))
        action = source.randrange(5)
        if action == 0:
            codes[n] = change(codes[n])
        elif action == 1:
            codes[n] = b""
        elif action == 2:
            codes[n] *= source.choice((2, 3, 200))
        elif action == 3:
            codes[n] = codes[other]
        else:
            end = min(other, n + 12)
            codes[n:n] = codes[min(n, end) : end]
    return b"".join(codes)


def _opcodes(data: bytes) -> list[bytes]:
    """The bytes of every opcode of the pickles one after the other; the rest as a whole."""
    cuts, at = [0], 0
    try:
        while at < len(data):
            file = io.BytesIO(data)
            file.seek(at)
            for _, _, begin in pickletools.genops(file):
                cuts.append(begin or 0)
            at = file.tell()
    except Exception:  # of broken pickles pickletools raises nearly anything
        pass
    cuts = sorted({*cuts, at if at > cuts[-1] else len(data), len(data)})
    return [data[a:b] for a, b in pairwise(cuts)]


def mat5(data: bytes, source: Random, change: Change) -> bytes:
    """Change an element of a MATLAB file; the lengths of those around it follow."""
    head, body = data[:MAT_HEADER], data[MAT_HEADER:]
    if source.random() < 0.1 or len(head) < MAT_HEADER:
        return change(data)
    order = ">" if head[126:] == b"MI" else "<"
    try:
        tree = _elements(body, order, 0)
    except (struct.error, ValueError):
        return head + change(body)
    for _ in range(source.choice((1, 1, 2))):
        _change_element(tree, source, change, order)
    return head + _joined(tree, order)


Element = list[Any]  # kind, and its bytes or the elements in it


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
        for _ in range(source.choice((1, 80)) if action == 4 else 0):  # cells in cells
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


MUTATORS: dict[str, Mutator] = {
    "mat5": mat5, "safetensors": safetensors, "pickle": pickle, "zip": archive, "pt2": json_lines,
    "run_json": json_value, "hf_config": json_value,
}  # fmt: skip
