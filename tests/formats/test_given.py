"""Layers whose arrays are given as further inputs: a kernel that another layer makes."""

from __future__ import annotations

import pytest

from layerscope import Graph, Node, Param, Report, Tensor, analyze
from layerscope.analysis.training import TrainingSetup, kept, training
from layerscope.graph import attributes as at
from layerscope.notations import NOTATIONS
from layerscope.ops import SPECS, Call, Ops
from tests.brute.case import window
from tests.brute.seen import check_fields


def made() -> Graph:
    """A kernel worked out from `z`, a matrix from outside, and a constant in between."""
    nodes = (
        Node("fc", "linear", ("z",), ("w",), at.Linear(72)),
        Node("kernel", "reshape", ("w",), ("k",), at.Reshape((4, 2, 3, 3))),
        Node("conv", "conv", ("x", "k"), ("y",), at.Conv(window([3, 3], 1, 1), 4, bias=False)),
        Node("c", "constant", (), ("q",), at.DeclaredOutputs(((1, 4, 8, 8),), ("fp32",))),
        Node("mul", "mul", ("y", "q"), ("m",)),
        Node("pool", "global_avg_pool", ("m",), ("p",)),
        Node("flat", "flatten", ("p",), ("f",)),
        Node("head", "linear", ("f", "u"), ("o",), at.Linear(10, bias=False), ()),
    )
    inputs = (Tensor("x", (1, 2, 8, 8)), Tensor("z", (1, 5)), Tensor("u", (10, 4)))
    return Graph("fast", inputs, nodes, ("o",))


@pytest.fixture(name="report")
def _report() -> Report:
    return analyze(made())


def test_a_given_kernel_is_no_parameter_and_is_read(report: Report) -> None:
    conv, head = report.by_name["conv"], report.by_name["head"]
    assert (conv.params, conv.cost.params, head.params) == (0, (), 0)
    assert conv.ops == Ops(mac=64 * 4 * 18)
    assert conv.cost.read_bytes == 4 * (128 + 72)
    assert head.cost.read_bytes == 4 * (4 + 40)
    assert report.totals.params == 72 * 6


def test_gradients_go_where_something_learns(report: Report) -> None:
    """The image needs none, the kernel does; of the head only what leads back to it."""
    assert report.backward["conv"] == Ops(mac=64 * 4 * 18)
    assert report.backward["head"] == Ops(mac=40)
    saved = kept(report.graph, report.shapes, report.costs)
    assert saved.by_node["conv"] == 4 * (128 + 72)
    assert saved.by_node["mul"] == 0  # the constant alone, which is there anyway
    assert training(report.graph, report.shapes, report.costs, TrainingSetup("sgd")).complete


def test_arrays_of_the_graph_are_learned_and_shared() -> None:
    told = at.Linear(3)
    nodes = (
        Node("a", "linear", ("x", "w", "b"), ("h",), told),
        Node("b", "linear", ("h", "w"), ("y",), told),
    )
    params = (Param("w", (3, 3)), Param("b", (3,), "bias"))
    report = analyze(Graph("tied", (Tensor("x", (2, 3)),), nodes, ("y",), params))
    assert [layer.params for layer in report.layers] == [12, 3]  # the second has a bias of its own
    assert report.backward["a"] == Ops(mac=18, add=6)
    assert report.backward["b"] == Ops(mac=36, add=6)


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "latex", "html", "json"])
def test_every_form_takes_it(report: Report, form: str) -> None:
    assert getattr(report, f"to_{form}")()


@pytest.mark.parametrize("name", NOTATIONS)
def test_every_notation_prints_it(name: str) -> None:
    assert analyze(made(), like=NOTATIONS[name].like).to_notation(name)


def test_fields_go_through_both() -> None:
    nodes = (
        Node("k", "slice", ("z",), ("k",), at.Slice((2,), (0,), (3,))),
        Node("conv", "conv", ("x", "k"), ("y",), at.Conv(window([3]), 2, bias=False), ()),
    )
    graph = Graph("fields", (Tensor("x", (1, 2, 8)), Tensor("z", (2, 2, 6))), nodes, ("y",))
    check_fields(graph)
    sizes = {field.input: field.size for field in analyze(graph).fields["y"]}
    assert sizes == {"x": (3,), "z": (3,)}


def test_states_may_be_given_to_a_recurrent_layer() -> None:
    told = at.Recurrent(3)
    states = ((1, 2, 3), (1, 2, 3))
    rule = SPECS["lstm"]
    shapes = rule.shape(Call(told, ((4, 2, 5), *states)))
    assert rule.ops(Call(told, ((4, 2, 5), *states), shapes)) == rule.ops(
        Call(told, ((4, 2, 5),), shapes)
    )
    nodes = (Node("lstm", "lstm", ("x", "h", "c"), ("y", "hn", "cn"), told),)
    inputs = (Tensor("x", (4, 2, 5)), Tensor("h", states[0]), Tensor("c", states[1]))
    report = analyze(Graph("states", inputs, nodes, ("y",)))
    stored = sum(param.bytes for param in report.layers[0].cost.params)
    assert report.layers[0].cost.read_bytes == 4 * (40 + 6 + 6) + stored
    assert report.fields["y"]
