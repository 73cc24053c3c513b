"""The columns that a table can have: name, title, and how to get the value for a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import prod
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.fields import Field
from layerscope.errors import UnknownName, UsageError
from layerscope.graph.attributes import Window
from layerscope.graph.names import shape_text
from layerscope.graph.types import Tensor
from layerscope.ops import SPECS
from layerscope.report.numbers import (
    ABOUT,
    AT_LEAST,
    AT_MOST,
    COUNTS,
    RATIOS,
    UNKNOWN,
    AtLeast,
    CellValue,
    decimal,
)
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

Kind = Literal["text", "count", "bytes", "percent", "ratio"]


class Column(Struct, frozen=True):
    """One column; a value of None is a blank cell."""

    name: str
    title: str
    kind: Kind
    says: str
    value: Callable[[TableRow, Report], CellValue]

    @property
    def summable(self) -> bool:
        """Whether the figure of several layers is the sum of theirs."""
        return self.kind in ("count", "bytes") and self.name != "alive"


def tensor_text(tensor: Tensor) -> str:
    """The shape of a tensor; one that is declared in the file and not inferred is marked."""
    text = shape_text(tensor.shape)
    return f"{text} (declared)" if tensor.declared else text


def _type(row: TableRow, report: Report) -> str:
    if row.layer is not None:
        return row.layer.op
    if row.kind == "op":
        rule = SPECS.get(row.name)
        return rule.family if rule is not None else "unknown"
    if row.kind not in ("scope", "module"):
        return ""
    module_class = report.graph.modules.get(row.name, "").partition("(")[0]
    return module_class or row.members[0].op  # a leaf without a class: its op


def _window(row: TableRow, report: Report) -> str | None:
    return window_text(row.layer) if row.layer else None


def window_text(layer: Layer) -> str | None:
    """Kernel and stride of a layer, dilation and groups unless 1; None without a window."""
    window = getattr(layer.node.attributes, "window", None)
    if not isinstance(window, Window):
        return None
    text = _once(window.kernel)
    if set(window.stride) != {1}:
        text += "/" + _once(window.stride, all_if_equal=False)
    if set(window.dilation) != {1}:
        text += " d" + _once(window.dilation, all_if_equal=False)
    groups = getattr(layer.node.attributes, "groups", 1)
    return text + (f" g{groups}" if groups > 1 else "")


def _once(sizes: tuple[int, ...], *, all_if_equal: bool = True) -> str:
    if not all_if_equal and len(set(sizes)) == 1:
        return str(sizes[0])
    return "x".join(map(str, sizes))


def _share(
    part: Callable[[TableRow], int], whole: Callable[[Report], int]
) -> Callable[[TableRow, Report], Fraction | None]:
    def share(row: TableRow, report: Report) -> Fraction | None:
        total = whole(report)
        return Fraction(part(row), total) if total else None

    return share


def field_text(field: Field, which: str = "size") -> str:
    """Size, stride or offset of a receptive field; one number if all axes have the same."""
    sizes = getattr(field, which)
    first = sizes[0]
    if sizes.count(first) == len(sizes):
        text = "-" if first is None else str(decimal(first))
    else:
        text = "x".join(["-" if part is None else str(decimal(part)) for part in sizes])
    return text if field.aligned or which != "size" else f"{text} misaligned"


def field_area(field: Field | None, which: str = "size") -> tuple[Fraction, ...]:
    """A sort key of receptive fields: axes that see everything, and the product of the others.

    It is () for a field without a size.
    """
    parts = [] if field is None else [part for part in getattr(field, which) if part is not None]
    sizes = [Fraction(part) for part in parts if not isinstance(part, str)]
    return (Fraction(len(parts) - len(sizes)), prod(sizes, start=Fraction(1))) if parts else ()


def _field_of(row: TableRow) -> Field | None:
    return row.layer.field if row.layer else None


def _field(which: str) -> Callable[[TableRow, Report], str | None]:
    def value(row: TableRow, report: Report) -> str | None:
        field = row.layer.field if row.layer else None
        return None if field is None else field_text(field, which)

    return value


def _gemm(row: TableRow, report: Report) -> str | None:
    gemm = row.layer.gemm if row.layer else None
    if gemm is None:
        return None
    times = f" × {gemm.count}" if gemm.count > 1 else ""
    return f"{gemm.m}x{gemm.n}x{gemm.k}{times}"


def _inputs(row: TableRow, report: Report) -> str | None:
    if row.layer is None:
        return None
    return " ".join(map(tensor_text, row.layer.inputs))


def _output(row: TableRow, report: Report) -> str | None:
    if row.kind in ("total", "op", "unused"):
        return None
    if row.layer is None:
        return tensor_text(row.members[-1].outputs[0])
    return " ".join(map(tensor_text, row.layer.outputs))


def _intensity(row: TableRow, report: Report) -> Fraction | None:
    return Fraction(row.ops.flops, row.moved_bytes) if row.moved_bytes else None


def _kind(kind: str) -> Column:
    return Column(
        kind, kind, "count", f"operations of kind {kind}", lambda row, r: getattr(row.ops, kind)
    )


def _params(row: TableRow, report: Report) -> int | None:
    if row.kind == "total":  # with parameters that no layer uses
        return report.totals.params
    if row.kind == "unused":  # blank if the convention does not count them
        return report.unused_params or None
    return row.params


def _weights(row: TableRow, report: Report) -> int:
    if row.kind == "total":
        return report.totals.param_bytes
    if row.kind == "unused":
        return report.unused_bytes
    return row.sum(lambda layer: layer.param_bytes)


def _params_share(row: TableRow, report: Report) -> Fraction | None:
    total = report.totals.params
    return Fraction(_params(row, report) or 0, total) if total else None


def _convention_ops(row: TableRow, report: Report) -> int | None:
    return report.convention.headline(row.convention_kinds)


def _convention_ops_share(row: TableRow, report: Report) -> Fraction | None:
    value, total = _convention_ops(row, report), report.totals.convention_ops
    return Fraction(value, total) if value is not None and total else None


def _convention_activations(row: TableRow, report: Report) -> int:
    if row.kind == "total":  # some conventions count the inputs too
        return report.totals.convention_activations
    return row.sum(lambda layer: layer.convention_activations)


def _alive(row: TableRow, report: Report) -> int | None:
    """The most bytes that are alive while a layer of the row runs: no sum."""
    memory = report.memory
    if row.kind == "total":
        return memory.peak_bytes if memory.complete else AtLeast(memory.peak_bytes)
    if row.kind == "unused":
        return None
    names = [layer.name for layer in row.all_members]
    most = max(report.alive_bytes[name] for name in names)
    return most if memory.bounded.isdisjoint(names) else AtLeast(most)


COLUMNS = {
    column.name: column
    for column in (
        Column("name", "layer", "text", "name, indented in a tree", lambda row, r: row.label),
        Column("type", "type", "text", "kind of operation, or the scope's class", _type),
        Column("scope", "scope", "text", "modules around it",
               lambda row, r: ".".join(row.layer.scope) if row.layer else None),
        Column("window", "window", "text", "kernel/stride, d dilation, g groups", _window),
        Column("input", "input", "text", "input shapes", _inputs),
        Column("output", "output", "text", "output shapes", _output),
        Column("params", "params", "count",
               "learnable numbers as the convention counts them, tied ones once", _params),
        Column("params%", "%", "percent", "share of all parameters", _params_share),
        Column("buffers", "buffers", "count", "stored numbers that are not learned",
               lambda row, r: row.sum(lambda layer: layer.cost.buffer_count)),
        Column("weights", "weights", "bytes", "bytes of all stored arrays", _weights),
        Column("macs", "MACs", "count", "multiply-adds", lambda row, r: row.ops.mac),
        Column("macs%", "%", "percent", "share of all multiply-adds",
               _share(lambda row: row.ops.mac, lambda r: r.totals.macs)),
        Column("flops", "FLOPs", "count", "2 per MAC and 1 per other operation",
               lambda row, r: row.ops.flops),
        Column("convention_ops", "counted", "count",
               "the figure of the convention, titled as its system calls it", _convention_ops),
        Column("convention_ops%", "%", "percent", "share of the convention's figure",
               _convention_ops_share),
        _kind("add"), _kind("mul"), _kind("comp"), _kind("div"), _kind("exp"),
        Column("activations", "activations", "count", "elements of new storage it makes",
               lambda row, r: row.sum(lambda layer: layer.activations)),
        Column("activations%", "%", "percent", "share of all activations",
               _share(lambda row: row.sum(lambda layer: layer.activations),
                      lambda r: r.totals.activations)),
        Column("convention_activations", "counted activations", "count",
               "activations as the convention counts them", _convention_activations),
        Column("memory", "memory", "bytes",
               "bytes of new storage it makes, each tensor in its own dtype",
               lambda row, r: row.sum(lambda layer: layer.activation_bytes)),
        Column("alive", "alive", "bytes",
               "bytes of activations alive while it runs; of several layers and in total the most",
               _alive),
        Column("read", "read", "bytes", "bytes read, parameters included",
               lambda row, r: row.sum(lambda layer: layer.cost.read_bytes)),
        Column("write", "write", "bytes", "bytes written",
               lambda row, r: row.sum(lambda layer: layer.cost.write_bytes)),
        Column("intensity", "FLOP/B", "ratio", "FLOPs per byte read or written", _intensity),
        Column("gemm", "MxNxK", "text", "the matrix product it amounts to", _gemm),
        Column("field", "field", "text", "receptive field: inputs seen per axis", _field("size")),
        Column("field_stride", "stride", "text", "inputs moved per position", _field("stride")),
        Column("field_offset", "centre", "text", "centre of position 0, from 0", _field("offset")),
        Column("backward_macs", "bwd MACs", "count", "multiply-adds of the backward pass",
               lambda row, r: row.sum(lambda layer: r.backward[layer.name].mac)),
        Column("backward_flops", "bwd FLOPs", "count", "FLOPs of the backward pass",
               lambda row, r: row.sum(lambda layer: r.backward[layer.name].flops)),
        Column("status", "status", "text", "exact, estimate, lower bound (of a sum) or unknown",
               lambda row, r: row.status),
        Column("note", "note", "text", "why, where there is something to say",
               lambda row, r: row.layer.cost.note if row.layer else None),
    )
}  # fmt: skip

FIELD_PARTS = {"field": "size", "field_stride": "stride"}  # columns sorted by their numbers
ALIASES = {"ratio": "params%"}  # other names of columns
SHOWN_WHEN_UNKNOWN = ("name", "type", "scope", "window", "input", "output", "status", "note")
OF_ARRAYS = ("params", "params%", "buffers", "weights")  # figures of stored arrays
OF_SIZES = ("activations", "convention_activations", "memory", "read", "write")
# shares -> the total that they are of
SHARES = {
    "params%": "params", "macs%": "macs", "convention_ops%": "convention_ops",
    "activations%": "activations",
}  # fmt: skip


def choose(names: Iterable[str]) -> tuple[Column, ...]:
    """The columns of these names, in this order, each once."""
    chosen: dict[str, Column] = {}
    choices = (*COLUMNS, *ALIASES)
    for name in names:
        if name not in choices:
            raise UnknownName("column", name, choices, f"; known: {', '.join(choices)}")
        found = COLUMNS[ALIASES.get(name, name)]
        chosen[found.name] = found
    if not chosen:
        raise UsageError(f"no columns chosen; known: {', '.join(choices)}")
    return tuple(chosen.values())


def of_convention(names: Iterable[str], report: Report) -> tuple[str, ...]:
    """Names of columns, multiply-adds replaced by the figure of the convention if it has one."""
    names = tuple(names)
    counted = report.convention
    if counted.is_exact or not counted.figure or "convention_ops" in names:
        return names
    swapped = {"macs": "convention_ops", "macs%": "convention_ops%"}
    return tuple(swapped.get(name, name) for name in names)


def titled(names: Iterable[str], report: Report) -> tuple[Column, ...]:
    """Columns of these names, the convention's figure titled as its system calls it."""
    columns = choose(names)
    word = report.convention.figure
    titles = [column.title for column in columns]
    if word in titles:  # the exact figure is in the table, too
        word = f"{word} ({report.convention.name})"
    return tuple(
        replace(column, title=word) if column.name == "convention_ops" and word else column
        for column in columns
    )


def cell(column: Column, row: TableRow, report: Report) -> CellValue:
    """The value of a row; "?" where it is unknown, a marked number where it is not exact."""
    if report.all_exact or column.name in SHOWN_WHEN_UNKNOWN:
        return column.value(row, report)
    of_arrays = column.name in OF_ARRAYS
    unknown = row.unknown
    if unknown and of_arrays:
        unknown = not _has_params(row, report)
    is_share = column.kind == "percent" and row.kind != "total"
    if unknown and (row.layer is not None or column.kind == "ratio" or is_share):
        return UNKNOWN
    value = column.value(row, report)
    if value is None or isinstance(value, str):
        return value
    if column.kind == "percent":
        return _marked_share(Fraction(value), column.name, row, report)
    sign = AT_LEAST if unknown or isinstance(value, AtLeast) else ""
    if value and not of_arrays and report.coverage.estimated and _is_about(column, row, report):
        sign += ABOUT
    if not sign:
        return value
    return RATIOS[sign](value) if isinstance(value, Fraction) else COUNTS[sign](value)


def _marked_share(share: Fraction, name: str, row: TableRow, report: Report) -> CellValue:
    """A share of a total: an upper bound if the total is a lower bound."""
    total = SHARES[name]
    if row.kind == "total" or not share:
        return share
    sign = (AT_MOST if total in report.lower_bounds else "") + (
        ABOUT if total in report.estimates else ""
    )
    return RATIOS[sign](share) if sign else share


def _has_params(row: TableRow, report: Report) -> bool:
    return all(report.params_known(layer.node) for layer in row.members)


def _is_about(column: Column, row: TableRow, report: Report) -> bool:
    """Whether a figure is an estimate: of a layer, or of one that the sum includes."""
    if column.name == "alive":
        return "peak_activation_bytes" in report.estimates
    for layer in row.members:
        if layer.status != "estimate":
            continue
        if column.name in OF_SIZES and not layer.has_estimated_sizes:
            continue
        if column.name == "convention_ops" and not layer.has_estimated_count:
            continue
        if column.value(TableRow(layer.name, layer.name, 0, "layer", (layer,)), report):
            return True
    return False


def sort_rows(rows: list[TableRow], name: str, report: Report) -> list[TableRow]:
    """Rows sorted by one column: figures largest first, text alphabetically; unknown ones last.

    A lower bound stands before an equal figure. Receptive fields are sorted by their area.
    """
    column = choose((name,))[0]
    figures = [(cell(column, row, report), row) for row in rows]
    sortable = [(value, row) for value, row in figures if value not in (None, "?")]
    rest = [row for value, row in figures if value in (None, "?")]
    if column.name in FIELD_PARTS:
        which = FIELD_PARTS[column.name]
        sortable.sort(key=lambda item: field_area(_field_of(item[1]), which), reverse=True)
    elif column.kind == "text":
        sortable.sort(key=lambda item: str(item[0]))
    else:
        sortable.sort(key=lambda item: (item[0], isinstance(item[0], AtLeast)), reverse=True)
    return [row for _, row in sortable] + rest
