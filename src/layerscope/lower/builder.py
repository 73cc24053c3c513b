"""A model under construction: operators as plain records, constants and stored arrays by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.shapes import Shapes
from layerscope.errors import CannotLower
from layerscope.graph.types import Graph, Node, Param, Shape, Tensor, elements
from layerscope.ops import SPECS, Call

LONG = 1024  # elements from where on a constant of one value is written as its shape
FLOATS = ("fp16", "fp32", "fp64")


class Op(Struct):
    """One operator of the model; the names of its outputs may yet change."""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Array(Struct, frozen=True):
    """A constant: its numbers row by row."""

    values: tuple[float, ...] | range
    shape: Shape
    dtype: str


class Draft:
    """All operators so far; no two names alike, equal constants once."""

    def __init__(self, graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> None:
        self.graph, self.shapes, self.costs = graph, shapes, costs
        self.ops: list[Op] = []
        self.params: dict[str, Param] = {}  # by the name they are stored under
        self.inputs: list[Tensor] = list(graph.inputs)
        self.makers = {name: node.op for node in graph.nodes for name in node.outputs}
        self._taken = {node.name for node in graph.nodes} | set(shapes.tensors)
        for node in graph.nodes:
            params = costs[node.name].params
            self._taken.update([storage_of(node, param, node.ties) for param in params])
        self._shared: dict[Any, str] = {}
        self._places: dict[str, str] = {}
        self.given = {param.name for param in graph.params}  # arrays that are inputs of nodes

    def fresh(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def shared(self, key: Any, name: str, make: Callable[[str], Iterable[Op]]) -> str:
        """A tensor that several nodes use, made by `make(its name)` for the first of them."""
        if key not in self._shared:
            self._shared[key] = found = self.fresh(name)
            self.ops.extend(make(found))
        return self._shared[key]

    def constant(self, array: Array) -> str:
        """The name of a constant."""
        sizes = "x".join(map(str, array.shape)) or "scalar"
        return self.shared(
            array,
            f"constants/{array.dtype}_{sizes}",
            lambda name: [Op("Constant", name, [], [name], {"value": array})],
        )

    def full(self, shape: Shape, value: float, dtype: str) -> str:
        """The name of a constant of one value."""
        if elements(shape) < LONG:
            return self.constant(Array((value,) * elements(shape), shape, dtype))
        sizes = self.constant(Array(shape, (len(shape),), "int64"))
        one = Array((value,), (1,), dtype)
        return self.shared(
            (shape, value, dtype),
            f"constants/{dtype}_{'x'.join(map(str, shape))}",
            lambda name: [Op("ConstantOfShape", name, [sizes], [name], {"value": one})],
        )

    def store(self, name: str, param: Param) -> str:
        """Declare a stored array; one declared before must have as many elements."""
        if name not in self._places:
            own = name in self.shapes.tensors and name not in self.given  # a tensor is named so
            self._places[name] = self.fresh(name) if own else name
        name = self._places[name]
        known = self.params.setdefault(name, param)
        if known.elements != param.elements:
            raise CannotLower(
                f"{self.graph.name}: {name} is stored as {known.shape} and tied as {param.shape}"
            )
        return name


class Site:
    """The place where one node is written: what it was told, its shapes, its arrays."""

    def __init__(self, draft: Draft, node: Node, call: Call) -> None:
        self.draft, self.node, self.call = draft, node, call
        self.attributes: Any = node.attributes
        self.ops: list[Op] = []
        rule = SPECS[node.op]
        wanted = {p.name: p.shape for p in rule.params(call)}
        arrays = rule.arrays(call)[: len(call.inputs) - 1] if rule.arrays else ()
        self._given = {p.name: (n, p.shape) for n, p in enumerate(arrays, 1)}
        self._params: dict[str, tuple[str, Shape, Param]] = {}
        params = draft.costs[node.name].params  # its own, then those that are inputs
        for param in params[: len(params) - sum(name in draft.given for name in node.inputs)]:
            stored = draft.store(storage_of(node, param, node.ties), param)
            shape = wanted.get(param.name, param.shape)
            self._params[param.name] = (stored, shape, param)

    @property
    def x(self) -> str:
        """The first input."""
        return self.node.inputs[0]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs."""
        return self.node.inputs

    @property
    def shape(self) -> Shape:
        """Shape of the first input."""
        return self.call.x

    @property
    def rank(self) -> int:
        """Axes of the first input."""
        return len(self.call.x)

    @property
    def dtype(self) -> str:
        """Number type of the first output."""
        return self.draft.shapes.tensors[self.node.outputs[0]].dtype

    def dtype_of(self, n: int) -> str:
        """Number type of the n-th input."""
        return self.draft.shapes.tensors[self.node.inputs[n]].dtype

    def operand(self, n: int, dtype: str) -> str:
        """The n-th input in that number type."""
        name = self.node.inputs[n]
        return name if self.dtype_of(n) == dtype else self.cast(name, dtype)

    def add(self, op: str, *inputs: str, part: str = "", **attributes: Any) -> str:
        """Add an operator of one output; `part` names it where it is not the node's last."""
        return self.several(op, *inputs, outputs=1, part=part, **attributes)[0]

    def several(
        self, op: str, *inputs: str, outputs: int, part: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Add an operator of several outputs."""
        name = self.draft.fresh(f"{self.node.name}/{part or op.lower()}")
        made = [name] if outputs == 1 else [f"{name}:{n}" for n in range(outputs)]
        self.ops.append(Op(op, name, list(inputs), made, attributes))
        return tuple(made)

    def cast(self, name: str, dtype: str) -> str:
        """The tensor in another number type."""
        return self.add("Cast", name, to=dtype)

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The tensor in another shape."""
        return self.add("Reshape", name, self.ints(*shape))

    def ints(self, *values: int) -> str:
        """A vector of int64."""
        return self.draft.constant(Array(values, (len(values),), "int64"))

    def number(self, value: float, dtype: str = "") -> str:
        """A scalar, in the number type of the output unless told otherwise."""
        return self.draft.constant(Array((value,), (), dtype or self.dtype))

    def numbers(self, values: Sequence[float], shape: Shape) -> str:
        """A constant in the number type of the output."""
        return self.draft.constant(Array(tuple(values), shape, self.dtype))

    def full(self, shape: Shape, value: float) -> str:
        """A constant of one value, in the number type of the output."""
        return self.draft.full(shape, value, self.dtype)

    def has(self, name: str) -> bool:
        """Whether the node has an array of that name."""
        return name in self._params or name in self._given

    def param(self, name: str, shape: Shape | None = None, *, dtype: str = "") -> str:
        """A stored array, in `shape` or that of its rule, in the number type of the output."""
        if name in self._given:
            return self._taken(name, shape, dtype or self.dtype)
        if name not in self._params:
            raise self.refuse(f"it has no array {name!r}")
        stored, wanted, param = self._params[name]
        wanted = wanted if shape is None else shape
        if elements(wanted) != param.elements:
            raise self.refuse(f"its {name} is {param.shape}, expected {wanted}")
        if self.draft.params[stored].shape != wanted:
            stored = self.reshape(stored, wanted)
        to = dtype or self.dtype
        return stored if param.dtype == to or to not in FLOATS else self.cast(stored, to)

    def _taken(self, name: str, shape: Shape | None, dtype: str) -> str:
        """An input that stands for a stored array."""
        n, own = self._given[name]
        wanted = own if shape is None else shape
        if elements(wanted) != elements(self.call.inputs[n]):
            raise self.refuse(f"its {name} is {self.call.inputs[n]}, expected {wanted}")
        taken = self.operand(n, dtype) if dtype in FLOATS else self.inputs[n]
        return taken if self.call.inputs[n] == wanted else self.reshape(taken, wanted)

    def param_or(self, name: str, shape: Shape, value: float) -> str:
        """A stored array, or a constant where the node has none."""
        return self.param(name) if self.has(name) else self.full(shape, value)

    def outer_input(self, part: str, shape: Shape) -> str:
        """An input of the model that the graph does not have, such as a cache."""
        name = self.draft.fresh(f"{self.node.name}/{part}")
        self.draft.inputs.append(Tensor(name, shape, self.dtype))
        return name

    def refuse(self, why: str) -> CannotLower:
        """The error that names op and node."""
        return CannotLower(f"{self.draft.graph.name}: {self.node.name} ({self.node.op}): {why}")

    def finish(self, written: str | tuple[str, ...]) -> None:
        """Give the outputs the names the node has for them, and the operator its name."""
        made = (written,) if isinstance(written, str) else written
        own = {name for op in self.ops for name in op.outputs}
        names: dict[str, str] = {}
        for name, wanted in zip(made, self.node.outputs, strict=True):
            if name not in own or name in names:  # an input as it is, or one output twice
                name = self.add("Identity", name)
            names[name] = wanted
        for op in self.ops:
            op.inputs = [names.get(name, name) for name in op.inputs]
            op.outputs = [names.get(name, name) for name in op.outputs]
            if self.node.outputs[0] in op.outputs:
                op.name = self.node.name
        self.draft.ops.extend(self.ops)


Writer = Callable[[Site], str | tuple[str, ...]]  # the names of what stands for the outputs


def plain(op: str, **attributes: Any) -> Writer:
    """One operator of the first input."""
    return lambda s: s.add(op, s.x, **attributes)
