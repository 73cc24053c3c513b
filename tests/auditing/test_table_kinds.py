"""Columns of published tables: one right table of each kind, and wrong cells that are found."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text

KERNEL_SHAPES = """
           Kernel Shape       Output Shape
Layer
0_conv1    [3, 16, 3, 3]    [1, 16, 32, 32]
1_bn1               [16]    [1, 16, 32, 32]
2_relu                 -    [1, 16, 32, 32]
3_conv2   [16, 32, 3, 3]    [1, 32, 32, 32]
4_pool                 -    [1, 32, 16, 16]
5_conv3    [8, 64, 3, 3]    [1, 64, 16, 16]
6_conv4   [64, 64, 1, 1]    [1, 64, 16, 16]
"""
CORE_SIZES = """
| Layer | Input Size | Core Size | Output Size | Parameters |
|:-----:|:----------:|:---------:|:-----------:|:----------:|
| Convolution $C_1$ | $32\\times32\\times3$ | $5\\times5\\times3/1,8$ | $28\\times28\\times8$ | $(5\\times5\\times3+1)\\times8$ |
| Max pooling $S_2$ | $28\\times28\\times8$ | $2\\times2/2$ | $14\\times14\\times8$ | $0$ |
| Convolution $C_3$ | $14\\times14\\times8$ | $5\\times5\\times8/1,16$ | $10\\times10\\times16$ | $(5\\times5\\times8+1)\\times16$ |
| Max pooling $S_4$ | $10\\times10\\times16$ | $2\\times2/2$ | $5\\times5\\times16$ | $0$ |
| Full connection $F_5$ | $5\\times5\\times16$ | $400\\times84$ | $1\\times1\\times84$ | $(400+1)\\times84$ |
| Output layer | $1\\times1\\times84$ | $84\\times10$ | $1\\times1\\times10$ | $(84+1)\\times10$ |
"""  # noqa: E501
DEPLOYED = """
m_id   layer (type,original)                   oshape                 param/size      macc      connected to
------ --------------------------------------- ---------------------- --------------- --------- ------------
0      input_0 (Input, )                       [b:1,h:40,w:1,c:20]
       conv_0 (Conv2D, DEPTHWISE_CONV_2D)      [b:1,h:31,w:1,c:20]    220/280             6,220 input_0
1      conv_1 (Conv2D, CONV_2D)                [b:1,h:31,w:1,c:64]    1,344/1,536        39,744 conv_0
       nl_1 (Nonlinearity, CONV_2D)            [b:1,h:31,w:1,c:64]                        1,984 conv_1
2      conv_2 (Conv2D, CONV_2D)                [b:1,h:31,w:1,c:32]    2,080/2,176        63,520 nl_1
"""  # noqa: E501
FIELDS = """
| Layer | K,P,S | Input | Output | RF | Jump |
| ----- | ----- | ----- | ------ | -- | ---- |
| Conv | 3,1,1 | 64 | 64 | 1+(3-1)*1 = 3 | 1*1 = 1 |
| Pool | 2,0,2 | 64 | 32 | 3+(2-1)*1 = 4 | 1*2 = 2 |
| Conv | 3,1,1 | 32 | 32 | 4+(3-1)*2 = 8 | 2*1 = 2 |
| Conv | 3,1,1 | 32 | 32 | 8+(3-1)*2 = 12 | 2*1 = 2 |
| Pool | 2,0,2 | 32 | 16 | 12+(2-1)*2 = 14 | 2*2 = 4 |
"""
ARRAYS = """
| Name | Shape | Squeezed shape | Number of parameters |
| --- | --- | --- | --- |
| embed.weight | (1, 1000, 64) | (1000, 64) | 64000 |
| layer.0.attn.weight | (64, 192) | (64, 192) | 12288 |
| layer.0.attn.bias | (192,) | (192,) | 192 |
| layer.0.proj.weight | (64, 64) | (64, 64) | 4096 |
| layer.0.proj.bias | (64,) | (64,) | 64 |
| layer.0.mlp.weight | (64, 256) | (64, 256) | 16384 |
"""
DEVICES = """
| 网络层 | 输入尺寸 | 核尺寸 | 输出尺寸 | 可训练参数量 |
|:-:|:-:|:-:|:-:|:-:|
| 卷积层$C_1$ | $64\\times64\\times3$ | $5\\times5\\times3/2,24(\\times2_{GPU})$ | $30\\times30\\times24(\\times2_{GPU})$ | $(5\\times5\\times3+1)\\times24\\times2$ |
| 下采样层$S_{max}$ | $30\\times30\\times24(\\times2_{GPU})$ | $2\\times2/2(\\times2_{GPU})$ | $15\\times15\\times24(\\times2_{GPU})$ | 0 |
| 卷积层$C_2$ | $15\\times15\\times24(\\times2_{GPU})$ | $3\\times3\\times24/1,32(\\times2_{GPU})$ | $13\\times13\\times32(\\times2_{GPU})$ | $(3\\times3\\times24+1)\\times32\\times2$ |
| 卷积层$C_3$ | $13\\times13\\times32\\times2_{GPU}$ | $3\\times3\\times64/1,40(\\times2_{GPU})$ | $11\\times11\\times40(\\times2_{GPU})$ | $(3\\times3\\times64+1)\\times40\\times2$ |
| 全连接层$FC_4$ | $11\\times11\\times40\\times2_{GPU}$ | $9680\\times50(\\times2_{GPU})$ | $1\\times1\\times50(\\times2_{GPU})$ | $(9680+1)\\times50\\times2$ |
| 全连接层$FC_5$ | $1\\times1\\times50\\times2_{GPU}$ | $100\\times10$ | $1\\times1\\times10$ | $(100+1)\\times10$ |
"""  # noqa: E501
VECTORS = """
| Layer | Output | Parameters |
| --- | --- | --- |
| Input | 28x28x1 | 0 |
| Conv 3x3 | 26x26x8 | 80 |
| MaxPool 2x2 | 13x13x8 | 0 |
| Conv 3x3 | 11x11x16 | 1,168 |
| FC | 1x120 | 232,440 |
| FC | 1x84 | 10,164 |
| FC | 1x10 | 850 |
"""
TABLES = {
    "devices": DEVICES, "vectors": VECTORS,
    "kernel shapes": KERNEL_SHAPES, "core sizes": CORE_SIZES, "deployed": DEPLOYED,
    "fields": FIELDS, "arrays": ARRAYS,
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_right_tables_have_no_findings(name: str) -> None:
    assert audit_text(TABLES[name], name).findings == ()


# table, the right text and the wrong one, the column that is named
WRONG = [
    ("kernel shapes", "[16, 32, 3, 3]", "[12, 32, 3, 3]", "Kernel Shape"),
    ("kernel shapes", "[64, 64, 1, 1]", "[64, 65, 1, 1]", "Kernel Shape"),
    ("kernel shapes", "[8, 64, 3, 3]", "[9, 64, 3, 3]", "Kernel Shape"),
    ("core sizes", "5\\times8/1,16", "5\\times6/1,16", "Core Size"),
    ("core sizes", "$400\\times84$", "$480\\times84$", "Core Size"),
    ("core sizes", "$84\\times10$", "$84\\times16$", "Core Size"),
    ("core sizes", "$(84+1)", "$(64+1)", "Parameters"),
    ("core sizes", "$1\\times1\\times10$", "$1\\times3\\times10$", "Output Size"),
    ("devices", "3/2,24(", "3/2,27(", "核尺寸"),
    (
        "devices",
        "15\\times15\\times24(\\times2_{GPU})$ | 0",
        "15\\times15\\times26(\\times2_{GPU})$ | 0",
        "输出尺寸",
    ),
    ("devices", "+1)\\times32\\times2$", "+1)\\times32\\times4$", "可训练参数量"),
    ("devices", "(100+1)\\times10$", "(100+1)\\times10\\times2$", "可训练参数量"),
    ("vectors", "| 1x84 |", "| 1x94 |", "Output"),
    ("vectors", "10,164", "10,184", "Parameters"),
    ("deployed", "39,744", "39,764", "macc"),
    ("deployed", "6,220", "6,620", "macc"),
    ("deployed", "2,080/", "2,085/", "param/size"),
    ("fields", "8+(3-1)*2 = 12", "8+(3-1)*2 = 17", "RF"),
    ("fields", "1*2 = 2", "1*3 = 2", "Jump"),
    ("arrays", "| (64, 192) | 12288", "| (64, 182) | 12288", "Squeezed shape"),
    ("arrays", "| (1, 1000, 64)", "| (1, 1001, 64)", "Shape"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "column"), WRONG)
def test_wrong_cells_are_found(name: str, right: str, wrong: str, column: str) -> None:
    text = TABLES[name]
    assert text.count(right) == 1
    changed = text.replace(right, wrong)
    line = 1 + changed[: changed.index(wrong)].count("\n")
    (finding,) = audit_text(changed, name).findings
    named = (f"{finding.column} in line {finding.line}", *finding.also)
    assert f"{column} in line {line}" in named
