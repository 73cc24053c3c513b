"""Every documented form of NET, and every command that takes one, as two tables.

`test_network_forms.py` crosses them without PyTorch, `test_torch_network_forms.py` the forms that
need it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import onnx  # noqa: TID251

from layerscope.cli import run
from layerscope.formats import FORMATS
from tests.codecs import wire
from tests.formats.caffe.test_caffemodel import LENET
from tests.formats.matconvnet import matfiles
from tests.formats.matconvnet.matnets import patch32
from tests.formats.onnx.onnx_files import conv, model, zeros
from tests.formats.stored_files import gguf, safetensors
from tests.formats.test_pt2 import saved, tiny

Make = Callable[[Path], str]


class Form(NamedTuple):
    """How a network is given: what writes it into a folder and returns NET."""

    make: Make
    torch: bool = False
    arrays_only: bool = False  # nothing in it that could be run


class Command(NamedTuple):
    """What stands around NET on the command line."""

    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    runs: bool = False  # needs a network whose operations are known
    second: bool = False  # NET is given twice

    def line(self, network: str, folder: Path) -> list[str]:
        """The whole of it."""
        twice = [network] if self.second else []
        return [*self.before, network, *twice, *(a.format(folder=folder) for a in self.after)]


def text(name: str, content: str) -> Make:
    def make(folder: Path) -> str:
        (folder / name).write_text(content, encoding="utf-8")
        return str(folder / name)

    return make


def data(name: str, content: bytes) -> Make:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return make


def onnx_file(folder: Path) -> str:
    onnx.save(model([conv()], stored=[zeros("w1", 4, 3, 3, 3)]), folder / "net.onnx")
    return str(folder / "net.onnx")


def arrays(folder: Path) -> str:
    safetensors(folder / "net.safetensors", {"fc.weight": ("F32", [4, 3])})
    return str(folder / "net.safetensors")


def index(folder: Path) -> str:
    arrays(folder)
    listed = {"metadata": {}, "weight_map": {"fc.weight": "net.safetensors"}}
    return text("net.safetensors.index.json", json.dumps(listed))(folder)


def state_dict(folder: Path) -> str:
    import torch  # noqa: TID251

    torch.save(torch.nn.Linear(3, 4).state_dict(), folder / "net.pt")
    return str(folder / "net.pt")


def bin_index(folder: Path) -> str:
    state_dict(folder)
    (folder / "net.pt").rename(folder / "pytorch_model.bin")
    listed = {"weight_map": {"weight": "pytorch_model.bin"}}
    return text("pytorch_model.bin.index.json", json.dumps(listed))(folder)


def kept_run(folder: Path) -> str:
    path = str(folder / "run.json")
    assert run(["measure", "lenet5", "-t", "1", "-o", path]) == 0
    return path


PYTHON = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))

def make_model():
    return Net()

ready = Net()
"""
CONFIG = json.dumps(
    {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_embd": 24,
     "n_head": 2, "vocab_size": 50, "n_positions": 128}
)  # fmt: skip


def own(name: str) -> Make:
    return lambda folder: f"{text('my_file.py', PYTHON)(folder)}:{name}"


def folder_of_config(folder: Path) -> str:
    return f"{Path(text('config.json', CONFIG)(folder)).parent}/"


TABLE = """
# Notes

| layer | type | kernel | output shape | params |
| --- | --- | --- | --- | --- |
| data | input | | 1x28x28 | |
| conv1 | conv | 5x5 | 6x24x24 | 156 |
| pool1 | max pool | 2x2 | 6x12x12 | 0 |
| fc | fully connected | | 10 | 8,650 |
"""
CALLS = """data = input("data", (1, 1, 28, 28))
x = conv(data, 6, 5, name="conv1")
x = max_pool(x, 2, name="pool1")
x = linear(x, 10, flatten=True, name="fc")
"""
FORMS = {
    "zoo name": Form(lambda folder: "lenet5"),
    "zoo name, other spelling": Form(lambda folder: "LeNet_5"),
    "prototxt": Form(text("net.prototxt", LENET)),
    "builder": Form(text("net.builder", CALLS)),
    "caffemodel": Form(data("net.caffemodel", wire.lenet())),
    "mat": Form(lambda folder: matfiles.write(folder / "net.mat", {"net": patch32()})),
    "onnx": Form(onnx_file),
    "pt2": Form(lambda folder: saved(folder, tiny())),
    "document": Form(text("notes.md", TABLE)),
    "document#1": Form(lambda folder: f"{text('notes.txt', TABLE)(folder)}#1"),
    "safetensors": Form(arrays, arrays_only=True),
    "gguf": Form(
        lambda folder: gguf(folder / "net.gguf", {"fc.weight": ("q8_0", [4, 32])}),
        arrays_only=True,
    ),
    "safetensors index": Form(index, arrays_only=True),
    "state dict": Form(state_dict, torch=True, arrays_only=True),
    "bin index": Form(bin_index, torch=True, arrays_only=True),
    "torchvision:": Form(lambda folder: "torchvision:squeezenet1_1", torch=True),
    "timm:": Form(lambda folder: "timm:test_resnet", torch=True),
    "hf:config.json": Form(lambda folder: f"hf:{text('config.json', CONFIG)(folder)}", torch=True),
    "hf:other.json": Form(lambda folder: f"hf:{text('gpt.json', CONFIG)(folder)}", torch=True),
    "hf:folder": Form(
        lambda folder: f"hf:{Path(text('config.json', CONFIG)(folder)).parent}", torch=True
    ),
    "file.py:function": Form(own("make_model"), torch=True),
    "file.py:Class": Form(own("Net"), torch=True),
    "file.py:module": Form(own("ready"), torch=True),
    "folder with a config.json": Form(folder_of_config, torch=True),
    "package:name": Form(lambda folder: "torchvision.models:squeezenet1_1", torch=True),
}
COMMANDS = {
    "show": Command(("show",), ("--depth", "1")),
    "show --total": Command(("show",), ("--total",)),
    "show --as json": Command(("show",), ("--as", "json")),
    "compare": Command(("compare", "lenet5")),
    "compare with itself": Command(("compare",), second=True),
    "explain": Command(("explain",)),
    "check": Command(("check",), ("--max-params", "1T", "--allow-unknown")),
    "measure": Command(("measure",), ("-t", "1"), runs=True),
    "predict": Command(("predict",), ("--on", "a100"), runs=True),
    "plot": Command(("plot",), ("--of", "memory"), runs=True),
    "report": Command(("report",), ("--as", "json")),
    "export json": Command(("export",), ("--to", "json")),
    "export dot": Command(("export",), ("--to", "dot")),
    "export onnx": Command(("export",), ("-o", "{folder}/out.onnx"), runs=True),
}
# What a user may give by mistake, and what is said of it; the exit code is 2 or 3.
MISTAKES: dict[str, tuple[Make, int, str]] = {
    "no such name": (lambda folder: "lenet55", 2, "did you mean lenet5"),
    "no such prefix": (lambda folder: "torchvison:resnet18", 3, "did you mean torchvision:"),
    "a configuration": (text("config.json", CONFIG), 2, "give hf:"),
    "JSON of others": (text("other.json", '{"a": 1}'), 3, "JSON that is no network"),
    "broken JSON": (text("other.json", '{"a": '), 3, "expected JSON"),
    "an empty file": (data("net.onnx", b""), 3, "net.onnx"),
    "text of others": (text("notes.txt", "hello"), 3, "no network in it"),
    **{
        f"no such file {suffix}": (
            lambda folder, suffix=suffix: str(folder / f"none{suffix}"),  # type: ignore[misc]
            3,
            "No such file",
        )
        for suffix in (".json", *(suffix for kind in FORMATS for suffix in kind.suffixes))
    },
}  # fmt: skip
