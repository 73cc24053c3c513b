"""Convolutional networks since 2015 against torchvision, timm, closed forms and other kernels."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope import Graph, Report, analyze
from layerscope.graph.types import elements
from layerscope.zoo import (
    convnext,
    densenet,
    efficientnet,
    inception,
    mnasnet,
    mobilenet,
    regnet,
    resnet,
    shufflenet,
    unet,
)
from layerscope.zoo.catalogue.convolutional import CONVOLUTIONAL

Rows = list[dict[str, str]]

OWN = ("mobilenet_v1", "unet")  # not in torchvision
TORCHVISION = tuple(name for name in CONVOLUTIONAL if name not in OWN)


def table(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def at(network: str | Graph, size: int) -> Report:
    return analyze(network, input=(3, size, size))


# -- torchvision

# Not in the shared table: as torchvision 0.29.2 states them in its own metadata.
ABSENT = {
    "squeezenet1_0": (1_248_424, "0.819"),
    "shufflenet_v2_x1_0": (2_278_604, "0.145"),
    "mnasnet0_5": (2_218_512, "0.104"),
    "efficientnet_b1": (7_794_184, "0.687"),
    "efficientnet_b2": (9_109_994, "1.088"),
    "efficientnet_b6": (43_040_704, "19.068"),
    "convnext_small": (50_223_688, "8.684"),
    "convnext_large": (197_767_336, "34.361"),
}
# The training head, which the stated parameters of Inception v3 include: 1x1, 5x5 and classes.
HEAD = 768 * 128 + 2 * 128 + 128 * 768 * 25 + 2 * 768 + 768 * 1000 + 1000


@pytest.mark.parametrize("name", TORCHVISION)
def test_params_and_macs_are_torchvisions(name: str, shared: Path) -> None:
    rows = [row for row in table(shared / "truth/torchvision.csv") if row["builder"] == name]
    told = [(int(row["num_params"]), f"{float(row['gmacs_called_ops']):.3f}") for row in rows]
    report = analyze(name)
    size = (report.inputs[0].shape or ())[-1]
    for row in rows:
        assert row["eval_crop_size"] == str(size)
        # RegNet was not built to confirm it.
        assert row["input_confirmed"] == ("" if "regnet" in name else f"1x3x{size}x{size}")
    assert bool(rows) != (name in ABSENT)
    params = report.totals.params + (HEAD if name == "inception_v3" else 0)
    ours = params, f"{report.totals.macs / 1e9:.3f}"
    assert set(told or [ABSENT[name]]) == {ours}


def test_inception_v3_is_without_its_training_head() -> None:
    assert analyze("inception_v3").totals.params == 23_834_568 == 27_161_264 - HEAD


@pytest.mark.parametrize(
    "name", ["mobilenet_v2", "densenet201", "inception_v3", "efficientnet_b0", "convnext_base"]
)
def test_macs_are_the_confirmed_ones_to_the_unit(name: str, shared: Path) -> None:
    text = (shared / "PEERS.md").read_text(encoding="utf-8")
    told = re.search(rf"\b{name}\s([\d,]+)", text)
    assert told is not None
    assert analyze(name).totals.macs == int(told[1].replace(",", ""))


@pytest.mark.parametrize("name", TORCHVISION)
def test_a_network_takes_other_sizes_and_batches(name: str) -> None:
    before, after = analyze(name), analyze(name, input=(3, 352, 320), batch=2)
    assert after.coverage.unknown == {}
    assert after.totals.params == before.totals.params
    assert after.layers[-1].output == (2, 1000)


# -- timm


def fvcore(report: Report) -> tuple[int, int]:
    """MACs with norms and the last pool, and outputs of convolutions and linear layers."""
    macs = outputs = pooled = 0
    for layer in report.layers:
        size = elements(layer.output or ())
        if layer.op in ("conv", "linear"):
            macs += layer.ops.mac
            outputs += size
        macs += {"batch_norm": 2, "layer_norm": 5}.get(layer.op, 0) * size
        if layer.op in ("adaptive_avg_pool", "global_avg_pool", "reduce_mean"):
            pooled = layer.inputs[0].elements
    return macs + pooled, outputs


PAPERS_X = regnet.CONFIGS["regnet_x_400mf"]._replace(stages=((32, 1), (64, 2), (160, 7), (384, 12)))
# timm's name -> ours, or a graph that the family makes with other numbers
TIMM: dict[str, str | Graph] = {
    **{
        name: name
        for name in (
            *("convnext_tiny", "convnext_base", "inception_v3"),
            *("densenet121", "densenet161", "densenet169", "densenet201"),
            *("resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2"),
        )
    },
    **{f"efficientnet_b{n}": f"efficientnet_b{n}" for n in (0, 3, 4, 5, 7)},
    **{f"tf_efficientnet_b{n}": f"efficientnet_b{n}" for n in (1, 6)},
    **{f"tf_efficientnetv2_{size}": f"efficientnet_v2_{size}" for size in ("s", "m", "l")},
    "resnext101_32x4d": resnet.network("x", resnet.grouped(32, 4), (3, 4, 23, 3)),
    "resnext101_64x4d": resnet.network("x", resnet.grouped(64, 4), (3, 4, 23, 3)),
    "mnasnet_050": "mnasnet0_5",
    "mnasnet_075": "mnasnet0_75",
    "mnasnet_100": "mnasnet1_0",
    "mnasnet_140": mnasnet.network("x", 1.4),
    "mobilenetv1_100": "mobilenet_v1",
    "mobilenetv1_125": mobilenet.mobilenet_v1("x", 1.25),
    "mobilenetv2_035": mobilenet.mobilenet_v2("x", 0.35),
    "mobilenetv2_050": mobilenet.mobilenet_v2("x", 0.5),
    "mobilenetv2_100": "mobilenet_v2",
    "mobilenetv2_140": mobilenet.mobilenet_v2("x", 1.4),
    "mobilenetv3_small_100": "mobilenet_v3_small",
    "tf_mobilenetv3_large_100": "mobilenet_v3_large",
    "regnetx_004": regnet.network("x", PAPERS_X),
    "regnetx_004_tv": "regnet_x_400mf",
    "regnety_004": "regnet_y_400mf",
}


def test_params_macs_and_activations_are_timms(shared: Path) -> None:
    """Every size timm has measured of networks that are the same."""
    compared = 0
    for row in table(shared / "truth/timm.csv"):
        if row["model"] not in TIMM or row["note"]:
            continue
        report = at(TIMM[row["model"]], int(row["img_size"]))
        macs, outputs = fvcore(report)
        ours = report.totals.params / 1e6, macs / 1e9, outputs / 1e6
        theirs = row["param_count_m"], row["gmacs"], row["macts"]
        assert [f"{x:.2f}" for x in ours] == [f"{float(x):.2f}" for x in theirs], row["model"]
        compared += 1
    assert compared > 50


# -- U-Net


@pytest.mark.parametrize("size", [572, 700])
def test_unet_is_its_closed_form(size: int) -> None:
    """With c channels at a level: c/2 to c and c to c down; 2c to c, then twice, up."""
    report = analyze("unet", input=(1, size, size))
    params = macs = 0
    into = 1
    for level in range(5):
        c = 64 << level
        params += 9 * into * c + 9 * c * c + 2 * c
        macs += 9 * c * (into * (size - 2) ** 2 + c * (size - 4) ** 2)
        into, size = c, size - 4
        size //= 2 if level < 4 else 1
    for level in reversed(range(4)):
        c = 64 << level
        params += 4 * 2 * c * c + c + 9 * 2 * c * c + 9 * c * c + 2 * c
        macs += 2 * c * c * (2 * size) ** 2  # each output of an up-convolution has one weight
        size *= 2
        macs += 9 * c * c * (2 * (size - 2) ** 2 + (size - 4) ** 2)
        size -= 4
    params += 2 * 64 + 2
    macs += 2 * 64 * size**2
    assert (report.totals.params, report.totals.macs) == (params, macs)
    assert params == 31_030_658
    assert report.layers[-1].output == (1, 2, size, size)


def test_unet_has_the_sizes_of_the_papers_figure() -> None:
    report = analyze("unet")
    down = [("d0c", 568), ("d1c", 280), ("d2c", 136), ("d3c", 64), ("d4c", 28)]
    up = [("u3d", 52), ("u2d", 100), ("u1d", 196), ("u0d", 388)]
    for name, size in (*down, *up):
        channels = 64 << int(name[1])
        assert report.by_name[f"relu_{name}"].output == (1, channels, size, size)
    cut = {n: report.by_name[f"crop_d{n}c-d{n}cc"].node.attributes.offsets for n in range(4)}
    assert cut == {3: (4,), 2: (16,), 1: (40,), 0: (88,)}  # the middle: half of what is lost
    joined = [report.by_name[f"concat_d{n}cc_u{n}a-b"].output for n in (3, 2, 1, 0)]
    assert joined == [(1, 1024, 56, 56), (1, 512, 104, 104), (1, 256, 200, 200), (1, 128, 392, 392)]


# -- other kernels

Weights = dict[int, int]  # size of the output -> weights per position of the window
Change = tuple[str, Callable[[], Graph], int, Weights]

# A network, the same with another window, how many positions it has more, and the rest by hand.
CHANGES: dict[str, Change] = {
    "inception: 3x3 for 5x5": (
        "inception_v3",
        lambda: inception.inception_v3(large=3),
        9 - 25,
        {35: 3 * 48 * 64},
    ),
    "densenet: 1x1 for 3x3": (
        "densenet121",
        lambda: densenet.network("x", *densenet.SIZES["densenet121"], kernel=1),
        1 - 9,
        {size: 128 * 32 * depth for size, depth in ((56, 6), (28, 12), (14, 24), (7, 16))},
    ),
    "mobilenet v1: 5x5 depthwise": (
        "mobilenet_v1",
        lambda: mobilenet.mobilenet_v1("x", kernel=5),
        25 - 9,
        {112: 32, 56: 64 + 128, 28: 128 + 256, 14: 256 + 5 * 512, 7: 512 + 1024},
    ),
    "mobilenet v2: 5x5 depthwise": (
        "mobilenet_v2",
        lambda: mobilenet.mobilenet_v2("x", kernel=5),
        25 - 9,
        {
            112: 32,
            56: 6 * (16 + 24),
            28: 6 * (24 + 2 * 32),
            14: 6 * (32 + 4 * 64 + 2 * 96),
            7: 6 * (96 + 3 * 160),
        },
    ),
    "mobilenet v3: 3x3 for 5x5 in the last block": (
        "mobilenet_v3_large",
        lambda: mobilenet.network_v3(
            "x", (*mobilenet.LARGE[:-1], mobilenet.LARGE[-1]._replace(kernel=3)), 1280
        ),
        9 - 25,
        {7: 960},
    ),
    "shufflenet: 5x5 depthwise": (
        "shufflenet_v2_x1_0",
        lambda: shufflenet.network("x", shufflenet.WIDTHS["shufflenet_v2_x1_0"], kernel=5),
        25 - 9,
        {28: 24 + 4 * 58, 14: 116 + 8 * 116, 7: 232 + 4 * 232},
    ),
    "mnasnet: 5x5 in the first stage": (
        "mnasnet1_0",
        lambda: mnasnet.network("x", 1.0, ((24, 5, 2, 3, 3), *mnasnet.STAGES[1:])),
        25 - 9,
        {56: 3 * (16 + 24 + 24)},
    ),
    "efficientnet: 3x3 for the first 5x5": (
        "efficientnet_b0",
        lambda: efficientnet.network("x", _smaller(2)),
        9 - 25,
        {28: 6 * (24 + 40)},
    ),
    "regnet: 1x1 for 3x3 in groups of 8": (
        "regnet_y_400mf",
        lambda: regnet.network("x", regnet.CONFIGS["regnet_y_400mf"], kernel=1),
        1 - 9,
        {56: 8 * 48, 28: 8 * 104 * 3, 14: 8 * 208 * 6, 7: 8 * 440 * 6},
    ),
    "convnext: 5x5 depthwise": (
        "convnext_tiny",
        lambda: convnext.network("x", convnext.CONFIGS["convnext_tiny"], kernel=5),
        25 - 49,
        {56: 3 * 96, 28: 3 * 192, 14: 9 * 384, 7: 3 * 768},
    ),
}


def _smaller(n: int) -> efficientnet.EfficientNetConfig:
    plan = efficientnet.CONFIGS["efficientnet_b0"]
    stages = plan.stages
    return plan._replace(stages=(*stages[:n], stages[n]._replace(kernel=3), *stages[n + 1 :]))


@pytest.mark.parametrize("change", CHANGES)
def test_a_network_is_its_table_of_kernels(change: str) -> None:
    name, changed, positions, weights = CHANGES[change]
    before, after = analyze(name).totals, analyze(changed()).totals
    assert after.params - before.params == positions * sum(weights.values())
    assert after.macs - before.macs == positions * sum(
        count * size**2 for size, count in weights.items()
    )


def test_unet_loses_nothing_where_windows_do_not() -> None:
    report = analyze(unet.unet(kernel=1), input=(1, 64, 64))
    assert report.layers[-1].output == (1, 2, 64, 64)
