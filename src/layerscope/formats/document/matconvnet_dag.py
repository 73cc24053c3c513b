"""MatConvNet's print of a DagNN as text, csv or LaTeX: tables of layers, params, vars and fields.

Inputs and outputs of every layer are printed, and sizes of parameters and variables. Kernels of
pools and dilations follow from the receptive fields; whether a pool takes the maximum is open.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.pipes import split
from layerscope.formats.document.choices import LRN_SIZE
from layerscope.formats.document.matconvnet import NORMS
from layerscope.formats.document.names import from_latex
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.graph import attributes as at
from layerscope.graph.attributes.window import Pads
from layerscope.graph.types import Shape
from layerscope.ops import SPECS, display_name

STEM = "matconvnet.dag"
FIELD = "rf in "
HEADS = ("func", "param", "var")
ROWS = (
    "type", "inputs", "outputs", "params", "pad", "stride", "dims", "mem", "fanin", "fanout",
    "size", "offset", "vars", "total",
)  # fmt: skip
LINE = re.compile(rf'\s*"?\s*(?P<title>{"|".join((*HEADS, *ROWS))}|rf in [^|&"]*?)\s*"?\s*[|,&]')
SIZE = re.compile(r"\d{1,9}(?:x\d{1,9}){0,6}")
NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?(?:x-?\d{1,9}(?:\.\d{1,9})?)*")
# filters of a fully connected layer, whose depth may be printed with four digits
PRODUCT = re.compile(r"1x1x(?P<depth>\d{1,9}(?:\.\d{1,9})?(?:e\+\d\d)?)x(?P<filters>\d{1,9})")
EXACT = 10_000  # larger numbers are printed with four digits
WHOLE = Fraction(1, 50)  # a quotient of printed fields that is so near is whole
LABEL = "label"
SUFFIXES = ("f", "b", "m", "x")  # of parameters
LAYER_NORMS = {  # by the number of their parameters
    2: at.LayerNorm(), 1: at.LayerNorm(bias=False), 0: at.LayerNorm(affine=False),
}  # fmt: skip
FLAT = ("flatten", "linear", "reshape")
SAME = ("Activation", "Dropout", "PReLU", "Softmax")  # attributes of ops that keep a vector
# the op of each class, the first of several
OPS: Mapping[str, str] = {
    **{name: op for op in reversed(SPECS) if (name := display_name(op, "dagnn"))},
    **{op: op for op in SPECS if display_name(op, "dagnn") is None},
    "Conv": "conv", "Pooling": "max_pool", "GlobalPooling": "global_avg_pool", "ReLU": "relu",
    "SoftMax": "softmax", "Loss": "softmax_loss", "Sum": "add", "BatchNorm": "batch_norm",
}  # fmt: skip


class _Print(Struct):
    """A print on the way: the cells of each table by the name in its head, and its lines."""

    line: int
    last: int
    tables: dict[str, dict[str, dict[str, str]]] = {}  # head -> name -> title -> cell
    lines: dict[str, int] = {}  # of layers

    def of(self, head: str) -> Mapping[str, Mapping[str, str]]:
        """The columns of a table by name."""
        return self.tables.get(head, {})


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each print with layers and variables."""
    for found in _prints(lines):
        if not found.of("func") or not found.of("var"):
            continue
        rows = tuple(_Rows(found).all())
        text = tuple(line.rstrip("\r") for line in lines[found.line - 1 : found.last])
        style = ".latex" if text[0].startswith("\\") else ".csv" if '"' in text[0] else ""
        yield PrintedNetwork(
            rows, STEM + style, line=found.line, last=found.last, branched=False, lines=text,
            ambiguous=not all(_is_named_by_layer(*layer) for layer in found.of("func").items()),
        )  # fmt: skip


def _prints(lines: Sequence[str]) -> Iterator[_Print]:
    now: _Print | None = None
    head, names = "", list[str]()
    for number, line in enumerate(lines, 1):
        match = LINE.match(line)
        if match is None:
            if now is not None and line.strip() == "\\end{tabular}":
                now.last = number
            continue
        title, cells = match["title"], _cells(line)
        if title in HEADS or title.startswith(FIELD):
            if title == "func" and (now is None or len(now.tables) > 1):
                if now is not None:
                    yield now
                tabular = number > 1 and lines[number - 2].startswith("\\begin{tabular}")
                now = _Print(number - tabular, number, {}, {})
            head, names = title, cells
        if now is None:
            continue
        now.last = number
        table = now.tables.setdefault(head, {})
        for name, cell in zip(names, cells, strict=False):
            table.setdefault(name, {}).setdefault(title, cell)
            if title == "func":
                now.lines.setdefault(name, number)
    if now is not None:
        yield now


def _cells(line: str) -> list[str]:
    """The cells of a line behind its title, in any of the three styles; some are empty."""
    words = line.strip()
    if words.startswith('"'):
        texts = next(csv.reader([words.removesuffix(",")], skipinitialspace=True), [])
        return [text.strip().removeprefix("'") for text in texts[1:]]
    if words.endswith("\\\\") and "|" not in words:
        parts = re.split(r"(?<!\\)&", words.removesuffix("\\\\"))
        return [from_latex(text) for text in parts[1:]]
    return [cell.text.strip() for cell in split(line, 1).cells[1:]]


class _Rows:
    """The rows of a print, in the order of its layers."""

    def __init__(self, found: _Print) -> None:
        self.found = found
        self.flat: set[str] = set()  # variables that are vectors
        origin = next((head for head in found.tables if head.startswith(FIELD)), "")
        self.fields = found.of(origin)

    def all(self) -> Iterator[LayerRow]:
        """Inputs, then layers."""
        for name, cells in self.found.of("var").items():
            if cells.get("fanin") == "0" and name != LABEL:
                shape = _shape(cells.get("dims", ""))
                yield LayerRow(name, "input", output=shape, line=self.found.line)
        for name, cells in self.found.of("func").items():
            yield self._layer(name, cells)

    def _layer(self, name: str, cells: Mapping[str, str]) -> LayerRow:
        kind = cells.get("type", "")
        inputs = [each for each in cells.get("inputs", "").split() if each != LABEL]
        output = (cells.get("outputs", "").split() or [name])[0]
        shape = None if kind == "Loss" else self._shape_of(output)
        row = LayerRow(
            name, op=OPS.get(kind, ""), type=kind, takes=tuple(inputs), key=output, output=shape,
            line=self.found.lines.get(name, self.found.line),
        )  # fmt: skip
        arrays = [_sizes(self._dims(each)) for each in cells.get("params", "").split()]
        if row.op == "conv":
            row = self._convolution(row, cells, arrays)
        elif row.op == "conv_transpose":
            row = self._transposed(row, arrays)
        elif row.op in ("max_pool", "lp_pool"):
            row = self._pool(row, cells)
        elif row.op == "batch_norm":
            row = replace(row, attributes=NORMS.get(len(arrays) + 1, at.BatchNorm()))
        elif row.op == "layer_norm":
            row = replace(row, attributes=LAYER_NORMS.get(len(arrays)))
        elif row.op == "lrn" and self._loses_field(row):
            found = at.LocalResponseNorm(LRN_SIZE, within_channel=True)
            row = replace(row, attributes=found, inferred=("size",))
        elif row.op.startswith("adaptive_") and shape is not None:
            row = replace(row, attributes=at.AdaptivePool(shape[2:]))
        spec = SPECS.get(row.op)
        kept = spec is not None and getattr(spec.attributes, "__name__", "") in SAME
        if row.op in FLAT or (kept and self.flat.intersection(inputs)):
            self.flat.add(output)
        return row

    def _convolution(
        self, row: LayerRow, cells: Mapping[str, str], arrays: Sequence[tuple[int, ...]]
    ) -> LayerRow:
        bias, filters = len(arrays) > 1, _filled(arrays)
        if linear := PRODUCT.fullmatch(self._dims((cells.get("params", "").split() or [""])[0])):
            given = self._shape_of((row.takes or ("",))[0])
            channels = given[1] if given is not None else None
            # deeper than its input: of all positions of a map
            deeper = channels is not None and float(linear["depth"]) > channels
            if deeper or self.flat.intersection(row.takes or ()) or self._loses_field(row):
                self.flat.add(row.key)
                return replace(row, op="linear", filters=int(linear["filters"]), bias=bias)
        if len(filters) != 4:
            return row
        dilation = tuple(
            (span - 1) // (size - 1) if size > 1 else 1
            for span, size in zip(self._spans(row) or (), filters[:2], strict=False)
        )
        stride = _sizes(cells.get("stride", ""))
        return replace(
            row, kernel=filters[:2], filters=filters[3], group_channels=filters[2], bias=bias,
            dilation=dilation if min(dilation, default=0) > 0 else None,
            stride=stride * 2 if len(stride) == 1 else stride or None,
            pads=_pads(cells.get("pad", "")),
        )  # fmt: skip

    def _transposed(self, row: LayerRow, arrays: Sequence[tuple[int, ...]]) -> LayerRow:
        """A transposed convolution; stride, dilation and begin pads by the fields around it."""
        filters = _filled(arrays)
        if len(filters) != 4 or row.output is None or not filters[2]:
            return replace(row, bias=len(arrays) > 1)
        groups, rest = divmod(row.output[1], filters[2])
        row = replace(
            row, kernel=filters[:2], groups=None if rest else groups, bias=len(arrays) > 1
        )
        window = self._upsampled(row, filters[:2])
        given = self._shape_of((row.takes or ("",))[0])
        if window is None or given is None or row.output is None:
            return row
        ups, steps, begins = window
        pads = tuple(
            (begin, max((size - 1) * up + (k - 1) * step + 1 - begin - to, 0))
            for size, up, k, step, begin, to in zip(
                given[2:], ups, filters[:2], steps, begins, row.output[2:], strict=True
            )
        )
        return replace(row, stride=ups, dilation=steps, pads=pads)

    def _upsampled(
        self, row: LayerRow, kernel: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Strides, dilation and begin pads of a transposed convolution, by the fields around it."""
        before, after = (self.fields.get(each, {}) for each in ((row.takes or ("",))[0], row.key))
        titles = ("size", "stride", "offset")
        first, last = (
            [_numbers(each.get(title, "")) for title in titles] for each in (before, after)
        )
        if not all((*first, *last)) or not all(last[1]):
            return None
        found = []
        for n in range(2):
            pairs = [(a[n], b[n]) for a, b in zip(first, last, strict=True)]
            axis = _upsampling(kernel[n], pairs[0], pairs[1], pairs[2])
            if axis is None:
                return None
            found.append(axis)
        (up, step, begin), (up_2, step_2, begin_2) = found
        return (up, up_2), (step, step_2), (begin, begin_2)

    def _pool(self, row: LayerRow, cells: Mapping[str, str]) -> LayerRow:
        stride = _sizes(cells.get("stride", ""))
        return replace(
            row, kernel=self._spans(row), dilation=(1, 1), pads=_pads(cells.get("pad", "")),
            stride=stride * 2 if len(stride) == 1 else stride or None,
        )  # fmt: skip

    def _loses_field(self, row: LayerRow) -> bool:
        """Whether the input of a row has a receptive field, and its output none."""
        before, after = (self.fields.get(each, {}) for each in ((row.takes or ("",))[0], row.key))
        return bool(_numbers(before.get("size", ""))) and not _numbers(after.get("size", ""))

    def _spans(self, row: LayerRow) -> tuple[int, ...] | None:
        """How far the window of a layer extends, from the fields of its input and output."""
        before, after = (self.fields.get(each, {}) for each in ((row.takes or ("",))[0], row.key))
        sizes = [_numbers(each.get("size", "")) for each in (before, after)]
        jumps = _numbers(before.get("stride", ""))
        if not (sizes[0] and sizes[1] and jumps) or not all(jumps):
            return None
        found = [(b - a) / jump + 1 for a, b, jump in zip(*sizes, jumps, strict=True)]
        near = [round(span) for span in found]  # fields are printed with four digits
        is_whole = all(
            size > 0 and abs(size - span) < WHOLE for size, span in zip(near, found, strict=True)
        )
        return tuple(near) if is_whole else None

    def _dims(self, name: str) -> str:
        return self.found.of("param").get(name, {}).get("dims", "")

    def _shape_of(self, name: str) -> Shape | None:
        return _shape(self.found.of("var").get(name, {}).get("dims", ""))


def _is_named_by_layer(name: str, cells: Mapping[str, str]) -> bool:
    """Whether variables and parameters of a layer are named as `fromSimpleNN` names them."""
    params = cells.get("params", "").split()
    named = all(param.startswith(name) and param[len(name) :] in SUFFIXES for param in params)
    return named and cells.get("outputs") == name


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x"))) if SIZE.fullmatch(text) else ()


def _filled(arrays: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Height, width, depth and number of filters; () if they are not printed in full.

    Ones at the end are left out, and of four equal sizes one is printed.
    """
    first = arrays[0] if arrays else ()
    if len(first) == 1:
        return first * 4
    return (*first, *(1,) * (4 - len(first))) if first else ()


def _shape(dims: str) -> Shape | None:
    """Images, channels and sizes of a variable; None if a size is not printed in full."""
    sizes = _sizes(dims)
    if len(sizes) == 1:
        sizes *= 4
    return (sizes[-1], sizes[-2], *sizes[:-2]) if len(sizes) > 3 else None


def _numbers(text: str) -> tuple[Fraction, ...]:
    """Two numbers of a field; () if they are not exact."""
    if not NUMBER.fullmatch(text):
        return ()
    found = tuple(map(Fraction, text.split("x")))
    found = found * 2 if len(found) == 1 else found
    return found if len(found) == 2 and max(found) < EXACT else ()


def _upsampling(
    kernel: int,
    sizes: tuple[Fraction, Fraction],
    jumps: tuple[Fraction, Fraction],
    offsets: tuple[Fraction, Fraction],
) -> tuple[int, int, int] | None:
    """Stride, dilation and begin pad on one axis, by the fields before and after."""
    jump = jumps[0]
    up = round(jump / jumps[1])
    extent = round((sizes[1] - sizes[0]) / jump * up) + 1 if jump else 0
    step = (extent - 1) // (kernel - 1) if kernel > 1 else 1
    crop = ((offsets[1] - offsets[0]) / jump * 2 * up + extent - 1) / 2 if jump else Fraction(-1)
    return (up, step, round(crop)) if min(up, step) > 0 and round(crop) >= 0 else None


def _pads(text: str) -> Pads | None:
    sizes = _sizes(text)
    sizes = sizes * 4 if len(sizes) == 1 else sizes
    return ((sizes[0], sizes[1]), (sizes[2], sizes[3])) if len(sizes) == 4 else None
