"""Atheris on the reader of .prototxt: make fuzz, or see README.md."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["layerscope"]):
    from tests.fuzz.targets import fuzz_prototxt

if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz_prototxt)
    atheris.Fuzz()
