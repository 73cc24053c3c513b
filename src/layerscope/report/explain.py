"""Figures that other counters print for a network, and what makes up each difference to ours."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from layerscope.conventions import COUNTERS, convention
from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import ATTENTION, CountedNode, counted_nodes
from layerscope.ops import SPECS, Ops, display_name
from layerscope.report.results import TableResult
from layerscope.report.types import Layer, Report

if TYPE_CHECKING:
    from layerscope.report.figures import Answer

# Names of operations other than multiply-adds, by op family.
EXTRAS = {
    "normalization": "norms",
    "activation": "activations",
    "softmax": "softmax",
    "pooling": "pools",
    "resizing": "upsampling",
    "convolution": "biases",
    "linear": "biases",
    "recurrent": "biases and gates of recurrent layers",
    "attention": "scaling and softmax of attention",
    "indexing": "embeddings",
}


class Part(Struct, frozen=True):
    """One reason for a difference, and how much of it is due to that."""

    what: str
    count: int
    share: Fraction | None  # of the exact figure

    def __str__(self) -> str:
        return self.what


class Opinion(Struct, frozen=True):
    """Figures of one counter, and why they differ."""

    name: str
    says: str
    figure: str  # what it calls its figure
    value: int
    macs: int  # the figure as multiply-adds
    flops: int | None  # where it prints FLOPs beside multiply-adds
    params: int
    parts: tuple[Part, ...]  # their sum is the difference in multiply-adds
    param_parts: tuple[Part, ...]
    sign: str = ""  # of the figure: `≥` for a lower bound, `~` for an estimate


class Explanation(TableResult, frozen=True):
    """Exact figures of a network and those of other counters, with the reasons why they differ."""

    printed_by: ClassVar[str] = "explanation"

    report: Report
    macs: int
    params: int
    opinions: tuple[Opinion, ...]
    notes: tuple[str, ...]
    answer: Answer | None = None  # where a published figure comes from, if one was asked for


def explain(report: Report, names: Sequence[str] = COUNTERS) -> Explanation:
    """Figures of each of the counters for the network of an exact report."""
    return explain_counted(report, [replace(report, convention=convention(name)) for name in names])


def explain_counted(report: Report, others: Sequence[Report]) -> Explanation:
    """Figures of the same network under other conventions, and why they differ."""
    params = report.total_params
    nodes = {
        node.name: node
        for node in counted_nodes(report.graph, report.shapes, report.costs)
        if node.inferred_call is not None
    }
    found = [_opinion(report, nodes, params, theirs) for theirs in others]
    return Explanation(report, report.totals.macs, params, tuple(found), _notes(report))


def _notes(report: Report) -> tuple[str, ...]:
    notes = []
    if not report.graph.kinds:
        notes.append(
            "not captured from PyTorch: layers with a module's name are taken for that module, "
            "others for calls of functions, and so counters of modules are an assumption"
        )
    if report.coverage.unknown:
        notes.append(f"{report.coverage}: what is unknown is in no figure")
    return tuple(notes)


def _opinion(report: Report, nodes: dict[str, CountedNode], params: int, theirs: Report) -> Opinion:
    rules, totals = theirs.convention, theirs.totals
    value = totals.convention_ops or 0
    reasons: dict[str, list[int]] = {}  # what -> ours, theirs
    param_reasons: dict[str, int] = {}
    for layer, own in zip(theirs.layers, report.layers, strict=True):
        node = nodes.get(layer.name)
        if node is not None:
            _add_reasons(reasons, node, layer, own.ops.mac, rules)
        if layer.params != own.params:
            what = _owner(node, layer)
            param_reasons[what] = param_reasons.get(what, 0) + layer.params - own.params
    macs = value // 2 if rules.two_per_mac else value
    parts = [
        Part(
            _reason(what, ours, said, rules.why.get(what, "")),
            said - ours,
            _share(said - ours, report.totals.macs),
        )
        for what, (ours, said) in reasons.items()
        if said != ours
    ]
    unused = totals.params - params - sum(param_reasons.values())
    if unused:
        param_reasons["parameters that this forward does not use"] = unused
    return Opinion(
        name=rules.name,
        says=rules.says,
        figure=rules.figure,
        value=value,
        macs=macs,
        flops=totals.convention_kinds.flops if rules.prints_flops else None,
        params=totals.params,
        parts=tuple(sorted(parts, key=lambda part: -abs(part.count))),
        param_parts=tuple(
            Part(
                f"{what} {'not counted' if count < 0 else 'counted'}", count, _share(count, params)
            )
            for what, count in sorted(param_reasons.items(), key=lambda item: -abs(item[1]))
            if count
        ),
        sign=theirs.sign("convention_ops"),
    )


def _share(count: int, whole: int) -> Fraction | None:
    return Fraction(count, whole) if whole else None


def _add_reasons(
    reasons: dict[str, list[int]], node: CountedNode, layer: Layer, ours: int, rules: Convention
) -> None:
    """Add one node to the reasons: its multiply-adds to one, other operations to another."""
    half = 2 if rules.two_per_mac else 1
    products = (rules.headline(Ops(mac=layer.convention_kinds.mac)) or 0) // half
    whole = (layer.convention_ops or 0) // half
    if products or ours:
        pair = reasons.setdefault(_product_name(node, rules), [0, 0])
        pair[0] += ours
        pair[1] += products
    if whole != products:
        family = SPECS[layer.op].family
        pair = reasons.setdefault(EXTRAS.get(family, f"{layer.op} layers"), [0, 0])
        pair[1] += whole - products


def _product_name(node: CountedNode, rules: Convention) -> str:
    """The group of products that this node belongs to, as far as a counter sees it."""
    op = node.op
    if ATTENTION in node.outer_classes:
        return "attention modules"
    if SPECS[op].family == "recurrent":
        return "recurrent layers"
    what = display_name(op, "plural") or f"{op} layers"
    if node.module_uses > 1:
        return f"{what} of modules that stand in several places"
    is_function = not node.module_class and op in ("conv", "conv_transpose", "linear")
    if is_function and rules.sees == "modules":
        return f"{what} called as functions"
    if node.module_class and any(name.endswith("Attention") for name in node.outer_classes):
        return f"{what} inside attention modules"
    if op == "linear" and len(node.call.x) > 2:
        return f"{what} on sequences"
    return what


def _reason(what: str, ours: int, theirs: int, why: str) -> str:
    if not ours:
        return f"{what} counted"
    more = "for more" if theirs > ours else "for less"
    text = f"{what} counted {more}" if theirs else f"{what} missed"
    return f"{text}, {why}" if why else text


def _owner(node: CountedNode | None, layer: Layer) -> str:
    """The class of modules that owns the parameters of a layer."""
    if node is None:
        return f"{layer.op} layers"
    leaf_class = node.leaf_call.module_class if node.leaf_call else ""
    short = (node.module_class or leaf_class or node.outer_classes[-1]).rpartition(".")[2]
    if node.leaf_path or short == ATTENTION:
        return f"parameters of {short}"
    return f"parameters that {short} uses itself" if short else "parameters of no module"
