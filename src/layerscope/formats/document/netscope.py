"""Netscope's Markdown table, ragged or not, folded or not, as the rows of a network.

The text has names, Caffe's types, sizes without the batch, operations and parameters. Kernels
follow from parameters, batches from activations; pools round up, as Netscope's do. Operations and
memory of a row that its network does not determine are kept as they are printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from layerscope.documents.headings import Meaning
from layerscope.formats.document.names import unescaped
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork
from layerscope.formats.document.tables import tables_in
from layerscope.graph.attributes import AdaptivePool, LocalResponseNorm
from layerscope.graph.types import Shape, elements
from layerscope.sheets.kinds import is_total, kind_of
from layerscope.sheets.sheet import Sheet, SheetRow, sheet_of

STEM = "netscope"
HEADINGS: tuple[Meaning, ...] = (
    "index", "name", "type", "in_channels", "in_size", "out_channels", "out_size",
)  # fmt: skip
ENTRY = r"(?:(?:macc|comp|add|div|exp|mul|activation|param)\t~?[\d.]+[kMGT]?|\?)"
ENTRIES = re.compile(rf"(?:{ENTRY}(?:<br>{ENTRY})*)?")
SIZES = re.compile(r"\d{1,19}(?:x\d{1,19}){0,5}|\?(?:x\?)?")
# types that are one op, whatever they count
OPS: Mapping[str, str] = {
    "Convolution": "conv", "Deconvolution": "conv_transpose", "InnerProduct": "linear",
    "BatchNorm": "batch_norm", "Scale": "scale", "ReLU": "relu", "ReLU6": "relu6", "PReLU": "prelu",
    "ELU": "elu", "Sigmoid": "sigmoid", "TanH": "tanh", "AbsVal": "abs", "BNLL": "softplus",
    "Softmax": "softmax", "SoftmaxWithLoss": "softmax_loss", "Dropout": "dropout",
    "Concat": "concat", "Flatten": "flatten",
    **{op: op for op in ("silu", "gelu", "hardswish", "hardsigmoid", "mish", "selu", "hardtanh")},
}  # fmt: skip
# types whose op follows from what they count
BY_COUNT: Mapping[str, Mapping[Meaning, str]] = {
    "Pooling": {"comparisons": "max_pool", "additions": "avg_pool"},
    "Eltwise": {"additions": "add", "macs": "mul", "comparisons": "max"},
}
INPUTS = ("data", "input", "implicit")


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table with Netscope's headings."""
    if not any("Input CH" in line for line in lines):
        return
    for table in tables_in(lines):
        sheet = sheet_of(table)
        if sheet is None or tuple(h.meaning for h in sheet.headings[:7] if h) != HEADINGS:
            continue
        batch = _batch(sheet)
        rows = [_row(row, batch) for row in sheet.rows if row.kind != "total" or row.cells[1].text]
        totals = next((r.cells[-2:] for r in reversed(sheet.rows) if is_total(r.label)), ())
        printed = tuple(cell.text for cell in totals)
        yield PrintedNetwork(
            tuple(_with_inputs(rows)),
            STEM,
            line=table.line,
            last=table.last,
            totals=printed if all(ENTRIES.fullmatch(text) for text in printed) else (),
        )


def _batch(sheet: Sheet) -> int:
    """The images that the activations of the first row with sizes count."""
    for row in sheet.rows:
        shape, counted = _sizes(row, 5, 1), _amounts(row).get("activations")
        if shape is not None and counted is not None and elements(shape):
            near = counted.figure.value() / elements(shape)
            count = max(round(near), 1)
            return count if counted.stands_for(count * elements(shape)) else 1
    return 1


def _row(row: SheetRow, batch: int) -> LayerRow:
    texts = [cell.text for cell in row.cells]
    name, kind = (unescaped(text) for text in texts[1:3]) if len(texts) > 2 else (row.label, "")
    amounts = _amounts(row)
    op = OPS.get(kind) or next(
        (op for count, op in BY_COUNT.get(kind, {}).items() if count in amounts), ""
    )
    output = _sizes(row, 5, batch)
    counted = amounts.get("activations")
    if output is not None and counted is not None and not counted.stands_for(elements(output)):
        output = None  # of another batch, which is not printed
    given = _sizes(row, 3, batch)
    if op == "concat" and (given is None or output is None or given[2:] == output[2:]):
        given = None  # the sum of the channels is printed
    found = LayerRow(
        name,
        kind_of(kind) if op else "unknown",
        op,
        kind,
        given=given,
        output=None if kind == "SoftmaxWithLoss" else output,
        filters=output[1] if output and op in ("conv", "linear", "conv_transpose") else None,
        rounding="ceil" if kind == "Pooling" else None,
        amounts=amounts,
        line=row.line,
        column=row.cells[0].column if row.cells else 1,
        cells=_cells(row),
    )
    if kind == "LRN" and output and "macs" in amounts:
        size = round(amounts["macs"].figure.value() / max(elements(output), 1))
        return replace(found, op="lrn", attributes=LocalResponseNorm(max(size, 1)))
    if op == "conv_transpose":  # Netscope approximates its operations, without bias and groups
        params = {m: a for m, a in amounts.items() if m == "params"}
        return replace(found, amounts=params, groups=1, bias=False, upsampled=amounts.get("macs"))
    return _pooled(found) if op in ("max_pool", "avg_pool") else found


def _pooled(row: LayerRow) -> LayerRow:
    """A pool that counts every element of its input once is global, or has bins."""
    counted = row.amounts.get("comparisons") or row.amounts.get("additions")
    if counted is None or row.given is None or row.output is None:
        return row
    if not counted.stands_for(elements(row.given)):
        return row
    if elements(row.output[2:]) == 1:
        return replace(row, op=f"global_{row.op}", kind="global_pool")
    if any(size % bins for size, bins in zip(row.given[2:], row.output[2:], strict=False)):
        return replace(row, op=f"adaptive_{row.op}", attributes=AdaptivePool(row.output[2:]))
    return row


def _sizes(row: SheetRow, at: int, batch: int) -> Shape | None:
    """Channels and W x H of two columns as a shape."""
    if len(row.cells) <= at + 1:
        return None
    channels, dim = row.cells[at].text.strip(), row.cells[at + 1].text.strip()
    if not channels.isdecimal() or not SIZES.fullmatch(dim) or "?" in dim:
        return None
    return (batch, int(channels), *(int(size) for size in reversed(dim.split("x"))))


def _amounts(row: SheetRow) -> dict[Meaning, Amount]:
    found: dict[Meaning, Amount] = {}
    for claim in row.claims:
        if claim.figure is not None and claim.labelled:
            found.setdefault(claim.meaning, Amount(claim.figure, 1, (1000,), ("round",)))
    return found


def _cells(row: SheetRow) -> tuple[str, ...]:
    """Sizes, operations and memory as Netscope prints them; () if they are not in its form."""
    texts = tuple(cell.text.strip() for cell in row.cells[3:9])
    if len(texts) != 6 or not all(SIZES.fullmatch(t) for t in (texts[1], texts[3])):
        return ()
    channels = all(t == "?" or (t.isdecimal() and t.isascii()) for t in (texts[0], texts[2]))
    return texts if channels and all(map(ENTRIES.fullmatch, texts[4:])) else ()


def _with_inputs(rows: Sequence[LayerRow]) -> Iterator[LayerRow]:
    """The rows, of which the first ones that count nothing and say so are inputs."""
    leading = True
    for row in rows:
        kind = row.type.lower()
        counts = {*row.amounts} - {"activations"}
        leading = leading and not counts and kind.endswith(INPUTS)
        yield replace(row, kind="input", op="") if leading else row
