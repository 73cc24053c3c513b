"""Findings of a report as sentences: layers with most of each figure, and the memory peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from layerscope.report.numbers import percent_text, short_text
from layerscope.report.types import Layer, Report

FEW_LAYERS, FEW_PARTS = 5, 3  # most names in a sentence

Holder = tuple[str, tuple[str, ...], int]  # layer, paths of the scopes around it, figure


def findings(report: Report, *, own: bool = True) -> tuple[str, ...]:
    """Sentences on activations, parameters, the cost column and the memory peak.

    Activations are exact, or with `own` false those of the convention.
    """
    counted = report.convention
    has_figure = not counted.is_exact and bool(counted.figure)

    def holders(figure: Callable[[Layer], int]) -> list[Holder]:
        return [(layer.name, scope_paths(layer), figure(layer)) for layer in report.layers]

    activations = holders(lambda x: x.activations if own else x.convention_activations)
    if counted.counts_inputs and not own:
        inputs: list[Holder] = [(tensor.name, (), tensor.elements) for tensor in report.inputs]
        activations = inputs + activations
    costs = holders(lambda x: (x.convention_ops or 0) if has_figure else x.ops.mac)
    figures = (
        ("activations", activations, "activations"),
        ("parameters", holders(lambda x: x.params), "params"),
        (counted.figure if has_figure else "MACs", costs, "macs"),
    )
    bounds = report.lower_bounds
    sentences = [
        _most(figure, [holder for holder in found if holder[2]], " known" if name in bounds else "")
        for figure, found, name in figures
        if any(holder[2] for holder in found)
    ]
    if len(report.macs_by_dtype) > 1:
        sentences.append(_precisions(report))
    return (*sentences, _peak(report)) if report.memory.peak_bytes else tuple(sentences)


def _most(figure: str, holders: Sequence[Holder], suffix: str) -> str:
    """A few layers with more than half of it, else a scope, else a few parts, else the largest."""
    total = sum(count for _, _, count in holders)
    whole = f"{total:,}{suffix}"
    layers = {name: count for name, _, count in holders}
    half = _half(layers)
    if len(half) <= FEW_LAYERS:
        return f"Most {figure} are in {_listing(half)}: {_share(half, layers)} of {whole}."
    parts = _innermost(holders, total) or _outermost(holders)
    half = _half(parts)
    if len(half) <= FEW_PARTS and len(half) < len(parts):
        sizes = {name: sum(name in paths for _, paths, _ in holders) for name in half}
        named = [f"{name} ({size} layers)" if size > 1 else name for name, size in sizes.items()]
        return f"Most {figure} are in {_listing(named)}: {_share(half, parts)} of {whole}."
    largest = max(layers, key=layers.__getitem__)
    return (
        f"No part holds most {figure}: half of {whole} takes {len(_half(layers))} of {len(layers)} "
        f"layers, the largest being {largest} with {_share([largest], layers)}."
    )


def _precisions(report: Report) -> str:
    """Multiply-adds by dtype."""
    kinds = [f"{dtype} {short_text(count)}" for dtype, count in report.macs_by_dtype.items()]
    return f"MACs by precision: {', '.join(kinds)}."


def _half(figures: dict[str, int]) -> list[str]:
    """The fewest names with more than half of the sum, in their order."""
    total, covered = sum(figures.values()), 0
    chosen = set()
    for name in sorted(figures, key=lambda name: -figures[name]):
        chosen.add(name)
        covered += figures[name]
        if 2 * covered > total:
            break
    return [name for name in figures if name in chosen]


def _innermost(holders: Sequence[Holder], total: int) -> dict[str, int]:
    """The deepest scope with more than half but not all of the total, and the rest."""
    sums: dict[str, int] = {}
    depths: dict[str, int] = {}
    for _, paths, count in holders:
        for depth, path in enumerate(paths):
            sums[path] = sums.get(path, 0) + count
            depths[path] = depth
    most = [path for path, count in sums.items() if total < 2 * count < 2 * total]
    if not most:
        return {}
    scope = max(most, key=depths.__getitem__)
    return {scope: sums[scope], "": total - sums[scope]}


def _outermost(holders: Sequence[Holder]) -> dict[str, int]:
    """The top-level parts of the network: scopes, and layers outside of any."""
    sums: dict[str, int] = {}
    for name, paths, count in holders:
        part = paths[0] if paths else name
        sums[part] = sums.get(part, 0) + count
    return sums


def _peak(report: Report) -> str:
    memory = report.memory
    alive = [(name, size) for name, size in memory.peak_alive if size]
    parts = [f"{name} {_percent(size, memory.peak_bytes)}" for name, size in alive[:FEW_PARTS]]
    if len(alive) > FEW_PARTS:
        parts.append(f"{len(alive) - FEW_PARTS} more")
    least = "" if memory.complete else "at least "
    return (
        f"Memory peaks at {memory.peak_node}, with {least}{memory.peak_bytes:,} bytes alive: "
        f"{_listing(parts)}."
    )


def scope_paths(layer: Layer) -> tuple[str, ...]:
    """Paths of all scopes around a layer, outermost first, with the separator of its name."""
    scope = layer.scope
    separator = "/" if layer.name.startswith("/".join(scope) + "/") else "."
    return tuple(separator.join(scope[: end + 1]) for end in range(len(scope)))


def _listing(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _share(names: Sequence[str], figures: dict[str, int]) -> str:
    return _percent(sum(figures[name] for name in names), sum(figures.values()))


def _percent(part: int, total: int) -> str:
    return f"{percent_text(Fraction(part, total))}%"
