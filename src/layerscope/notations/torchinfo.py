"""What `summary(model, input_size)` of torchinfo 1.8 prints: one row per call of a module.

Rows are in the order in which the calls start, down to three levels. `layerscope.summary`, which
sees the calls themselves, prints the same rows with exact totals; a graph has operations, not
calls, which limits this notation:

- A module that computes nothing, such as nn.Identity, has no row.
- A block that is called twice in a row, with nothing between, is one row. So is an nn.Sequential
  whose modules are called without it, which has no output in torchinfo.
- A block is assumed to return the tensor that is used outside it first.
- A network without modules has one row per layer.

Mult-adds are those of the convention, by default torchinfo's own. Their unit is `(G)`, as torchinfo
prints it up to Python 3.10; since then it prints `(Units.GIGABYTES)`. Totals that lack unknown
figures end with `+ ?`.
"""

from __future__ import annotations

from math import prod

from msgspec.structs import replace

from layerscope.analysis.costs import storage_of
from layerscope.formats.torch.module_log import LoggedCall, ModuleLog
from layerscope.graph.types import Shape, storage_bytes
from layerscope.notations.module import folders_of, leaf_class, leaf_text
from layerscope.notations.module_rows import ModuleRow, module_rows
from layerscope.notations.module_table import SummaryOptions, table_lines
from layerscope.notations.torchsummary import output_shapes, readers_by_tensor
from layerscope.report import Layer, Report
from layerscope.report.modules import figure_of_layer
from layerscope.report.numbers import ABOUT, plus_unknown

OPTIONS = SummaryOptions(("output_size", "num_params"), row_settings=frozenset(("depth",)))
LISTS = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")  # never called
UNITS = ((10**12, "T"), (10**9, "G"))


def write(report: Report) -> str:
    """The table and the totals below it."""
    rows = _module_rows(report) if report.graph.modules else tuple(_layer_rows(report))
    rule, lines = table_lines(report, rows, OPTIONS)
    return "\n".join([*lines, *_totals(report, rows, rule), rule]) + "\n"


def _module_rows(report: Report) -> tuple[ModuleRow, ...]:
    rows = module_rows(report, module_log(report))
    if report.graph.kinds:
        return rows
    # not captured from PyTorch: a module has only the name of its class, a layer not even that
    classes = {path: kind.partition("(")[0] for path, kind in report.graph.modules.items()}
    classes[""] = classes.get("") or report.name
    return tuple(
        [
            replace(row, class_name=classes.get(row.path) or leaf_class(row.path, row.own))
            for row in rows
        ]
    )


def module_log(report: Report) -> ModuleLog:
    """Calls of modules and the paths of their parameters, as far as a graph determines them."""
    arrays: dict[str, str] = {}  # path -> storage
    for layer in report.layers:
        for param in layer.cost.params:
            storage = storage_of(layer.node, param, layer.node.ties)
            path = f"{layer.node.module}.{param.name}" if layer.node.module else storage
            arrays.setdefault(path, storage)
    return ModuleLog(
        calls=_calls(report),
        arrays=tuple(arrays),
        ties={path: storage for path, storage in arrays.items() if path != storage},
    )


def _calls(report: Report) -> tuple[LoggedCall, ...]:
    """Calls of the model and of modules with other modules inside, in the order of their start."""
    layers, graph = report.layers, report.graph
    found: list[tuple[str, int, int]] = [("", 0, len(layers))]
    running: list[int] = []  # calls in `found` that have not returned, outermost first
    for at, layer in enumerate(layers):
        scope = [".".join(layer.scope[: n + 1]) for n in range(len(layer.scope))]
        kept = 0
        while kept < min(len(running), len(scope)) and found[running[kept]][0] == scope[kept]:
            kept += 1
        del running[kept:]
        for path in scope[kept:]:
            running.append(len(found))
            found.append((path, at, at))
        for index in running:
            found[index] = (*found[index][:2], at + 1)
    readers, results = readers_by_tensor(report), set(graph.outputs)

    def logged(path: str, start: int, end: int) -> LoggedCall:
        inside = layers[start:end]
        output = output_shapes(inside, readers, results)[0] if inside else ()
        return LoggedCall(path, start, end, _first_input(inside), output or ())

    folders = folders_of(graph.modules)
    return tuple([logged(*c) for c in found if c[0] not in folders and _is_called(report, c[0])])


def _is_called(report: Report, path: str) -> bool:
    kind = report.graph.kinds.get(path) or report.graph.modules.get(path, "")
    return kind.rpartition(".")[2].partition("(")[0] not in LISTS


def _first_input(inside: tuple[Layer, ...]) -> Shape:
    return inside[0].inputs[0].shape or () if inside and inside[0].inputs else ()


def _layer_rows(report: Report) -> list[ModuleRow]:
    """Rows of a network without modules: the network, and one per layer."""
    layers, frozen = report.layers, report.graph.frozen
    graph_outputs = [report.tensors[name].shape for name in report.graph.outputs[:1]]

    def row(kind: str, path: str, members: tuple[Layer, ...], shape: Shape | None) -> ModuleRow:
        arrays = {
            storage_of(layer.node, param, layer.node.ties): param.elements
            for layer in members
            for param in layer.cost.params
            if param.learnable
        }
        trainable = sum([count for storage, count in arrays.items() if storage not in frozen])
        return ModuleRow(
            class_name=kind, var_name=path, path=path, depth=1 if path else 0, depth_index=0,
            executed=True, is_leaf_layer=bool(path), is_recursive=False, input_size=[],
            output_size=list(shape or ()), kernel_size=None, groups=None,
            num_params=sum(arrays.values()), trainable_params=trainable, params=(),
            own=members if path else (), all=members,
        )  # fmt: skip

    rows = [row(report.name, "", layers, graph_outputs[0] if graph_outputs else None)]
    for n, layer in enumerate(layers, 1):
        found = row(leaf_text(layer)[0], layer.name or "layer", (layer,), layer.output)
        rows.append(replace(found, depth_index=n))
    return rows


# -- totals


def _totals(report: Report, rows: tuple[ModuleRow, ...], rule: str) -> list[str]:
    params = sum(
        [
            row.num_params if row.is_leaf_layer else max(row.own_params, 0)
            for row in rows
            if not row.is_recursive
        ]
    )
    fixed = report.total_params - report.trainable_params
    mult_adds = sum([figure_of_layer(layer) for layer in report.layers])
    inputs = sum([tensor.bytes for tensor in report.inputs])
    outputs = 2 * sum([_output_bytes(row) for row in rows if row.is_leaf_layer and row.num_params])
    stored = sum([_param_bytes(row) for row in rows if row.is_leaf_layer and not row.is_recursive])
    unknown = bool(report.coverage.unknown)
    about = ABOUT if "activation_bytes" in report.estimates else ""
    unit, number = _in_units(mult_adds)

    def megabytes(size: int, sign: str = "") -> str:
        return plus_unknown(f"{sign}{size / 1e6:0.2f}", size, unknown)

    return [
        f"Total params: {plus_unknown(f'{params:,}', params, unknown)}",
        f"Trainable params: {plus_unknown(f'{params - fixed:,}', params - fixed, unknown)}",
        f"Non-trainable params: {plus_unknown(f'{fixed:,}', fixed, unknown)}",
        f"Total mult-adds ({unit}): {plus_unknown(number, mult_adds, unknown)}",
        rule,
        f"Input size (MB): {inputs / 1e6:0.2f}",
        f"Forward/backward pass size (MB): {megabytes(outputs, about)}",
        f"Params size (MB): {megabytes(stored)}",
        f"Estimated Total Size (MB): {megabytes(inputs + outputs + stored, about)}",
    ]


def _in_units(count: int) -> tuple[str, str]:
    """A unit, and the count in it."""
    for size, unit in (*UNITS, (10**6, "M")):
        if count >= size or unit == "M":
            break
    text = f"{count // size:,}" if count % size == 0 else f"{count / size:,.2f}"
    return unit, text


def _output_bytes(row: ModuleRow) -> int:
    """Bytes of the first output of a call; torchinfo doubles those of modules with parameters."""
    dtype = row.all[-1].outputs[0].dtype if row.all else "fp32"
    return storage_bytes(prod(row.output_size), dtype)


def _param_bytes(row: ModuleRow) -> int:
    arrays = {
        storage_of(layer.node, param, layer.node.ties): param.bytes
        for layer in row.all
        for param in layer.cost.params
        if param.learnable
    }
    return sum(arrays.values())
