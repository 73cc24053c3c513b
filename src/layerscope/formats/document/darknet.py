"""Darknet's log of a network, in the styles of 2018, 2019 and 2020, as the rows of a network.

Rows have numbers, and a row takes the row above it unless a route before it names others. A batch
norm and an activation are parts of a convolution's row, and no text says which it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import Figure
from layerscope.documents.rows import goes_on
from layerscope.formats.document.classes import kind_of_op, op_and_kind
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork, amount
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

STEM = "darknet"
HEADING = re.compile(
    r"(?:.{0,80}[^\w\s])?\s*layer\s+filters\s+size.*input\s+output\s*", re.IGNORECASE
)
ROW = re.compile(r"\s*(?P<number>\d{1,7}):? (?P<kind>[A-Za-z_][\w.]*)(?P<rest>.*)")
SIZES = r"(?P<{0}w>\d+) x\s*(?P<{0}h>\d+) x\s*(?P<{0}c>\d+)"
ARROW = re.compile(
    rf".*?(?:(?<![\dx] )(?<!\d){SIZES.format('i')}\s*)?->\s*(?:{SIZES.format('o')}|(?P<count>\d+))"
    r"\s*(?:(?P<bf>[\d.]+|\?) (?:BF|BFLOPs))?\s*"
)
WINDOW = re.compile(
    r"\s*(?:(?P<filters>\d+)(?:/\s*(?P<groups>\d+))?\s+)?(?P<kw>\d+)\s*x\s*(?P<kh>\d+)\s*/\s*"
    r"(?P<sx>\d+)(?:\s*x\s*(?P<sy>\d+))?\s*(?:\((?P<dilation>\d+)\))?\s+"
)
FACTOR = re.compile(r"\s*(\d+)x\s")
LAYERS = re.compile(r"[^\d-]*((?:-?\d+[ ,]*)+)")
TOTAL = re.compile(r"\s*Total BFLOPS.*")
WIDEST = 400
OPS = {
    "conv": "conv", "max": "max_pool", "maxpool": "max_pool", "avg": "global_avg_pool",
    "connected": "linear", "dropout": "dropout", "softmax": "softmax", "upsample": "resize",
}  # fmt: skip
NOTES = (
    "left open: batch norms and activations, which are parts of a row: none",
    "left open: biases, of which the text has no figure: with one",
)


class Log(Struct):
    """A log on the way: rows, and the rows that the row below takes."""

    rows: list[LayerRow]
    routes: dict[str, tuple[str, ...]]  # number of a row that only routes -> rows it stands for


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each log."""
    for first, line in enumerate(lines):
        if len(line) < WIDEST and HEADING.fullmatch(line):
            found = _log(lines, first)
            if found is not None:
                yield found


def _log(lines: Sequence[str], first: int) -> PrintedNetwork | None:
    log = Log([], {})
    last, number = first, "-1"
    for index in range(first + 1, len(lines)):
        line = lines[index]
        if len(line) > WIDEST:
            break
        match = ROW.fullmatch(line)
        if match is None:
            if TOTAL.fullmatch(line):
                last = index
            if not goes_on(lines, index, number):
                break
            continue
        last, number = index, match["number"]
        _add(log, match, index + 1)
    if not log.rows:
        style = _style(lines[first : last + 1])
        return PrintedNetwork((), style, line=first + 1, last=last + 1)
    rows = tuple(log.rows)
    notes = NOTES
    return PrintedNetwork(
        rows, _style(lines[first : last + 1]), line=first + 1, last=last + 1, notes=notes,
        ambiguous=_is_ambiguous(rows), lines=tuple(lines[first : last + 1]),
    )  # fmt: skip


def _style(lines: Sequence[str]) -> str:
    """The notation of a log: by its heading, the gap before an arrow, and the end of the total."""
    if "strd" not in lines[0]:
        return "darknet.2018"
    if TOTAL.fullmatch(lines[-1]):
        return STEM if lines[-1].endswith(" ") else "darknet.2019"
    return "darknet.2019" if any(re.search(r"\d  -> ", row) for row in lines) else STEM


def _add(log: Log, match: re.Match[str], number: int) -> None:
    name, kind, rest = match["number"], match["kind"], match["rest"]
    above = str(int(name) - 1)
    takes = _takes(log, above)
    if kind == "route":
        found = LAYERS.match(rest.partition("->")[0])
        sources = [] if found is None else re.findall(r"-?\d+", found[1])
        keys = tuple(_resolved(source, name) for source in sources)
        if len(keys) == 1:
            log.routes[name] = _takes(log, keys[0])
            return
        takes = tuple(key for each in keys for key in _takes(log, each))
        row = LayerRow(f"{name} route", "concat", "concat", kind, takes, name, line=number)
    elif kind.lower() in ("shortcut", "res"):
        found = LAYERS.match(rest.partition("wt")[0].partition("outputs")[0])
        sources = [] if found is None else re.findall(r"-?\d+", found[1])
        keys = tuple(k for source in sources[:1] for k in _takes(log, _resolved(source, name)))
        row = LayerRow(f"{name} shortcut", "add", "add", kind, (*takes, *keys), name, line=number)
    else:
        row = _layer(match, takes, number)
    log.rows.append(replace(row, column=match.start("kind") + 1))


def _resolved(source: str, name: str) -> str:
    """The number of a row that a route names; a negative one counts back."""
    return str(int(name) + int(source)) if source.startswith("-") else source


def _takes(log: Log, key: str) -> tuple[str, ...]:
    if key in log.routes:
        return log.routes[key]
    return ("input",) if key == "-1" or not log.rows else (key,)


def _layer(match: re.Match[str], takes: tuple[str, ...], number: int) -> LayerRow:
    name, kind, rest = match["number"], match["kind"], match["rest"]
    op = OPS.get(kind) or op_and_kind(kind, {})[0]
    sizes = ARROW.fullmatch(rest)
    window = WINDOW.match(rest) if op in ("conv", "max_pool") or kind == "avg" else None
    given = None if sizes is None else _shape(sizes, "i")
    output = None if sizes is None else _shape(sizes, "o")
    if sizes is not None and sizes["count"] and op in ("linear", "global_avg_pool", "dropout"):
        output = (1, int(sizes["count"]))
    if kind == "avg" and window is not None:
        op = "avg_pool"
    bf = None if sizes is None or not sizes["bf"] else amount(sizes["bf"])
    row = LayerRow(
        f"{name} {kind}",
        kind_of_op(op),
        op,
        kind,
        takes,
        name,
        given,
        output,
        bias=True if op in ("conv", "linear") else None,
        amounts={} if bf is None or op != "conv" else {"flops": _billions(bf)},
        attributes=_attributes(op, rest),
        line=number,
    )
    return row if window is None else _windowed(row, window)


def _attributes(op: str, rest: str) -> at.Dropout | at.Resize | None:
    if op == "dropout":
        p = re.search(r"p = (\d{0,4}\.?\d{1,8})", rest)
        return at.Dropout(float(p[1]) if p is not None else 0.5)
    if op == "resize":
        factor = FACTOR.match(rest)
        return None if factor is None else at.Resize("nearest", scale=((int(factor[1]), 1),))
    return None


def _is_ambiguous(rows: Sequence[LayerRow]) -> bool:
    """Whether a row is no layer of Darknet's, or has one axis, which is printed as two."""
    return any(
        (row.type not in OPS and row.op not in ("concat", "add"))
        or (row.given is not None and row.given[2] == 1 < row.given[3])
        for row in rows
    )


def _windowed(row: LayerRow, window: re.Match[str]) -> LayerRow:
    """The row with the size, stride and dilation of its window."""
    return replace(
        row,
        filters=int(window["filters"]) if window["filters"] else None,
        kernel=(int(window["kh"]), int(window["kw"])),
        stride=_stride(window),
        dilation=(int(window["dilation"] or 1),) * 2,
        groups=int(window["groups"] or 1) if row.op == "conv" else None,
    )


def _billions(found: Amount) -> Amount:
    figure: Figure = found.figure
    return Amount(figure, 10**9)


def _stride(window: re.Match[str]) -> tuple[int, int]:
    across = int(window["sx"])
    return (int(window["sy"]) if window["sy"] else across, across)


def _shape(match: re.Match[str], side: str) -> Shape | None:
    if match[f"{side}w"] is None:
        return None
    width, height, channels = (int(match[f"{side}{axis}"]) for axis in "whc")
    return (1, channels, height, width)
