r"""MatConvNet's network display: layers are columns, in blocks of 18, as text, csv or LaTeX.

`max_columns` is the option maxNumColumns of vl_simplenn_display: columns in a block.

Layers are in execution order. Rules for what MatConvNet does not have:
- views (flatten, reshape, identity) have no column and do not change the data size; a linear layer
  is a convolution as large as its input map, with stride 1;
- a 1-D network has height L and width 1; a 3-D one prints all axes, and pads as six numbers;
- global and adaptive pools have support and stride of their bins (uneven: the largest, the mean);
  upsampling has stride 1/factor, and a transposed convolution has its crop as pad;
- after a layer that sees the whole input, rf size and offset are those of all positions together
  and rf stride continues as the product of strides; the offset is `n/a` if branches with different
  centres were joined, and the stride too if positions are not evenly spaced;
- several inputs are several columns, with their names; unknown is `?`, in totals `+ ?`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.fields import FieldAxis, Number
from layerscope.conventions.matconvnet import NO_LAYER
from layerscope.graph.names import printed_type
from layerscope.graph.types import Shape, claims_of, elements, storage_bytes
from layerscope.notations.matconvnet_styles import (
    MOST_COLUMNS,
    RULE,
    Style,
    TextTable,
    csv_table,
    in_blocks,
    latex_table,
    text_table,
)
from layerscope.ops import SPECS, Call, display_name
from layerscope.ops.access_map import Bins
from layerscope.ops.convolution import transposed_pads
from layerscope.report import Report
from layerscope.report.numbers import ABOUT, plus_unknown
from layerscope.report.types import Layer

NONE = "n/a"
FILTER = ("filt dim", "filt dilat", "num filts")
FIELD = ("rf size", "rf offset", "rf stride")
DATA = ("data size", "data depth", "data num")
MEMORY = ("data mem", "param mem")
WINDOW = ("support", *FILTER, "stride", "pad")
NEWER = ("layer", "type", "name", RULE, *WINDOW, RULE, *FIELD, RULE, *DATA, RULE, *MEMORY)
ROWS = tuple(row for row in NEWER if row != "filt dilat")

Numbers = Sequence[Number | None]


class SlidingWindow(Struct, frozen=True):
    """The window of a layer per axis; None is unknown."""

    support: Numbers = (1,)
    stride: Numbers = (1,)
    pads: Numbers = (0, 0)  # top, bottom, left, right


class TensorState(Struct, frozen=True):
    """Shape and receptive field of a tensor, as MatConvNet prints them."""

    data: Shape | None = None  # num, depth, sizes
    axes: tuple[FieldAxis, ...] = ()  # receptive field in the first input
    moved: Numbers = ()  # rf stride along these axes


def write(report: Report, max_columns: int = MOST_COLUMNS) -> str:
    """The display as text, without the row `filt dilat` of newer versions."""
    return _join(report, ROWS, text_table, max_columns)


def write_dilation(report: Report, max_columns: int = MOST_COLUMNS) -> str:
    """The display as text with the row `filt dilat`."""
    return _join(report, NEWER, text_table, max_columns)


def write_csv(report: Report, max_columns: int = MOST_COLUMNS) -> str:
    """The display as csv, each cell quoted and followed by a comma."""
    return _join(report, ROWS, csv_table, max_columns)


def write_latex(report: Report, max_columns: int = MOST_COLUMNS) -> str:
    """The display as LaTeX tabulars."""
    return _join(report, ROWS, latex_table, max_columns)


def _join(report: Report, rows: Sequence[str], style: Style, max_columns: int) -> str:
    columns = [[column[row] for row in rows] for column in _columns(report)]
    return "\n".join(map(style, [*in_blocks(rows, columns, max_columns), _totals(report)]))


def _columns(report: Report) -> list[dict[str, str]]:
    """One column per input and layer: cells by row name."""
    claimed = claims_of(report.graph, "matconvnet").rows
    states: dict[str, TensorState] = {}
    columns: list[dict[str, str]] = []
    for tensor in report.inputs:
        axes = report.fields[tensor.name][0].axes if report.fields[tensor.name] else ()
        now = states[tensor.name] = TensorState(_padded(tensor.shape), axes, (1,) * len(axes))
        column = dict.fromkeys((*WINDOW, *FIELD, *MEMORY), NONE)
        column |= {"type": "input", "name": tensor.name if len(report.inputs) > 1 else NONE}
        column |= _data_cells(now.data)
        column["data mem"] = memory_text(None if tensor.shape is None else tensor.bytes)
        columns.append(column)
    for layer in report.layers:
        sources = [states.get(tensor.name, TensorState()) for tensor in layer.inputs] or [
            TensorState()
        ]
        given = sources[0].data
        window = _window(layer, given)
        now = _after(layer, window.stride, sources)
        for output in layer.outputs:
            states[output.name] = replace(now, data=_padded(output.shape))
        if layer.call is not None:
            states[layer.outputs[0].name] = now
        if layer.op in NO_LAYER:
            continue
        kind = display_name(layer.op, "matconvnet") or printed_type(layer.op)
        column = {"type": kind, "name": layer.name}
        column |= {"support": _dims(window.support), "stride": _dims(window.stride)}
        column["pad"] = _dims(window.pads if len(window.pads) != 2 else (*window.pads, 0, 0))
        column |= _filter_cells(layer, given) | _rf_cells(now) | _data_cells(now.data)
        column |= zip(MEMORY, map(memory_text, _bytes(layer, report)), strict=True)
        if layer.has_estimated_sizes:
            column["data mem"] = ABOUT + column["data mem"]
        column |= dict(cell.split("\t", 1) for cell in claimed.get(layer.name, ()))
        columns.append(column)
    return [{"layer": str(n), RULE: RULE, **column} for n, column in enumerate(columns)]


def _padded(shape: Shape | None) -> Shape | None:
    """Num, depth and sizes; a vector is a map of one position."""
    return None if shape is None else (*shape, *(1,) * (2 - len(shape)))


def _after(layer: Layer, own: Numbers, sources: list[TensorState]) -> TensorState:
    """The state of a layer's output. A flatten keeps the map, up to a linear layer."""
    call, given = layer.call, sources[0].data
    if call is None:
        return TensorState()
    data = _padded(call.y)
    if layer.op == "linear":
        data = (*call.y[:1], call.y[-1], *call.y[1:-1])
    elif given is not None and SPECS[layer.op].family == "loss":
        data = (1, 1, *given[2:])
    elif given != data and (call.y == call.x or (layer.op in NO_LAYER and len(call.y) <= 2)):
        return sources[0]
    axes = layer.field.axes if layer.field is not None else ()
    before = next((s.moved for s in sources if len(s.moved) == len(axes)), (None,) * len(axes))
    steps = own if len(own) == len(axes) else (1,) * len(axes)
    moved: list[Number | None] = []
    for axis, earlier, step in zip(axes, before, steps, strict=True):
        if axis.stride is not None or not axis.regular or earlier is None or step is None:
            moved.append(axis.stride)
        else:
            moved.append(earlier * step)
    return TensorState(data, axes, moved)


def _window(layer: Layer, given: Shape | None) -> SlidingWindow:
    op, call, a = layer.op, layer.call, layer.node.attributes
    window = getattr(a, "window", None)
    if window is not None:
        back = op == "conv_transpose"
        stride = [Fraction(1, s) for s in window.stride] if back else window.stride
        pads: Sequence[tuple[int | None, ...]] = ((None,),)  # unknown input size
        if call is not None:
            pads = transposed_pads(call) if back else window.resolve(call.x[2:])
        elif not isinstance(window.pads, str):
            pads = window.pads
        return SlidingWindow(window.extents, stride, [p for pair in pads for p in pair])
    if call is None:
        return SlidingWindow((None,), (None,), (None,))
    family, sizes = SPECS[op].family, list(zip(call.x[2:], call.y[2:], strict=False))
    if op == "linear":
        return SlidingWindow(_flattened(call, given)[1])
    if family == "pooling":
        bins = [Bins(size, count) for size, count in sizes]
        support = [max(len(b.at(i)) for i in range(b.count)) for b in bins]
        return SlidingWindow(support, [Fraction(b.size, b.count) for b in bins])
    if family == "resizing":
        return SlidingWindow(stride=[Fraction(before, after) for before, after in sizes])
    if op == "pad":
        return SlidingWindow(pads=[p for pair in a.pads[2:] for p in pair])
    return SlidingWindow()


def _flattened(call: Call, given: Shape | None) -> tuple[int, Shape]:
    """Depth and sizes of the map that a linear layer reads."""
    whole = call.attributes.flatten or len(call.x) <= 2
    if whole and given is not None and elements(given[1:]) == elements(call.x[1:]):
        return given[1], given[2:]
    return call.x[-1], ()


def _filter_cells(layer: Layer, given: Shape | None) -> dict[str, str]:
    op, call, a = layer.op, layer.call, layer.node.attributes
    if op == "linear":
        depth = "?" if call is None else str(_flattened(call, given)[0])
        cells = depth, "1", str(a.out_features)
    elif op in ("conv", "conv_transpose"):
        depth = "?" if call is None else str(call.x[1] // a.groups)
        cells = depth, _dims(a.window.dilation), str(a.out_channels)
    else:
        return dict.fromkeys(FILTER, NONE if op in SPECS else "?")
    return dict(zip(FILTER, cells, strict=True))


def _rf_cells(now: TensorState) -> dict[str, str]:
    if now.data is None:
        return dict.fromkeys(FIELD, "?")
    centres = [axis.offset if axis.aligned and axis.regular else None for axis in now.axes]
    offsets = [None if centre is None else centre + 1 for centre in centres]
    rows: tuple[Numbers, ...] = ([axis.size for axis in now.axes], offsets, now.moved)
    return {name: _dims(row, NONE) for name, row in zip(FIELD, rows, strict=True)}


def _data_cells(data: Shape | None) -> dict[str, str]:
    if data is None:
        return dict.fromkeys(DATA, "?")
    return dict(zip(DATA, (_dims(data[2:]), str(data[1]), str(data[0])), strict=True))


def _bytes(layer: Layer, report: Report) -> tuple[int | None, int | None]:
    """Bytes of the outputs and of the parameters of a layer."""
    params = _param_bytes(layer) if report.params_known(layer.node) else None
    return None if layer.call is None else layer.convention_activation_bytes, params


def _param_bytes(layer: Layer) -> int:
    """Bytes of the parameters that the convention counts, each array in its own dtype."""
    dtypes = {param.dtype for param in layer.cost.first}
    if len(dtypes) > 1:
        return sum(p.bytes for p in layer.cost.first if p.learnable or p.role == "statistic")
    return storage_bytes(layer.params, dtypes.pop() if dtypes else "fp32")


def _totals(report: Report) -> TextTable:
    layers = [layer for layer in report.layers if layer.op not in NO_LAYER]
    data = [None if tensor.shape is None else tensor.bytes for tensor in report.inputs]
    data += [_bytes(layer, report)[0] for layer in layers]
    params = [_bytes(layer, report)[1] for layer in layers]
    elements = sum(layer.params for layer in layers)
    count = plus_unknown(number_text(elements, 2), elements, None in params)
    signs = ("", ABOUT if any(layer.has_estimated_sizes for layer in layers) else "")
    texts = []
    for parts, sign in zip((params, data), signs, strict=True):
        total = sum(part or 0 for part in parts)
        texts.append(plus_unknown(sign + memory_text(total), total, None in parts))
    shown = [f"{texts[0]} ({count} parameters)", f"{texts[1]} (for batch size {report.batch})"]
    claimed = claims_of(report.graph, "matconvnet").totals or shown
    return [["parameter memory", claimed[0]], ["data memory", claimed[1]]]


def _dims(values: Numbers, blank: str = "?") -> str:
    """At least height and width joined by x, one number if equal; `blank` if one is None."""
    sizes = [value for value in values if value is not None]
    if len(sizes) < len(values):
        return blank
    sizes += [1] * (2 - len(sizes))
    return "x".join(
        number_text(value, 4) for value in (sizes if len(set(sizes)) > 1 else sizes[:1])
    )


@lru_cache(4096)
def number_text(value: Number, digits: int) -> str:
    """A number as C's %g with `digits` significant digits, halves away from zero."""
    with localcontext(prec=digits, rounding=ROUND_HALF_UP):
        near = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{float(near):.{digits}g}"


def memory_text(size_bytes: int | None) -> str:
    """Bytes as B, KB, MB or GB by 1024 without decimals, halves away from zero."""
    if size_bytes is None:
        return "?"
    power = min((max(size_bytes, 1).bit_length() - 1) // 10, 3)
    unit = 1024**power
    return f"{(2 * size_bytes + unit) // (2 * unit)}{('B', 'KB', 'MB', 'GB')[power]}"
