"""Models of torchvision by name: detectors, sizes of images, operators that are missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import MissingOperator
from layerscope.formats.torch.model_names import find
from tests.formats.torch.torch_nets import DetectorParts, torch, vision

pytestmark = pytest.mark.filterwarnings("ignore")
ONE_STAGE = ["retinanet_resnet50_fpn", "fcos_resnet50_fpn"]
SMALL = ["fasterrcnn_mobilenet_v3_large_320_fpn", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large"]
LARGE = [
    "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2",
    "keypointrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn_v2",
]  # fmt: skip


# may be unknown: they choose boxes, and have no multiply-adds
NO_PRODUCTS = {"torchvision.nms", "aten.index", "aten.index_put_", "aten._unique2"}


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Non-maximum suppression, box by box."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    rest, kept = scores.argsort(descending=True), []
    while rest.numel():
        first, rest = rest[0], rest[1:]
        kept.append(first)
        low = torch.maximum(boxes[first, :2], boxes[rest, :2])
        high = torch.minimum(boxes[first, 2:], boxes[rest, 2:])
        common = (high - low).clamp(min=0).prod(1)
        rest = rest[common / (area[first] + area[rest] - common) <= iou_threshold]
    return torch.stack(kept) if kept else rest


@pytest.fixture
def with_nms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torchvision with the operator that a build without compiled ones lacks."""
    vision()
    boxes = sys.modules["torchvision.ops.boxes"]
    if not sys.modules["torchvision.extension"]._has_ops():
        library = torch.library.Library("torchvision", "IMPL")
        library.impl("nms", nms, "CPU")
        monkeypatch.setattr(boxes, "_assert_has_ops", lambda: None)
        yield
        library._destroy()
    else:
        yield


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
    assert set(report.coverage.unknown) <= NO_PRODUCTS
    expected = sum(p.numel() for p in find(f"torchvision:{name}").module.parameters())
    assert report.total_params == expected
    assert report.total_macs == products(name, report)
    assert report.batch == 1
    assert any("random weights (seed 0)" in note for note in report.notes)
    return report


@pytest.mark.parametrize("name", SMALL)
def test_detectors_that_are_small(name: str, with_nms: None) -> None:
    report = check_detector(name)
    assert layerscope.analyze(f"torchvision:{name}").total_macs == report.total_macs  # seeded


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONE_STAGE, *LARGE])
def test_detectors_that_are_large(name: str, with_nms: None) -> None:
    check_detector(name)


def test_all_detectors_are_tried() -> None:
    models = vision()
    assert sorted([*ONE_STAGE, *SMALL, *LARGE]) == sorted(
        models.list_models(module=models.detection)
    )


def test_images_of_a_detector_are_a_list(with_nms: None) -> None:
    name = f"torchvision:{SMALL[2]}"
    two = layerscope.analyze(name, batch=2)
    assert [tensor.shape for tensor in two.inputs] == [(3, 320, 320)] * 2
    assert two.batch == 2
    assert " · batch 2 · " in two.stamp
    given = layerscope.analyze(name, input=(3, 200, 300))
    assert [tensor.shape for tensor in given.inputs] == [(3, 200, 300)]
    one = layerscope.analyze(name)
    assert two.total_macs == 2 * one.total_macs == 2 * given.total_macs  # resized to 320 x 320


def test_a_missing_operator_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vision()
    extension = sys.modules["torchvision.extension"]
    monkeypatch.setattr(extension, "_has_ops", lambda: False)
    with pytest.raises(MissingOperator, match=r"has no compiled operator torchvision::nms, "):
        layerscope.analyze(f"torchvision:{SMALL[0]}")
    assert run(["show", f"torchvision:{SMALL[0]}"]) == 4
    assert "pip install --force-reinstall torchvision" in capsys.readouterr().err


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


def test_the_random_state_stays_as_it_was(with_nms: None) -> None:
    before = torch.get_rng_state().clone()
    layerscope.analyze(f"torchvision:{SMALL[2]}")
    assert torch.equal(torch.get_rng_state(), before)
