"""Shape inference by onnx itself, for operators without a rule here; onnx is imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layerscope.extras import installed
from layerscope.formats.onnx.dtypes import CODES, DTYPES
from layerscope.graph.types import Shape
from layerscope.limits import ARRAY_RANK

if TYPE_CHECKING:
    from layerscope.formats.onnx.node import OnnxNode

SCHEMAS = ("", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")  # onnx's own domains
# Operators whose output has as many axes as this input has elements: onnx allocates all of them.
SHAPE_INPUTS = {"Expand": 1, "Reshape": 1, "ConstantOfShape": 0}
_TYPES = {dtype: code for code, dtype in reversed(DTYPES.items())}


def infer_outputs(node: OnnxNode) -> dict[str, tuple[Shape, str]]:
    """Shapes and dtypes that onnx infers of a node's outputs; only shapes without unknown sizes."""
    if node.domain not in SCHEMAS:
        return {}
    if not installed("onnx"):
        node.reader.not_inferred.add(node.op)
        return {}
    import onnx
    from onnx import defs, helper, shape_inference

    try:
        schema = defs.get_schema(node.op, node.opset, node.domain)
    except defs.SchemaError:
        return {}
    attrs = _plain_attrs(node)
    if attrs is None or _has_many_axes(node):
        return {}
    names = node.proto.inputs
    proto = helper.make_node(node.op, names, node.outputs, domain=node.domain, **attrs)
    types, data = {}, {}
    for name, tensor in zip(names, node.inputs, strict=False):
        if tensor is None or tensor.shape is None or tensor.dtype not in _TYPES:
            continue
        code = _TYPES[tensor.dtype]
        types[name] = helper.make_tensor_type_proto(code, tensor.shape)
        value = tensor.value if tensor.dtype in CODES else None
        if value is not None:
            data[name] = helper.make_tensor(name, code, tensor.shape, list(value.values))
    opsets = [helper.make_opsetid(node.domain, node.opset)]
    try:
        found = shape_inference.infer_node_outputs(schema, proto, types, data, opset_imports=opsets)
    except (
        onnx.checker.ValidationError, shape_inference.InferenceError,
        RuntimeError, TypeError, ValueError, KeyError,
    ):  # fmt: skip
        return {}
    results: dict[str, tuple[Shape, str]] = {}
    for name, kind in found.items():
        if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            continue
        dims = kind.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shape = tuple(dim.dim_value for dim in dims)
            results[name] = (shape, DTYPES.get(kind.tensor_type.elem_type, ""))
    return results


def _has_many_axes(node: OnnxNode) -> bool:
    """Whether an output would have more axes than a tensor may have."""
    at = SHAPE_INPUTS.get(node.op)
    tensor = None if at is None or at >= len(node.inputs) else node.inputs[at]
    shape = None if tensor is None else tensor.shape
    return shape is not None and len(shape) == 1 and shape[0] > ARRAY_RANK.most


def _plain_attrs(node: OnnxNode) -> dict[str, Any] | None:
    """Attributes of a node; None if one is a tensor or a graph, which are not passed to onnx."""
    attrs: dict[str, Any] = {}
    for name, attribute in node.attributes.items():
        value = attribute.value
        if isinstance(value, (int, float, str)):
            attrs[name] = value
        elif isinstance(value, tuple) and value:
            attrs[name] = list(value)
        else:
            return None
    return attrs
