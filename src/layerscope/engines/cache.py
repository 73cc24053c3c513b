"""Files of cached measurements for this user, one per kind and processor."""

from __future__ import annotations

import os
import re
import sys
from hashlib import sha256
from typing import TypeVar

import msgspec

from layerscope.errors import InputError
from layerscope.interrupts import whole_files
from layerscope.report.quantities import check_stored

T = TypeVar("T")

CACHE_BYTES = 1 << 26  # of a cached file
remarks: dict[str, str] = {}  # path -> why it was ignored or not written


def folder() -> str:
    """The system's cache folder of this user, or LAYERSCOPE_CACHE."""
    chosen = os.environ.get("LAYERSCOPE_CACHE")
    if chosen:
        return chosen
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/layerscope")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA", os.path.expanduser("~")), "layerscope")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):  # this user has no home folder: nothing is cached
        base = os.devnull
    return os.path.join(base, "layerscope")


def path_of(kind: str, identity: str) -> str:
    """Path of the file of that kind for a processor."""
    word = re.sub("[^a-z0-9]+", "-", identity.lower()).strip("-")[:40]
    digest = sha256(identity.encode()).hexdigest()[:10]
    return os.path.join(folder(), f"{kind}-{word}-{digest}.json")


def load(kind: str, identity: str, type: type[T]) -> T | None:
    """The cached value; None if there is none, or if it is damaged, which leaves a remark."""
    path = path_of(kind, identity)
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            data = file.read(CACHE_BYTES + 1)
        if len(data) > CACHE_BYTES:
            raise ValueError(f"more than CACHE_BYTES = {CACHE_BYTES:,} bytes")
        found = msgspec.json.decode(data, type=type)
        check_stored(msgspec.to_builtins(found), path)
        return found
    except (OSError, ValueError, RecursionError, InputError) as error:  # of msgspec: ValueErrors
        forget(kind, identity, str(error) or "nested too deeply")
        return None


def forget(kind: str, identity: str, why: str) -> None:
    """Add the remark that a cached file is ignored."""
    remarks[path_of(kind, identity)] = f"ignored, it is of another version or damaged: {why}"


def keep(kind: str, identity: str, value: object) -> str | None:
    """Cache a value and return its path; None if it cannot be written, which leaves a remark."""
    path = path_of(kind, identity)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_files(path) as (file,):
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=1))
    except OSError as error:
        remarks[path] = f"not kept for the next time: {error.strerror or error}"
        return None
    return path


def take_remarks() -> list[str]:
    """Remarks on files that were ignored or not written; each is returned once."""
    found = [f"{path}: {remark}" for path, remark in remarks.items()]
    remarks.clear()
    return found
