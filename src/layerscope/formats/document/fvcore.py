"""fvcore's table: parameters of modules, with shapes where it prints them, and no operations.

A row with a shape is a parameter of the module around it; a row with rows below it is a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

from msgspec import Struct, field

from layerscope.documents.figures import read as read_figure
from layerscope.formats.document.classes import sizes_of
from layerscope.formats.document.names import unescaped
from layerscope.formats.document.rows import PrintedNetwork
from layerscope.graph.types import Claims, Graph, Node, Param, Shape, Tensor

STEM = "fvcore"
HEADING = re.compile(r"\|\s*module\s*\|\s*#parameters or shape\s*\|\s*#flops\s*\|\s*")
ROW = re.compile(r"\| (?P<indent> *)(?P<name>[^|]*?)\s*\|(?P<params>[^|]*)\|(?P<flops>[^|]*)\|\s*")
RULE = re.compile(r"\|[:\-| ]+\|\s*")
WIDEST = 2_000
NOTE = "fvcore's table has parameters and flops of modules, and no operations"
AGAIN = "the document's own parameters and flops are printed again by --as fvcore, and not computed"


class ModuleLine(Struct):
    """A row: its depth, path, and both figures; parameters below it by name."""

    depth: int
    path: str
    params: str
    line: int
    arrays: list[Param] = field(default_factory=list)
    is_leaf: bool = True


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table."""
    for first, line in enumerate(lines):
        if "#parameters or shape" in line and len(line) < WIDEST and HEADING.fullmatch(line):
            rows, last = _rows(lines, first)
            if rows:
                text = tuple(lines[first : last + 1])
                build = partial(_graph, rows, text)
                yield PrintedNetwork((), STEM, line=first + 1, last=last + 1, build=build)


def _rows(lines: Sequence[str], first: int) -> tuple[list[ModuleLine], int]:
    rows: list[ModuleLine] = []
    owners: dict[str, ModuleLine] = {}
    around: list[ModuleLine] = []  # modules around the next row, outermost first
    last = first
    for at in range(first + 1, len(lines)):
        line = lines[at]
        if len(line) > WIDEST or not line.startswith("|"):
            break
        match = ROW.fullmatch(line)
        if match is None or RULE.fullmatch(line):
            if RULE.fullmatch(line):
                last = at
                continue
            break
        last = at
        found = _row(match, at + 1, is_root=not rows)
        if isinstance(found, ModuleLine):
            while around and around[-1].depth >= found.depth:
                around.pop()
            if around:
                around[-1].is_leaf = False
            around.append(found)
            owners[found.path] = found
            rows.append(found)
            continue
        home, array = found
        if home not in owners:
            owners[home] = ModuleLine(0, home, "", at + 1)
            rows.append(owners[home])
        owners[home].arrays.append(array)
    return rows, last


def _row(match: re.Match[str], number: int, *, is_root: bool) -> ModuleLine | tuple[str, Param]:
    """A module, or a parameter and the module that has it."""
    name, params = unescaped(match["name"]), match["params"].strip()
    shape = _shape(params)
    if shape is not None and not is_root:
        home, _, own = name.rpartition(".")
        return home, Param(own, shape, "bias" if own.endswith("bias") else "weight")
    return ModuleLine(len(match["indent"]), "" if is_root else name, params, number)


def _shape(text: str) -> Shape | None:
    sizes = sizes_of(text) if text.startswith("(") else None
    if sizes is None or any(size is None for size in sizes):
        return None
    return tuple(size for size in sizes if size is not None)


def _exact(text: str) -> int | None:
    """A count that is printed in full: its thousands have three decimals at most."""
    figure = read_figure(text)
    if figure is None or "M" in text or "G" in text or "?" in text:
        return None
    value = figure.value()
    return int(value) if Fraction(value).denominator == 1 else None


def _graph(
    rows: Sequence[ModuleLine], text: tuple[str, ...], file: str, shapes: Mapping[str, Shape]
) -> Graph:
    nodes: list[Node] = []
    rounded = []
    for row in rows:
        exact = _exact(row.params)
        if not row.arrays and (not row.is_leaf or exact == 0 or not row.params):
            continue
        params: tuple[Param, ...] | None = tuple(row.arrays)
        if not row.arrays:
            params = None if exact is None else (Param("parameters", (exact,)),)
            if exact is None:
                rounded.append(f"{row.path} ({row.params})")
        name = row.path or "model"
        scope = tuple(row.path.split(".")[:-1])
        nodes.append(Node(name, "weights", (), (name,), None, params, scope, row.path, note=NOTE))
    notes = [NOTE, AGAIN]
    if rounded:
        shown = ", ".join(rounded[:5])
        more = f" and {len(rounded) - 5} more" if len(rounded) > 5 else ""
        notes.append(f"rounded in the text, so that the parameters are unknown: {shown}{more}")
    return Graph(
        "model",
        (Tensor("input", shapes.get("")),),
        tuple(nodes),
        (),
        notes=tuple(notes),
        claims=Claims(STEM, lines=text),
        own_layout=True,
    )
