"""Nodes without figures: an operator without a rule, or of which a value is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.formats.onnx.known import Known
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Shape
from layerscope.ops import SPECS

if TYPE_CHECKING:
    from layerscope.formats.onnx.site import Site


def emit_unknown(s: Site, why: str) -> None:
    """An operator without figures: its outputs as far as the file or onnx tells them."""
    reader, operator = s.reader, s.operator
    outputs = [name for name in operator.outputs if name]
    if not outputs:
        return
    shapes: list[Shape | None] = []
    dtypes: list[str] = []
    declared: list[bool] = []
    found: dict[str, tuple[Shape, str]] = {}
    if not s.blank:
        from layerscope.formats.onnx.fallback import inferred

        found = inferred(s)
    rests = any(known is not None and known.name in reader.declared for known in s.inputs)
    for name in outputs:
        shape, dtype = s.declared(name)
        if name in found:
            shape, dtype = found[name]
            value = s.values.get(name)
            if value is not None and reader.trusts_declared:
                s.compare(name, value, shape)
        shapes.append(shape)
        dtypes.append(dtype)
        declared.append(shape is not None and (rests or name not in found))
    names = tuple(reader.input_name(k) for k in s.inputs if k is not None and k.tensor)
    made = tuple(reader.tensor_name(s.outside.get(name, name), s.scope) for name in outputs)
    domain = operator.domain or ("ai.onnx" if s.op in SPECS else "")  # lest it be ours
    op = f"{domain}::{s.op}" if domain else s.op
    node = Node(
        name=s.label,
        op=op,
        inputs=names,
        outputs=made,
        attributes=at.Opaque(tuple(shapes), tuple(dtypes), tuple(declared), why),
        params=(),
        scope=s.scope,
        source=reader.source(s.op, operator.name if operator.name != s.label else ""),
    )
    reader.append(node, shapes, dtypes)
    cause = ""
    for name, tensor, shape, dtype in zip(outputs, made, shapes, dtypes, strict=True):
        s.env[name] = Known(tensor, shape, dtype)
        if shape is None:
            cause = cause or _cause(s, why or f"no rule for op {op}")
            reader.trace.causes[tensor] = cause
    for tensor, shape, said in zip(made, shapes, declared, strict=True):
        if said and shape is not None:
            reader.declared[tensor] = f"{tensor}, {'x'.join(map(str, shape)) or 'scalar'}"


def _cause(s: Site, why: str) -> str:
    """Where an unknown shape comes from: this node, or what an input of it comes from."""
    causes = s.reader.trace.causes
    for known in s.inputs:
        if known is not None and known.shape is None and known.name in causes:
            return causes[known.name]
    return f"{s.label} ({s.op}): {why}"
