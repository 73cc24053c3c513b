"""Pairs of queries and keys that masks and windows of attention leave, and their operations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, KeyWindow, Node
from layerscope.ops import Ops
from layerscope.ops.attention import Sizes


class Product(Struct, frozen=True):
    """One or both products of an attention: queries with keys, scores with values."""

    node: str
    path: str  # of its module
    queries: int
    keys: int
    macs: int  # of all pairs
    window: KeyWindow | None  # None: every query sees every key, or the mask is unknown
    is_known: bool = True  # whether the mask is

    @property
    def per_pair(self) -> int:
        """Multiply-adds of each pair."""
        return self.macs // (self.queries * self.keys)

    @property
    def pairs(self) -> int:
        """Pairs that the mask and the window leave; all of them if these are unknown."""
        if self.window is None:
            return self.queries * self.keys
        return pairs(self.queries, self.keys, self.window)


def products(graph: Graph, shapes: Shapes) -> Iterator[Product]:
    """The products of attention.

    They are attention ops, and in a module of attention that is not fused its two matrix products
    without parameters: queries with keys, then attention weights with values.
    """
    single: dict[str, list[Node]] = {}
    noted = {*graph.windows, *graph.causal}
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if call is None:
            continue
        path = node.name.rpartition(".")[0]
        if node.op == "attention":
            sizes = Sizes(call)
            macs = sizes.scores * (sizes.key_size + sizes.value_size)
            window = _window(graph, path, sizes.keys, is_causal=call.attributes.causal)
            is_known = window is not None or len(call.inputs) < 4
            yield Product(
                node.name, path, sizes.queries, sizes.keys, macs, window,
                is_known or sizes.queries == 1,
            )  # fmt: skip
        elif node.op == "matmul" and not node.params and path in noted:
            single.setdefault(path, []).append(node)
    for path, nodes in single.items():
        yield from _single(graph, shapes, path, nodes)


def _single(graph: Graph, shapes: Shapes, path: str, nodes: list[Node]) -> Iterator[Product]:
    """The two matrix products of a module; more of them are no attention that is understood."""
    if len(nodes) != 2:
        return
    first, second = (shapes.calls[node.name] for node in nodes)
    queries, keys = first.outputs[0][-2:]
    if second.inputs[0][-2:] != (queries, keys):
        return
    for node, call in zip(nodes, (first, second), strict=True):
        macs = prod(call.outputs[0]) * call.inputs[0][-1]
        yield Product(node.name, path, queries, keys, macs, _window(graph, path, keys))


def _window(graph: Graph, path: str, keys: int, *, is_causal: bool = False) -> KeyWindow | None:
    """What a query sees; of a causal mask without a window, all keys before it."""
    window = graph.windows.get(path)
    if window is None and (is_causal or path in graph.causal):
        return KeyWindow(before=keys)
    return window


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


class Masked(Struct, frozen=True):
    """Multiply-adds of the attention of a network."""

    all_macs: int
    needed_macs: int  # of the pairs that masks and windows leave
    unknown: int  # attention layers whose mask is unknown, counted in full


def masked(graph: Graph, shapes: Shapes) -> Masked:
    """The figures of all attention layers."""
    found = list(products(graph, shapes))
    return Masked(
        sum([each.macs for each in found]),
        sum([each.per_pair * each.pairs for each in found]),
        sum([not each.is_known for each in found]),
    )


def needed_costs(graph: Graph, shapes: Shapes, costs: dict[str, Cost]) -> dict[str, Cost]:
    """Costs with the operations of the pairs that masks and windows leave."""
    changed = dict(costs)
    for each in products(graph, shapes):
        cost, whole = costs[each.node], each.queries * each.keys
        if each.pairs < whole and cost.status != "unknown":
            changed[each.node] = replace(cost, ops=_share(cost.ops, each.pairs, whole))
    return changed


def _share(ops: Ops, part: int, whole: int) -> Ops:
    """Operations of some pairs; each pair has the same."""
    return Ops(*[getattr(ops, name) * part // whole for name in ops.__struct_fields__])
