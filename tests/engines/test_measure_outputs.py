"""Outputs of engines beside each other: how far apart they may be without a remark."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import Any

import numpy  # noqa: TID251
import pytest

from layerscope.api.timing import measure
from layerscope.engines import measuring
from layerscope.engines.measuring import difference
from layerscope.report.measurement import LayerTime, MemoryUse, Run, Timing

TIMING = Timing(1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, None, None, None, (1.0,))
FIRST = (1000.0, -500.0)  # outputs of the first engine; the largest is what others are set against


class Engine:
    """An engine that runs nothing and has outputs."""

    def __init__(self, name: str, outputs: Sequence[float]) -> None:
        self.name, self.outputs = name, outputs

    def version(self) -> str:
        return "1"

    def measure(self, *_: Any) -> tuple[Run, dict[str, Any]]:
        rows = (LayerTime("conv1", "layer", ("conv1",), 1.0, 1.0, 1.0),)
        run = Run(self.name, "1", 1, "on", TIMING, rows, MemoryUse(None, None, 0))
        return run, {"y": numpy.array(self.outputs)}


def runs(monkeypatch: pytest.MonkeyPatch, second: Sequence[float]) -> Any:
    """A measurement on two engines, the second of which has these outputs."""
    engines = {"onnxruntime": Engine("onnxruntime", FIRST), "torch": Engine("torch", second)}
    monkeypatch.setattr(measuring, "engine", engines.__getitem__)
    return measure("lenet5", engine="onnxruntime,torch", threads=1)


@pytest.mark.parametrize("second", [
    FIRST, (1000.5, -500.0), (1000.9, -500.0), (999.1, -500.9), (1000.999, -500.0),
    (1001.0, -500.0), (1000.0, -501.0),
])  # fmt: skip
def test_rounding_needs_no_remark(monkeypatch: pytest.MonkeyPatch, second: list[float]) -> None:
    """Up to a thousandth of the largest output, that included."""
    first, other = runs(monkeypatch, second).runs
    assert first.difference is None
    assert other.difference == pytest.approx(
        max(abs(a - b) for a, b in zip(FIRST, second, strict=True)) / 1000
    )
    assert other.difference <= 1e-3
    assert not [note for note in other.notes if "differ" in note]


@pytest.mark.parametrize(
    "second",
    [
        (1001.001, -500.0),
        (1000.0, -501.001),
        (998.999, -500.0),
        (0.0, 0.0),
        (float("nan"), -500.0),
        (float("inf"), -500.0),
    ],
)
def test_more_than_rounding_is_remarked(
    monkeypatch: pytest.MonkeyPatch, second: list[float]
) -> None:
    found = runs(monkeypatch, second)
    first, other = found.runs
    worst = max(abs(a - b) for a, b in zip(FIRST, second, strict=True)) / 1000
    worst = worst if isfinite(worst) else inf
    [note] = [note for note in other.notes if "differ" in note]
    assert note == f"outputs differ by {worst:.1e} of their size: more than rounding"
    assert not [note for note in first.notes if "differ" in note]
    assert note in str(found)


def test_the_difference_is_over_the_largest_output_of_all() -> None:
    one = {"y": numpy.array([2.0, -8.0]), "z": numpy.array([1.0])}
    assert difference(one, {"y": numpy.array([2.0, -6.0]), "z": numpy.array([1.0])}) == 0.25
    assert difference(one, {"z": numpy.array([1.5])}) == 0.5  # what only one has is left out
    assert difference(one, {"y": numpy.array([1.0])}) is None  # nothing of one shape


def test_numbers_that_are_none_differ_from_numbers_only() -> None:
    odd = numpy.array([nan, inf, 4.0])
    assert difference({"y": odd}, {"y": odd.copy()}) == 0
    assert difference({"y": odd}, {"y": numpy.array([nan, inf, 3.0])}) == 0.25
    assert difference({"y": odd}, {"y": numpy.array([nan, -inf, 4.0])}) == inf
    assert difference({"y": odd}, {"y": numpy.array([1.0, inf, 4.0])}) == inf
