"""Every network by name, in the order they are listed."""

from __future__ import annotations

from layerscope.zoo.catalogue.classic import CLASSIC
from layerscope.zoo.catalogue.convolutional import CONVOLUTIONAL
from layerscope.zoo.catalogue.slim import SLIM
from layerscope.zoo.catalogue.transformers import TRANSFORMERS
from layerscope.zoo.entry import Entry


def _merged(*tables: dict[str, Entry]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for table in tables:
        for name, entry in table.items():
            if name in merged:
                raise ValueError(f"two networks are named {name!r}")
            merged[name] = entry
    return merged


ZOO = _merged(CLASSIC, CONVOLUTIONAL, TRANSFORMERS, SLIM)

__all__ = ["ZOO"]
