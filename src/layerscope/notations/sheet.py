"""Shared by the notations backbone, cs231n and layersheet: lines, stage numbers, number texts.

A sheet lists convolutions, pools, linear layers and joins. The stage number counts changes of the
resolution of convolutions since the input, so that layers of VGG and ResNet get the names of their
papers. A convolution on a single position (squeeze and excitation, a head after global pooling)
stays in its stage, and a join has the stage of the inputs of its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from layerscope.conventions.cs231n import has_line
from layerscope.graph.attributes import Window
from layerscope.graph.types import Claims, Shape, elements
from layerscope.ops import SPECS, display_name
from layerscope.report import Layer, Report
from layerscope.report.numbers import ABOUT, plus_unknown
from layerscope.sheets.stages import SheetStage, convolved, pool_stage, stage_of

UNITS = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("K", 10**3))
IN_FULL = 10_000  # smaller counts are printed exactly


class SheetLine(Struct, frozen=True):
    """One line of a sheet; unknown figures are None."""

    kind: str  # input, conv, deconv, pool, fc, or the op of anything else
    number: str  # 1_1 for conv and deconv, 1 for pool and fc (1_2 if a stage has several)
    layer: Layer | None  # None for an input of the network
    batch: int
    sizes: Shape | None  # spatial sizes, padded to the rank of the network
    channels: int | None
    window: Window | None
    elements: int | None
    weights: int | None
    sign: str = ""  # of the elements: `~` if they are an estimate

    @property
    def complete(self) -> bool:
        """Whether all its figures are available."""
        return self.elements is not None and self.weights is not None

    @property
    def factors(self) -> tuple[int, ...]:
        """Sizes whose product is the number of elements, channels last; () if there are none."""
        if self.sizes is None or self.channels is None:
            return ()
        batch = (self.batch,) if self.batch != 1 else ()
        sizes = () if self.kind == "fc" and elements(self.sizes) == 1 else self.sizes
        factors = (*batch, *sizes, self.channels)
        return factors if elements(factors) == self.elements else ()


def lines(report: Report) -> tuple[SheetLine, ...]:
    """The lines of a sheet: the inputs, then layers in execution order."""
    listed = [layer for layer in report.layers if _listed(layer)]
    shapes = [tensor.shape for tensor in report.inputs] + [layer.output for layer in listed]
    rank = max([len(shape) - 2 for shape in shapes if shape is not None], default=0)
    numbers = _numbers(report, listed)
    axes = _channel_axes(report)
    found = []
    for tensor in report.inputs:
        batch, sizes, channels = _layout(tensor.shape, 1, max(rank, 0))
        count = None if tensor.shape is None else tensor.elements
        counted = count if report.convention.counts_inputs else 0
        found.append(SheetLine("input", "", None, batch, sizes, channels, None, counted, 0))
    for layer in listed:
        batch, sizes, channels = _layout(layer.output, axes[layer.node.outputs[0]], max(rank, 0))
        unknown = layer.status == "unknown"
        has_params = report.params_known(layer.node)
        found.append(
            SheetLine(
                kind=line_kind(layer),
                number=numbers.get(layer.name, ""),
                layer=layer,
                batch=batch,
                sizes=sizes,
                channels=channels,
                window=_window(layer),
                elements=None if unknown else layer.convention_activations,
                weights=layer.params if has_params else None,
                sign=ABOUT if layer.has_estimated_sizes else "",
            )
        )
    return tuple(found)


def line_kind(layer: Layer) -> str:
    """The kind of a layer in a sheet: conv, deconv, pool, fc, or its op."""
    spec = SPECS.get(layer.op)
    if spec is not None and spec.family == "pooling":
        return "pool"
    return display_name(layer.op, "sheet") or layer.op


def pool_kind(layer: Layer) -> str:
    """The kind of pooling: max, avg or lp."""
    return layer.op.removesuffix("_pool").rpartition("_")[2]


def _listed(layer: Layer) -> bool:
    """Whether a layer has a line: also one that only another convention counts."""
    return has_line(layer.node, layer.call) or bool(layer.convention_activations or layer.params)


def _layout(shape: Shape | None, axis: int, rank: int) -> tuple[int, Shape | None, int | None]:
    """Batch, spatial sizes padded to `rank` with ones, and channels, which are on `axis`."""
    if shape is None:
        return 1, None, None
    if len(shape) < 2:
        return 1, (1,) * rank, elements(shape)
    sizes = shape[1:axis] + shape[axis + 1 :]
    return shape[0], (1,) * (rank - len(sizes)) + sizes, shape[axis]


def _channel_axes(report: Report) -> dict[str, int]:
    """The channel axis of each tensor: the second, until a permute or linear layer moves it."""
    axes: dict[str, int] = {}
    for layer in report.layers:
        given, output = layer.inputs[0].shape if layer.inputs else None, layer.output
        axis = axes.get(layer.node.inputs[0], 1) if layer.inputs else 1
        rule = SPECS.get(layer.op)
        if given is None or output is None or rule is None or len(output) < 2:
            axis = 1
        elif rule.family == "linear":
            axis = len(output) - 1
        elif layer.op == "permute":
            axis = max(layer.node.attributes.order.index(axis), 1)
        elif rule.family in ("convolution", "pooling") or len(given) != len(output):
            last = axis == len(given) - 1 and given[-1] == output[-1]
            axis = len(output) - 1 if rule.view and last else 1
        axes.update(dict.fromkeys(layer.node.outputs, axis))
    return axes


def _numbers(report: Report, listed: Iterable[Layer]) -> dict[str, str]:
    stages = _stages(report)
    counts: dict[tuple[str, int], int] = {}
    positions: dict[str, tuple[str, int, int]] = {}
    for layer in listed:
        kind = line_kind(layer)
        if kind in ("conv", "deconv", "pool", "fc"):
            stage = 0 if kind == "fc" else stages[layer.name]
            counts[kind, stage] = counts.get((kind, stage), 0) + 1
            positions[layer.name] = (kind, stage, counts[kind, stage])
    numbers = {}
    for name, (kind, stage, index) in positions.items():
        alone = kind == "pool" and counts[kind, stage] == 1
        numbers[name] = str(index) if kind == "fc" else f"{stage}" if alone else f"{stage}_{index}"
    return numbers


def _stages(report: Report) -> dict[str, int]:
    """Per layer, the number of resolution changes of convolutions on the longest path to it."""
    stage_by_tensor = {tensor.name: SheetStage() for tensor in report.inputs}
    stages = {}
    for layer in report.layers:
        sources = [(stage_by_tensor.get(t.name, SheetStage()), t.shape) for t in layer.inputs]
        stage = stage_of(sources, layer.output)
        if layer.op in ("conv", "conv_transpose") and layer.call is not None:
            stage = convolved(stage, layer.call.x, layer.output)
        is_pool = line_kind(layer) == "pool"
        stages[layer.name] = pool_stage(stage, layer.inputs[0].shape) if is_pool else stage.number
        stage_by_tensor.update(dict.fromkeys(layer.node.outputs, stage))
    return stages


def _window(layer: Layer) -> Window | None:
    """The window of a layer with resolved padding; for global and even adaptive pools the bins."""
    window = getattr(layer.node.attributes, "window", None)
    if layer.call is None or len(layer.call.x) < 3:
        return window if isinstance(window, Window) else None
    sizes, out = layer.call.x[2:], layer.call.y[2:]
    if isinstance(window, Window):
        if not isinstance(window.pads, str) or layer.op == "conv_transpose":
            return window
        return Window(window.kernel, window.stride, window.resolve(sizes), window.dilation)
    if line_kind(layer) != "pool" or any(
        size % bins for size, bins in zip(sizes, out, strict=True)
    ):
        return None
    kernel = tuple(size // bins for size, bins in zip(sizes, out, strict=True))
    stride = tuple(1 if bins == 1 else k for k, bins in zip(kernel, out, strict=True))
    return Window(kernel, stride, ((0, 0),) * len(sizes), (1,) * len(sizes))


def axes_text(sizes: Sequence[object]) -> str:
    """Sizes along all axes: one number if they are equal, else joined by x."""
    texts = list(map(str, sizes))
    return texts[0] if len(set(texts)) == 1 else "x".join(texts)


def memory_text(count: int, *, tenths: bool = False) -> str:
    """Two significant digits, exact below 10,000; with `tenths` 0.8M instead of 800K."""
    if count < IN_FULL:
        return str(count)
    step = 10 ** (len(str(count)) - 2)
    rounded = (2 * count + step) // (2 * step) * step
    if tenths and 10**5 <= rounded < 10**6 and rounded % 10**5 == 0:
        return _cut(rounded, "M", 10**6)
    return _in_units(rounded)


def params_text(count: int) -> str:
    """Truncated: one decimal below 10K and from 1M on, none in between, `.0` dropped."""
    return f"{count // 1000}K" if IN_FULL <= count < 10**6 else _in_units(count)


def printed_total(count: int, *, cut: bool = False) -> int:
    """A total rounded as sheets print it: whole units from ten on, one decimal below."""
    if count < IN_FULL:
        return count
    size: int = 1000 ** ((len(str(count)) - 1) // 3)
    step = size if count >= 10 * size else size // 10
    return count // step * step if cut else (2 * count + step) // (2 * step) * step


def total_text(count: int, *, cut: bool = False) -> str:
    """A total in the largest unit; exact below 10,000."""
    return str(count) if count < IN_FULL else _in_units(printed_total(count, cut=cut))


class SheetTotals(Struct, frozen=True):
    """Texts of the totals of a sheet, from texts of their numbers."""

    listed: Sequence[SheetLine]
    report: Report

    @property
    def sign(self) -> str:
        """The sign of the memory: `~` if a line is an estimate."""
        return ABOUT if any(line.sign for line in self.listed) else ""

    def memory(self, text: str) -> str:
        """The elements of all lines, with `+ ?` if some are unknown."""
        count = self.report.totals.convention_activations
        unknown = any(line.elements is None for line in self.listed)
        return plus_unknown(text, count, unknown)

    def params(self, text: str) -> str:
        """The parameters of all lines, with `+ ?` if some are unknown."""
        unknown = any(line.weights is None for line in self.listed)
        return plus_unknown(text, self.report.totals.params, unknown)


def with_claims(
    line: SheetLine, titles: Sequence[str], cells: Sequence[str], claims: Claims
) -> tuple[str, ...]:
    """The cells of a line, those that a document claims as it prints them."""
    name = line.layer.name if line.layer is not None else ""
    claimed = dict(cell.split("\t", 1) for cell in claims.rows.get(name, ()))
    return tuple(claimed.get(title, cell) for title, cell in zip(titles, cells, strict=True))


def total_cells(claims: Claims, titles: Sequence[str], cells: Sequence[str]) -> tuple[str, ...]:
    """The cells of the total, those that a document claims as it prints them."""
    claimed = dict(cell.split("\t", 1) for cell in claims.totals if "\t" in cell)
    return tuple(claimed.get(title, cell) for title, cell in zip(titles, cells, strict=True))


def _in_units(count: int) -> str:
    for unit, size in UNITS:
        if count >= size:
            return _cut(count, unit, size)
    return str(count)


def _cut(count: int, unit: str, size: int) -> str:
    whole, tenth = divmod(10 * count // size, 10)
    return f"{whole}.{tenth}{unit}" if tenth else f"{whole}{unit}"


def table(rows: Sequence[Sequence[str]], *, centred: bool = False) -> str:
    """A Markdown table, each column as wide as its widest cell; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = [f":{'-' * (width - 2)}:" if centred else "-" * width for width in widths]
    lines = []
    for row in (rows[0], rule, *rows[1:]):
        cells = []
        for cell, width in zip(row, widths, strict=True):
            left = (width - len(cell)) // 2 if centred else 0
            cells.append(" " * left + cell + " " * (width - len(cell) - left))
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)
