"""An ONNX model under construction: operators as plain records, constants and params by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.shapes import Shapes
from layerscope.errors import CannotLower
from layerscope.graph.types import Graph, Node, Param, Shape, Tensor, elements
from layerscope.ops import SPECS, Call

LONG = 1024  # elements; constants of one value with as many or more become ConstantOfShape
FLOATS = ("fp16", "fp32", "fp64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")

# Reasons why ops have no emitter.
NO_OPERATOR = "ONNX has no operator for it"
NO_COMPLEX = "ONNX has no complex numbers"


class Op(Struct):
    """One operator of the model; `NodeEmitter.finish` may rename its outputs."""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Value]


class OnnxConstant(Struct, frozen=True):
    """A constant, its elements in row-major order."""

    values: tuple[float, ...] | range
    shape: Shape
    dtype: str


Value = int | float | str | OnnxConstant | Sequence[int] | Sequence[str]  # of an ONNX attribute


class OnnxBuilder:
    """All operators so far. Names are unique, and equal constants are stored once."""

    def __init__(self, graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> None:
        self.graph, self.shapes, self.costs = graph, shapes, costs
        self.ops: list[Op] = []
        self.params: dict[str, Param] = {}  # by storage name
        self.inputs: list[Tensor] = list(graph.inputs)
        self.producers = {name: node.op for node in graph.nodes for name in node.outputs}
        self._taken = {node.name for node in graph.nodes} | set(shapes.tensors)
        for node in graph.nodes:
            params = costs[node.name].params
            self._taken.update([storage_of(node, param, node.ties) for param in params])
        self._shared: dict[Hashable, str] = {}
        self._stored_names: dict[str, str] = {}
        self.given = {param.name for param in graph.params}  # params that are inputs of nodes

    def fresh(self, name: str) -> str:
        """The name, with a number appended if it is taken."""
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def shared(self, key: Hashable, name: str, make: Callable[[str], Iterable[Op]]) -> str:
        """Name of a tensor for several nodes; its first use adds the operators of `make(name)`."""
        if key not in self._shared:
            self._shared[key] = found = self.fresh(name)
            self.ops.extend(make(found))
        return self._shared[key]

    def constant(self, constant: OnnxConstant) -> str:
        """Name of a constant."""
        sizes = "x".join(map(str, constant.shape)) or "scalar"
        return self.shared(
            constant,
            f"constants/{constant.dtype}_{sizes}",
            lambda name: [Op("Constant", name, [], [name], {"value": constant})],
        )

    def full(self, shape: Shape, value: float, dtype: str) -> str:
        """Name of a constant whose elements are all equal."""
        if elements(shape) < LONG:
            return self.constant(OnnxConstant((value,) * elements(shape), shape, dtype))
        sizes = self.constant(OnnxConstant(shape, (len(shape),), "int64"))
        one = OnnxConstant((value,), (1,), dtype)
        return self.shared(
            (shape, value, dtype),
            f"constants/{dtype}_{'x'.join(map(str, shape))}",
            lambda name: [Op("ConstantOfShape", name, [sizes], [name], {"value": one})],
        )

    def store(self, name: str, param: Param) -> str:
        """Declare a param; one of the same storage must have as many elements."""
        if name not in self._stored_names:
            taken = name in self.shapes.tensors and name not in self.given  # by another tensor
            self._stored_names[name] = self.fresh(name) if taken else name
        name = self._stored_names[name]
        declared = self.params.setdefault(name, param)
        if declared.elements != param.elements:
            raise CannotLower(
                f"{self.graph.name}: {name} is stored as {declared.shape} and tied as {param.shape}"
            )
        return name


class NodeEmitter:
    """One node while its operators are added: its attributes, shapes and params."""

    def __init__(self, builder: OnnxBuilder, node: Node, call: Call) -> None:
        self.builder, self.node, self.call = builder, node, call
        self.attributes: Any = node.attributes
        self.ops: list[Op] = []
        rule = SPECS[node.op]
        wanted = {p.name: p.shape for p in rule.params(call)}
        arrays = rule.arrays(call)[: len(call.inputs) - 1] if rule.arrays else ()
        self._given = {p.name: (n, p.shape) for n, p in enumerate(arrays, 1)}
        self._params: dict[str, tuple[str, Shape, Param]] = {}
        params = builder.costs[node.name].params  # its own, then those that are inputs
        for param in params[: len(params) - sum(name in builder.given for name in node.inputs)]:
            stored = builder.store(storage_of(node, param, node.ties), param)
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
    def name(self) -> str:
        """Name of the node."""
        return self.node.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all outputs."""
        return self.node.outputs

    @property
    def shape(self) -> Shape:
        """Shape of the first input."""
        return self.call.x

    @property
    def rank(self) -> int:
        """Number of axes of the first input."""
        return len(self.call.x)

    @property
    def dtype(self) -> str:
        """Dtype of the first output."""
        return self.builder.shapes.tensors[self.node.outputs[0]].dtype

    def dtype_of(self, n: int) -> str:
        """Dtype of the n-th input."""
        return self.builder.shapes.tensors[self.node.inputs[n]].dtype

    def operand(self, n: int, dtype: str) -> str:
        """The n-th input, cast if it has another dtype."""
        name = self.node.inputs[n]
        return name if self.dtype_of(n) == dtype else self.cast(name, dtype)

    def add(self, op: str, *inputs: str, part: str = "", **attributes: Value) -> str:
        """Add an operator with one output and return its name, which `part` may set."""
        return self.add_multi(op, *inputs, outputs=1, part=part, **attributes)[0]

    def add_multi(
        self, op: str, *inputs: str, outputs: int, part: str = "", **attributes: Value
    ) -> tuple[str, ...]:
        """Add an operator with several outputs and return their names."""
        name = self.builder.fresh(f"{self.node.name}/{part or op.lower()}")
        names = [name] if outputs == 1 else [f"{name}:{n}" for n in range(outputs)]
        self.ops.append(Op(op, name, list(inputs), names, attributes))
        return tuple(names)

    def cast(self, name: str, dtype: str) -> str:
        """The tensor in another dtype."""
        return self.add("Cast", name, to=dtype)

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The tensor in another shape."""
        return self.add("Reshape", name, self.ints(*shape))

    def ints(self, *values: int) -> str:
        """A vector of int64."""
        return self.builder.constant(OnnxConstant(values, (len(values),), "int64"))

    def number(self, value: float, dtype: str = "") -> str:
        """A scalar constant; `dtype` defaults to that of the output."""
        return self.builder.constant(OnnxConstant((value,), (), dtype or self.dtype))

    def numbers(self, values: Sequence[float], shape: Shape) -> str:
        """A constant in the dtype of the output."""
        return self.builder.constant(OnnxConstant(tuple(values), shape, self.dtype))

    def full(self, shape: Shape, value: float) -> str:
        """A constant whose elements are all equal, in the dtype of the output."""
        return self.builder.full(shape, value, self.dtype)

    def has(self, name: str) -> bool:
        """Whether the node has a param of that name."""
        return name in self._params or name in self._given

    def param(self, name: str, shape: Shape | None = None, *, dtype: str = "") -> str:
        """A param in `shape` (default: that of its OpSpec) and `dtype` (default: the output's)."""
        if name in self._given:
            return self._param_input(name, shape, dtype or self.dtype)
        if name not in self._params:
            raise self.refuse(f"it has no param {name!r}")
        stored, wanted, param = self._params[name]
        wanted = wanted if shape is None else shape
        if elements(wanted) != param.elements:
            raise self.refuse(f"its {name} is {param.shape}, expected {wanted}")
        if self.builder.params[stored].shape != wanted:
            stored = self.reshape(stored, wanted)
        to = dtype or self.dtype
        return stored if param.dtype == to or to not in FLOATS else self.cast(stored, to)

    def _param_input(self, name: str, shape: Shape | None, dtype: str) -> str:
        """A param that is an input of the node."""
        n, own = self._given[name]
        wanted = own if shape is None else shape
        if elements(wanted) != elements(self.call.inputs[n]):
            raise self.refuse(f"its {name} is {self.call.inputs[n]}, expected {wanted}")
        taken = self.operand(n, dtype) if dtype in FLOATS else self.inputs[n]
        return taken if self.call.inputs[n] == wanted else self.reshape(taken, wanted)

    def param_or(self, name: str, shape: Shape, value: float) -> str:
        """A param, or a constant if the node has none of that name."""
        return self.param(name) if self.has(name) else self.full(shape, value)

    def broadcast_shape(self, axis: int, values: Shape) -> Shape:
        """Shape of values along the axes from `axis` on that broadcasts to the first input."""
        return (*(values or (1,)), *[1] * (self.rank - axis - max(len(values), 1)))

    def outer_input(self, part: str, shape: Shape) -> str:
        """Add a model input that the graph does not have, such as a key-value cache."""
        name = self.builder.fresh(f"{self.node.name}/{part}")
        self.builder.inputs.append(Tensor(name, shape, self.dtype))
        return name

    def refuse(self, why: str) -> CannotLower:
        """The error that names op and node."""
        return CannotLower(f"{self.builder.graph.name}: {self.node.name} ({self.node.op}): {why}")

    def finish(self, results: str | tuple[str, ...]) -> None:
        """Rename outputs and operator as in the graph, and add the operators to the model."""
        results = (results,) if isinstance(results, str) else results
        own = {name for op in self.ops for name in op.outputs}
        names: dict[str, str] = {}
        for name, wanted in zip(results, self.node.outputs, strict=True):
            if name not in own or name in names:  # an input, or the same output twice
                name = self.add("Identity", name)
            names[name] = wanted
        for op in self.ops:
            op.inputs = [names.get(name, name) for name in op.inputs]
            op.outputs = [names.get(name, name) for name in op.outputs]
            if self.node.outputs[0] in op.outputs:
                op.name = self.node.name
        self.builder.ops.extend(self.ops)


Emitter = Callable[[NodeEmitter], str | tuple[str, ...]]  # returns the names of the outputs


def plain(op: str, **attributes: str) -> Emitter:
    """Emitter for one operator on the first input."""
    return lambda node: node.add(op, node.x, **attributes)
