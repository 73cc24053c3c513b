"""Other orders of execution with a lower memory peak."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph
from layerscope.analysis.memory import liveness
from layerscope.analysis.orders import moved, other_order
from layerscope.report.advice import advice, in_place, large_fields, reordered
from tests.analysis.test_memory import networks


def two_branches() -> Graph:
    """Both branches write much and keep little; one after the other needs less."""
    b = Builder("branches")
    x = b.input("x", (1, 1, 8, 8))
    wide = [b.conv(x, 64, 1, name=f"wide{n}") for n in range(2)]
    small = [b.conv(w, 1, 1, name=f"small{n}") for n, w in enumerate(wide)]
    return b.build(b.add(*small, name="sum"))


def test_a_lower_order_is_found_and_recomputed() -> None:
    graph = two_branches()
    report = layerscope.analyze(graph)
    found = other_order(graph, report.shapes, report.memory)
    assert found is not None
    assert found.memory.peak_bytes < report.memory.peak_bytes
    assert set(found.moved) <= {node.name for node in graph.nodes}
    by_hand = ("wide0", "small0", "wide1", "small1", "sum")
    nodes = tuple(next(n for n in graph.nodes if n.name == name) for name in by_hand)
    best = liveness(replace(graph, nodes=nodes), report.shapes)
    assert found.memory.peak_bytes == best.peak_bytes
    finding = reordered(report)
    assert finding is not None
    assert finding.saves_bytes == report.memory.peak_bytes - best.peak_bytes
    assert f"by {finding.saves_bytes:,} bytes" in finding.text
    assert f"to {best.peak_bytes:,}." in finding.text


def test_a_chain_has_no_other_order() -> None:
    report = layerscope.analyze("vgg16")
    assert other_order(report.graph, report.shapes, report.memory) is None


@given(networks())
@settings(max_examples=60)
def test_every_order_is_one_that_can_run(graph: Graph) -> None:
    report = layerscope.analyze(graph)
    found = other_order(graph, report.shapes, report.memory)
    if found is not None:  # `replace` checks that nodes follow their inputs
        assert found.memory.peak_bytes < report.memory.peak_bytes
        assert found.moved


@given(st.permutations(range(9)))
def test_the_fewest_move(order: list[int]) -> None:
    from itertools import combinations

    rest = [n for n in order if n not in moved(order)]
    assert rest == sorted(rest)
    longest = max(
        size
        for size in range(1, 10)
        if any(list(some) == sorted(some) for some in combinations(order, size))
    )
    assert len(rest) == longest


def test_layers_in_place_lower_the_peak() -> None:
    report = layerscope.analyze("resnet50")
    finding = in_place(report)
    assert finding is not None
    then = layerscope.analyze("resnet50", in_place=True)
    assert finding.saves_bytes == report.memory.peak_bytes - then.memory.peak_bytes
    assert set(finding.layers) <= {layer.name for layer in report.layers}
    assert in_place(then) is None


def test_fields_larger_than_the_input() -> None:
    report = layerscope.analyze("resnet50")
    finding = large_fields(report)
    assert finding is not None
    large = [
        layer.name
        for layer in report.layers
        if layer.field is not None
        and any(size != "everything" and int(size) > 224 for size in layer.field.size)
    ]
    assert list(finding.layers) == large
    assert f"from {large[0]} on: in {len(large)} of" in finding.text
    assert large_fields(layerscope.analyze("resnet50", input=(1, 3, 1024, 1024))) is None
    assert {each.kind for each in advice(report)} == {"field", "in_place"}
