"""Figures of PyTorch models that every other counter gets wrong somewhere, on every way to run."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import (
    Attending,
    DetectorParts,
    Einsum,
    Reused,
    nn,
    on,
    torch,
    vision,
)

pytestmark = pytest.mark.filterwarnings("ignore")
IMAGE = (1, 3, 224, 224)

EIGHT = {
    "resnet18": (lambda: vision().resnet18(weights=None), [IMAGE], 1_814_073_344),
    "vit_b_16": (lambda: vision().vit_b_16(weights=None), [IMAGE], 17_563_828_224),
    "swin_t": (lambda: vision().swin_t(weights=None), [IMAGE], 4_490_566_656),
    "transposed": (
        lambda: nn.ConvTranspose2d(6, 6, 2, stride=2, groups=3), [(1, 6, 8, 8)], 3_072
    ),
    "lstm": (lambda: nn.LSTM(10, 20), [(5, 1, 10)], 12_000),
    "reused": (Reused, [(1, 100)], 30_000),
    "einsum": (Einsum, [(16, 64), (64, 64)], 65_536),
}  # fmt: skip
RIGHT = {
    "resnet50": 4_089_184_256, "resnet152": 11_513_626_624, "mobilenet_v2": 300_774_272,
    "densenet201": 4_291_365_888, "inception_v3": 5_713_216_096, "efficientnet_b0": 385_814_752,
    "convnext_base": 15_354_729_472, "vgg16": 15_470_264_320, "alexnet": 714_188_480,
}  # fmt: skip


def vit_tiny() -> Any:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    return timm.create_model("vit_tiny_patch16_224")


def ways(make: Any, sizes: Any) -> Iterator[Any]:
    """Reports on CPU and meta, with gradients and without, in training and not."""
    for device in ("cpu", "meta"):
        model = on(device, make)
        for training in (True, False):
            model.train(training)
            for grad in (True, False):
                with torch.set_grad_enabled(grad):
                    yield (
                        model,
                        layerscope.summary(model, sizes if sizes[1:] else sizes[0], verbose=0),
                    )


@pytest.mark.parametrize("case", EIGHT)
def test_the_cases_that_counters_fail(case: str) -> None:
    make, sizes, macs = EIGHT[case]
    for model, report in ways(make, sizes):
        assert report.total_macs == macs
        assert report.total_params == sum(p.numel() for p in model.parameters())
        assert report.trainable_params == report.total_params
        assert not report.coverage.unknown


def test_vit_tiny() -> None:
    vision()
    for _, report in ways(vit_tiny, [IMAGE]):
        assert report.total_macs == 1_253_683_200
        assert report.total_params == 5_717_416


@pytest.mark.parametrize("name", RIGHT)
def test_published_figures(name: str) -> None:
    told = {"init_weights": False} if name == "inception_v3" else {}
    model = on("meta", lambda: getattr(vision(), name)(weights=None, **told)).eval()
    side = 299 if name == "inception_v3" else 224
    report = layerscope.analyze(model, input_size=(1, 3, side, side))
    assert report.total_macs == RIGHT[name]
    assert report.total_params == sum(p.numel() for p in model.parameters())
    assert not report.coverage.unknown


SAMPLE = (
    "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet1_0", "mobilenet_v3_small", "googlenet",
    "efficientnet_v2_s", "resnext50_32x4d", "wide_resnet50_2", "maxvit_t", "swin_v2_s",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_torchvisions_own_figures(name: str, shared: Path) -> None:
    with open(shared / "truth" / "torchvision.csv", encoding="utf-8") as file:
        row = next(r for r in csv.DictReader(file) if r["builder"] == name)
    shape = tuple(map(int, row["input_confirmed"].split()[0].split("x")))
    report = layerscope.analyze(f"torchvision:{name}", input={"": shape})
    assert report.total_params == int(row["num_params"])
    assert f"{report.total_macs / 1e9:.3f}" == f"{float(row['gmacs_called_ops']):.3f}"
    assert not report.coverage.unknown


DETECTORS = {
    "retinanet_resnet50_fpn": "151.540", "fcos_resnet50_fpn": "128.207",
    "maskrcnn_resnet50_fpn": "134.380", "fasterrcnn_resnet50_fpn": "134.380",
    "ssd300_vgg16": "34.858", "ssdlite320_mobilenet_v3_large": "0.583",
}  # fmt: skip


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors(name: str) -> None:
    """As published, on as many proposals as they keep; no detection is left of untrained ones."""
    build = getattr(vision().detection, name)
    model = on("meta", lambda: build(weights=None, weights_backbone=None)).eval()
    parts = DetectorParts(model)
    report = layerscope.analyze(parts, input_size=(1, 3, parts.side, parts.side))
    assert f"{report.total_macs / 1e9:.3f}" == DETECTORS[name]
    assert not report.coverage.unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retinanet_resnet50_fpn", "fcos_resnet50_fpn"])
def test_live_detectors(name: str) -> None:
    """Whose products do not depend on what they find: the whole model, run for real."""
    model = getattr(vision().detection, name)(weights=None, weights_backbone=None).eval()
    report = layerscope.summary(model, (1, 3, 512, 512), verbose=0)
    assert f"{report.total_macs / 1e9:.3f}" == DETECTORS[name]
    assert not report.coverage.unknown


@pytest.fixture
def suppression(monkeypatch: pytest.MonkeyPatch) -> None:
    """Non-maximum suppression in Python, where torchvision's compiled operators are missing."""
    vision()
    from torchvision import extension
    from torchvision.ops import boxes

    if extension._has_ops():
        return

    def nms(corners: Any, scores: Any, threshold: float) -> Any:
        left = torch.argsort(scores, descending=True, stable=True)
        over = boxes.box_iou(corners, corners) > threshold
        kept = []
        while left.numel():
            kept.append(int(left[0]))
            left = left[1:][~over[left[0], left[1:]]]
        return torch.tensor(kept, dtype=torch.int64)

    monkeypatch.setattr(boxes, "nms", nms)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn"])
def test_live_detectors_with_proposals(name: str, suppression: None) -> None:
    """The published figures are of a run that keeps 1000 proposals and detects nothing."""
    model = getattr(vision().detection, name)(weights=None, weights_backbone=None).eval()
    with torch.no_grad():
        model.roi_heads.box_predictor.cls_score.bias[0] = 100  # all is background
    report = layerscope.summary(model, (1, 3, 512, 512), verbose=0)
    assert f"{report.total_macs / 1e9:.3f}" == DETECTORS[name]
    assert report.total_params == sum(p.numel() for p in model.parameters())


def test_attention_in_every_form() -> None:
    shapes = [(2, 8, 16, 32), (2, 2, 24, 32), (2, 2, 24, 32)]
    report = layerscope.summary(Attending(), shapes, verbose=0)
    assert report.total_macs == 2 * (2 * 8 * 16 * 24 * (32 + 32))
    assert not report.coverage.unknown


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_multi_head_attention(batch_first: bool, same: bool) -> None:
    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=batch_first)

        def forward(self, x: Any, y: Any) -> Any:
            return self.attention(x, x if same else y, x if same else y, need_weights=False)[0]

    for _, report in ways(Net, [(6, 6, 32), (6, 6, 32)]):
        assert report.total_macs == 36 * 32 * 32 * 4 + 2 * 6 * 4 * 6 * 6 * 8
        assert report.total_params == 4 * 32 * 32 + 4 * 32


def test_the_fast_path_of_an_encoder() -> None:
    """Which PyTorch takes without gradients in eval: the same graph on every way."""
    graphs = {
        report.totals.macs: report.graph.nodes
        for _, report in ways(lambda: nn.TransformerEncoderLayer(32, 4, 64), [(5, 3, 32)])
    }
    (macs,) = graphs
    assert macs == 15 * 32 * 32 * 4 + 2 * 3 * 4 * 25 * 8 + 2 * 15 * 32 * 64


@pytest.mark.parametrize("kind, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers(kind: str, gates: int) -> None:
    for model, report in ways(
        lambda: getattr(nn, kind)(10, 20, 2, bidirectional=True, batch_first=True), [(3, 5, 10)]
    ):
        per_step = gates * 20 * (10 + 20) + gates * 20 * (40 + 20)
        assert report.total_macs == 2 * 15 * per_step
        assert report.total_params == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("bias", [True, False])
def test_convolutions_of_every_kind(bias: bool) -> None:
    net = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding="same", groups=8, bias=bias),
        nn.Conv2d(8, 12, (1, 3), stride=(1, 2), dilation=(1, 2), bias=bias),
        nn.ConvTranspose2d(12, 6, 3, stride=2, output_padding=1, bias=bias),
        nn.Conv2d(6, 4, 3, padding=1, padding_mode="circular", bias=bias),
    )
    report = layerscope.summary(net, (2, 8, 10, 16), verbose=0)
    spots = {"depthwise": 10 * 16 * 8 * 9, "dilated": 10 * 6 * 12 * 8 * 3}
    spots["transposed"] = 10 * 6 * 12 * 6 * 9
    last = net(torch.zeros(2, 8, 10, 16)).shape
    spots["circular"] = last[2] * last[3] * 4 * 6 * 9
    assert report.total_macs == 2 * sum(spots.values())


def test_a_module_without_a_batch() -> None:
    report = layerscope.summary(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)), (3, 10, 10), verbose=0
    )
    assert report.total_macs == 64 * 4 * 27
    assert report.tensors[report.graph.outputs[0]].shape == (4, 4, 4)
