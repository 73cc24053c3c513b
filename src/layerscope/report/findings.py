"""What a report shows, in words: which layers hold most of each figure, and where memory peaks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.report.numbers import percent_text
from layerscope.report.types import Report

FEW = 3  # names that a sentence can hold

Part = tuple[str, tuple[str, ...], int]  # name, paths of the scopes around it, figure


def findings(report: Report) -> tuple[str, ...]:
    """One sentence a finding: activations, parameters, multiply-adds, the peak of memory."""
    scopes = {layer.name: _paths(layer.name, layer.scope) for layer in report.layers}
    activations = [(la.name, scopes[la.name], la.activations) for la in report.layers]
    if report.convention.counts_inputs:
        activations = [(t.name, (), t.elements) for t in report.inputs] + activations
    params = [(la.name, scopes[la.name], la.params) for la in report.layers]
    macs = [(la.name, scopes[la.name], la.ops.mac) for la in report.layers]
    known = " known" if report.coverage.unknown else ""
    sentences = [
        _most(figure, parts, known)
        for figure, parts in (("activations", activations), ("parameters", params), ("MACs", macs))
        if any(count for _, _, count in parts)
    ]
    return (*sentences, _peak(report)) if report.memory.peak_bytes else tuple(sentences)


def _most(figure: str, parts: Sequence[Part], known: str) -> str:
    """The few layers that hold more than half, else the innermost scope that does, else the top."""
    holders = sorted((part for part in parts if part[2]), key=lambda part: -part[2])
    total = sum(count for _, _, count in holders)
    whole = f"{total:,}{known}"
    needed = held = 0
    while 2 * held <= total:
        held += holders[needed][2]
        needed += 1
    if needed <= FEW:
        names = _listing([name for name, _, _ in holders[:needed]])
        return f"Most {figure} are in {names}: {_percent(held, total)} of {whole}."
    scope = _innermost(holders, total)
    if scope is not None:
        inside = [count for _, paths, count in holders if scope in paths]
        share = _percent(sum(inside), total)
        return f"Most {figure} are in {scope} ({len(inside)} layers): {share} of {whole}."
    first, _, largest = holders[0]
    return (
        f"No part holds most {figure}: half of {whole} takes {needed} of {len(holders)} layers, "
        f"the largest being {first} with {_percent(largest, total)}."
    )


def _innermost(holders: Sequence[Part], total: int) -> str | None:
    """The deepest scope with more than half of the total, unless it simply has all of it."""
    sums: dict[str, int] = {}
    depths: dict[str, int] = {}
    for _, paths, count in holders:
        for depth, path in enumerate(paths):
            sums[path] = sums.get(path, 0) + count
            depths[path] = depth
    most = [path for path, held in sums.items() if total < 2 * held < 2 * total]
    return max(most, key=depths.__getitem__, default=None)


def _peak(report: Report) -> str:
    memory = report.memory
    alive = memory.peak_alive
    parts = [f"{name} {_percent(held, memory.peak_bytes)}" for name, held in alive[:FEW]]
    if len(alive) > FEW:
        parts.append(f"{len(alive) - FEW} more")
    least = "" if memory.complete else "at least "
    return (
        f"Memory peaks at {memory.peak_node}, with {least}{memory.peak_bytes:,} bytes alive: "
        f"{_listing(parts)}."
    )


def _paths(name: str, scope: tuple[str, ...]) -> tuple[str, ...]:
    """Every scope around a layer, outermost first, with the separator its name has."""
    separator = "/" if name.startswith("/".join(scope) + "/") else "."
    return tuple(separator.join(scope[: end + 1]) for end in range(len(scope)))


def _listing(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _percent(part: int, total: int) -> str:
    return f"{percent_text(Fraction(part, total))}%"
