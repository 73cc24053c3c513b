"""Changes to files that keep them readable: values of JSON, members of an archive, opcodes.

Each takes the bytes and a change of plain bytes, which it applies to a part of the file.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any

from tests.fuzz.elements import Change, mat5, protobuf
from tests.fuzz.targets import zipped

Mutator = Callable[[bytes, Random, Change], bytes]
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 65, 255, 512, 513, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1,
           2**63, 2**64, -(2**63), 10**30, 10**500, 0.5, -1.5, 1e308, 1e-320, 1e999)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, "", "x", "1", "a/b", "\n", "é" * 40, [], {}, [1], [[]], {"as_int": 3},
)  # fmt: skip
DEEP = b'"lists in lists"'  # stands for the next, which is too deep to be written by json
NESTED = b"[" * 1500 + b"]" * 1500
MOST_SLOTS = 1000  # values of JSON above which no change copies one
MOST_REPEATED = 100  # characters of a value that is repeated many times; more would take gigabytes
TOKEN = re.compile(rb"\w+|\s+|.", re.DOTALL)
TEXTS = (
    b"0", b"1", b"-1", b"2", b"65", b"2147483648", b"9223372036854775807", b"9223372036854775808",
    b"1.5", b".5", b"1e999", b"1e20", b"inf", b"nan", b"0x1F", b"017", b"true", b"''", b'"x"',
    b"\\", b"\\777", b"\\U00110000", b"[", b"[]", b"{}", b"{", b"}", b"=", b":", b"x", b".", b",",
    b"\n", b"#",
)  # fmt: skip


def tokens(data: bytes, source: Random, change: Change) -> bytes:
    """Change, leave out, double or swap numbers, words and marks of a text."""
    parts = TOKEN.findall(data)
    if len(parts) < 2 or source.random() < 0.3:
        return change(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        n = source.randrange(len(parts))
        action = source.randrange(7)
        if action == 0:
            parts[n] = b""
        elif action == 6:
            parts[n : n + source.randrange(1, 24)] = [source.choice(TEXTS)]
        elif action == 1:
            parts[n] *= source.choice((2, 3, 30, 300))
        elif action == 2:
            parts[n] = source.choice(parts)
        elif action == 3:
            parts[n] = change(parts[n])
        else:
            with_before = action == 4 and parts[n].strip()
            parts[n] = (parts[n] if with_before else b"") + source.choice(TEXTS)
    return b"".join(parts)


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
        return json.dumps(root[0]).encode().replace(DEEP, NESTED) if root else b""
    except (ValueError, RecursionError):
        return change(data)


def _change_value(root: list[Any], source: Random) -> None:
    """One change somewhere in a value: another value, one less, one more, another key."""
    slots = _slots(root)
    if not slots:
        return
    where, key = source.choice(slots)
    # A copy may double the value, so a large one only shrinks or keeps its size.
    action = source.randrange(10 if len(slots) < MOST_SLOTS else 5)
    if action < 3:
        where[key] = source.choice(NUMBERS if source.random() < 0.6 else OTHERS)
    elif action == 3 and isinstance(where[key], int):
        where[key] += source.choice((-1, 1))
    elif action == 3 and isinstance(where[key], str):
        where[key] = _changed_text(where[key], source)
    elif action == 4:
        del where[key]
    elif action == 5:
        outer, inner = source.choice(slots)
        where[key] = deepcopy(outer[inner])
    elif action == 6 and isinstance(where, list):
        many = 100 if len(repr(where[key])) < MOST_REPEATED else 2
        where[key:key] = deepcopy(where[key : key + 1]) * source.choice((1, 1, 2, many))
    elif action == 6:
        where[f"{key}{source.randrange(10)}"] = deepcopy(where[key])
    elif action == 7 and isinstance(where, dict):
        _, other = source.choice(slots)
        where[str(other)] = where.pop(key)
    elif action == 8:
        deep = where[key]
        for _ in range(source.choice((1, 2, 70))):
            deep = [deep] if source.random() < 0.5 else {"x": deep}
        where[key] = deep if source.random() < 0.9 else DEEP.decode().strip('"')
    else:  # as a value beside it
        keys = list(where) if isinstance(where, dict) else range(len(where))
        where[key] = deepcopy(where[source.choice(keys)])


def _changed_text(text: str, source: Random) -> str:
    at = source.randrange(len(text) + 1)
    more = text if len(text) < MOST_REPEATED else ""
    return text[:at] + source.choice(("", ".", "/", "\0", more, "9" * 20)) + text[at + 1 :]


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
    """Change the header, and tell its length; or cut off data."""
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8 or source.random() < 0.1:
        return change(data)
    header, stored = data[8 : 8 + size], data[8 + size :]
    if source.random() < 0.15:
        stored = stored[: source.randrange(len(stored) + 1)]
    else:
        header = json_value(header, source, change)
    return struct.pack("<Q", len(header)) + header + stored


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
    return zipped(members, source.choice(COMPRESSIONS))


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


COMPRESSIONS = (*[zipfile.ZIP_STORED] * 6, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
MUTATORS: dict[str, Mutator] = {
    "prototxt": tokens, "numbers": tokens, "budget": tokens, "times": tokens, "mat5": mat5,
    "document": tokens, "audit": tokens,
    "onnx": protobuf, "protobuf": protobuf, "safetensors": safetensors, "pickle": pickle,
    "zip": archive, "pt2": json_lines, "run_json": json_value, "hf_config": json_value,
}  # fmt: skip
