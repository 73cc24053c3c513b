"""The zoo against published figures: torchvision, Netscope, Boda, the papers, the seeds."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from layerscope import Report, analyze
from layerscope.graph.types import Shape
from layerscope.zoo import (
    build,
    resnet,
    vgg,
)

Rows = list[dict[str, str]]


def table(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -- torchvision

TORCHVISION = (
    *("alexnet", "googlenet"),
    *("vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"),
    *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
)
# Not in the shared table: as torchvision 0.29.2 states them in its own metadata.
ABSENT = {
    "alexnet": (61_100_840, "0.714"),
    "vgg11": (132_863_336, "7.609"),
    "vgg19_bn": (143_678_248, "19.632"),
    "resnet34": (21_797_672, "3.664"),
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_params_and_macs_are_torchvisions(name: str, shared: Path) -> None:
    rows = [row for row in table(shared / "truth/torchvision.csv") if row["builder"] == name]
    stated = [(int(row["num_params"]), f"{float(row['gmacs_called_ops']):.3f}") for row in rows]
    shape = rows[0]["input_confirmed"] if rows else "1x3x224x224"
    totals = analyze(name, input=tuple(map(int, shape.split("x")))).totals
    assert bool(rows) != (name in ABSENT)
    assert set(stated or [ABSENT[name]]) == {(totals.params, f"{totals.macs / 1e9:.3f}")}


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "resnet152", "vgg16", "alexnet"])
def test_macs_are_the_confirmed_ones_to_the_unit(name: str, shared: Path) -> None:
    text = (shared / "PEERS.md").read_text(encoding="utf-8")
    stated = re.search(rf"\b{name}\s\(?([\d,]+)", text)
    assert stated is not None
    assert analyze(name).totals.macs == int(stated[1].replace(",", ""))


def test_modules_are_declared_as_torchvision_declares_them() -> None:
    block = {
        path.removeprefix("layer1.0."): kind
        for path, kind in build("resnet50").modules.items()
        if path.startswith("layer1.0.")
    }
    norms = ("conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "relu")  # bn3 is called before relu
    assert list(block) == [*norms, "downsample", "downsample.0", "downsample.1"]
    assert block["downsample"] == "Sequential"
    modules = build("googlenet").modules
    assert modules[""] == "GoogLeNet"
    assert modules["inception3a"] == "Inception"
    assert modules["inception3a.branch2.1"] == "BasicConv2d"
    assert not [path for path in modules if path.endswith("relu")]  # a function there


def test_a_bottleneck_runs_as_torchvision_runs_it() -> None:
    names = [node.name for node in build("resnet50").nodes if node.scope[:2] == ("layer1", "0")]
    assert [name.removeprefix("layer1.0.") for name in names] == [
        *("conv1", "bn1", "relu", "conv2", "bn2", "relu_1", "conv3", "bn3"),
        *("downsample.0", "downsample.1", "add", "relu_2"),
    ]


# -- Netscope's tables

KINDS = ("macc", "comp", "add", "div", "exp")
ONET_NAMES = {  # Netscope's file -> the published table
    **{f"prelu{n}": f"relu{n}" for n in range(1, 6)},
    "conv5": "fc5",
    **{f"conv6-{n}": f"fc6-{n}" for n in (1, 2, 3)},
}
# name -> table, its layers under our names, its rows that are no layers of the network in use
NETSCOPE: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "googlenet-caffe": ("tables/googlenet.csv", {}, set()),
    "alexnet-caffe": ("tables_repaired/alexnet.csv", {"loss": "prob"}, {"label"}),
    "nin": ("tables_repaired/nin.csv", {}, {"label", "loss"}),
    "mtcnn-pnet": ("mtcnn/tables/det1.csv", {}, set()),
    "mtcnn-rnet": ("mtcnn/tables/det2.csv", {}, set()),
    "mtcnn-onet": ("mtcnn/tables/det3.csv", ONET_NAMES, set()),
}


def sizes(shape: Shape | None) -> tuple[int, int, str]:
    """Batch, channels and WxH, as Netscope tells them."""
    assert shape is not None
    batch, channels, height, width = (*shape, 1, 1)[:4]
    return batch, channels, f"{width}x{height}"


def at_size_of(name: str, data: dict[str, str], like: str = "exact") -> Report:
    width, height = map(int, data["dim_out"].split("x"))
    return analyze(
        name, input=(int(data["ch_out"]), height, width), batch=int(data["batch_out"]), like=like
    )


@pytest.mark.parametrize("name", NETSCOPE)
def test_every_layer_is_netscopes(name: str, shared: Path) -> None:
    file, renamed, left_out = NETSCOPE[name]
    data, *rows = table(shared / "truth/netscope" / file)
    exact, like = at_size_of(name, data), at_size_of(name, data, "netscope")
    rows = [row for row in rows if row["name"] not in left_out]
    assert {renamed.get(row["name"], row["name"]) for row in rows} == set(exact.by_name)
    products = 0
    for row in rows:
        layer = exact.by_name[renamed.get(row["name"], row["name"])]
        stated = int(row["batch_out"]), int(row["ch_out"]), row["dim_out"]
        assert sizes(layer.output) == stated, row["name"]
        if layer.op in ("conv", "linear"):
            products += 1
            assert (layer.ops.mac, layer.params) == (int(row["macc"]), int(row["param"]))
        counted = like.by_name[layer.name]
        ops = counted.convention_kinds
        assert (ops.mac, ops.comp, ops.add, ops.div, ops.exp) == tuple(
            int(row[kind]) for kind in KINDS
        ), row["name"]
        assert (counted.convention_activations, counted.params) == (
            int(row["activation"]),
            int(row["param"]),
        )
    assert products == sum(layer.op in ("conv", "linear") for layer in exact.layers) > 0


def test_layers_run_in_the_order_of_the_file(shared: Path) -> None:
    for name in ("googlenet-caffe", "nin"):
        file, _, left_out = NETSCOPE[name]
        rows = table(shared / "truth/netscope" / file)[1:]
        wanted = [row["name"] for row in rows if row["name"] not in left_out]
        assert [node.name for node in build(name).nodes] == wanted


@pytest.mark.parametrize(
    ("name", "heading"),
    [("mtcnn-pnet", "P-Net"), ("mtcnn-rnet", "R-Net"), ("mtcnn-onet", "O-Net")],
)
def test_layers_are_named_as_in_the_published_tables(name: str, heading: str, shared: Path) -> None:
    (seed,) = (shared / "seeds").glob("001_*")
    part = seed.read_text(encoding="utf-8").split(f"({heading})")[1].split("\n* ")[0]
    named = re.findall(r"^\|\s*\d+\s*\|\s*([\w-]+)", part, flags=re.MULTILINE)
    ours = ["data", *(node.name for node in build(name).nodes)]
    heads = sorted(n for n in ours if "-" in n)  # Netscope prints later branches first
    assert sorted(named) == sorted(ours)
    assert [n for n in named if n not in heads] == [n for n in ours if n not in heads]
    assert [n for n in ours if n in heads] == heads


def _conv_of(row: str) -> str:
    """Our name of a ResNet layer of Netscope's: res3a_branch2b is layer2.0.conv2."""
    found = re.fullmatch(r"res(\d)([a-z])(\d*)_branch(1|2[abc])", row)
    if found is None:
        return {"conv1": "conv1", "fc1000": "fc"}[row]
    stage, letter, number, branch = found.groups()
    block = int(number) if number else ord(letter) - ord("a")
    part = "downsample.0" if branch == "1" else f"conv{'abc'.index(branch[1]) + 1}"
    return f"layer{int(stage) - 1}.{block}.{part}"


@pytest.mark.parametrize(("depth", "blocks"), [(50, (3, 4, 6, 3)), (152, (3, 8, 36, 3))])
def test_resnet_v1_is_netscopes(depth: int, blocks: tuple[int, ...], shared: Path) -> None:
    rows = table(shared / f"truth/netscope/tables/resnet-{depth}.csv")
    report = analyze(resnet.network("x", replace(resnet.BOTTLENECK, strided=0), blocks))
    if depth == 50:
        assert analyze("resnet50-v1").totals == report.totals
    kinds = ("Convolution", "InnerProduct")
    products = {_conv_of(row["name"]): row for row in rows if row["type"] in kinds}
    assert set(products) == {x.name for x in report.layers if x.op in ("conv", "linear")}
    for name, row in products.items():
        layer = report.by_name[name]
        # Of its two files only ResNet-50's gives conv1 a bias, which the norm after it makes void.
        bias = 64 if (depth, name) == (50, "conv1") else 0
        assert (layer.ops.mac, layer.params) == (int(row["macc"]), int(row["param"]) - bias)
        assert sizes(layer.output)[1:] == (int(row["ch_out"]), row["dim_out"])
    assert report.totals.macs == sum(int(row["macc"]) for row in products.values())


# -- Boda's profile


def test_every_convolution_is_bodas(shared: Path) -> None:
    rows = table(shared / "truth/boda/nin_imagenet_nopad.csv")
    report = analyze("nin-nopad", batch=5)
    convs = [layer for layer in report.layers if layer.op == "conv"]
    assert [layer.name for layer in convs] == [row["name"] for row in rows[:-1]]
    for layer, row in zip(convs, rows, strict=False):
        weight, bias = layer.cost.params
        gemm = layer.gemm
        assert gemm is not None
        for shape, dims in (
            (layer.inputs[0].shape, "input_dims"),
            (weight.shape, "filter_dims"),
            (layer.output, "output_dims"),
        ):
            assert "x".join(map(str, shape or ())) == row[dims]
        assert 2 * layer.ops.mac == int(row["flops_2_per_mac"])
        assert (weight.bytes, bias.bytes) == (int(row["filter_bytes"]), int(row["bias_bytes"]))
        assert layer.moved_bytes == int(row["forward_bytes_with_bias"])
        assert (gemm.m, gemm.n, gemm.k) == (int(row["M"]), int(row["N"]), int(row["K"]))
    assert 2 * report.totals.macs == int(rows[-1]["flops_2_per_mac"])
    assert report.by_name["pool2"].output == (5, 256, 21, 21)
    assert report.by_name["pool4"].output == (5, 1000, 1, 1)


def test_nin_has_the_same_parameters_padded_or_not() -> None:
    assert analyze("nin").totals.params == analyze("nin-nopad").totals.params == 7_595_176


# -- papers


def rounded(macs: int, digits: int) -> float:
    return round(macs / 1e9, digits)


def cut(macs: int, digits: int) -> float:
    whole, rest = divmod(macs, 10**9)
    return float(f"{whole}.{f'{rest:09}'[:digits]}")


def without(name: str, part: str) -> int:
    return sum(layer.ops.mac for layer in analyze(name).layers if part not in layer.name)


def v1(*blocks: int) -> int:
    return analyze(resnet.network("x", replace(resnet.BOTTLENECK, strided=0), blocks)).totals.macs


PAPERS: dict[str, tuple[Callable[[], int], Callable[[int, int], float]]] = {
    # Shortcuts of 18 and 34 are without weights in the paper (its option A); with torchvision's
    # projections, 3 · 6,422,528 MACs more, 34 would round to 3.7.
    "ResNet-18": (lambda: without("resnet18", "downsample"), rounded),
    "ResNet-34": (lambda: without("resnet34", "downsample"), rounded),
    # 3,857,973,248, and Netscope counts the same: cut off it is the paper's 3.8, rounded it is 3.9.
    "ResNet-50": (lambda: analyze("resnet50-v1").totals.macs, cut),
    "ResNet-101": (lambda: v1(3, 4, 23, 3), rounded),
    "ResNet-152": (lambda: v1(3, 8, 36, 3), rounded),
    "VGG-16": (lambda: without("vgg16", "classifier"), rounded),  # convolutions alone
    "VGG-19": (lambda: analyze("vgg19").totals.macs, rounded),
    "AlexNet": (lambda: analyze("alexnet-caffe").totals.macs, rounded),
    # 1,582,671,872 with the paper's windows: cut off 1.5, rounded 1.6.
    "GoogLeNet": (lambda: analyze("googlenet-caffe").totals.macs, cut),
}


@pytest.mark.parametrize("model", PAPERS)
def test_macs_are_the_papers(model: str, shared: Path) -> None:
    macs, shortened = PAPERS[model]
    rows = table(shared / "truth/papers.csv")
    (stated,) = (x["value"] for x in rows if x["model"] == model and x["quantity"] == "macs")
    assert shortened(macs(), len(stated.partition(".")[2])) == float(stated)


def test_resnet50_v1_differs_from_resnet50_by_the_place_of_three_strides() -> None:
    """In layers 2 to 4 the very first 1x1 runs on a quarter of the positions in v1."""
    ours, paper = analyze("resnet50").totals, analyze("resnet50-v1").totals
    assert ours.params == paper.params
    more = [(256 * 128, 28), (512 * 256, 14), (1024 * 512, 7)]
    assert ours.macs - paper.macs == sum(3 * weights * size**2 for weights, size in more)


def test_lenet5_differs_from_the_paper_where_it_says() -> None:
    """The paper counts parameters and connections (MACs and biases) of each layer."""
    report = analyze("lenet5")
    params = {layer.name: layer.params for layer in report.layers if layer.params}
    # C3 in the paper has 60 of 96 possible pairs of maps: 60 · 25 + 16 = 1,516 parameters.
    assert params == {"C1": 156, "C3": 1_516 + 36 * 25, "C5": 48_120, "F6": 10_164, "output": 850}
    connections = {name: report.by_name[name].ops for name in ("C1", "C3", "C5")}
    assert {name: ops.mac + ops.add for name, ops in connections.items()} == {
        "C1": 122_304,
        "C3": 151_600 + 36 * 25 * 100,
        "C5": 48_120,
    }
    # 60,000 in the paper, less the weights of S2 and S4, plus C3's other pairs and the output.
    assert report.totals.params == 60_000 - 12 - 32 + 900 + 850 == 61_706
    assert report.totals.macs == 117_600 + 240_000 + 48_000 + 10_080 + 840


def test_zfnet_has_the_sizes_of_the_papers_figure() -> None:
    report = analyze("zfnet")
    drawn = {
        "conv1": (96, 110),
        "pool1": (96, 55),
        "conv2": (256, 26),
        "pool2": (256, 13),
        "conv3": (384, 13),
        "conv4": (384, 13),
        "conv5": (256, 13),
        "pool5": (256, 6),
    }
    for name, (channels, size) in drawn.items():
        assert report.by_name[name].output == (1, channels, size, size)
    names = list(report.by_name)
    assert names.index("pool1") < names.index("norm1") < names.index("conv2")


def test_vgg_configurations_have_the_papers_parameters() -> None:
    """Table 2 of the paper, in millions; C is D with 1x1 windows at the end of the last stages."""
    c = ((3, 3), (3, 3), (3, 3, 1), (3, 3, 1), (3, 3, 1))
    for stages, millions in ((vgg.A, 133), (vgg.B, 133), (c, 134), (vgg.D, 138), (vgg.E, 144)):
        assert round(analyze(vgg.network("x", stages)).totals.params / 1e6) == millions


# -- the patch classifier's display


def display(text: str) -> dict[str, dict[str, str]]:
    """Layer name -> row heading -> cell, over both blocks."""
    columns: dict[str, dict[str, str]] = {}
    for block in text.split("\n\n")[:2]:
        lines = [line.rstrip("|").split("|") for line in block.splitlines() if "---" not in line]
        rows = {head.strip(): [cell.strip() for cell in cells] for head, *cells in lines}
        for n, name in enumerate(rows["name"]):
            columns[name] = {head: cells[n] for head, cells in rows.items()}
    return columns


def test_patch32_is_the_displayed_network(shared: Path) -> None:
    (seed,) = (shared / "seeds").glob("000_*")
    columns = display(seed.read_text(encoding="utf-8"))
    report = analyze("patch32")
    assert list(columns) == ["n/a", *report.by_name]
    assert report.inputs[0].shape == (
        *map(int, (columns["n/a"]["data num"], columns["n/a"]["data depth"])),
        *[int(columns["n/a"]["data size"])] * 2,
    )
    wrong = set()
    for layer in report.layers:
        printed = columns[layer.name]
        window = getattr(layer.node.attributes, "window", None)
        _, depth, size, _ = layer.output or (1, 1, 1, 1)  # the loss is one number
        ours = {
            "support": window.kernel[0] if window else 1,
            "stride": window.stride[0] if window else 1,
            "pad": window.pads[0][0] if window else 0,
            "data size": size,
            "data depth": depth,
        }
        if layer.op == "conv":
            weight = layer.cost.params[0].shape
            ours |= {"num filts": weight[0], "filt dim": weight[1]}
        wrong |= {(layer.name, row) for row, value in ours.items() if printed[row] != str(value)}
    # A convolution's depth is its number of filters: 5, which 20 B of data and 20 KB of weights say
    # too. The display prints 7.
    assert wrong == {("fc11", "data depth")}
    assert columns["fc11"]["num filts"] == "5"
    assert f"{report.totals.params:.2g}" == "1.9e+07"
