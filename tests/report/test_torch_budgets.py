"""The pytest fixture on live modules, and a CI job that uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn: Any = torch.nn

from layerscope.cli import run  # noqa: E402
from layerscope.errors import UnknownName, UsageError  # noqa: E402

PARAMS, MACS = 3 * 8 * 9 + 8, 8 * 27 * 6 * 6


def convolution() -> Any:
    return nn.Conv2d(3, 8, 3)


def test_a_live_module(layerscope_budget: Any) -> None:
    size = (1, 3, 8, 8)
    report = layerscope_budget(convolution(), input_size=size, max_params=PARAMS, max_macs=MACS)
    assert (report.totals.params, report.totals.macs) == (PARAMS, MACS)
    for inputs in (
        {"input_data": torch.zeros(size)},
        {"input_data": {"input": torch.zeros(size)}},
        {"input": size},
        {"input": "1x3x8x8"},
        {"input": {"input": "1x3x8x8"}},
        {"input_size": [size], "dtypes": ["fp32"]},
    ):
        assert layerscope_budget(convolution(), max_macs=MACS, **inputs).totals.macs == MACS
    two = (2, *size[1:])
    twice = layerscope_budget(convolution(), input_size=two, batch=2, max_macs="1M", dtype="fp16")
    assert (twice.totals.macs, twice.float_dtype) == (2 * MACS, "fp16")


def test_a_live_module_over_its_budget(layerscope_budget: Any) -> None:
    model = nn.Sequential(convolution(), nn.ReLU())
    with pytest.raises(pytest.fail.Exception) as raised:
        layerscope_budget(model, input_size=(1, 3, 8, 8), max_params=100, max_macs="1M")
    assert str(raised.value) == (
        "Sequential: params 224, over the limit of 100 by 124 (124.0%); most in 0 100.0%"
    )
    with pytest.raises(pytest.fail.Exception, match=r"^mine: params 224"):
        layerscope_budget(model, input_size=(1, 3, 8, 8), budget="mine", max_params=100)


def test_wrong_calls(layerscope_budget: Any) -> None:
    with pytest.raises(UnknownName, match="did you mean input_size"):
        layerscope_budget(convolution(), inputsize=(1, 3, 8, 8), max_params=1)
    with pytest.raises(UnknownName, match="unknown option 'input_size'"):
        layerscope_budget("lenet5", input_size=(1, 3, 8, 8), max_params=1)
    with pytest.raises(UsageError, match="say either input_size="):
        layerscope_budget(convolution(), max_params=1)
    with pytest.raises(UsageError, match=r"a list, expected a torch\.nn\.Module"):
        layerscope_budget([], input_size=(1, 3, 8, 8), max_params=1)
    with pytest.raises(UsageError, match="no limits for Conv2d"):
        layerscope_budget(convolution(), input_size=(1, 3, 8, 8))


NETS = """
from torch import nn


class Small(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)

    def forward(self, x):
        return self.conv(x).mean((2, 3))
"""
BUDGETS = """
[tool.layerscope.budgets.lenet5]
max-params = "62k"

[tool.layerscope.budgets.Small]
network = "nets.py:Small"
input = "1x3x16x16"
max-params = "1k"
max-macs = "50k"

[tool.layerscope.budgets.wide]
network = "nets.py:Small"
max-params = 1000
"""
TESTS = """
import pytest, torch
from nets import Small

def test_a_name(layerscope_budget):
    layerscope_budget("lenet5")

def test_a_file(layerscope_budget):
    layerscope_budget("nets.py:Small", input="1x3x8x8", max_params="1k")

def test_the_file_s_limits_and_input(layerscope_budget):
    assert layerscope_budget(Small()).inputs[0].shape == (1, 3, 16, 16)

def test_limits_by_name(layerscope_budget):
    layerscope_budget(Small(), budget="wide", input_size=(1, 3, 8, 8))

def test_two_inputs(layerscope_budget):
    layerscope_budget(Small(), input_size=(1, 3, 8, 8))

def test_too_wide(layerscope_budget):
    layerscope_budget(Small(64), budget="wide", input_data=torch.zeros(2, 3, 8, 8))

def test_the_model_is_not_changed(layerscope_budget):
    model = Small().train()
    before = {name: array.clone() for name, array in model.state_dict().items()}
    layerscope_budget(model, input_size=(1, 3, 8, 8), max_params="1k")
    assert model.training
    assert all(torch.equal(array, before[name]) for name, array in model.state_dict().items())
"""


def test_a_ci_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("nets.py", NETS), ("pyproject.toml", BUDGETS), ("test_nets.py", TESTS)):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider",
         "--junitxml=tests.xml"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "2 failed, 5 passed" in done.stdout, done.stdout
    assert "wide: params 1,792, over the limit of 1,000 by 792 (79.2%); most in conv" in done.stdout
    assert "input_size: the budget of Small has an input; remove one of them" in done.stdout
    assert 'failures="2"' in (tmp_path / "tests.xml").read_text()
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--as", "junit", "-o", "budgets.xml"]) == 0
    assert 'failures="0"' in (tmp_path / "budgets.xml").read_text()
    capsys.readouterr()
