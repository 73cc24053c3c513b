"""MatConvNet's print of a DagNN: its tables, every figure computed again from the others."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.notations import write
from layerscope.notations.matconvnet import memory_text
from tests.formats.matconvnet.matfiles import Structs
from tests.formats.matconvnet.matfiles import write as save
from tests.formats.matconvnet.matnets import Dag, residual
from tests.networks import waves

Table = dict[str, dict[str, str]]  # name of a column -> row label -> cell
LABELS = {
    "func": ["type", "inputs", "outputs", "params", "pad", "stride"],
    "param": ["dims", "mem", "fanout"],
    "var": ["dims", "mem", "fanin", "fanout"],
    "rf": ["size", "stride", "offset"],
}


def printed(network: str | Graph, **options: object) -> str:
    return write(analyze(network, like="matconvnet", **options), "matconvnet.dag")  # type: ignore[arg-type]


def parse(text: str) -> tuple[dict[str, Table], list[str]]:
    """Tables by the word in their corner, and the three sums; the frame is checked on the way."""
    tables: dict[str, Table] = {}
    sums: list[str] = []
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for whole in text.rstrip("\n").split("\n\n\n"):
        for block in whole.split("\n\n"):
            rows = [line.split("|") for line in block.splitlines()]
            assert all(row.pop() == "" for row in rows), "every cell ends with a bar"
            corner = rows[0][0].strip()
            assert len(rows[0]) <= 19
            for column in zip(*rows, strict=True):
                width = max(len(cell.strip()) for cell in column if set(cell) != {"-"})
                assert {len(cell) for cell in column} == {width}
            if corner == "params":
                assert [row[0].strip() for row in rows] == ["params", "vars", "total"]
                sums = [row[1].strip() for row in rows]
                continue
            assert all(set(cell) == {"-"} for cell in rows.pop(1))
            labels = [row[0].strip() for row in rows[1:]]
            assert labels == LABELS[corner.split(" ")[0]]
            table = tables.setdefault(corner, {})
            for n in range(1, len(rows[0])):
                cells = [row[n].strip() for row in rows]
                table[cells[0]] = dict(zip(labels, cells[1:], strict=True))
    return tables, sums


def numbers(cell: str, count: int) -> list[int]:
    parts = [int(part) for part in cell.split("x")]
    return parts * count if len(parts) == 1 else parts


def product(values: list[int]) -> int:
    whole = 1
    for value in values:
        whole *= value
    return whole


@pytest.fixture
def block(tmp_path: Path) -> str:
    return save(tmp_path / "block.mat", residual())


def test_golden_of_a_file(block: str, golden: Callable[[str, str], None]) -> None:
    golden("matconvnet.dag/block.txt", printed(block))


@pytest.mark.parametrize("network", ["patch32", "resnet50", "googlenet", "waves"])
def test_golden(network: str, golden: Callable[[str, str], None]) -> None:
    golden(f"matconvnet.dag/{network}.txt", printed(waves() if network == "waves" else network))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_file_is_printed_with_its_own_names(block: str, batch: int) -> None:
    tables, _ = parse(printed(block, batch=batch))
    func = tables["func"]
    assert func["stem_bn"] == {
        "type": "BatchNorm", "inputs": "stemx", "outputs": "stem_bnx",
        "params": "stem_bn_mult stem_bn_bias stem_bn_moments", "pad": "n/a", "stride": "n/a",
    }  # fmt: skip
    assert func["pool"]["pad"] == "0x1x0x1"
    assert func["sum"]["inputs"] == "bn_1x branch2bx"
    assert func["loss"]["inputs"] == "fcx label"
    assert tables["param"]["stemf"] == {"dims": "7x7x3x16", "mem": "9KB", "fanout": "1"}
    assert tables["param"]["stem_bn_moments"]["dims"] == "16x2"
    assert tables["param"]["branch2bf"]["dims"] == "3x3x32x64"
    assert tables["param"]["fcf"]["dims"] == "1x1x64x10"
    variables = tables["var"]
    assert variables["data"]["dims"] == f"32x48x3x{batch}"
    assert variables["label"] == {"dims": "n/a", "mem": "NaN", "fanin": "0", "fanout": "2"}
    assert variables["poolx"]["fanout"] == "2"
    assert variables["lossx"]["dims"] == ("1" if batch == 1 else f"1x1x1x{batch}")
    assert list(variables)[:4] == ["data", "stemx", "stem_bnx", "stem_relux"]


@pytest.mark.parametrize("network", ["block", "resnet50", "googlenet", "patch32"])
def test_figures_add_up(network: str, block: str) -> None:
    report = analyze(block if network == "block" else network, like="matconvnet")
    tables, sums = parse(write(report, "matconvnet.dag"))
    params = 0
    for cells in tables["param"].values():
        assert "x" in cells["dims"]  # else it would not tell how many axes there are
        size = 4 * product(numbers(cells["dims"], 1))
        assert cells["mem"] == memory_text(size)
        params += size
    held = 0
    for cells in tables["var"].values():
        if cells["dims"] != "n/a":
            size = 4 * product(numbers(cells["dims"], 4))
            assert cells["mem"] == memory_text(size)
            held += size
    assert params == 4 * report.totals.params
    assert sums == [memory_text(params), memory_text(held), memory_text(params + held)]
    made = [name for row in tables["func"].values() for name in row["outputs"].split()]
    read = [name for row in tables["func"].values() for name in row["inputs"].split()]
    used = [name for row in tables["func"].values() for name in row["params"].split()]
    for name, cells in tables["var"].items():
        assert [cells["fanin"], cells["fanout"]] == [str(made.count(name)), str(read.count(name))]
    assert {name: str(used.count(name)) for name in used} == {
        name: cells["fanout"] for name, cells in tables["param"].items()
    }


@pytest.mark.parametrize("network", ["block", "resnet50", "googlenet", "patch32"])
def test_fields_are_those_of_the_analysis(network: str, block: str) -> None:
    """Where nothing enlarges, a DagNN's way to join fields tells the same as the exact one."""
    report = analyze(block if network == "block" else network, like="matconvnet")
    tables, _ = parse(write(report, "matconvnet.dag"))
    rows = tables["rf in 'data'"]
    assert list(rows) == list(tables["var"])
    compared = 0
    for name, cells in rows.items():
        if cells["size"] == "n/a" or not report.fields[name]:
            continue
        axes = report.fields[name][0].axes
        if any(axis.stride is None for axis in axes):
            continue
        compared += 1
        told = [[Fraction(part) for part in cells[row].split("x")] for row in LABELS["rf"]]
        size, stride, offset = (part * (2 // len(part)) for part in told)
        assert size == [axis.size for axis in axes]
        assert stride == [axis.stride for axis in axes]
        assert offset == [axis.offset + 1 for axis in axes if axis.offset is not None]
    assert compared > 10


def test_fields_past_a_transposed_convolution_and_a_crop(tmp_path: Path) -> None:
    d = Dag()
    d.meta = {"inputs": Structs([{"name": "data", "size": (16, 16, 3)}])}
    x = d.conv("conv", "data", (3, 3, 3, 4), stride=(2, 2), pad=(1, 1, 1, 1))
    up = {"size": (4, 4, 5, 4), "upsample": (2, 2), "crop": (0, 0, 0, 0), "hasBias": 0}
    x = d.add("up", "ConvTranspose", [x], {"upf": (4, 4, 5, 4)}, **up)
    d.add("crop", "Crop", [x, "data"], crop=(1, 2))
    tables, _ = parse(printed(save(tmp_path / "up.mat", d.net)))
    rows = tables["rf in 'data'"]
    assert rows["convx"] == {"size": "3", "stride": "2", "offset": "1"}
    # (4 − 1)/2 + 1 = 2.5 positions of 2, centre (0 − 4 + 1)/4 + 1 = 0.25
    assert rows["upx"] == {"size": "6", "stride": "1", "offset": "-0.5"}
    assert rows["cropx"] == {"size": "6", "stride": "1", "offset": "0.5x1.5"}
    assert tables["func"]["up"]["pad"] == tables["func"]["up"]["stride"] == "n/a"
    assert tables["var"]["upx"]["dims"] == "18x18x5x1"
    assert tables["param"]["upf"]["dims"] == "4x4x5x4"


def test_branches_of_unequal_strides_have_no_field(tmp_path: Path) -> None:
    b = Builder("apart")
    x = b.input("data", (1, 2, 9, 9))
    left = b.conv(x, 2, 2, padding=((0, 1), (0, 1)), name="left")
    graph = b.build(b.add(x, left, name="sum"), b.global_pool(left, name="whole"))
    rows = parse(printed(graph))[0]["rf in 'data'"]
    assert rows["sum"] == {"size": "2", "stride": "1", "offset": "1.5"}  # both branches together
    assert rows["whole"] == {"size": "10", "stride": "1", "offset": "5.5"}
    b = Builder("slow")
    x = b.input("data", (1, 2, 1, 1))
    graph = b.build(b.add(x, b.conv(x, 2, 1, stride=2, name="slow"), name="sum"))
    assert parse(printed(graph))[0]["rf in 'data'"]["sum"]["size"] == "n/a"


def test_what_is_unknown_is_not_a_number() -> None:
    b = Builder("strange")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="first")
    (x,) = b.add_node("whirl", (x,), name="odd")
    graph = b.build(b.conv(x, 5, 3, padding=1, name="after"))
    tables, sums = parse(printed(graph))
    assert tables["func"]["odd"]["type"] == "whirl"
    assert tables["func"]["after"]["pad"] == "1"
    assert tables["var"]["odd"] == {"dims": "n/a", "mem": "NaN", "fanin": "1", "fanout": "1"}
    assert tables["rf in 'data'"]["after"]["size"] == "n/a"
    assert sums == ["448B + ?", "1KB + ?", "2KB + ?"]


def test_sizes_that_are_equal_are_written_once_and_trailing_ones_not_at_all() -> None:
    b = Builder("even")
    x = b.input("data", (3, 3, 3, 3))
    x = b.conv(x, 3, 3, name="cube")
    graph = b.build(b.conv(x, 1, 1, name="one"))
    tables, _ = parse(printed(graph))
    assert tables["var"]["data"]["dims"] == "3"
    assert tables["param"]["cubef"] == {"dims": "3", "mem": "324B", "fanout": "1"}
    assert tables["param"]["onef"]["dims"] == "1x1x3"
    assert tables["param"]["oneb"]["dims"] == "1"
