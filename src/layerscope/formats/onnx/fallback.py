"""Shapes from onnx itself, for operators without a rule here; imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layerscope.formats.onnx.numbers import CODES, DTYPES
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from layerscope.formats.onnx.site import Site

MOST_TEXT = 1 << 20  # of a node that is handed to onnx: its tensors stay behind

SCHEMAS = ("", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")  # onnx's own
_TYPES = {dtype: code for code, dtype in reversed(DTYPES.items())}


def inferred(s: Site) -> dict[str, tuple[Shape, str]]:
    """What onnx infers of an operator's outputs: only shapes that are known to the last axis."""
    import importlib.util

    if s.operator.domain not in SCHEMAS or importlib.util.find_spec("onnx") is None:
        return {}
    import onnx
    from onnx import defs, helper, shape_inference

    try:
        schema = defs.get_schema(s.op, s.opset, s.operator.domain)
    except defs.SchemaError:
        return {}
    told: dict[str, Any] = {}
    for name, attribute in s.attributes.items():
        if isinstance(attribute.value, (int, float, str)):
            told[name] = attribute.value
        elif isinstance(attribute.value, tuple) and attribute.value:
            told[name] = list(attribute.value)
        else:
            return {}  # tensors and graphs are not handed on
    node = helper.make_node(
        s.op, s.operator.inputs, s.operator.outputs, domain=s.operator.domain, **told
    )
    types, data = {}, {}
    for name, known in zip(s.operator.inputs, s.inputs, strict=False):
        if known is None or known.shape is None or known.dtype not in _TYPES:
            continue
        kind = helper.make_tensor_type_proto(_TYPES[known.dtype], known.shape)
        types[name] = kind
        value = known.value if known.dtype in CODES else None
        if value is not None:
            data[name] = helper.make_tensor(
                name, _TYPES[known.dtype], known.shape, list(value.values)
            )
    try:
        found = shape_inference.infer_node_outputs(
            schema,
            node,
            types,
            data,
            opset_imports=[helper.make_opsetid(s.operator.domain, s.opset)],
        )
    except (
        onnx.checker.ValidationError, shape_inference.InferenceError,
        RuntimeError, TypeError, ValueError, KeyError,
    ):  # fmt: skip
        return {}  # what onnx cannot tell stays unknown
    made: dict[str, tuple[Shape, str]] = {}
    for name, kind in found.items():
        if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            continue
        dims = kind.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shape = tuple(dim.dim_value for dim in dims)
            made[name] = (shape, DTYPES.get(kind.tensor_type.elem_type, ""))
    return made
