"""Models that PyTorch exports to ONNX: their parameters are those that training changes.

Every model is exported twice with other parameters and the same buffers. Arrays of the file that
differ were made from parameters, whatever the exporter folded; all others are buffers or constants.
"""

from __future__ import annotations

import hashlib
import warnings
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

from torch import nn  # noqa: E402, TID251

import layerscope  # noqa: E402
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models  # noqa: E402

try:
    VISION: Any = torchvision_models(torch)
except ImportError:
    VISION = None
TIMM = find_spec("timm") is not None and VISION is not None

# timm's name, and what makes it small
MODELS: dict[str, dict[str, Any]] = {
    "resnet10t": {},
    "resnetblur18": {},  # blur kernels
    "mobilenetv3_small_050": {},
    "poolformer_s12": {"layers": (1, 1, 1, 1)},  # group norms
    "mobilevitv2_050": {},
    "convnext_atto": {"depths": (1, 1, 1, 1)},
    "vit_tiny_patch16_224": {"depth": 2},
    "swin_tiny_patch4_window7_224": {  # masks, tables of positions and their indices
        "embed_dim": 24, "depths": (2, 2, 2, 2), "num_heads": (2, 2, 2, 2),
    },
    "cait_xxs24_224": {"depth": 2},
    "xcit_nano_12_p16_224": {"depth": 2},
    "mixer_s32_224": {},
    "levit_128s": {},
    "regnety_002": {},
}  # fmt: skip

FOLDED = (
    "resnet10t", "resnetblur18", "mobilenetv3_small_050", "poolformer_s12", "vit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
)  # fmt: skip


class Norms(nn.Module):  # type: ignore[misc]
    """A group norm, which TorchScript's exporter writes as an instance norm with dummies."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, bias=True)
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(x)).relu()


class Mixed(nn.Module):  # type: ignore[misc]
    """Parameters, buffers and constants that one kind of arithmetic reads."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.gain = nn.Parameter(torch.rand(()))
        self.table = nn.Parameter(torch.rand(5, 6))
        mask = torch.zeros(5, 6)
        mask[:, 3:] = -100.0
        self.register_buffer("mask", mask)
        self.register_buffer("index", torch.arange(6).flip(0))

    def forward(self, x: Any) -> Any:
        x = self.linear(x) * self.gain + self.table + self.mask
        return x[..., self.index] + torch.linspace(0, 1, 30).view(5, 6)


def changed(model: Any, seed: int) -> None:
    luck = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for param in model.parameters():
            param.add_(torch.randn(param.shape, generator=luck) * 0.05 + 0.01)


def arrays(path: Path) -> dict[str, tuple[int, str]]:
    """Numbers and a digest of every initializer and Constant of a file."""
    proto = onnx.load(path)
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            stored[node.output[0]] = node.attribute[0].t
    return {
        name: (prod(tensor.dims), hashlib.md5(onnx.numpy_helper.to_array(tensor)).hexdigest())
        for name, tensor in stored.items()
    }


def exported(model: Any, shape: tuple[int, ...], path: Path, way: str) -> Path:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "dynamo":
            torch.onnx.export(model, (x,), dynamo=True, verbose=False).save(path)
        else:
            kept = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
            more = kept if way == "kept" else {}
            torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, **more)
    return path


def learned(model: Any, shape: tuple[int, ...], folder: Path, way: str) -> tuple[int, Any]:
    """Numbers that depend on parameters, and the report of the file."""
    model = model.eval()
    changed(model, 1)
    first = exported(model, shape, folder / "first.onnx", way)
    report = layerscope.analyze(str(first))
    before = arrays(first)
    changed(model, 2)
    after = arrays(exported(model, shape, folder / "second.onnx", way))
    assert before.keys() == after.keys()
    return sum(count for name, (count, told) in before.items() if after[name][1] != told), report


def timm_model(name: str) -> tuple[Any, tuple[int, ...]]:
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, **MODELS[name])
    return model, (1, *model.pretrained_cfg["input_size"])


@pytest.mark.skipif(not TIMM, reason="timm and torchvision are not installed")
@pytest.mark.parametrize("name", MODELS)
def test_parameters_of_a_torchscript_export(name: str, tmp_path: Path) -> None:
    """Nothing folded: the file has the parameters of the model."""
    model, shape = timm_model(name)
    changed(model.eval(), 1)  # or equal arrays, such as new biases, would be stored once
    report = layerscope.analyze(str(exported(model, shape, tmp_path / "m.onnx", "kept")))
    assert report.totals.params == sum(p.numel() for p in model.parameters())


@pytest.mark.skipif(not TIMM, reason="timm and torchvision are not installed")
@pytest.mark.parametrize("name", FOLDED)
def test_parameters_of_a_folded_export(name: str, tmp_path: Path) -> None:
    """Norms folded into convolutions, matrices turned, tables of positions looked up."""
    model, shape = timm_model(name)
    expected, report = learned(model, shape, tmp_path, "folded")
    assert report.totals.params == expected


WAYS = ["kept", "folded"]
if find_spec("onnxscript") is not None:
    WAYS.append("dynamo")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("make", "shape", "count"),
    [(Norms, (1, 3, 8, 8), 448 + 32), (Mixed, (2, 5, 6), 42 + 1 + 30)],
)
def test_small_modules(
    make: Any, shape: tuple[int, ...], count: int, way: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    expected, report = learned(make(), shape, tmp_path, way)
    assert report.totals.params == expected == count


@pytest.mark.skipif("dynamo" not in WAYS or not TIMM, reason="onnxscript or timm is not installed")
@pytest.mark.parametrize("name", ["resnet10t", "poolformer_s12", "swin_tiny_patch4_window7_224"])
def test_parameters_of_an_exported_program(name: str, tmp_path: Path) -> None:
    model, shape = timm_model(name)
    expected, report = learned(model, shape, tmp_path, "dynamo")
    assert report.totals.params == expected


@pytest.mark.skipif(VISION is None, reason="torchvision is not installed")
def test_a_buffer_that_a_file_cannot_tell_is_named(tmp_path: Path) -> None:
    """Coordinates that Swin V2 keeps in its state dict, as TorchScript's exporter writes them."""
    assert VISION is not None
    model = VISION.swin_transformer.SwinTransformer(
        [4, 4], 24, [2], [2], [8, 8], num_classes=3,
        block=VISION.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=VISION.swin_transformer.PatchMergingV2,
    )  # fmt: skip
    expected, report = learned(model, (1, 3, 32, 32), tmp_path, "kept")
    assert report.totals.params == expected + 15 * 15 * 2
    (note,) = [note for note in report.graph.notes if "does not tell" in note]
    assert "relative_coords_table" in note
