"""Nodes without figures: no rule for the operator, or a value that it needs is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Shape
from layerscope.ops import SPECS

if TYPE_CHECKING:
    from layerscope.formats.onnx.node import OnnxNode


def emit_unknown(node: OnnxNode, why: str) -> None:
    """Add a node without figures; output shapes are those that onnx infers or the file declares."""
    reader = node.reader
    outputs = [name for name in node.outputs if name]
    if not outputs:
        return
    shapes, dtypes, declared = _outputs(node, outputs)
    tensors = tuple(
        [
            reader.tensor_name(node.context.outer_names.get(name, name), node.scope)
            for name in outputs
        ]
    )
    domain = node.domain or ("ai.onnx" if node.op in SPECS else "")  # not an op of this package
    op = f"{domain}::{node.op}" if domain else node.op
    emitted = Node(
        name=node.label,
        op=op,
        inputs=tuple([reader.input_name(tensor) for tensor in node.given() if tensor.tensor]),
        outputs=tensors,
        attributes=at.Opaque(tuple(shapes), tuple(dtypes), tuple(declared), why),
        params=(),
        scope=node.scope,
        source=reader.source(node.op, node.proto.name if node.proto.name != node.label else ""),
    )
    reader.append(emitted, [*zip(shapes, dtypes, strict=True)])
    cause = ""
    for name, tensor, shape, dtype in zip(outputs, tensors, shapes, dtypes, strict=True):
        node.env[name] = TensorInfo(tensor, shape, dtype)
        if shape is None:
            cause = cause or _cause(node, why or f"no rule for op {op}")
            reader.trace.causes[tensor] = cause
    for tensor, shape, said in zip(tensors, shapes, declared, strict=True):
        if said and shape is not None:
            reader.declared[tensor] = f"{tensor}, {'x'.join(map(str, shape)) or 'scalar'}"


def _outputs(
    node: OnnxNode, outputs: list[str]
) -> tuple[list[Shape | None], list[str], list[bool]]:
    """Shapes and dtypes of outputs, and whether a shape depends on a declared one."""
    reader = node.reader
    shapes: list[Shape | None] = []
    dtypes: list[str] = []
    declared: list[bool] = []
    found: dict[str, tuple[Shape, str]] = {}
    if not node.unknown_shape:
        from layerscope.formats.onnx.onnx_inference import infer_outputs

        found = infer_outputs(node)
        if found:
            reader.inferred_by_onnx.add(node.op)
    reads_declared = any(tensor.name in reader.declared for tensor in node.given())
    for name in outputs:
        shape, dtype = node.declared(name)
        if name in found:
            shape, dtype = found[name]
            value = node.context.values.get(name)
            if value is not None and reader.trusts_declared:
                node.compare(name, value, shape)
        shapes.append(shape)
        dtypes.append(dtype)
        declared.append(shape is not None and (reads_declared or name not in found))
    return shapes, dtypes, declared


def _cause(node: OnnxNode, why: str) -> str:
    """The node that an unknown shape goes back to: this one, or one that an input depends on."""
    causes = node.reader.trace.causes
    for tensor in node.given():
        if tensor.shape is None and tensor.name in causes:
            return causes[tensor.name]
    return f"{node.label} ({node.op}): {why}"
