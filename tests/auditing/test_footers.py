"""Lines below a table that sum it up: parameters, their bytes, and sizes in memory."""

from __future__ import annotations

import random

import pytest

from layerscope.auditing.document import audit_text
from layerscope.auditing.fix import fix
from tests.auditing.test_mutations import changes, document

OPTIMIZED = """
| Layer (type) | Output Shape | Param # |
|---|---|---|
| input (InputLayer) | (None, 28, 28, 1) | 0 |
| conv2d (Conv2D) | (None, 26, 26, 8) | 80 |
| flatten (Flatten) | (None, 5408) | 0 |
| dense (Dense) | (None, 10) | 54,090 |

 Total params: 162,512 (634.81 KB)
 Trainable params: 54,170 (211.60 KB)
 Non-trainable params: 0 (0.00 B)
 Optimizer params: 108,342 (423.21 KB)
"""


def test_parameters_of_the_optimizer_are_no_layer() -> None:
    assert audit_text(OPTIMIZED, "optimized").findings == ()


def named(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(f.row, f.also) for f in audit_text(text, "changed").findings]


# the right text and the wrong one, the row that is named and those that are equally suspect
WRONG = [
    ("162,512 (", "162,612 (", "Total params", ()),
    ("423.21 KB", "433.21 KB", "Optimizer params", ()),
]


@pytest.mark.parametrize(("right", "wrong", "row", "also"), WRONG)
def test_wrong_footers_of_keras(right: str, wrong: str, row: str, also: tuple[str, ...]) -> None:
    assert right in OPTIMIZED
    assert named(OPTIMIZED.replace(right, wrong)) == [(row, also)]


@pytest.mark.parametrize(
    ("notation", "right", "wrong", "row"),
    [
        (
            "torchsummary",
            "Trainable params: 61,706",
            "Trainable params: 61,708",
            "Trainable params",
        ),
        ("torchsummary", "Params size (MB): 0.24", "Params size (MB): 0.34", "Params size (MB)"),
        ("torchinfo", "Trainable params: 61,706", "Trainable params: 61,776", "Trainable params"),
        ("keras", "Trainable params: 61706", "Trainable params: 61736", "Trainable params"),
        ("keras.box", "Total params: 61,706 (241", "Total params: 61,706 (247", "Total params"),
    ],
)
def test_wrong_footers_of_notations(notation: str, right: str, wrong: str, row: str) -> None:
    text = document("lenet5", notation)
    assert right in text
    assert named(text.replace(right, wrong)) == [(row, ())]


def test_totals_that_torchstat_prints_twice() -> None:
    text = document("vgg11", "torchstat").replace("Total params: 132", "Total params: 182")
    assert [f.row for f in audit_text(text, "changed").findings] == ["Total params"]


def test_a_wrong_sum_names_the_figures_that_may_be_wrong() -> None:
    text = document("vgg11", "torchsummary")
    assert "Estimated Total Size (MB): 632.78" in text
    ((row, also),) = named(text.replace("Size (MB): 632.78", "Size (MB): 642.78"))
    parts = {also_.split(" (MB)")[0] for also_ in also}
    assert row == "Estimated Total Size (MB)"
    assert parts == {"Input size", "Forward/backward pass size"}  # parameters show theirs


@pytest.mark.parametrize(
    ("notation", "right", "wrong"),
    [
        ("torchsummary", "Trainable params: 61,706", "Trainable params: 69,706"),
        ("torchsummary", "Params size (MB): 0.24", "Params size (MB): 0.34"),
        ("keras", "Trainable params: 61706", "Trainable params: 61736"),
        ("keras.box", "Total params: 61,706 (241.04 KB)", "Total params: 61,706 (247.04 KB)"),
    ],
)
def test_wrong_footers_are_corrected(notation: str, right: str, wrong: str) -> None:
    text = document("lenet5", notation)
    assert right in text
    assert fix(text.replace(right, wrong), "changed").text == text


def test_wrong_footers_in_html_are_corrected() -> None:
    text = document("lenet5", "keras").replace("params: 61706", "params: <b>61706</b>")
    assert "Trainable params: <b>61706</b>" in text
    wrong = text.replace("Trainable params: <b>61706", "Trainable params: <b>61736")
    assert fix(wrong, "changed").text == text


def test_figures_in_lines_that_are_no_table_are_corrected() -> None:
    """Boda's profile is the first table of an audit, and has no rows."""
    for notation in ("boda", "ptflops", "matconvnet.dag"):
        right = document("lenet5", notation)
        made = changes(right, notation, 12, random.Random(5))
        lines = "\n".join(right.splitlines())
        assert lines in {fix(change.text, "changed").text for change in made}


def test_a_figure_without_a_printed_kernel_is_corrected_by_the_total() -> None:
    """16,640 is 1 x 1 x 64 x 256 + 256; the nearest to 46,640 is that of a 2 x 2 kernel."""
    text = document("squeezenet1_1", "torchinfo")
    assert "16,640" in text
    wrong = text.replace("16,640", "46,640", 1)
    assert fix(wrong, "changed").text == text
