"""The table of the CS231n course notes, with every product written out, as text and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from layerscope.escaping import markdown, visible
from layerscope.graph.names import shape_text
from layerscope.graph.types import (
    DTYPE_BITS,
    Claims,
    Shape,
    claims_of,
    elements,
    storage_bytes,
)
from layerscope.notations.sheet import (
    SheetLine,
    SheetTotals,
    axes_text,
    lines,
    memory_text,
    pool_kind,
    printed_total,
    table,
    total_cells,
    total_text,
    with_claims,
)
from layerscope.notations.sheet_findings import sheet_findings
from layerscope.ops import SPECS
from layerscope.report import Layer, Report

HEADER = ("Layer", "Number of Activations (Memory)", "Parameters (Compute)")
TITLES = ("label", "shape", "memory", "weights")  # of a line of the text block
POOLS = {"max": "POOL", "avg": "AVGPOOL", "lp": "LPPOOL"}


def write(report: Report) -> str:
    """The text block with its totals, then the findings."""
    listed = lines(report)
    maps = _maps(report)
    claims = claims_of(report.graph, "cs231n")
    rows = [_text_line(line, maps, claims) for line in listed]
    totals = SheetTotals(listed, report)
    memory = printed_total(report.totals.convention_activations)
    images = "image" if report.batch == 1 else f"{report.batch} images"
    ends = [
        f"TOTAL memory: {_product(report, memory, totals)} / {images} (only forward! ~*2 for bwd)",
        f"TOTAL params: {totals.params(total_text(report.totals.params, cut=True))} parameters",
    ]
    ends += (f"- {finding}" for finding in sheet_findings(listed, _label))
    ends = [visible(text) for text in claims.totals if "\t" not in text] or ends
    rows += [" ", *ends[:2], *([""] if ends[2:] else []), *ends[2:]]
    return "\n".join(rows) + "\n"


def _product(report: Report, memory: int, totals: SheetTotals) -> str:
    """Elements times bytes per element, or the bytes alone if dtypes are mixed."""
    listed = [tensor.dtype for tensor in report.inputs]
    listed += [layer.outputs[0].dtype for layer in report.layers if layer.convention_activations]
    count = totals.memory(f"{totals.sign}{total_text(memory)}")
    if " + " in count:
        count = f"({count})"
    if len(set(listed)) > 1:
        size = sum(tensor.bytes for tensor in report.inputs)
        size += sum(layer.convention_activation_bytes for layer in report.layers)
        return f"{count} of several dtypes = {totals.memory(f'{total_text(size)}B')}"
    dtype = listed[0]
    each = Fraction(DTYPE_BITS[dtype], 8)
    size = storage_bytes(memory, dtype)
    product = f"{count} * {each if each >= 1 else float(each)} bytes"
    return f"{product} ~= {totals.memory(f'{total_text(size)}B')}"


def write_markdown(report: Report) -> str:
    """The Markdown table, with exact totals."""
    listed = lines(report)
    rows: list[tuple[str, ...]] = [HEADER]
    claims = claims_of(report.graph, "cs231n")
    for line in listed:
        memory, weights = _memory(line), _weights(line, {}, equals="=")
        label = "Input" if line.kind == "input" else _label(line)
        cells = (_escape(label), _escape(memory), _escape(weights))
        rows.append(with_claims(line, HEADER, cells, claims))
    totals = SheetTotals(listed, report)
    memory = totals.memory(f"{totals.sign}{report.totals.convention_activations:,}")
    total = ("TOTAL", memory, totals.params(f"{report.totals.params:,}"))
    rows.append(total_cells(claims, HEADER, total))
    return table(rows)


def _text_line(line: SheetLine, maps: Mapping[str, Shape | None], claims: Claims) -> str:
    sizes = None if line.sizes is None else (*line.sizes, line.channels)
    batch = (line.batch,) if line.batch != 1 else ()
    shape = shape_text(None if sizes is None else (*batch, *sizes))
    gap = " " * (8 if line.kind == "input" else 2)
    cells = (_label(line), shape, _memory(line), _weights(line, maps, equals=" = "))
    label, shape, memory, weights = with_claims(line, TITLES, cells, claims)
    before = " " * (3 if "=" in memory else 2)
    return f"{label}: [{shape}]{gap}memory:  {memory}{before}weights: {weights}"


def _label(line: SheetLine) -> str:
    """CONV3-64 for a 3x3 kernel and 64 channels, POOL2 for a 2x2 window."""
    kernel = "" if line.window is None else axes_text(line.window.kernel)
    if line.kind in ("conv", "deconv") and line.layer is not None:
        a = line.layer.node.attributes
        return f"{line.kind.upper()}{kernel}-{a.out_channels}{_notes(line.layer)}"
    if line.kind == "pool" and line.layer is not None:
        return POOLS[pool_kind(line.layer)] + kernel
    return line.kind.upper() if line.kind in ("input", "fc") else visible(line.kind)


def _notes(layer: Layer) -> str:
    a = layer.node.attributes
    notes = []
    if a.groups > 1:
        depthwise = layer.call is not None and layer.call.x[1] == a.groups
        notes.append("depthwise" if depthwise else f"{a.groups} groups")
    if max(a.window.dilation) > 1:
        notes.append(f"dilation {axes_text(a.window.dilation)}")
    return f" ({', '.join(notes)})" if notes else ""


def _memory(line: SheetLine) -> str:
    if line.elements is None:
        return "?"
    product = "*".join(map(str, line.factors)) if len(line.factors) > 1 else ""
    text = line.sign + memory_text(line.elements)
    return f"{product}={text}" if product else text


def _weights(line: SheetLine, maps: Mapping[str, Shape | None], *, equals: str) -> str:
    """The product and its value, plus what a convention counts besides the weights."""
    if line.weights is None:
        return "?"
    if line.layer is None or line.layer.call is None:
        return f"{line.weights:,}"
    if line.kind in ("conv", "deconv"):
        inner, outer = _filters(line.layer)
        product, count = f"({'*'.join(map(str, inner))})*{outer}", elements(inner) * outer
    elif line.kind == "fc":
        factors = _matrix(line.layer, maps)
        product, count = "*".join(map(str, factors)), elements(factors)
    else:
        return f"{line.weights:,}"
    if line.weights < count:  # tied: counted where they were first used
        return f"{line.weights:,}"
    more = f" + {line.weights - count}" if line.weights > count else ""
    return f"{product}{more}{equals}{line.weights:,}"


def _filters(layer: Layer) -> tuple[Shape, int]:
    """Shape of one filter and number of filters; a transposed conv divides the latter by groups."""
    assert layer.call is not None
    a = layer.node.attributes
    if layer.op == "conv":
        return (*a.window.kernel, layer.call.x[1] // a.groups), a.out_channels
    return (*a.window.kernel, layer.call.x[1]), a.out_channels // a.groups


def _matrix(layer: Layer, maps: Mapping[str, Shape | None]) -> Shape:
    """Input and output features; inputs that were a feature map as its sizes and channels."""
    assert layer.call is not None
    a = layer.node.attributes
    features = elements(layer.call.x[1:]) if a.flatten else layer.call.x[-1]
    shape = maps.get(layer.node.inputs[0])
    if shape is None or elements(shape[1:]) != features or elements(shape[2:]) == 1:
        return (features, a.out_features)
    return (*shape[2:], shape[1], a.out_features)


def _maps(report: Report) -> dict[str, Shape | None]:
    """The shape of each tensor before it was flattened or viewed with another shape."""
    shapes = {tensor.name: tensor.shape for tensor in report.inputs}
    for layer in report.layers:
        rule = SPECS.get(layer.op)
        passed = rule is not None and (rule.view or rule.family in ("activation", "normalization"))
        for tensor in layer.outputs:
            shapes[tensor.name] = shapes.get(layer.node.inputs[0]) if passed else tensor.shape
    return shapes


def _escape(cell: str) -> str:
    return markdown(cell)
