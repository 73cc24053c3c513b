"""Keras' `model.summary()`, as Keras 2 and Keras 3 print it, as the rows of a network.

It prints names, classes, outputs with channels last, parameters, and what each layer is connected
to; a cell may go over several lines. In HTML the tags around it are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape

from msgspec import Struct, field

from layerscope.formats.document.classes import KERAS, count_of, op_and_kind, sizes_of
from layerscope.formats.document.matconvnet import NORMS
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork, amount
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Shape

HEADING = re.compile(r"[\s│┃|]*Layer \(type\).*Output Shape.*Param #.*")
MODEL = re.compile(r"\s*Model: \"(?P<name>.*)\"\s*")
TITLES = ("Layer (type)", "Output Shape", "Param #", "Connected to")
NAME = re.compile(r"(?P<name>.*?)\s*\((?P<kind>[\w.>]+)\)?")
LINK = re.compile(r"'?([^\s,'\[\]]+?)(?:\[\d+|…|\[…)[^,\s]*")
TAG = re.compile(r"<[^<>]{0,400}>")
RULE = re.compile(r"[\s_=─━┏┓┡┩├┤└┘┬┴┼╇┳┻│┃|+-]{8,}")
TOTAL = re.compile(r"\s*(?:Total|Trainable|Non-trainable|Optimizer) params: ")
CUT = "…"
WIDEST = 4_000


class KerasCells(Struct):
    """One row: the text of each cell over all its lines."""

    line: int
    column: int
    cells: list[str] = field(default_factory=lambda: [""] * len(TITLES))


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each summary."""
    after = 0
    for first, line in enumerate(lines):
        if first < after or "Layer (type)" not in line or len(line) > WIDEST:
            continue
        plain = _plain(line)
        if HEADING.fullmatch(plain):
            found, after = _table(lines, first)
            if found is not None:
                yield found


def _plain(line: str) -> str:
    """A line without the tags of HTML."""
    if "<" not in line and "&" not in line:
        return line
    return unescape(TAG.sub("", line))


def _table(lines: Sequence[str], first: int) -> tuple[PrintedNetwork | None, int]:
    heading = _plain(lines[first])
    boxed = any(sign in heading for sign in "│┃|")
    starts = [at for title in TITLES if (at := heading.find(title)) >= 0]
    rows: list[KerasCells] = []
    now: KerasCells | None = None
    last = first
    for at in range(first + 1, len(lines)):
        line = _plain(lines[at][:WIDEST])
        if TOTAL.match(line):
            last = at
            continue
        if last > first and TOTAL.match(_plain(lines[last][:WIDEST])):
            if boxed or not RULE.fullmatch(line):
                break
            last = at
            break
        if not line.strip() or RULE.fullmatch(line):
            now = None if boxed or line.strip("_ ") == "" else now
            last = at if line.strip() else last
            continue
        cells = _boxed(line) if boxed else _cut(line, starts)
        if cells is None:
            break
        last = at
        new = count_of(cells[2]) is not None or cells[2].strip() == "?"
        if new:
            now = KerasCells(at + 1, len(line) - len(line.lstrip()) + 1)
            rows.append(now)
        if now is None:
            break
        for n, cell in enumerate(map(str.strip, cells)):
            joint = " " if boxed and now.cells[n] and cell else ""
            now.cells[n] += joint + cell
    if not rows:
        return None, first + 1
    return _network(lines, (first, last), rows, boxed=boxed), last + 1


def _boxed(line: str) -> list[str] | None:
    parts = re.split("[│┃|]", line.strip().strip("│┃|"))
    if len(parts) not in (3, 4):
        return None
    return [part.strip() for part in parts] + [""] * (4 - len(parts))


def _cut(line: str, starts: Sequence[int]) -> list[str] | None:
    """The cells of a line in columns, each of which starts where its heading does."""
    if line[: starts[0]].strip():
        return None
    ends = [*starts[1:], len(line)]
    cells = [line[a:b] for a, b in zip(starts, ends, strict=True)]
    return cells + [""] * (4 - len(cells))


def _network(
    lines: Sequence[str], span: tuple[int, int], rows: Sequence[KerasCells], *, boxed: bool
) -> PrintedNetwork:
    first, last = span
    name, start = "", first
    for at in range(max(first - 3, 0), first):
        match = MODEL.fullmatch(_plain(lines[at]))
        if match is not None:
            name, start = match["name"], at
    if start == first and first and RULE.fullmatch(_plain(lines[first - 1])):
        start = first - 1
    connected = "Connected to" in _plain(lines[first])
    found: list[LayerRow] = []
    keys: dict[str, str] = {}
    for row in rows:
        layer = _row(row, keys, connected=connected)
        keys[layer.name] = layer.key
        found.append(layer)
    text = tuple(lines[start : last + 1])
    return PrintedNetwork(
        tuple(found),
        "keras.box" if boxed else "keras",
        name,
        start + 1,
        last + 1,
        branched=connected,
        # the channels of a sequence may be its last axis or the one before
        ambiguous=any(row.output is not None and len(row.output) == 3 for row in found)
        or _is_cut(found, rows),
        lines=text if _plain(text[-1]) == text[-1] else (),
    )


def _row(row: KerasCells, keys: Mapping[str, str], *, connected: bool) -> LayerRow:
    match = NAME.fullmatch(row.cells[0])
    name, kind = (match["name"], match["kind"]) if match is not None else (row.cells[0], "")
    is_input = kind == "InputLayer"
    op, row_kind = op_and_kind(kind, KERAS)
    if kind.startswith("Depthwise"):
        row_kind = "depthwise"
    shape = _shape(row.cells[1])
    counted = amount(row.cells[2])
    takes = None
    if connected and not is_input:
        links = [_key(link, keys) for link in LINK.findall(row.cells[3].strip("[]"))]
        takes = tuple(links)
    attributes = _norm(counted, shape) if op == "batch_norm" else None
    return LayerRow(
        name,
        "input" if is_input else row_kind,
        op,
        kind,
        takes,
        f"{row.line}",
        output=shape,
        depthwise=kind.startswith("Depthwise") if op == "conv" else None,
        amounts={} if counted is None or is_input else {"params": counted},
        attributes=attributes,
        line=row.line,
        column=row.column,
    )


def _norm(counted: Amount | None, shape: Shape | None) -> BatchNorm | None:
    """A batch norm by its arrays, of which Keras counts all."""
    if counted is None or shape is None:
        return None
    return next((a for n, a in NORMS.items() if counted.stands_for(n * shape[1])), None)


def _is_cut(found: Sequence[LayerRow], rows: Sequence[KerasCells]) -> bool:
    """Whether names are cut so that a row may be connected to one of several."""
    names = [row.name for row in found]
    if not any(CUT in name for name in (*names, *(row.cells[3] for row in rows))):
        return False
    beginnings = [name.partition(CUT)[0] for name in names]
    cut = {beginning for beginning, name in zip(beginnings, names, strict=True) if CUT in name}
    cut |= {link.partition(CUT)[0] for row in rows for link in LINK.findall(row.cells[3])}
    return any(sum(each.startswith(begin) for each in beginnings) > 1 for begin in cut)


def _key(link: str, keys: Mapping[str, str]) -> str:
    """The key of the row that a link names, in full or cut."""
    if link in keys:
        return keys[link]
    near = [
        key
        for name, key in keys.items()
        if name.startswith(link) or (CUT in name and link.startswith(name.partition(CUT)[0]))
    ]
    return near[-1] if near else link


def _shape(text: str) -> Shape | None:
    """A printed shape with channels first."""
    sizes = sizes_of(text.split("), (")[0].replace("[", "").replace("]", ""))
    if not sizes or any(size is None for size in sizes[1:]):
        return None
    whole = tuple(size for size in sizes[1:] if size is not None)
    return (sizes[0] or 1, *whole[-1:], *whole[:-1])
