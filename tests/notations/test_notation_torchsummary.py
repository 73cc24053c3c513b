"""The notation torchsummary on zoo networks, whose printed columns add up."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest

from layerscope import Graph, analyze
from layerscope.notations import write
from tests.networks import waves

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "vgg16": "vgg16", "resnet50": "resnet50", "googlenet": "googlenet", "waves": waves,
}  # fmt: skip


def text(name: str) -> str:
    network = NETWORKS[name]
    return write(analyze(network if isinstance(network, str) else network()), "torchsummary")


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"torchsummary/{name}.txt", text(name))


@pytest.mark.parametrize("name", NETWORKS)
def test_columns_add_up(name: str) -> None:
    _, table, totals, *_ = text(name).split("=" * 64 + "\n")[0:3]
    rows = [line.split() for line in table.splitlines()]
    assert [row[0].rpartition("-")[2] for row in rows] == [str(n + 1) for n in range(len(rows))]
    params = sum(int(row[-1].replace(",", "")) for row in rows)
    shapes = [[int(n.strip("[],")) for n in row[1:-1]] for row in rows]
    assert {shape[0] for shape in shapes} == {-1}
    elements = sum(prod(shape[1:]) for shape in shapes)
    assert f"Total params: {params:,}\n" in totals
    assert f"Params size (MB): {params * 4 / 2**20:.2f}\n" in totals
    assert f"pass size (MB): {2 * elements * 4 / 2**20:.2f}\n" in totals


def test_any_batch_prints_the_same() -> None:
    one, four = (write(analyze("resnet18", batch=n), "torchsummary") for n in (1, 4))
    assert one == four


@pytest.mark.parametrize("notation", ["torchsummary", "torchinfo"])
def test_the_beginning_of_a_name_is_no_module(notation: str) -> None:
    """`pool1` of `pool1/3x3_s2` has no row."""
    report = analyze("googlenet-caffe")
    table = write(report, notation)
    pools = [layer for layer in report.layers if layer.op == "max_pool"]
    assert table.count("MaxPool2d") == len(pools)
    assert "Module" not in table
