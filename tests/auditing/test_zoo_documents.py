"""Every network of the zoo in every notation: what layerscope writes has no findings."""

from __future__ import annotations

import re

import pytest

from layerscope.auditing.document import audit_text, sheets_of
from layerscope.zoo import NAMES
from tests.auditing.test_mutations import WRITTEN, document, of_figures

MATCONVNET = tuple(name for name in WRITTEN if name.startswith("matconvnet"))
# Not clean yet: the beginning of names of networks, the notations, and what the audit cannot tell.
OPEN: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        ("t5",),
        (*MATCONVNET, "layersheet", "netscope", "netscope.folded", "ptflops"),
        "biases of attention from distances: axes that are not printed, and shared weights",
    ),
    (
        ("inception_v3-slim",),
        ("torchinfo", "torchsummary"),
        "a join without a row of branches that end in two convolutions of one input",
    ),
    (
        ("swin_b",),
        ("backbone",),
        "windows of a map change the sizes that blank cells repeat",
    ),
)


def is_open(name: str, notation: str) -> bool:
    return any(name.startswith(names) and notation in where for names, where, _ in OPEN)


CASES = [(name, notation) for name in NAMES for notation in WRITTEN if not is_open(name, notation)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "notation"), CASES)
def test_the_zoo_has_no_findings(name: str, notation: str) -> None:
    assert of_figures(audit_text(document(name, notation), name).findings) == []


# a network of each class that the tests of every change do not have, in one of its notations
CLASSES = [
    ("vit_b_32", "matconvnet"),  # a matrix takes the other axis of sequences as its channels
    ("gpt2", "matconvnet.csv"),
    ("llama-7b", "matconvnet"),  # norms with a scale and no shift
    ("llama-3-405b", "matconvnet"),  # heights that are rounded: 1.638e+04
    ("llama-7b", "matconvnet.dag"),  # sizes of variables that are rounded
    ("gpt2-medium", "matconvnet.dag"),  # embeddings whose two sizes are equal
    ("swin_t", "matconvnet"),  # windows of a map as the images of a batch
    ("swin_t", "matconvnet.dag.csv"),
    ("regnet_y_400mf", "matconvnet.dag"),  # filters as deep as a group
    ("efficientnet_b6", "netscope"),  # pools over the whole map, all larger than usual kernels
    ("inception_v2-slim", "darknet"),  # a first convolution in groups
    ("resnet50", "darknet"),  # operations of shortcuts, each counted once
    ("vit_b_32", "darknet"),  # a total of shortcuts that are rounded to nothing
    ("t5-small", "keras.box"),  # names of inputs that are cut
    ("resnet_v2_50-slim", "keras.box"),  # the row above may be meant, and is not
    ("swin_t", "keras.box"),  # any of several rows above, but not the last
    ("gpt2", "cs231n.md"),  # figures that are rounded to two digits, one without a formula
    ("bert_base", "cs231n.md"),
    ("llama-7b", "keras"),  # numbers that the column breaks
    ("inception_v3-slim", "ptflops"),  # norms with a shift and no scale
    ("resnet_v2_200-slim", "matconvnet"),  # biases in some convolutions, and norms in others
]


@pytest.mark.parametrize(("name", "notation"), CLASSES)
def test_each_class_has_no_findings(name: str, notation: str) -> None:
    assert of_figures(audit_text(document(name, notation), name).findings) == []


def test_operations_of_a_shortcut_are_checked() -> None:
    text = document("resnet50", "darknet").replace("256 0.001 BF", "256 0.008 BF", 1)
    [finding] = of_figures(audit_text(text, "changed").findings)
    assert (finding.row, finding.column, finding.printed) == ("7", "BF", "0.008")


def columns_of(name: str, notation: str, title: str, at: int, wrong: str) -> set[str]:
    """The columns that are named if cell `at` of the first row with a title has another text."""
    text = document(name, notation)
    line = next(line for line in text.splitlines() if line.strip().startswith(title))
    cells = line.split("|")
    assert cells[at].strip() != wrong
    changed = "|".join([*cells[:at], wrong.rjust(len(cells[at])), *cells[at + 1 :]])
    found = audit_text(text.replace(line, changed, 1), "changed").findings
    return {finding.column for finding in found}


# the first row with a title, the number of a cell in it, a wrong text, and the column that is named
WRONG_CELLS = [
    ("vit_b_32", "matconvnet", "filt dim", 13, "769", "filt dim"),
    ("llama-7b", "matconvnet", "param mem", 3, "17KB", "param mem"),
    ("llama-3-405b", "matconvnet", "data mem", 4, "7MB", "data mem"),
    ("swin_t", "matconvnet", "data num", 9, "65", "data num"),
]


@pytest.mark.parametrize(("name", "notation", "title", "at", "wrong", "column"), WRONG_CELLS)
def test_a_wrong_cell_of_each_class_is_found(
    name: str, notation: str, title: str, at: int, wrong: str, column: str
) -> None:
    assert column in columns_of(name, notation, title, at, wrong)


def test_a_wrong_pool_over_the_whole_map_is_found() -> None:
    text = document("efficientnet_b6", "netscope")
    right = "| Pooling | 56 | 264x264 | 56 | 1x1 | add\t3.9M |"
    assert right in text
    found = audit_text(text.replace(right, right.replace("3.9M", "3.8M")), "changed").findings
    assert [(each.column, each.printed) for each in found] == [("OPS", "add\t3.8M")]


def test_darknet_rows_with_groups_are_rows() -> None:
    text = document("mobilenet_v2", "darknet")
    layers = [line for line in text.splitlines() if re.match(r" *\d+ ", line)]
    assert any(re.match(r" *\d+ conv +\d+/ *\d+ ", line) for line in layers)
    (sheet,) = sheets_of(text)
    assert [row.cells[0].text for row in sheet.rows if row.kind != "total"] == [
        line.split()[0] for line in layers
    ]


def test_numbers_that_keras_breaks_are_read() -> None:
    (sheet,) = sheets_of(document("llama-7b", "keras"))
    assert sheet.rows[1].cells[2].text == "131072000"
    assert sheet.rows[3].cells[2].text == "16777216"


@pytest.mark.parametrize(("name", "right", "wrong"), [
    ("gpt2", "24,422,784", "24,822,784"), ("bert_base", "14,649,088", "14,349,088"),
])  # fmt: skip
def test_a_wrong_total_of_formulas_is_found(name: str, right: str, wrong: str) -> None:
    text = document(name, "cs231n.md")
    assert right in text
    found = audit_text(text.replace(right, wrong), name).findings
    assert [(each.kind, each.printed) for each in found] == [("total", wrong)]


# DagNN: the right text of a size or memory, and a wrong one
WRONG_DAGS = [
    ("llama-7b", "1.101e+04x1x128x1", "1.201e+04x1x128x1"),
    ("gpt2-medium", "196MB", "186MB"),
    ("swin_t", "288x1x49x64", "288x1x49x65"),
    ("regnet_y_400mf", "3x3x8x48", "3x3x9x48"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG_DAGS)
def test_a_wrong_size_in_a_dagnn_is_found(name: str, right: str, wrong: str) -> None:
    text = document(name, "matconvnet.dag")
    assert right in text
    assert of_figures(audit_text(text.replace(right, wrong, 1), name).findings)


def test_the_memory_of_an_embedding_with_equal_sizes() -> None:
    """1024 stands for 1024 x 1024: 4 MB, and of all four axes for 4 TB; 5 MB is wrong."""
    text = document("gpt2-medium", "matconvnet.dag")
    line = next(each for each in text.splitlines() if "196MB|" in each)
    wrong = text.replace(line, line.replace(" 4MB|", " 5MB|", 1), 1)
    assert wrong != text
    found = audit_text(wrong, "changed").findings
    assert [(each.column, each.printed, each.expected) for each in found] == [("mem", "5MB", "")]


@pytest.mark.parametrize("name", ["alexnet-caffe", "patch32", "unet", "mobilenet_v1", "lenet5"])
def test_grouped_and_transposed_convolutions_of_boda(name: str) -> None:
    assert audit_text(document(name, "boda"), name).findings == ()


# the right text and a wrong one, and the column that is named
WRONG = [
    ("patch32", "MxNxK=1024x32x288 x4", "MxNxK=1024x32x288 x2", "MxNxK"),
    ("patch32", "MxNxK=1024x32x288 x4", "MxNxK=1024x64x288 x4", "MxNxK"),
    ("unet", "FWD 3.29GF", "FWD 3.39GF", "FWD"),
    ("lenet5", "\n833KF", "\n838KF", "FLOPs"),
    ("lenet5", "\n284KB AI", "\n264KB AI", "bytes"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "column"), WRONG)
def test_wrong_figures_of_boda(name: str, right: str, wrong: str, column: str) -> None:
    text = document(name, "boda")
    assert right in text
    found = audit_text(text.replace(right, wrong, 1), name).findings
    assert column in [finding.column for finding in found]


def test_a_second_head_with_a_wrong_depth_is_found() -> None:
    """`conv4-2` takes what `conv4-1` takes; another depth fits neither."""
    text = document("mtcnn-pnet", "matconvnet")
    row = next(line for line in text.splitlines() if line.strip().startswith("filt dim"))
    at = row.rindex("32")
    found = audit_text(text.replace(row, row[:at] + "37" + row[at + 2 :]), "changed").findings
    assert [finding.column for finding in found] == ["filt dim"]


def test_a_wrong_field_of_a_branch_is_found() -> None:
    """The rows of resnet50's first block have fields of two branches."""
    text = document("resnet50", "matconvnet")
    row = next(line for line in text.splitlines() if line.strip().startswith("rf size"))
    at = row.rindex("19|")
    found = audit_text(text.replace(row, row[:at] + "18|" + row[at + 3 :]), "changed").findings
    assert {finding.column for finding in found} == {"rf size"}
