"""Models of torchvision by name: detectors, sizes of images, operators that are missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.cli import run
from layerscope.formats.torch.model_names import find
from layerscope.formats.torch.model_names.torchvision_operators import (
    GUARDS,
    nms,
    python_operators,
    roi_align,
)
from tests.formats.torch.torch_nets import DetectorParts, torch, vision

pytestmark = pytest.mark.filterwarnings("ignore")
ONE_STAGE = ["retinanet_resnet50_fpn", "fcos_resnet50_fpn"]
SMALL = ["fasterrcnn_mobilenet_v3_large_320_fpn", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large"]
LARGE = [
    "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2",
    "keypointrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn_v2",
]  # fmt: skip


def products(name: str, report: Any) -> int:
    """Multiply-adds of all parts that have weights, on as many finds as the run had."""
    detector = find(f"torchvision:{name}").module
    heads = [layer for layer in report.layers if layer.name.startswith("roi_heads.")]
    rows = [layer.output[0] for layer in heads if layer.name == "roi_heads.box_head.fc6"]
    rows += [layer.output[0] for layer in heads if layer.name == "roi_heads.box_head.5"]
    found = [
        layer.output[0]
        for layer in heads
        if layer.name in ("roi_heads.mask_head.0.0", "roi_heads.keypoint_head.0")
    ]
    parts = DetectorParts(detector, rows[0] if rows else 0, found[0] if found else 0)
    return layerscope.analyze(parts, input_size=(1, 3, parts.side, parts.side)).total_macs


def check_detector(name: str) -> Any:
    report = layerscope.analyze(f"torchvision:{name}")
    assert not report.coverage.unknown
    expected = sum(p.numel() for p in find(f"torchvision:{name}").module.parameters())
    assert report.total_params == expected
    assert report.total_macs == products(name, report)
    assert report.batch == 1
    assert any("random weights (seed 0)" in note for note in report.notes)
    return report


@pytest.mark.parametrize("name", SMALL)
def test_detectors_that_are_small(name: str) -> None:
    report = check_detector(name)
    assert layerscope.analyze(f"torchvision:{name}").total_macs == report.total_macs  # seeded


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONE_STAGE, *LARGE])
def test_detectors_that_are_large(name: str) -> None:
    check_detector(name)


def test_all_detectors_are_tried() -> None:
    models = vision()
    assert sorted([*ONE_STAGE, *SMALL, *LARGE]) == sorted(
        models.list_models(module=models.detection)
    )


def test_images_of_a_detector_are_a_list() -> None:
    name = f"torchvision:{SMALL[2]}"
    two = layerscope.analyze(name, batch=2)
    assert [tensor.shape for tensor in two.inputs] == [(3, 320, 320)] * 2
    assert two.batch == 2
    assert " · batch 2 · " in two.stamp
    given = layerscope.analyze(name, input=(3, 200, 300))
    assert [tensor.shape for tensor in given.inputs] == [(3, 200, 300)]
    one = layerscope.analyze(name)
    assert two.total_macs == 2 * one.total_macs == 2 * given.total_macs  # resized to 320 x 320


DEFORMED = """
import torch
from torchvision.ops import deform_conv2d


class Deformed(torch.nn.Module):
    def forward(self, x):
        offset = x.new_zeros(1, 18, 6, 6)
        return deform_conv2d(x, offset, x.new_ones(4, 3, 3, 3))
"""


def test_a_missing_operator_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    vision()
    extension = sys.modules["torchvision.extension"]
    monkeypatch.setattr(extension, "_has_ops", lambda: False)
    code = tmp_path / "deformed.py"
    code.write_text(DEFORMED)
    asked = ["show", f"{code}:Deformed", "--input", "1x3x8x8"]
    assert run(asked) == 4
    error = capsys.readouterr().err
    assert "has no compiled operator torchvision::deform_conv2d, " in error
    assert "pip install --force-reinstall torchvision" in error


# Kernels in Python, for a torchvision without its compiled operators


def boxes_at_random(count: int, seed: int) -> tuple[Any, Any]:
    """Boxes of 4 corners, some of them empty or equal, and scores with ties."""
    random = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 20, (count, 2), generator=random)
    boxes = torch.cat([low, low + torch.randint(0, 12, (count, 2), generator=random)], 1).float()
    return boxes, torch.randint(0, 9, (count,), generator=random) / 10


def overlap(a: list[float], b: list[float]) -> float:
    """Intersection over union of two boxes; 0 for empty ones."""
    sides = [max(min(a[n + 2], b[n + 2]) - max(a[n], b[n]), 0.0) for n in range(2)]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    common = sides[0] * sides[1]
    return common / (sum(areas) - common) if sum(areas) > common else 0.0


@pytest.mark.parametrize("seed", range(20))
def test_suppression_is_that_of_its_definition(seed: int) -> None:
    boxes, scores = boxes_at_random(seed * 3, seed)
    corners, values = boxes.tolist(), scores.tolist()
    chosen: list[int] = []
    for n in sorted(range(len(values)), key=lambda n: -values[n]):  # stable: ties in order
        if all(overlap(corners[n], corners[other]) <= 0.5 for other in chosen):
            chosen.append(n)
    assert nms(boxes, scores, 0.5).tolist() == chosen


@pytest.mark.parametrize("ratio", [1, 2, 3, -1, 0])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_is_that_of_torchvision(ratio: int, aligned: bool) -> None:
    """Compared with torchvision's own function in Python, which has no rule for far outside."""
    vision()
    reference = sys.modules["torchvision.ops.roi_align"]._roi_align.__wrapped__
    random = torch.Generator().manual_seed(ratio + 7)
    features = torch.randn(2, 5, 11, 9, generator=random)
    low = torch.rand(30, 2, generator=random) * 12
    image = torch.randint(0, 2, (30, 1), generator=random).float()
    rois = torch.cat([image, low, low + torch.rand(30, 2, generator=random) * 4], 1)
    pooling = (0.5, 3, 2, ratio, aligned)
    torch.testing.assert_close(
        roi_align(features, rois, *pooling), reference(features, rois, *pooling)
    )


def test_samples_outside_of_the_image_are_zero() -> None:
    rois = torch.tensor([[0.0, 50.0, 50.0, 60.0, 60.0], [0.0, -9.0, -9.0, -5.0, -5.0]])
    assert not roi_align(torch.ones(1, 1, 8, 8), rois, 1.0, 2, 2, 2, True).any()
    assert not roi_align(torch.ones(1, 1, 8, 8), rois, 1.0, 2, 2, -1, True).any()


def test_torchvision_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its guards and the dispatcher have the kernels for as long as a capture needs them."""
    vision()
    monkeypatch.setattr(sys.modules["torchvision.extension"], "_has_ops", lambda: False)
    guards = [(sys.modules[path], name) for path, names in GUARDS.items() for name in names]
    before = [getattr(*guard) for guard in guards]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "CPU")
    if has_kernel:
        pytest.skip("this torchvision has its compiled operators")
    with python_operators(), python_operators():
        assert torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "CPU")
        assert all(getattr(*guard)() is True for guard in guards)
    assert [getattr(*guard) for guard in guards] == before
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "CPU")


@pytest.mark.parametrize(
    "name, shape",
    [
        ("vit_h_14", (1, 3, 224, 224)),
        ("vit_b_16", (1, 3, 224, 224)),
        ("inception_v3", (1, 3, 299, 299)),
        ("efficientnet_v2_s", (1, 3, 384, 384)),
        ("lraspp_mobilenet_v3_large", (1, 3, 520, 520)),
        ("r3d_18", (1, 3, 16, 112, 112)),
        ("mvit_v1_b", (1, 3, 16, 224, 224)),
    ],
)
def test_images_have_the_size_that_a_model_takes(name: str, shape: tuple[int, ...]) -> None:
    vision()
    report = layerscope.analyze(f"torchvision:{name}")
    assert report.inputs[0].shape == shape
    assert not report.coverage.unknown


def test_two_frames_of_optical_flow() -> None:
    vision()
    report = layerscope.analyze("torchvision:raft_small")
    assert [tensor.name for tensor in report.inputs] == ["image1", "image2"]


@pytest.mark.slow
def test_every_name_of_torchvision() -> None:
    """Each runs on the input that is guessed for it, with all its operators known."""
    models = vision()
    detectors = models.list_models(module=models.detection)
    failed = {}
    for name in models.list_models():
        if name in detectors:
            continue
        try:
            unknown = layerscope.analyze(f"torchvision:{name}").coverage.unknown
            if unknown:
                failed[name] = str(unknown)
        except layerscope.LayerscopeError as error:
            failed[name] = str(error)
    assert failed == {}


def test_the_random_state_stays_as_it_was() -> None:
    before = torch.get_rng_state().clone()
    layerscope.analyze(f"torchvision:{SMALL[2]}")
    assert torch.equal(torch.get_rng_state(), before)
