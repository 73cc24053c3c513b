"""The graph as it comes about: names, nodes, scopes, views, arrays and what is written in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.grads import Grads
from layerscope.formats.torch.lowering import PlannedNode
from layerscope.formats.torch.module_table import ModuleInfo, ParamTable
from layerscope.formats.torch.tensors import NO_STRIDES, TensorMeta, TracedTensor
from layerscope.graph.attributes import Cast, DeclaredOutputs, Permute, Reshape, Slice
from layerscope.graph.types import Node, Param, Role, Shape, Tensor, elements


class Interned:
    """Equal values are one value, from one model to the next; a run keeps those it began with.

    Threads share them: entries are only added, each in one step. A full table is replaced, not
    emptied, because other runs go on with it.
    """

    def __init__(self) -> None:
        self.attributes: dict[Any, Any] = {}
        self.sigs: dict[Any, TensorMeta] = {}
        self.memo: dict[tuple[str, bool], dict[Any, CallPlan]] = {}  # by the model's dtype and mode


MADE_OF_NOTHING = ("constant", "random")
FIRST = ((0, 0),)  # the result of most calls: what their first step makes first


class CallPlan(Struct, frozen=True, gc=False):
    """What a call amounts to: its steps, and which of their tensors are its results."""

    steps: tuple[PlannedNode, ...]
    results: tuple[Any, ...]  # places
    outs: tuple[TensorMeta, ...]
    form: Any = None  # None for a single tensor, else list or tuple
    way: str = ""  # how a view is had, see Views; "" where it must be run to know


INTERNED = [Interned()]  # the one that new runs begin with


class Tracker:
    """Collects nodes while a model runs."""

    def __init__(
        self, places: Mapping[int, ModuleInfo], held: ParamTable, grads: Grads | None = None
    ) -> None:
        self.places = places
        self.held = held
        self.grads = grads or Grads()
        self.values: dict[int, TracedTensor] = {}
        self.log: list[
            TracedTensor
        ] = []  # every value that got a name, in order; keeps tensors alive
        self.writes: dict[
            TracedTensor, list[Any]
        ] = {}  # known values written in place, by what holds them
        self.written: dict[
            TracedTensor, Any
        ] = {}  # how many of these were applied, and to which numbers
        self.nodes: list[Node] = []
        self.inputs: list[Tensor] = []
        self.params: dict[str, Param] = {}
        self.used: set[str] = set()  # arrays that a node holds or reads
        self.names: set[str] = set()
        self.interned = INTERNED[0]
        self.same = self.interned.attributes
        self.place: ModuleInfo | None = None
        self.leaf: ModuleInfo | None = None  # the module that is the operation at hand
        self.lost_values = False  # whether PyTorch made a tensor of Python numbers, on meta
        self.own_types = False  # whether a node has arrays of other types than its rule tells
        self._counts: dict[str, int] = {}
        self._sigs = self.interned.sigs

    def forget(self) -> None:
        """Let go of tensors, and of those who know how to make them."""
        self.values.clear()
        self.log.clear()
        self.writes.clear()
        self.written.clear()

    # Tensors

    def sig(self, tensor: Any, kind: str = "") -> TensorMeta:
        """The one value for all tensors of this shape, layout and number type."""
        try:
            stride = NO_STRIDES if tensor.is_sparse else tensor.stride()
        except RuntimeError:  # of sparse rows, columns or blocks
            stride = NO_STRIDES
        return self.sig_of(tuple(tensor.shape), stride, tensor.dtype, kind)

    def sig_of(self, shape: Shape, stride: Shape, dtype: Any, kind: str = "") -> TensorMeta:
        """As `sig`, of its parts."""
        key = (shape, stride, dtype, kind)
        found = self._sigs.get(key)
        if found is None:
            found = self._sigs.setdefault(
                key, TensorMeta(shape, stride, dtype, kind, name_of(dtype))
            )
        return found

    def cast_sig(self, sig: TensorMeta, dtype: Any) -> TensorMeta:
        """An array of the model in another dtype than it is stored in."""
        key = (sig, dtype)
        found = self._sigs.get(key)
        if found is None:
            made = TensorMeta(sig.shape, sig.stride, dtype, sig.kind, name_of(dtype))
            made.stored_dtype = sig.stored_dtype or sig.name
            found = self._sigs.setdefault(key, made)
        return found

    def value(self, tensor: Any) -> TracedTensor:
        """What is known of a tensor; one never seen is an array of the model, or a constant."""
        found = self.values.get(id(tensor))
        if found is not None:
            return found
        name = self.held.names.get(id(tensor))
        if name is not None:
            kind = "buffer" if id(tensor) in self.held.buffers else "param"
            found = TracedTensor(tensor, name, self.sig(tensor, kind))
            found.known = kind == "buffer" and tensor.device.type == "cpu"
        else:
            found = TracedTensor(tensor, "", self.sig(tensor))
            found.known = tensor.device.type == "cpu"
            self.lost_values = self.lost_values or tensor.is_meta
            found.fixed = True
        found.plain = False
        self.values[id(tensor)] = found
        self.log.append(found)
        return found

    def register(
        self, tensor: Any, name: str, sig: TensorMeta, *, plain: bool = True
    ) -> TracedTensor:
        """A tensor that was just made."""
        made = TracedTensor(tensor, name, sig)
        if not plain:
            made.plain = False
        self.values[id(tensor)] = made
        self.log.append(made)
        return made

    def declare(self, tensor: Any, name: str) -> TracedTensor:
        """An input of the network."""
        free = name
        count = 0
        while free in self.names:
            count += 1
            free = f"{name}_{count}"
        self.names.add(free)
        sig = self.sig(tensor)
        self.inputs.append(Tensor(free, sig.shape, sig.name))
        return self.register(tensor, free, sig)

    # Names of tensors

    def read(self, value: Any) -> str:
        """The name a node reads; arrays are declared, constants made, stale views taken anew."""
        if type(value) is not TracedTensor:
            value = self.value(value)
        if value.plain:
            return str(value.name)
        if value.parent is not None and not value.constant:
            root = value.root
            if value.version != root.version:
                entry, given, place = value.made
                around = self.place, self.leaf
                self.place, self.leaf = value.place, None  # it belongs where it was taken
                value.name = self.emit(entry, given)[place]
                self.place, self.leaf = around
                value.version = root.version
            value.was_read = True
            return str(value.name)
        if value.sig.stored_dtype:
            return self._cast(value)
        if value.sig.kind:
            return self._stored(value)
        op = value.recipe if isinstance(value.recipe, str) else "constant"
        told = DeclaredOutputs((value.sig.shape,), (value.sig.name,))
        told = self.same.setdefault((DeclaredOutputs, told), told)
        around = self.place, self.leaf
        self.place = self.leaf = None  # it belongs to no module
        [value.name] = self._node(PlannedNode(op, (), told, (), 1, None), ())
        self.place, self.leaf = around
        if self.grads.training:
            self.grads.constant(value)
        value.plain = value.parent is None
        value.fixed = False
        return str(value.name)

    def _stored(self, value: TracedTensor) -> str:
        name, sig = value.name, value.sig
        self.used.add(name)
        if name not in self.params:
            while name in self.names:
                name = f"{name}_"
            self.names.add(name)
            role: Role = "statistic" if sig.kind == "buffer" else _role(name)
            dtype = sig.stored_dtype or sig.name
            self.params[value.name] = Param(name, sig.shape, role, dtype, value.name)
        return self.params[value.name].name

    def _cast(self, value: TracedTensor) -> str:
        """The name of an array of the model after a cast, which is a row of its own."""
        value.name = self._single("cast", (self._stored(value),), Cast(value.sig.name))
        value.plain = True
        self.log.append(value)
        return value.name

    # Nodes

    def emit(self, entry: CallPlan, given: list[Any]) -> Sequence[str]:
        """Add the nodes of a call; names of its results."""
        steps, read = entry.steps, self.read
        if len(steps) == 1:  # most calls, which need no list of steps before
            [step] = steps
            places: Any = step.inputs  # a first step reads only what the call is given
            inputs = [each.name if (each := given[p]).plain else read(each) for p in places]
            made = self._node(step, tuple(inputs), given)
            if entry.results == FIRST:
                return made
            return [read(given[p]) if isinstance(p, int) else made[p[1]] for p in entry.results]
        before: list[tuple[str, ...]] = []
        for step in steps:
            inputs = [
                read(given[p]) if isinstance(p, int) else before[p[0]][p[1]] for p in step.inputs
            ]
            before.append(self._node(step, tuple(inputs), given))
        return [read(given[p]) if isinstance(p, int) else before[p[0]][p[1]] for p in entry.results]

    def emit_leaf(
        self, place: ModuleInfo, step: PlannedNode, read: tuple[str, ...], stored: list[Any]
    ) -> tuple[str, ...]:
        """As `emit`, of a module that is one step, of one tensor and arrays stored as told."""
        name = path = place.path
        names = self.names
        if place.calls or name in names:
            name = self._again(name)
        place.calls += 1
        place.printed = True
        names.add(name)
        ties = None
        for own, n in step.holds:
            full = stored[n]
            self.used.add(full)
            if full != f"{name}.{own}":
                ties = ties or {}
                ties[own] = full
        made = (name,)
        self.nodes.append(
            Node(
                name, step.op, read, made, step.attributes, None, place.outer, path, ties,
                step.source,
            )
        )  # fmt: skip
        return made

    def _node(self, step: PlannedNode, inputs: tuple[str, ...], given: Any = ()) -> tuple[str, ...]:
        """Add one node; names of what it makes."""
        leaf, op, outputs, holds = self.leaf, step.op, step.outputs, step.holds
        names = self.names
        if leaf is not None:
            name = leaf.path
            if leaf.calls or name in names:
                name = self._again(name)
            leaf.calls += 1
            scope, module = leaf.outer, leaf.path
        else:
            place = self.place
            key, scope, module = op, (), ""
            if place is not None:
                key, scope = place.prefix + op, place.scope
            counts = self._counts
            count = counts.get(key, 0) + 1
            name = f"{key}{count}"
            while name in names:
                count += 1
                name = f"{key}{count}"
            counts[key] = count
        names.add(name)
        ties = self._ties(name, holds, given) if holds else None
        made = (name,) if outputs == 1 else tuple([f"{name}:{n}" for n in range(outputs)])
        self.nodes.append(
            Node(name, op, inputs, made, step.attributes, None, scope, module, ties, step.source)
        )
        if step.params is not None:
            self._typed(step, given)
        return made

    def _typed(self, step: PlannedNode, given: list[Any]) -> None:
        """The node just added has the arrays of its step, not those of its rule."""
        self.own_types = True
        places = dict(step.holds)
        names = self.held.names
        params = [
            replace(param, storage=names[id(given[places[param.name]].tensor)])
            for param in step.params or ()
        ]
        self.nodes[-1] = replace(self.nodes[-1], params=tuple(params), ties=None)

    def _ties(self, name: str, holds: Any, given: Any) -> dict[str, str] | None:
        """Where arrays are stored, unless that is the node's own name and theirs."""
        names, used = self.held.names, self.used
        ties = None
        for own, place in holds:
            array = given[place]
            stored = names[id(array.tensor if type(array) is TracedTensor else array)]
            if stored != f"{name}.{own}":
                ties = ties or {}
                ties[own] = stored
            used.add(stored)
        return ties

    def _again(self, path: str) -> str:
        count = self._counts.get(path, 0)
        while True:
            count += 1
            if f"{path}_{count}" not in self.names:
                self._counts[path] = count
                return f"{path}_{count}"

    def settle(self, place: ModuleInfo, before: int, mark: int) -> bool:
        """A module without children that made one node, constants apart, is that node."""
        depth = len(place.scope)
        made = [
            n
            for n, node in enumerate(self.nodes[before:], before)
            if node.op not in MADE_OF_NOTHING and node.scope[:depth] == place.scope
        ]
        if len(made) != 1 or not place.path:
            return False
        self._rename(made[0], place, mark)
        return True

    def _rename(self, index: int, place: ModuleInfo, mark: int) -> None:
        node = self.nodes[index]
        name = place.path
        if place.calls or name in self.names:
            name = self._again(name)
        place.calls += 1
        self.names.discard(node.name)
        key = place.prefix + node.op
        if self._counts.get(key, 0) > 0:
            self._counts[key] -= 1
        self.names.add(name)
        count = len(node.outputs)
        made = (name,) if count == 1 else tuple([f"{name}:{n}" for n in range(count)])
        renamed = dict(zip(node.outputs, made, strict=True))
        ties = node.ties
        if ties:
            ties = {own: full for own, full in ties.items() if full != f"{name}.{own}"} or None
        self.nodes[index] = replace(
            node, name=name, outputs=made, scope=place.outer, module=place.path, ties=ties
        )
        for value in self.log[mark:]:
            value.name = renamed.get(value.name, value.name)
        self.grads.renamed(renamed)

    # What is written in place

    def write(self, value: TracedTensor, name: str) -> None:
        """A tensor has new contents, and so has all it is a view of."""
        root = value.root
        child = value
        before = []
        while child.parent is not None:
            child = child.parent
            before.append(self.read(child))
        root.version += 1
        self._written(value, name, root)
        child = value
        for old in before:
            parent = child.parent
            assert parent is not None
            self._written(parent, self._back(parent, child, old), root)
            child = parent

    def _written(self, value: TracedTensor, name: str, root: TracedTensor) -> None:
        value.name = name
        value.version = root.version
        value.known = value.fixed = False
        value.plain = value.parent is None
        self.log.append(value)

    def _back(self, parent: TracedTensor, child: TracedTensor, before: str) -> str:
        """The name of what a view is of, after the view was written."""
        entry, _, place = child.made
        steps: tuple[PlannedNode, ...] = entry.steps
        if not steps:
            return child.name
        shape = parent.sig.shape
        first, name = steps[0], child.name
        whole = elements(shape) == elements(child.sig.shape)
        if len(steps) == 1 and whole and first.op in ("reshape", "flatten"):
            return self._single("reshape", (name,), Reshape(shape))
        if len(steps) == 1 and first.op == "permute":
            order = first.attributes.order
            back = tuple([order.index(n) for n in range(len(order))])
            return self._single("permute", (name,), Permute(back))
        cut = _cut(first, shape, entry.results[place])
        if cut is None or any(step.op != "reshape" for step in steps[1:]):
            return self._single("insert", (before, name), None)  # where strides of a view decide
        if len(steps) > 1:
            room = list(shape)
            room[cut.axes[0]] = len(range(cut.starts[0], cut.ends[0], cut.steps[0]))
            name = self._single("reshape", (name,), Reshape(tuple(room)))
        return self._single("insert", (before, name), cut)

    def _single(self, op: str, inputs: tuple[str, ...], told: Any) -> str:
        if told is not None:
            told = self.same.setdefault((type(told), told), told)
        return self._node(PlannedNode(op, (), told, (), 1, None), inputs)[0]


def _cut(step: PlannedNode, shape: Shape, place: Any) -> Slice | None:
    """Where in the whole a view stands that was cut out of it along one axis."""
    if step.op == "slice":
        whole: Slice = step.attributes
        return whole
    if step.op != "split":
        return None
    told = step.attributes
    axis = told.axis
    sizes = told.sizes or (shape[axis] // told.parts,) * told.parts
    piece = place[1] if place[0] == 0 else None
    if piece is None:
        return None
    start = sum(sizes[:piece])
    return Slice((axis,), (start,), (start + sizes[piece],), (1,))


def _role(name: str) -> Role:
    own = name.rsplit(".", 1)[-1]
    if "bias" in own:
        return "bias"
    return "embedding" if "embed" in own or "token" in own or "pos_" in own else "weight"
