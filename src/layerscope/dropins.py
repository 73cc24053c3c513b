"""Names that people who come from other counters know, for live PyTorch modules.

`summary` takes what torchinfo's takes, `profile` what thop's does, `FlopCountAnalysis` what
fvcore's does. The figures are exact multiply-adds, every operator counted or named as unknown;
with `like="thop"` and so on they are the figure that this tool prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from layerscope.api import analyze
from layerscope.errors import UnknownName
from layerscope.report.columns import of_convention
from layerscope.report.types import Layer, Report

# torchinfo's columns in our words
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
    """A report that prints as it was asked for."""

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
        """Multiply-adds, or the figure of the convention that `like` names."""
        return figure_of(self)


def summary(
    model: Any,
    input_size: Any = None,
    input_data: Any = None,
    *,
    col_names: Sequence[str] = (),
    depth: int | None = None,
    verbose: int = 0,
    mode: str | None = None,
    **options: Any,
) -> Summary:
    """The account of a live module; `str()` is its table.

    `input_size` has the batch in it. Columns are ours or torchinfo's; `mode` is train or eval, the
    model's own if left out. Other options are those of `analyze`, or go to the forward by name.
    """
    given = {"input_size": input_size, "input_data": input_data}
    told = {name: value for name, value in given.items() if value is not None}
    report = analyze(_in_mode(model, mode), **told, **options)
    fields = {name: getattr(report, name) for name in Report.__struct_fields__}
    named = {**COLUMNS, "mult_adds": of_convention(("macs",), report)[0]}
    columns = ["name", *dict.fromkeys(named.get(name, name) for name in col_names)]
    made = Summary(**fields, columns=tuple(columns) if col_names else (), depth=depth)
    if verbose:
        print(made)
    return made


def _in_mode(model: Any, mode: str | None) -> Any:
    """A module to be looked at in train or eval mode."""
    if mode not in (None, "train", "eval", "same"):
        raise UnknownName("mode", str(mode), ("train", "eval", "same"))
    if mode in (None, "same"):
        return model
    from layerscope.formats.torch.frontend import InMode

    return InMode(model, str(mode))


def profile(model: Any, inputs: Sequence[Any], **options: Any) -> tuple[int, int]:
    """Multiply-adds and parameters of a module on these arguments, or the figures of `like`.

    Nothing is printed. Without `like` the parameters are all of the module's.
    """
    options.pop("verbose", None)
    options.pop("custom_ops", None)
    report = analyze(model, input_data=tuple(inputs), **options)
    counted = report.convention.name
    return figure_of(report), report.total_params if counted == "exact" else report.totals.params


def figure_of(report: Report) -> int:
    """Multiply-adds, or the figure of the report's convention if that is another with one."""
    counted = report.totals.convention_ops
    return report.total_macs if report.convention.name == "exact" or counted is None else counted


def _figure_of_layer(layer: Layer) -> int:
    counted = layer.convention_ops
    return layer.ops.mac if layer.convention.name == "exact" or counted is None else counted


class FlopCountAnalysis:
    """Multiply-adds of a module on some arguments, in all, by module and by operator.

    With `like` they are the figures of that tool.
    """

    def __init__(self, model: Any, inputs: Any, **options: Any) -> None:
        self._model = model
        self._inputs = inputs
        self._options = options

    @cached_property
    def report(self) -> Report:
        """The whole account."""
        return analyze(self._model, input_data=self._inputs, **self._options)

    def total(self, module: str = "") -> int:
        """Multiply-adds of a module, of all without a name."""
        return self.by_module()[module]

    def by_module(self) -> Counter[str]:
        """Multiply-adds of every module that was called, what is in it included."""
        found: Counter[str] = Counter(dict.fromkeys(self.report.graph.modules, 0))
        for layer in self.report.layers:
            parts = layer.node.module.split(".") if layer.node.module else list(layer.scope)
            for end in range(len(parts) + 1):
                found[".".join(parts[:end])] += _figure_of_layer(layer)
        return found

    def by_operator(self) -> Counter[str]:
        """Multiply-adds by kind of operation, those with none left out."""
        found: Counter[str] = Counter()
        for layer in self.report.layers:
            count = _figure_of_layer(layer)
            if count:
                found[layer.op] += count
        return found

    def by_module_and_operator(self) -> dict[str, Counter[str]]:
        """Multiply-adds of every module by kind of operation."""
        found: dict[str, Counter[str]] = {path: Counter() for path in self.report.graph.modules}
        for layer in self.report.layers:
            parts = layer.node.module.split(".") if layer.node.module else list(layer.scope)
            for end in range(len(parts) + 1):
                path = ".".join(parts[:end])
                found.setdefault(path, Counter())[layer.op] += _figure_of_layer(layer)
        return found

    def unsupported_ops(self, module: str = "") -> Counter[str]:
        """Operators without figures, and how often each was called."""
        prefix = f"{module}." if module else ""
        return Counter(
            layer.op
            for layer in self.report.layers
            if layer.status == "unknown" and layer.name.startswith(prefix)
        )

    def unsupported_ops_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Nothing is warned of: the report names what is unknown."""
        return self

    def uncalled_modules_warnings(self, enabled: bool) -> FlopCountAnalysis:
        """Nothing is warned of: the report names what is unused."""
        return self

    def tracer_warnings(self, mode: str) -> FlopCountAnalysis:
        """Nothing is traced."""
        return self
