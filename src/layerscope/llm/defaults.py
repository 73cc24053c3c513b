"""Defaults of configurations by model_type, those of transformers' configuration classes.

A config.json may leave out what is the default of its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

DefaultValues = Mapping[str, int | bool | str]


@cache
def defaults() -> Mapping[str, DefaultValues]:
    """Values that a configuration has where its file does not give them, by model_type."""
    from importlib.resources import files

    text = files(__package__).joinpath("defaults.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, int | bool | str]])
