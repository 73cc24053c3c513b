"""The node that is being converted: its inputs by name, its attributes, and how to emit nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.attr_cache import ParsedAttrs
from layerscope.formats.onnx.skim import (
    AttributeProto,
    GraphProto,
    NodeProto,
    ValueInfo,
    graph_of,
)
from layerscope.formats.onnx.tensor_info import Env, NeedsValue, TensorInfo
from layerscope.formats.onnx.tensors import Span, StoredTensor
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Param, Role, Shape, elements
from layerscope.ops import SPECS
from layerscope.ops.calls import infer_call
from layerscope.ops.spec import out_dtype

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


class EmitOptions(EstimateOptions, total=False):
    """Options of `OnnxNode.emit`."""

    params: Sequence[Param]
    part: str
    roles: Role
    outputs: Sequence[str] | None


class OnnxNode:
    """A node of an ONNX graph: inputs, attributes, and methods that emit the nodes it becomes.

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
        self.schema = NO_INPUTS
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
            if tensor is None:
                raise FormatError(
                    f"{reader.file}: {proto.name or proto.op} reads {name!r}, which no node before "
                    "it computes: the nodes are not sorted, form a cycle, or some are missing"
                )
            inputs.append(tensor)
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
            prefix = "/".join(self.scope) + "/" if self.scope and self.context.depth else ""
            name = self.own_name
            self._label = self.reader.node_name(
                name if name.startswith(prefix) else f"{prefix}{name}"
            )
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
        n = which if isinstance(which, int) else self.schema.index.get(which, len(self.inputs))
        return n < len(self.inputs) and self.inputs[n] is not None

    def input(self, which: InputId = 0) -> TensorInfo:
        """An input that must be given."""
        n = which if isinstance(which, int) else self.index(which)
        tensor = self.inputs[n] if n < len(self.inputs) else None
        if tensor is None:
            named = self.schema.inputs[n] if n < len(self.schema.inputs) else n
            raise FormatError(f"{self.where}: input {named!r} is missing")
        return tensor

    def optional(self, which: InputId) -> TensorInfo | None:
        """An input, or None if it is not given."""
        return self.input(which) if self.has(which) else None

    def given(self, *which: InputId) -> list[TensorInfo]:
        """Those of these inputs that are given; without names, all that are."""
        if not which:
            return [tensor for tensor in self.inputs if tensor is not None]
        return [self.input(each) for each in which if self.has(each)]

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
        return self.has(which) and self.input(which).initializer is not None

    def param(self, which: InputId, name: str, role: Role) -> Param:
        """A stored input as a parameter of the node."""
        return self.reader.own_param(self.input(which), name, role)

    def mark_constant(self, *which: InputId) -> None:
        """Count stored inputs as settings, neither parameters nor buffers."""
        for each in which:
            self.reader.mark_constant(self.optional(each))

    # -- emitting nodes ------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        inputs: Sequence[TensorInfo],
        attributes: Struct | None = None,
        *,
        params: Sequence[Param] = (),
        part: str = "",
        roles: Role = "weight",
        outputs: Sequence[str] | None = None,
        estimate: bool = False,
        note: str = "",
    ) -> list[TensorInfo]:
        """Add a node to the imported graph and return its outputs.

        Without `part` its outputs are those of the ONNX node; with `part`, a name inside the scope
        of the ONNX node, they are intermediate, except those that `outputs` names. `roles` is the
        role of stored arrays among the inputs.
        """
        reader = self.reader
        attributes = reader.intern(attributes)
        names: list[str] = []
        shapes: list[Shape] = []
        dtypes: list[str] = []
        for tensor in inputs:
            stored = tensor.initializer is not None
            names.append(reader.input_name(tensor, roles) if stored else tensor.name)
            if tensor.shape is None:
                raise NeedsValue(reader.trace.shape(tensor.name))
            shapes.append(tensor.shape)
            dtypes.append(tensor.dtype)
        out_shapes, out_dtypes = self._infer(op, attributes, tuple(shapes), dtypes)
        if part:
            scope = self.inner_scope
            label = reader.node_name(f"{self.label}/{part}")
        else:
            scope, label = self.scope, self.label
        wanted: Sequence[str] = self.outputs
        if outputs is not None or part:
            wanted = outputs or ()
        outer_names, values = self.context.outer_names, self.context.values
        results: list[TensorInfo] = []
        for n, shape in enumerate(out_shapes):
            name = wanted[n] if n < len(wanted) else ""
            own = name or (label if part and len(out_shapes) == 1 else f"{label}:{n}")
            found = reader.tensor_name(outer_names.get(own, own), self.scope)
            tensor = TensorInfo(found, shape, out_dtypes[n])
            results.append(tensor)
            if name:
                self.env[name] = tensor
                value = values.get(name)
                if value is not None and reader.trusts_declared:
                    self.compare(name, value, shape)
        original = self.proto.name
        source = reader.source(self.op, "" if original == label else original)
        emitted = Node(
            name=label,
            op=op,
            inputs=tuple(names),
            outputs=tuple([tensor.name for tensor in results]),
            attributes=attributes,
            params=tuple(params),
            scope=scope,
            source=source,
            note=note,
            estimate=estimate,
            inner=bool(part) and outputs is None,
        )
        if reader.declared:
            read = [tensor.name for tensor in self.inputs if tensor is not None]
            reader.append(emitted, out_shapes, out_dtypes, read)
        else:
            reader.append(emitted, out_shapes, out_dtypes)
        if self.from_declared:
            for tensor in results:
                reader.declared[tensor.name] = self.from_declared
        return results

    def compare(self, name: str, value: ValueInfo, shape: Shape) -> None:
        """Note a declared shape that differs from the inferred one."""
        dims = value.dims
        if dims is None:
            return
        if len(dims) != len(shape) or any(
            dim.size is not None and dim.size != size for dim, size in zip(dims, shape, strict=True)
        ):
            said = [dim.name or "?" if dim.size is None else dim.size for dim in dims]
            self.reader.contradict(name, said, shape)

    def _infer(
        self, op: str, attributes: Struct | None, shapes: tuple[Shape, ...], dtypes: list[str]
    ) -> tuple[tuple[Shape, ...], list[str]]:
        """Output shapes and dtypes by the op's rule.

        Calls are cached in `ops.calls`, where the analysis of the graph finds them afterwards.
        """
        out_shapes = infer_call(op, attributes, shapes).outputs
        rules, floating = SPECS[op].out_dtypes, self.reader.dtype
        out_dtypes = [
            out_dtype(rules, n, attributes, dtypes, floating) for n in range(len(out_shapes))
        ]
        return out_shapes, out_dtypes

    def emit_shaped(
        self,
        op: str,
        inputs: Sequence[TensorInfo],
        shapes: Sequence[Shape],
        dtypes: Sequence[str],
        **options: Unpack[EmitOptions],
    ) -> list[TensorInfo]:
        """Add a node whose output shapes and dtypes the converter computed; options of `emit`."""
        return self.emit(op, inputs, at.DeclaredOutputs(tuple(shapes), tuple(dtypes)), **options)

    def emit_custom(
        self,
        inputs: Sequence[TensorInfo],
        cost: at.CustomCost,
        *,
        shapes: bool = True,
        **options: Unpack[EmitOptions],
    ) -> list[TensorInfo]:
        """Add a node whose output shapes and operations the converter computed.

        Without `shapes`, inputs of unknown shape are left out. Other options are those of `emit`.
        """
        if "outputs" not in options and "part" not in options:  # outputs without a name are unused
            count = max(len(self.outputs), 1)
            cost = replace(cost, shapes=cost.shapes[:count], dtypes=cost.dtypes[:count])
        read = [tensor for tensor in inputs if shapes or tensor.shape is not None]
        return self.emit("custom", read, cost, **options)

    def alias(self, tensor: TensorInfo, n: int = 0) -> None:
        """Make the n-th output a copy of a tensor."""
        self.emit("identity", (tensor,), outputs=self.outputs[n : n + 1])

    def extra_output(self, n: int, shape: Shape, dtype: str) -> None:
        """Add the n-th output, which costs nothing, if it is used."""
        names = self.outputs
        if n < len(names) and names[n]:
            attrs = at.DeclaredOutputs((shape,), (dtype,))
            part = f"output{n}"
            self.emit("constant", (), attrs, part=part, outputs=names[n : n + 1])

    def emit_unknown(self, why: str = "") -> None:
        """Add a node without figures, and the reason; "" if there is no rule for the operator."""
        from layerscope.formats.onnx.unknown_ops import emit_unknown

        emit_unknown(self, why)

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


Convert = Callable[[OnnxNode], None]


class Converter:
    """A converter, and the names of the operator's inputs in the order of its schema.

    The names are those of the latest version of the operator, as its documentation has them.
    The last one of a variadic operator names all further inputs.
    """

    __slots__ = ("convert", "index", "inputs")

    def __init__(self, convert: Convert, inputs: str = "") -> None:
        self.convert = convert
        self.inputs, self.index = _names(inputs)

    def name(self, n: int) -> str:
        """The n-th input as messages name it."""
        return self.inputs[n] if n < len(self.inputs) else f"input {n}"


@cache
def _names(inputs: str) -> tuple[tuple[str, ...], Mapping[str, int]]:
    names = tuple(inputs.split())
    return names, {name: n for n, name in enumerate(names)}


NO_INPUTS = Converter(OnnxNode.emit_unknown)  # of operators without a converter
ConverterTable: TypeAlias = dict[tuple[str, str], Converter]  # by domain and operator
