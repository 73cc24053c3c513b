"""JSON files by their keys: runs, reports, weight indices, configurations; duplicate keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from layerscope.errors import FormatError, LayerscopeError, UsageError
from layerscope.formats import foreign
from layerscope.formats.sources import check_file, is_copy

JSON_BYTES = 1 << 28  # of a JSON file
Kind = Literal["run", "report", "prediction", "result", "index", "config", "other"]
# Kinds of documents that layerscope writes; those of other results cannot be read back.
WRITTEN: dict[str, Kind] = {
    "run": "run", "layerscope measurement": "run", "report": "report",
    "prediction": "prediction",
    **dict.fromkeys(
        ("comparison", "explanation", "budget", "machine", "fit", "zoo", "audit",
         "page", "generation", "phases"),
        "result",
    ),
}  # fmt: skip
# Keys of documents of other programs and of older versions, the most specific kind first.
KEYS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("run", frozenset({"kind", "runs", "graph"})),
    ("index", frozenset({"weight_map"})),
    ("config", frozenset({"model_type"})),
    ("report", frozenset({"network", "layers", "totals"})),
    ("report", frozenset({"network", "params", "coverage"})),
)


def is_json(head: bytes) -> bool:
    """Whether a file begins like a JSON object."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def kind_of(path: str, head: bytes) -> Kind | None:
    """The kind of the JSON object in a file, by its keys; None for another format."""
    if not is_json(head):
        return None
    try:
        found = _members(path)
    except FormatError:
        if path.lower().endswith(".json"):
            raise
        return None  # a prototxt may begin with a brace as well
    kind = _written_kind(found)
    return kind or next((kind for kind, wanted in KEYS if wanted <= found.keys()), "other")


def _written_kind(found: dict[str, msgspec.Raw]) -> Kind | None:
    """The kind of a document that layerscope wrote, by its members kind and schema."""
    if "kind" not in found or "schema" not in found:
        return None
    try:
        name = msgspec.json.decode(found["kind"], type=str)
        msgspec.json.decode(found["schema"], type=int)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return WRITTEN.get(name)


def _members(path: str) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(contents(path), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise FormatError(f"{path}: {error}; expected JSON") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 at byte {error.start}; expected JSON") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None


def contents(path: str) -> bytes:
    """The bytes of a JSON file, of at most JSON_BYTES."""
    check_file(path)
    try:
        with open(path, "rb") as file:
            data = file.read(JSON_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    if len(data) > JSON_BYTES:
        raise FormatError(f"{path}: more than JSON_BYTES = {JSON_BYTES:,} bytes of JSON")
    return data.removeprefix(b"\xef\xbb\xbf")


def unique_object(where: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    """An `object_pairs_hook` of json.loads that raises FormatError for a duplicate key."""

    def checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise FormatError(f"{where}: duplicate key {key[:80]!r} in a JSON object")
                seen.add(key)
        return found

    return checked


def check_unique_keys(data: bytes, where: str) -> None:
    """Raise FormatError where an object of a JSON text has the same key twice.

    msgspec keeps the last of duplicate keys and has no hook for them. Its decoder and encoder are
    still three times as fast as json.loads with a hook: encoding what was decoded leaves duplicates
    out, so that there are fewer keys than in the text.
    """
    try:
        if b"\\u0022" not in data:  # else a quote may be escaped in two ways: `":` is ambiguous
            keys = msgspec.json.format(data, indent=-1).count(b'":')
            if msgspec.json.encode(msgspec.json.decode(data)).count(b'":') == keys:
                return
        import json

        json.loads(data, object_pairs_hook=unique_object(where), parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: {error}; expected JSON") from None


def refusal(path: str, kind: Kind) -> LayerscopeError:
    """Why a JSON file is not a network, and what to give instead."""
    if kind == "run":
        return UsageError(
            f"{path}: a kept run of `layerscope measure`, which show, compare and plot read; "
            "give the network that was measured"
        )
    if kind == "report":
        return UsageError(
            f"{path}: a report that layerscope wrote, which show, compare and plot read; "
            "give the network that it is of"
        )
    if kind == "prediction":
        return UsageError(
            f"{path}: a prediction that layerscope wrote, which report and compare read; "
            "give the network that it is of"
        )
    if kind == "result":
        return UsageError(
            f"{path}: a result that layerscope wrote, which cannot be read back; give the network"
        )
    if kind == "config":
        give = "its file, hf:config.json" if is_copy(path) else f"hf:{path}"
        return UsageError(f"{path}: the configuration of a transformers model; give {give}")
    line = foreign.of_json(path, {*_members(path)})
    if line is not None:
        return FormatError(line)
    return FormatError(
        f"{path}: JSON that is no network: expected a kept run of `layerscope measure`, "
        "an index with a weight_map, or hf: before the config.json of a model"
    )
