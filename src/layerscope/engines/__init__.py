"""Engines that run networks. One file an engine; this is the table of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from msgspec import Struct

from layerscope.errors import UnknownName


class Engine(Struct, frozen=True):
    """Where an engine's file is, what it imports, and the extra that installs that."""

    module: str
    extra: str
    says: str


# Each has measure(subject, options, progress) -> (Run, outputs) and version().
ENGINES = {
    "onnxruntime": Engine("onnxruntime", "onnxruntime", "ONNX Runtime, all optimisations"),
    "openvino": Engine("openvino", "openvino", "OpenVINO's CPU plugin"),
    "torch": Engine("torch", "torch", "PyTorch, eager, an operator at a time"),
}
Progress = Callable[[str, int, int], None]  # what is done, how far, of how many


def quiet(what: str, done: int, of: int) -> None:
    """Progress that nobody sees."""


def engine(name: str) -> Any:
    """The module of the engine of that name."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES, f"; known: {', '.join(ENGINES)}")
    return import_module(f"layerscope.engines.{ENGINES[name].module}")
