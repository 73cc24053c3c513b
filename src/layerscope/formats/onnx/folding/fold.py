"""Constant folding: nodes whose outputs depend only on shapes and constants."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.arrays import Evaluate, NotFoldable, SmallArray
from layerscope.formats.onnx.dtypes import FLOATS
from layerscope.formats.onnx.folding import EVALUATE, WITH_CONTEXT
from layerscope.formats.onnx.node import OnnxNode
from layerscope.formats.onnx.tensor_info import ROLES, Initializer, NeedsValue, TensorInfo
from layerscope.formats.onnx.tensors import StoredTensor, role_in
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Shape, elements

FEW = 8  # floats of a stored array that counts as a constant of arithmetic, not as a parameter
# Operators for which this limit applies. An array of others is a parameter if it has more than one
# float, such as that of a Relu on the weights of a weighted sum.
ARITHMETIC = frozenset((
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Sum", "Max", "Min", "Neg", "Abs", "Floor", "Ceil",
    "Round", "Sqrt", "Reciprocal", "Sign", "Exp", "Log", "Equal", "Greater", "Less", "Where",
    "GreaterOrEqual", "LessOrEqual", "Identity", "Cast", "CastLike", "Gather", "Concat", "Slice",
    "Split", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile", "Pad",
    "Range", "ScatterND", "ScatterElements", "NonZero", "CumSum", "ReduceProd", "ReduceSum",
    "ReduceMax", "ReduceMin", "ReduceMean",
))  # fmt: skip

# Operators that do not change values, so that their output of a weight is still that weight.
KEEP_NUMBERS = (
    "Identity", "Cast", "CastLike", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
    "DequantizeLinear",
)  # fmt: skip


SHAPE_OPERATORS = ("Shape", "Size")  # of a tensor, constant or not


def constant(node: OnnxNode) -> None:
    """Add the value of a Constant node, in whichever attribute it is."""
    name = next((name for name in node.outputs if name), "")
    if not name:
        return
    reader = node.reader
    for key, attribute in node.attributes.items():
        value = attribute.value
        if isinstance(value, StoredTensor):
            tensor = node.env[name] = reader.store(name, value, node.scope, _metadata_role(node))
            if tensor.initializer is not None:
                tensor.initializer.from_constant_node = True
            return
        if key in ("value_int", "value_ints"):
            array = _literal(value, "int64")
        elif key in ("value_float", "value_floats"):
            array = _literal(value, "fp32")
        else:
            array = SmallArray(() if isinstance(value, str) else (len(value or ()),), [], "string")
            stored = reader.store_literal(name, array, node.scope)
            node.env[name] = TensorInfo(stored.name, array.shape, "string")
            return
        node.env[name] = reader.store_literal(name, array, node.scope)
        return
    raise FormatError(f"{node.where}: a constant without a value")


def fold(node: OnnxNode) -> bool:
    """Whether a node was folded: its outputs depend only on shapes and constants."""
    op, inputs = node.op, node.inputs
    if node.domain:
        return (node.domain, op) == ("com.microsoft", "DequantizeLinear") and _fold_dequantize(node)
    if op in SHAPE_OPERATORS:
        return _fold_shape(node)
    if not inputs or not node.all_constant:
        return False
    first = inputs[0]
    if op == "ConstantOfShape":
        return _filled(node)
    if op in KEEP_NUMBERS and first is not None and first.initializer is not None:
        return _derive(node, first)
    evaluate = EVALUATE.get(op)
    return evaluate is not None and _evaluate(node, evaluate)


def _fold_dequantize(node: OnnxNode) -> bool:
    first = node.inputs[0] if node.inputs else None
    if first is None or first.initializer is None:
        return False
    return all(tensor.constant for tensor in node.given()) and _derive(node, first)


def _fold_shape(node: OnnxNode) -> bool:
    """Shape and Size."""
    first = node.inputs[0] if node.inputs else None
    shape = first.shape if first is not None else None
    if shape is None:
        return False
    if node.op == "Size":
        array = SmallArray((), [elements(shape)], "int64")
    else:
        cut = shape[node.int_attr("start") : node.attrs.get("end", len(shape))]
        array = SmallArray((len(cut),), list(cut), "int64")
    emit_constants(node, [array])
    return True


def _evaluate(node: OnnxNode, evaluate: Evaluate) -> bool:
    """Compute the outputs from small constant inputs, unless one of them is a parameter."""
    few = FEW if node.op in ARITHMETIC else 1
    if any(_learned(node, tensor, few) for tensor in node.inputs):
        return False
    arrays: list[SmallArray | None] = []
    count = 8
    for tensor in node.inputs:
        value = None
        if tensor is not None:
            value = tensor.value
            if value is None:
                return False
            count += len(value.values)
        arrays.append(value)
    attrs = node.attrs
    if node.op in WITH_CONTEXT:
        attrs = {**attrs, "outputs": len(node.outputs), "opset": node.opset}
    reader = node.reader
    reader.value_budget -= count
    if reader.value_budget < 0:
        return False
    try:
        results = evaluate(attrs, arrays)
    except NotFoldable:
        return False
    del results[len(node.outputs) :]
    reader.value_budget -= sum([len(array.values) for array in results])
    for tensor in node.inputs:
        reader.mark_constant(tensor)
    emit_constants(node, results)
    return True


def emit_constants(node: OnnxNode, arrays: Sequence[SmallArray]) -> None:
    """Add a constant node whose outputs have these values."""
    attrs = at.DeclaredOutputs(tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))
    for tensor, array in zip(node.emit("constant", (), attrs), arrays, strict=True):
        tensor.lazy_value = array


def _metadata_role(node: OnnxNode) -> str:
    spans = node.proto.metadata
    return role_in(node.reader.wire, spans) if spans else ""


def _filled(node: OnnxNode) -> bool:
    """ConstantOfShape: an initializer if its shape is stored, else a constant."""
    sizes = node.input()
    value_of_sizes = sizes.value
    if value_of_sizes is None:
        return False
    reader = node.reader
    reader.mark_constant(sizes)
    value: SmallArray | None = node.attrs.get("value")
    dtype = value.dtype if value is not None else "fp32"
    fill = value.values[0] if value is not None and value.values else 0.0
    shape = value_of_sizes.ints()
    if any(size < 0 for size in shape):
        raise ShapeError(f"a shape of {shape}")
    name = node.outputs[0]

    def numbers() -> SmallArray | None:
        try:
            return EVALUATE["ConstantOfShape"]({"value": value}, [value_of_sizes])[0]
        except NotFoldable:
            return None

    role = _metadata_role(node)
    if sizes.initializer is None or (dtype not in FLOATS and not role):  # the shape is computed
        node.emit_shaped("constant", (), (shape,), (dtype,))[0].lazy_value = numbers
        return True
    entry = Initializer(reader.tensor_name(name, node.scope), shape, dtype, None, ROLES.get(role))
    entry.fill = fill
    reader.initializers.append(entry)
    reader.tensors[entry.name] = (shape, dtype)
    node.env[name] = TensorInfo(entry.name, shape, dtype, numbers, entry)
    return True


def _derive(node: OnnxNode, first: TensorInfo) -> bool:
    """A stored array in another shape or dtype: still the same array, at no cost."""
    try:
        shape, dtype = _derived_shape(node)
    except NeedsValue:
        return False
    params = _scales(node)
    tensor = node.emit_shaped("constant", (), (shape,), (dtype,), params=params)[0]
    reader = node.reader
    for other in node.inputs[1:]:
        reader.mark_constant(other)
    tensor.initializer = first.initializer
    assert first.initializer is not None
    reader.derived[tensor.name] = first.initializer
    if node.op == "Identity":
        reader.renamed.append((tensor.name, first.initializer))
    evaluate = EVALUATE.get(node.op)
    if evaluate is not None:
        inputs, attrs = node.inputs, node.attrs

        def value() -> SmallArray | None:
            arrays = [None if each is None else each.value for each in inputs]
            if any(
                each is not None and array is None
                for each, array in zip(inputs, arrays, strict=True)
            ):
                return None
            try:
                return evaluate(attrs, arrays)[0]
            except NotFoldable:
                return None

        tensor.lazy_value = value
    return True


def _derived_shape(node: OnnxNode) -> tuple[Shape, str]:
    from layerscope.formats.onnx.converters.layout import moved_shape

    if node.op == "DequantizeLinear":
        stored = node.input("x").initializer
        if stored is not None:
            stored.quantized = True
        return node.shape("x"), node.dtype("x_scale")
    return moved_shape(node)


def _scales(node: OnnxNode) -> list[Param]:
    """Scale and zero point of a stored quantized array, which are buffers."""
    if node.op != "DequantizeLinear":
        return []
    names = ("scale", "zero_point")
    return [
        node.param(f"x_{name}", name, "statistic") for name in names if node.stored(f"x_{name}")
    ]


def _literal(value: float | tuple[float, ...], dtype: str) -> SmallArray:
    if isinstance(value, tuple):
        return SmallArray((len(value),), list(value), dtype)
    return SmallArray((), [value], dtype)


def _learned(node: OnnxNode, tensor: TensorInfo | None, few: int) -> bool:
    """Whether an array is a parameter: the file says so, or it has more than `few` floats."""
    if tensor is None or tensor.initializer is None or tensor.dtype not in FLOATS:
        return False
    entry = tensor.initializer
    verdicts = node.reader.exporter.verdicts
    return elements(entry.shape) > few or verdicts.get(entry.name) == "learned"
