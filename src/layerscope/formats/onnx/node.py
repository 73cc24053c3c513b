"""The node that is being converted, and how it emits nodes; converters with their input names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, Unpack

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.onnx.node_view import EstimateOptions, InputNames, NodeView
from layerscope.formats.onnx.skim import ValueInfo
from layerscope.formats.onnx.tensor_info import NeedsValue, TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Param, Role, Shape
from layerscope.ops import SPECS
from layerscope.ops.calls import infer_call
from layerscope.ops.spec import out_dtype


class EmitOptions(EstimateOptions, total=False):
    """Options of `OnnxNode.emit`."""

    params: Sequence[Param]
    part: str
    roles: Role
    outputs: Sequence[str] | None


class OnnxNode(NodeView):
    """A node of an ONNX graph, with methods that emit the nodes it becomes."""

    __slots__ = ()

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
        if attributes is not None:
            attributes = reader.intern(attributes)
        names: list[str] = []
        given: list[tuple[Shape, str]] = []
        for tensor in inputs:
            shape = tensor.shape
            if tensor.initializer is None:
                names.append(tensor.name)
            else:
                names.append(reader.input_name(tensor, roles))
            if shape is None:
                raise NeedsValue(reader.trace.shape(tensor.name))
            given.append((shape, tensor.dtype))
        key = (op, id(attributes), *given)
        inferred = reader.inferred.get(key)
        if inferred is None:
            inferred = reader.inferred[key] = self._infer(op, attributes, given)
        scope, label = self.scope, self.label
        wanted: Sequence[str] = self.outputs
        if outputs is not None or part:
            wanted = outputs or ()
            if part:
                scope, label = self.inner_scope, reader.node_name(f"{label}/{part}")
        outer_names, values = self.context.outer_names, self.context.values
        results: list[TensorInfo] = []
        own_names: list[str] = []
        for n, (shape, dtype) in enumerate(inferred):
            name = wanted[n] if n < len(wanted) else ""
            own = name or (label if part and len(inferred) == 1 else f"{label}:{n}")
            own = reader.tensor_name(outer_names.get(own, own) if outer_names else own, self.scope)
            tensor = TensorInfo(own, shape, dtype)
            results.append(tensor)
            own_names.append(own)
            if name:
                self.env[name] = tensor
                value = values.get(name)
                if value is not None and reader.trusts_declared:
                    self.compare(name, value, shape)
        original = self.proto.name
        source = reader.source(self.op, "" if original == label else original)
        emitted = Node(
            label, op, tuple(names), tuple(own_names), attributes, tuple(params), scope, "", None,
            source, 1, note, estimate, bool(part) and outputs is None,
        )  # positional: keywords take twice as long  # fmt: skip
        if reader.declared or self.from_declared:
            read = [tensor.name for tensor in self.inputs if tensor is not None]
            reader.append(emitted, inferred, read)
            if self.from_declared:
                reader.declared.update(dict.fromkeys(own_names, self.from_declared))
        else:
            reader.append(emitted, inferred)
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
        self, op: str, attributes: Struct | None, given: Sequence[tuple[Shape, str]]
    ) -> list[tuple[Shape, str]]:
        """Output shapes and dtypes by the op's rule.

        Calls are cached in `ops.calls`, where the analysis of the graph finds them afterwards.
        """
        out_shapes = infer_call(op, attributes, tuple([shape for shape, _ in given])).outputs
        rules, floating = SPECS[op].out_dtypes, self.reader.dtype
        dtypes = [dtype for _, dtype in given]
        return [
            (shape, out_dtype(rules, n, attributes, dtypes, floating))
            for n, shape in enumerate(out_shapes)
        ]

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


Convert = Callable[[OnnxNode], None]


class Converter(InputNames):
    """A converter, and the names of the operator's inputs."""

    __slots__ = ("convert",)

    def __init__(self, convert: Convert, inputs: str = "") -> None:
        super().__init__(inputs)
        self.convert = convert


ConverterTable: TypeAlias = dict[tuple[str, str], Converter]  # by domain and operator
