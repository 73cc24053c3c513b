"""A note on multiply-adds inside attention windows, beside the count of all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from layerscope.graph.types import KeyWindow
from layerscope.ops.attention import Sizes
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
    for path, macs, queries, keys in _products(report):
        window = paths[path] = report.graph.windows.get(path)
        whole += macs
        if window is None:
            kept, inside = kept + macs, inside + macs
            continue
        per_pair, rest = divmod(macs, queries * keys)
        if rest:
            raise AssertionError(f"{path}: {macs} MACs of {queries} x {keys} scores")
        kept += per_pair * queries * min(window.size, keys)
        inside += per_pair * pairs(queries, keys, window)
    if inside == whole:
        return None
    return Windowed(whole, kept, inside, dict(Counter(paths.values())))


def _products(report: Report) -> Iterator[tuple[str, int, int, int]]:
    """Products of attention: path of the module, multiply-adds, numbers of queries and of keys.

    They are attention ops, and in a module with a window that is not fused its two matrix products
    without parameters: queries with keys, then attention weights with values.
    """
    seen: dict[str, int] = {}
    for node in report.graph.nodes:
        call = report.shapes.calls.get(node.name)
        if call is None:
            continue
        path = node.name.rpartition(".")[0]
        macs = report.costs[node.name].ops.mac
        if node.op == "attention":
            sizes = Sizes(call)
            yield path, macs, sizes.queries, sizes.keys
        elif node.op == "matmul" and path in report.graph.windows and not node.params:
            scores = call.inputs[0] if seen.get(path) else call.outputs[0]
            seen[path] = 1 - seen.get(path, 0)
            yield path, macs, scores[-2], scores[-1]


@lru_cache(4096)
def pairs(queries: int, keys: int, window: KeyWindow) -> int:
    """Pairs of a query and a key inside the window; the last query is at the last key."""
    total = 0
    for position in range(keys - queries, keys):
        if window.chunk:
            first, last = position - position % window.chunk, position
        else:
            first, last = position - window.before, position + window.after
        total += max(min(last, keys - 1) - max(first, 0) + 1, 0)
    return total


def lines(report: Report) -> tuple[str, ...]:
    """The note, for a network with windows."""
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
