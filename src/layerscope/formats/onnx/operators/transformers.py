"""To be written."""

from __future__ import annotations

from layerscope.formats.onnx.site import Convert

OPERATORS: dict[tuple[str, str], Convert] = {}
