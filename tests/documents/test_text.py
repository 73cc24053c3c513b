"""Fixed-width text, as other programs print it."""

from __future__ import annotations

import pytest

from layerscope.documents import reader, text
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = text.tables(document.split("\n"))
    check_positions(table, document)
    return table


TORCHSUMMARY = """----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1         [-1, 64, 224, 224]           1,792
              ReLU-2         [-1, 64, 224, 224]               0
AVeryLongNameOfAModule-3     [-1, 64, 112, 112]               0
           Linear-32                 [-1, 4096]     102,764,544
================================================================
Total params: 138,357,544
Trainable params: 138,357,544
----------------------------------------------------------------
Input size (MB): 0.57
"""


def test_torchsummary() -> None:
    table = only(TORCHSUMMARY)
    assert grid(table) == [
        ["Layer (type)", "Output Shape", "Param #"],
        ["Conv2d-1", "[-1, 64, 224, 224]", "1,792"],
        ["ReLU-2", "[-1, 64, 224, 224]", "0"],
        ["AVeryLongNameOfAModule-3", "[-1, 64, 112, 112]", "0"],
        ["Linear-32", "[-1, 4096]", "102,764,544"],
    ]
    assert (table.form, table.line, table.last) == ("text", 2, 7)


def test_a_row_that_is_pushed_to_the_right() -> None:
    rows = TORCHSUMMARY.split("\n")
    rows.insert(4, "AModuleWhoseNameIsLongerThanAllColumnsOfTheTable-2         [-1, 64]       7")
    assert grid(only("\n".join(rows)))[2] == [
        "AModuleWhoseNameIsLongerThanAllColumnsOfTheTable-2", "[-1, 64]", "7",
    ]  # fmt: skip


KERAS = """Model: "sequential"
_________________________________________________________________
 Layer (type)                Output Shape              Param #
=================================================================
 conv2d (Conv2D)             (None, 26, 26, 32)        320

 batch_normalization_1 (Batc  (None, 26, 26, 32)       128
 hNormalization)

 max_pooling2d (MaxPooling2D  (None, 13, 13, 32)       0
 )

 dense (Dense)               (None, 10)                16010

=================================================================
Total params: 16,458
"""


def test_keras_2_with_wrapped_cells_and_blank_lines() -> None:
    table = only(KERAS)
    assert grid(table)[1:] == [
        ["conv2d (Conv2D)", "(None, 26, 26, 32)", "320"],
        ["batch_normalization_1 (BatchNormalization)", "(None, 26, 26, 32)", "128"],
        ["max_pooling2d (MaxPooling2D)", "(None, 13, 13, 32)", "0"],
        ["dense (Dense)", "(None, 10)", "16010"],
    ]
    assert [row.line for row in table.rows] == [5, 7, 10, 13]
    (titled,) = reader.read("# Training\n```\n" + KERAS + "```\n")
    assert titled.title == 'Model: "sequential"'


CONNECTED = """_________________________________________________________________________
Layer (type)                   Output Shape         Param #     Connected to
==========================================================================================
input_1 (InputLayer)           (None, 28, 28, 1)    0
__________________________________________________________________________________________
conv2d (Conv2D)                (None, 28, 28, 8)    80          input_1[0][0]
__________________________________________________________________________________________
add_1 (Add)                    (None, 28, 28, 8)    0           conv2d[0][0]
                                                                input_1[0][0]
==========================================================================================
Total params: 80
"""


def test_keras_2_with_rules_between_rows_and_several_connections() -> None:
    assert grid(only(CONNECTED))[1:] == [
        ["input_1 (InputLayer)", "(None, 28, 28, 1)", "0", ""],
        ["conv2d (Conv2D)", "(None, 28, 28, 8)", "80", "input_1[0][0]"],
        ["add_1 (Add)", "(None, 28, 28, 8)", "0", "conv2d[0][0] input_1[0][0]"],
    ]


TORCHINFO = """===================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
ResNet                                   [1, 1000]                 --
├─Conv2d: 1-1                            [1, 64, 112, 112]         9,408
├─Sequential: 1-5                        [1, 64, 56, 56]           --
│    └─BasicBlock: 2-1                   [1, 64, 56, 56]           --
│    │    └─Conv2d: 3-1                  [1, 64, 56, 56]           36,864
├─Linear: 1-10                           [1, 1000]                 513,000
==========================================================================================
Total params: 11,689,512
"""


def test_torchinfo() -> None:
    (table,) = reader.read(TORCHINFO)
    assert [row[-1] for row in grid(table)[1:]] == ["--", "9,408", "--", "--", "36,864", "513,000"]
    assert grid(table)[5][0] == "│    │    └─Conv2d: 3-1"


TORCHSTAT = """\
      module name  input shape output shape     params memory(MB)         MAdd duration[%]
0           conv1    3 224 224   10 220 220      760.0       1.85  72,600,000.0      57.49%
1      conv2_drop   64  56  56   20 106 106        0.0       0.86           0.0       4.09%
total                                        2815340.0       3.56  90,578,940.0     100.00%
===========================================================================================
Total params: 2,815,340
"""


def test_torchstat_has_an_index_without_a_heading() -> None:
    assert grid(only(TORCHSTAT)) == [
        ["", "module name", "input shape", "output shape", "params", "memory(MB)", "MAdd",
         "duration[%]"],
        ["0", "conv1", "3 224 224", "10 220 220", "760.0", "1.85", "72,600,000.0", "57.49%"],
        ["1", "conv2_drop", "64  56  56", "20 106 106", "0.0", "0.86", "0.0", "4.09%"],
        ["total", "", "", "", "2815340.0", "3.56", "90,578,940.0", "100.00%"],
    ]  # fmt: skip


TORCHSUMMARYX = """===============================================
               Kernel Shape     Output Shape  \\
Layer
0_conv1       [3, 64, 7, 7]  [4, 64, 112, 112]
1_bn1                  [64]  [4, 64, 112, 112]

                Params  Mult-Adds
Layer
0_conv1         9.408k    118.01M
1_bn1            128.0       64.0
-----------------------------------------------
                      Totals
Total params        11.6895M
===============================================
"""


def test_torchsummaryx_joins_blocks_of_columns() -> None:
    table = only(TORCHSUMMARYX)
    assert grid(table) == [
        ["Layer", "Kernel Shape", "Output Shape", "Params", "Mult-Adds"],
        ["0_conv1", "[3, 64, 7, 7]", "[4, 64, 112, 112]", "9.408k", "118.01M"],
        ["1_bn1", "[64]", "[4, 64, 112, 112]", "128.0", "64.0"],
    ]
    assert table.rows[0].cells[3].line == 9


CUBE = """Model name - net
------ ---------------------------- -------------- ------- ------------ --- --------
m_id   layer (type,original)        oshape            macc connected to   | c_size
------ ---------------------------- -------------- ------- ------------ --- --------
0      input_10 (Input, )           [b:1,h:30]                            | +280(+1)
       conv2d_0 (Conv2D, DEPTHWISE) [b:1,h:28]       3,400     input_10   |
------ ---------------------------- -------------- ------- ------------ --- --------
1      gemm_9 (Gemm, FULLY)         [b:1,c:3]           99    reshape_8   |
                                                                  dense   |
------ ---------------------------- -------------- ------- ------------ --- --------
model/c-model: macc=835,864/827,256 -8,608(-1.0%)  activations=--/10,116
"""


def test_x_cube_ai_has_the_spans_of_its_rule() -> None:
    assert grid(only(CUBE)) == [
        ["m_id", "layer (type,original)", "oshape", "macc", "connected to", "", "c_size"],
        ["0", "input_10 (Input, )", "[b:1,h:30]", "", "", "", "+280(+1)"],
        ["", "conv2d_0 (Conv2D, DEPTHWISE)", "[b:1,h:28]", "3,400", "input_10", "", ""],
        ["1", "gemm_9 (Gemm, FULLY)", "[b:1,c:3]", "99", "reshape_8 dense", "", ""],
    ]


def test_tabs_and_dots() -> None:
    document = (
        "Layer\t\tOutput Shape    Params\nconv\t\t64x55x55        9\n...\nfc\t\t10              20"
    )
    table = only(document)
    assert grid(table)[1:] == [["conv", "64x55x55", "9"], ["fc", "10", "20"]]
    assert table.left_out == (3,)


@pytest.mark.parametrize(
    "document",
    [
        "The name of the layer  and the size of the output are  given below.\nIt is  so.\n",
        "name  size\nare two words that begin a sentence and it goes on\nfor more lines of text",
        "Layer  Params",
        "self.input  = x\nself.output = y\n",
        "model name            : net\nmacc                  : 827256\n",
        "Trainable params             36.928k\nNon-trainable params         0.0\n",
        "   layer   filters  size/strd(dil)      input                output\n"
        "   0 conv     16      3 x 3/ 1    224 x 224 x   3  ->  224 x 224 x  16 0.043 BF\n"
        "   1 max              2 x 2/ 2    224 x 224 x  16  ->  112 x 112 x  16 0.001 BF\n",
        "time      time%     cum_time  cum_time% func_name \n"
        "1.91ms    24.1%     1.91ms    24.1%     conv3",
    ],
)
def test_prose_source_code_and_logs_are_no_tables(document: str) -> None:
    assert list(text.tables(document.split("\n"))) == []


def test_blank_lines_between_rows_join_the_lines_of_a_row() -> None:
    shown = """
 Layer (type)                Output Shape              Param #   Connected to
==================================================================================
 data (InputLayer)           [(None, 8, 8, 3)]         0         []

 block.first_layer.with_a_l  (None, 8, 8, 4)           112       ['data[0][0]']
 ong_name (Conv2D)

 block.cat (Concatenate)     (None, 8, 8, 7)           0         ['data[0][0]',
                                                                  'block.first[0][0]']

==================================================================================
"""
    (table,) = text.tables(shown.splitlines())
    assert [row.cells[0].text for row in table.rows] == [
        "data (InputLayer)",
        "block.first_layer.with_a_long_name (Conv2D)",
        "block.cat (Concatenate)",
    ]
