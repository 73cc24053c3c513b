"""Pictures of graphs: layered layout, folding, edges and names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layerscope
from layerscope import Graph
from layerscope.errors import UsageError
from layerscope.graph.types import Node, Tensor
from layerscope.plot.graph_picture import write
from layerscope.plot.layered import BoxSize, layered
from tests.analysis.test_memory import networks

SVG = "{http://www.w3.org/2000/svg}"


def boxes(text: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of the boxes and frames, which have titles."""
    found = []
    for rect in ElementTree.fromstring(text).iter(f"{SVG}rect"):
        if rect.find(f"{SVG}title") is not None:
            x, y, width, height = (float(rect.attrib[n]) for n in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[BoxSize], list[tuple[int, int]]]:
    count = draw(st.integers(1, 14))
    sizes = [BoxSize(draw(st.floats(10, 200)), draw(st.floats(10, 60))) for _ in range(count)]
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    return sizes, edges


@given(graphs())
@settings(max_examples=150)
def test_boxes_do_not_overlap_and_edges_go_down(
    graph: tuple[list[BoxSize], list[tuple[int, int]]],
) -> None:
    sizes, edges = graph
    found = layered(sizes, edges)
    rects = [
        (x, y, x + size.width, y + size.height)
        for x, y, size in zip(found.left, found.top, sizes, strict=True)
    ]
    for n, a in enumerate(rects):
        assert a[0] > -1e-6
        assert a[1] > -1e-6
        assert a[2] < found.width + 1e-6
        assert a[3] < found.height + 1e-6
        for b in rects[:n]:
            apart = a[2] <= b[0] + 1e-6 or b[2] <= a[0] + 1e-6
            assert apart or a[3] <= b[1] + 1e-6 or b[3] <= a[1] + 1e-6
    for (start, end), bends in zip(edges, found.bends, strict=True):
        downs = [rects[start][3], *(y for _, top, low in bends for y in (top, low)), rects[end][1]]
        assert downs == sorted(downs)


@given(networks())
@settings(max_examples=40)
def test_every_network_is_drawn(graph: Graph) -> None:
    report = layerscope.analyze(graph)
    text = write(report)
    assert len(boxes(text)) == len(report.layers)


def test_repeated_modules_are_one_box() -> None:
    text = write(layerscope.analyze("resnet50"), 2)
    drawn = [rect.attrib for rect in ElementTree.fromstring(text).iter(f"{SVG}rect")]
    assert text.count("× 5") == 1
    assert len(boxes(text)) == 4 + 4 * 3 + 3  # layers, frames with two boxes each, layers
    assert drawn


def test_a_flat_graph_is_drawn_in_runs() -> None:
    nodes = tuple(Node(f"r{n}", "relu", (f"t{n}",), (f"t{n + 1}",)) for n in range(3000))
    report = layerscope.analyze(Graph("chain", (Tensor("t0", (1, 8)),), nodes, ("t3000",)))
    text = write(report)
    assert len(boxes(text)) == 120
    assert "25 layers" in text


def test_strange_names_are_text() -> None:
    name = '<img src=x onerror=alert(1)>&"\u202e'
    graph = Graph(name, (Tensor("x", (1, 8)),), (Node(name, "relu", ("x",), ("y",)),), ("y",))
    text = write(layerscope.analyze(graph))
    assert "<img" not in text
    assert "\u202e" not in text
    ElementTree.fromstring(text)


def test_depths() -> None:
    report = layerscope.analyze("resnet18")
    counts = [len(boxes(write(report, depth))) for depth in (1, 2, 3)]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2]
    with pytest.raises(UsageError, match="at least 1"):
        write(report, 0)
    heat = set(re.findall(r'fill="(#[0-9a-f]{6})"', write(report)))
    assert len(heat) > 4
