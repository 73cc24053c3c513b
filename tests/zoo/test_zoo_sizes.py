"""Every network of the zoo on other input sizes: it works, or an error says which sizes do."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from layerscope import analyze, load
from layerscope.cli import run
from layerscope.errors import LayerscopeError, ShapeError, UsageError
from layerscope.zoo import NAMES

VITS = {"vit_b_16": 16, "vit_b_32": 32, "vit_l_16": 16, "vit_l_32": 32, "vit_h_14": 14}
POSSIBLE = re.compile(
    r"the smallest image it accepts is (\d+)x\1$|expected multiples of \d+ for height and width$"
    r"|expected at most \d+, the positions of |expected at least 4x4$"
)


def others(name: str) -> list[tuple[int, ...]]:
    """Other shapes of the first input: larger, uneven, half as large, tiny."""
    shape = load(name).inputs[0].shape
    assert shape is not None
    if len(shape) == 2:
        return [(1, 7), (1, 512), (1, 5000)]
    channels, height, width = shape[1:]
    sizes = [(height + 32, width + 32), (height + 1, width + 64), (height // 2, width // 2), (9, 9)]
    return [(channels, *size) for size in sizes]


def outcome(name: str, shape: tuple[int, ...]) -> str:
    """The error of a network on inputs of this shape; empty if it works."""
    inputs = {t.name: shape for t in load(name).inputs if t.dtype == "int64"} or {"": shape}
    try:
        report = analyze(name, input=inputs)
    except LayerscopeError as error:
        return str(error)
    assert report.inputs[0].shape is not None
    assert report.inputs[0].shape[-len(shape) :] == shape
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_other_sizes_work_or_an_error_says_which_do(name: str) -> None:
    texts = [outcome(name, shape) for shape in others(name)]
    assert "" in texts
    for text in filter(None, texts):
        assert "\n" not in text
        assert POSSIBLE.search(text)


@pytest.mark.parametrize("name", ["lenet5", "alexnet", "nin", "densenet121", "convnext_tiny"])
def test_the_smallest_image_is_the_smallest(name: str) -> None:
    channels = (load(name).inputs[0].shape or ())[1]
    with pytest.raises(ShapeError) as error:
        analyze(name, input=(channels, 3, 3))
    found = POSSIBLE.search(str(error.value))
    assert found is not None
    side = int(found[1])
    assert analyze(name, input=(channels, side, side)).totals.macs
    with pytest.raises(ShapeError):
        analyze(name, input=(channels, side - 1, side - 1))


# -- ViT and Swin: layers that depend on the image


@pytest.mark.parametrize("name", VITS)
def test_vits_take_any_multiple_of_the_patch(name: str) -> None:
    patch = VITS[name]
    usual = analyze(name)
    width = usual.by_name["conv_proj"].node.attributes.out_channels
    for rows, columns in ((1, 1), (3, 5), (20, 20)):
        report = analyze(name, input=(3, rows * patch, columns * patch), batch=2)
        tokens = (224 // patch) ** 2 - rows * columns
        assert report.totals.params == usual.totals.params - tokens * width
        assert report.by_name["encoder.pos_embedding"].output == (1, rows * columns + 1, width)
        assert report.batch == 2
    message = f"{name}: an image of {patch + 1}x{patch}, expected multiples of {patch} for height"
    with pytest.raises(ShapeError, match=message):
        analyze(name, input={"data": (3, patch + 1, patch)})


def figures(name: str, size: int, params: int) -> int:
    report = analyze(name, input=(3, size, size))
    assert report.totals.params == params
    return report.totals.macs


@pytest.mark.parametrize(
    ("name", "size", "params", "gmacs"),
    [
        ("vit_h_14", 518, 633_470_440, 1016.717),
        ("vit_l_16", 512, 305_174_504, 361.986),
        ("vit_b_16", 384, 86_859_496, 55.484),
    ],
)
def test_torchvisions_figures_of_larger_images(
    name: str, size: int, params: int, gmacs: float
) -> None:
    assert f"{figures(name, size, params) / 1e9:.3f}" == f"{gmacs:.3f}"


def test_every_size_that_torchvision_publishes(shared: Path) -> None:
    with open(shared / "truth" / "torchvision.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["builder"] in VITS]
    assert len(rows) >= 10
    for row in rows:
        macs = figures(row["builder"], int(row["eval_crop_size"]), int(row["num_params"]))
        assert f"{macs / 1e9:.3f}" == row["gmacs_called_ops"], row["weights"]


def test_swin_takes_any_image_with_the_same_parameters() -> None:
    usual = analyze("swin_t")
    for size in ((256, 256), (225, 290), (4, 4), (60, 224)):
        report = analyze("swin_t", input=(3, *size))
        assert report.totals.params == usual.totals.params
        assert report.layers[-1].output == (1, 1000)
    with pytest.raises(ShapeError, match="an image of 3x224, expected at least 4x4"):
        analyze("swin_t", input=(3, 3, 224))


def test_wrong_ranks_and_names_are_refused_as_ever() -> None:
    with pytest.raises(UsageError, match="2 sizes, expected 4"):
        analyze("vit_b_16", input=(224, 224))
    with pytest.raises(LayerscopeError, match="unknown input 'other'"):
        analyze("vit_b_16", input={"other": (3, 224, 224)})


def test_the_command_takes_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "vit_h_14", "--input", "3x518x518"]) == 0
    assert "633,470,440" in capsys.readouterr().out
    assert run(["show", "nin", "--input", "3x64x64"]) != 0
    assert "the smallest image it accepts is" in capsys.readouterr().err
