"""The notation darknet against published logs, in the layouts of three versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.notations import write
from tests.networks import waves

FORMS = ("darknet", "darknet.2019", "darknet.2018")
NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50", "googlenet": "googlenet", "alexnet": "alexnet", "waves": waves,
}  # fmt: skip


class Net(Builder):
    """A builder of networks in Darknet's terms; `last` is the output of the last row."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.last = self.input("data", (1, 3, size, size))

    def block(self, channels: int, kernel: int = 3, stride: int = 1) -> None:
        padding = kernel // 2
        x = self.conv(self.last, channels, kernel, stride=stride, padding=padding, bias=False)
        self.last = self.activation("leaky_relu", self.batch_norm(x))

    def halved(self) -> None:
        """Max pooling of 2 x 2, padded at the end."""
        self.last = self.max_pool(self.last, 2, stride=2, padding="same_upper")


def reference() -> Graph:
    """The classifier "darknet reference"."""
    b = Net("darknet", 224)
    for channels in (16, 32, 64, 128, 256, 512):
        b.block(channels)
        b.halved()
    b.block(1024)
    b.last = b.conv(b.last, 1000, 1)
    return b.build(b.softmax_loss(b.flatten(b.global_pool(b.last))))


def darknet19() -> Graph:
    b = Net("darknet19", 448)
    for channels, count in ((32, 1), (64, 1), (128, 3), (256, 3), (512, 5), (1024, 5)):
        for n in range(count):
            b.block(channels // 2, 1) if n % 2 else b.block(channels)
        if channels != 1024:
            b.halved()
    b.last = b.conv(b.last, 10, 1)
    return b.build(b.softmax_loss(b.flatten(b.global_pool(b.last))))


def darknet53() -> Graph:
    b = Net("darknet53", 256)
    b.block(32)
    for channels, count in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        b.block(channels, stride=2)
        for _ in range(count):
            before = b.last
            b.block(channels // 2, 1)
            b.block(channels)
            b.last = b.add(b.last, before)
    b.last = b.conv(b.global_pool(b.last), 2, 1)
    return b.build(b.softmax_loss(b.flatten(b.last)))


@pytest.mark.parametrize(
    ("document", "build", "form"),
    [
        ("11", reference, "darknet.2019"),
        ("12", darknet19, "darknet.2018"),
        ("13", darknet53, "darknet.2018"),
    ],
)
def test_log_is_the_published_one(
    shared: Path, document: str, build: Callable[[], Graph], form: str
) -> None:
    page = (shared / "truth" / "tables" / f"{document}.txt").read_text(encoding="utf-8")
    assert write(analyze(build(), batch=2), form) == page.split("```\n")[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_golden(form: str, name: str, golden: Callable[[str, str], None]) -> None:
    network = NETWORKS[name]
    report = analyze(network if isinstance(network, str) else network())
    golden(f"{form}/{name}.txt", write(report, form))


@pytest.mark.parametrize("build", [reference, darknet19, darknet53])
@pytest.mark.parametrize("form", FORMS)
def test_rows_add_up(build: Callable[[], Graph], form: str) -> None:
    report = analyze(build())
    *rows, total = write(report, form).splitlines()[1:]
    assert [int(row[:4]) for row in rows] == list(range(len(rows)))
    counted = [row for row in rows if row.endswith(" BF")]
    printed = [float(row.split()[-2]) for row in counted]
    assert sum(printed) == pytest.approx(float(total.split()[-1]), abs=len(printed) * 0.0005)
    convolutions = sum(layer.ops.mac for layer in report.layers if layer.op == "conv")
    found = sum(float(row.split()[-2]) for row in rows if " conv " in row)
    assert found == pytest.approx(2 * convolutions / 1e9, abs=len(rows) * 0.0005)


def branches() -> Graph:
    """A sum of two branches, a concatenation, upsampling, a linear layer and dropout."""
    b = Builder("branches")
    data = b.input("data", (1, 3, 32, 32))
    stem = b.relu(b.conv(data, 16, 3, padding=1))
    left = b.batch_norm(b.conv(stem, 32, 3, stride=2, padding=2, dilation=2, groups=16))
    right = b.conv(stem, 32, 1, stride=2)
    x = b.relu(b.add(left, right))
    x = b.concat(b.resize(x, 2), b.conv(data, 8, 1), axis=1)
    x = b.lrn(x, 5)
    x = b.dropout(b.linear(b.flatten(x), 10), 0.25)
    return b.build(b.softmax(x))


def test_rows_refer_to_rows() -> None:
    assert write(analyze(branches()), "darknet").replace("\t", "→").splitlines() == [
        "   layer   filters  size/strd(dil)      input                output",
        "   0 conv     16       3 x 3/ 1     32 x  32 x   3 ->   32 x  32 x  16 0.001 BF",
        "   1 conv     32/  16  3 x 3/ 2(2)  32 x  32 x  16 ->   16 x  16 x  32 0.000 BF",
        "   2 route  0 →→                           ->   32 x  32 x  16 ",
        "   3 conv     32       1 x 1/ 2     32 x  32 x  16 ->   16 x  16 x  32 0.000 BF",
        "   4 Shortcut Layer: 1,  wt = 0, wn = 0, outputs:  16 x  16 x  32 0.000 BF",
        "   5 upsample                 2x    16 x  16 x  32 ->   32 x  32 x  32",
        "   6 route  data →→                           ->   32 x  32 x   3 ",
        "   7 conv      8       1 x 1/ 1     32 x  32 x   3 ->   32 x  32 x   8 0.000 BF",
        "   8 route  5 7 →                           ->   32 x  32 x  40 ",
        "   9 lrn                            32 x  32 x  40 ->   32 x  32 x  40     ? BF",
        "  10 connected                            40960  ->    10",
        "  11 dropout    p = 0.250          10  ->     10",
        "  12 softmax                                          10",
        "Total BFLOPS 0.001 + ? ",
    ]


def test_what_another_layer_reads_has_its_own_row() -> None:
    """A batch norm joins a convolution only if nothing else reads that."""
    b = Builder("two readers")
    x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, padding=1)
    y = b.relu(b.batch_norm(x))
    lines = write(analyze(b.build(b.add(x, y))), "darknet").splitlines()
    assert [line.split()[1] for line in lines[1:-1]] == ["conv", "batch_norm", "relu", "Shortcut"]
    assert lines[-1] == "Total BFLOPS 0.000 + ? "


def test_unknown_layers_are_rows_with_their_name() -> None:
    b = Builder("odd")
    x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3)
    (x,) = b.add_node("warp::drive", (x,))
    text = write(analyze(b.build(x)), "darknet")
    assert re.search(r"\n   1 warp::drive +6 x   6 x   4 ->    \? x   \? x   \?     \? BF\n", text)
    assert text.endswith("Total BFLOPS 0.000 + ? \n")
