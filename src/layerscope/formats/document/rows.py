"""Layers as a document prints them, before they are a network: rows, and what a row leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from msgspec import Struct

from layerscope.documents.figures import RULES, Figure, Rule, read
from layerscope.documents.headings import Meaning
from layerscope.graph.attributes.window import Pads, Rounding, Same
from layerscope.graph.types import Graph, Shape
from layerscope.sheets.kinds import Kind


class Amount(Struct, frozen=True):
    """A printed count: its figure, and what one of it stands for under its heading."""

    figure: Figure
    scale: int | Fraction = 1
    bases: tuple[int, ...] = (1000, 1024)  # that its prefix may count by
    rules: tuple[Rule, ...] = RULES[:2]
    least: int = 0  # a smaller number has no such prefix

    def stands_for(self, count: int | Fraction) -> bool:
        """Whether the count is printed like this, rounded or cut."""
        number = Fraction(count) / self.scale
        return number >= self.least and any(
            self.figure.stands_for(number, base, rule) for base in self.bases for rule in self.rules
        )


def amount(text: str, scale: int = 1) -> Amount | None:
    """The count that a cell prints; None if it is no figure."""
    figure = read(text)
    return None if figure is None else Amount(figure, scale)


class LayerRow(Struct, frozen=True):
    """One layer as a document prints it; None and empty fields are left open by the text.

    Shapes are N x C x sizes, and a vector may be printed as a map of one position.
    """

    name: str  # need not be unique
    kind: Kind = "unknown"
    op: str = ""  # name in SPECS, where the text says more than the kind
    type: str = ""  # as it is printed
    takes: tuple[str, ...] | None = None  # keys of the rows that it reads; None: left open
    key: str = ""  # by which other rows refer to it; default: its name
    given: Shape | None = None  # shape of its input
    output: Shape | None = None
    dtype: str = "fp32"  # of an input
    rounded: tuple[Amount, ...] = ()  # its output, where sizes are not printed with all digits
    may_take: tuple[str, ...] = ()  # keys of rows of which it reads one, the likeliest first
    filters: int | None = None  # output channels or features
    kernel: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    pads: Pads | None = None
    same: Same | None = None  # padding of a transposed convolution to its input times the stride
    dilation: tuple[int, ...] | None = None
    rounding: Rounding | None = None  # of a pool, tried first
    groups: int | None = None
    group_channels: int | None = None  # input channels of one group
    depthwise: bool | None = None  # whether every channel is a group
    bias: bool | None = None
    bins: tuple[Amount, ...] = ()  # of an adaptive pool: the input divided by the bins
    changes: bool = False  # a pool whose output is not its input
    uneven_bins: bool = False  # of an adaptive pool without a printed window
    amounts: Mapping[Meaning, Amount] = {}  # params, macs, flops, comparisons, additions ...
    upsampled: Amount | None = None  # products of a transposed convolution over its strides
    attributes: Struct | None = None  # of `op`, where the text prints all of them
    inferred: tuple[str, ...] = ()  # fields that the reader took from figures of the row
    stage: int | None = None  # of the sheet, in its name
    module: str = ""  # path of the module that it is
    line: int = 0
    column: int = 0
    cells: tuple[str, ...] = ()  # as its notation prints them, for an op that it does not tell
    summed: tuple[str, ...] = ()  # of these, those that depend on all rows
    traced: tuple[str, ...] = ()  # of these, those that depend on all rows before it
    undetermined: tuple[str, ...] = ()  # of these, those that no text in the notation determines
    numbered: tuple[str, ...] = ()  # of these, those that depend on what all rows take


class PrintedNetwork(Struct, frozen=True):
    """The rows of one network in the order of a document."""

    rows: tuple[LayerRow, ...]
    notation: str = ""  # that the document uses; "": a table in words of its own
    name: str = ""
    line: int = 0  # of its first row or heading
    last: int = 0  # line
    modules: Mapping[str, str] = {}  # module path -> class name
    notes: tuple[str, ...] = ()  # remarks of the reader
    biased: bool = True  # layers whose figures do not tell have biases
    # a row that the row above does not explain may take an earlier one; None: if many do not
    branched: bool | None = True
    totals: tuple[str, ...] = ()  # as printed
    lines: tuple[str, ...] = ()  # as printed, kept where its rows do not determine a network
    groups: int = 0  # rows of modules that contain other rows
    ambiguous: bool = False  # the text may stand for several networks
    # builds the network for a file and shapes of inputs, where its text is no list of rows
    build: Callable[[str, Mapping[str, Shape]], Graph] | None = None
