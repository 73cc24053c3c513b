"""Convolutional networks since 2015."""

from __future__ import annotations

from layerscope.zoo.entry import Entry

CONVOLUTIONAL: dict[str, Entry] = {}
