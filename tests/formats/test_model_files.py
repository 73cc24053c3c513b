"""Names of models and files of weights, as far as they need no PyTorch."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.errors import FormatError
from layerscope.formats import looks_like_a_file, names_a_model
from tests.formats.stored_files import safetensors


@pytest.mark.parametrize(
    "name, is_model",
    [
        ("torchvision:resnet50", True),
        ("timm:vit_tiny_patch16_224", True),
        ("hf:some/config.json", True),
        ("my_file.py:make_model", True),
        ("/a/b/my_file.py:make.model", True),
        ("package.module:attribute", True),
        ("resnet50", False),
        ("net.onnx", False),
        ("a/b.prototxt", False),
    ],
)
def test_what_names_a_model(name: str, is_model: bool) -> None:
    assert names_a_model(name) == is_model
    if is_model:
        assert looks_like_a_file(name)


def test_safetensors_need_no_torch(tmp_path: Path) -> None:
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    safetensors(first, {"net.0.weight": ("F16", (4, 3)), "net.0.bias": ("F16", (4,))})
    safetensors(second, {"head.weight": ("BF16", (2, 4)), "scale": ("F32", ())})
    report = layerscope.analyze(str(first))
    assert report.total_params == 16
    assert report.totals.param_bytes == 32
    assert report.coverage.unknown == {"weights": 1}
    assert "parameters only" in report.graph.notes[0]
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": first.name, "y": second.name}}))
    assert layerscope.analyze(str(index)).total_params == 16 + 8 + 1


@pytest.mark.parametrize(
    "data, message",
    [
        (struct.pack("<Q", 1 << 60), "a header of"),
        (struct.pack("<Q", 4) + b"{{{{", "no JSON"),
        (struct.pack("<Q", 8) + b'{"a": 3}', "without dtype or shape"),
        (struct.pack("<Q", 2) + b"{}", "no arrays in it"),
        (b"", "a header of 0 bytes"),
    ],
)
def test_broken_safetensors(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message):
        layerscope.analyze(str(path))


class Bomb:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('it ran')",))


def test_no_pickle_is_run(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": Bomb()}))
    with pytest.raises(FormatError, match=r"builtins\.exec, which is code and is not run"):
        layerscope.analyze(str(path))
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(
        FormatError, match=r"a pickle of other values, expected a file of torch\.save"
    ):
        layerscope.analyze(str(path))


def test_a_path_object_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    from layerscope.cli import run

    assert run(["export", "lenet5", "--zero-weights", "-o", str(path)]) == 0
    assert layerscope.analyze(path).totals == layerscope.analyze(str(path)).totals
    assert layerscope.load(path) == layerscope.load(str(path))
    with pytest.raises(layerscope.LayerscopeError, match=r"missing\.onnx"):
        layerscope.analyze(tmp_path / "missing.onnx")
