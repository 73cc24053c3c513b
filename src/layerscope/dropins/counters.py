"""`profile` and `FlopCountAnalysis`, with the arguments of thop's and fvcore's."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layerscope.api.networks import analyze
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.report.modules import figure_of_layer, paths_of
from layerscope.report.types import Report

if TYPE_CHECKING:
    import torch  # noqa: TID251


def profile(model: torch.nn.Module, inputs: Sequence[object], **options: Any) -> tuple[int, int]:
    """Multiply-adds and parameters of a module called with `inputs`, as thop's `profile`.

    With `like` they are the figures of that tool. Nothing is printed. A warning names unknown
    operators: the multiply-adds are then a lower bound.
    """
    if not isinstance(inputs, Sequence):
        raise UsageError(f"inputs: a {type(inputs).__name__}, expected a tuple of arguments")
    options.pop("verbose", None)
    options.pop("custom_ops", None)
    report = analyze(model, input_data=tuple(inputs), **options)
    _warn_of_unknown(report)
    return figure_of(report), report.totals.params


def _warn_of_unknown(report: Report) -> None:
    """Warn of operators without figures, which a plain number cannot say."""
    unknown = report.coverage.unknown
    if unknown:
        names = visible(", ".join(f"{op} ×{count}" for op, count in unknown.items()))
        message = f"unknown operators are not counted, so the count is a lower bound: {names}"
        level, frame = 2, sys._getframe(1)
        while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
            level, frame = level + 1, frame.f_back
        warnings.warn(message, stacklevel=level)


def figure_of(report: Report) -> int:
    """Multiply-adds, or the figure of the report's convention if it is not exact and has one."""
    counted = report.totals.convention_ops
    return report.total_macs if report.convention.name == "exact" or counted is None else counted


class FlopCountAnalysis:
    """Multiply-adds of a module, in total, by module and by operator, as in fvcore.

    `inputs` are the arguments of `forward`. With `like` they are the figures of that tool.
    """

    def __init__(self, model: torch.nn.Module, inputs: object, **options: Any) -> None:
        self._model = model
        self._inputs = inputs
        self._options = options
        self._warns = True

    @cached_property
    def report(self) -> Report:
        """The report of the module."""
        return analyze(self._model, input_data=self._inputs, **self._options)

    def total(self, module: str = "") -> int:
        """Multiply-adds of the module with that path, or of the whole model."""
        self._check_path(module)
        return self.by_module()[module]

    def _counted(self) -> Report:
        """The report; the first time with a warning if operators are unknown."""
        if self._warns:
            self._warns = False
            _warn_of_unknown(self.report)
        return self.report

    def _check_path(self, module: str) -> None:
        """Raise for a path that is not a module's: its count would be 0."""
        paths = self.report.graph.modules
        if module and module not in paths:
            raise UnknownName("module", module, paths, f"; the model has {len(paths):,} modules")

    def by_module(self) -> Counter[str]:
        """Multiply-adds of every called module, including its submodules."""
        report = self._counted()
        found: Counter[str] = Counter(dict.fromkeys(report.graph.modules, 0))
        for layer in report.layers:
            for path in paths_of(layer):
                found[path] += figure_of_layer(layer)
        return found

    def by_operator(self) -> Counter[str]:
        """Multiply-adds by op; ops without any are left out."""
        found: Counter[str] = Counter()
        for layer in self._counted().layers:
            count = figure_of_layer(layer)
            if count:
                found[layer.op] += count
        return found

    def by_module_and_operator(self) -> dict[str, Counter[str]]:
        """Multiply-adds of every module by op; ops without any are left out."""
        report = self._counted()
        found: dict[str, Counter[str]] = {path: Counter() for path in report.graph.modules}
        for layer in report.layers:
            for path in paths_of(layer):
                counts = found.setdefault(path, Counter())
                if count := figure_of_layer(layer):
                    counts[layer.op] += count
        return found

    def unsupported_ops(self, module: str = "") -> Counter[str]:
        """Unknown operators, and how often each was called."""
        self._check_path(module)
        prefix = f"{module}." if module else ""
        return Counter(
            layer.op
            for layer in self.report.layers
            if layer.status == "unknown" and layer.name.startswith(prefix)
        )

    def unsupported_ops_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Whether the first figure comes with a warning that names unknown operators."""
        self._warns = enabled
        return self

    def uncalled_modules_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Does nothing, for compatibility: there are no warnings."""
        return self

    def tracer_warnings(self, mode: str) -> FlopCountAnalysis:
        """Does nothing, for compatibility: there are no tracer warnings."""
        return self
