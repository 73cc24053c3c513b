"""Nodes that run several times or not at all, and what is worked out before the run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from layerscope import Builder, Graph, Node, Param, Tensor, analyze
from layerscope.analysis.backward import backward
from layerscope.analysis.memory import liveness
from layerscope.graph import attributes as at
from layerscope.graph.edits import bind
from layerscope.ops import FREE
from tests.brute.case import window


def twice_convolved() -> Graph:
    b = Builder("net")
    x = b.input("data", (1, 4, 6, 6))
    return b.build(b.conv(b.conv(x, 4, 3, padding=1, name="a"), 4, 3, padding=1, name="b"))


def running(graph: Graph, name: str, **told: object) -> Graph:
    """The graph with one node told otherwise."""
    nodes = tuple(replace(n, **told) if n.name == name else n for n in graph.nodes)
    return replace(graph, nodes=nodes)


@pytest.mark.parametrize("times", [0, 1, 24])
@pytest.mark.parametrize("stored", [False, True])
def test_a_node_costs_as_often_as_it_runs(times: int, stored: bool) -> None:
    """With arrays of its own or of its rule: what is stored and held stays as it is."""
    graph = twice_convolved()
    if stored:
        params = analyze(graph).by_name["a"].cost.params
        graph = running(graph, "a", params=params)
    once, often = analyze(graph), analyze(running(graph, "b", times=times))
    one, many = once.by_name["b"], often.by_name["b"]
    assert many.cost.ops == one.cost.ops * times
    assert many.ops == one.ops * times
    assert many.cost.read_bytes == one.cost.read_bytes * times
    assert many.cost.write_bytes == one.cost.write_bytes * times
    assert often.backward["b"] == once.backward["b"] * times
    assert (many.params, many.cost.gemm) == (one.params, one.cost.gemm)
    assert often.memory == once.memory
    assert often.by_name["a"] == once.by_name["a"]
    notes = {0: "not counted: the other branch is", 1: "", 24: "× 24 in a loop"}
    assert (many.cost.note, many.cost.status) == (notes[times], "exact")


def test_another_convention_counts_a_loop_as_often() -> None:
    graph = twice_convolved()
    once = analyze(graph, like="netscope").by_name["b"].convention_kinds
    often = analyze(running(graph, "b", times=3), like="netscope").by_name["b"].convention_kinds
    assert often == once * 3
    assert once != FREE


def test_a_reader_has_its_say() -> None:
    graph = twice_convolved()
    said = analyze(running(graph, "b", note="from a custom layer", times=2)).by_name["b"].cost
    assert (said.note, said.status) == ("from a custom layer", "exact")
    bound = analyze(running(graph, "b", note="at most 8 trips", estimate=True)).by_name["b"].cost
    assert (bound.note, bound.status) == ("at most 8 trips", "estimate")
    assert analyze(running(graph, "b", note="x")).by_name["a"].cost.note == ""


def test_what_is_known_before_the_run_costs_nothing() -> None:
    told = at.DeclaredOutputs(((1, 4, 6, 6), (3,)), ("fp32", "int64"))
    nodes = (
        Node("known", "constant", (), ("c", "places"), told),
        Node("add", "add", ("x", "c"), ("y",)),
    )
    report = analyze(Graph("net", (Tensor("x", (1, 4, 6, 6)),), nodes, ("y",)))
    known, add = report.layers
    assert [(t.shape, t.dtype) for t in known.outputs] == [((1, 4, 6, 6), "fp32"), ((3,), "int64")]
    assert (known.ops, known.activations) == (FREE, 0)
    assert (known.cost.read_bytes, known.cost.write_bytes) == (0, 0)
    assert add.cost.read_bytes == 2 * 144 * 4
    assert report.memory.alive_bytes == (144 * 4, 2 * 144 * 4)
    assert report.fields["c"] == ()
    assert report.to_text()


def test_another_number_type_is_that_of_constants_and_arrays_too() -> None:
    told = at.DeclaredOutputs(((3,), (3,)), ("fp32", "int64"))
    nodes = (
        Node("known", "constant", (), ("c", "places"), told),
        Node("fc", "linear", ("x", "w"), ("y",), at.Linear(3, bias=False)),
        Node("add", "add", ("y", "c"), ("z",)),
    )
    graph = Graph("net", (Tensor("x", (2, 3)),), nodes, ("z",), (Param("w", (3, 3)),))
    half = bind(graph, dtype="fp16")
    report = analyze(half)
    kinds = {name: tensor.dtype for name, tensor in report.tensors.items()}
    assert kinds == {**dict.fromkeys("xwcyz", "fp16"), "places": "int64"}
    assert report.by_name["fc"].cost.read_bytes == 2 * (6 + 9)
    assert bind(half, dtype="fp16") == half


def test_a_choice_is_what_was_chosen() -> None:
    """It holds nothing of its own, but what no input of its size can be."""
    told = at.DeclaredOutputs(((2, 3), (8,)), ("fp32", "int64"))
    nodes = (
        Node("a", "relu", ("x",), ("a",)),
        Node("b", "neg", ("x",), ("b",), times=0),
        Node("if", "select", ("a", "b"), ("y", "z"), told),
    )
    graph = Graph("net", (Tensor("x", (2, 3)),), nodes, ("y", "z"))
    report = analyze(graph)
    chosen = report.by_name["if"]
    assert [(t.shape, t.dtype) for t in chosen.outputs] == [((2, 3), "fp32"), ((8,), "int64")]
    assert (chosen.activations, chosen.cost.write_bytes) == (8, 0)
    assert report.by_name["b"].ops == FREE
    assert liveness(graph, report.shapes).written["if"] == 8


def test_places_of_maxima_are_whole_numbers_unless_told_otherwise() -> None:
    for dtype, made in (("int64", "int64"), ("", "fp16")):
        told = at.Pool(window([2, 2], 2), indices=True, index_dtype=dtype)
        node = Node("pool", "max_pool", ("x",), ("y", "places"), told)
        report = analyze(Graph("net", (Tensor("x", (1, 1, 4, 4), "fp16"),), (node,), ("y",)))
        assert [t.dtype for t in report.layers[0].outputs] == ["fp16", made]


def test_the_backward_pass_knows_choices_and_constants() -> None:
    nodes = (
        Node("fc", "linear", ("x",), ("h",), at.Linear(3)),
        Node("c", "constant", (), ("k",), at.DeclaredOutputs(((2, 3),), ("fp32",))),
        Node("mul", "mul", ("h", "k"), ("m",)),
        Node("if", "select", ("m",), ("y",), at.DeclaredOutputs(((2, 3),), ("fp32",))),
    )
    report = analyze(Graph("net", (Tensor("x", (2, 5)),), nodes, ("y",)))
    assert report.backward == backward(report.graph, report.shapes, report.costs)
    assert report.backward["if"] == FREE
