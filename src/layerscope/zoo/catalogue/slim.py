"""TF-Slim forms, with SAME padding and the names of their end points."""

from __future__ import annotations

from layerscope.zoo.entry import Entry

SLIM: dict[str, Entry] = {}
