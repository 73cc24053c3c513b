"""Transformers, of images and of text."""

from __future__ import annotations

from layerscope.zoo.entry import Entry

TRANSFORMERS: dict[str, Entry] = {}
