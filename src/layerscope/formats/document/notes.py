"""What a document leaves open, and the default that fills it, as notes of the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from layerscope.formats.document.choices import Choice
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.graph.attributes.window import Window
from layerscope.graph.types import Node
from layerscope.ops import SPECS

SHOWN = 4  # names in a note
WINDOWED = ("conv", "conv_transpose", "max_pool", "avg_pool", "lp_pool")


class Opened:
    """What the rows of a network left open."""

    def __init__(self) -> None:
        self.input: LayerRow | None = None  # that no row prints
        self.unknown: list[str] = []
        self.attached: list[tuple[str, tuple[str, ...]]] = []
        self.contradicted: list[LayerRow] = []
        self.biases: list[bool] = []  # that no figure of the row shows
        self.left: Counter[tuple[str, str]] = Counter()  # attribute and op

    def add(self, row: LayerRow, choice: Choice) -> None:
        """Count the attributes of an op that the row does not print."""
        op = choice.op
        if op == "lrn" and (row.attributes is None or "size" in row.inferred):
            self.left["size", op] += 1
        if row.attributes is not None:
            return
        if not row.op and row.kind in ("pool", "activation", "norm", "global_pool", "loss"):
            self.left["kind", f"{row.kind}|{op}"] += 1
        if op in WINDOWED:
            for part in ("kernel", "stride", "pads"):
                if getattr(row, part) is None or part in row.inferred:
                    self.left[part, op] += 1
        window = getattr(choice.attributes, "window", None)
        if isinstance(window, Window) and row.dilation is None and max(window.dilation) > 1:
            self.left["dilation", op] += 1
        groups = getattr(choice.attributes, "groups", 1)
        printed = row.groups is not None or row.group_channels is not None
        if groups > 1 and (not printed or "groups" in row.inferred):
            self.left["groups", op] += 1


SENTENCES = {
    "kind": "the op of {rows}: {op}",
    "kernel": "the kernels of {rows}: those that its figures give, else the smallest that fit",
    "stride": "the strides of {rows}: those that give the printed sizes",
    "pads": "the padding of {rows}: what gives the printed sizes, half a kernel where that does "
    "for convolutions, none for pools",
    "dilation": "the dilation of {rows}: what gives the printed sizes",
    "groups": "the groups of {rows}: those that give the printed parameters",
    "size": "the neighbours of {rows}: 5",
}


def notes_of(
    found: PrintedNetwork, opened: Opened, nodes: Sequence[Node], claimed: Collection[str]
) -> Iterator[str]:
    """One sentence for each thing that the text leaves open."""
    for part, sentence in SENTENCES.items():
        for (each, op), count in opened.left.items():
            if each == part:
                kind, _, became = op.rpartition("|")
                rows = f"{count} {kind or op} row{'s' if count > 1 else ''}"
                yield "left open: " + sentence.format(rows=rows, op=became)
    if opened.input is not None:
        shape = opened.input.output
        size = "unknown" if shape is None else "x".join(map(str, shape))
        yield f"left open: the input, which no row prints: {size}"
    if opened.biases:
        with_bias = sum(opened.biases)
        yield (
            f"left open: the biases of {len(opened.biases)} layers: {with_bias} have one, as the "
            "layers whose figures show it, or unless a norm follows"
        )
    weighted = [node for node in nodes if getattr(node.attributes, "bias", None) is False]
    if weighted and not any(getattr(node.attributes, "bias", False) for node in nodes):
        yield (
            f"left open: whether the {len(weighted)} layers with weights have biases that the "
            "document does not count: none"
        )
    families = {SPECS[node.op].family for node in nodes if node.op in SPECS}
    if "convolution" in families and "activation" not in families:
        yield "left open: activations, of which no row is one: none"
    if opened.attached:
        named = ", ".join(f"{name} takes {' + '.join(of)}" for name, of in opened.attached[:SHOWN])
        yield (
            f"left open: the inputs of {len(opened.attached)} rows that the row above does not "
            f"explain: {named}{_and_more(len(opened.attached))}"
        )
    if opened.contradicted:
        rows = ", ".join(f"{row.name} (line {row.line})" for row in opened.contradicted[:SHOWN])
        yield (
            f"no layer has all that the document prints of {rows}"
            f"{_and_more(len(opened.contradicted))}: `layerscope audit` lists such cells"
        )
    if opened.unknown:
        yield (
            f"unknown: what {', '.join(opened.unknown[:SHOWN])}{_and_more(len(opened.unknown))} "
            f"compute{'s' if len(opened.unknown) == 1 else ''}"
        )
    if claimed:
        names = ", ".join(list(claimed)[:SHOWN])
        yield (
            f"taken from the document, not computed: the cells of {names}{_and_more(len(claimed))} "
            f"and totals in the notation {found.notation}"
        )
    if nodes:
        yield "left open: the dtype: fp32"


def _and_more(count: int) -> str:
    return f" and {count - SHOWN} more" if count > SHOWN else ""
