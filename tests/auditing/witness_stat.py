"""Whether a changed figure of torchstat's table contradicts another, by own arithmetic.

What a row is comes from the network, and not from its figures. Relations that hold in the right
table and not in the changed one are contradictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from layerscope.report import Report

COLUMNS = ("params", "memory", "madd", "flops", "read", "written", "moved")
TITLES = (
    "module name", "input shape", "output shape", "params", "memory(MB)", "MAdd", "Flops",
    "MemRead(B)", "MemWrite(B)", "duration[%]", "MemR+W(B)",
)  # fmt: skip
Row = dict[str, object]


def ops_of(report: Report) -> dict[str, str]:
    """The op of each module."""
    return {layer.node.module or layer.name: layer.op for layer in report.layers}


def rows_of(text: str) -> list[dict[str, str]]:
    """The cells of each row, which end where their titles do or begin behind the cell before."""
    lines = text.splitlines()
    ends = [lines[0].index(title) + len(title) for title in TITLES]
    found = []
    for line in lines[1:]:
        if line.startswith(("=", "-")):
            break
        starts = [len(line.split()[0]), *ends[:-1]]
        cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        found.append({"index": line.split()[0], **dict(zip(TITLES, cells, strict=True))})
    return found


def number(text: str) -> float | None:
    words = text.removesuffix("+ ?").strip().replace(",", "")
    try:
        return float(words)
    except ValueError:
        return None


def relations(text: str, ops: Mapping[str, str], chain: bool) -> Iterator[bool]:
    """All relations of a table, in the order of its rows."""
    rows = rows_of(text)
    above: list[int] | None = None
    for row in rows:
        if row["index"] == "total":
            continue
        given, out = (
            [int(n) for n in row[f"{side} shape"].split()] for side in ("input", "output")
        )
        yield from _of_row(row, ops.get(row["module name"], ""), given, out)
        if chain and above is not None:
            yield given == above or (len(given) == 1 and given[0] in (prod(above), above[0]))
        above = out
    for title in (*TITLES[3:9], TITLES[10]):
        values = [number(row[title]) for row in rows]
        known = [value for value in values[:-1] if value is not None]
        room = 0.006 * len(known) if title == "memory(MB)" else 1e-6
        yield values[-1] is None or abs(sum(known) - values[-1]) <= room


def _of_row(row: Mapping[str, str], op: str, given: list[int], out: list[int]) -> Iterator[bool]:
    params, memory, madd, flops, read, written = (number(row[t]) for t in TITLES[3:9])
    moved = number(row["MemR+W(B)"])
    taken, left = prod(given), prod(out)

    def equal(value: float | None, *right: float) -> bool:
        return value is None or value in right

    yield memory is None or abs(memory - left * 4 / 2**20) <= 0.0051
    if read is not None and written is not None:
        yield equal(moved, read + written)
        yield equal(written, 4 * left)
    if op in ("conv", "linear") and read is not None and params is not None:
        yield equal(read, 4 * (taken + params))
    if op == "conv" and params is not None and flops is not None:
        yield equal(flops, params * prod(out[1:]))
        yield equal(madd, 2 * flops - left, 2 * flops - 2 * left)
    elif op == "linear" and len(given) == 1:
        yield equal(params, taken * left, taken * left + left)
        yield equal(flops, taken * left)
        yield equal(madd, left * (2 * taken - 1))
    elif op == "batch_norm":
        yield given == out
        yield equal(params, 2 * given[0])
        yield equal(madd, 4 * taken)
        yield equal(flops, 2 * taken)
        yield equal(read, 4 * (taken + 2 * given[0]))
    elif op in ("relu", "relu6"):
        yield given == out
        yield equal(params, 0)
        yield equal(madd, taken)
        yield equal(flops, taken)
        yield equal(read, 4 * taken)
    elif op in ("max_pool", "avg_pool"):
        yield given[0] == out[0]
        yield equal(params, 0)
        yield equal(flops, taken)
        yield equal(read, 4 * taken)
        yield madd is None or madd % left == 0


def stat_contradicts(right: str, changed: str, ops: Mapping[str, str], chain: bool) -> bool:
    """Whether a relation of the right table does not hold in the changed one."""
    try:
        pairs = list(zip(relations(right, ops, chain), relations(changed, ops, chain), strict=True))
    except (ValueError, ZeroDivisionError):
        return False
    return any(before and not after for before, after in pairs)
