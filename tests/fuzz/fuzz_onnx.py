"""Atheris on the reader of ONNX models: make fuzz, or see README.md."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["layerscope"]):
    from tests.fuzz.targets import fuzz_onnx

if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz_onnx)
    atheris.Fuzz()
