"""Engines that run networks. One file per engine; this is the table of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.extras import need

if TYPE_CHECKING:
    import numpy

    from layerscope.engines.workload import MeasureOptions, Workload
    from layerscope.report.measurement import Run

    Array = numpy.ndarray[Any, Any]
    Arrays = dict[str, Array]  # inputs or outputs of a model by name


class Engine(Struct, frozen=True):
    """File of an engine in this folder, the extra that installs it, and a description."""

    module: str
    extra: str
    says: str
    libraries: tuple[str, ...]  # that it imports


ENGINES = {
    "onnxruntime": Engine(
        "onnxruntime",
        "measure",
        "ONNX Runtime, all optimisations",
        ("onnxruntime", "onnx", "numpy"),
    ),
    "openvino": Engine(
        "openvino", "openvino", "OpenVINO's CPU plugin", ("openvino", "onnx", "numpy")
    ),
    "torch": Engine(
        "torch",
        "measure,torch",
        "PyTorch, eager, an operator at a time",
        ("torch", "onnx", "numpy"),
    ),
}
Progress = Callable[[str, int, int], None]  # the current step, its number, the number of steps


def quiet(what: str, done: int, of: int) -> None:
    """Progress that is not shown."""


class EngineModule(Protocol):
    """Functions that the file of an engine defines."""

    def version(self) -> str:
        """Version of the installed engine."""

    def measure(
        self, workload: Workload, options: MeasureOptions, progress: Progress = quiet
    ) -> tuple[Run, Arrays]:
        """Times of all layers, and the outputs of the last run by name."""


def engine(name: str) -> EngineModule:
    """Import the engine of that name; raise MissingExtra if a library that it needs is missing."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES, f"; known: {', '.join(ENGINES)}")
    found = ENGINES[name]
    need(f"measuring with {name}", found.extra, *found.libraries)
    return cast(EngineModule, import_module(f"layerscope.engines.{found.module}"))
