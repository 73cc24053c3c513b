"""What `summary(model, input_size)` of torchsummary 1.5.1 prints: one row per call of a module.

Rows are in the order in which the calls return, so a block follows its layers. The model itself and
modules derived from nn.Sequential or nn.ModuleList have no row. A row counts `weight` and `bias` of
its module alone, each time it is called.

A graph has operations, not calls, which limits this notation:

- A module that computes nothing, such as nn.Identity, has no row.
- A block that is called twice in a row, with nothing between, is one row.
- A block is assumed to return the tensors that are used outside it, in the order in which they are
  computed.
- torchsummary raises an error on models without parameters, on modules that take a list (the layers
  of torchvision's densenets) and on modules that return nested tuples (nn.LSTM) or None
  (nn.MultiheadAttention). Here they have rows.
- A network without modules has one row per layer, and so have names that PyTorch does not allow
  (`inception_3a/1x1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from msgspec import Struct

from layerscope.analysis.costs import storage_of
from layerscope.escaping import visible
from layerscope.graph.types import Param, Shape
from layerscope.notations.module import folders_of, leaf_class
from layerscope.report import Layer, Report
from layerscope.report.numbers import ABOUT, at_least, plus_unknown

RULE, DOUBLE_RULE = "-" * 64, "=" * 64
ARRAYS = ("weight", "bias")
MIB = 1024**2.0
# Classes without a row in networks that are not captured from a live model, where a module has only
# the name of its class: those of torchvision that are derived from nn.Sequential.
CONTAINERS = (
    "Sequential", "ModuleList", "AnyStage", "BottleneckTransform", "Conv2dNormActivation",
    "Conv3dNormActivation", "ConvNormActivation", "MLP", "MLPBlock", "SimpleStemIN",
    "_Transition",
)  # fmt: skip


class CalledModule(Struct, frozen=True):
    """One call of a module: its path, and the layers that ran in it."""

    path: str
    layers: tuple[Layer, ...]


class SummaryRow(Struct, frozen=True):
    """One row: class, output shapes, elements of weight and bias, and those that are trainable."""

    kind: str
    outputs: tuple[Shape | None, ...]
    params: int
    trainable: int
    has_params: bool = True  # False: an unknown op, whose arrays may be missing

    @property
    def shape_text(self) -> str:
        """The shape with -1 for the batch; a list of shapes if there are several."""
        texts = [_shape_text(shape) for shape in self.outputs]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    @property
    def params_text(self) -> str:
        """The number of parameters; of several layers `≥` what is known, `?` if nothing is."""
        return at_least(f"{self.params:,}", not self.has_params)

    @property
    def elements(self) -> int:
        """The product of all numbers in the printed shape."""
        return prod(-prod(shape[1:]) for shape in self.outputs if shape)


def write(report: Report) -> str:
    """The table and the totals below it."""
    rows = list(_rows(report))
    lines = [RULE, _line("Layer (type)", "Output Shape", "Param #"), DOUBLE_RULE]
    lines += [
        _line(f"{visible(row.kind)}-{n}", row.shape_text, row.params_text)
        for n, row in enumerate(rows, 1)
    ]
    params = sum(row.params for row in rows)
    trainable = sum(row.trainable for row in rows)
    sizes = [tensor.shape[1:] for tensor in report.inputs if tensor.shape]
    input_size = prod(map(prod, sizes)) * 4.0 / MIB
    output_size = abs(2.0 * sum(row.elements for row in rows) * 4.0 / MIB)
    params_size = params * 4.0 / MIB
    unknown, fewer = bool(report.coverage.unknown), not all(row.has_params for row in rows)

    about = ABOUT if any(layer.has_estimated_sizes for layer in report.layers) else ""

    def size(value: float, bound: bool, sign: str = "") -> str:
        return plus_unknown(f"{sign}{value:.2f}", int(value > 0), bound)

    total = params_size + output_size + input_size
    frozen = params - trainable
    lines += [
        DOUBLE_RULE,
        f"Total params: {plus_unknown(f'{params:,}', params, fewer)}",
        f"Trainable params: {plus_unknown(f'{trainable:,}', trainable, fewer)}",
        f"Non-trainable params: {plus_unknown(f'{frozen:,}', frozen, fewer)}",
        RULE,
        f"Input size (MB): {input_size:.2f}",
        f"Forward/backward pass size (MB): {size(output_size, unknown, about)}",
        f"Params size (MB): {size(params_size, fewer)}",
        f"Estimated Total Size (MB): {size(total, unknown, about)}",
        RULE,
    ]
    return "\n".join(lines) + "\n"


def _line(kind: str, shape: str, params: str) -> str:
    return f"{kind:>20}  {shape:>25} {params:>15}"


def _shape_text(shape: Shape | None) -> str:
    return "?" if shape is None else str([-1, *shape[1:]] if shape else [])


def _rows(report: Report) -> Iterator[SummaryRow]:
    graph = report.graph
    classes = {path: kind.rpartition(".")[2] for path, kind in graph.kinds.items()}
    if not graph.kinds:  # a network that is not captured from PyTorch
        classes = {path: kind.partition("(")[0] for path, kind in graph.modules.items()}
    arrays = _arrays(report)
    readers = readers_by_tensor(report)
    for call in _calls(report):
        kind = classes.get(call.path) or leaf_class(call.path, call.layers)
        if call.path in graph.containers if graph.autograd else kind in CONTAINERS:
            continue
        own = {
            param.name: (param, storage_of(layer.node, param, layer.node.ties))
            for layer in call.layers
            if layer.node.module == call.path or not graph.modules
            for param in layer.cost.params
            if param.name in ARRAYS
        } or {name: arrays[path] for name in ARRAYS if (path := f"{call.path}.{name}") in arrays}
        count = sum(param.elements for param, _ in own.values())
        frozen = "weight" not in own or own["weight"][1] in graph.frozen
        outputs = output_shapes(call.layers, readers, set(graph.outputs))
        owned = [layer for layer in call.layers if layer.node.module == call.path]
        complete = all(report.params_known(layer.node) for layer in owned or call.layers[-1:])
        yield SummaryRow(kind, outputs, count, 0 if frozen else count, complete)


def _arrays(report: Report) -> dict[str, tuple[Param, str]]:
    """Arrays by their path in the model, with their storage."""
    free = (*report.graph.params, *report.graph.unused)
    found = {param.name: (param, param.storage or param.name) for param in free}
    for layer in report.layers:
        for param in layer.cost.params:
            storage = storage_of(layer.node, param, layer.node.ties)
            found.setdefault(storage, (param, storage))
    return found


def _calls(report: Report) -> Iterator[CalledModule]:
    """Calls of modules in the order in which they return."""
    is_flat, folders = not report.graph.modules, folders_of(report.graph.modules)
    running: list[tuple[str, list[Layer]]] = []  # calls that have not returned, outermost first
    for layer in report.layers:
        if is_flat:
            yield CalledModule(layer.name, (layer,))
            continue
        paths = [".".join(layer.scope[: n + 1]) for n in range(len(layer.scope))]
        scope = [path for path in paths if path not in folders]
        kept = 0
        while kept < min(len(running), len(scope)) and running[kept][0] == scope[kept]:
            kept += 1
        yield from _returned(running, kept)
        running += [(path, []) for path in scope[kept:]]
        for _, inside in running:
            inside.append(layer)
        if layer.node.module:
            yield CalledModule(layer.node.module, (layer,))
    yield from _returned(running, 0)


def _returned(running: list[tuple[str, list[Layer]]], kept: int) -> Iterator[CalledModule]:
    """End all calls but the outermost `kept`, innermost first."""
    while len(running) > kept:
        path, inside = running.pop()
        yield CalledModule(path, tuple(inside))


def readers_by_tensor(report: Report) -> dict[str, list[Layer]]:
    """The layers that read each tensor."""
    readers: dict[str, list[Layer]] = {}
    for layer in report.layers:
        for name in layer.node.inputs:
            readers.setdefault(name, []).append(layer)
    return readers


def output_shapes(
    layers: tuple[Layer, ...], readers: dict[str, list[Layer]], results: Iterable[str]
) -> tuple[Shape | None, ...]:
    """Shapes of a call's outputs: of all its tensors that are used outside, or of its last one."""
    last = layers[-1]
    if len(layers) == 1:
        return tuple([tensor.shape for tensor in last.outputs])
    inside = {layer.name for layer in layers}

    def is_used(name: str) -> bool:
        outside = any(layer.name not in inside for layer in readers.get(name, ()))
        return outside or name in results

    used = [tensor.shape for layer in layers for tensor in layer.outputs if is_used(tensor.name)]
    return tuple(used) or (last.outputs[0].shape,)
