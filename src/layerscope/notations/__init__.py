"""Tables in the styles of other tools and course notes: one file per style, listed here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.graph.types import claims_of

if TYPE_CHECKING:
    from layerscope.report import Report


class Notation(Struct, frozen=True):
    """Module and function that write a notation, its default convention and its description."""

    module: str
    function: str
    like: str
    says: str
    options: tuple[str, ...] = ()  # keyword arguments of the function, and options of `show`
    findings: bool = False  # the module has `findings(report)`, printed under the table


BLOCKS = ("max_columns",)
NOTATIONS = {
    "matconvnet": Notation(
        "matconvnet", "write", "matconvnet", "MatConvNet's network display", BLOCKS
    ),
    "matconvnet.csv": Notation("matconvnet", "write_csv", "matconvnet", "the same as csv", BLOCKS),
    "matconvnet.latex": Notation(
        "matconvnet", "write_latex", "matconvnet", "the same as LaTeX", BLOCKS
    ),
    "matconvnet.dilation": Notation(
        "matconvnet", "write_dilation", "matconvnet", "the same with the row `filt dilat`", BLOCKS
    ),
    "matconvnet.dag": Notation(
        "matconvnet_dag",
        "write",
        "matconvnet",
        "layers, parameters and variables of a DagNN",
        ("parts", *BLOCKS),
    ),
    "matconvnet.dag.csv": Notation(
        "matconvnet_dag", "write_csv", "matconvnet", "the same as csv", ("parts", *BLOCKS)
    ),
    "matconvnet.dag.latex": Notation(
        "matconvnet_dag", "write_latex", "matconvnet", "the same as LaTeX", ("parts", *BLOCKS)
    ),
    "matconvnet.dag.dot": Notation(
        "matconvnet_dag_dot", "write", "matconvnet", "the same as a Graphviz digraph", ("parts",)
    ),
    "netscope": Notation("netscope", "write", "netscope", "Netscope's table"),
    "netscope.folded": Notation(
        "netscope",
        "write_folded",
        "netscope",
        "the same, layers with one name before `/` in one row",
    ),
    "backbone": Notation(
        "backbone", "write", "cs231n", "the Markdown sheet of backbone notes", findings=True
    ),
    "cs231n": Notation("cs231n", "write", "cs231n", "the course notes' text block"),
    "cs231n.md": Notation("cs231n", "write_markdown", "cs231n", "the course notes' Markdown table"),
    "layersheet": Notation("layersheet", "write", "cs231n", "patch, stride, size, memory, ratio"),
    "module": Notation("module", "write", "exact", "what PyTorch prints for a model"),
    "ptflops": Notation("ptflops", "write", "ptflops", "what ptflops prints for a model"),
    "torchsummary": Notation("torchsummary", "write", "exact", "what torchsummary prints"),
    "keras": Notation("keras", "write", "exact", "what `model.summary()` of Keras 2 prints"),
    "keras.box": Notation("keras", "write_box", "exact", "what that of Keras 3 prints"),
    "darknet": Notation("darknet", "write", "exact", "Darknet's log when it loads a network"),
    "darknet.2019": Notation("darknet", "write_2019", "exact", "the same as of 2019"),
    "darknet.2018": Notation("darknet", "write_2018", "exact", "the same as of 2018"),
    "fvcore": Notation("fvcore", "write", "fvcore", "what fvcore's `flop_count_table` prints"),
    "torchinfo": Notation("torchinfo", "write", "torchinfo", "what torchinfo's `summary` prints"),
    "torchstat": Notation("torchstat", "write", "exact", "what torchstat's `stat` prints"),
    "boda": Notation("boda", "write", "boda", "Boda's per-layer profile", ("parts",)),
}


def notation(name: str) -> Notation:
    """The notation of that name."""
    if name not in NOTATIONS:
        raise UnknownName("notation", name, NOTATIONS, f"; choose from {', '.join(NOTATIONS)}")
    return NOTATIONS[name]


def writer(name: str) -> Callable[..., str]:
    """The function that prints a report in that notation; its module is imported on first use."""
    found = notation(name)
    function: Callable[..., str] = getattr(
        import_module(f"layerscope.notations.{found.module}"), found.function
    )
    return function


def write(report: Report, name: str, **options: object) -> str:
    """The report in that notation, without the stamp."""
    accepted = notation(name).options
    for option in options:
        if option not in accepted:
            choices = f"choose from {', '.join(accepted)}" if accepted else "it takes none"
            raise UnknownName(f"option of the notation {name}", option, accepted, f"; {choices}")
    printed = claims_of(report.graph, name).lines
    if printed and not options and report.convention.name == notation(name).like:
        return "\n".join(printed) + "\n"
    return writer(name)(report, **options)


def findings(report: Report, name: str) -> tuple[str, ...]:
    """Sentences to print under a notation's table, in the names of its rows; () for most."""
    found = notation(name)
    if not found.findings:
        return ()
    sentences: tuple[str, ...] = import_module(f"layerscope.notations.{found.module}").findings(
        report
    )
    return sentences
