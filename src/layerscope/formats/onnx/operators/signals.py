"""To be written."""

from __future__ import annotations

from layerscope.formats.onnx.reader import Convert

OPERATORS: dict[tuple[str, str], Convert] = {}
