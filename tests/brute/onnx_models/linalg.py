"""ONNX models of linear algebra, of which ONNX has only Det."""

from __future__ import annotations

from tests.brute.engine import Writer, plain

MODELS: dict[str, Writer] = {"det": plain("Det")}
