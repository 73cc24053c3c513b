"""Small files that are kept for this user between calls, by the identity of the processor."""

from __future__ import annotations

import os
import re
import sys
from hashlib import sha256
from typing import TypeVar

import msgspec

T = TypeVar("T")


def folder() -> str:
    """Where the system wants caches of this user; LAYERSCOPE_CACHE is another place."""
    told = os.environ.get("LAYERSCOPE_CACHE")
    if told:
        return told
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/layerscope")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA", os.path.expanduser("~")), "layerscope")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "layerscope")


def path_of(kind: str, identity: str) -> str:
    """The file of that kind for a processor."""
    word = re.sub("[^a-z0-9]+", "-", identity.lower()).strip("-")[:40]
    digest = sha256(identity.encode()).hexdigest()[:10]
    return os.path.join(folder(), f"{kind}-{word}-{digest}.json")


def load(kind: str, identity: str, type: type[T]) -> T | None:
    """What was kept, None if nothing was, or by another version of ours."""
    try:
        with open(path_of(kind, identity), "rb") as file:
            return msgspec.json.decode(file.read(), type=type)
    except (OSError, msgspec.DecodeError):
        return None


def keep(kind: str, identity: str, value: object) -> str | None:
    """Keep a value; the file, or None where none can be written."""
    path = path_of(kind, identity)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        partial = f"{path}.{os.getpid()}.partial"
        with open(partial, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=1))
        os.replace(partial, path)
    except OSError:
        return None
    return path
