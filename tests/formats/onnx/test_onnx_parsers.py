"""The parsers for usual messages against those for all: the same tensors, nodes and attributes."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import pytest
from onnx import TensorProto, helper, numpy_helper  # noqa: TID251

import layerscope
from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError
from layerscope.formats.onnx import skim
from layerscope.formats.onnx.attr_cache import AttrCache
from layerscope.formats.onnx.tensors import HEAD, StoredTensor, stored_of, usual_tensor


def raw(name: str, *dims: int, dtype: str = "float32") -> TensorProto:
    return numpy_helper.from_array(np.zeros(dims, dtype), name)


def wire(data: bytes) -> Wire:
    return Wire(data, "net.onnx")


def quick(data: bytes) -> StoredTensor | None:
    return usual_tensor(wire(data), 0, len(data))


def general(data: bytes) -> StoredTensor:
    return stored_of(wire(data), 0, len(data))


USUAL = (
    raw("w", 8, 8, 3, 3), raw("scalar"), raw("empty", 0, 4), raw("wide", 300, 20_000),
    raw("half", 5, dtype="float16"), raw("ids", 3, dtype="int64"), raw("flags", 7, dtype="bool"),
    raw("grün.weight", 2, 2), raw("n" * 200, 4),
)  # fmt: skip


@pytest.mark.parametrize("tensor", USUAL, ids=lambda tensor: tensor.name[:8])
def test_usual_tensors(tensor: TensorProto) -> None:
    data = tensor.SerializeToString()
    found = quick(data)
    assert found is not None
    assert found == general(data)


UNUSUAL = {
    "listed numbers": helper.make_tensor("w", 1, [2], [1.0, 2.0]),
    "strings": numpy_helper.from_array(np.array(["x"], object), "w"),
    "a doc string": raw("w", 2),
    "a long name": raw("n" * HEAD, 4),
    "data elsewhere": raw("w", 2),
    "metadata": raw("w", 2),
}
UNUSUAL["a doc string"].doc_string = "what it is"
UNUSUAL["data elsewhere"].data_location = TensorProto.EXTERNAL
entry = UNUSUAL["metadata"].metadata_props.add()
entry.key, entry.value = "layerscope.role", "buffer"


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_tensors_are_left_to_the_general_parser(what: str) -> None:
    data = UNUSUAL[what].SerializeToString()
    assert quick(data) is None
    assert general(data).name


def test_a_name_behind_the_data() -> None:
    """Fields may be in any order, and the name may end behind the bytes that are looked at."""
    data = b"\x10\x01\x4a\x04abcd" + b"\x42" + bytes([0x80 | 0x7F, 0x07]) + b"n" * 1023
    assert quick(data) is None
    assert general(data).name == "n" * 1023
    assert quick(b"\x10\x01\x4a\x04abcd\x42\x01n") == general(b"\x10\x01\x4a\x04abcd\x42\x01n")


def test_negative_sizes_are_refused_beside_a_size_of_zero() -> None:
    minus = b"\x08" + b"\xff" * 9 + b"\x01"
    data = b"\x08\x00" + minus + b"\x10\x01\x42\x01w\x4a\x00"
    assert quick(data) is None
    with pytest.raises(FormatError, match="expected sizes from 0 on"):
        general(data)


def test_changed_bytes_give_the_same_tensor_or_are_left() -> None:
    """The parser for usual tensors accepts nothing that the general one reads otherwise."""
    chance = random.Random(0)
    accepted = 0
    for n in range(20_000):
        data = bytearray(USUAL[n % 3].SerializeToString()[:60])
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(min(len(data), 24))] = chance.randrange(256)
        found = quick(bytes(data))
        if found is not None:
            accepted += 1
            assert found == general(bytes(data))
    assert accepted > 20


def test_fields_are_counted_by_both() -> None:
    data = raw("w", 8, 8, 3, 3).SerializeToString()
    both = [wire(data), wire(data)]
    usual_tensor(both[0], 0, len(data))
    stored_of(both[1], 0, len(data))
    assert both[0].left == both[1].left
    with pytest.raises(FormatError, match="more than"):
        usual_tensor(Wire(data, "net.onnx", 3), 0, len(data))


def test_attributes_of_the_same_bytes_cut_otherwise_are_others() -> None:
    """The bytes of two attributes are also those of one, whose last field is the second."""
    first = helper.make_attribute("axis", 1).SerializeToString()
    second = helper.make_attribute("keepdims", 1).SerializeToString()
    tag = b"\x2a" + bytes([len(second)])
    data = first + tag + second
    cache = AttrCache(wire(data))
    two = cache.parse([(0, len(first)), (len(first) + len(tag), len(data))], {})
    assert set(two.attributes) == {"axis", "keepdims"}
    with pytest.raises(FormatError):  # as one attribute, its field `t` is no tensor
        cache.parse([(0, len(data))], {})
    assert cache.parse([(0, len(first)), (len(first) + len(tag), len(data))], {}) is two


def chain(count: int) -> onnx.ModelProto:
    names = [f"t{n}" for n in range(count + 1)]
    nodes = [helper.make_node("Relu", [a], [b], b) for a, b in pairwise(names)]
    ends = [helper.make_tensor_value_info(name, 1, [1, 4]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_nodes_of_the_main_graph_are_a_sequence() -> None:
    data = chain(5).SerializeToString()
    model = skim.model_of(wire(data))
    nodes = [*model.graph.nodes]
    assert [node.name for node in nodes] == ["t1", "t2", "t3", "t4", "t5"]
    assert [*model.graph.nodes] == nodes
    assert len(model.graph.nodes) == 5
    assert model.graph.nodes[1:3] == nodes[1:3]
    assert model.graph.nodes[-1] == nodes[-1]
    with pytest.raises(IndexError):
        model.graph.nodes[5]


@pytest.mark.parametrize("seed", range(5))
def test_a_file_in_any_order_is_sorted(tmp_path: Path, seed: int) -> None:
    model = chain(40)
    expected = layerscope.analyze(saved(model, tmp_path)).graph.nodes
    nodes = [*model.graph.node]
    random.Random(seed).shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert layerscope.analyze(saved(model, tmp_path)).graph.nodes == expected


def saved(model: onnx.ModelProto, folder: Path) -> str:
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)
