"""The log that Darknet prints when it loads a network: one numbered row per layer.

`write` prints it as AlexeyAB's Darknet of 2020 does, `write_2019` and `write_2018` as its earlier
versions. Sizes are width x height x channels, figures are of one image.

- Batch norms, scales and activations right after a convolution, a linear layer or a sum are parts
  of its row, as they are in Darknet's files. Flattening has no row: Darknet's arrays are flat.
- A layer reads the row above it. If it reads another, a `route` row with the number of that one
  comes first; a sum is `Shortcut Layer` with the number of its other operand. An input of the
  network cannot be routed in Darknet; such a row has its name.
- BF are billions of operations: 2 per multiply-add of a convolution, the elements under the windows
  of a pool, and since 2020 an addition per element of a sum. Darknet counts nothing else: linear
  layers, global pools and activations are not in the total.
- A layer that Darknet does not have is a row with the name of its op, with `?` BF if it computes
  something. The total then ends with `+ ?`.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import prod

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.graph.types import Shape
from layerscope.ops import FREE, SPECS
from layerscope.report import Layer, Report
from layerscope.report.numbers import ABOUT, UNKNOWN, plus_unknown

JOINED = ("conv", "connected", "shortcut")  # rows that batch norms and activations join
PLAIN, NORMALIZED, ACTIVATED = range(3)  # what a row of these has computed so far
UNKNOWN_SIZES = "   ? x   ? x   ?"


class DarknetStyle(Struct, frozen=True):
    """Templates of the rows in one version of Darknet."""

    header: str
    conv: str
    size: str
    pool: str
    pool_size: str
    avg: str
    softmax: str
    cost: str
    connected: str
    dropout: str
    shortcut: str
    route: str
    upsample: str
    other: str
    total: str
    counts_sums: bool = False  # whether additions of a shortcut are in the total


LATEST = DarknetStyle(
    header="   layer   filters  size/strd(dil)      input                output",
    conv="conv  {filters:<11}{size:<12}{input} -> {output} {bf} BF",
    size="{0:2} x{1:2}/{2:2}",
    pool="{kind:<18}{size:<11}{input} -> {output} {bf} BF",
    pool_size="{0:2}x{1:2}/{2:2}",
    avg="avg                          {input} ->   {channels:4}",
    softmax="softmax                                        {outputs:4}",
    cost="cost                                           {outputs:4}",
    connected="connected                            {inputs:4}  ->  {outputs:4}",
    dropout="dropout    p = {p:.3f}        {inputs:4}  ->   {outputs:4}",
    shortcut="Shortcut Layer: {sources},  wt = 0, wn = 0, outputs:{output} {bf} BF",
    route="route  {routes}{gap}               -> {output} ",
    upsample="upsample                {factor:2}x  {input} -> {output}",
    other="{kind:<29}{input} -> {output}{bf}",
    total="Total BFLOPS {bf} ",
    counts_sums=True,
)
STYLE_2019 = DarknetStyle(
    header=LATEST.header,
    conv="conv  {filters:<10}{size:<12}{input}  -> {output} {bf} BF",
    size="{0:2} x{1:2}/{2:2}",
    pool="{kind:<16}{size:<12}{input}  -> {output} {bf} BF",
    pool_size="{0:2} x{1:2}/{2:2}",
    avg="avg                         {input}  ->   {channels:4}",
    softmax="softmax                                            {outputs:4}",
    cost="cost                                               {outputs:4}",
    connected=LATEST.connected,
    dropout="dropout       p = {p:.2f}                  {inputs:4}  ->   {outputs:4}",
    shortcut="Shortcut Layer: {sources}",
    route="route  {routes}",
    upsample="upsample               {factor:2}x  {input}  -> {output}",
    other="{kind:<28}{input}  -> {output}{bf}",
    total="Total BFLOPS {bf}",
)
STYLE_2018 = DarknetStyle(
    header="layer     filters    size              input                output",
    conv="conv  {filters} {size:<12}{input}   ->  {output} {bf} BF",
    size="{0:2} x{1:2} /{2:2}",
    pool="{kind:<13}{size:<11}{input}   ->  {output} {bf} BF",
    pool_size="{0} x {1} / {2}",
    avg="avg                     {input}   ->  {channels:4}",
    softmax=LATEST.softmax,
    cost=LATEST.cost,
    connected=LATEST.connected,
    dropout="dropout       p = {p:.2f}               {inputs:4}  ->  {outputs:4}",
    shortcut="Shortcut Layer: {sources}",
    route="route  {routes}",
    upsample="upsample           {factor:2}x  {input}   ->  {output}",
    other="{kind:<24}{input}   ->  {output}{bf}",
    total="Total BFLOPS {bf}",
)


class DarknetRow(Struct):
    """One row; `state` says which of a batch norm and an activation have joined it."""

    kind: str  # field of the style that prints it, or other
    layer: Layer
    sources: tuple[int | str, ...] = ()  # rows, or names of inputs, of a route or shortcut
    shape: Shape | None = None  # of its output
    operations: int | None = 0  # None: unknown
    state: int = PLAIN


def write(report: Report) -> str:
    """The log of AlexeyAB's Darknet of 2020."""
    return _log(report, LATEST)


def write_2019(report: Report) -> str:
    """The log of AlexeyAB's Darknet of 2019."""
    return _log(report, STYLE_2019)


def write_2018(report: Report) -> str:
    """The log of AlexeyAB's Darknet of 2018, with the columns of pjreddie's."""
    return _log(report, STYLE_2018)


def _log(report: Report, style: DarknetStyle) -> str:
    rows = darknet_rows(report)
    lines = [style.header]
    lines += [f"{n:4} {_row_text(row, style)}" for n, row in enumerate(rows)]
    counted = [row for row in rows if row.kind != "shortcut" or style.counts_sums]
    count = sum([row.operations or 0 for row in counted])
    total = _billions(count)
    unknown = any(row.operations is None for row in rows)
    sign = ABOUT if "activation_bytes" in report.estimates else ""
    text = plus_unknown(f"{sign}{total}", count, unknown)
    lines.append(style.total.format(bf=text if not sign or text != UNKNOWN else f"{sign}{text}"))
    return "\n".join(lines) + "\n"


# -- rows


def darknet_rows(report: Report) -> list[DarknetRow]:
    """The rows of a report, those that only route included."""
    return _Rows(report).rows


class _Rows:
    """Rows, and which of them computes each tensor."""

    def __init__(self, report: Report) -> None:
        self.rows: list[DarknetRow] = []
        self.batch = max(report.batch, 1)
        self.row_of: dict[str, int | str] = {t.name: t.name for t in report.graph.inputs}
        self.shapes = {name: tensor.shape for name, tensor in report.tensors.items()}
        self.readers = Counter(name for node in report.graph.nodes for name in node.inputs)
        self.readers.update(report.graph.outputs)
        self.above: int | str = report.graph.inputs[0].name if report.graph.inputs else ""
        for layer in report.layers:
            self._add(layer)

    def _add(self, layer: Layer) -> None:
        names = [name for name in layer.node.inputs if name in self.row_of]
        sources = [self.row_of[name] for name in names]
        spec = SPECS.get(layer.op)
        flat = spec is not None and spec.view and layer.op in ("flatten", "identity")
        if names and (flat or self._joins(layer, names[0])):
            self.row_of[layer.node.outputs[0]] = sources[0]
            return
        kind = _kind(layer)
        if kind == "route":
            self._append(DarknetRow("route", layer, tuple(sources), layer.output))
        elif kind == "shortcut":
            first = self.above if self.above in sources else sources[0]
            self._route(first, layer, names[sources.index(first)])
            sources.remove(first)
            operations = layer.ops.add // self.batch
            self._append(DarknetRow(kind, layer, tuple(sources), layer.output, operations))
        else:
            if names:
                self._route(sources[0], layer, names[0])
            if layer.op == "softmax_loss":
                self._append(DarknetRow("softmax", layer, (), layer.inputs[0].shape))
            shape = layer.inputs[0].shape if kind == "cost" else layer.output
            self._append(DarknetRow(kind, layer, (), shape, _operations(layer, kind, self.batch)))
        self.row_of.update(dict.fromkeys(layer.node.outputs, self.above))

    def _append(self, row: DarknetRow) -> None:
        self.rows.append(row)
        self.above = len(self.rows) - 1

    def _route(self, source: int | str, layer: Layer, name: str) -> None:
        """A layer reads the row above: route another one to there."""
        if source != self.above:
            self._append(DarknetRow("route", layer, (source,), self.shapes.get(name)))

    def _joins(self, layer: Layer, name: str) -> bool:
        """Whether a batch norm, scale or activation is part of the row that computes its input."""
        source, spec = self.row_of[name], SPECS.get(layer.op)
        if isinstance(source, str) or spec is None or self.readers[name] != 1:
            return False
        row = self.rows[source]
        if row.kind not in JOINED or row.state == ACTIVATED or source != self.above:
            return False
        if layer.op in ("batch_norm", "scale", "bias") and row.kind != "shortcut":
            if layer.op == "batch_norm" and row.state == NORMALIZED:
                return False
            row.state = NORMALIZED
            return True
        if spec.family == "activation" and len(layer.inputs) == 1:
            row.state = ACTIVATED
            return True
        return False


KINDS = {
    "conv": "conv", "linear": "connected", "max_pool": "pool", "avg_pool": "pool",
    "global_avg_pool": "avg", "softmax": "softmax", "softmax_loss": "cost", "dropout": "dropout",
}  # fmt: skip


def _kind(layer: Layer) -> str:
    """The field of a style that prints a layer."""
    a, op, call = layer.node.attributes, layer.op, layer.call
    if call is None:
        return "conv" if op == "conv" else "other"
    if op == "adaptive_avg_pool" and set(a.output) == {1}:
        return "avg"
    if op == "add" and len(call.inputs) > 1 and len(set(call.inputs)) == 1:
        return "shortcut"
    if op == "concat" and a.axis == 1:
        return "route"
    if op == "resize" and _factor(layer):
        return "upsample"
    return KINDS.get(op, "other")


def _factor(layer: Layer) -> int:
    """By how much a layer enlarges both axes; 0 if not by one whole number."""
    assert layer.call is not None
    if layer.node.attributes.mode != "nearest":
        return 0
    factors = {
        Fraction(new, old) for old, new in zip(layer.call.x[2:], layer.call.y[2:], strict=True)
    }
    factor = factors.pop() if len(factors) == 1 else Fraction(0)
    return int(factor) if factor.denominator == 1 else 0


def _operations(layer: Layer, kind: str, batch: int) -> int | None:
    """What Darknet counts for a row, of one image; None if it has no rule or a size is unknown."""
    if layer.call is None:
        return None
    if kind == "conv":
        return 2 * layer.ops.mac // batch
    if kind == "pool":
        return int(layer.node.attributes.window.positions) * prod(layer.call.y[1:])
    return None if kind == "other" and layer.ops != FREE else 0


# -- text


def _row_text(row: DarknetRow, style: DarknetStyle) -> str:
    layer, a = row.layer, row.layer.node.attributes
    before = layer.inputs[0].shape if layer.inputs else None
    fields: dict[str, object] = {
        "input": _sizes_text(before),
        "output": _sizes_text(row.shape),
        "inputs": _count_text(before),
        "outputs": _count_text(row.shape),
        "bf": "    ?" if row.operations is None else _billions(row.operations),
    }
    if row.kind == "conv":
        groups = f"/{a.groups:4} " if a.groups > 1 else ""
        size = _window_text(layer, style.size)
        return style.conv.format(filters=f"{a.out_channels:5}{groups}", size=size, **fields)
    if row.kind == "pool":
        size = _window_text(layer, style.pool_size)
        return style.pool.format(kind=layer.op.removesuffix("_pool"), size=size, **fields)
    if row.kind in ("route", "shortcut"):
        texts = [visible(str(source)) for source in row.sources]
        tabs = " \t    " if len(texts) > 3 else " \t" + "\t" * (len(texts) == 1) + " " * 12
        fields |= {"sources": ", ".join(texts), "routes": " ".join(texts), "gap": tabs}
    elif row.kind == "avg":
        fields["channels"] = before[1] if before else "?"
    elif row.kind == "dropout":
        fields["p"] = 0.5 if a is None else a.p
    elif row.kind == "upsample":
        fields["factor"] = _factor(layer)
    elif row.kind == "other":
        fields["kind"] = visible(layer.op)
        fields["bf"] = "     ? BF" if row.operations is None else ""
    template: str = getattr(style, row.kind)
    return template.format(**fields)


def _window_text(layer: Layer, template: str) -> str:
    window = layer.node.attributes.window
    height, width = ((1, *window.kernel) if window.rank == 1 else window.kernel)[:2]
    text = template.format(width, height, window.stride[-1])
    if len(set(window.stride)) > 1:
        text += f"x{window.stride[-2]:2} "
    dilation = max(window.dilation)
    return f"{text}({dilation})" if dilation > 1 else text


def _sizes_text(shape: Shape | None) -> str:
    """Width x height x channels; a 1-D map has height 1, a vector only channels."""
    if shape is None or not 2 <= len(shape) <= 4:
        return UNKNOWN_SIZES
    height, width = (1, 1, *shape[2:])[-2:]
    return f"{width:4} x{height:4} x{shape[1]:4}"


def _count_text(shape: Shape | None) -> int | str:
    return "?" if shape is None else prod(shape[1:])


def _billions(operations: int) -> str:
    return f"{operations / 10**9:5.3f}"
