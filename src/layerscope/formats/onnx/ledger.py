"""The flat graph under construction: nodes in order, stored arrays by use, names made unique."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.inputs import Binding
from layerscope.formats.onnx.known import Entry, Known, NeedsValue
from layerscope.formats.onnx.numbers import FLOATS
from layerscope.formats.onnx.reasons import Trace, summary
from layerscope.formats.onnx.roles import Origin, decide, with_roles
from layerscope.formats.onnx.scopes import SCOPES, named_scope, told_scope
from layerscope.formats.onnx.skim import Operator
from layerscope.formats.onnx.tensors import Stored, numbers_of, pairs
from layerscope.formats.onnx.words import Vocabulary
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Source, Tensor, elements

MOST_NUMBERS = 4_000_000  # worked out before the run in all, some seconds; shapes need few
MOST_NODES = 500_000  # with functions put in: they could double without end


MOST_AGAIN = 50_000  # nodes of loop bodies that are walked more than once, until shapes settle


class Ledger:
    """Collects nodes, arrays and names of the flat graph while a file is walked."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.file = wire.name
        self.nodes: list[Node] = []
        self.params: dict[str, Param] = {}  # taken as inputs, by name
        self.entries: list[Entry] = []
        self.tensors: dict[str, tuple[Shape | None, str]] = {}  # of the graph made
        self.derived: dict[str, Entry] = {}  # arrays in another shape or type, by tensor
        self.derived_read: dict[str, None] = {}
        self.renamed: list[tuple[str, Entry]] = []  # what an Identity calls an array
        self.notes: list[str] = []
        self.dtype = ""  # of floats
        self.assumed = ""  # input shapes that nobody told
        self.names: dict[str, None] = {}  # of nodes
        self.counts: dict[str, int] = {}  # how far names made unique have got, by the name wanted
        self._same: dict[Any, Any] = {}
        self._kept: dict[int, Any] = {}  # those values by their id, which is quicker to look up
        self._sources: dict[str, Source] = {}
        self.vocabulary = Vocabulary(wire)
        self.made: dict[Any, tuple[tuple[Shape, ...], list[str]]] = {}  # by rules, of calls alike
        self.budget = MOST_NODES
        self.numbers = MOST_NUMBERS  # that may yet be worked out before the run
        self.modules: dict[str, str] = {}
        self.binding: Binding | None = None
        self.origin = Origin()
        self.declared: dict[str, str] = {}  # tensor -> the declared shape that its own rests on
        self.trusts_declared = True  # inputs are as declared, and so what is declared inside
        self.contradicted: list[str] = []  # declared shapes that are not the inferred ones
        self.again = MOST_AGAIN  # nodes of loop bodies that may yet be walked again
        self.unrolling = False  # a loop is followed round by round; those inside of it are not
        self.trace = Trace(self.nodes)
        self.block = 0  # channels in a row of a graph that onnxruntime laid out, once looked up

    # -- names ---------------------------------------------------------------------------------

    def fresh(self, name: str, taken: dict[str, Any], also: dict[str, Any] | None = None) -> str:
        """A name that nothing else has."""
        found, count = name, self.counts.get(name, 1)
        while found in taken or (also is not None and found in also):
            count += 1
            found = f"{name}_{count}"
        if found != name:
            self.counts[name] = count
        return found

    def tensor_name(self, name: str, scope: tuple[str, ...]) -> str:
        """The name of a tensor in the flat graph: its own, or with its scope where it is taken."""
        if name not in self.tensors and name not in self.params:
            return name
        return self.fresh("/".join((*scope, name)), self.tensors, self.params)

    def scope_of(self, operator: Operator) -> tuple[str, ...]:
        """Modules around a node: as its exporter tells them, else as its name does."""
        for key, text in pairs(self.wire, operator.metadata) if operator.metadata else ():
            if key == SCOPES:
                told = told_scope(text)
                if told is not None:
                    return told
        return named_scope(operator.name) if "/" in operator.name else ()

    def same(self, attributes: Any) -> Any:
        """One value for all that are equal."""
        if attributes is None or id(attributes) in self._kept:
            return attributes
        found = self._same.setdefault(attributes, attributes)
        self._kept[id(found)] = found
        return found

    # -- stored arrays -------------------------------------------------------------------------

    def store(self, name: str, stored: Stored, scope: tuple[str, ...], role: str = "") -> Known:
        """An initializer or a Constant."""
        found = self.tensor_name(name, scope)
        entry = Entry(found, stored.shape, stored.dtype, stored, role or stored.role)
        self.entries.append(entry)
        self.tensors[entry.name] = (entry.shape, entry.dtype)

        def value() -> Array | None:
            numbers = numbers_of(self.wire, stored)
            return None if numbers is None else Array(stored.shape, numbers, stored.dtype)

        return Known(entry.name, stored.shape, stored.dtype, value, entry)

    def literal(self, name: str, array: Array, scope: tuple[str, ...]) -> Known:
        """Numbers written as attributes of a Constant."""
        entry = Entry(self.tensor_name(name, scope), array.shape, array.dtype, None)
        self.entries.append(entry)
        self.tensors[entry.name] = (entry.shape, entry.dtype)
        return Known(entry.name, array.shape, array.dtype, array, entry)

    def input_name(self, known: Known, role: Role = "weight") -> str:
        """The tensor's name as an ordinary input of a node; a stored array becomes a param."""
        entry = known.entry
        if entry is None:
            return known.name
        entry.use = entry.use or role
        whole = entry.dtype not in FLOATS and not entry.narrow
        if whole or elements(entry.shape) <= 1:
            role = "constant"
        entry.settle(role)
        if known.name != entry.name:
            self.derived_read[known.name] = None
        else:
            self.params[entry.name] = entry.param
        return known.name

    def absorb(self, known: Known, name: str, role: Role) -> Param:
        """A stored array as one of a node's own."""
        entry = known.entry
        if entry is None:
            raise NeedsValue(f"{name} {known.name!r} is computed, expected a stored array")
        settled = entry.settle(role)
        assert known.shape is not None
        told = settled if entry.told is not None else role
        return Param(name, known.shape, told, entry.dtype, entry.name)

    def uses(self, known: Known | None) -> None:
        """An array that only tells how: neither parameter nor buffer."""
        if known is not None and known.entry is not None and known.entry.role is None:
            known.entry.settle("constant")

    # -- emission ------------------------------------------------------------------------------

    def source(self, op: str, name: str) -> Source:
        """Where a node comes from."""
        if name:
            return Source(self.file, 0, op, name)
        found = self._sources.get(op)
        if found is None:
            found = self._sources[op] = Source(self.file, 0, op)
        return found

    def append(
        self,
        node: Node,
        shapes: Sequence[Shape | None],
        dtypes: Sequence[str],
        read: Iterable[str] = (),
    ) -> None:
        """Take a node in; `read` are tensors that its shapes depend on beside its inputs."""
        self.budget -= 1
        if self.budget < 0:
            raise FormatError(f"{self.file}: more than {MOST_NODES:,} nodes, functions put in")
        if self.declared:
            node = self._estimated(node, (*node.inputs, *read))
        self.nodes.append(node)
        for name, shape, dtype in zip(node.outputs, shapes, dtypes, strict=True):
            self.tensors[name] = (shape, dtype)

    def _estimated(self, node: Node, read: Sequence[str]) -> Node:
        """The node, marked where its shapes rest on one that the file declares."""
        root = next((self.declared[name] for name in read if name in self.declared), "")
        if not root:
            return node
        for name in node.outputs:
            self.declared.setdefault(name, root)
        if node.op == "constant":  # numbers that only tell other shapes
            return node
        note = f"from the declared shape of {root}"
        told = f"{node.note}; {note}" if node.note else note
        return replace(node, estimate=True, note=told)

    def contradict(self, name: str, declared: Sequence[object], inferred: Shape) -> None:
        """Keep that a tensor has another shape than the file declares."""
        said = "x".join(map(str, declared)) or "scalar"
        self.contradicted.append(f"{name} {said} (is {'x'.join(map(str, inferred)) or 'scalar'})")

    def node_name(self, wanted: str) -> str:
        """A name for a node that no other has."""
        found = self.fresh(wanted, self.names) if wanted in self.names else wanted
        self.names[found] = None
        return found

    def graph(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[str]) -> Graph:
        """The graph of all that was walked: arrays by what they turned out to be."""
        self.notes += decide(self.wire, self.origin, self.entries, self.nodes)
        renamed = [name for name, entry in self.renamed if entry.learned]
        if renamed:
            more = f" and {len(renamed) - 3} more" if len(renamed) > 3 else ""
            self.notes.append(
                "other names of stored arrays, equal when they were exported, which count once: "
                f"{', '.join(renamed[:3])}{more}"
            )
        nodes = []
        for node in with_roles(self.nodes, self.entries):
            if node.op == "constant" and node.outputs[0] in self.derived_read:
                tensor = node.outputs[0]
                entry = self.derived[tensor]
                shape, _ = self.tensors[tensor]
                assert shape is not None
                param = Param("value", shape, entry.role or "weight", entry.dtype, entry.name)
                node = replace(node, params=(param, *(node.params or ())))
            nodes.append(node)
        stored = {entry.name: entry.param for entry in self.entries}
        if self.contradicted:
            more = f" and {len(self.contradicted) - 3} more" if len(self.contradicted) > 3 else ""
            self.notes.append(
                f"declared shapes that do not hold: {', '.join(self.contradicted[:3])}{more}"
            )
        idle = [name for name, param in stored.items() if param.role == "unused"]
        if idle:
            more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
            self.notes.append(f"stored and used by nothing: {', '.join(idle[:3])}{more}")
        self.notes += summary(nodes, self.trace.causes)
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
