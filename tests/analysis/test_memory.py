"""Activation memory against an allocator that is simulated, and against figures by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope import Builder, Graph, Node, Param, Tensor, analyze
from layerscope.analysis.memory import Memory, liveness
from layerscope.analysis.shapes import infer
from layerscope.errors import UnknownName
from layerscope.graph import attributes as at
from layerscope.graph.types import DTYPE_BITS, storage_bytes
from layerscope.ops import SPECS
from tests.brute.case import window
from tests.brute.heap import IN_PLACE, VIEWS, simulate


def live(graph: Graph, *, in_place: bool = False) -> Memory:
    return liveness(graph, infer(graph), in_place=in_place)


def test_which_ops_share_their_input() -> None:
    assert {op for op, rule in SPECS.items() if rule.view} == set(VIEWS)
    assert {op for op, rule in SPECS.items() if rule.in_place} >= set(IN_PLACE)


@st.composite
def networks(draw: Any) -> Graph:
    """Nodes that read anything made before them: dead ends, several outputs, a stored array."""
    batch = draw(st.integers(1, 2))
    dtype = draw(st.sampled_from(["fp32", "fp16", "int8", "int4"]))
    inputs = tuple(
        Tensor(name, (batch, draw(st.integers(1, 3)), 3), dtype)
        for name in ("a", "b")[: draw(st.integers(1, 2))]
    )
    stored = Param("table", (1, 1, 3), "weight", dtype)
    known = [tensor.name for tensor in inputs]
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(["conv", "relu", "add", "mul", "dropout", "flatten", "identity",
                                   "concat", "split", "batch_norm", "mystery"]))  # fmt: skip
        count = {"add": 2, "mul": 2, "concat": 2}.get(op, 1)
        read = tuple(draw(st.sampled_from([*known, "table"])) for _ in range(count))
        attributes: Any = None
        made: tuple[str, ...] = (f"n{index}",)
        if op == "conv":
            attributes = at.Conv(window([1]), draw(st.integers(1, 3)))
        if op == "flatten":
            attributes = at.Flatten(0, 1)
        if op == "split":
            attributes = at.Split(-1, (1, 2))
            made = (f"n{index}:0", f"n{index}:1")
        node = Node(f"n{index}", op, read, made, attributes)
        if _fits(inputs, stored, (*nodes, node)):
            nodes.append(node)
            known += made
    names = [name for node in nodes for name in node.outputs] + [inputs[0].name]
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return Graph("random", inputs, tuple(nodes), tuple(outputs), (stored,))


def _fits(inputs: tuple[Tensor, ...], stored: Param, nodes: tuple[Node, ...]) -> bool:
    from layerscope.errors import ShapeError

    try:
        infer(Graph("random", inputs, nodes, (), (stored,)))
    except ShapeError:
        return False
    return True


@settings(max_examples=300, derandomize=True)
@given(networks(), st.booleans())
def test_liveness_is_what_an_allocator_holds(graph: Graph, in_place: bool) -> None:
    shapes = infer(graph)
    memory = liveness(graph, shapes, in_place=in_place)
    held = simulate(graph, shapes, in_place=in_place)
    assert list(memory.alive_bytes) == held
    assert memory.peak_bytes == max(held, default=0)
    if held:
        assert memory.peak_node == graph.nodes[held.index(max(held))].name
        assert sum(size for _, size in memory.peak_alive) == memory.peak_bytes
        sizes = [size for _, size in memory.peak_alive]
        assert sizes == sorted(sizes, reverse=True)
    assert memory.complete == all(t.shape is not None for t in shapes.tensors.values())
    assert memory.in_place == in_place


@settings(max_examples=200, derandomize=True)
@given(networks(), st.booleans())
def test_bounds_are_where_an_unknown_tensor_is_alive(graph: Graph, in_place: bool) -> None:
    shapes = infer(graph)
    bounded = set()
    for name, tensor in shapes.tensors.items():
        if tensor.shape is not None:
            continue
        (born,) = [n for n, node in enumerate(graph.nodes) if name in node.outputs]
        last = max([n for n, node in enumerate(graph.nodes) if name in node.inputs], default=born)
        last = len(graph.nodes) if name in graph.outputs else last
        bounded |= {node.name for node in graph.nodes[born : last + 1]}
    memory = liveness(graph, shapes, in_place=in_place)
    assert memory.bounded == bounded
    assert memory.complete == (not bounded)


@settings(max_examples=100, derandomize=True)
@given(networks())
def test_working_in_place_never_takes_more(graph: Graph) -> None:
    apart, shared = live(graph), live(graph, in_place=True)
    assert shared.peak_bytes <= apart.peak_bytes
    assert sum(shared.written.values()) <= sum(apart.written.values())


def test_a_chain_by_hand() -> None:
    b = Builder("chain")
    x = b.input("data", (1, 2, 4, 4))  # 128 bytes
    y = b.conv(x, 4, 1, name="conv")  # 256
    z = b.relu(y, name="relu")  # 256
    memory = live(b.build(b.max_pool(z, 2, name="pool")))  # 64
    assert memory.alive_bytes == (128 + 256, 256 + 256, 256 + 64)
    assert (memory.peak_bytes, memory.peak_node) == (512, "relu")
    assert memory.peak_alive == (("conv", 256), ("relu", 256))
    assert memory.written == {"conv": 64, "relu": 64, "pool": 16}


def test_in_place_reuses_what_nobody_needs() -> None:
    b = Builder("chain")
    y = b.conv(b.input("data", (1, 2, 4, 4)), 4, 1, name="conv")
    memory = live(b.build(b.max_pool(b.relu(y, name="relu"), 2, name="pool")), in_place=True)
    assert memory.alive_bytes == (128 + 256, 256, 256 + 64)
    assert memory.written == {"conv": 64, "relu": 0, "pool": 16}


def test_in_place_spares_what_is_read_later() -> None:
    b = Builder("residual")
    y = b.conv(b.input("data", (1, 1, 8)), 1, 1, name="conv")
    z = b.relu(y, name="relu")
    memory = live(b.build(b.add(y, z, name="sum")), in_place=True)
    assert memory.written == {"conv": 8, "relu": 8, "sum": 0}


def test_an_input_is_never_overwritten() -> None:
    b = Builder("input")
    x = b.input("data", (1, 1, 8))
    y = b.flatten(x, name="flat")  # a view: still the caller's memory
    memory = live(b.build(b.relu(y, name="relu")), in_place=True)
    assert memory.written == {"flat": 0, "relu": 8}
    assert memory.alive_bytes == (32, 64)


def test_an_output_is_kept_to_the_end_and_not_overwritten() -> None:
    b = Builder("outputs")
    first = b.conv(b.input("data", (1, 1, 8)), 1, 1, name="first")
    second = b.relu(first, name="second")
    third = b.relu(second, name="third")
    memory = live(b.build(first, third), in_place=True)
    assert memory.written == {"first": 8, "second": 8, "third": 0}
    assert memory.alive_bytes == (64, 64, 64)


def test_a_view_keeps_the_storage_it_looks_at() -> None:
    b = Builder("views")
    y = b.conv(b.input("data", (1, 1, 8)), 1, 1, name="conv")
    seen = b.flatten(b.dropout(y, name="drop"), name="flat")
    after = b.linear(seen, 2, name="fc")
    memory = live(b.build(after, seen))
    assert memory.written == {"conv": 8, "drop": 0, "flat": 0, "fc": 2}
    assert memory.alive_bytes == (64, 32, 32, 32 + 8)


def test_a_view_of_a_stored_array_is_no_activation() -> None:
    graph = Graph(
        "stored",
        (Tensor("data", (2, 6)),),
        (
            Node("turn", "reshape", ("table",), ("row",), at.Reshape((1, 6))),
            Node("sum", "add", ("data", "row"), ("sum",)),
        ),
        ("sum",),
        (Param("table", (2, 3)),),
    )
    for in_place in (False, True):
        memory = live(graph, in_place=in_place)
        assert memory.written == {"turn": 0, "sum": 12}
        assert memory.alive_bytes == (48, 96)
        assert all(size for _, size in memory.peak_alive)


def test_a_broadcast_does_not_fit_into_the_smaller_operand() -> None:
    b = Builder("gate")
    x = b.conv(b.input("data", (1, 2, 8)), 2, 1, name="conv")
    gate = b.global_pool(x, name="pool")
    (made,) = b.add_node("mul", (gate, x), name="gated")
    memory = live(b.build(made), in_place=True)
    assert memory.written == {"conv": 16, "pool": 2, "gated": 0}  # over the larger one instead


def test_what_is_unknown_is_left_out_and_said_so() -> None:
    b = Builder("mystery")
    x = b.conv(b.input("data", (1, 1, 8)), 1, 1, name="conv")
    (y,) = b.add_node("mystery", (x,), name="what")
    memory = live(b.build(b.relu(y, name="relu")))
    assert not memory.complete
    assert memory.alive_bytes == (64, 32, 0)
    assert live(b.build(x)).complete is False  # the unknown tensor is there, read or not


@pytest.mark.parametrize(
    "dtype, bits",
    [("fp64", 64), ("fp32", 32), ("fp16", 16), ("bf16", 16), ("int8", 8), ("int4", 4), ("bool", 8)],
)
def test_bytes_by_number_type(dtype: str, bits: int) -> None:
    assert DTYPE_BITS[dtype] == bits
    for count in (0, 1, 2, 3, 15, 16):
        assert storage_bytes(count, dtype) == -(-count * bits // 8)


def test_two_int4_share_a_byte_and_an_odd_one_has_its_own() -> None:
    assert [storage_bytes(count, "int4") for count in range(6)] == [0, 1, 1, 2, 2, 3]
    assert Tensor("x", (1, 3, 5), "int4").bytes == 8
    assert Param("w", (3, 3), dtype="int4").bytes == 5
    b = Builder("packed")
    x = b.input("data", (1, 1, 5), "int4")
    assert live(b.build(b.relu(x))).alive_bytes == (6,)


def test_a_number_type_nobody_knows() -> None:
    with pytest.raises(UnknownName, match=r"unknown dtype 'fp23'; did you mean"):
        storage_bytes(1, "fp23")


@pytest.mark.parametrize("dtype", ["fp64", "fp16", "bf16"])
def test_memory_scales_with_the_number_type(dtype: str) -> None:
    b = Builder("scaled")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 4, 3, padding=1)
    graph = b.build(b.relu(x))
    wide, other = analyze(graph), analyze(graph, dtype=dtype)
    ratio = DTYPE_BITS[dtype] / 32
    assert other.memory.peak_bytes == wide.memory.peak_bytes * ratio
    assert other.totals.param_bytes == wide.totals.param_bytes * ratio
    assert other.totals.ops == wide.totals.ops


def test_peak_is_linear_in_the_batch() -> None:
    b = Builder("batch")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 4, 3, padding=1)
    graph = b.build(b.add(b.relu(x), x))
    for batch in (2, 7):
        assert analyze(graph, batch=batch).memory.peak_bytes == (
            batch * analyze(graph).memory.peak_bytes
        )


@pytest.mark.parametrize("name", ["x", "weight", "bias"])
@pytest.mark.parametrize("tied", [False, True])
def test_arrays_are_read_whatever_the_inputs_are_called(name: str, tied: bool) -> None:
    ties = {"weight": "elsewhere"} if tied else None
    node = Node("fc", "linear", (name,), ("y",), at.Linear(4), ties=ties)
    layer = analyze(Graph("net", (Tensor(name, (1, 8)),), (node,), ("y",))).layers[0]
    assert layer.cost.read_bytes == 4 * (8 + 8 * 4 + 4)
