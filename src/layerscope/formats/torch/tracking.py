"""The graph while the forward runs: names of tensors, nodes, scopes, views, parameters, writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.torch.caches import CACHES
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.grads import Grads
from layerscope.formats.torch.lowering import FIRST_OUTPUT, CallPlan, PlannedNode
from layerscope.formats.torch.module_table import ModuleInfo, ParamTable
from layerscope.formats.torch.tensors import NO_STRIDES, Foreign, TensorMeta, TracedTensor
from layerscope.formats.torch.torch_types import Args, Kwargs
from layerscope.graph.attributes import Cast, DeclaredOutputs
from layerscope.graph.types import Node, Param, Role, Shape
from layerscope.graph.types import Tensor as GraphTensor

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch._ops import OpOverload

NO_INPUTS = ("constant", "random")  # ops that read nothing
T = TypeVar("T")


class Write(Struct, frozen=True, gc=False):
    """A call that wrote into a computable tensor."""

    index: int  # of all writes of the run
    target: TracedTensor
    func: OpOverload
    args: Args
    kwargs: Kwargs


class Tracker:
    """Collects nodes and tensors while a model runs."""

    def __init__(
        self, modules: Mapping[int, ModuleInfo], param_table: ParamTable, grads: Grads | None = None
    ) -> None:
        self.modules = modules  # by identity
        self.param_table = param_table
        self.grads = grads or Grads()
        self.traced: dict[int, TracedTensor] = {}  # by identity of the tensor
        self.foreign: list[Foreign] = []  # tensors that the run did not make, as they were
        self.log: list[TracedTensor] = []  # all that got a name, in order; keeps tensors alive
        self.writes: dict[TracedTensor, list[Write]] = {}  # by the tensor that owns the storage
        # of `writes`: how many were applied, to which values, and inputs whose values were assumed
        self.written: dict[TracedTensor, tuple[int, Any, dict[str, None]]] = {}
        self.nodes: list[Node] = []
        self.inputs: list[GraphTensor] = []
        self.params: dict[str, Param] = {}  # parameters that nodes read as inputs
        self.used: set[str] = set()  # parameters that a node has or reads
        self.names: set[str] = set()  # of nodes, inputs and parameters
        self.caches = CACHES[0]
        self.attr_cache = self.caches.attributes
        self.module: ModuleInfo | None = None  # the one that is running
        self.lost_values = False  # PyTorch made a meta tensor of Python numbers, without them
        self.own_types = False  # a node has parameters of other dtypes than its spec says
        self._counts: dict[str, int] = {}  # nodes so far, by the start of their names
        self._metas = self.caches.metas

    def clear(self) -> None:
        """Free all tensors. They refer to each other, so the garbage collector would have to."""
        self.traced.clear()
        self.foreign.clear()
        self.log.clear()
        self.writes.clear()
        self.written.clear()

    def intern(self, attributes: T) -> T:
        """The one object of all equal attributes."""
        found: T = self.attr_cache.setdefault((type(attributes), attributes), attributes)
        return found

    # Tensors

    def meta(self, tensor: Tensor, kind: str = "") -> TensorMeta:
        """The one object for all tensors of this shape, strides and dtype."""
        try:
            stride = NO_STRIDES if tensor.is_sparse else tensor.stride()
        except RuntimeError:  # of sparse rows, columns or blocks
            stride = NO_STRIDES
        return self.meta_of(tuple(tensor.shape), stride, tensor.dtype, kind)

    def meta_of(self, shape: Shape, stride: Shape, dtype: dtype, kind: str = "") -> TensorMeta:
        """As `meta`, by its parts."""
        key = (shape, stride, dtype, kind)
        found = self._metas.get(key)
        if found is None:
            found = self._metas.setdefault(
                key, TensorMeta(shape, stride, dtype, kind, name_of(dtype))
            )
        return found

    def cast_meta(self, meta: TensorMeta, dtype: dtype) -> TensorMeta:
        """A parameter in another dtype than it is stored in."""
        key = (meta, dtype)
        found = self._metas.get(key)
        if found is None:
            cast = TensorMeta(meta.shape, meta.stride, dtype, meta.kind, name_of(dtype))
            cast.stored_dtype = meta.stored_dtype or meta.name
            found = self._metas.setdefault(key, cast)
        return found

    def lookup(self, tensor: Tensor) -> TracedTensor:
        """The record of a tensor; one not seen before is a parameter, or a constant."""
        found = self.traced.get(id(tensor))
        if found is not None:
            return found
        name = self.param_table.names.get(id(tensor))
        if name is not None:
            kind = "buffer" if id(tensor) in self.param_table.buffers else "param"
            found = TracedTensor(tensor, name, self.meta(tensor, kind))
            found.computable = kind == "buffer" and tensor.device.type == "cpu"
        else:
            found = TracedTensor(tensor, "", self.meta(tensor))
            found.computable = tensor.device.type == "cpu"
            self.lost_values = self.lost_values or tensor.is_meta
            found.is_const = found.foreign = True
            if not (tensor.is_meta or found.meta.sparse):
                storage = tensor.untyped_storage()
                self.foreign.append((tensor, storage, tensor.storage_offset(), found.meta))
        found.plain = False
        self.traced[id(tensor)] = found
        self.log.append(found)
        return found

    def register(
        self, tensor: Tensor, name: str, meta: TensorMeta, *, plain: bool = True
    ) -> TracedTensor:
        """Add a new tensor."""
        traced = TracedTensor(tensor, name, meta, plain)
        self.traced[id(tensor)] = traced
        self.log.append(traced)
        return traced

    def add(self, traced: TracedTensor) -> None:
        """Add a tensor whose record is complete."""
        self.traced[id(traced.tensor)] = traced
        self.log.append(traced)

    def declare(self, tensor: Tensor, name: str) -> TracedTensor:
        """Add an input of the network."""
        free = name
        count = 0
        while free in self.names:
            count += 1
            free = f"{name}_{count}"
        self.names.add(free)
        meta = self.meta(tensor)
        self.inputs.append(GraphTensor(free, meta.shape, meta.name))
        return self.register(tensor, free, meta)

    # Names of tensors

    def read(self, traced: TracedTensor) -> str:
        """The name that a node reads.

        Parameters are declared, constants become nodes, and a view of a tensor that was written
        since is taken again.
        """
        if traced.plain:
            return traced.name
        if traced.parent is not None and not traced.still_const:
            root = traced.root
            if traced.version != root.version:
                call = traced.viewed_by
                running = self.module
                self.module = traced.module  # its nodes belong to the module that took the view
                traced.name = self.emit(call.plan, call.given)[call.output]
                self.module = running
                traced.version = root.version
            traced.was_read = True
            return traced.name
        if traced.meta.stored_dtype:
            return self._cast(traced)
        if traced.meta.kind:
            return self._param(traced)
        op = "random" if traced.random else "constant"
        attributes = self.intern(DeclaredOutputs((traced.meta.shape,), (traced.meta.name,)))
        running = self.module
        self.module = None  # a constant belongs to no module
        [traced.name] = self._node(PlannedNode(op, (), attributes, (), 1, None), ())
        self.module = running
        if self.grads.training:
            self.grads.constant(traced)
        traced.plain = traced.parent is None
        traced.is_const = False
        return traced.name

    def _param(self, traced: TracedTensor) -> str:
        """The name of a parameter that a node reads as an input."""
        name, meta = traced.name, traced.meta
        self.used.add(name)
        if name not in self.params:
            while name in self.names:
                name = f"{name}_"
            self.names.add(name)
            role: Role = "statistic" if meta.kind == "buffer" else _role(name)
            dtype = meta.stored_dtype or meta.name
            self.params[traced.name] = Param(name, meta.shape, role, dtype, traced.name)
        return self.params[traced.name].name

    def _cast(self, traced: TracedTensor) -> str:
        """The name of a parameter after a cast, which is a node of its own."""
        traced.name = self.add_node("cast", (self._param(traced),), Cast(traced.meta.name))
        traced.plain = True
        self.log.append(traced)
        return traced.name

    # Nodes

    def emit(self, plan: CallPlan, given: Sequence[TracedTensor]) -> Sequence[str]:
        """Add the nodes of a call; the names of its results."""
        nodes, read = plan.nodes, self.read
        if len(nodes) == 1:  # most calls, which need no list of earlier nodes
            [node] = nodes
            ids: Any = node.inputs  # of tensors of the call: there is no node before
            inputs = [t.name if (t := given[n]).plain else read(t) for n in ids]
            outs = self._node(node, tuple(inputs), given)
            if plan.results == FIRST_OUTPUT:
                return outs
            return [read(given[n]) if isinstance(n, int) else outs[n[1]] for n in plan.results]
        before: list[tuple[str, ...]] = []
        for node in nodes:
            inputs = [
                read(given[n]) if isinstance(n, int) else before[n[0]][n[1]] for n in node.inputs
            ]
            before.append(self._node(node, tuple(inputs), given))
        return [read(given[n]) if isinstance(n, int) else before[n[0]][n[1]] for n in plan.results]

    def emit_module(
        self, module: ModuleInfo, node: PlannedNode, inputs: tuple[str, ...], params: list[Any]
    ) -> tuple[str, ...]:
        """Add the node of a module that is one operation; `params` are the names of its arrays."""
        name = path = module.path
        names = self.names
        if module.calls or name in names:
            name = self._name_again(name)
        module.calls += 1
        module.printed = True
        names.add(name)
        ties = None
        for own, n in node.holds:
            full = params[n]
            self.used.add(full)
            if full != f"{name}.{own}":
                ties = ties or {}
                ties[own] = full
        outs = (name,)
        self.nodes.append(
            Node(
                name, node.op, inputs, outs, node.attributes, None, module.outer, path, ties,
                node.source,
            )
        )  # fmt: skip
        return outs

    def _node(
        self, node: PlannedNode, inputs: tuple[str, ...], given: Sequence[TracedTensor] = ()
    ) -> tuple[str, ...]:
        """Add one node; the names of its outputs."""
        op, outputs, holds, names, module = (
            node.op, node.outputs, node.holds, self.names, self.module
        )  # fmt: skip
        key, scope = (op, ()) if module is None else (module.prefix + op, module.scope)
        counts = self._counts
        count = counts.get(key, 0) + 1
        name = f"{key}{count}"
        while name in names:
            count += 1
            name = f"{key}{count}"
        counts[key] = count
        names.add(name)
        ties = self._ties(name, holds, given) if holds else None
        outs = (name,) if outputs == 1 else tuple([f"{name}:{n}" for n in range(outputs)])
        self.nodes.append(
            Node(name, op, inputs, outs, node.attributes, None, scope, "", ties, node.source)
        )
        if node.params is not None:
            self._set_params(node, given)
        return outs

    def _set_params(self, node: PlannedNode, given: Sequence[TracedTensor]) -> None:
        """Give the node just added the parameters of its plan, instead of those of its spec."""
        self.own_types = True
        sources = dict(node.holds)
        names = self.param_table.names
        params = [
            replace(param, storage=names[id(given[sources[param.name]].tensor)])
            for param in node.params or ()
        ]
        self.nodes[-1] = replace(self.nodes[-1], params=tuple(params), ties=None)

    def _ties(
        self, name: str, holds: tuple[tuple[str, int], ...], given: Sequence[TracedTensor]
    ) -> dict[str, str] | None:
        """Storage names of parameters, but for those that are the node's name and their own."""
        names, used = self.param_table.names, self.used
        ties = None
        for own, n in holds:
            stored = names[id(given[n].tensor)]
            if stored != f"{name}.{own}":
                ties = ties or {}
                ties[own] = stored
            used.add(stored)
        return ties

    def _name_again(self, path: str) -> str:
        """A name for another call of a module."""
        count = self._counts.get(path, 0)
        while True:
            count += 1
            if f"{path}_{count}" not in self.names:
                self._counts[path] = count
                return f"{path}_{count}"

    def name_by_module(self, module: ModuleInfo, before: int, mark: int) -> bool:
        """Give the node of a module without children the module's name.

        Only if there is one node, constants apart, since `before` nodes; `mark` is the length that
        the log had then.
        """
        depth = len(module.scope)
        own = [
            n
            for n, node in enumerate(self.nodes[before:], before)
            if node.op not in NO_INPUTS and node.scope[:depth] == module.scope
        ]
        if len(own) != 1 or not module.path:
            return False
        self._rename(own[0], module, mark)
        return True

    def _rename(self, index: int, module: ModuleInfo, mark: int) -> None:
        node = self.nodes[index]
        name = module.path
        if module.calls or name in self.names:
            name = self._name_again(name)
        module.calls += 1
        self.names.discard(node.name)
        key = module.prefix + node.op
        if self._counts.get(key, 0) > 0:
            self._counts[key] -= 1
        self.names.add(name)
        count = len(node.outputs)
        outs = (name,) if count == 1 else tuple([f"{name}:{n}" for n in range(count)])
        renamed = dict(zip(node.outputs, outs, strict=True))
        ties = node.ties
        if ties:
            ties = {own: full for own, full in ties.items() if full != f"{name}.{own}"} or None
        self.nodes[index] = replace(
            node, name=name, outputs=outs, scope=module.outer, module=module.path, ties=ties
        )
        for traced in self.log[mark:]:
            traced.name = renamed.get(traced.name, traced.name)
        self.grads.renamed(renamed)

    def add_node(self, op: str, inputs: tuple[str, ...], attributes: object) -> str:
        """Add a node that belongs to no operator call; the name of its output."""
        if attributes is not None:
            attributes = self.intern(attributes)
        return self._node(PlannedNode(op, (), attributes, (), 1, None), inputs)[0]


def _role(name: str) -> Role:
    own = name.rsplit(".", 1)[-1]
    if "bias" in own:
        return "bias"
    return "embedding" if "embed" in own or "token" in own or "pos_" in own else "weight"
