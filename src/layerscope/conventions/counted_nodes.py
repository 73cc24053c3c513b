"""Nodes as other counters see them: with the PyTorch function, the module and its parents.

The graph of a captured PyTorch model has the classes of its modules and the functions called. For
other graphs they are assumed: an op that has a module class in torch.nn is taken for such a module,
every other op for a function call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.conventions.convention import Sees
from layerscope.graph.types import Graph, Node, Param, Shape
from layerscope.ops import FREE, Call, Ops, display_name

ATTENTION = "MultiheadAttention"
# Classes whose forward passes the parameters of child modules to functions and does not call the
# modules themselves.
WINDOWED = ("ShiftedWindowAttention", "ShiftedWindowAttentionV2")
BYPASSING = (ATTENTION, *WINDOWED)
# Classes that store their activation function as an attribute. A counter that replaces functions
# in torch.nn.functional does not see it called.
KEEPING_FUNCTION = ("TransformerEncoderLayer", "TransformerDecoderLayer")


class LeafCall(Struct, frozen=True):
    """One call of a module without child modules: its input and output shape, its parameters."""

    module_class: str
    x: Shape
    y: Shape
    params: tuple[Param, ...]
    repeated: bool  # whether the module was called before

    @property
    def param_count(self) -> int:
        """Learnable elements of the module."""
        return sum(param.elements for param in self.params)


class CountedNode(Struct, frozen=True):
    """One node, with everything that the rule of a convention may look at.

    Fields from `module_class` on are set only for conventions that see functions or modules.
    """

    node: Node
    cost: Cost
    inferred_call: Call | None  # None where the shapes or the op are unknown
    ops: Ops  # exact operations of one run
    module_class: str = ""  # class of the module that is this one operation; "" for a function
    function: str = ""  # PyTorch function; "" for an intermediate step
    outer_classes: tuple[str, ...] = ()  # classes of the modules around it, outermost first
    leaf_path: str = ""  # path of the module without child modules that it belongs to
    leaf_call: LeafCall | None = None  # the call of that module, on its last node
    module_uses: int = 1  # how many paths in the model the calling module has
    fused: bool = False  # whether PyTorch runs it in a fused kernel, without gradients on a CPU

    @property
    def name(self) -> str:
        """Unique name of the node."""
        return self.node.name

    @property
    def op(self) -> str:
        """The node's op."""
        return self.node.op

    @property
    def call(self) -> Call:
        """Attributes and shapes; `count` and `activations` are only asked where they are known."""
        assert self.inferred_call is not None
        return self.inferred_call


def array_name(param: Param) -> str:
    """Attribute of the module that has this parameter: weight, bias, in_proj_weight …"""
    return (param.storage or param.name).rsplit(".", 1)[-1]


def counted_nodes(
    graph: Graph, shapes: Shapes, costs: Mapping[str, Cost], sees: Sees = "modules"
) -> Iterator[CountedNode]:
    """Every node in order, with what a convention that `sees` ops, functions or modules knows."""
    if sees != "ops":
        return iter(_kept(graph, shapes, costs))
    calls = shapes.calls
    return (
        CountedNode(node, cost, calls.get(node.name), _one_run(cost, node.times))
        for node in graph.nodes
        for cost in (costs[node.name],)
    )


class _KeptNodes(Struct, frozen=True):
    """Nodes of a network, which all conventions share."""

    graph: Graph
    costs: Mapping[str, Cost]
    nodes: tuple[CountedNode, ...]


def _kept(graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> tuple[CountedNode, ...]:
    found = shapes.memo.get(__name__)
    if isinstance(found, _KeptNodes) and found.graph is graph and found.costs is costs:
        return found.nodes
    nodes = tuple(_with_modules(graph, shapes, costs))
    shapes.memo[__name__] = _KeptNodes(graph, costs, nodes)
    return nodes


def _with_modules(graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> Iterator[CountedNode]:
    names = _TorchNames(graph)
    fused_paths = names.fused_paths()
    leaf_calls = _leaf_calls(graph, shapes, costs, names)
    for node in graph.nodes:
        call, cost = shapes.calls.get(node.name), costs[node.name]
        if call is None:
            yield CountedNode(node, cost, None, FREE)
            continue
        path = names.leaf_path(node)
        yield CountedNode(
            node=node,
            cost=cost,
            inferred_call=call,
            ops=_one_run(cost, node.times),
            module_class=names.module_class(node) or names.class_at_main_step(node, path),
            function=names.function(node, call),
            outer_classes=names.outer_classes(node.scope),
            leaf_path=path or "",
            leaf_call=leaf_calls.get(node.name),
            module_uses=graph.module_uses.get(node.module or ".".join(node.scope), 1),
            fused=_is_inside(node.scope, fused_paths),
        )


def _leaf_calls(
    graph: Graph, shapes: Shapes, costs: Mapping[str, Cost], names: _TorchNames
) -> dict[str, LeafCall]:
    """Calls of modules without child modules, by the last node of each call."""
    nodes = [node for node in graph.nodes if node.name in shapes.calls]
    called: set[str] = set()
    found: dict[str, LeafCall] = {}
    params: list[Param] = []
    start: Shape | None = None
    for n, node in enumerate(nodes):
        path = names.leaf_path(node)
        if path is None:
            continue
        call = shapes.calls[node.name]
        start = call.x if start is None else start
        params += [p for p in costs[node.name].params if p.learnable and p not in params]
        after = nodes[n + 1] if n + 1 < len(nodes) else None
        if node.module or after is None or after.module or names.leaf_path(after) != path:
            module_class = names.module_class(node) or names.classes.get(path, "")
            found[node.name] = LeafCall(module_class, start, call.y, tuple(params), path in called)
            called.add(path)
            start, params = None, []
    return found


def _one_run(cost: Cost, times: int) -> Ops:
    """Exact operations of one run, of complex numbers as of real ones: counters read shapes."""
    ops = cost.real_ops or cost.ops
    if times == 1:
        return ops
    kinds = (ops.mac, ops.add, ops.mul, ops.comp, ops.div, ops.exp)
    return Ops(*[count // times if times else 0 for count in kinds])


def _is_inside(scope: tuple[str, ...], paths: set[str]) -> bool:
    return bool(paths) and any(".".join(scope[:n]) in paths for n in range(1, len(scope) + 1))


class _TorchNames:
    """PyTorch classes and functions of a graph's nodes, captured or assumed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.captured = bool(graph.kinds)
        self.classes = dict(graph.kinds) or {
            path: printed.partition("(")[0] for path, printed in graph.modules.items()
        }
        self.parents = {path.rpartition(".")[0] for path in self.classes if path}
        self.modular = self.captured or any(node.module for node in graph.nodes)
        self._outer_classes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def leaf_path(self, node: Node) -> str | None:
        """Path of the module without child modules whose forward has this node."""
        if node.module:
            return node.module if self.captured or self.module_class(node) else None
        if not self.modular:
            return node.name if self.module_class(node) else None
        path = ".".join(node.scope)
        if path and path in self.classes and path not in self.parents:
            return path
        return None

    def module_class(self, node: Node) -> str:
        """Class of the module that is this one operation, "" for a function."""
        if self.captured:
            return self.classes.get(node.module, "") if node.module else ""
        if self.modular and not node.module:
            return ""
        if self.classes.get(node.module.rpartition(".")[0]) in BYPASSING:
            return ""
        declared = self.classes.get(node.module, "")
        return declared or _with_rank(display_name(node.op, "torch") or "", node)

    def class_at_main_step(self, node: Node, path: str | None) -> str:
        """A torch.nn class whose forward runs several ops, on the node that does its work."""
        found = self.classes.get(path, "") if path and self.captured and not node.module else ""
        return found if "." not in found and display_name(node.op, "torch") is not None else ""

    def function(self, node: Node, call: Call) -> str:
        """PyTorch function that runs this node, "" for an intermediate step."""
        name = display_name(node.op, "torch_function")
        if name is None:
            return ""
        if self.captured and node.source is not None:
            if node.op in ("relu", "gelu"):
                if self.outer_classes(node.scope)[-1] in KEEPING_FUNCTION:
                    return ""
            elif node.op == "relu6" and self.module_class(node) != "ReLU6":
                return "relu6"
            return node.source.op.removesuffix(".padding").rpartition(".")[2].strip("_")
        if node.op == "attention" and self.outer_classes(node.scope)[-1] in WINDOWED:
            return "attention_in_two_products"
        if node.op == "resize":
            bilinear = getattr(call.attributes, "mode", "") in ("linear", "bilinear")
            return f"upsample_{'bilinear' if bilinear else 'nearest'}{len(call.x) - 2}d"
        return _with_rank(name, node, len(call.x) - 2)

    def outer_classes(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """Classes of the modules around a node, the whole model first."""
        found = self._outer_classes.get(scope)
        if found is None:
            paths = [".".join(scope[:n]) for n in range(len(scope) + 1)]
            found = tuple([self.classes.get(path, "") for path in paths])
            self._outer_classes[scope] = found
        return found

    def fused_paths(self) -> set[str]:
        """Paths of attention modules that run as one kernel without gradients."""
        paths = {path for path, name in self.classes.items() if name == ATTENTION}
        if not paths:
            return set()
        inside: dict[str, list[Node]] = {path: [] for path in paths}
        for node in self.graph.nodes:
            path = ".".join(node.scope)
            if path in inside:
                inside[path].append(node)
        return {path for path, nodes in inside.items() if nodes and self._is_fused(nodes)}

    def _is_fused(self, nodes: list[Node]) -> bool:
        """Whether query, key and value are one tensor, batch first: transposed once on entry."""
        if not self.captured:
            return True
        outputs = {name for node in nodes for name in node.outputs}
        first = [node for node in nodes if node.inputs and node.inputs[0] not in outputs]
        turned = [n for n in first if n.source is not None and n.source.op == "aten.transpose"]
        return len(turned) == 1 and nodes[0] is turned[0]


def _with_rank(name: str, node: Node, rank: int | None = None) -> str:
    """A function or class name, with the number of spatial axes put in."""
    if "{}" not in name:
        return name
    window = getattr(node.attributes, "window", None)
    if window is not None:
        rank = len(window.kernel)
    return name.format(2 if rank is None else max(rank, 1))
