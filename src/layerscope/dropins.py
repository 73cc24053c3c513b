"""Drop-in replacements for the functions of other counters, for PyTorch modules.

`summary` takes the arguments of torchinfo's, `profile` those of thop's, `FlopCountAnalysis` those
of fvcore's. The figures are exact multiply-adds, and every operator is counted or listed as
unknown; with `like="thop"` and so on they are the figures that this tool prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layerscope.api import analyze
from layerscope.errors import UnknownName
from layerscope.report.columns import of_convention
from layerscope.report.types import Layer, Report

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.formats.torch.frontend import InMode

# torchinfo's column -> layerscope's
COLUMNS = {
    "input_size": "input",
    "output_size": "output",
    "num_params": "params",
    "params_percent": "params%",
    "kernel_size": "window",
    "groups": "window",
    "mult_adds": "macs",
    "trainable": "params",
}


class Summary(Report, frozen=True, dict=True):
    """A Report with the columns and depth that were passed to `summary`."""

    columns: tuple[str, ...] = ()
    depth: int | None = None

    def __str__(self) -> str:
        table = self.to_text(columns=self.columns, depth=self.depth)
        totals = (
            f"total params: {self.total_params:,} · trainable: {self.trainable_params:,} · "
            f"MACs: {self.total_macs:,} · FLOPs: {self.total_flops:,}"
        )
        counted = self.totals.convention_ops
        if self.convention.name != "exact" and counted is not None:
            totals += f" · {self.convention.figure} ({self.convention.name}): {counted:,}"
        lines = [
            totals,
            self.stamp,
            str(self.coverage),
            *self.notes,
        ]
        return "\n".join([table, *lines]) + "\n"

    @property
    def total_mult_adds(self) -> int:
        """Multiply-adds, or the figure of the convention `like`."""
        return figure_of(self)


def summary(
    model: torch.nn.Module,
    input_size: Sequence[Any] | Mapping[str, Any] | None = None,
    input_data: object = None,
    *,
    col_names: Sequence[str] = (),
    depth: int | None = None,
    verbose: int = 0,
    mode: str | None = None,
    **options: Any,
) -> Summary:
    """The report of a PyTorch module, with the arguments of torchinfo's `summary`.

    `input_size` includes the batch. `col_names` are columns of layerscope or of torchinfo. `mode`
    is train or eval, by default that of the model. Other options are those of `analyze`; all others
    are passed to `forward` by name.
    """
    given = {"input_size": input_size, "input_data": input_data}
    inputs: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    report = analyze(_in_mode(model, mode), **inputs, **options)
    fields = {name: getattr(report, name) for name in Report.__struct_fields__}
    named = {**COLUMNS, "mult_adds": of_convention(("macs",), report)[0]}
    columns = ["name", *dict.fromkeys(named.get(name, name) for name in col_names)]
    result = Summary(**fields, columns=tuple(columns) if col_names else (), depth=depth)
    if verbose:
        print(result)
    return result


def _in_mode(model: torch.nn.Module, mode: str | None) -> torch.nn.Module | InMode:
    """The module, wrapped if it is to be captured in another mode."""
    if mode not in (None, "train", "eval", "same"):
        raise UnknownName("mode", str(mode), ("train", "eval", "same"))
    if mode in (None, "same"):
        return model
    from layerscope.formats.torch.frontend import InMode

    return InMode(model, str(mode))


def profile(model: torch.nn.Module, inputs: Sequence[object], **options: Any) -> tuple[int, int]:
    """Multiply-adds and parameters of a module called with `inputs`, as thop's `profile`.

    With `like` they are the figures of that tool; without it the parameters include unused ones.
    Nothing is printed.
    """
    options.pop("verbose", None)
    options.pop("custom_ops", None)
    report = analyze(model, input_data=tuple(inputs), **options)
    counted = report.convention.name
    return figure_of(report), report.total_params if counted == "exact" else report.totals.params


def figure_of(report: Report) -> int:
    """Multiply-adds, or the figure of the report's convention if it is not exact and has one."""
    counted = report.totals.convention_ops
    return report.total_macs if report.convention.name == "exact" or counted is None else counted


def _figure_of_layer(layer: Layer) -> int:
    counted = layer.convention_ops
    return layer.ops.mac if layer.convention.name == "exact" or counted is None else counted


class FlopCountAnalysis:
    """Multiply-adds of a module, in total, by module and by operator, as in fvcore.

    `inputs` are the arguments of `forward`. With `like` they are the figures of that tool.
    """

    def __init__(self, model: torch.nn.Module, inputs: object, **options: Any) -> None:
        self._model = model
        self._inputs = inputs
        self._options = options

    @cached_property
    def report(self) -> Report:
        """The report of the module."""
        return analyze(self._model, input_data=self._inputs, **self._options)

    def total(self, module: str = "") -> int:
        """Multiply-adds of the module with that path, or of the whole model."""
        return self.by_module()[module]

    def by_module(self) -> Counter[str]:
        """Multiply-adds of every called module, including its submodules."""
        found: Counter[str] = Counter(dict.fromkeys(self.report.graph.modules, 0))
        for layer in self.report.layers:
            parts = layer.node.module.split(".") if layer.node.module else list(layer.scope)
            for end in range(len(parts) + 1):
                found[".".join(parts[:end])] += _figure_of_layer(layer)
        return found

    def by_operator(self) -> Counter[str]:
        """Multiply-adds by op; ops without any are left out."""
        found: Counter[str] = Counter()
        for layer in self.report.layers:
            count = _figure_of_layer(layer)
            if count:
                found[layer.op] += count
        return found

    def by_module_and_operator(self) -> dict[str, Counter[str]]:
        """Multiply-adds of every module by op."""
        found: dict[str, Counter[str]] = {path: Counter() for path in self.report.graph.modules}
        for layer in self.report.layers:
            parts = layer.node.module.split(".") if layer.node.module else list(layer.scope)
            for end in range(len(parts) + 1):
                path = ".".join(parts[:end])
                found.setdefault(path, Counter())[layer.op] += _figure_of_layer(layer)
        return found

    def unsupported_ops(self, module: str = "") -> Counter[str]:
        """Unknown operators, and how often each was called."""
        prefix = f"{module}." if module else ""
        return Counter(
            layer.op
            for layer in self.report.layers
            if layer.status == "unknown" and layer.name.startswith(prefix)
        )

    def unsupported_ops_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Does nothing, for compatibility: the report lists unknown operators."""
        return self

    def uncalled_modules_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Does nothing, for compatibility: there are no warnings."""
        return self

    def tracer_warnings(self, mode: str) -> FlopCountAnalysis:
        """Does nothing, for compatibility: there are no tracer warnings."""
        return self
