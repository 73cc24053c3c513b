"""Whether a changed figure of a DagNN contradicts another, by arithmetic of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from layerscope.documents.types import Cell

HEADS = ("func", "param", "var")
FIGURES = ("pad", "stride", "dims", "mem", "fanin", "fanout", "size", "offset")
SAME = ("ReLU", "Tanh", "Sigmoid", "Dropout", "BatchNorm", "SoftMax", "LRN")
UNITS = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}
MEMORY = re.compile(r"(\d+)([KMG]?B)")
Tables = dict[str, dict[str, dict[str, Cell]]]


def tables(text: str) -> Tables:
    """Head of each table -> name -> title -> cell; totals are under `sum`."""
    found: Tables = {}
    head, names = "", list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        cells = list(_cells(line, number))
        title = cells[0].text if cells else ""
        if title in HEADS or title.startswith("rf in"):
            head, names = "rf" if title.startswith("rf") else title, [c.text for c in cells[1:]]
        elif title in ("params", "vars", "total") and len(cells) == 2 and head == "var":
            found.setdefault("sum", {}).setdefault(title, {"mem": cells[1]})
        elif cells:
            for name, cell in zip(names, cells[1:], strict=False):
                found.setdefault(head, {}).setdefault(name, {}).setdefault(title, cell)
    return found


def _cells(line: str, number: int) -> Iterator[Cell]:
    """The cells of a line of text, csv or LaTeX; none for other lines."""
    if '"' in line:
        for match in re.finditer(r'"\s*\'?(.*?)\s*"', line):
            yield Cell(match[1], number, match.start(1) + 1)
        return
    sign = "|" if "|" in line else "&" if "&" in line else ""
    start = 0
    for part in line.replace("\\\\", "  ").split(sign) if sign else ():
        word = part.strip()
        last = sign == "|" and start + len(part) >= len(line.rstrip()) and not word
        if not last:
            yield Cell(word.replace("\\_", "_"), number, start + len(part) - len(part.lstrip()) + 1)
        start += len(part) + 1


def figures(text: str) -> Iterator[tuple[str, str, Cell]]:
    """Names, headings and cells of all figures."""
    for head, columns in tables(text).items():
        for name, cells in columns.items():
            for title, cell in cells.items():
                if head == "sum":
                    yield name, name, cell
                elif title in FIGURES:
                    yield name, title, cell


def _sizes(cell: Cell | None) -> list[float]:
    try:
        return [float(n) for n in cell.text.split("x")] if cell is not None else []
    except ValueError:
        return []


def _shape(cell: Cell | None) -> list[float]:
    sizes = _sizes(cell)
    return sizes * 4 if len(sizes) == 1 else sizes + [1.0] * (4 - len(sizes)) if sizes else []


def _bytes(cell: Cell | None) -> tuple[float, float] | None:
    match = MEMORY.fullmatch(cell.text) if cell is not None else None
    if match is None:
        return None
    value, unit = float(match[1]), UNITS[match[2]]
    half = 0.5 if unit > 1 else 0.0
    return (value - half) * unit, (value + half) * unit


def relations(text: str) -> Iterator[tuple[str, bool]]:
    """Every relation of a print by name, and whether it holds."""
    found = tables(text)
    yield from _memory(found)
    funcs = found.get("func", {})
    for head, title, source in (
        ("param", "fanout", "params"), ("var", "fanin", "outputs"), ("var", "fanout", "inputs"),
    ):  # fmt: skip
        for name, cells in found.get(head, {}).items():
            count = sum(each[source].text.split().count(name) for each in funcs.values())
            if title in cells:
                yield f"{head} {name} {title}", cells[title].text == str(count)
    for name, cells in funcs.items():
        yield from ((f"{name} {key}", holds) for key, holds in _layer(found, cells))


def _memory(found: Tables) -> Iterator[tuple[str, bool]]:
    sums = [0.0, 0.0]
    for head, total in (("param", "params"), ("var", "vars")):
        spans = []
        for name, cells in found.get(head, {}).items():
            span, sizes = _bytes(cells.get("mem")), _sizes(cells.get("dims"))
            if span is None or not sizes:
                continue
            spans.append(span)
            counts = {4 * prod(sizes), *([4 * sizes[0] ** 4] if len(sizes) == 1 else [])}
            yield f"{head} {name} mem", any(span[0] <= n <= span[1] for n in counts)
        whole = _bytes(found.get("sum", {}).get(total, {}).get("mem"))
        if whole is not None:
            low, high = (sum(span[n] for span in spans) for n in (0, 1))
            sums = [sums[0] + whole[0], sums[1] + whole[1]]
            yield f"{total} sum", low <= whole[1] and whole[0] <= high
    both = _bytes(found.get("sum", {}).get("total", {}).get("mem"))
    if both is not None:
        yield "total sum", sums[0] <= both[1] and both[0] <= sums[1]


def _layer(found: Tables, cells: dict[str, Cell]) -> Iterator[tuple[str, bool]]:
    """Sizes and fields of one layer from those of its first input."""
    kind, source = cells["type"].text, (cells["inputs"].text.split() or [""])[0]
    output = (cells["outputs"].text.split() or [""])[0]
    before, after = (_shape(found["var"].get(name, {}).get("dims")) for name in (source, output))
    if not before or not after:
        return
    filters = cells["params"].text.split()
    kernel = _shape(found.get("param", {}).get(filters[0], {}).get("dims")) if filters else []
    pads, strides = _sizes(cells.get("pad")), _sizes(cells.get("stride"))
    pad, stride = pads[0] if len(set(pads)) == 1 else None, strides[0] if strides else None
    if kind == "Conv" and kernel and pad is not None and stride:
        yield "filters", kernel[3] == after[2]
        yield "depth", before[2] % max(kernel[2], 1) == 0
        yield "images", before[3] == after[3]
        for axis in (0, 1):
            yield (
                f"size {axis}",
                (before[axis] + 2 * pad - kernel[axis]) // stride + 1 == after[axis],
            )
        yield from _fields(found, (source, output), (kernel[0], stride, pad))
    elif kind in SAME:
        yield "same", before == after
        yield from _fields(found, (source, output), (1.0, 1.0, 0.0))
    elif kind == "Pooling" and pad is not None and stride:
        yield "same", before[2:] == after[2:]
        spans = [
            k for k in range(1, 64)
            if before[0] + 2 * pad >= k
            and after[0] in ((before[0] + 2 * pad - k) // stride + 1,
                             -((k - before[0] - 2 * pad) // stride) + 1)
        ]  # fmt: skip
        each = [dict(_fields(found, (source, output), (float(k), stride, pad))) for k in spans]
        yield "pool", any(all(holds.values()) for holds in each)


def _fields(
    found: Tables, names: tuple[str, str], window: tuple[float, float, float]
) -> Iterator[tuple[str, bool]]:
    given = [found.get("rf", {}).get(name, {}) for name in names]
    rows = [[_sizes(each.get(title)) for title in ("size", "stride", "offset")] for each in given]
    if not all(cell for row in rows for cell in row):
        return
    (size, jump, offset), after = ((cell[0] for cell in row) for row in rows)
    kernel, stride, pad = window
    right = (size + (kernel - 1) * jump, jump * stride, offset + ((kernel - 1) / 2 - pad) * jump)
    for title, number, printed in zip(
        ("rf size", "rf stride", "rf offset"), right, after, strict=True
    ):
        yield title, number == printed


def dag_contradicts(right: str, changed: str) -> bool:
    """Whether a relation that holds in the right print does not in the changed one."""
    before = dict(relations(right))
    return any(before.get(name) and not holds for name, holds in relations(changed))
