"""Calls as counters of PyTorch models see them: of which module, of which function, inside what.

A capture of PyTorch tells classes and functions. Networks of other forms are taken for what they
would be there: layers that have a name of their own for modules, the rest for functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node, Param, Shape
from layerscope.ops import Call, Ops, display_name

ATTENTION = "MultiheadAttention"
# Classes whose forward calls functions on what modules inside hold, and never those modules.
WINDOWED = ("ShiftedWindowAttention", "ShiftedWindowAttentionV2")
KEEPING = ("TransformerEncoderLayer", "TransformerDecoderLayer")  # keep the function they are given
BYPASSING = (ATTENTION, *WINDOWED)


class Leaf(Struct, frozen=True):
    """A call of a module that has no modules inside: what went in and came out, what it holds."""

    kind: str
    x: Shape
    y: Shape
    arrays: tuple[Param, ...]
    again: bool  # called before

    @property
    def param_count(self) -> int:
        """Learnable numbers it holds."""
        return sum(param.elements for param in self.arrays)


class Site(Struct, frozen=True):
    """One node with what a counter may know of it."""

    node: Node
    call: Call
    ops: Ops  # exact, of one run
    cost: Cost
    kind: str  # class of the module that is this operation; "" for a bare function
    function: str  # what PyTorch calls it; "" for a step on the way
    around: tuple[str, ...]  # classes of the modules around it, outermost first
    place: str  # path of the module without modules inside that this is of, if any
    leaf: Leaf | None  # the call of that module, where it ends
    places: int  # how many places of the model the module stands in that calls it
    fused: bool  # inside what PyTorch does in one fused kernel, without gradients on a processor


def array_name(param: Param) -> str:
    """What a module calls a parameter: weight, bias, in_proj_weight …"""
    return (param.storage or param.name).rsplit(".", 1)[-1]


def survey(graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> Iterator[Site]:
    """Every node whose shapes are known, in order."""
    named = _Names(graph)
    fused = named.fused()
    called: set[str] = set()
    held: list[Param] = []
    nodes = [node for node in graph.nodes if node.name in shapes.calls]
    start: Shape | None = None
    for n, node in enumerate(nodes):
        call, cost = shapes.calls[node.name], costs[node.name]
        ops = cost.real_ops or cost.ops  # counters of others look at shapes alone
        place = named.leaf(node)
        leaf = None
        if place is not None:
            start = call.x if start is None else start
            held += [p for p in cost.params if p.learnable and p not in held]
            after = nodes[n + 1] if n + 1 < len(nodes) else None
            if node.module or after is None or after.module or named.leaf(after) != place:
                kind = named.kind(node) or named.classes.get(place, "")
                leaf = Leaf(kind, start, call.y, tuple(held), place in called)
                called.add(place)
                start, held = None, []
        yield Site(
            node=node,
            call=call,
            ops=ops if node.times == 1 else _once(ops, node.times),
            cost=cost,
            kind=named.kind(node) or named.main(node, place),
            function=named.function(node, call),
            around=named.around(node.scope),
            place=place or "",
            leaf=leaf,
            places=graph.module_uses.get(node.module or ".".join(node.scope), 1),
            fused=_outer(node.scope, fused),
        )


def _once(ops: Ops, times: int) -> Ops:
    kinds = (ops.mac, ops.add, ops.mul, ops.comp, ops.div, ops.exp)
    return Ops(*[count // times if times else 0 for count in kinds])


def _outer(scope: tuple[str, ...], paths: set[str]) -> bool:
    return bool(paths) and any(".".join(scope[:n]) in paths for n in range(1, len(scope) + 1))


class _Names:
    """Classes and functions of a graph's nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.captured = bool(graph.kinds)
        self.classes = dict(graph.kinds) or {
            path: told.partition("(")[0] for path, told in graph.modules.items()
        }
        self.parents = {path.rpartition(".")[0] for path in self.classes if path}
        self.modular = self.captured or any(node.module for node in graph.nodes)
        self._around: dict[tuple[str, ...], tuple[str, ...]] = {}

    def leaf(self, node: Node) -> str | None:
        """Path of the module without modules inside whose forward this is of."""
        if node.module:
            return node.module if self.captured or self.kind(node) else None
        if not self.modular:
            return node.name if self.kind(node) else None
        path = ".".join(node.scope)
        if path and path in self.classes and path not in self.parents:
            return path
        return None

    def kind(self, node: Node) -> str:
        if self.captured:
            return self.classes.get(node.module, "") if node.module else ""
        if self.modular and not node.module:
            return ""
        if self.classes.get(node.module.rpartition(".")[0]) in BYPASSING:
            return ""
        told = self.classes.get(node.module, "")
        return told or _worded(display_name(node.op, "torch") or "", node)

    def main(self, node: Node, place: str | None) -> str:
        """Class of PyTorch whose forward takes several steps, at the step that is its work."""
        kind = self.classes.get(place, "") if place and self.captured and not node.module else ""
        return kind if "." not in kind and display_name(node.op, "torch") is not None else ""

    def function(self, node: Node, call: Call) -> str:
        name = display_name(node.op, "torch_function")
        if name is None:
            return ""
        if self.captured and node.source is not None:
            if node.op in ("relu", "gelu") and self.around(node.scope)[-1] in KEEPING:
                return ""
            if node.op == "relu6" and self.kind(node) != "ReLU6":
                return "relu6"
            return node.source.op.removesuffix(".padding").rpartition(".")[2].strip("_")
        if node.op == "attention" and self.around(node.scope)[-1] in WINDOWED:
            return "attention_in_two_products"
        if node.op == "resize":
            bilinear = getattr(call.attributes, "mode", "") in ("linear", "bilinear")
            return f"upsample_{'bilinear' if bilinear else 'nearest'}{len(call.x) - 2}d"
        return _worded(name, node, len(call.x) - 2)

    def around(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        found = self._around.get(scope)
        if found is None:
            paths = [".".join(scope[:n]) for n in range(len(scope) + 1)]
            found = tuple([self.classes.get(path, "") for path in paths])
            self._around[scope] = found
        return found

    def fused(self) -> set[str]:
        """Paths of attention that runs as one kernel without gradients."""
        paths = {path for path, kind in self.classes.items() if kind == ATTENTION}
        if not paths:
            return set()
        inside: dict[str, list[Node]] = {path: [] for path in paths}
        for node in self.graph.nodes:
            path = ".".join(node.scope)
            if path in inside:
                inside[path].append(node)
        return {path for path, nodes in inside.items() if nodes and self._is_fused(nodes)}

    def _is_fused(self, nodes: list[Node]) -> bool:
        """Where queries, keys and values are one tensor with the batch first: turned once."""
        if not self.captured:
            return True
        made = {name for node in nodes for name in node.outputs}
        entering = [n for n in nodes if n.inputs and n.inputs[0] not in made]
        turned = [n for n in entering if n.source is not None and n.source.op == "aten.transpose"]
        return len(turned) == 1 and nodes[0] is turned[0]


def _worded(word: str, node: Node, rank: int | None = None) -> str:
    if "{}" not in word:
        return word
    window = getattr(node.attributes, "window", None)
    if window is not None:
        rank = len(window.kernel)
    return word.format(2 if rank is None else max(rank, 1))
