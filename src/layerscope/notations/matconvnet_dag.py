r"""A DagNN as MatConvNet's `print(…, 'all', true)` prints it: as text, csv or LaTeX.

Tables of layers, parameters, variables, memory and receptive fields; `parts` chooses some of them
and `max_columns` is the option MaxNumColumns. Rows, order, widths, blocks of 18 and numbers follow
print.m (vlfeat/matconvnet 0b18caf), getVarSizes.m and getVarReceptiveFields.m (8ccdc96), which were
read and not run, without MATLAB and without a printed document to compare with. Differences:
- a loss reads `label` besides its data, which is in no file: sizes `n/a`, memory `NaN`;
- the depth after a transposed convolution is right (MatConvNet takes a wrong side of the filters),
  and layers whose sizes MatConvNet cannot infer have them; empty lines at the end are left out;
- a layer that MatConvNet does not have has its op as type; a linear layer is a Conv of 1x1 filters;
- arrays of other networks are named as by `fromSimpleNN`: f, b; for batch norm m, b, x;
- quotes in csv and all special characters of LaTeX are escaped, MatConvNet escapes `\` and `_`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.analysis.costs import storage_of
from layerscope.analysis.fields import Number
from layerscope.errors import UnknownName, UsageError
from layerscope.graph.types import Param, Shape, elements, storage_bytes
from layerscope.notations.matconvnet import NONE, memory_text, number_text
from layerscope.notations.matconvnet_fields import UNIT, fields
from layerscope.notations.matconvnet_styles import (
    MOST_COLUMNS,
    RULE,
    Style,
    aligned_csv_table,
    in_blocks,
    latex_table,
    text_table,
)
from layerscope.ops import SPECS, display_name
from layerscope.report import Report
from layerscope.report.numbers import ABOUT, plus_unknown
from layerscope.report.types import Layer

PARTS = ("layers", "params", "vars", "memory", "fields")
PACKAGE = "dagnn."
LABEL = "label"
SUFFIXES = {
    "batch_norm": {"weight": "m", "bias": "b"},
    "": {"weight": "f", "bias": "b"},
}
MOMENTS = "x"
FIRST_COLUMN = "(:,1)"  # suffix of the mean in names of MatConvNet files

Parts = Sequence[str] | str | None
Columns = list[list[str]]  # the first one has the names of the rows


class DagLayer(Struct, frozen=True):
    """A layer of a DagNN: its class, and the names of its variables and parameters."""

    name: str
    block: str  # class, such as dagnn.Conv
    inputs: list[str]
    outputs: list[str]
    params: list[str]
    pads: Sequence[int] | None
    stride: Sequence[int] | None
    has_params: bool = True  # False: an unknown op, whose arrays may be missing


class DagParam(Struct, frozen=True):
    """A parameter of a DagNN, and the number of layers that use it."""

    sizes: Shape
    bytes: int
    users: int = 1
    sign: str = ""  # stored bytes are exact


class DagVariable(Struct, frozen=True):
    """A variable of a DagNN; sizes are height, width, depth, num, or None if unknown."""

    sizes: Shape | None
    bytes: int | None
    fanin: int
    fanout: int
    sign: str = ""  # of the bytes: `~` if they are an estimate


class Dag(Struct, frozen=True):
    """A network as a DagNN: layers in order, parameters and variables by name."""

    layers: list[DagLayer]
    params: dict[str, DagParam]
    variables: dict[str, DagVariable]


def write(report: Report, parts: Parts = None, max_columns: int = MOST_COLUMNS) -> str:
    """The tables, one under the other."""
    return _join(report, text_table, parts, max_columns)


def write_csv(report: Report, parts: Parts = None, max_columns: int = MOST_COLUMNS) -> str:
    """The tables as csv, cells aligned."""
    return _join(report, aligned_csv_table, parts, max_columns)


def write_latex(report: Report, parts: Parts = None, max_columns: int = MOST_COLUMNS) -> str:
    """The tables as LaTeX tabulars."""
    return _join(report, latex_table, parts, max_columns)


def chosen_parts(parts: Parts, choices: Sequence[str]) -> tuple[str, ...]:
    """The parts to print, in MatConvNet's order; all if None."""
    if parts is None:
        return tuple(choices)
    names = [part.strip() for part in parts.split(",")] if isinstance(parts, str) else list(parts)
    for name in names:
        if name not in choices:
            raise UnknownName("part", name, choices, f"; choose from {', '.join(choices)}")
    if not names:
        raise UsageError(f"--parts is empty; choose from {', '.join(choices)}")
    return tuple(part for part in choices if part in names)


def dag(report: Report) -> Dag:
    """The network as a DagNN."""
    params: dict[str, DagParam] = {}
    layers = [_layer(layer, _params(layer, params), report) for layer in report.layers]
    return Dag(layers, params, _variables(report))


def _join(report: Report, style: Style, parts: Parts, max_columns: int) -> str:
    chosen = chosen_parts(parts, PARTS)
    net = dag(report)
    tables: list[Columns] = []
    if "layers" in chosen:
        head = ["func", RULE, "type", "inputs", "outputs", "params", "pad", "stride"]
        tables.append([head, *map(_layer_column, net.layers)])
    if "params" in chosen:
        tables.append([["param", RULE, "dims", "mem", "fanout"], *_param_columns(net.params)])
    if "vars" in chosen:
        head = ["var", RULE, "dims", "mem", "fanin", "fanout"]
        tables.append([head, *_variable_columns(net.variables)])
    if "memory" in chosen:
        tables.append(_memory(net, report))
    if "fields" in chosen:
        tables += _fields(report, net.variables)
    text = ""
    for head, *columns in tables:  # an empty line after each block, and one after the table
        blocks = in_blocks(head, columns, max_columns)
        text += "".join(style(block) + "\n" for block in blocks) + "\n"
    return text.rstrip("\n") + "\n"


def _memory(net: Dag, report: Report) -> Columns:
    """Sums of parameters and of variables, marked if a part of them is unknown."""
    param_bytes = sum(each.bytes for each in net.params.values())
    var_bytes = sum(each.bytes or 0 for each in net.variables.values())
    sign = ABOUT if any(each.sign for each in net.variables.values()) else ""
    no_params = not report.params_complete
    no_vars = not report.memory.complete and bool(report.coverage.unknown)
    return [
        ["params", "vars", "total"],
        [
            _sum_text(param_bytes, no_params),
            _sum_text(var_bytes, no_vars, sign),
            _sum_text(param_bytes + var_bytes, no_params or no_vars, sign),
        ],
    ]


def dims_text(values: Sequence[Number] | None) -> str:
    """Sizes joined by x, one if all are equal."""
    if values is None or not values:
        return NONE
    texts = [number_text(value, 4) for value in values]
    return "x".join(texts) if len(set(values)) > 1 else texts[0]


def _sum_text(size_bytes: int, unknown: bool, sign: str = "") -> str:
    """A total, with `+ ?` if a part of it is unknown."""
    return plus_unknown(sign + memory_text(size_bytes), size_bytes, unknown)


def mem_text(size_bytes: int | None) -> str:
    """Bytes as text, NaN if unknown."""
    return "NaN" if size_bytes is None else memory_text(size_bytes)


# -- layers


def _layer(layer: Layer, params: list[str], report: Report) -> DagLayer:
    outputs = [tensor.name for tensor in layer.outputs]
    return DagLayer(
        layer.name, _block(layer), _inputs(layer, report), outputs, params, *_window(layer),
        report.params_known(layer.node),
    )  # fmt: skip


def _layer_column(layer: DagLayer) -> list[str]:
    params = layer.params if layer.has_params else [*layer.params, "?"]
    names = [" ".join(each) for each in (layer.inputs, layer.outputs, params)]
    block = layer.block.removeprefix(PACKAGE)
    return [layer.name, RULE, block, *names, dims_text(layer.pads), dims_text(layer.stride)]


def _block(layer: Layer) -> str:
    """The class of a layer; its op if MatConvNet has no class for it."""
    source_op = layer.node.source.op if layer.node.source is not None else ""
    if source_op.startswith(PACKAGE):
        return source_op
    name = "Loss" if _is_loss(layer) else display_name(layer.op, "dagnn")
    return PACKAGE + name if name else layer.op


def _is_loss(layer: Layer) -> bool:
    return layer.op in SPECS and SPECS[layer.op].family == "loss"


def _inputs(layer: Layer, report: Report) -> list[str]:
    stored = {param.name for param in report.graph.params}
    names = [tensor.name for tensor in layer.inputs if tensor.name not in stored]
    return [*names, LABEL] if _is_loss(layer) and len(names) == 1 else names


def _window(layer: Layer) -> tuple[Sequence[int] | None, Sequence[int] | None]:
    """Pads and strides of a layer that MatConvNet calls a filter."""
    if layer.op == "linear" or layer.op.startswith("global_"):
        return (0, 0, 0, 0), (1, 1)
    window = getattr(layer.node.attributes, "window", None)
    if window is None or layer.op == "conv_transpose":
        return None, None
    stride = (*window.stride, 1)[: max(window.rank, 2)]
    if isinstance(window.pads, str) and layer.call is None:
        return None, stride
    pads = window.resolve(layer.call.x[2:] if layer.call is not None else ())
    flat = [pad for pair in pads for pad in pair]
    return (*flat, 0, 0) if len(flat) == 2 else flat, stride


# -- parameters


def _params(layer: Layer, found: dict[str, DagParam]) -> list[str]:
    """The parameter names of a layer; the parameters are added to `found`."""
    names: list[str] = []
    moments = [param for param in layer.cost.params if param.role == "statistic"]
    for param in layer.cost.params:
        if param in moments[1:]:
            continue
        paired = param in moments and len(moments) == 2
        name = _name(layer, param, paired)
        sizes = (*param.shape, 2) if paired else _sizes(layer, param)
        size_bytes = sum(part.bytes for part in (moments if paired else [param]))
        users = found[name].users + 1 if name in found else 1
        found[name] = DagParam(sizes, size_bytes, users)
        names.append(name)
    return names


def _name(layer: Layer, param: Param, paired: bool) -> str:
    storage = param.storage or storage_of(layer.node, param, layer.node.ties)
    if storage != f"{layer.name}.{param.name}":
        return storage.removesuffix(FIRST_COLUMN)
    if paired:
        return layer.name + MOMENTS
    suffixes = SUFFIXES.get(layer.op, SUFFIXES[""])
    return layer.name + suffixes.get(param.name, f"_{param.name}")


def _sizes(layer: Layer, param: Param) -> Shape:
    """MATLAB sizes: filters last, a vector as a column, no trailing ones after the second."""
    shape = param.shape
    if layer.op in ("conv", "conv_transpose") and len(shape) > 2:
        shape = (*shape[2:], *(1,) * (4 - len(shape)), shape[1], shape[0])
    elif layer.op == "linear" and len(shape) == 2:
        shape = (1, 1, shape[1], shape[0])
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    return (*shape, *(1,) * (2 - len(shape)))


def _param_columns(params: Mapping[str, DagParam]) -> list[list[str]]:
    return [
        [name, RULE, dims_text(each.sizes), mem_text(each.bytes), str(each.users)]
        for name, each in params.items()
    ]


# -- variables


def _variables(report: Report) -> dict[str, DagVariable]:
    """The variables in the order in which layers name them."""
    fanin: dict[str, int] = {}
    fanout: dict[str, int] = {}
    planes: dict[str, Shape | None] = {t.name: _plane(t.shape) for t in report.inputs}
    for layer in report.layers:
        for name in _inputs(layer, report):
            fanin.setdefault(name, 0)
            fanout[name] = fanout.get(name, 0) + 1
        for tensor in layer.outputs:
            fanin[tensor.name] = fanin.get(tensor.name, 0) + 1
            planes[tensor.name] = _plane(tensor.shape)
            if _is_loss(layer) and layer.call is not None and layer.call.x:
                planes[tensor.name] = (1, 1, 1, layer.call.x[0])  # one number an image
    found = {}
    about = {t.name for x in report.layers if x.has_estimated_sizes for t in x.outputs}
    for name, count in fanin.items():
        sizes, size_bytes = planes.get(name), None
        if sizes is not None:
            size_bytes = storage_bytes(elements(sizes), report.tensors[name].dtype)
        sign = ABOUT if name in about and size_bytes is not None else ""
        found[name] = DagVariable(sizes, size_bytes, count, fanout.get(name, 0), sign)
    return found


def _plane(shape: Shape | None) -> Shape | None:
    """Height, width, depth, num."""
    if shape is None:
        return None
    num, depth, *sizes = (*shape, *(1,) * (2 - len(shape)))
    return (*sizes, *(1,) * (2 - len(sizes)), depth, num)


def _variable_columns(variables: Mapping[str, DagVariable]) -> list[list[str]]:
    return [
        [
            name,
            RULE,
            dims_text(each.sizes),
            each.sign + mem_text(each.bytes),
            str(each.fanin),
            str(each.fanout),
        ]
        for name, each in variables.items()
    ]


def _fields(report: Report, variables: Mapping[str, DagVariable]) -> list[list[list[str]]]:
    """One table per input variable: the receptive fields of all variables in it."""
    tables = []
    seen = fields(report)
    for origin in (name for name, each in variables.items() if not each.fanin):
        columns = [[f"rf in '{origin}'", RULE, "size", "stride", "offset"]]
        for name in variables:
            axes = [UNIT] if name == origin else seen.get(origin, {}).get(name, [])
            columns.append([name, RULE, *(dims_text([axis[n] for axis in axes]) for n in range(3))])
        tables.append(columns)
    return tables
