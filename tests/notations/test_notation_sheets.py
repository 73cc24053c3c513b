"""The three course sheets against their documents, cell by cell, and on other networks."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest
from msgspec import Struct

from layerscope import Builder, Graph, Report, analyze
from layerscope.notations import write
from layerscope.notations.sheet import lines, memory_text, params_text, total_text
from layerscope.report.findings import findings
from tests.networks import waves

Cells = dict[tuple[int, int], tuple[str, str]]  # row, column -> the document's cell, ours

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50",
    "googlenet": "googlenet",
    "waves": waves,
}
SHEETS = ("backbone", "cs231n", "cs231n.md", "layersheet")


def account(name: str, like: str = "cs231n") -> Report:
    network = NETWORKS.get(name, name)
    return analyze(network if isinstance(network, str) else network(), like=like)


def document(shared: Path, number: str) -> list[str]:
    (path,) = (shared / "seeds").glob(f"{number}_*")
    return path.read_text(encoding="utf-8").splitlines()


def table_under(text: list[str], header: str) -> list[str]:
    """The lines of a Markdown table from the one that starts like `header`."""
    start = next(n for n, line in enumerate(text) if line.startswith(header))
    end = next((n for n in range(start, len(text)) if not text[n].startswith("|")), len(text))
    return text[start:end]


def cells(line: str) -> list[str]:
    """The text between bars, padding included."""
    return line.removeprefix("|").removesuffix("|").split("|")


def differences(theirs: list[str], ours: list[str]) -> Cells:
    """Cells that differ; all others must be equal in their padding too, or have the same text."""
    assert len(theirs) == len(ours)
    found: Cells = {}
    for row, (their_line, our_line) in enumerate(zip(theirs, ours, strict=True)):
        pairs = zip(cells(their_line), cells(our_line), strict=True)
        for column, (their_cell, our_cell) in enumerate(pairs):
            if their_cell != our_cell:
                found[row, column] = (their_cell.strip(), our_cell.strip())
    return found


def test_backbone_is_document_002(shared: Path) -> None:
    theirs = table_under(document(shared, "002"), "|   name ")
    ours = write(account("vgg16"), "backbone").splitlines()
    comma = ("2,3M", "2.3M")  # a comma for the point that every other cell has
    assert differences(theirs, ours) == {
        (14, 6): comma,  # conv4_2
        (15, 6): comma,  # conv4_3
        (17, 6): comma,  # conv5_1
        (18, 6): comma,  # conv5_2
        (19, 6): comma,  # conv5_3
    }
    assert [line.replace("2,3M", "2.3M") for line in theirs] == ours


def test_cs231n_is_document_002(shared: Path) -> None:
    text = document(shared, "002")
    start = text.index("```txt") + 1
    theirs = text[start : text.index("```", start)]
    ours = write(account("vgg16"), "cs231n").splitlines()
    block, found = ours[: len(theirs)], ours[len(theirs) :]
    different = [n for n, pair in enumerate(zip(theirs, block, strict=True)) if len(set(pair)) > 1]
    assert {n: (theirs[n].split("  ", 2)[2], block[n].split("  ", 2)[2]) for n in different} == {
        # two blanks before `weights`, where every product before it has three
        18: ("7*7*512=25K  weights: 0", "7*7*512=25K   weights: 0"),
        # one blank, where the two linear layers above have two
        21: ("1000 weights: 4096*1000 = 4,096,000", "1000  weights: 4096*1000 = 4,096,000"),
    }
    # The document's own findings, early convolutions and late linear layers, now computed.
    assert found == [
        "",
        "- Most memory is in early CONV (CONV3-64 in row 2, CONV3-64 in row 3 and CONV3-128 in "
        "row 5): 52.7% of 15,237,608.",
        "- Most params are in late FC (FC in row 20): 74.3% of 138,344,128.",
    ]


def test_layersheet_is_document_003(shared: Path) -> None:
    theirs = table_under(document(shared, "003"), "| Layer ID")
    ours = write(account("vgg19"), "layersheet").splitlines()
    assert differences(theirs, ours) == {
        # 3x3 patches with parameters: convolutions, not pools
        (19, 1): (r"Pool5\_1", r"Conv5\_1"),
        (20, 1): (r"Pool5\_2", r"Conv5\_2"),
        (21, 1): (r"Pool5\_3", r"Conv5\_3"),
        (22, 1): (r"Pool5\_4", r"Conv5\_4"),
        # the pool after the fifth stage, as Pool1 is the one after the first
        (23, 1): ("Pool6", "Pool5"),
    }


def test_cs231n_markdown_is_document_003(shared: Path) -> None:
    theirs = table_under(document(shared, "003"), "| Layer     |")
    ours = write(account("vgg19"), "cs231n.md").splitlines()
    fifth = r"14\*14\*512=100"
    wide = r"(3\*3\*512)\*512="
    third = r"(3\*3\*256)\*256="
    expected: Cells = {
        (5, 2): ("", "0"),  # a pool without its 0
        # four figures and K, where the rule is two figures and M from a million on
        (6, 1): (r"112\*112\*128=1568K", r"112\*112\*128=1.6M"),
        (7, 1): (r"112\*112\*128==1568K", r"112\*112\*128=1.6M"),
        # the pool before it written again, and in full
        (13, 1): (r"56\*56\*128=401408", r"28\*28\*256=200K"),
        (18, 1): (r"28\*28\*256=200,704", r"14\*14\*512=100K"),
        (23, 1): (r"7\*7\*512=25088", r"7\*7\*512=25K"),  # in full, from 10,000 on
        (26, 2): ("", r"4096\*1000=4,096,000"),  # a linear layer without its product
        # no comma, which the first two products and the linear layers have
        (6, 2): (r"(3\*3\*64)\*128=73728", r"(3\*3\*64)\*128=73,728"),
        (7, 2): (r"(3\*3\*128)\*128=147456", r"(3\*3\*128)\*128=147,456"),
        (9, 2): (r"(3\*3\*128)\*256=294912", r"(3\*3\*128)\*256=294,912"),
    }
    expected |= {(row, 2): (third + "589824", third + "589,824") for row in (10, 11, 12)}
    no_comma = (wide + "2359296", wide + "2,359,296")
    expected |= {(row, 2): no_comma for row in (15, 16, 17, 19, 20, 21, 22)}
    # a small k
    expected |= {(row, 1): (fifth + "k", fifth + "K") for row in (19, 20, 21, 22)}
    assert differences(theirs, ours) == expected


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("sheet", SHEETS)
def test_golden(sheet: str, name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{sheet}/{name}.txt", write(account(name), sheet))


@pytest.mark.parametrize("name", [*NETWORKS, "vgg16", "alexnet-caffe"])
def test_layersheet_adds_up(name: str) -> None:
    report = account(name)
    rows = [[c.strip() for c in cells(line)] for line in write(report, "layersheet").splitlines()]
    memory, params, ratio = (
        [row[column].replace(",", "") for row in rows[2:]] for column in (-3, -2, -1)
    )
    assert sum(map(int, memory[:-1])) == int(memory[-1]) == report.totals.convention_activations
    counts = [int(cell or 0) for cell in params]
    assert sum(counts[:-1]) == counts[-1] == report.totals.params
    for count, share in zip(counts[:-1], ratio, strict=False):
        exact = 100 * count / counts[-1]
        assert abs(float(share.removesuffix("%") or 0) - exact) <= 0.005
    assert [row[0] for row in rows[2:]] == [*map(str, range(len(rows) - 3)), "Total"]


@pytest.mark.parametrize("name", [*NETWORKS, "vgg16", "alexnet-caffe"])
def test_cs231n_adds_up(name: str) -> None:
    """Products are multiplied out again, in both forms."""
    report = account(name)
    totals = report.totals
    memory = weights = 0
    for line in write(report, "cs231n").splitlines():
        if match := re.search(r"memory:  (\S+) +weights: (.+)", line):
            memory += multiply(match[1])
            weights += multiply(match[2])
    assert (memory, weights) == (totals.convention_activations, totals.params)
    rows = [cells(line) for line in write(report, "cs231n.md").replace("\\", "").splitlines()]
    for column, total in ((1, totals.convention_activations), (2, totals.params)):
        figures = [row[column].strip() for row in rows[2:]]
        assert sum(map(multiply, figures[:-1])) == int(figures[-1].replace(",", "")) == total


def multiply(cell: str) -> int:
    """The product before `=`, which must be what stands after it where that is in full."""
    product, _, value = cell.partition("=")
    factors = [int(factor) for factor in re.findall(r"\d+", product.replace(",", ""))]
    if value.strip().replace(",", "").isdigit():
        assert prod(factors) == int(value.replace(",", ""))
    return prod(factors)


@pytest.mark.parametrize("name", [*NETWORKS, "vgg16", "alexnet-caffe"])
def test_backbone_adds_up(name: str) -> None:
    """Within what two figures of memory, and cut parameters, leave open."""
    report = account(name)
    rows = [[c.strip() for c in cells(line)] for line in write(report, "backbone").splitlines()]
    for column, cut, total in (
        (6, True, report.totals.params),
        (7, False, report.totals.convention_activations),
    ):
        figures = [spread(row[column], cut) for row in rows[2:-2] if row[column]]
        least, most = (sum(bound) for bound in zip(*figures, strict=True))
        assert least <= total <= most
        assert rows[-1][column] == f"~{total_text(total, cut=cut)}"


def spread(cell: str, cut: bool) -> tuple[float, float]:
    """The least and the most that a printed figure can stand for."""
    unit = {"K": 1e3, "M": 1e6, "G": 1e9}.get(cell[-1], 1)
    figure = cell.rstrip("KMG")
    if unit == 1:
        return float(figure), float(figure)
    value = float(figure) * unit
    tenths = "." in figure or (unit > 1e3 or value < 10_000)
    step = unit / 10 if tenths else unit
    if cut:
        return value, value + step
    step = max(step, 10 ** (len(str(int(value))) - 2))
    return value - step / 2, value + step / 2


@pytest.mark.parametrize(
    "count, text, in_table",
    [
        (4096, "4096", "4096"),
        (9999, "9999", "9999"),
        (10_000, "10K", "10K"),
        (25_088, "25K", "25K"),
        (150_528, "150K", "150K"),
        (100_352, "100K", "0.1M"),
        (802_816, "800K", "0.8M"),
        (950_000, "950K", "950K"),
        (995_000, "1M", "1M"),
        (1_605_632, "1.6M", "1.6M"),
        (12_345_678, "12M", "12M"),
        (127_000_000, "130M", "130M"),
        (1_250_000_000, "1.3G", "1.3G"),
    ],
)
def test_memory_text(count: int, text: str, in_table: str) -> None:
    assert memory_text(count) == text
    assert memory_text(count, tenths=True) == in_table


@pytest.mark.parametrize(
    "count, text",
    [
        (288, "288"),
        (1000, "1K"),
        (1728, "1.7K"),
        (9999, "9.9K"),
        (36_864, "36K"),
        (999_999, "999K"),
        (1_179_648, "1.1M"),
        (4_096_000, "4M"),
        (102_760_448, "102.7M"),
        (1_999_999_999, "1.9G"),
    ],
)
def test_params_text(count: int, text: str) -> None:
    assert params_text(count) == text


@pytest.mark.parametrize(
    "count, rounded, cut",
    [
        (1984, "1984", "1984"),
        (245_790, "246K", "245K"),
        (1_235_496, "1.2M", "1.2M"),
        (9_960_000, "10M", "9.9M"),
        (15_237_608, "15M", "15M"),
        (143_652_544, "144M", "143M"),
        (999_600, "1M", "999K"),
    ],
)
def test_total_text(count: int, rounded: str, cut: str) -> None:
    assert total_text(count) == rounded
    assert total_text(count, cut=True) == cut


def branches() -> Graph:
    """Branches that change resolution, squeeze and excitation, a decoder that goes back up."""
    b = Builder("branches")
    x = b.input("data", (1, 3, 64, 64))
    x = b.conv(x, 8, 3, stride=2, padding=1, name="stem")
    long = b.conv(b.conv(x, 8, 1, name="a1"), 8, 3, stride=2, padding=1, name="a2")
    short = b.conv(x, 8, 3, stride=2, padding=1, name="b1")
    y = b.concat(long, short, b.max_pool(x, 2, name="c1"), name="join")
    gate = b.conv(b.global_pool(y, name="squeeze"), 24, 1, name="excite")
    y = b.mul(y, b.activation("sigmoid", gate, name="sigmoid"), name="scale")
    y = b.conv(y, 24, 3, padding=1, groups=24, name="depthwise")
    y = b.conv_transpose(y, 8, 2, stride=2, name="up")
    return b.build(b.conv(b.add(y, x, name="skip"), 4, 3, padding=2, dilation=2, name="last"))


def test_stages_follow_the_ways_through_the_graph() -> None:
    numbered = {
        line.layer.name: line.kind + line.number
        for line in lines(analyze(branches(), like="cs231n"))
        if line.layer is not None
    }
    assert numbered == {
        "stem": "conv1_1",
        "a1": "conv1_2",
        "a2": "conv2_1",
        "b1": "conv2_2",
        "c1": "pool1",
        "join": "concat",
        "squeeze": "pool2",
        "excite": "conv2_3",
        "scale": "mul",
        "depthwise": "conv2_4",
        "up": "deconv3_1",
        "skip": "add",
        "last": "conv3_1",
    }


def test_cs231n_tells_groups_and_dilation() -> None:
    text = write(analyze(branches(), like="cs231n"), "cs231n")
    assert "CONV3-24 (depthwise): [16x16x24]  memory:  16*16*24=6144   " in text
    assert "weights: (3*3*1)*24 = 216\n" in text
    assert "DECONV2-8: [32x32x8]" in text
    assert "weights: (2*2*24)*8 = 768\n" in text
    assert "CONV3-4 (dilation 2): [32x32x4]" in text
    assert "\nadd: [32x32x8]  memory:  32*32*8=8192   weights: 0\n" in text


def test_three_dimensions_and_a_batch() -> None:
    b = Builder("clip")
    x = b.conv(b.input("clip", (2, 3, 8, 32, 32)), 16, (1, 7, 7), padding=(0, 3, 3), name="stem")
    report = analyze(b.build(b.linear(x, 5, flatten=True, name="fc")), like="cs231n")
    text = write(report, "cs231n").splitlines()
    assert text[0] == "INPUT: [2x8x32x32x3]        memory:  2*8*32*32*3=49K   weights: 0"
    assert text[1] == (
        "CONV1x7x7-16: [2x8x32x32x16]  memory:  2*8*32*32*16=260K   weights: (1*7*7*3)*16 = 2,352"
    )
    assert text[2] == ("FC: [2x1x1x1x5]  memory:  2*5=10   weights: 8*32*32*16*5 = 655,360")
    assert text[4].startswith("TOTAL memory: 311K * 4 bytes ~= 1.2MB / 2 images")
    assert "Patch Size (Depth)" in write(report, "layersheet")
    assert r"$8 \times 32 \times 32$" in write(report, "backbone")


def test_unknown_layers_are_marked() -> None:
    b = Builder("odd")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv")
    x = b.add_node("mystery", (x,), name="what")[0]
    report = analyze(b.build(b.conv(x, 4, 3, name="after")), like="cs231n")
    text = write(report, "cs231n")
    assert "\nmystery: [?]  memory:  ?  weights: ?\nCONV3-4: [?]  memory:  ?  weights: ?\n" in text
    assert "TOTAL memory: (336 + ?) * 4 bytes ~= 1344B + ? / image" in text
    assert "TOTAL params: 108 + ? parameters" in text
    assert "of 336 known." in text
    assert "| 336 + ? " in write(report, "layersheet")
    assert "| `mystery` |       |        |         |      ?      |" in write(report, "backbone")


def test_another_convention_lists_all_that_it_counts() -> None:
    """CustomCost exactly, norms and ReLUs have lines too, and biases stand beside the product."""
    report = account("waves", like="exact")
    text = write(report, "cs231n")
    assert "weights: (9*2)*16 + 16 = 304\n" in text
    assert "\nbatch_norm: [200x16]  memory:  200*16=3200   weights: 32\n" in text
    rows = [[c.strip() for c in cells(line)] for line in write(report, "layersheet").splitlines()]
    assert (
        sum(int(row[-3].replace(",", "")) for row in rows[2:-1])
        == report.totals.convention_activations
    )


def test_tied_weights_are_counted_once() -> None:
    b = Builder("tied")
    x = b.input("data", (1, 16))
    x = b.add_node("linear", (x,), _linear(16), name="one")[0]
    x = b.add_node("linear", (x,), _linear(16), name="two", ties={"weight": "one.weight"})[0]
    text = write(analyze(b.build(x), like="cs231n"), "cs231n")
    assert "weights: 16*16 = 256\n" in text
    assert "FC: [16]  memory:  16  weights: 0\n" in text
    assert "TOTAL params: 256 parameters" in text


def _linear(features: int) -> Struct:
    from layerscope.graph.attributes import Linear

    return Linear(features)


def test_findings() -> None:
    assert findings(account("resnet50", like="exact")) == (
        "Most activations are in layer1 (all 32 layers) and layer2 (all 42 layers): 67.6% of "
        "37,559,784.",
        "Most parameters are in layer4 (20 of 32 layers): 58.6% of 25,557,032.",
        "Most MACs are in layer2 (13 of 42 layers) and layer3 (19 of 62 layers): 60.9% of "
        "4,089,184,256.",
        "Memory peaks at layer1.0.downsample.1, with 9,633,792 bytes alive: layer1.0.bn3 33.3%, "
        "layer1.0.downsample.0 33.3% and layer1.0.downsample.1 33.3%.",
    )
