"""ViT and Swin of the zoo on other images: torchvision's own models have the same figures."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import layerscope  # noqa: E402
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models  # noqa: E402

try:
    VISION = torchvision_models(torch)
except ImportError:
    pytest.skip("torchvision is not installed", allow_module_level=True)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("swin_t", (225, 290)),
        ("swin_t", (60, 224)),
        ("swin_t", (28, 28)),
        ("vit_b_32", (96, 96)),
        ("vit_h_14", (28, 28)),
    ],
)
def test_the_same_figures_on_other_images(name: str, size: tuple[int, int]) -> None:
    told = {"image_size": size[0]} if name.startswith("vit") else {}
    with torch.device("meta"):
        model = VISION.get_model(name, weights=None, **told).eval()
    theirs = layerscope.analyze(model, input_size=(1, 3, *size))
    ours = layerscope.analyze(name, input=(3, *size))
    assert ours.totals.params == theirs.totals.params
    assert ours.totals.macs == theirs.totals.macs
