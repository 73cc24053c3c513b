"""The graph that is being imported: its nodes so far, stored arrays with roles, unique names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.attr_cache import AttrCache
from layerscope.formats.onnx.dtypes import FLOATS
from layerscope.formats.onnx.input_shapes import Binding
from layerscope.formats.onnx.reasons import Trace, summary
from layerscope.formats.onnx.roles import ExporterInfo, decide, with_roles
from layerscope.formats.onnx.scopes import SCOPES, exported_scope, named_scope
from layerscope.formats.onnx.skim import NodeProto
from layerscope.formats.onnx.tensor_info import ROLES, Initializer, NeedsValue, TensorInfo
from layerscope.formats.onnx.tensors import StoredTensor, numbers_of, pairs
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Source, Tensor, elements

MOST_NUMBERS = 4_000_000  # computed by constant folding in all, some seconds; shapes need few
MOST_NODES = 500_000  # with functions inlined: they could double without end
MOST_REPEATED = 50_000  # nodes of loop bodies that are walked more than once, until shapes agree
S = TypeVar("S", bound=Struct | None)


class StoredValue(Struct, gc=False):
    """A stored array whose value is read when it is needed."""

    wire: Wire
    stored: StoredTensor

    def __call__(self) -> SmallArray | None:
        """The value; None if the array is large or in another file."""
        stored = self.stored
        numbers = numbers_of(self.wire, stored)
        return None if numbers is None else SmallArray(stored.shape, numbers, stored.dtype)


class ImportState:
    """Collects nodes, stored arrays and names of the flat graph while a file is walked."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.file = wire.name
        self.nodes: list[Node] = []
        self.params: dict[str, Param] = {}  # stored arrays that are inputs of nodes, by name
        self.initializers: list[Initializer] = []
        self.tensors: dict[str, tuple[Shape | None, str]] = {}  # of the imported graph
        self.derived: dict[str, Initializer] = {}  # arrays in another shape or dtype, by tensor
        self.derived_read: dict[str, None] = {}
        self.renamed: list[tuple[str, Initializer]] = []  # outputs of an Identity of an array
        self.notes: list[str] = []
        self.inferred_by_onnx: set[str] = set()  # operators whose output shapes onnx inferred
        self.not_inferred: set[str] = set()  # operators whose shapes onnx might have inferred
        self.dtype = ""  # of floats
        self.assumed = ""  # input shapes that neither the file nor the user gives
        self.names: dict[str, None] = {}  # of nodes
        self.counts: dict[str, int] = {}  # the last suffix in use, by name
        self._interned: dict[Hashable, Hashable] = {}
        self._by_id: dict[int, object] = {}  # the same, which is quicker to look up
        self._sources: dict[str, Source] = {}
        # Output shapes and dtypes by op, id of interned attributes, shapes and dtypes of inputs:
        # the same calls as in `ops.calls`, without hashing attributes for every node.
        self.inferred: dict[tuple[Hashable, ...], list[tuple[Shape, str]]] = {}
        self.attr_cache = AttrCache(wire)
        self.node_budget = MOST_NODES
        self.value_budget = MOST_NUMBERS  # numbers that folding may still compute
        self.modules: dict[str, str] = {}
        self.binding: Binding | None = None
        self.exporter = ExporterInfo()
        self.declared: dict[str, str] = {}  # tensor -> the declared shape that its own depends on
        self.trusts_declared = True  # graph inputs have their declared shapes
        self.contradicted: list[str] = []  # declared shapes that differ from the inferred ones
        self.repeat_budget = MOST_REPEATED  # nodes of loop bodies that may still be walked again
        self.unrolling = False  # inside a loop that is unrolled; loops inside of it are not
        self.trace = Trace(self.nodes)
        self.channel_block = 0  # channels in a block of the NCHWc layout; 0: not computed yet

    # -- names ---------------------------------------------------------------------------------

    def unique_name(
        self, name: str, taken: Mapping[str, object], also: Mapping[str, object] | None = None
    ) -> str:
        """The name, with a suffix if it is taken."""
        found, count = name, self.counts.get(name, 1)
        while found in taken or (also is not None and found in also):
            count += 1
            found = f"{name}_{count}"
        if found != name:
            self.counts[name] = count
        return found

    def tensor_name(self, name: str, scope: tuple[str, ...]) -> str:
        """The name of a tensor in the flat graph: its own, or with its scope if that is taken."""
        if name not in self.tensors and name not in self.params:
            return name
        return self.unique_name("/".join((*scope, name)), self.tensors, self.params)

    def scope_of(self, proto: NodeProto) -> tuple[str, ...]:
        """Modules around a node, from the exporter's metadata, else from its name."""
        for key, text in pairs(self.wire, proto.metadata) if proto.metadata else ():
            if key == SCOPES:
                scope = exported_scope(text)
                if scope is not None:
                    return scope
        return named_scope(proto.name) if "/" in proto.name else ()

    def intern(self, attributes: S) -> S:
        """One object for all equal attributes, so that its id identifies them in the analysis."""
        if attributes is None or id(attributes) in self._by_id:
            return attributes
        found: Any = self._interned.setdefault(attributes, attributes)
        self._by_id[id(found)] = found
        interned: S = found
        return interned

    # -- stored arrays -------------------------------------------------------------------------

    def store(
        self, name: str, stored: StoredTensor, scope: tuple[str, ...], role: str = ""
    ) -> TensorInfo:
        """Add an initializer, or the tensor of a Constant node."""
        found, shape, dtype = self.tensor_name(name, scope), stored.shape, stored.dtype
        entry = Initializer(found, shape, dtype, stored, ROLES.get(role or stored.role))
        self.initializers.append(entry)
        self.tensors[found] = (shape, dtype)
        return TensorInfo(found, shape, dtype, StoredValue(self.wire, stored), entry)

    def store_literal(self, name: str, array: SmallArray, scope: tuple[str, ...]) -> TensorInfo:
        """Add a Constant node's value that is written as numbers in its attributes."""
        entry = Initializer(self.tensor_name(name, scope), array.shape, array.dtype, None)
        self.initializers.append(entry)
        self.tensors[entry.name] = (entry.shape, entry.dtype)
        return TensorInfo(entry.name, array.shape, array.dtype, array, entry)

    def input_name(self, tensor: TensorInfo, role: Role = "weight") -> str:
        """The tensor's name as an input of a node; a stored array becomes a parameter."""
        entry = tensor.initializer
        if entry is None:
            return tensor.name
        entry.first_use = entry.first_use or role
        integers = entry.dtype not in FLOATS and not entry.quantized
        if integers or elements(entry.shape) <= 1:
            role = "constant"
        entry.set_role(role)
        if tensor.name != entry.name:
            self.derived_read[tensor.name] = None
        else:
            self.params[entry.name] = entry.param
        return tensor.name

    def own_param(self, tensor: TensorInfo, name: str, role: Role) -> Param:
        """A stored array as a parameter of one node."""
        entry = tensor.initializer
        if entry is None:
            raise NeedsValue(f"{name} {tensor.name!r} is computed, expected a stored array")
        found = entry.set_role(role)
        assert tensor.shape is not None
        own = found if entry.declared_role is not None else role
        return Param(name, tensor.shape, own, entry.dtype, entry.name)

    def mark_constant(self, tensor: TensorInfo | None) -> None:
        """Give a stored array without a role the role `constant`: it only sets a shape or mode."""
        entry = tensor.initializer if tensor is not None else None
        if entry is not None and entry.role is None:
            entry.set_role("constant")

    # -- nodes ---------------------------------------------------------------------------------

    def source(self, op: str, name: str) -> Source:
        """File, operator and name that a node comes from."""
        if name:
            return Source(self.file, 0, op, name)
        found = self._sources.get(op)
        if found is None:
            found = self._sources[op] = Source(self.file, 0, op)
        return found

    def append(
        self,
        node: Node,
        outputs: Sequence[tuple[Shape | None, str]],
        read: Iterable[str] = (),
    ) -> None:
        """Add a node with the shapes and dtypes of its outputs.

        `read` are tensors that its shapes depend on beside its inputs.
        """
        self.node_budget -= 1
        if self.node_budget < 0:
            raise FormatError(f"{self.file}: more than {MOST_NODES:,} nodes, functions inlined")
        if self.declared:
            node = self._estimated(node, (*node.inputs, *read))
        self.nodes.append(node)
        for n, name in enumerate(node.outputs):
            self.tensors[name] = outputs[n]

    def _estimated(self, node: Node, read: Sequence[str]) -> Node:
        """The node, marked as an estimate if its shapes depend on a declared one."""
        root = next((self.declared[name] for name in read if name in self.declared), "")
        if not root:
            return node
        for name in node.outputs:
            self.declared.setdefault(name, root)
        if node.op == "constant":  # its numbers only decide other shapes
            return node
        note = f"from the declared shape of {root}"
        note = f"{node.note}; {note}" if node.note else note
        return replace(node, estimate=True, note=note)

    def contradict(self, name: str, declared: Sequence[object], inferred: Shape) -> None:
        """Record that a tensor's inferred shape differs from the declared one."""
        said = "x".join(map(str, declared)) or "scalar"
        self.contradicted.append(f"{name} {said} (is {'x'.join(map(str, inferred)) or 'scalar'})")

    def node_name(self, wanted: str) -> str:
        """A unique name for a node."""
        found = self.unique_name(wanted, self.names) if wanted in self.names else wanted
        self.names[found] = None
        return found

    # -- the result ----------------------------------------------------------------------------

    def graph(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[str]) -> Graph:
        """The imported graph, after the roles of all stored arrays are decided."""
        self.notes += decide(self.wire, self.exporter, self.initializers, self.nodes)
        renamed = [name for name, entry in self.renamed if entry.learned]
        if renamed:
            self.notes.append(
                "other names of stored arrays, equal when they were exported, which count once: "
                + _listed(renamed)
            )
        nodes = with_roles(self.nodes, self.initializers)
        if self.derived_read:
            nodes = [self._with_derived(node) for node in nodes]
        stored = {entry.name: entry.param for entry in self.initializers}
        if self.contradicted:
            self.notes.append(f"declared shapes that do not hold: {_listed(self.contradicted)}")
        unused = [name for name, param in stored.items() if param.role == "unused"]
        if unused:
            self.notes.append(f"stored and used by nothing: {_listed(unused)}")
        self.notes += summary(nodes, self.trace.causes)
        if self.inferred_by_onnx:
            operators = _listed(sorted(self.inferred_by_onnx))
            self.notes.append(f"output shapes inferred by the onnx package: {operators}")
        if self.not_inferred:
            operators = _listed(sorted(self.not_inferred))
            self.notes.append(
                f"the onnx package may infer output shapes of {operators}: "
                "pip install 'layerscope[onnx]'"
            )
        return Graph(
            name=name,
            inputs=tuple(inputs),
            nodes=tuple(nodes),
            outputs=tuple(outputs),
            params=tuple(stored.values()),
            modules=self.modules,
            dtype=self.dtype or "fp32",
            notes=tuple(self.notes),
            own_layout=True,
        )

    def _with_derived(self, node: Node) -> Node:
        """The node; a constant that is a stored array in another shape or dtype gets that array."""
        if node.op != "constant" or node.outputs[0] not in self.derived_read:
            return node
        tensor = node.outputs[0]
        entry = self.derived[tensor]
        shape, _ = self.tensors[tensor]
        assert shape is not None
        param = Param("value", shape, entry.role or "weight", entry.dtype, entry.name)
        return replace(node, params=(param, *(node.params or ())))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
