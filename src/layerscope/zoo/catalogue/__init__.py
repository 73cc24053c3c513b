"""Every network by name, in the order they are listed."""

from __future__ import annotations

from layerscope.tables import merge_tables
from layerscope.zoo.catalogue.classic import CLASSIC
from layerscope.zoo.catalogue.convolutional import CONVOLUTIONAL
from layerscope.zoo.catalogue.slim import SLIM
from layerscope.zoo.catalogue.transformers import TRANSFORMERS
from layerscope.zoo.entry import Entry

ZOO: dict[str, Entry] = merge_tables("networks", CLASSIC, CONVOLUTIONAL, TRANSFORMERS, SLIM)

__all__ = ["ZOO"]
