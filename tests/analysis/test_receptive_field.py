"""Receptive fields of the TF-Slim networks against google-research/receptive_field and Distill.

Google's effective padding is (size − 1)/2 − the centre of position 0, counted from 0. Where a row
leaves the input's size open, SAME padding may leave the padding open: ours then differs by size.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from layerscope import Report, analyze
from layerscope.graph.types import elements
from layerscope.report.types import Layer

SIZES = (224, 321)  # of Google's table
MORE_SIZES = (225, 256, 299)  # an open padding is open, a told one told, at these too

# Rows that differ, (source, model, resolution, end point) -> why: none does.
DIFFERENT: dict[tuple[str, str, str, str], str] = {}


class Row(NamedTuple):
    source: str
    model: str
    resolution: str  # empty: open
    endpoint: str
    receptive_field: int
    effective_stride: int
    effective_padding: int | None  # None: depends on the input's size
    gflops: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self[:4]

    @property
    def size(self) -> int:
        """The README and Distill speak of whole networks at 224x224."""
        return int(self.resolution or 224)


@cache
def table(path: Path) -> tuple[Row, ...]:
    """All rows; the end point `(final)` is the last that the model has in Google's table."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))[1:]
    final = {line[1]: line[3] for line in lines if line[0] == "table"}
    return tuple(
        Row(
            source,
            model,
            resolution,
            final[model] if endpoint == "(final)" else endpoint,
            int(field),
            int(stride),
            int(padding) if padding else None,
            gflops,
        )
        for source, model, resolution, endpoint, field, stride, padding, gflops in lines
    )


@pytest.fixture
def rows(shared: Path) -> tuple[Row, ...]:
    return table(shared / "truth/receptive_field.csv")


@cache
def report(model: str, size: int) -> Report:
    return analyze(f"{model}-slim", input=(1, 3, size, size))


def figures(row: Row, size: int) -> tuple[object, object, object]:
    """Ours of a row: field, stride and padding, alike on both axes."""
    field = report(row.model, size).by_name[row.endpoint].field
    assert field is not None
    assert len(set(zip(field.size, field.stride, field.offset, strict=True))) == 1, row
    (width, _), (stride, _), (centre, _) = field.size, field.stride, field.offset
    assert isinstance(width, int)
    assert centre is not None
    return width, stride, Fraction(width - 1, 2) - centre


def matches(row: Row) -> bool:
    stated = row.receptive_field, row.effective_stride
    if row.resolution or row.source != "table":
        return figures(row, row.size) == (*stated, row.effective_padding)
    ours = [figures(row, size) for size in (*SIZES, *MORE_SIZES)]
    paddings = {padding for _, _, padding in ours}
    told = len(paddings) > 1 if row.effective_padding is None else paddings == {stated_padding(row)}
    return told and {figure[:2] for figure in ours} == {stated}


def stated_padding(row: Row) -> Fraction:
    assert row.effective_padding is not None
    return Fraction(row.effective_padding)


def test_every_field_stride_and_padding_is_googles(rows: tuple[Row, ...]) -> None:
    different = {row.key for row in rows if not matches(row)}
    assert different == set(DIFFERENT)
    assert len(rows) - len(different) == 373


def test_every_kind_of_row_is_there(rows: tuple[Row, ...]) -> None:
    assert {
        source: sum(row.source == source for row in rows) for source in ("table", "readme")
    } == {
        "table": 357,
        "readme": 8,
    }
    assert sum(row.source == "distill" for row in rows) == 8
    open_rows = [row for row in rows if row.source == "table" and not row.resolution]
    assert len(open_rows) == 119
    assert sum(row.effective_padding is None for row in open_rows) == 72
    assert all(row.effective_padding is not None for row in rows if row not in open_rows)


def test_branches_are_aligned_at_the_sizes_of_the_table(rows: tuple[Row, ...]) -> None:
    """Google's tool refuses a graph whose branches have unequal centres: none of these has."""
    for row in rows:
        for size in SIZES:
            field = report(row.model, size).by_name[row.endpoint].field
            assert field is not None
            assert field.aligned


def test_open_paddings_differ_between_the_sizes_of_the_table(rows: tuple[Row, ...]) -> None:
    """At the other size a row has another padding if, and only if, it is open without a size."""
    for row in rows:
        if row.resolution:
            (other,) = set(SIZES) - {row.size}
            moved = figures(row, other)[2] != row.effective_padding
            open_row = next(x for x in rows if x.key == ("table", row.model, "", row.endpoint))
            assert moved == (open_row.effective_padding is None), row


# -- FLOPs as TensorFlow's profiler counts them


def reached(account: Report, endpoint: str) -> list[Layer]:
    """The layers that an end point depends on."""
    found: set[str] = set()
    wanted = [endpoint]
    while wanted:
        layer = account.by_name.get(wanted.pop())
        if layer is not None and layer.name not in found:
            found.add(layer.name)
            wanted.extend(layer.node.inputs)
    return [layer for layer in account.layers if layer.name in found]


def profiled(layer: Layer, *, fused: bool) -> int:
    """2 per MAC, 1 per bias added, a pool's positions; ReLU and sums of tensors nothing.

    Google built Inception without its norms, biases in their place, and MobileNet with norms that
    are not fused: 1 per element of either. A fused norm counts nothing.
    """
    made = elements(layer.output or ())
    if layer.op == "conv":
        return 2 * layer.ops.mac + layer.ops.add
    if layer.op in ("max_pool", "avg_pool"):
        positions: int = layer.node.attributes.window.positions
        return made * positions
    return made if layer.op == "batch_norm" and not fused else 0


def printed(flops: int, like: str) -> str:
    digits = len(like.partition(".")[2])
    return f"{flops / 1e9:.{digits}f}"


def test_flops_are_googles_to_every_printed_digit(rows: tuple[Row, ...]) -> None:
    stated = [row for row in rows if row.gflops]
    macs_alone = 0
    for row in stated:
        layers = reached(report(row.model, row.size), row.endpoint)
        fused = row.model.startswith("resnet")
        flops = sum(profiled(layer, fused=fused) for layer in layers)
        assert printed(flops, row.gflops) == row.gflops, row
        macs = sum(layer.ops.mac for layer in layers)
        macs_alone += printed(2 * macs, row.gflops) == row.gflops
    assert len(stated) == 246
    assert macs_alone == 7


# -- the networks themselves


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("inception_v3-slim", 23_817_352),
        ("mobilenet_v1-slim", 4_231_976),
        ("resnet_v2_50-slim", 25_568_360),
        ("resnet_v2_101-slim", 44_577_896),
        ("resnet_v2_152-slim", 60_236_904),
    ],
)
def test_params_are_those_of_keras(name: str, params: int) -> None:
    """Keras has the same networks, and prints these as its trainable parameters."""
    assert analyze(name).totals.params == params


@pytest.mark.parametrize(
    ("name", "model"),
    [("mobilenet_v1-slim", "MobileNetV1 1.0"), ("mobilenet_v1_050-slim", "MobileNetV1 0.5")],
)
def test_mobilenet_has_the_published_macs(name: str, model: str, shared: Path) -> None:
    with (shared / "truth/papers.csv").open(encoding="utf-8", newline="") as file:
        stated = [row for row in csv.DictReader(file) if row["model"] == model]
    macs = {row["input"]: int(row["value"]) for row in stated if row["quantity"] == "macs"}
    assert set(macs) == {"224x224", "192x192", "160x160", "128x128"}
    for size, millions in macs.items():
        height, width = map(int, size.split("x"))
        account = analyze(name, input=(1, 3, height, width))
        # The sums of the global pool are in it: without them 0.5 at 224x224 would be 149, not 150.
        sums = account.by_name["Logits/AvgPool_1a"].ops.add
        assert round((account.totals.macs + sums) / 1e6) == millions, size
