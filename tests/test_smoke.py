"""The two-second test of make check: the core answers, and its figures are the known ones."""

from __future__ import annotations

import pytest

import layerscope
from layerscope.cli import run


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "params", "macs"),
    [("vgg16", 138_357_544, 15_470_264_320), ("resnet18", 11_689_512, 1_814_073_344)],
)
def test_the_account_of_a_network(name: str, params: int, macs: int) -> None:
    totals = layerscope.analyze(name).totals
    assert (totals.params, totals.macs) == (params, macs)


@pytest.mark.smoke
def test_the_command_line_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "alexnet"]) == 0
    assert "61,100,840" in capsys.readouterr().out
