"""What other counters would say of a network, and why that differs from ours, to the last unit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.conventions import COUNTERS, convention
from layerscope.conventions.convention import Convention
from layerscope.conventions.sites import ATTENTION, Site, survey
from layerscope.ops import SPECS, Ops, display_name
from layerscope.report.types import Layer, Report

# What is counted beside multiply-adds, by family.
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
    """One reason for a difference, and how much of it that makes up."""

    what: str
    count: int
    share: Fraction | None  # of our figure

    def __str__(self) -> str:
        return self.what


class Opinion(Struct, frozen=True):
    """What one counter would say."""

    name: str
    says: str
    figure: str  # what it calls its figure
    value: int
    macs: int  # the figure as multiply-adds
    flops: int | None  # where it prints FLOPs beside multiply-adds
    params: int
    parts: tuple[Part, ...]  # add up to the difference of multiply-adds
    param_parts: tuple[Part, ...]


class Explained(Struct, frozen=True):
    """Our figures and everybody's."""

    report: Report
    macs: int
    params: int
    opinions: tuple[Opinion, ...]
    notes: tuple[str, ...]


def explain(report: Report, names: Sequence[str] = COUNTERS) -> Explained:
    """What each of the counters would say of the network of an exact report."""
    params = report.totals.params + sum(param.elements for param in report.graph.unused)
    sites = {s.node.name: s for s in survey(report.graph, report.shapes, report.costs)}
    found = [_opinion(report, sites, params, convention(name)) for name in names]
    return Explained(report, report.totals.macs, params, tuple(found), _notes(report))


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


def _opinion(report: Report, sites: dict[str, Site], params: int, rules: Convention) -> Opinion:
    theirs = Report(
        graph=report.graph,
        shapes=report.shapes,
        costs=report.costs,
        fields=report.fields,
        memory=report.memory,
        convention=rules,
        version=report.version,
    )
    totals = theirs.totals
    value = totals.convention_ops or 0
    reasons: dict[str, list[int]] = {}  # what -> ours, theirs
    held: dict[str, int] = {}
    for layer, own in zip(theirs.layers, report.layers, strict=True):
        site = sites.get(layer.name)
        if site is not None:
            _compared(reasons, site, layer, own.ops.mac, rules)
        if layer.params != own.params:
            what = _holder(site, layer)
            held[what] = held.get(what, 0) + layer.params - own.params
    macs = value // 2 if rules.twice else value
    parts = [
        Part(
            _said(what, ours, said, rules.why.get(what, "")),
            said - ours,
            _share(said - ours, report.totals.macs),
        )
        for what, (ours, said) in reasons.items()
        if said != ours
    ]
    unused = totals.params - params - sum(held.values())
    if unused:
        held["parameters that this forward does not use"] = unused
    return Opinion(
        name=rules.name,
        says=rules.says,
        figure=rules.figure,
        value=value,
        macs=macs,
        flops=totals.convention_kinds.flops if rules.name in ("calflops", "deepspeed") else None,
        params=totals.params,
        parts=tuple(sorted(parts, key=lambda part: -abs(part.count))),
        param_parts=tuple(
            Part(
                f"{what} {'not counted' if count < 0 else 'counted'}", count, _share(count, params)
            )
            for what, count in sorted(held.items(), key=lambda item: -abs(item[1]))
            if count
        ),
    )


def _share(count: int, whole: int) -> Fraction | None:
    return Fraction(count, whole) if whole else None


def _compared(
    reasons: dict[str, list[int]], site: Site, layer: Layer, ours: int, rules: Convention
) -> None:
    """Add one node to the reasons: its products under one, what comes on top under another."""
    half = 2 if rules.twice else 1
    products = (rules.headline(Ops(mac=layer.convention_kinds.mac)) or 0) // half
    whole = (layer.convention_ops or 0) // half
    if products or ours:
        pair = reasons.setdefault(_product(site, rules), [0, 0])
        pair[0] += ours
        pair[1] += products
    if whole != products:
        family = SPECS[layer.op].family
        pair = reasons.setdefault(EXTRAS.get(family, f"{layer.op} layers"), [0, 0])
        pair[1] += whole - products


def _product(site: Site, rules: Convention) -> str:
    """A name for what this product is to a counter."""
    op = site.node.op
    if ATTENTION in site.around:
        return "attention modules"
    if SPECS[op].family == "recurrent":
        return "recurrent layers"
    what = display_name(op, "plural") or f"{op} layers"
    if site.places > 1:
        return f"{what} of modules that stand in several places"
    bare = not site.kind and op in ("conv", "conv_transpose", "linear")
    if bare and not _by_function(rules):
        return f"{what} called as functions"
    if site.kind and any(kind.endswith("Attention") for kind in site.around):
        return f"{what} inside attention modules"
    if op == "linear" and len(site.call.x) > 2:
        return f"{what} on sequences"
    return what


def _by_function(rules: Convention) -> bool:
    return rules.name not in ("torchinfo", "thop", "ptflops")


def _said(what: str, ours: int, theirs: int, why: str) -> str:
    if not ours:
        return f"{what} counted"
    more = "for more" if theirs > ours else "for less"
    told = f"{what} counted {more}" if theirs else f"{what} missed"
    return f"{told}, {why}" if why else told


def _holder(site: Site | None, layer: Layer) -> str:
    """Whose parameters those of a layer are."""
    if site is None:
        return f"{layer.op} layers"
    kind = site.kind or (site.leaf.kind if site.leaf else "") or site.around[-1]
    short = kind.rpartition(".")[2]
    if site.place or short == ATTENTION:
        return f"parameters of {short}"
    return f"parameters that {short} uses itself" if short else "parameters of no module"
