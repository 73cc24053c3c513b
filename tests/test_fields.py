from hypothesis import given, settings

from layerscope import Graph
from tests.brute.random_graphs import lines, planes
from tests.brute.seen import check_fields

COUNTS = [0, 0]


@settings(max_examples=3000, deadline=None)
@given(lines())
def test_lines(graph: Graph) -> None:
    a, b = check_fields(graph)
    COUNTS[0] += a
    COUNTS[1] += b


@settings(max_examples=500, deadline=None)
@given(planes())
def test_planes(graph: Graph) -> None:
    a, b = check_fields(graph)
    COUNTS[0] += a
    COUNTS[1] += b


def test_count(capsys):
    with capsys.disabled():
        print(COUNTS)
