"""PyTorch models by name, and files of weights that PyTorch writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.errors import FormatError, ModelError, UnknownName
from tests.formats.torch.torch_nets import torch, vision

FILE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3)
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        return self.last(self.first(x).mean((2, 3)))


def make_model():
    return Net()


def make_words():
    return Words()


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 16)

    def forward(self, input_ids):
        return self.table(input_ids)


ready = Net(4)
number = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "my_file.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def test_a_file_of_ones_own(own: str) -> None:
    report = layerscope.analyze(f"{own}:make_model")
    assert report.total_params == 3 * 8 * 9 + 8 + 90
    assert report.total_macs == 222 * 222 * 8 * 27 + 80
    small = layerscope.analyze(f"{own}:make_model", input=(3, 10, 10), batch=2)
    assert small.inputs[0].shape == (2, 3, 10, 10)
    assert layerscope.analyze(f"{own}:ready", input=(1, 3, 10, 10)).total_params == 4 * 28 + 50
    words = layerscope.analyze(f"{own}:make_words")
    assert (words.inputs[0].name, words.inputs[0].dtype) == ("input_ids", "int64")
    assert layerscope.analyze(f"{own}:make_words", input={"input_ids": (2, 5)}).batch == 2


def test_names_that_lead_nowhere(own: str) -> None:
    with pytest.raises(UnknownName, match="did you mean make_model"):
        layerscope.analyze(f"{own}:make_modell")
    with pytest.raises(FormatError, match=r"expected a torch\.nn\.Module or a function"):
        layerscope.analyze(f"{own}:number")
    with pytest.raises(FormatError, match="no such file"):
        layerscope.analyze("nowhere/at_all.py:make")
    with pytest.raises(FormatError, match="expected a module that can be imported"):
        layerscope.analyze("no_such_package_of_mine:make")
    with pytest.raises(FormatError, match=r"expected the config\.json"):
        layerscope.analyze("hf:nowhere/config.json")


def test_a_guess_that_fails_says_so(own: str) -> None:
    with open(own, "a", encoding="utf-8") as file:
        file.write("\nflat = nn.Sequential(nn.Linear(7, 2))\n")
    with pytest.raises(ModelError, match=r"0 \(Linear\).*1x3x224x224 was a guess; give the shape"):
        layerscope.analyze(f"{own}:flat")
    assert layerscope.analyze(f"{own}:flat", input=(5, 7)).total_macs == 70


@pytest.mark.filterwarnings("ignore")
def test_torchvision_by_name() -> None:
    vision()
    report = layerscope.analyze("torchvision:resnet18")
    assert (report.total_macs, report.total_params) == (1_814_073_344, 11_689_512)
    with pytest.raises(UnknownName, match="did you mean resnet18"):
        layerscope.analyze("torchvision:resnet180")
    assert layerscope.analyze("torchvision:inception_v3").inputs[0].shape == (1, 3, 299, 299)


@pytest.mark.filterwarnings("ignore")
def test_timm_by_name() -> None:
    vision()
    pytest.importorskip("timm", reason="timm is not installed")
    report = layerscope.analyze("timm:vit_tiny_patch16_224")
    assert (report.total_macs, report.total_params) == (1_253_683_200, 5_717_416)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "config, macs, params",
    [
        ({"model_type": "bert"}, 11_174_215_680, 109_482_240),
        (
            {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2},
            2 * 128 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 128 * 4096) + 128 * 4096 * 32000,
            2 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 2 * 4096 * 32000 + 4096,
        ),
        (
            {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"],
             "num_hidden_layers": 2},
            117_985_771_520, 3_164_688_384,
        ),
    ],
)  # fmt: skip
def test_transformers_from_a_config(tmp_path: Path, config: Any, macs: int, params: int) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    report = layerscope.analyze(f"hf:{path}")
    assert (report.total_macs, report.total_params) == (macs, params)
    assert not report.coverage.unknown


def test_a_config_with_a_duplicate_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "bert", "hidden_size": 32, "hidden_size": 64}')
    with pytest.raises(FormatError, match="duplicate key 'hidden_size'"):
        layerscope.analyze(f"hf:{path}")


def test_state_dicts(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    path = tmp_path / "net.pt"
    torch.save({"model": net.state_dict(), "epoch": 3}, path)
    report = layerscope.analyze(str(path))
    assert report.total_params == 4 * 27 + 4 + 8
    assert report.totals.buffers == 9
    tied = torch.zeros(5, 2)
    torch.save({"a": tied, "b": tied}, path)
    assert layerscope.analyze(str(path)).total_params == 10


def test_pickled_modules_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    torch.save(torch.nn.Linear(3, 4), path)
    with pytest.raises(FormatError, match=r"Linear, which is code and is not run; save the"):
        layerscope.analyze(str(path))
