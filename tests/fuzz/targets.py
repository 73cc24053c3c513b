"""What is fuzzed: any bytes give a graph or a named error, then an account or a named error."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from layerscope.api import analyze, load
from layerscope.errors import LayerscopeError
from layerscope.formats import DEFAULTS, Options
from layerscope.formats import onnx as onnx_format
from layerscope.formats.caffe import caffemodel, prototxt

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
REGRESSIONS = Path(__file__).parent / "regressions"
DEPLOY = str(Path(__file__).parent / "deploy.prototxt")


def fuzz_protobuf(data: bytes) -> None:
    """Read the bytes as a .caffemodel, alone and as the weights of a prototxt."""
    caffemodel.recognise(data)
    _read(data, ".caffemodel", lambda path: analyze(caffemodel.read(path, DEFAULTS)))
    _read(data, ".caffemodel", lambda path: load(DEPLOY, weights=path))


def fuzz_prototxt(data: bytes) -> None:
    """Read the bytes as a .prototxt."""
    prototxt.recognise(data)
    _read(data, ".prototxt", lambda path: analyze(prototxt.read(path, DEFAULTS)))


def fuzz_onnx(data: bytes) -> None:
    """Read the bytes as an ONNX model, as it is declared and with a batch of its own."""
    onnx_format.recognise(data)
    _read(data, ".onnx", lambda path: analyze(onnx_format.read(path, DEFAULTS)))
    _read(data, ".onnx", lambda path: onnx_format.read(path, Options(batch=3)))


def _read(data: bytes, suffix: str, read: Callable[[str], object]) -> None:
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=MEMORY) as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(LayerscopeError):
            read(file.name)


TARGETS = {"protobuf": fuzz_protobuf, "prototxt": fuzz_prototxt, "onnx": fuzz_onnx}
