"""What PyTorch prints for a model, as a network: exact parameters, and shapes where they follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from layerscope.formats.document.classes import TORCH
from layerscope.formats.document.module_order import UNDETERMINED, Walk, inputs_of
from layerscope.formats.document.module_print import PrintedModule, parse, starts
from layerscope.formats.document.rows import PrintedNetwork
from layerscope.graph.types import Graph, Shape, Tensor

EMPTY = re.compile(r"(?P<kind>[^\s()=,:]{1,200})\([^()]{0,400}\)")  # a module without others
NAMED = 8  # classes or layers that a note names


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each printed module."""
    found = starts(lines)
    for first, last in found:
        text = tuple(lines[first : last + 1])
        build = partial(graph_of, text, first)
        yield PrintedNetwork((), "module", line=first + 1, last=last + 1, build=build)
    if not found and (line := empty_print(lines)):
        yield PrintedNetwork((), "module", line=line, last=line)


def empty_print(lines: Sequence[str]) -> int:
    """The line of a text that is the print of a module without layers; 0 if it is none."""
    printed = [n for n, line in enumerate(lines) if line.strip()]
    if len(printed) != 1:
        return 0
    match = EMPTY.fullmatch(lines[printed[0]].strip())
    return 0 if match is None or match["kind"] in TORCH else printed[0] + 1


def graph_of(lines: Sequence[str], first: int, file: str, shapes: Mapping[str, Shape]) -> Graph:
    """The network of some printed lines; `shapes` are those of its inputs, if given."""
    return network_of_module(parse(lines, first, file), file, shapes)


def network_of_module(root: PrintedModule, file: str, shapes: Mapping[str, Shape]) -> Graph:
    """The network of a printed module."""
    given = inputs_of(shapes, root)
    walk = Walk(file, given)
    end = walk.run(root, "", given)
    dtype = "int64" if walk.nodes and walk.nodes[0].op == "embedding" else "fp32"
    tensors = [Tensor(given.name, given.shape, dtype)]
    if any(UNDETERMINED in node.inputs for node in walk.nodes):
        tensors.append(Tensor(UNDETERMINED, None))
    read = {tensor for node in walk.nodes for tensor in node.inputs}
    loose = [node.outputs[0] for node in walk.nodes if node.outputs[0] not in read]
    return Graph(
        root.kind,
        tuple(tensors),
        tuple(walk.nodes),
        tuple(loose) or (end.name,),
        modules={"": root.kind, **walk.modules},
        containers=frozenset(walk.containers),
        notes=tuple(_notes(walk)),
        own_layout=walk.own_layout,
    )


def _some_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _notes(walk: Walk) -> list[str]:
    """What the text leaves open, and what is assumed instead."""
    found = []
    if walk.input.shape is None:
        found.append("a printed module has no input shape: give it with --input to get sizes")
    if walk.assumed:
        found.append(
            f"the text does not say in which order {_some_names([*walk.assumed])} run"
            f"{'s' if len(walk.assumed) == 1 else ''} the modules in "
            f"{'it' if len(walk.assumed) == 1 else 'them'}: the order of the text is assumed, and "
            "functions between modules, such as sums, are not in it"
        )
    if walk.unfit:
        found.append(
            f"the input of {_some_names(walk.unfit)} does not follow from the order of the text: "
            "unknown"
        )
    if walk.inserted:
        found.append(f"the input of {_some_names(walk.inserted)} is flattened, as its size needs")
    if walk.unknown:
        found.append(
            f"not classes of torch.nn, so that operations and parameters are unknown: "
            f"{_some_names([*walk.unknown])}"
        )
    for kind, standard in list(walk.likened.items())[:NAMED]:
        found.append(
            f"{kind} is read as {standard}, whose arguments it prints: parameters of its own and "
            "padding that it computes are not in the text"
        )
    if walk.opened:
        kinds = [f"{kind}: {text}" for kind, text in walk.opened.items()]
        found.append(f"not printed, and assumed: {_some_names(kinds)}")
    if walk.attention:
        found.append(
            "MultiheadAttention: its input projections are not printed, and are taken as square, "
            "with a bias if the output projection has one"
        )
    found.append(
        "a print has layers only: parameters that belong to no layer of torch.nn are not in it, "
        "nor is a parameter that two layers share"
    )
    return found
