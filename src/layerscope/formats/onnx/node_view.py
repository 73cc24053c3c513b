"""A node of an ONNX graph as converters read it: names, attributes, inputs, declared shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.attr_cache import ParsedAttrs
from layerscope.formats.onnx.skim import AttributeProto, GraphProto, NodeProto, ValueInfo, graph_of
from layerscope.formats.onnx.tensor_info import Env, NeedsValue, TensorInfo
from layerscope.formats.onnx.tensors import Span, StoredTensor
from layerscope.graph.types import Param, Role, Shape, elements

if TYPE_CHECKING:
    from layerscope.formats.onnx.reader import Reader

MOST_DEPTH = 40  # of nested subgraphs
LAST_OPSET = 26
InputId: TypeAlias = str | int  # an input by the schema's name, or by index


class GraphContext(Struct, frozen=True):
    """What all nodes of a graph, a function body or a subgraph share while they are walked."""

    env: Env  # tensors by name; takes the outputs of every node
    opsets: dict[str, int]
    scope: tuple[str, ...] = ()
    function_attrs: Mapping[str, AttributeProto] = {}  # of the call of the function around
    values: Mapping[str, ValueInfo] = {}  # declared types and shapes
    depth: int = 0
    outer_names: Mapping[str, str] = {}  # outputs of a function body -> their names outside


class EstimateOptions(TypedDict, total=False):
    """Options of `OnnxNode.emit` for a node whose figures are an estimate."""

    estimate: bool
    note: str


class Unsorted(FormatError):
    """A node reads a tensor that no node before it computes."""


class InputNames:
    """Names of an operator's inputs in the order of its schema, with their indices.

    The names are those of the latest version of the operator, as its documentation has them.
    The last one of a variadic operator names all further inputs.
    """

    __slots__ = ("index", "inputs")

    def __init__(self, inputs: str = "") -> None:
        self.inputs, self.index = _names(inputs)

    def name(self, n: int) -> str:
        """The n-th input as messages name it."""
        return self.inputs[n] if n < len(self.inputs) else f"input {n}"


@cache
def _names(inputs: str) -> tuple[tuple[str, ...], Mapping[str, int]]:
    names = tuple(inputs.split())
    return names, {name: n for n, name in enumerate(names)}


NO_INPUTS = InputNames()  # of operators without a converter


class NodeView:
    """Inputs and attributes of a node of an ONNX graph, and the shapes that its file declares.

    Inputs are named as in the operator's schema, as its `Converter` lists them: `node.input("W")`,
    `node.has("B")`. An index is for converters of many operators; the default is the first input.
    """

    __slots__ = (
        "_label", "_parsed", "all_constant", "context", "domain", "env", "from_declared", "inputs",
        "op", "outputs", "proto", "reader", "schema", "scope", "unknown_shape",
    )  # fmt: skip

    def __init__(
        self, reader: Reader, proto: NodeProto, context: GraphContext, scope: tuple[str, ...]
    ) -> None:
        self.reader, self.proto, self.context, self.scope = reader, proto, context, scope
        self.op, self.domain, self.outputs = proto.op, proto.domain, proto.outputs
        self.schema: InputNames = NO_INPUTS
        self._parsed: ParsedAttrs | None = None
        self.from_declared = ""  # the declared shape that its outputs depend on
        self._label = ""
        inputs: list[TensorInfo | None] = []
        self.unknown_shape = False  # the shape of an input is unknown
        self.all_constant = True  # no input depends on graph inputs
        env = self.env = context.env
        for name in proto.inputs:
            if not name:
                inputs.append(None)
                continue
            tensor = env.get(name)
            inputs.append(tensor)
            if tensor is None:
                raise Unsorted(
                    f"{reader.file}: {proto.name or proto.op} reads {name!r}, which no node before "
                    "it computes: the nodes are not sorted, form a cycle, or some are missing"
                )
            if tensor.shape is None:
                self.unknown_shape = True
            if tensor.initializer is None and tensor.lazy_value is None:
                self.all_constant = False
        while inputs and inputs[-1] is None:
            inputs.pop()
        self.inputs = inputs

    # -- names ---------------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        """Opset version of its domain."""
        return self.context.opsets.get(self.domain, 1 if self.domain else LAST_OPSET)

    @property
    def where(self) -> str:
        """File, node and operator, for errors."""
        return f"{self.reader.file}: {self.own_name} ({self.op})"

    @property
    def own_name(self) -> str:
        """Its name in the file, else that of its first output."""
        named = self.proto.name.strip("/")
        return named or next((name for name in self.outputs if name), self.op)

    @property
    def label(self) -> str:
        """Its unique name in the imported graph."""
        if not self._label:
            name = self.proto.name.strip("/") or self.own_name
            if self.scope and self.context.depth:
                prefix = "/".join(self.scope) + "/"
                name = name if name.startswith(prefix) else f"{prefix}{name}"
            self._label = self.reader.node_name(name)
        return self._label

    @property
    def inner_scope(self) -> tuple[str, ...]:
        """The scope of the nodes it becomes, where they are several."""
        label, path = self.label, "/".join(self.scope) + "/"
        return (*self.scope, label[len(path) :] if label.startswith(path) else label)

    # -- attributes ----------------------------------------------------------------------------

    @property
    def parsed(self) -> ParsedAttrs:
        """Its attributes, parsed on first use."""
        if self._parsed is None:
            cache = self.reader.attr_cache
            self._parsed = cache.parse(self.proto.attributes, self.context.function_attrs)
        return self._parsed

    @property
    def attributes(self) -> dict[str, AttributeProto]:
        """Its attributes by name."""
        return self.parsed.attributes

    @property
    def attrs(self) -> dict[str, Any]:
        """Values of its attributes; small tensors as arrays, large ones as None."""
        return self.parsed.attrs

    def graph(self, name: str) -> GraphProto:
        """The graph in an attribute."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.graph is None:
            raise FormatError(f"{self.where}: no graph {name!r} in it")
        span: Span = attribute.graph
        if self.context.depth >= MOST_DEPTH:
            raise FormatError(f"{self.reader.file}: graphs nested more than {MOST_DEPTH} deep")
        return graph_of(self.reader.wire, *span)

    def int_attr(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        value = self.attrs.get(name)
        return default if value is None else int(value)

    def ints_attr(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self.attrs.get(name)
        return tuple(default) if value is None else tuple(map(int, value))

    def float_attr(self, name: str, default: float = 0.0) -> float:
        """A float attribute."""
        value = self.attrs.get(name)
        return default if value is None else float(value)

    def str_attr(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value = self.attrs.get(name)
        return value if isinstance(value, str) else default

    def attr_length(self, name: str) -> int:
        """Number of elements of an attribute, also of one that is too long to be read."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return 0
        if isinstance(attribute.value, StoredTensor):
            return elements(attribute.value.shape)
        return attribute.count

    # -- inputs --------------------------------------------------------------------------------

    def index(self, which: InputId) -> int:
        """The index of an input."""
        if isinstance(which, int):
            return which
        n = self.schema.index.get(which)
        if n is None:  # a mistake in a converter
            raise RuntimeError(f"{self.op} has no input {which!r}: {', '.join(self.schema.inputs)}")
        return n

    def has(self, which: InputId) -> bool:
        """Whether an input is given; False for one that only other operators have."""
        return self.optional(which) is not None

    def input(self, which: InputId = 0) -> TensorInfo:
        """An input that must be given."""
        n = which if isinstance(which, int) else self.index(which)
        tensor = self.inputs[n] if n < len(self.inputs) else None
        if tensor is None:
            named = self.schema.inputs[n] if n < len(self.schema.inputs) else n
            raise FormatError(f"{self.where}: input {named!r} is missing")
        return tensor

    def optional(self, which: InputId) -> TensorInfo | None:
        """An input, or None if it is not given or only other operators have it."""
        inputs = self.inputs
        n = which if isinstance(which, int) else self.schema.index.get(which, len(inputs))
        return inputs[n] if n < len(inputs) else None

    def given(self, *which: InputId) -> list[TensorInfo]:
        """Those of these inputs that are given; without names, all that are."""
        if not which:
            return [tensor for tensor in self.inputs if tensor is not None]
        return [tensor for each in which if (tensor := self.optional(each)) is not None]

    def shape(self, which: InputId = 0) -> Shape:
        """Shape of an input."""
        tensor = self.input(which)
        if tensor.shape is None:
            raise NeedsValue(self.reader.trace.shape(tensor.name))
        return tensor.shape

    def dtype(self, which: InputId = 0) -> str:
        """Dtype of an input."""
        return self.input(which).dtype

    def value(self, which: InputId) -> SmallArray | None:
        """Value of a constant input, which then counts as a setting, not as a parameter."""
        tensor = self.optional(which)
        self.reader.mark_constant(tensor)
        return tensor.value if tensor is not None else None

    def need_value(self, which: InputId) -> SmallArray:
        """Value of an input that decides the output shape; raises NeedsValue if it is unknown."""
        value = self.value(which)
        if value is None:
            raise NeedsValue(self.unknown_value(which))
        return value

    def unknown_value(self, which: InputId) -> str:
        """Why the value of an input is unknown, and where it would come from."""
        formal = self.schema.name(self.index(which))
        tensor = self.optional(which)
        if tensor is None:
            return f"{formal} is missing"
        if tensor.initializer is not None:
            many = f"{elements(tensor.initializer.shape):,} numbers or in another file"
            return f"{formal} is not read: {tensor.name!r} is stored with {many}"
        return self.reader.trace.value(tensor.name, formal, self.reader.params)

    def stored(self, which: InputId) -> bool:
        """Whether an input is an array of the file."""
        tensor = self.optional(which)
        return tensor is not None and tensor.initializer is not None

    def param(self, which: InputId, name: str, role: Role) -> Param:
        """A stored input as a parameter of the node."""
        return self.reader.own_param(self.input(which), name, role)

    def mark_constant(self, *which: InputId) -> None:
        """Count stored inputs as settings, neither parameters nor buffers."""
        for each in which:
            self.reader.mark_constant(self.optional(each))

    # -- declared shapes -----------------------------------------------------------------------

    def declared_output(self, n: int) -> Shape | None:
        """The shape that the file declares of the n-th output, if it applies."""
        names = self.outputs
        return self.declared(names[n])[0] if n < len(names) and names[n] else None

    def declared_dtype(self, n: int) -> str:
        """The dtype that the file declares of the n-th output, else that of the first input."""
        return self.declared(self.outputs[n])[1]

    def declared_options(self, n: int) -> EstimateOptions:
        """Options of `emit` for a node whose shapes the file declares: it is an estimate."""
        names = [name for name in self.outputs if name]
        shape = self.declared_output(n)
        root = f"{names[n]}, {'x'.join(map(str, shape or ())) or 'scalar'}"
        self.from_declared = root
        return {"estimate": True, "note": f"from the declared shape of {root}"}

    def declared(self, name: str) -> tuple[Shape | None, str]:
        """Declared shape and dtype of a tensor; no shape if graph inputs differ from declared."""
        value = self.context.values.get(name)
        dtype = value.dtype if value is not None else ""
        if not dtype:
            dtype = next((tensor.dtype for tensor in self.inputs if tensor is not None), "fp32")
        binding = self.reader.binding if self.reader.trusts_declared else None
        return (binding.declared(value) if value is not None and binding else None), dtype
