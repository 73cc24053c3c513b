"""Columns that print percentages of a total only: a wrong share, size or total is named."""

from __future__ import annotations

from math import prod

import pytest

from layerscope import analyze
from layerscope.auditing.document import audit_text
from layerscope.report.layer import Layer
from tests.auditing.test_mutations import document

Conv = tuple[int, int, int, int]  # kernel, channels before and after, height and width
CONVS: tuple[Conv, ...] = ((5, 3, 32, 64), (3, 32, 64, 32), (3, 64, 128, 16), (1, 128, 96, 16))
HEAD = "| Name | Input shape | Output shape | MACs | Params | Description |"


def shares(biased: bool) -> str:
    """A table as programs print it that give shares: every layer but its last row in percent."""
    convs = [(k * k * cin * cout * side * side, k * k * cin * cout + cout * biased)
             for k, cin, cout, side in CONVS]  # fmt: skip
    outputs = CONVS[-1][2]
    counts = [*convs, (outputs * 10, outputs * 10 + 10 * biased)]
    macs, params = (sum(count[n] for count in counts) for n in (0, 1))
    given = [[f"{100 * m / macs:.2f} %", f"{100 * p / params:.2f} %"] for m, p in counts]
    rows = []
    for n, (kernel, cin, cout, side) in enumerate(CONVS):
        stride = 2 if n and CONVS[n - 1][3] != side else 1
        before, after = f"{cin}x{side * stride}x{side * stride}", f"{cout}x{side}x{side}"
        said = f"Conv2d k={kernel} p={kernel // 2} s={stride}"
        rows.append([f"body.{n}", before, after, *given[n], said])
    pool = f"{outputs}x{side}x{side}", f"{outputs}x1x1"
    rows.append(["body.pool", *pool, "0.00 %", "0.00 %", "AdaptiveAvgPool2d"])
    rows.append(["head", str(outputs), "10", *given[-1], "Linear"])
    rows.append(["Total", "3x64x64", "10", f"{macs / 1e6:.2f} M", f"{params / 1e3:.2f} k", "Net"])
    bars = "|".join("---" for _ in range(6))
    return "\n".join([HEAD, f"|{bars}|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


@pytest.mark.parametrize("biased", [False, True])
def test_right_shares_are_explained(biased: bool) -> None:
    found = audit_text(shares(biased), "shares")
    assert found.findings == ()
    explained = {
        column.heading: (column.explained, column.of) for column in found.tables[0].columns
    }
    assert explained == {"MACs": (6, 6), "Params": (6, 6)}


def changed(text: str, row: str, column: int, old: str, new: str) -> str:
    """The table with another text in one cell."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {row} |"))
    cells = lines[at].split("|")
    assert old in cells[column]
    cells[column] = cells[column].replace(old, new, 1)
    return "\n".join([*lines[:at], "|".join(cells), *lines[at + 1 :]])


# row, number of the cell, the right text and a wrong one; the column and kind that are named
WRONG = [
    ("body.1", 4, ".", "9.", "MACs", "figure"),
    ("body.2", 5, ".", "1.", "Params", "figure"),
    ("body.pool", 4, "0.00", "3.00", "MACs", "figure"),
    ("body.1", 6, "k=3", "k=7", "Description", "figure"),
    ("Total", 4, ".", "4.", "MACs", "total"),
]


@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_share_size_or_total_is_named(change: tuple[str, int, str, str, str, str]) -> None:
    row, cell, old, new, column, kind = change
    found = audit_text(changed(shares(True), row, cell, old, new), "changed").findings
    assert [(f.row, f.column, f.kind) for f in found] == [(row, column, kind)]


# ops that have a row, and what it says of them; joins, views and means have none
MODULES = {
    "conv": "Conv2d", "linear": "Linear", "batch_norm": "BatchNorm2d", "max_pool": "MaxPool2d",
    "avg_pool": "AvgPool2d", "relu": "ReLU", "relu6": "ReLU6", "dropout": "Dropout",
    "adaptive_avg_pool": "AdaptiveAvgPool2d", "global_avg_pool": "AdaptiveAvgPool2d",
}  # fmt: skip


def described(layer: Layer) -> str:
    window = getattr(layer.node.attributes, "window", None)
    if window is None:
        return MODULES[layer.op]
    kernel, stride, pad = window.kernel[0], window.stride[0], window.pads[0][0]
    return f"{MODULES[layer.op]} k={kernel}{f' p={pad}' if layer.op == 'conv' else ''} s={stride}"


def counted(layer: Layer) -> tuple[int, int]:
    """Operations and parameters, those of a batch norm 4 per element and 4 per channel."""
    shape = layer.outputs[0].shape or ()
    if layer.op == "batch_norm":
        return 4 * prod(shape), 4 * shape[1]
    return layer.cost.ops.mac, layer.params


def table(network: str) -> str:
    layers = [layer for layer in analyze(network).layers if layer.op in MODULES]
    macs, params = (sum(counted(layer)[n] for layer in layers) for n in (0, 1))
    lines = [HEAD, f"|{'|'.join('---' for _ in range(6))}|"]
    for layer in layers:
        shapes = [
            "x".join(map(str, (t.shape or ())[1:])) for t in (layer.inputs[0], layer.outputs[0])
        ]
        ops, weights = counted(layer)
        given = [f"{100 * ops / macs:.2f} %", f"{100 * weights / params:.2f} %"]
        lines.append(f"| {' | '.join([layer.name, *shapes, *given, described(layer)])} |")
    lines.append(f"| Total | - | - | {macs / 1e9:.2f} G | {params / 1e6:.2f} M | Net |")
    return "\n".join(lines) + "\n"


# joins and means without a row, names that say another kind (squeeze, downsample), groups
@pytest.mark.parametrize(
    "network",
    ["squeezenet1_1", "resnet18", "mobilenet_v2", "densenet121", "shufflenet_v2_x1_0", "googlenet"],
)
def test_networks_with_branches(network: str) -> None:
    found = audit_text(table(network), network)
    assert found.findings == ()
    for column in found.tables[0].columns:
        assert column.explained == column.of
        assert column.of > 50


# the print of a network with figures and shares beside them; one cell of it, and what is named
BESIDE = [
    ("lenet5", "61,470", "61,420", ("Total", "Params")),
    ("resnet18", "11,678,912", "11,648,912", ("Total", "Params")),
    ("squeezenet1_1", "147,456", "197,456", ("31", "Params")),
]


@pytest.mark.parametrize("change", BESIDE)
def test_shares_that_follow_from_a_wrong_cell_are_not_named(
    change: tuple[str, str, str, tuple[str, str]],
) -> None:
    """Neither all shares of a wrong total, nor the share of a figure in a row of a branch."""
    network, right, wrong, named = change
    text = document(network, "layersheet")
    assert right in text
    found = audit_text(text.replace(right, wrong, 1), "changed").findings
    assert [(f.row, f.column) for f in found if f.kind != "heading"] == [named]
