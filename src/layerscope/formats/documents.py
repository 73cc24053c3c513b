"""JSON files, told apart by their keys: kept runs, reports, indices of weights, configurations."""

from __future__ import annotations

from typing import Literal

import msgspec

from layerscope.errors import FormatError, LayerscopeError, UsageError

Kind = Literal["run", "report", "index", "config", "other"]
# keys that a document of each kind has, the most telling kind first
KEYS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("run", frozenset({"kind", "runs", "graph"})),
    ("index", frozenset({"weight_map"})),
    ("config", frozenset({"model_type"})),
    ("report", frozenset({"network", "layers", "totals"})),
    ("report", frozenset({"network", "params", "coverage"})),
)


def is_json(head: bytes) -> bool:
    """Whether a file begins as a JSON object does."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def kind_of(path: str, head: bytes) -> Kind | None:
    """What the JSON object in a file is, by its keys; None for a file of another format."""
    if not is_json(head):
        return None
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        if not path.lower().endswith(".json"):  # a prototxt may begin with a brace as well
            return None
        raise FormatError(f"{path}: {error}; expected JSON") from None
    return next((kind for kind, keys in KEYS if keys <= found.keys()), "other")


def refusal(path: str, kind: Kind) -> LayerscopeError:
    """Why a JSON file is not a network, and what to give instead."""
    if kind == "run":
        return UsageError(
            f"{path}: a kept run of `layerscope measure`, which only show and plot take; "
            "give the network that was measured"
        )
    if kind == "report":
        return UsageError(
            f"{path}: a report that layerscope wrote, which cannot be read back; give its network"
        )
    if kind == "config":
        return UsageError(f"{path}: the configuration of a transformers model; give hf:{path}")
    return FormatError(
        f"{path}: JSON that is no network: expected a kept run of `layerscope measure`, "
        "an index with a weight_map, or hf: before the config.json of a model"
    )
