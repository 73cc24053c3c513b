"""Nodes of an ONNX model as plain records, and their attributes by type.

Both the model that an engine is given and the model that its optimiser writes are read into these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto

    from layerscope.engines import Array


class EngineNode(Struct, frozen=True):
    """One node of a model; `activation` is one fused into it, as of FusedConv."""

    op_type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str = ""
    activation: str = ""


class EngineGraph(Struct, frozen=True):
    """Nodes of a model in order, its inputs, initializers and outputs."""

    nodes: tuple[EngineNode, ...]
    inputs: tuple[str, ...]
    initializers: frozenset[str]
    outputs: tuple[str, ...] = ()


def engine_graph(model: ModelProto) -> EngineGraph:
    """Read the nodes of an ONNX model."""
    graph = model.graph
    initializers = frozenset(each.name for each in graph.initializer)
    return EngineGraph(
        tuple(
            EngineNode(
                node.op_type,
                node.name,
                tuple(node.input),
                tuple(node.output),
                node.domain,
                next((a.s.decode() for a in node.attribute if a.name == "activation"), ""),
            )
            for node in graph.node
        ),
        tuple(each.name for each in graph.input if each.name not in initializers),
        initializers,
        tuple(each.name for each in graph.output),
    )


class NodeAttributes:
    """Attributes of an ONNX node, read by type, and its number of outputs."""

    def __init__(self, values: Mapping[str, object], outputs: int = 1) -> None:
        self._values, self.outputs = values, outputs

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute of type INT."""
        return cast(int, self._values.get(name, default))

    def number(self, name: str, default: float) -> float:
        """An attribute of type FLOAT."""
        return cast(float, self._values.get(name, default))

    def text(self, name: str, default: str = "") -> str:
        """An attribute of type STRING."""
        return cast(str, self._values.get(name, default))

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An attribute of type INTS."""
        return list(cast("Sequence[int]", self._values.get(name, default)))

    def array(self, name: str) -> Array:
        """An attribute of type TENSOR."""
        return cast("Array", self._values[name])


def node_attributes(node: NodeProto) -> NodeAttributes:
    """Read the attributes of an ONNX node."""
    values = {each.name: _attribute_value(each) for each in node.attribute}
    return NodeAttributes(values, sum(map(bool, node.output)))


def _attribute_value(attribute: AttributeProto) -> object:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "data_type"):
        return numpy_helper.to_array(value)
    return value
