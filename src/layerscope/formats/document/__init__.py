"""Documents as networks: texts with per-layer tables, or with what programs print of a network.

To add a notation, write `formats/document/<stem>.py`, with the stem of `notations/<stem>.py`, and
name it in READERS. The file has one function:

    def read(lines: Sequence[str]) -> Iterable[PrintedNetwork]

It looks for its notation anywhere in the lines and yields a `PrintedNetwork` (rows.py) for each
network: a `LayerRow` for every row, also for those that it cannot tell, with the line and column
that it stands at, and `line` and `last` of the whole. Readers run in the order of READERS; lines
that one has read are empty for the next, and `tables`, which reads any table with headings that are
recognised, is the last. A text that is not the notation's yields nothing; no reader raises. A print
without layers may be yielded without rows: it is no network, and an error says where it is.

What a row may say is in the fields of `LayerRow`: the kind at least (`sheets.kinds.kind_of` of a
type), or the op by its name in SPECS. With `attributes` the op is as the text has it. Otherwise
`assembly.network_of` tries what the text leaves open (choices.py) and takes what explains the
printed output and figures (`amounts`). `takes` names the rows that a row reads, by their keys;
with None it takes the row above, or the last earlier row that explains it. Whatever was left open
is in the notes of the Graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from layerscope.documents.reader import BREAK, load, uncommented
from layerscope.errors import FormatError, NoTable, UsageError
from layerscope.formats.document.assembly import network_of
from layerscope.formats.document.rows import PrintedNetwork
from layerscope.formats.sources import HEAD_BYTES, labelled, split_number
from layerscope.graph.edits import bind
from layerscope.graph.types import Graph
from layerscope.limits import DOCUMENT_ROWS

if TYPE_CHECKING:
    from layerscope.formats import ReadOptions

READERS = (
    "boda", "matconvnet", "matconvnet_dag", "netscope", "ptflops", "module", "torchsummary",
    "torchinfo", "keras", "darknet", "torchstat", "fvcore", "backbone", "layersheet", "cs231n",
    "tables",
)  # fmt: skip
LOOKED_FOR = (
    "no network in it: looked for a table (Markdown, HTML, LaTeX, csv or columns of text) with two "
    "headings that are recognised, such as layer, type, kernel, output or params, and for what "
    "MatConvNet, Netscope, Boda, PyTorch, Keras and Darknet print"
)
SEVERAL = "the document prints "  # begins the note of a document with several networks


class DocumentReader(Protocol):
    """The module of a notation."""

    def read(self, lines: Sequence[str]) -> Iterable[PrintedNetwork]:
        """The networks that some lines print in its notation."""


def recognise(head: bytes) -> bool:
    """Whether a file begins as text: in UTF-8, or in UTF-16 with a byte order mark."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if not head.strip() or b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:  # the last character may be cut
        return len(head) >= HEAD_BYTES and error.start > len(head) - 4
    return True


def read(path: str, options: ReadOptions) -> Graph:
    """The network that a document describes; of several the first, or the one that `#N` names."""
    file, number = split_number(path)
    try:
        text = load(file)
    except OSError as error:
        raise FormatError(f"{file}: {error.strerror}") from None
    try:
        found = networks_of(text)
    except FormatError as error:  # a reader knows lines, and not the file
        raise FormatError(f"{file}: {error}") from None
    if not found:
        raise NoTable(f"{file}: {_without_layers(text) or LOOKED_FOR}")
    if number is not None and number > len(found):
        count = "1 network" if len(found) == 1 else f"{len(found)} networks"
        raise UsageError(f"{file}: network #{number}, and the document has {count}")
    chosen = found[(number or 1) - 1]
    stem = os.path.splitext(os.path.basename(labelled(file)))[0]
    suffix = "" if number is None else f"#{number}"
    if chosen.build is not None:
        graph = bind(chosen.build(file, options.inputs), batch=options.batch)
    else:
        graph = network_of(chosen, file, chosen.name or f"{stem}{suffix}")
        graph = bind(graph, options.inputs, options.batch)
    return _with_others(graph, found, number or 1)


def _with_others(graph: Graph, found: Sequence[PrintedNetwork], number: int) -> Graph:
    """The graph with a note of the other networks of its document."""
    from msgspec.structs import replace

    others = [f"#{n} from line {each.line}" for n, each in enumerate(found, 1) if n != number]
    if not others:
        return graph
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    what = f"{SEVERAL}{len(found)} networks, or one several times: this is #{number}"
    return replace(graph, notes=(*graph.notes, f"{what}; {', '.join(others[:5])}{more}"))


def networks_of(text: str) -> tuple[PrintedNetwork, ...]:
    """All networks of a text, in its order."""
    lines = uncommented(BREAK.split(text))
    found = [each for each in _networks(lines) if each.rows or each.build is not None]
    found.sort(key=lambda network: network.line)
    return tuple(found)


def _without_layers(text: str) -> str:
    """Where a text without a network has a print without rows; "" if it has none."""
    for network in _networks(uncommented(BREAK.split(text))):
        what = f"a print in the notation {network.notation} without layers"
        return f"no network in it: line {network.line} is {what}"
    return ""


def _networks(lines: list[str]) -> Iterator[PrintedNetwork]:
    count = 0
    for stem in READERS:
        reader = cast("DocumentReader", import_module(f"layerscope.formats.document.{stem}"))
        for network in reader.read(lines):
            count += len(network.rows)
            DOCUMENT_ROWS.check(count, f"line {network.line}")
            yield network
            if not network.rows and network.build is None:
                continue  # may be the heading of another notation
            for number in range(network.line - 1, network.last):
                lines[number] = ""
