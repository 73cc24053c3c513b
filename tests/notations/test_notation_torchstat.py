"""The notation torchstat against what torchstat 0.0.7 printed.

`printed/torchstat_0.0.7.txt` is the output of torchstat on the model that `plain` builds, with
`DataFrame.append` and `np.long`, which pandas and numpy no longer have, defined as they were. What
differs on purpose is corrected before comparing: durations are `?`, and MemRead and MemWrite of the
row `total` are sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.graph.attributes import Pool
from layerscope.notations import write
from layerscope.notations.torchstat import stat_rows
from tests.networks import waves

PRINTED = Path(__file__).parent / "printed" / "torchstat_0.0.7.txt"
NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50", "googlenet": "googlenet", "waves": waves,
}  # fmt: skip


def corrected(text: str, wrong: str, sums: str) -> str:
    """A printed text from its table on, without durations and with the right sums."""
    text = re.sub(r"\d+\.\d\d%", lambda found: "?".rjust(len(found[0])), text)
    lines = [line for line in text.splitlines() if line and "is not supported!" not in line]
    (total,) = (n for n, line in enumerate(lines) if line.startswith("total "))
    assert wrong in lines[total]
    assert len(wrong) == len(sums)
    lines[total] = lines[total].replace(wrong, sums)
    return "\n".join(lines) + "\n"


def example() -> Graph:
    """The network of torchstat's documentation, whose pools and activations are functions."""
    b = Builder("Net")
    x = b.input("x", (1, 3, 224, 224))

    def halved(x: str) -> str:
        (x,) = b.add_node("max_pool", (x,), Pool(b.window(2, 2, 0, 1)), module=False)
        return b.activation("relu", x, module=False)

    x = halved(b.conv(x, 10, 5, name="conv1"))
    x = halved(b.dropout(b.conv(x, 20, 5, name="conv2"), name="conv2_drop"))
    (x,) = b.add_node("flatten", (x,), module=False)
    x = b.activation("relu", b.linear(x, 50, name="fc1"), module=False)
    return b.build(b.linear(x, 10, name="fc2"))


def plain() -> Graph:
    """Modules that torchstat has rules for, and nn.Dropout, numbered as in nn.Sequential."""
    b = Builder("Sequential")
    x = b.batch_norm(b.conv(b.input("x", (1, 3, 32, 32)), 8, 3, bias=False, name="0"), name="1")
    x = b.conv(b.relu(x, name="2"), 16, 3, stride=2, groups=4, name="3")
    x = b.activation("relu6", b.batch_norm(x, affine=False, name="4"), name="5")
    x = b.avg_pool(b.max_pool(x, 3, stride=2, name="6"), 2, name="7")
    return b.build(b.linear(b.flatten(b.dropout(x, name="8")), 5, name="9"))


@pytest.mark.parametrize("batch", [1, 3])
def test_the_documentation_s_example(shared: Path, batch: int) -> None:
    page = (shared / "truth" / "tables" / "36.txt").read_text(encoding="utf-8")
    block = page.split("-m Net\n")[1].split("```")[0]
    expected = corrected(block, "    2240.0         40.0", "12572392.0    2835120.0")
    assert write(analyze(example(), batch=batch), "torchstat") == expected


def test_text_is_that_of_torchstat() -> None:
    printed = PRINTED.read_text(encoding="utf-8")
    expected = corrected(printed, "  3476.0         20.0", "144372.0     126932.0")
    assert write(analyze(plain()), "torchstat") == expected


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    network = NETWORKS[name]
    report = analyze(network if isinstance(network, str) else network())
    golden(f"torchstat/{name}.txt", write(report, "torchstat"))


@pytest.mark.parametrize("build", [example, plain])
def test_columns_add_up(build: Callable[[], Graph]) -> None:
    lines = write(analyze(build()), "torchstat").splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith("total"))
    rows = [line.replace(",", "").split() for line in lines[1 : end + 1]]
    *columns, duration, moved = zip(*[row[-8:] for row in rows], strict=True)
    assert set(duration) == {"?"}
    for column in (columns[0], *columns[2:], moved):
        assert sum(map(float, column[:-1])) == float(column[-1])
    assert [float(n) for n in moved] == [
        float(a) + float(b) for a, b in zip(columns[-2], columns[-1], strict=True)
    ]


def test_what_torchstat_has_no_rule_for_is_unknown() -> None:
    b = Builder("odd")
    x = b.activation("sigmoid", b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, name="conv"), name="act")
    (x,) = b.add_node("warp::drive", (b.resize(x, 2, name="up"),), name="warp")
    report = analyze(b.build(x))
    rows = {row.name: row for row in stat_rows(report)}
    assert (rows["act"].params, rows["act"].madd, rows["act"].flops, rows["act"].moved) == (
        0, None, None, None,
    )  # fmt: skip
    assert (rows["up"].madd, rows["up"].flops, rows["up"].moved) == (0, 144, None)
    assert (rows["warp"].params, rows["warp"].memory) == (None, None)
    totals = [line for line in write(report, "torchstat").splitlines() if "Total" in line]
    assert all(line.endswith(" + ?") for line in totals)
