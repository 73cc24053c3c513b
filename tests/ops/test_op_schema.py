"""What OpSpec says of attributes agrees with the Builder, the zoo and the serializer."""

from __future__ import annotations

import pytest
from msgspec import Struct

from layerscope import zoo
from layerscope.graph import attributes as at
from layerscope.graph.serialize import from_plain, to_plain
from layerscope.graph.types import Graph, Node, Tensor
from layerscope.ops import SPECS, display_name
from tests.brute import CASES

SYSTEMS = {"torch", "torch_function", "caffe", "matconvnet", "dagnn", "keras", "sheet", "plural"}
NO_OP = {at.Opaque, at.Window}  # of nodes without a rule; part of other attributes
NETWORKS = ("alexnet", "vit_b_16", "bert_base", "llama-3-8b", "swin_t", "t5-small", "googlenet")


def fits(op: str, attributes: Struct | None) -> bool:
    """Whether a node of this op may have these attributes: None means the defaults."""
    expected = SPECS[op].attributes
    return attributes is None or (expected is not None and isinstance(attributes, expected))


def test_cases_have_the_attributes_of_the_schema() -> None:
    wrong = {case.op for case in CASES if not fits(case.op, case.attributes)}
    assert not wrong


@pytest.mark.parametrize("name", NETWORKS)
def test_the_builder_makes_the_attributes_of_the_schema(name: str) -> None:
    wrong = {node.op for node in zoo.build(name).nodes if not fits(node.op, node.attributes)}
    assert not wrong


def test_every_kind_of_attributes_belongs_to_an_op() -> None:
    kinds = {getattr(at, name) for name in at.__all__}
    structs = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)}
    used = {spec.attributes for spec in SPECS.values() if spec.attributes is not None}
    assert used == structs - NO_OP


def test_attributes_are_the_same_after_serialization() -> None:
    for case in CASES:
        inputs = tuple(Tensor(f"x{n}", shape) for n, shape in enumerate(case.inputs))
        outputs = tuple(f"y{n}" for n in range(len(case.call.outputs)))
        names = tuple(tensor.name for tensor in inputs)
        node = Node("node", case.op, names, outputs, case.attributes)
        graph = Graph("graph", inputs or (Tensor("x", (1,)),), (node,), outputs)
        (again,) = from_plain(to_plain(graph)).nodes
        assert again.attributes == case.attributes, case
        assert type(again.attributes) is type(case.attributes), case


def test_names_are_of_documented_systems() -> None:
    for op, spec in SPECS.items():
        assert set(spec.names) <= SYSTEMS, op
    assert all(f"`{system}`" in (display_name.__doc__ or "") for system in SYSTEMS)
    assert display_name("prelu", "torch") == "PReLU"
    assert display_name("conv", "caffe") == "Convolution"
    assert display_name("scale", "torch") == ""  # one step of a norm
    assert display_name("where", "caffe") is None
    assert display_name("whirl", "torch") is None
