"""Parameter memory, feature memory and operations against albanie/convnet-burden.

Its figures are of MatConvNet models in autonn, one image or 128 at a time, in whole units: memory
by 1024, operations by 1000. Its rules, read off its program and fitted on AlexNet and VGG:

- parameters: 4 bytes for every stored array, statistics of batch norm included;
- features: 4 bytes for every output of every layer, batch norm, sum and concat included; the
  input is left out, and a ReLU writes over what it reads if nothing else reads that. So this is
  what the network writes when ReLU alone works in place, not what is alive at any moment;
- operations, called FLOPs: 1 per MAC and per bias, 2 per ReLU, 2 · stride² per output of a pool,
  1 per input of a global pool, 1 per sum of two, 1 per element and 2 + 2 · channels per position
  of a local response norm; batch norm, concat and softmax are free.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from math import floor, log, prod
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from layerscope import Graph, Report, analyze, load
from layerscope.graph.attributes import Activation, BatchNorm, Conv, Pool, Window
from layerscope.graph.types import Node, elements
from layerscope.report.types import Layer
from layerscope.zoo import alexnet, resnet

Row = dict[str, str]

# -- the networks, as they were imported


def edited(graph: Graph, op: str, edit: Callable[[Node], Node]) -> Graph:
    return replace(graph, nodes=tuple(edit(x) if x.op == op else x for x in graph.nodes))


def with_window(node: Node, **changes: Any) -> Node:
    window = replace(node.attributes.window, **changes)
    return replace(node, attributes=replace(node.attributes, window=window))


def caffenet() -> Graph:
    """AlexNet that pools before it normalises."""
    return alexnet.classic("caffenet", alexnet.CAFFE, size=227, norm_first=False)


def resnet_v1(*depths: int) -> Graph:
    """The paper's form, where the first 1x1 of a block takes the stride."""
    return resnet.network("v1", replace(resnet.BOTTLENECK, strided=0), depths)


def caffe_vgg(name: str) -> Graph:
    """Caffe's pools keep partial windows, which 112, 336 and 560 have at the last."""
    return edited(load(name), "max_pool", lambda node: with_window(node, rounding="caffe"))


def early_densenet(name: str) -> Graph:
    """Torchvision of 2017 ended in an average of 7x7, not of everything."""
    seven = Pool(Window((7, 7), (7, 7), ((0, 0), (0, 0)), (1, 1)))
    named: dict[str, Any] = {"name": "pool", "op": "avg_pool", "attributes": seven}
    return edited(load(name), "adaptive_avg_pool", lambda node: replace(node, **named))


def caffe_mobilenet_v2() -> Graph:
    """Caffe's first block has a 1x1 too, and the stride of the 64 channels is that of the 96."""
    graph = load("mobilenet_v2")
    depthwise = [node for node in graph.nodes if node.op == "conv" and node.attributes.groups > 1]
    first, strides = depthwise[0], {depthwise[6].name: 1, depthwise[10].name: 2}
    one = Window((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1))
    nodes: list[Node] = []
    for node in graph.nodes:
        if node is first:
            nodes += (
                Node("expand", "conv", node.inputs, ("expand",), Conv(one, 32, bias=False)),
                Node("expand_bn", "batch_norm", ("expand",), ("expand_bn",), BatchNorm()),
                Node("expand_relu", "relu6", ("expand_bn",), ("expand_relu",), Activation()),
            )
            node = replace(node, inputs=("expand_relu",))
        elif node.name in strides:
            node = with_window(node, stride=(strides[node.name],) * 2)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


# Model of convnet-burden -> our network, and the node that is the end point of its reports.
NETWORKS: dict[str, tuple[Callable[[], Graph], str]] = {
    "caffenet": (caffenet, "pool5"),
    "vgg-vd-16": (lambda: caffe_vgg("vgg16"), "features.30"),
    "vgg-vd-19": (lambda: caffe_vgg("vgg19"), "features.36"),
    "googlenet": (lambda: load("googlenet-caffe"), "inception_5b/output"),
    "resnet18": (lambda: load("resnet18"), "layer4.1.relu_1"),
    "resnet50": (lambda: load("resnet50"), "layer4.2.relu_2"),  # Torch's stride, in the 3x3
    "resnet-50": (lambda: load("resnet50-v1"), "layer4.2.relu_2"),
    "resnet-101": (lambda: resnet_v1(3, 4, 23, 3), "layer4.2.relu_2"),
    "resnet-152": (lambda: resnet_v1(3, 8, 36, 3), "layer4.2.relu_2"),
    "resnext-50-32x4d": (lambda: load("resnext50_32x4d"), "layer4.2.relu_2"),
    "resnext-101-32x4d": (
        lambda: resnet.network("resnext101", resnet.grouped(32, 4), (3, 4, 23, 3)),
        "layer4.2.relu_2",
    ),
    "densenet121": (lambda: early_densenet("densenet121"), "pool"),
    "densenet161": (lambda: early_densenet("densenet161"), "pool"),
    "densenet169": (lambda: early_densenet("densenet169"), "pool"),
    "densenet201": (lambda: early_densenet("densenet201"), "pool"),
    "mcn-mobilenet-v2": (caffe_mobilenet_v2, "classifier.1"),
}
# Models that the zoo does not have.
ABSENT = {
    *("vgg-m", "vgg-s", "vgg-m-2048", "vgg-m-1024", "vgg-m-128", "vgg-vd-16-atrous"),
    *("SE-ResNet-50", "SE-ResNet-101", "SE-ResNeXt-50-32x4d", "SE-ResNeXt-101-32x4d"),
    "SE-BN-Inception",
    *("rfcn-res50-pascal", "ssd-pascal-vggvd-300", "ssd-pascal-vggvd-512"),
    *("ssd-pascal-mobilenet-ft", "pascal-fcn32s", "pascal-fcn16s", "pascal-fcn8s"),
    *("deeplab-vggvd-v2", "deeplab-res101-v2", "multipose-mpi"),
}
# GoogLeNet was imported with its two training heads: 1x1 to 128 channels on 4x4 positions, 1024
# and 1000 features. They are in its parameters only: in its other figures they do not show.
HEADS = sum(
    (channels + 1) * 128 + (4 * 4 * 128 + 1) * 1024 + (1024 + 1) * 1000 for channels in (512, 528)
)


# -- its rules


def kept(layers: Sequence[Layer]) -> list[Layer]:
    """The layers whose outputs take memory of their own."""
    readers = Counter(name for layer in layers for name in layer.node.inputs)
    return [
        layer
        for layer in layers
        if layer.op not in ("flatten", "dropout")
        and not (layer.op in ("relu", "relu6") and readers[layer.node.inputs[0]] == 1)
        and not idle(layer)
    ]


def idle(layer: Layer) -> bool:
    """A join of one, or bins that are as many as the positions: no layer there."""
    kinds = ("concat", "adaptive_avg_pool")
    return layer.op in kinds and layer.output == layer.inputs[0].shape


def features(layers: Sequence[Layer]) -> int:
    return 4 * sum(tensor.elements for layer in kept(layers) for tensor in layer.outputs)


def operations(layers: Sequence[Layer]) -> int:
    return sum(_operations(layer) for layer in layers if not idle(layer))


def _operations(layer: Layer) -> int:
    made = elements(layer.output or ())
    if layer.op in ("conv", "linear"):
        return layer.ops.mac + layer.ops.add
    if layer.op in ("relu", "relu6"):
        return 2 * made
    if layer.op in ("max_pool", "avg_pool"):
        return 2 * made * int(prod(layer.node.attributes.window.stride))
    if layer.op == "adaptive_avg_pool":
        return layer.inputs[0].elements
    if layer.op == "lrn":
        _, channels, height, width = layer.output or (1, 1, 1, 1)
        return made + (2 + 2 * channels) * height * width
    return made if layer.op == "add" else 0


def memory_text(count: int) -> str:
    place = floor(log(count, 1024))
    return f"{count / 1024**place:.0f} {('B', 'KB', 'MB', 'GB', 'TB')[place]}"


def flops_text(count: int) -> str:
    place = floor(log(count, 1000))
    return f"{count / 1000**place:.0f} {('', 'K', 'M', 'G', 'T')[place]}FLOPs"


# -- rows


@cache
def table(path: Path) -> tuple[Row, ...]:
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def network(model: str, whole: bool) -> Graph:
    """All of it, or what runs up to its end point, which depends on all of that."""
    build, endpoint = NETWORKS[model]
    graph = build()
    if whole:
        return graph
    place = [node.name for node in graph.nodes].index(endpoint)
    return replace(graph, nodes=graph.nodes[: place + 1], outputs=graph.nodes[place].outputs)


@cache
def report(model: str, size: str, whole: bool) -> Report:
    height, width = map(int, size.split("x"))
    return analyze(network(model, whole), input=(1, 3, height, width))


def account(row: Row) -> Report:
    return report(row["model"], row["input"], row["endpoint"] == "(whole)")


def rows_of(shared: Path, *models: str) -> list[Row]:
    return [row for row in table(shared / "truth/convnet_burden.csv") if row["model"] in models]


# -- comparisons


def test_every_model_is_compared_or_absent(shared: Path) -> None:
    rows = table(shared / "truth/convnet_burden.csv")
    assert {row["model"] for row in rows} == set(NETWORKS) | ABSENT
    assert not set(NETWORKS) & ABSENT
    assert len(rows) == 247
    assert len(rows_of(shared, *NETWORKS)) == 105


@pytest.mark.parametrize("model", NETWORKS)
def test_features_and_operations_are_convnet_burdens(model: str, shared: Path) -> None:
    rows = rows_of(shared, model)
    assert rows
    for row in rows:
        layers, batch = account(row).layers, int(row["batch"])
        assert memory_text(batch * features(layers)) == row["feature_mem_4B_relu_in_place"], row
        stated = row["macs_called_flops"].replace("FLOPS", "FLOPs")
        assert flops_text(batch * operations(layers)) == stated, row
        if row["feature_size"]:
            _, channels, *sizes = (layers[-1].output or ()) + (1, 1)
            assert "x".join(map(str, (*sizes[:2], channels))) == row["feature_size"], row


def test_parameters_are_convnet_burdens(shared: Path) -> None:
    rows = [row for row in rows_of(shared, *NETWORKS) if row["param_mem_4B"]]
    different = {}
    for row in rows:
        stored = account(row).totals.param_bytes
        if memory_text(stored) != row["param_mem_4B"]:
            different[row["model"]] = (stored, row["param_mem_4B"])
    assert len(rows) == 14
    assert HEADS == 6_379_728
    assert different == {"googlenet": (4 * 6_998_552, "51 MB")}
    assert memory_text(4 * (6_998_552 + HEADS)) == "51 MB"


def test_its_flops_are_more_than_macs(shared: Path) -> None:
    """In so many rows the MACs alone are printed otherwise."""
    otherwise = 0
    for row in rows_of(shared, *NETWORKS):
        macs = int(row["batch"]) * account(row).totals.macs
        stated = row["macs_called_flops"].replace("FLOPS", "FLOPs")
        otherwise += flops_text(macs) != stated
    assert otherwise == 36


# -- nothing simpler fits


def without(*kinds: str) -> Callable[[Report], int]:
    return lambda account: features([x for x in account.layers if x.op not in kinds])


def with_relu(account: Report) -> int:
    rectified = [layer for layer in account.layers if layer.op in ("relu", "relu6")]
    return features(account.layers) + 4 * sum(elements(x.output or ()) for x in rectified)


# A rule for the bytes of features, and how many of the 105 rows it misses.
OTHER_RULES: dict[str, tuple[Callable[[Report], int], int]] = {
    "the input too": (lambda x: features(x.layers) + 4 * x.inputs[0].elements, 43),
    "ReLU not in place": (with_relu, 105),
    "batch norm in place": (without("batch_norm"), 77),
    "sums and concats in place": (without("add", "concat"), 78),
    "all in place that can be": (
        lambda x: 4 * sum(analyze(x.graph, in_place=True).memory.written.values()),
        77,
    ),
}


@pytest.mark.parametrize("rule", OTHER_RULES)
def test_other_rules_for_features_do_not_fit(rule: str, shared: Path) -> None:
    counted, wrong = OTHER_RULES[rule]
    missed = 0
    for row in rows_of(shared, *NETWORKS):
        ours = memory_text(int(row["batch"]) * counted(account(row)))
        missed += ours != row["feature_mem_4B_relu_in_place"]
    assert missed == wrong
