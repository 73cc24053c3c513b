"""ptflops' print of a model: a printed module with figures before the arguments of each module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from layerscope.formats.document.module import empty_print, network_of_module
from layerscope.formats.document.module_print import PrintedModule, parse, starts
from layerscope.formats.document.rows import PrintedNetwork
from layerscope.graph.types import Claims, Graph, Shape

STEM = "ptflops"
SHARE = "% MACs"
FIGURES = 4  # parameters, their share, MACs, their share
NOTE = (
    "the document's own parameters, MACs and shares are printed again by --as ptflops; the figures "
    "of other forms are computed"
)


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each print."""
    for first, last in starts(lines):
        if any(SHARE in line for line in lines[first : first + 3]):
            text = tuple(lines[first : last + 1])
            build = partial(graph_of, text, first)
            yield PrintedNetwork((), STEM, line=first + 1, last=last + 1, build=build)
    if not starts(lines) and (line := empty_print(lines)) and SHARE in lines[line - 1]:
        yield PrintedNetwork((), STEM, line=line, last=line)


def graph_of(lines: tuple[str, ...], first: int, file: str, shapes: Mapping[str, Shape]) -> Graph:
    """The network of some printed lines; its figures are kept unless other inputs are given."""
    root = parse(lines, first, file)
    waiting = [root]
    while waiting:
        module = waiting.pop()
        _drop_figures(module)
        waiting += module.children
    graph = network_of_module(root, file, shapes)
    if shapes:
        return graph
    return replace(graph, notes=(*graph.notes, NOTE), claims=Claims(STEM, lines=lines))


def _drop_figures(module: PrintedModule) -> None:
    """Leave out the figures before the arguments of a module."""
    for n, argument in enumerate(module.arguments[:FIGURES]):
        if not argument.name and argument.text.endswith(SHARE):
            del module.arguments[: n + 1]
            return
