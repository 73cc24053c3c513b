"""Ops whose output size depends on data, which have no ONNX form of fixed shape."""

from __future__ import annotations

from layerscope.lower.builder import Emitter

EMITTERS: dict[str, Emitter] = {}

REFUSED = {
    "non_zero": "its number of indices depends on data",
    "compress": "its output size depends on data",
    "unique": "its output size depends on data",
}
