"""What `stat(model, input_size)` of torchstat 0.0.7 prints: a table of modules without children.

Figures are of one image and by torchstat's own rules, whatever the convention: MAdd counts
multiplications and additions, Flops one per multiply-add, both with torchstat's exceptions.

- A module has one row, in the order of declaration. If it is called several times, the row has the
  figures of the last call. Functions, which torchstat does not see, have no row.
- A module that computes nothing, such as nn.Identity, has no row, as a graph does not have it.
- A network without modules has one row per layer.
- torchstat prints 0 for modules that it has no rule for, and says so above the table. Here they are
  `?` if they compute something, and totals that lack them end with `+ ?`.
- Nothing is run, so all durations are `?`.
- torchstat repeats MemRead and MemWrite of the last row in its row `total`. Here they are sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from msgspec import Struct

from layerscope.analysis.costs import storage_of
from layerscope.escaping import visible
from layerscope.graph.types import Shape, storage_bytes
from layerscope.notations.module import folders_of
from layerscope.ops import FREE, SPECS, Call
from layerscope.report import Layer, Report
from layerscope.report.numbers import ABOUT, plus_unknown

TITLES = (
    "module name", "input shape", "output shape", "params", "memory(MB)", "MAdd", "Flops",
    "MemRead(B)", "MemWrite(B)", "duration[%]", "MemR+W(B)",
)  # fmt: skip
NUMBERS = (3, 7, 8, 10)  # columns of numbers, whose titles have a space before them
Rule = Callable[[Call], int]


class StatRow(Struct, frozen=True):
    """One module; None: unknown, or torchstat has no rule for it."""

    name: str
    input: Shape | None
    output: Shape | None
    params: int | None
    madd: int | None
    flops: int | None
    read: int | None  # bytes
    written: int | None

    @property
    def moved(self) -> int | None:
        """Bytes read and written."""
        return None if self.read is None or self.written is None else self.read + self.written

    @property
    def memory(self) -> float | None:
        """MiB of the output in fp32."""
        return None if self.output is None else prod(self.output) * 4 / 1024**2


def write(report: Report) -> str:
    """The table and the totals below it."""
    rows = stat_rows(report)
    params, madd, flops, read, written, moved = [
        _Sum([getattr(row, name) for row in rows])
        for name in ("params", "madd", "flops", "read", "written", "moved")
    ]
    memory = sum([row.memory or 0.0 for row in rows])
    about = ABOUT if "activation_bytes" in report.estimates else ""
    lacks_memory = any(row.memory is None for row in rows)
    megabytes = plus_unknown(f"{about}{memory:.2f}", int(memory > 0), lacks_memory)
    table = [(str(n), *_cells(row)) for n, row in enumerate(rows)]
    table.append(
        ("total", " ", " ", " ", params.text(".0"), megabytes, madd.text(".0", ","),
         flops.text(".0", ","), read.text(".0"), written.text(".0"), "?", moved.text(".0"))
    )  # fmt: skip
    lines = _table(table)
    lines += [
        "=" * len(lines[0]),
        f"Total params: {params.text('', ',')}",
        "-" * len(lines[0]),
        f"Total memory: {plus_unknown(f'{about}{memory:.2f}MB', int(memory > 0), lacks_memory)}",
        f"Total MAdd: {madd.shown(f'{_in_units(madd.total, 1000)}MAdd')}",
        f"Total Flops: {flops.shown(f'{_in_units(flops.total, 1000)}Flops')}",
        f"Total MemR+W: {moved.shown(f'{_in_units(moved.total, 1024)}B')}",
    ]
    return "\n".join(lines) + "\n"


class _Sum:
    """A sum, of which a part may be unknown."""

    def __init__(self, values: Sequence[int | None]) -> None:
        self.total = sum([value or 0 for value in values])
        self.unknown = None in values

    def shown(self, text: str) -> str:
        """A text of the sum, marked if it lacks a part."""
        return plus_unknown(text, self.total, self.unknown)

    def text(self, end: str, separator: str = "") -> str:
        """The sum as a number."""
        return self.shown(f"{self.total:{separator}}{end}")


def _cells(row: StatRow) -> tuple[str, ...]:
    def number(value: int | None, separator: str = "") -> str:
        return "?" if value is None else f"{value:{separator}}.0"

    memory = "?" if row.memory is None else f"{row.memory:.2f}"
    return (
        visible(row.name), _shape_text(row.input), _shape_text(row.output), number(row.params),
        memory, number(row.madd, ","), number(row.flops, ","), number(row.read),
        number(row.written), "?", number(row.moved),
    )  # fmt: skip


def _shape_text(shape: Shape | None) -> str:
    return "?" if shape is None else " ".join([f"{size:>3}" for size in shape])


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines as pandas prints a frame: columns aligned right, with a space before each cell."""
    index = max(len(row[0]) for row in rows)
    lines = [" " * index, *(row[0].ljust(index) for row in rows)]
    for n, title in enumerate(TITLES):
        cells = [row[n + 1] for row in rows]
        width = max([len(title) + (n in NUMBERS), *(len(cell) + 1 for cell in cells)])
        texts = [text.rjust(width) for text in (title, *cells)]
        lines = [f"{line} {text}" for line, text in zip(lines, texts, strict=True)]
    return lines


def _in_units(count: int, step: int) -> str:
    for power, unit in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if count >= step**power:
            return f"{round(count / float(step) ** power, 2)}{unit}"
    return str(count)


# -- rows


def stat_rows(report: Report) -> list[StatRow]:
    """One row per module without children, by its last call."""
    modules = report.graph.modules
    parents = {path.rpartition(".")[0] for path in modules if path} | folders_of(modules)
    calls: dict[str, list[Layer]] = {}
    for layer in report.layers:
        path = layer.node.module or ".".join(layer.scope)
        if not modules:
            calls[layer.name] = [layer]
        elif layer.node.module:
            calls[path] = [layer]
        elif path in modules and path not in parents:
            calls.setdefault(path, []).append(layer)  # functions of a module without children
    numbers = {path: n for n, path in enumerate(modules)}
    order = sorted(calls, key=lambda path: numbers.get(path, len(numbers)))
    return [_row(report, path, calls[path]) for path in order]


def _row(report: Report, path: str, layers: list[Layer]) -> StatRow:
    first, last = layers[0], layers[-1]
    arrays = {
        storage_of(layer.node, param, layer.node.ties): param.elements
        for layer in layers
        for param in layer.cost.params
        if param.learnable
    }
    trained = sum(
        [count for storage, count in arrays.items() if storage not in report.graph.frozen]
    )
    complete = all(report.params_known(layer.node) for layer in layers)
    given = first.inputs[0].shape if first.inputs else None
    madd, flops, elements = _figures(layers, trained)
    dtype = first.inputs[0].dtype if first.inputs else "fp32"
    read, written = (None if n is None else storage_bytes(n, dtype) for n in elements)
    return StatRow(
        path or report.name,
        None if given is None else given[1:],
        None if last.output is None else last.output[1:],
        sum(arrays.values()) if complete else None,
        madd,
        flops,
        read,
        written,
    )


def _figures(
    layers: list[Layer], trained: int
) -> tuple[int | None, int | None, tuple[int | None, int | None]]:
    """MAdd, Flops, and elements read and written, by the rules of torchstat for one image."""
    free = 0 if all(layer.call is not None and layer.ops == FREE for layer in layers) else None
    unmoved = 0 if all(_is_view(layer) for layer in layers) else None
    (layer,) = layers if len(layers) == 1 else (None,)
    if layer is None or layer.call is None or not _has_rules(layer):
        return free, free, (unmoved, unmoved)
    call, op = layer.call, layer.op
    madd = MADD[op](call) if op in MADD else free
    flops = FLOPS[op](call) if op in FLOPS else free
    if op not in READ:
        return madd, flops, (unmoved, unmoved)
    more = 2 * call.x[1] if op == "batch_norm" else trained
    return madd, flops, (prod(call.x[1:]) + more, prod(call.y[1:]))


def _is_view(layer: Layer) -> bool:
    spec = SPECS.get(layer.op)
    return spec is not None and spec.view


def _has_rules(layer: Layer) -> bool:
    """Whether torchstat has rules for its sizes: 2-D modules, linear layers on vectors."""
    assert layer.call is not None
    rank = len(layer.call.x)
    if layer.op in ("relu", "relu6", "leaky_relu", "elu", "prelu", "softmax"):
        return rank > 1
    return rank == (2 if layer.op == "linear" else 4)


def _products(call: Call) -> int:
    """Multiplications per output element of a convolution."""
    return int(call.attributes.window.positions) * (call.x[1] // int(call.attributes.groups))


def _conv_madd(call: Call) -> int:
    return (2 * _products(call) - 1 + int(call.attributes.bias)) * prod(call.y[1:])


def _conv_flops(call: Call) -> int:
    return (_products(call) + int(call.attributes.bias)) * prod(call.y[1:])


def _transposed_madd(call: Call) -> int:
    """The positions of the input, and the channels of the output."""
    adds = 2 * _products(call) - 1 + int(call.attributes.bias)
    return adds * prod(call.x[2:]) * call.y[1]


def _inputs(call: Call) -> int:
    return prod(call.x[1:])


MADD: dict[str, Rule] = {
    "conv": _conv_madd,
    "conv_transpose": _transposed_madd,
    "batch_norm": lambda call: 4 * _inputs(call),
    "max_pool": lambda call: (call.attributes.window.positions - 1) * prod(call.y[1:]),
    "avg_pool": lambda call: call.attributes.window.positions * prod(call.y[1:]),
    "relu": _inputs,
    "relu6": _inputs,
    "softmax": lambda call: 3 * _inputs(call) - 1,
    "linear": lambda call: call.y[-1] * (2 * _inputs(call) - 1),
}
FLOPS: dict[str, Rule] = {
    "conv": _conv_flops,
    "batch_norm": lambda call: _inputs(call) * (2 if _is_affine(call) else 1),
    "max_pool": _inputs,
    "avg_pool": _inputs,
    **dict.fromkeys(("relu", "relu6", "prelu", "elu", "leaky_relu"), _inputs),
    "resize": lambda call: prod(call.y[2:]),  # not times the channels
    "linear": lambda call: call.y[-1] * _inputs(call),
}
READ = (
    "conv", "batch_norm", "max_pool", "avg_pool", "linear",
    "relu", "relu6", "prelu", "elu", "leaky_relu",
)  # fmt: skip


def _is_affine(call: Call) -> bool:
    return call.attributes is None or bool(call.attributes.affine)
