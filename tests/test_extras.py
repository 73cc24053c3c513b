"""Every extra that an error names exists, and a library that is missing is named with its extra."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from layerscope.engines import ENGINES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
BASE = {"click", "msgspec"}
# A fresh interpreter in which these libraries cannot be imported.
PROGRAM = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from layerscope.cli import run
sys.exit(run(sys.argv[2:]))
"""


def run_without(libraries: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, libraries, *args], capture_output=True, text=True
    )


def test_the_base_install_is_small() -> None:
    names = {re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]}  # type: ignore[index]
    assert names == BASE


def test_extras_that_errors_name_exist() -> None:
    named = {
        extra
        for path in (ROOT / "src").rglob("*.py")
        for extra in re.findall(
            r'MissingExtra\([^)]*?,\s*"([\w-]+)"\)', path.read_text(encoding="utf-8")
        )
    }
    named |= {extra for engine in ENGINES.values() for extra in engine.extra.split(",")}
    assert {"torch", "plot", "frame", "mat", "hf", "measure"} <= named
    assert not named - set(EXTRAS)


@pytest.mark.parametrize(
    ("libraries", "args", "extra"),
    [
        ("onnx,onnxruntime,numpy", ["measure", "lenet5"], "measure"),
        ("onnx,onnxruntime,numpy", ["machine"], "measure"),
        ("onnx,onnxruntime,numpy", ["machine", "--calibrate"], "measure"),
        ("onnx,onnxruntime,numpy", ["export", "lenet5", "-o", "{folder}/lenet5.onnx"], "onnx"),
        ("onnx,numpy", ["measure", "lenet5", "--engine", "openvino"], "openvino"),
        ("onnxruntime", ["measure", "lenet5"], "measure"),
        ("torch", ["measure", "lenet5", "--engine", "torch"], "measure,torch"),
        ("torch", ["show", "torchvision:resnet18"], "torch"),
        ("vl_convert", ["plot", "lenet5", "-o", "{folder}/memory.png"], "plot"),
        ("vl_convert", ["plot", "lenet5", "-o", "{folder}/memory.svg"], "plot"),
        ("vl_convert", ["plot", "lenet5", "--of", "costs", "-o", "{folder}/costs.pdf"], "plot"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    libraries: str, args: list[str], extra: str, tmp_path: Path
) -> None:
    done = run_without(libraries, *[arg.format(folder=tmp_path) for arg in args])
    assert done.returncode == 4
    assert f"pip install 'layerscope[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


NO_EXTRA = (
    ["show", "lenet5"],
    ["predict", "lenet5", "--on", "h100"],
    ["machine", "--list"],
    ["export", "lenet5", "--to", "dot"],
    ["compare", "lenet5", "alexnet"],
    ["explain", "lenet5"],
    ["plot", "lenet5"],
    ["plot", "lenet5", "--of", "roofline", "--on", "h100"],
)


@pytest.mark.parametrize("args", NO_EXTRA)
def test_commands_that_need_no_extra(args: list[str]) -> None:
    done = run_without("onnx,onnxruntime,numpy,torch,pandas,h5py,vl_convert,openvino", *args)
    assert done.returncode == 0, done.stderr
