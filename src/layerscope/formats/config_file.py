"""The config.json of a model of transformers: its values, checked before they are used."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from layerscope.errors import FormatError
from layerscope.formats import near_files
from layerscope.formats.documents import unique_object
from layerscope.limits import CONFIG_BYTES, MODEL_LAYERS, MOST_SIZE, NUMBER_DIGITS

Settings = dict[str, Any]  # the JSON object of a config.json
LAYERS = re.compile(r"(^|_)(n_?layers?|layers|depth|num_blocks)$")


def read_config(path: str) -> Settings:
    """The JSON object of a config.json, within limits on its sizes, without remote code."""
    wanted = "expected the config.json of a model; nothing is downloaded"

    def number(digits: str) -> int:
        NUMBER_DIGITS.check(len(digits), path)
        return int(digits)

    try:
        with open(path, encoding="utf-8") as file:
            CONFIG_BYTES.check(os.fstat(file.fileno()).st_size, path)
            settings = json.load(file, object_pairs_hook=unique_object(path), parse_int=number)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}, {wanted}{near_files(path)}") from None
    except RecursionError:
        raise FormatError(f"{path}: nested too deep; {wanted}") from None
    except ValueError as error:
        raise FormatError(f"{path}: {error}; {wanted}") from None
    if not isinstance(settings, dict) or "model_type" not in settings:
        raise FormatError(f"{path}: no model_type; {wanted}")
    if not isinstance(settings["model_type"], str):
        raise FormatError(f"{path}: model_type is no text; {wanted}")
    names = settings.get("architectures")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise FormatError(f"{path}: architectures is no list of names; {wanted}")
    _check_settings(path, settings)
    return settings


def _check_settings(path: str, settings: Settings) -> None:
    """Raise for sizes that no model has and for remote code; remove `auto_map`, which names it."""
    values: list[tuple[str, Any]] = list(settings.items())
    while values:
        name, value = values.pop()
        if isinstance(value, dict):
            value.pop("auto_map", None)
            values.extend(value.items())
        elif isinstance(value, list):
            values.extend((name, each) for each in value)
        elif isinstance(value, int):
            if abs(value) > MOST_SIZE:
                raise FormatError(f"{path}: {name[:80]} above 2^63 - 1, which no size can be")
            if LAYERS.search(name):
                MODEL_LAYERS.check(value, f"{path}: {name[:80]}")
        elif isinstance(value, str) and name.endswith("_implementation") and "/" in value:
            raise FormatError(f"{path}: {name} {value[:80]} is remote code, which is not run")
