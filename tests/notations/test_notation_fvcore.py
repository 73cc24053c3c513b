"""The notation fvcore on zoo networks, whose printed rows add up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.notations import write
from layerscope.notations.fvcore import figures_by_path
from layerscope.report.modules import parameters_by_path
from tests.networks import waves

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50", "googlenet": "googlenet", "bert_base": "bert_base", "waves": waves,
}  # fmt: skip


def network(name: str) -> str | Graph:
    found = NETWORKS[name]
    return found if isinstance(found, str) else found()


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    report = analyze(network(name), like="fvcore")
    golden(f"fvcore/{name}.txt", write(report, "fvcore"))


@pytest.mark.parametrize("name", NETWORKS)
def test_figures_add_up(name: str) -> None:
    """The model has the totals of the report, and a module what its layers and parameters have."""
    report = analyze(network(name), like="fvcore")
    found = figures_by_path(report)
    assert found[""].params == report.totals.params
    assert found[""].flops == report.totals.convention_ops
    arrays = parameters_by_path(report)
    for path, figures in found.items():
        inside = [p for at, p in arrays.items() if f"{at}.".startswith(f"{path}." if path else "")]
        assert (figures.params or 0) == sum(p.elements for p in inside), path


def test_other_conventions() -> None:
    text = write(analyze("resnet50"), "fvcore")
    assert text.splitlines()[2].split() == ["|", "model", "|", "25.557M", "|", "4.089G", "|"]


def test_sums_that_lack_figures_are_marked() -> None:
    b = Builder("odd")
    x = b.input("x", (1, 3, 8, 8))
    with b.scope("stem", "Stem"):
        x = b.conv(x, 4, 3, name="conv")
        (x,) = b.add_node("warp::drive", (x,), name="warp")
    rows = [line.split("|")[1:-1] for line in write(analyze(b.build(x)), "fvcore").splitlines()[2:]]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    assert cells["stem"] == ["0.112K + ?", "3.888K + ?"]
    assert cells["conv"] == ["0.112K", "3.888K"]  # the prefix of all modules is left out
    assert cells["conv.weight"] == ["(4, 3, 3, 3)", ""]
