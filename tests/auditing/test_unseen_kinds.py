"""Kinds of tables that people publish: each is read, right ones have no findings, wrong ones do."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from layerscope.formats.document import networks_of

Named = list[tuple[str, str, str]]  # row, column and kind of findings


def named(text: str) -> Named:
    return [(f.row, f.column, f.kind) for f in audit_text(text, "table").findings]


def explained(text: str) -> list[tuple[str, int, int]]:
    (table,) = audit_text(text, "table").tables
    return [(column.heading, column.explained, column.of) for column in table.columns]


# elements beside shapes, vectors as columns, and a function whose row has the parameters
ELEMENTS = """\
|  | Activation shape | Activation size | # parameters |
|---|---|---|---|
| **Input:** | (20, 20, 3) | 1,200 | 0 |
| **CONV1(f=5, s=1)** | (16, 16, 7) | 1,792 | 532 |
| **POOL1** | (8, 8, 7) | 448 | 0 |
| **CONV2(f=3, s=1)** | (6, 6, 14) | 504 | 896 |
| **POOL2** | (3, 3, 14) | 126 | 0 |
| **FC3** | (30, 1) | 30 | 3810 |
| **FC4** | (12, 1) | 12 | 372 |
| **Softmax** | (4, 1) | 4 | 52 |
"""
# the depth of filters and all biases but one are forgotten: nothing but zeros is right
SLIPS = ELEMENTS
for right, wrong in (
    ("532", "182"),
    ("896", "140"),
    ("3810", "3781"),
    ("372", "361"),
    ("52", "49"),
):
    SLIPS = SLIPS.replace(f"| {right} |", f"| {wrong} |")


def test_elements_beside_shapes() -> None:
    assert named(ELEMENTS) == []
    assert explained(ELEMENTS) == [("Activation size", 8, 8), ("# parameters", 8, 8)]


@pytest.mark.parametrize(("right", "wrong", "row", "column"), [
    ("1,792", "1,782", "**CONV1(f=5, s=1)**", "Activation size"),
    ("| 896", "| 836", "**CONV2(f=3, s=1)**", "# parameters"),
    ("| 52", "| 62", "**Softmax**", "# parameters"),
])  # fmt: skip
def test_a_wrong_cell_beside_elements(right: str, wrong: str, row: str, column: str) -> None:
    assert named(ELEMENTS.replace(right, wrong)) == [(row, column, "figure")]


def test_a_column_of_usual_slips() -> None:
    assert [row for row, _, _ in named(SLIPS)] == [
        "**CONV1(f=5, s=1)**", "**CONV2(f=3, s=1)**", "**FC3**", "**FC4**", "**Softmax**",
    ]  # fmt: skip


def test_a_first_heading_that_is_empty() -> None:
    lines = ELEMENTS.splitlines()
    heading = "   | Activation shape | Activation size | # parameters"
    bare = [line.removeprefix("| ").removesuffix(" |") for line in lines[2:]]
    assert named("\n".join([heading, ":-: | :-: | :-: | :-:", *bare])) == []


# windows in names; the jump of a row is that of its input
FIELDS = """\
| Layer | Receptive Field | Jump |
|---|---|---|
| Conv(5x5) S=2 | 5x5 | 1 |
| MaxPool(3x3) S=2 | 9x9 | 2 |
| Conv k=3, s=1 | 17x17 | 4 |
| Conv k=3, s=2 | 25x25 | 4 |
| MaxPool(2x2, stride=2) | 33x33 | 8 |
| Conv(3x3) S=1 | 65x65 | 16 |
"""


@pytest.mark.parametrize("heading", ["Jump", "jumpIn", "j_in"])
def test_fields_by_the_jump_of_the_input(heading: str) -> None:
    text = FIELDS.replace("Jump", heading)
    assert named(text) == []
    assert explained(text) == [("Receptive Field", 6, 6), (heading, 6, 6)]
    wrong = text.replace("25x25", "24x24")
    assert named(wrong) == [("Conv k=3, s=2", "Receptive Field", "figure")]


def test_fields_with_jumps_before_and_behind() -> None:
    text = """\
| Layer | $k$, $s$ | Receptive field | Jump In | Jump Out |
|---|---|---|---|---|
| conv $3\\times3$ | 3, 1 | $3 \\times 3$ | 1 | 1 |
| max pool | 2, 2 | $4 \\times 4$ | 1 | 2 |
| conv $3\\times3$ | 3, 1 | **8** | 2 | 2 |
| max pool | 2, 2 | **10** | 2 | 4 |
"""
    assert named(text) == []
    assert named(text.replace("| 2 | 4 |", "| 3 | 4 |")) == [("max pool", "Jump In", "figure")]


def test_a_module_may_have_several_windows() -> None:
    text = """\
| layer | kernel | stride | jump | receptive field |
|---|---|---|---|---|
| conv1 | 7x7 | 2 | 2 | 7 |
| maxpool | 3x3 | 2 | 4 | 11 |
| res2a (two 3x3) | 3x3 | 1 | 4 | 27 |
"""
    assert named(text) == []


# strides and filters as in the table of MobileNet's paper, and inputs only
INPUTS = """\
| Type / Stride | Filter Shape | Input Size |
|---|---|---|
| Conv / s2 | 3 x 3 x 3 x 16 | 64 x 64 x 3 |
| Conv dw / s1 | 3 x 3 x 16 dw | 32 x 32 x 16 |
| Conv / s1 | 1 x 1 x 16 x 24 | 32 x 32 x 16 |
| Conv dw / s2 | 3 x 3 x 24 dw | 32 x 32 x 24 |
| Conv / s1 | 1 x 1 x 24 x 48 | 16 x 16 x 24 |
| 3x Conv dw / s1 | 3 x 3 x 48 dw | 16 x 16 x 48 |
| Avg Pool / s1 | Pool 16 x 16 | 16 x 16 x 48 |
| FC / s1 | 48 x 10 | 1 x 1 x 48 |
"""


def test_outputs_from_the_inputs_below() -> None:
    assert named(INPUTS) == []
    (network,) = networks_of(INPUTS)
    assert [row.output for row in network.rows[:4]] == [
        (1, 16, 32, 32), (1, 16, 32, 32), (1, 24, 32, 32), (1, 24, 16, 16),
    ]  # fmt: skip
    assert network.rows[5].kind == "unknown"  # three layers


@pytest.mark.parametrize(("right", "wrong", "row"), [
    ("Conv dw / s2", "Conv dw / s1", "Conv dw / s1"),
    ("1 x 1 x 24 x 48", "1 x 1 x 42 x 48", "Conv / s1"),
])  # fmt: skip
def test_a_wrong_stride_or_depth_in_a_table_of_inputs(right: str, wrong: str, row: str) -> None:
    found = audit_text(INPUTS.replace(right, wrong), "table").findings
    assert [finding.row for finding in found] == [row]


# sizes in words, as course reports have them
WORDS = """\
| Layer | Description |
|---|---|
| Input | 36x36x3 RGB image |
| Convolution 5x5 | 1x1 stride, valid padding, outputs 32x32x8 |
| RELU | |
| Max pooling | 2x2 stride, outputs 16x16x8 |
| Convolution 3x3 | 1x1 stride, same padding, outputs 16x16x12 |
| RELU | |
| Flatten | outputs 3072 |
| Fully connected | 3072 inputs 20 outputs |
| Fully connected | Input 20 output 5 |
"""


def test_sizes_in_words() -> None:
    assert named(WORDS) == []
    (network,) = networks_of(WORDS)
    assert [row.output for row in network.rows[1:5]] == [
        (1, 8, 32, 32), (1, 8, 32, 32), (1, 8, 16, 16), (1, 12, 16, 16),
    ]  # fmt: skip
    (found,) = audit_text(WORDS.replace("16x16x12", "14x14x12"), "table").findings
    assert found.row == "Convolution 3x3"
    assert (found.line, found.column) == (7, "Description")


def test_a_column_of_words_below_a_heading_of_counts() -> None:
    text = """\
| 层级 | 类型 | 参数 | 输出尺寸 |
|---|---|---|---|
| 输入 | - | 20×20 灰度图 | 1×20×20 |
| C1 | 卷积 | 4 个 5×5 卷积核 | 4×16×16 |
| S2 | 池化 | 2×2 平均池化 | 4×8×8 |
| C3 | 卷积层 | in=4, out=9, kernel=3×3, padding=1 | 9×8×8 |
| F4 | 全连接层 (Softmax) | 30 个神经元 | 30 |
"""
    assert named(text) == []
    (network,) = networks_of(text)
    assert [row.kernel for row in network.rows[1:4]] == [(5, 5), (2, 2), (3, 3)]
    found = audit_text(text.replace("5×5 卷积核", "4×4 卷积核"), "table").findings
    assert [finding.row for finding in found] == ["C1"]


def test_words_with_equals_signs_are_no_counts() -> None:
    text = """\
| 层 | 类型 | 参数 | 输出尺寸 |
|---|---|---|---|
| 输入 | 输入层 | 输入尺寸 20 \\* 20 \\* 3 | 20×20×3 |
| C1 | 卷积层 + ReLU | in=3, out=8, kernel=3×3, padding=1 | 20×20×8 |
| P1 | 最大池化 | kernel=2×2, stride=2 | 10×10×8 |
| F1 | 全连接 | 800 → 12 | 12 |
"""
    assert named(text) == []
    assert explained(text) == []
    assert [row for row, _, _ in named(text.replace("800 → 12", "800 → 21"))] == ["F1"]


def test_numbers_of_maps_from_the_output_to_the_input() -> None:
    text = """\
| Layer | Type | Maps | Size | Kernel size | Stride |
|---|---|---|---|---|---|
| Out | Fully connected | – | 7 | – | – |
| C3 | Convolution | 9 | 8 × 8 | 3 × 3 | 1 |
| S2 | Avg pooling | 4 | 10 × 10 | 2 × 2 | 2 |
| C1 | Convolution | 4 | 20 × 20 | 5 × 5 | 1 |
| In | Input | 1 | 24 × 24 | – | – |
"""
    assert named(text) == []
    assert [row.filters for row in networks_of(text)[0].rows[1:4:2]] == [4, 9]
    assert [row for row, _, _ in named(text.replace("3 × 3 | 1", "3 × 3 | 2"))] == ["C3"]


def test_rows_with_kernels_only_are_a_network() -> None:
    text = "| 层 | 卷积核 | 步长 |\n|---|---|---|\n| 1 | 3×3 | 1 |\n| 2 | 5×5 | 2 |\n"
    assert len(networks_of(text)[0].rows) == 2


def test_whole_shapes_below_a_heading_of_sizes() -> None:
    text = """\
| | Type | # Parameters | In size | Out size |
|---|---|---|---|---|
| 0 | Conv2d | 216 | [1, 3, 32, 32] | [1, 8, 32, 32] |
| 1 | Conv2d | 1.2 K | [1, 8, 32, 32] | [1, 16, 32, 32] |
| 2 | Conv2d | 2.3 K | [1, 16, 32, 32] | [1, 16, 32, 32] |
"""
    assert explained(text) == [("# Parameters", 3, 3)]
    assert named(text.replace("216", "261")) == [("0", "# Parameters", "figure")]


def test_figures_are_cut_where_they_have_no_decimals() -> None:
    """As Lightning prints them: 28,311,552 is 28.3 M, and 150,994,944 is 150 M."""
    text = """\
| | Name | Type | Params | FLOPs | In sizes | Out sizes |
|---|---|---|---|---|---|---|
| 0 | a | Conv2d | 864 | 28.3 M | [1, 3, 256, 256] | [1, 32, 128, 128] |
| 1 | b | Conv2d | 9.2 K | 301 M | [1, 32, 128, 128] | [1, 32, 128, 128] |
| 2 | c | Conv2d | 18.4 K | 603 M | [1, 32, 128, 128] | [1, 64, 128, 128] |
| 3 | d | Conv2d | 36.9 K | 1.2 B | [1, 64, 128, 128] | [1, 64, 128, 128] |
"""
    assert named(text) == []
    assert named(text.replace("301 M", "331 M")) == [("1", "FLOPs", "figure")]


def test_channels_that_pools_keep_come_first() -> None:
    text = """\
\\begin{tabular}{llrr}
Layer & Configuration & Output shape & Parameters \\\\
Input & 3 channels & 3 x 24 x 10 & -- \\\\
Conv2d + ReLU & 10 filters, 3x3, pad 1 & 10 x 24 x 10 & 280 \\\\
MaxPool2d & 2x2 & 10 x 12 x 5 & -- \\\\
Conv2d + ReLU & 14 filters, 3x3, pad 1 & 14 x 12 x 5 & 1{,}274 \\\\
Flatten & -- & 840 & -- \\\\
Linear & 6 units & 6 & 5{,}046 \\\\
\\end{tabular}
"""
    assert named(text) == []
    assert explained(text) == [("Parameters", 3, 3)]
    assert named(text.replace("1{,}274", "1{,}247")) == [
        ("Conv2d + ReLU", "Parameters", "figure")
    ]  # fmt: skip


def test_shapes_of_one_axis_without_a_batch() -> None:
    text = """\
| Layer | Kernel | Stride | Output Shape | Params |
|---|---|---|---|---|
| Input | - | - | (900,1) | 0 |
| Conv1D (16) | 7 | 2 | (450,16) | 128 |
| BatchNorm | - | - | (450,16) | 64 |
| MaxPool | 2 | 2 | (225,16) | 0 |
| Conv1D (24) | 5 | 1 | (225,24) | 1944 |
"""
    assert named(text) == []
    assert named(text.replace("1944", "1994")) == [("Conv1D (24)", "Params", "figure")]


def test_maps_behind_their_number() -> None:
    text = """\
| Layer | Type | Kernel Size | Stride | Padding | Output Size |
|---|---|---|---|---|---|
| data | Input | | | | 3 @ 32 X 32 |
| conv1 | Convolutional | 5 X 5 | 2 | SAME | 8 @ 16 X 16 |
| pool1 | Max Pooling | 2 X 2 | 2 | VALID | 8 @ 8 X 8 |
| conv2 | Convolutional | 3 X 3 | 1 | SAME | 16 @ 8 X 8 |
"""
    assert named(text) == []
    (network,) = networks_of(text)
    assert network.rows[-1].output == (1, 16, 8, 8)
    assert [row for row, _, _ in named(text.replace("3 X 3 | 1 | SAME", "3 X 3 | 1 | VALID"))] == [
        "conv2"
    ]


def test_axes_that_a_heading_names() -> None:
    text = """\
| Layer | Kernel | Stride | Output $(C, H, W)$ | Params |
|---|---|---|---|---|
| conv1 | $3\\times3$ | 1 | $12 \\times 12 \\times 20$ | 336 |
| conv2 | $3\\times3$ | 2 | $10 \\times 6 \\times 10$ | 1,090 |
| flatten | — | — | 600 | — |
| dense | $605 \\to 8$ | — | 8 | 4,848 |
"""
    assert named(text) == []  # five more inputs of the dense layer have no row
    assert named(text.replace("1,090", "1,900")) == [("conv2", "Params", "figure")]


@pytest.mark.parametrize("text", [
    # a table without the line of dashes, and one whose headings a converter put into the rows
    "Layer (type) | Output Shape | Param # |\n{}",
    "| 1 | 2 | 3 |\n|---|---|---|\n| Layer (type) | Output Shape | Param # |\n{}",
])  # fmt: skip
def test_headings_in_other_places(text: str) -> None:
    rows = ["c1 (Conv2D) | (None, 20, 20, 8) | 224 |",
            "p1 (MaxPooling2D) | (None, 10, 10, 8) | 0 |",
            "f1 (Flatten) | (None, 800) | 0 |", "d1 (Dense) | (None, 5) | 4005 |"]  # fmt: skip
    full = text.format("\n".join(rows)) + "\n"
    assert named(full) == []
    assert [column for _, column, _ in named(full.replace("4005", "4050"))] == ["Param #"]
    assert len(networks_of(full)[0].rows) == 4


def test_gaps_that_became_single_spaces() -> None:
    text = """\
Layer (type) Output Shape Param #
=================================
conv2d_1 (Conv2D) (None, 20, 20, 8) 224
_________________________________
max_pooling2d_1 (MaxPooling2 (None, 10, 10, 8) 0
_________________________________
flatten (Flatten) (None, 800) 0
dense (Dense) (None, 5) 4005
=================================
Total params: 4,229
"""
    assert named(text) == []
    assert named(text.replace("4005", "4050"))[0][:2] == ("dense (Dense)", "Param #")


def test_a_word_behind_a_figure() -> None:
    text = """\
Layer (type)                Output Shape              Param #
=============================================================
lstm (LSTM)                 (None, 10)                480    # four matrices
dense (Dense)               (None, 7)                 77
=============================================================
Total params: 557
"""
    assert named(text) == []
    assert [kind for _, _, kind in named(text.replace("557", "575"))] == ["total"]


LOG = """\
output = "layer     filters    size              input                output
   0 conv     16  3 x 3 / 1    64 x  64 x   3   ->    64 x  64 x  16  0.004 BFLOPs
   1 max          2 x 2 / 2    64 x  64 x  16   ->    32 x  32 x  16
[yolo] params: iou loss: mse, iou_norm: 0.75
   2 conv     32  3 x 3 / 1    32 x  32 x  16   ->    32 x  32 x  32  0.009 BFLOPs
   3 conv      8  1 x 1 / 1    32 x  32 x  32   ->    32 x  32 x   8  0.001 BFLOPs
Loading weights
"""


def test_a_log_with_other_lines_in_it() -> None:
    assert named(LOG) == []
    assert explained(LOG) == [("BF", 3, 3)]
    assert named(LOG.replace("0.009", "0.019")) == [("2", "BF", "figure")]
    assert [row.name for row in networks_of(LOG)[0].rows] == ["0 conv", "1 max", "2 conv", "3 conv"]


@pytest.mark.parametrize("mark", ["% ", "| ", ""])
def test_a_part_of_a_display_of_matconvnet(mark: str) -> None:
    rows = ["     layer|    0|    1|    2|    3|", "      type|input| conv| relu| conv|",
            "      name|  n/a|   c1|   r1|   c2|", "   support|  n/a|    3|    1|    5|",
            "  filt dim|  n/a|    3|  n/a|    8|", " num filts|  n/a|    8|  n/a|    4|",
            "    stride|  n/a|    2|    1|    1|", "       pad|  n/a|    1|    0|    2|",
            "   rf size|  n/a|    3|    3|   11|"]  # fmt: skip
    text = "\n".join(f"{mark}{row}" for row in rows) + "\n"
    assert named(text) == []
    assert explained(text) == [("rf size", 3, 3)]
    assert [column for _, column, _ in named(text.replace("  11|", "  12|"))] == ["rf size"]
    assert len(networks_of(text)) == 1


def test_the_depth_of_a_tree_is_in_its_names() -> None:
    text = """\
| Layer (type:depth-idx) | Output Shape | Param # |
|---|---|---|
| Net | [4, 10] | -- |
| │    └─Conv2d: 1-1 | [4, 8, 20, 20] | 224 |
| Conv2d: 1-2 | [4, 12, 20, 20] | 876 |
"""
    assert named(text) == []
    assert explained(text) == [("Param #", 2, 2)]
    assert named(text.replace("876", "867")) == [("Conv2d: 1-2", "Param #", "figure")]


def test_a_total_with_the_variables_of_an_optimizer() -> None:
    text = """\
| Layer Type | Output Shape | Param # |
|---|---|---|
| Conv2D | (None, 20, 20, 8) | 224 |
| Flatten | (None, 3200) | 0 |
| Dense | (None, 5) | 16,005 |
| Total params | | 48,689 (190.19 KB) |
| Trainable params | | 16,229 (63.39 KB) |
"""
    assert named(text) == []
    assert named(text.replace("48,689", "48,986")) == [("Total params", "Param #", "total")]


def test_channels_that_differ_behind_what_has_no_row() -> None:
    text = """\
| 层 | 卷积核 | 输入通道 | 输出通道 | 参数量 |
|---|---|---|---|---|
| Conv1 | 5×5 | 1 | 8 | 208 |
| Conv2 | 5×5 | 8 | 1 | 201 |
| Conv3 (投影) | 1×1 | 132 | 20 | 2,660 |
"""
    assert named(text) == []
    assert [row for row, _, _ in named(text.replace("| 132 |", "| 13 |"))] == ["Conv3 (投影)"]


def test_columns_that_are_no_channels() -> None:
    """GoogLeNet's depth is a number of layers."""
    text = """\
| type | patch size/stride | output size | depth |
|---|---|---|---|
| convolution | 7×7/2 | 56×56×64 | 1 |
| max pool | 3×3/2 | 28×28×64 | 0 |
| convolution | 3×3/1 | 28×28×192 | 2 |
| max pool | 3×3/2 | 14×14×192 | 0 |
"""
    assert named(text) == []


def test_torchstat_on_narrow_maps_and_branches() -> None:
    text = """\
       module name  input shape output shape  params memory(MB)      MAdd     Flops  MemRead(B)  MemWrite(B) duration[%]  MemR+W(B)
0             conv    1  51   3   16  24   3   112.0       0.00  13,824.0   8,064.0      1060.0       4608.0      50.00%     5668.0
1         avg_pool   16  24   3   16   1   1     0.0       0.00       0.0       0.0         0.0          0.0      10.00%        0.0
2         max_pool   16  24   3   16   1   1     0.0       0.00       0.0       0.0         0.0          0.0      10.00%        0.0
3             relu   16   1   1   16   1   1     0.0       0.00      16.0      16.0        64.0         64.0      10.00%      128.0
4              fc1           16            8   136.0       0.00     248.0     128.0       608.0         32.0      10.00%      640.0
5              fc2            8            2    18.0       0.00      30.0      16.0       104.0          8.0      10.00%      112.0
"""  # noqa: E501
    assert named(text) == []
    found = named(text.replace("13,824.0", "13,284.0"))
    assert [column for _, column, _ in found] == ["MAdd"]


def test_a_row_of_a_log_takes_the_row_above() -> None:
    """An earlier row has the right output as well."""
    text = """\
layer     filters    size              input                output
   0 conv     16  3 x 3 / 1     4 x   4 x   3   ->     4 x   4 x  16  0.000 BF
   1 connected                         256   ->   512
   2 dropout       p = 0.50            512   ->   512
   3 connected                         512   ->   512
   4 connected                         512   ->    10
"""
    assert named(text) == []
    wrong = text.replace("3 connected                         512   ->   512",
                         "3 connected                         512   ->   517")  # fmt: skip
    (found,) = audit_text(wrong, "table").findings  # either cell may be wrong
    assert found.row in ("3", "4")
