"""`summary`, with the arguments of torchinfo's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from layerscope.api.networks import analyze
from layerscope.dropins import summary_table
from layerscope.dropins.counters import figure_of
from layerscope.errors import UsageError
from layerscope.escaping import html
from layerscope.formats.torch.frontend import InMode
from layerscope.formats.torch.inputs import map_tensors
from layerscope.formats.torch.module_log import ModuleLog, declared_graph
from layerscope.notations.module_rows import ModuleRow, module_rows
from layerscope.notations.module_table import TITLES, SummaryOptions
from layerscope.report.columns import COLUMNS, OF_ARRAYS
from layerscope.report.quantities import count_of
from layerscope.report.types import Report

if TYPE_CHECKING:
    import torch  # noqa: TID251

Sizes = Sequence[Any] | Mapping[str, Any]
ROW_SETTINGS = ("ascii_only", "depth", "hide_recursive_layers", "var_names")
MODES = ("train", "eval", "same")
PRE = "font-family:monospace;white-space:pre;overflow-x:auto"  # notebooks restyle <pre>
DEFAULT_COLUMNS, DEFAULT_ROWS = ("output_size", "num_params"), ("depth", "var_names")
OWN_COLUMNS = tuple(name for name in COLUMNS if name not in ("name", "type"))
WITHOUT_INPUT = ("num_params", "params_percent", "kernel_size", "groups", "trainable", *OF_ARRAYS)

# Reports of `cache_forward_pass`, by model, then by arguments.
_CACHE: WeakKeyDictionary[torch.nn.Module, dict[str, tuple[Report, ModuleLog]]] = (
    WeakKeyDictionary()
)


class Summary(Report, frozen=True, dict=True):
    """A Report that prints the table of `summary`: one row per call of a module."""

    module_log: ModuleLog = field(default_factory=ModuleLog)
    table: SummaryOptions = SummaryOptions(DEFAULT_COLUMNS)

    def __str__(self) -> str:
        return summary_table.write(self, self.rows, self.table)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        lines = [html(line) for line in str(self).splitlines()]
        return f'<pre style="{PRE}">' + "\n".join(lines) + "</pre>"

    @cached_property
    def rows(self) -> tuple[ModuleRow, ...]:
        """All rows, those below `depth` included."""
        return module_rows(self, self.module_log)

    @property
    def summary_list(self) -> list[ModuleRow]:
        """All rows, by the name of torchinfo."""
        return list(self.rows)

    @property
    def total_mult_adds(self) -> int:
        """Multiply-adds, or the figure of the convention `like`."""
        return figure_of(self)

    @property
    def total_input(self) -> int:
        """Bytes of the inputs."""
        return sum([tensor.bytes for tensor in self.inputs])

    @property
    def total_param_bytes(self) -> int:
        """Bytes of all parameters, and of the buffers that the forward uses."""
        return self.totals.param_bytes


def summary(
    model: torch.nn.Module,
    input_size: Sizes | None = None,
    input_data: object = None,
    batch_dim: int | None = None,
    cache_forward_pass: bool | None = None,
    col_names: Iterable[str] | None = None,
    col_width: int = 25,
    depth: int | None = 3,
    device: torch.device | str | None = None,
    dtypes: Any = None,
    mode: str | None = None,
    row_settings: Iterable[str] | None = None,
    verbose: int | None = None,
    **options: Any,
) -> Summary:
    """Print the table of a PyTorch module, and return its report: torchinfo's `summary`.

    - `input_size`: shape of the input, batch included; several in a list, or a dict by name.
    - `input_data`: the input itself: a tensor, a list of arguments or a dict of named ones. Without
      `input_size` and `input_data`, the table has parameters only.
    - `batch_dim`: axis at which a batch of 1 is inserted into `input_size`. `input_data` has its
      batch, so the two cannot be combined.
    - `cache_forward_pass`: reuse the figures of an earlier call with this argument, for the same
      model object, sizes, dtypes and options. Later changes of the model are then not seen.
    - `col_names`: input_size, output_size, num_params, params_percent, kernel_size, groups,
      mult_adds, trainable, or columns of layerscope.
    - `col_width`: width of a column in characters.
    - `depth`: levels of modules that are printed; None for all.
    - `device`: must be a device, and has no effect: nothing is moved or allocated, and the figures
      are the same on all devices.
    - `dtypes`: dtypes of the inputs, by default that of the weights, int64 for embeddings.
    - `mode`: eval (default), train, or same for the model's own. The model itself is not changed.
    - `row_settings`: ascii_only, depth, hide_recursive_layers, var_names; by default depth and
      var_names.
    - `verbose`: 0 prints nothing, 1 the table, 2 also a row per parameter. Default: 1; 0 in a
      notebook and at a Python prompt, which print the returned report.
    - `options`: options of `analyze`; all others are passed to `forward` by name.

    """
    if (verbose := _default_verbosity() if verbose is None else verbose) not in (0, 1, 2):
        raise UsageError(
            f"verbose {verbose!r}, expected 0 (quiet), 1 (the table) or 2 (parameters)"
        )
    if count_of(col_width, "col_width") < 1:
        raise UsageError(f"col_width {col_width}, expected at least 1")
    if depth is not None and count_of(depth, "depth") < 0:
        raise UsageError(f"depth {depth}, expected at least 0")
    has_input = input_size is not None or input_data is not None or "input" in options
    columns = _columns(col_names, has_input)
    settings = _names(row_settings, DEFAULT_ROWS, ROW_SETTINGS, "row setting")
    table = SummaryOptions(columns, col_width, depth, frozenset(settings), verbose)
    _check_device(device)
    given: dict[str, object] = {
        "input_size": _with_batch(input_size, batch_dim, input_data),
        "input_data": input_data,
        "dtypes": dtypes,
    }
    options |= {name: value for name, value in given.items() if value is not None}
    windows = verbose > 0 or "kernel_size" in columns or "groups" in columns
    log = ModuleLog(with_shapes=verbose == 2, with_windows=windows)
    request = Request(model, _mode(mode), log, options)
    if cache_forward_pass:
        report, log = _cached(request, has_input)
    else:
        report = _analyzed(request) if has_input else _not_run(request)
    fields = {name: getattr(report, name) for name in Report.__struct_fields__}
    result = Summary(**fields, module_log=log, table=table)
    if verbose:
        print(result)
    return result


class Request(Struct, frozen=True):
    """A model, and how it is analyzed."""

    model: Any  # torch.nn.Module
    mode: str | None
    log: ModuleLog  # filled by the capture
    options: dict[str, Any]  # of `analyze`


def _default_verbosity() -> int:
    """0 where the returned value is printed: IPython, notebooks and the prompt set `sys.ps1`."""
    return 0 if getattr(sys, "ps1", None) else 1


def _names(
    given: Iterable[str] | None, default: tuple[str, ...], choices: tuple[str, ...], kind: str
) -> tuple[str, ...]:
    """The names that are given; an unknown one raises with the list of all."""
    if given is None:
        return default
    names = tuple(given) if not isinstance(given, str) else (given,)
    for name in names:
        if name not in choices or isinstance(given, str):
            is_text = " (a text, expected a list of names)" if isinstance(given, str) else ""
            raise UsageError(
                f"unknown {kind} {str(name)!r}{is_text}; choose from {', '.join(choices)}"
            )
    return tuple(choices[choices.index(name)] for name in names)


def _columns(given: Iterable[str] | None, has_input: bool) -> tuple[str, ...]:
    """Names of columns; without an input only those of modules and parameters."""
    default = DEFAULT_COLUMNS if has_input else ("num_params",)
    names = _names(given, default, (*TITLES, *OWN_COLUMNS), "column")
    needing = [name for name in names if name not in WITHOUT_INPUT]
    if needing and not has_input:
        raise UsageError(f"column {needing[0]} needs an input: give input_size or input_data")
    return names


def _mode(mode: str | None) -> str | None:
    if mode is not None and mode not in MODES:
        raise UsageError(f"unknown mode {str(mode)!r}; choose from {', '.join(MODES)}")
    return None if mode == "same" else str(mode or "eval")


def _check_device(device: object) -> None:
    if device is None:
        return
    from layerscope.formats.torch.capture import the_torch

    try:
        the_torch().device(device)
    except (RuntimeError, TypeError) as error:
        raise UsageError(f"device {device!r}: {str(error).splitlines()[0]}") from None


def _with_batch(sizes: Sizes | None, axis: int | None, data: object) -> Sizes | None:
    """The sizes with a batch of 1 at an axis."""
    if axis is None:
        return sizes
    axis = count_of(axis, "batch_dim")
    if sizes is None:
        given = "input_data has its batch" if data is not None else "no input_size is given"
        raise UsageError(f"batch_dim is for input_size, and {given}")

    def inserted(size: Sequence[int]) -> tuple[int, ...]:
        if not -len(size) - 1 <= axis <= len(size):
            raise UsageError(f"batch_dim {axis}, expected an axis of {[*size]} with a batch")
        at = axis if axis >= 0 else len(size) + 1 + axis
        return (*size[:at], 1, *size[at:])

    if isinstance(sizes, Mapping):
        return {name: inserted(size) for name, size in sizes.items()}
    if sizes and isinstance(sizes[0], Sequence):
        return [inserted(size) for size in sizes]
    return inserted(sizes)


def _analyzed(request: Request) -> Report:
    """The report of a module."""
    model = request.model if request.mode is None else InMode(request.model, request.mode)
    return analyze(model, **request.options, module_log=request.log)


def _not_run(request: Request) -> Report:
    """The parameters of a module for which no input is given."""
    from layerscope.formats.torch.capture import the_torch

    if request.options:
        raise UsageError(f"{next(iter(request.options))} needs input_size or input_data")
    torch, model = the_torch(), request.model
    _check_module(torch, model)
    return analyze(declared_graph(torch, model, request.log))


def _check_module(torch: Any, model: object) -> None:
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__}, expected a torch.nn.Module")


def _cached(request: Request, has_input: bool) -> tuple[Report, ModuleLog]:
    """The report of an earlier call with equal arguments, or a new one."""
    from layerscope.formats.torch.capture import the_torch

    torch = the_torch()
    _check_module(torch, request.model)

    def describe(tensor: Any) -> Any:
        return f"{tuple(tensor.shape)} {tensor.dtype}"

    described = map_tensors(request.options, torch, describe)
    log = request.log
    key = repr((request.mode, log.with_shapes, log.with_windows, described))
    found = _CACHE.setdefault(request.model, {})
    if key not in found:
        found[key] = (_analyzed(request) if has_input else _not_run(request)), log
    return found[key]
