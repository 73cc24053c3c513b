"""MatConvNet's network display as text, csv or LaTeX: a layer is a column, in blocks.

The text has windows, filters and sizes of every layer, and groups as depth by filt dim. Layers
without a row, such as views, are not in it; a fully connected layer is a convolution. Receptive
fields of rows after a branch, whose inputs the text does not print, are kept as they are printed.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import gcd

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import read as read_figure
from layerscope.documents.headings import Meaning
from layerscope.documents.pipes import split
from layerscope.documents.types import Cell
from layerscope.formats.document.names import from_latex
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork, amount
from layerscope.graph import attributes as at
from layerscope.graph.attributes.window import Pads
from layerscope.graph.types import Shape, elements

STEM = "matconvnet"
TITLES = (
    "layer", "type", "name", "support", "filt dim", "filt dilat", "num filts", "stride", "pad",
    "rf size", "rf offset", "rf stride", "data size", "data depth", "data num", "data mem",
    "param mem",
)  # fmt: skip
FIELD = ("rf size", "rf offset", "rf stride")
TOTALS = ("parameter memory", "data memory")
LINE = re.compile(rf'\s*"?\s*(?P<title>{"|".join((*TITLES, *TOTALS))})\s*"?\s*[|,&]')
NONE = "n/a"
FRACTIONS = re.compile(r"\d{1,9}(?:\.\d{1,9})?(?:x\d{1,9}(?:\.\d{1,9})?)?")
OFFSET = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?(?:x-?\d{1,9}(?:\.\d{1,9})?)?")
UPSAMPLED = re.compile(r"0?\.0{0,9}[1-9]\d{0,9}|1")
EXACT = 10_000  # printed with all its digits
FAR = 200  # rows that a branch may be long
SIZE = re.compile(r"\d{1,19}(?:x\d{1,19}){0,5}")
CELL = re.compile(r"[~?+\-.\dxeKMGB ]{1,60}|n/a")  # of claims: numbers, sizes, n/a
TOTAL = re.compile(
    r"[~?+.\deKMGB ]{1,40}\((?:[?+.\de ]{1,40} parameters|for batch size \d{1,19})\)"
)
BYTES = Fraction(1, 4)  # of elements of fp32
OPS: Mapping[str, str] = {
    "conv": "conv", "convt": "conv_transpose", "mpool": "max_pool", "apool": "avg_pool",
    "bnorm": "batch_norm", "norm": "lrn", "softmx": "softmax", "sum": "add",
    "softmxl": "softmax_loss", "concat": "concat", "dropout": "dropout",
    **{
        op: op
        for op in ("relu", "relu6", "leaky_relu", "prelu", "elu", "sigmoid", "tanh", "silu",
                   "gelu", "hardswish", "hardsigmoid", "hardtanh", "mish", "selu", "softplus",
                   "scale", "mul")
    },
}  # fmt: skip


class _Display(Struct):
    """A display on the way: cells of each row by title, and its lines."""

    line: int
    last: int
    blocks: list[dict[str, list[Cell]]] = []
    totals: dict[str, str] = {}


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each display."""
    for display in _displays(lines):
        columns = [column for block in display.blocks for column in _columns(block)]
        if not columns:
            continue
        rank = _rank(columns[0])
        rows = [_row(column, rank) for column in columns]
        rows = [replace(row, key=str(n)) for n, row in enumerate(rows)]
        rows = list(_with_norms(rows))
        fields = [_field(column, row) for column, row in zip(columns, rows, strict=True)]
        rows = list(_attached(rows, fields))
        totals = tuple(display.totals.get(title, "") for title in TOTALS)
        yield PrintedNetwork(
            tuple(rows),
            STEM,
            line=display.line,
            last=display.last,
            totals=totals if all(map(TOTAL.fullmatch, totals)) else (),
        )


def _displays(lines: Sequence[str]) -> Iterator[_Display]:
    now: _Display | None = None
    for number, line in enumerate(lines, 1):
        match = LINE.match(line)
        if match is None:
            continue
        title, cells = match["title"], _cells(line, number)
        if title == "layer" and (now is None or not cells or cells[0].text in ("0", "1")):
            if now is not None:
                yield now
            now = _Display(number, number)
        if now is None:
            continue
        now.last = number
        if title == "layer":
            now.blocks.append({title: cells})
        elif title in TOTALS:
            now.totals[title] = cells[0].text if cells else ""
        elif now.blocks:
            now.blocks[-1][title] = cells
    if now is not None:
        yield now


def _cells(line: str, number: int) -> list[Cell]:
    """The cells of a line behind its title, in any of the three styles."""
    words = line.strip()
    if words.startswith('"'):
        texts = next(csv.reader([words], skipinitialspace=True), [])
        parts = [text.removeprefix("'") for text in texts if text or len(texts) < 3]
    elif words.endswith("\\\\") and "|" not in words:
        parts = [from_latex(text) for text in re.split(r"(?<!\\)&", words.removesuffix("\\\\"))]
    else:
        return list(split(line, number).cells[1:])
    return [Cell(text.strip(), number, 1) for text in parts[1:]]


def _columns(block: Mapping[str, list[Cell]]) -> Iterator[dict[str, Cell]]:
    """The layers of a block: cells by title."""
    if not {"layer", "type", "data size"} <= block.keys():
        return
    for n in range(min(len(cells) for cells in block.values())):
        yield {title: cells[n] for title, cells in block.items()}


def _rank(first: Mapping[str, Cell]) -> int:
    """Spatial axes of the network: equal ones are printed once, and the memory counts them all."""
    for rank in (2, 3, 1):
        shape, counted = _shape(first, rank), _amount(first, "data mem")
        if shape is not None and counted is not None and counted.stands_for(elements(shape)):
            return rank
    return 2


def _row(column: Mapping[str, Cell], rank: int) -> LayerRow:
    kind, name = column["type"].text, column["name"].text if "name" in column else NONE
    output = _shape(column, rank)
    if kind == "input":
        called = "data" if name in (NONE, "") else name
        dtype = _dtype(output, _amount(column, "data mem"))
        at = column["type"]
        return LayerRow(called, "input", output=output, dtype=dtype, line=at.line, column=at.column)
    params = _amount(column, "param mem")
    amounts: dict[Meaning, Amount] = {} if params is None else {"params": params}
    loss = kind.endswith("loss") or kind == "softmxl"
    filters, depth = (_number(column, title) for title in ("num filts", "filt dim"))
    dilation = _sizes(column, "filt dilat", rank)
    support = _sizes(column, "support", rank)
    found = LayerRow(
        name,
        op=OPS.get(kind, ""),
        type=kind,
        output=None if loss else output,
        rounded=() if loss or output is not None else _rounded(column, rank),
        filters=filters,
        kernel=support,
        stride=_sizes(column, "stride", rank),
        pads=_pads(column, rank),
        dilation=dilation,
        group_channels=depth,
        amounts=amounts,
        line=column["name"].line if "name" in column else column["type"].line,
        column=column["name"].column if "name" in column else column["type"].column,
        cells=_claimed(column, [t for t in TITLES[3:] if t in column]),
        traced=_claimed(column, FIELD),
    )
    return _completed(found, column, params)


class _PrintedField(Struct, frozen=True):
    """Receptive field, window and data of a column, as they are printed; None without numbers."""

    size: tuple[Fraction, ...]
    stride: tuple[Fraction, ...]
    support: tuple[Fraction, ...]
    step: tuple[Fraction, ...]
    offset: tuple[Fraction, ...] = ()  # () if it is not printed

    def follows(self, before: _PrintedField) -> bool:
        """Whether the field is that of this window on the output of a column before."""
        for n, (size, jump) in enumerate(zip(before.size, before.stride, strict=True)):
            if not _is_near(self.stride[n], jump * self.step[n]):
                return False
            if not _is_near(self.size[n], size + (self.support[n] - 1) * jump):
                return False
        return True


def _is_near(printed: Fraction, expected: Fraction) -> bool:
    """Whether a number is printed like this: a fraction with four digits."""
    if expected.denominator == 1 or not printed:
        return printed == expected
    return abs(printed / expected - 1) < Fraction(1, 1000)


def _field(column: Mapping[str, Cell], row: LayerRow) -> _PrintedField | None:
    if column["type"].text == "input":
        one = (Fraction(1), Fraction(1))
        return _PrintedField(one, one, one, one, one)
    found = []
    for title in ("rf size", "rf stride", "support", "stride"):
        text = _text(column, title)
        if not FRACTIONS.fullmatch(text):
            return None
        numbers = tuple(Fraction(part) for part in text.split("x"))
        found.append(numbers * 2 if len(numbers) == 1 else numbers)
    if not all(len(each) == 2 for each in found):
        return None
    text = _text(column, "rf offset")
    offset = tuple(map(Fraction, text.split("x"))) if OFFSET.fullmatch(text) else ()
    size, stride, support, step = found
    return _PrintedField(
        size,
        stride,
        _reach(row) if row.op == "conv_transpose" else support,
        step,
        offset * 2 if len(offset) == 1 else offset,
    )


def _reach(row: LayerRow) -> tuple[Fraction, ...]:
    """How many inputs lie under the kernel of a transposed convolution at most, holes included."""
    found = []
    rank = len(row.kernel or ())
    for kernel, stride, step in zip(
        row.kernel or (), row.stride or (1,) * rank, row.dilation or (1,) * rank, strict=True
    ):
        if not stride:
            continue
        common = gcd(stride, step)
        taps = (kernel - 1) // (stride // common)
        found.append(Fraction(taps * step // common + 1))
    return tuple(found) if len(found) == 2 else (*found, Fraction(1), Fraction(1))[:2]


def _attached(
    rows: Sequence[LayerRow], fields: Sequence[_PrintedField | None]
) -> Iterator[LayerRow]:
    """The rows, with the earlier rows that one may take where its field is not of the row above.

    Fields are printed with four digits; larger ones say nothing. After a field without an offset,
    whose positions look at different inputs, and after a pool that may have bins instead of a
    window, fields depend on what is not printed.
    """
    irregular = False
    for n, row in enumerate(rows):
        found = _with_sources(n, rows, fields)
        irregular = irregular or f"rf offset\t{NONE}" in row.traced or _is_clipped(n, rows, fields)
        yield replace(found, undetermined=row.traced) if irregular else found


def _with_sources(
    n: int, rows: Sequence[LayerRow], fields: Sequence[_PrintedField | None]
) -> LayerRow:
    """A row with the rows that it may take, if the row above is not the one."""
    row, field, above = rows[n], fields[n], fields[n - 1] if n else None
    if n and row.op == "concat" and row.output == rows[n - 1].output:
        return row if row.traced == rows[n - 1].traced else replace(row, op="")
    exact = field is not None and max((*field.size, *field.stride)) < EXACT
    if (
        field is None
        or above is None
        or not exact
        or field.follows(above)
        or not _has_one_input(row)
    ):
        return row
    fits = [
        rows[m].key
        for m in range(n - 2, max(n - FAR, -1), -1)
        if (before := fields[m]) is not None and field.follows(before) and _reads(row, rows[m])
    ]
    if row.op == "lrn" and not fits:
        return _within_channel(n, rows, fields)
    return replace(row, may_take=tuple(fits)) if fits else row


def _is_clipped(n: int, rows: Sequence[LayerRow], fields: Sequence[_PrintedField | None]) -> bool:
    """Whether the field of a window is that of the positions which the row above has, after a pool.

    Bins have no positions in their padding; a window does not end at the input.
    """
    field, above = fields[n], fields[n - 1] if n else None
    output = rows[n - 1].output if n else None
    sizes = output[2:] if output is not None else ()
    pooled = any(row.op.endswith("_pool") for row in rows[:n])
    if field is None or above is None or len(sizes) != 2 or not pooled or field.follows(above):
        return False
    support = tuple(min(span, size) for span, size in zip(field.support, sizes, strict=True))
    return replace(field, support=support).follows(above)


def _within_channel(
    n: int, rows: Sequence[LayerRow], fields: Sequence[_PrintedField | None]
) -> LayerRow:
    """A normalization over positions: the earlier row whose field it widens, and by how much.

    The row has no op if its field is none of these.
    """
    row, field = rows[n], fields[n]
    for m in range(n - 1, max(n - FAR, -1), -1):
        before = fields[m]
        if before is None or field is None or rows[m].output != row.output:
            continue
        spans = {
            (size - less) / jump + 1 if jump else Fraction(0)
            for size, less, jump in zip(field.size, before.size, before.stride, strict=True)
        }
        span = spans.pop()
        if spans or span.denominator != 1 or span < 2 or field.stride != before.stride:
            continue
        half = Fraction(1 - span % 2, 2)  # an even number has one position more behind
        moved = [mid + half * jump for mid, jump in zip(before.offset, before.stride, strict=False)]
        if list(field.offset) == moved:
            norm = at.LocalResponseNorm(int(span), within_channel=True)
            return replace(row, attributes=norm, may_take=(rows[m].key,))
    return replace(row, op="")


def _has_one_input(row: LayerRow) -> bool:
    """Whether a row has one input."""
    return bool(row.op) and row.op not in ("add", "mul", "concat") and row.kind != "input"


def _reads(row: LayerRow, before: LayerRow) -> bool:
    """Whether the depth of an earlier row is that of a row's input."""
    if before.output is None or row.output is None:
        return False
    depth = before.output[1]
    if not row.group_channels:
        return depth == row.output[1]
    return depth % row.group_channels == 0


def _dtype(shape: Shape | None, counted: Amount | None) -> str:
    """The dtype of an input: what its memory says, if it is not fp32."""
    if shape is None or counted is None or counted.stands_for(elements(shape)):
        return "fp32"
    return "int64" if counted.stands_for(2 * elements(shape)) else "fp32"


def _completed(row: LayerRow, column: Mapping[str, Cell], params: Amount | None) -> LayerRow:
    """The row with what the display prints in its own way."""
    if row.op in ("conv", "conv_transpose") and row.kernel is not None:
        row = replace(row, **_kernel(row, params))
    if row.op == "conv_transpose":
        return replace(row, stride=_upsampled(column, len(row.kernel or ())))
    if row.op.endswith("_pool"):
        row = replace(row, dilation=(1,) * len(row.kernel or ()) or None)  # a support has it
    if row.op in ("max_pool", "avg_pool") and row.output is not None:
        if row.stride is None:  # bins of an adaptive pool
            kind = row.op.replace("_pool", "")
            pool = at.AdaptivePool(row.output[2:])
            bins = tuple(
                each for text in _text(column, "stride").split("x") if (each := amount(text))
            )
            bins = bins * len(pool.output) if len(bins) == 1 else bins
            return replace(row, op=f"adaptive_{kind}_pool", attributes=pool, bins=bins)
        if row.stride == row.kernel and elements(row.output[2:]) == 1:
            return replace(row, op=f"global_{row.op}", attributes=at.GlobalPool())
    return row


def _upsampled(column: Mapping[str, Cell], rank: int) -> tuple[int, ...] | None:
    """The strides of a transposed convolution, of which the inverse is printed."""
    texts = _text(column, "stride").split("x")
    texts = texts * rank if len(texts) == 1 else texts
    if len(texts) != rank or not all(UPSAMPLED.fullmatch(text) for text in texts):
        return None
    return tuple(max(1, round(1 / float(text))) for text in texts)


NORMS = {4: at.BatchNorm(), 3: at.BatchNorm(scale=False), 2: at.BatchNorm(affine=False)}


def _with_norms(rows: Sequence[LayerRow]) -> Iterator[LayerRow]:
    """The rows, with a batch norm's arrays by its memory, or as most norms have them."""
    fits = {n: _arrays(row) for n, row in enumerate(rows) if row.op == "batch_norm"}
    counts = Counter(each[0] for each in fits.values() if len(each) == 1)
    usual = counts.most_common(1)[0][0] if counts else max(NORMS)
    for n, row in enumerate(rows):
        found = fits.get(n, ())
        count = usual if usual in found else found[0] if found else usual
        yield replace(row, attributes=NORMS[count]) if n in fits else row


def _arrays(row: LayerRow) -> list[int]:
    """How many arrays a batch norm may have, moments included."""
    counted = row.amounts.get("params")
    if counted is None or row.output is None:
        return []
    return [count for count in NORMS if counted.stands_for(count * row.output[1])]


def _kernel(row: LayerRow, params: Amount | None) -> dict[str, tuple[int, ...]]:
    """Kernel and dilation of a support, which includes the dilation."""
    support = row.kernel or ()
    if row.dilation is not None:
        pairs = zip(support, row.dilation, strict=True)
        return {"kernel": tuple((size - 1) // max(step, 1) + 1 for size, step in pairs)}
    if params is not None and row.group_channels and row.filters:
        each = row.group_channels * row.filters
        for step in range(1, max(support, default=1)):
            if any((size - 1) % step for size in support):
                continue
            kernel = tuple((size - 1) // step + 1 for size in support)
            if any(params.stands_for(elements(kernel) * each + b) for b in (0, row.filters)):
                return {"kernel": kernel, "dilation": (step,) * len(kernel)}
    return {"dilation": (1,) * len(support)}


def _text(column: Mapping[str, Cell], title: str) -> str:
    """A cell; nothing where the display lacks its line."""
    return column[title].text if title in column else ""


def _number(column: Mapping[str, Cell], title: str) -> int | None:
    text = _text(column, title)
    return int(text) if text.isdecimal() and len(text) < 20 else None


def _sizes(column: Mapping[str, Cell], title: str, rank: int) -> tuple[int, ...] | None:
    text = _text(column, title)
    if not SIZE.fullmatch(text):
        return None
    sizes = tuple(map(int, text.split("x")))
    return sizes * rank if len(sizes) == 1 else sizes if len(sizes) == rank else None


def _pads(column: Mapping[str, Cell], rank: int) -> Pads | None:
    text = _text(column, "pad")
    if not SIZE.fullmatch(text):
        return None
    sizes = [*map(int, text.split("x"))]
    sizes = sizes * (2 * rank) if len(sizes) == 1 else sizes
    if len(sizes) != 2 * rank:
        return None
    return tuple((sizes[2 * n], sizes[2 * n + 1]) for n in range(rank))


def _shape(column: Mapping[str, Cell], rank: int) -> Shape | None:
    sizes = _sizes(column, "data size", rank)
    depth, num = _number(column, "data depth"), _number(column, "data num")
    return None if sizes is None or depth is None or num is None else (num, depth, *sizes)


def _rounded(column: Mapping[str, Cell], rank: int) -> tuple[Amount, ...]:
    """Num, depth and sizes where a size is printed with four digits; () if one is no number."""
    sizes = _text(column, "data size").split("x")
    sizes = sizes * rank if len(sizes) == 1 else sizes
    texts = (_text(column, "data num"), _text(column, "data depth"), *sizes)
    found = tuple(each for text in texts if (each := amount(text)))
    return found if len(found) == len(texts) else ()


def _amount(column: Mapping[str, Cell], title: str) -> Amount | None:
    figure = read_figure(column[title].text) if title in column else None
    if figure is None:
        return None
    return Amount(figure, BYTES, (1024,), ("round",), 1024**figure.power if figure.power else 0)


def _claimed(column: Mapping[str, Cell], titles: Sequence[str]) -> tuple[str, ...]:
    """Titles and cells; () if one is not as MatConvNet writes it."""
    if any(title not in column or not CELL.fullmatch(column[title].text) for title in titles):
        return ()
    return tuple(f"{title}\t{column[title].text}" for title in titles)
