"""The notation torchinfo on zoo networks, whose printed columns add up."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.notations import write
from tests.networks import waves

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50", "googlenet": "googlenet", "bert_base": "bert_base", "waves": waves,
}  # fmt: skip


def text(name: str) -> str:
    network = NETWORKS[name]
    report = analyze(network if isinstance(network, str) else network(), like="torchinfo")
    return write(report, "torchinfo")


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"torchinfo/{name}.txt", text(name))


@pytest.mark.parametrize("name", NETWORKS)
def test_columns_add_up(name: str) -> None:
    """Rows at the greatest depth have all parameters of their module."""
    printed = text(name)
    _, _, table, totals, sizes, *_ = re.split(r"=+\n", printed)
    counts = [line.split("  ")[-1].strip() for line in table.splitlines()]
    total = sum(int(count.replace(",", "")) for count in counts if count[:1].isdigit())
    assert f"Total params: {total:,}\n" in totals
    figures = dict(re.findall(r"(.+) \(MB\): ([\d.]+)\n", sizes))
    *parts, whole = map(float, figures.values())
    assert sum(parts) == pytest.approx(whole, abs=0.02)
    assert float(figures["Params size"]) <= total * 4 / 1e6 + 0.005


def test_sums_that_lack_figures_are_marked() -> None:
    b = Builder("odd")
    with b.scope("stem", "Stem"):
        x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, name="conv")
        (x,) = b.add_node("warp::drive", (x,), name="warp", module=True)
    lines = write(analyze(b.build(x), like="torchinfo"), "torchinfo").splitlines()
    (row,) = (line for line in lines if "warp" in line)
    assert row.split()[-2:] == ["?", "?"]
    assert "Total params: 112 + ?" in lines
    assert "Total mult-adds (M): 0.00 + ?" in lines


@pytest.mark.parametrize(
    ("channels", "unit"),
    [(1, "(M): 0.00"), (10**6, "(M): 1"), (10**9, "(G): 1"), (5 * 10**12, "(T): 5")],
)
def test_units_of_mult_adds(channels: int, unit: str) -> None:
    b = Builder("wide")
    graph = b.build(b.linear(b.input("x", (1, 1)), channels, bias=False))
    assert f"Total mult-adds {unit}\n" in write(analyze(graph), "torchinfo")
