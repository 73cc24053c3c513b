"""A note on multiply-adds inside attention windows, beside the count of all pairs."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from layerscope.graph.types import KeyWindow
from layerscope.report.attention_pairs import Masked, masked, pairs, products
from layerscope.report.numbers import exact_text
from layerscope.report.types import Report


class Windowed(Struct, frozen=True):
    """Multiply-adds of all attention layers of a network, with and without windows."""

    all_macs: int  # every query against every key, as counted
    kept_macs: int  # every query against as many keys as its window has
    inside_macs: int  # without positions of a window before the first or after the last key
    windows: dict[KeyWindow | None, int]  # attention layers by their window


def windowed(report: Report) -> Windowed | None:
    """The figures of a network whose windows exclude some pairs, else None."""
    if not report.graph.windows:
        return None
    whole = kept = inside = 0
    paths: dict[str, KeyWindow | None] = {}
    for each in products(report.graph, report.shapes):
        window = paths[each.path] = report.graph.windows.get(each.path)
        whole += each.macs
        if window is None:
            kept, inside = kept + each.macs, inside + each.macs
            continue
        kept += each.per_pair * each.queries * min(window.size, each.keys)
        inside += each.per_pair * pairs(each.queries, each.keys, window)
    if inside == whole:
        return None
    return Windowed(whole, kept, inside, dict(Counter(paths.values())))


def lines(report: Report) -> tuple[str, ...]:
    """Notes on pairs that are not needed, of a network with masks or windows."""
    if report.attention == "needed":
        return _needed_lines(report)
    return (*_window_lines(report), *_mask_lines(report))


def _needed_lines(report: Report) -> tuple[str, ...]:
    found = masked(report.graph, report.shapes)
    if found.needed_macs == found.all_macs:
        text = "Masks and windows leave all pairs of attention"
        return (f"{text}: {exact_text(found.all_macs)} MACs.", *_unknown_lines(found))
    text = (
        "Counted are the pairs of queries and keys that masks and windows leave: "
        f"{exact_text(found.needed_macs)} MACs of attention, where all pairs take "
        f"{exact_text(found.all_macs)}"
    )
    windows = windowed(report)
    if windows is not None:
        text += f" and the keys of the windows, without masks, {exact_text(windows.kept_macs)}"
    return (f"{text}.", *_unknown_lines(found))


def _unknown_lines(found: Masked) -> tuple[str, ...]:
    if not found.unknown:
        return ()
    which = (
        "1 attention layer has" if found.unknown == 1 else f"{found.unknown} attention layers have"
    )
    return (f"{which} an unknown mask: all pairs are counted there.",)


def _mask_lines(report: Report) -> tuple[str, ...]:
    """The other figure of a network of which a reader notes causal masks."""
    if not report.graph.causal:
        return ()
    found = masked(report.graph, report.shapes)
    if found.needed_macs == found.all_macs:
        return ()
    return (
        f"Of {exact_text(found.all_macs)} MACs of attention, masks and windows leave "
        f"{exact_text(found.needed_macs)} (--attention needed).",
    )


def _window_lines(report: Report) -> tuple[str, ...]:
    found = windowed(report)
    if found is None:
        return ()
    limited = {window: count for window, count in found.windows.items() if window is not None}
    sizes = " or ".join(
        f"{exact_text(size)} keys" for size in sorted({window.size for window in limited})
    )
    text = (
        f"{sum(limited.values())} of {sum(found.windows.values())} attention layers see a window "
        f"of {sizes}. Counted are all pairs of queries and keys: "
        f"{exact_text(found.all_macs)} MACs of attention. With the keys of the windows alone they "
        f"are {exact_text(found.kept_macs)}"
    )
    if found.inside_macs == found.kept_macs:
        return (f"{text}.",)
    return (
        f"{text}, and {exact_text(found.inside_macs)} where a window ends at the ends of the text.",
    )
