"""The zoo as a set of networks: names, structure, and figures that come from nodes alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from layerscope import Graph, analyze
from layerscope.errors import UnknownName
from layerscope.zoo import (
    NAMES,
    alexnet,
    build,
    describe,
    googlenet,
    lenet,
    mtcnn,
    nin,
    patch32,
    resnet,
    vgg,
)

# -- the table of names


def test_names_are_told_apart_without_case_and_dashes() -> None:
    bare = {name.lower().replace("-", "").replace("_", "") for name in NAMES}
    assert len(bare) == len(NAMES) >= 26


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vgg16-bn", "vgg16_bn"),
        ("VGG16_BN", "vgg16_bn"),
        ("ResNet-50", "resnet50"),
        ("resnet50_v1", "resnet50-v1"),
        ("GoogLeNet_Caffe", "googlenet-caffe"),
    ],
)
def test_names_are_found_however_they_are_typed(typed: str, meant: str) -> None:
    assert build(typed).name == meant
    assert describe(typed) == describe(meant)


def test_an_unknown_name_is_told_what_is_near() -> None:
    with pytest.raises(UnknownName, match=r"unknown network 'vgg17'; did you mean .*vgg1"):
        build("vgg17")
    with pytest.raises(UnknownName, match="'transformer'; `layerscope zoo` lists them"):
        describe("transformer")


def test_descriptions_are_one_line_each_and_differ() -> None:
    told = [describe(name) for name in NAMES]
    assert len(set(told)) == len(NAMES)
    assert all(20 <= len(line) <= 80 and "\n" not in line for line in told)


def test_only_the_family_asked_for_is_loaded() -> None:
    script = (
        "import sys; from layerscope.zoo import build; build('vgg16');"
        "own = (m for m in sys.modules if m.startswith('layerscope.zoo.'));"
        "print(*sorted(m for m in own if not m.endswith('entry') and 'catalogue' not in m),"
        "*sorted({'torch', 'onnx', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("layerscope.zoo.vgg", "")


# -- every network


@pytest.mark.parametrize("name", NAMES)
def test_every_network_is_known_throughout(name: str) -> None:
    graph = build(name)
    report = analyze(graph)
    assert graph.name == name
    assert report.coverage.unknown == {}
    assert report.coverage.estimated == 0
    assert len({node.name.lower() for node in graph.nodes}) == len(graph.nodes)
    assert report.totals.params == sum(
        param.elements for cost in report.costs.values() for param in cost.first if param.learnable
    )
    stored = {kind: sum(counts.values()) for kind, counts in report.stored.items()}
    held = {"parameters": report.totals.params, "buffers": report.totals.buffers}
    assert stored == {kind: count for kind, count in held.items() if count}


@pytest.mark.parametrize("name", NAMES)
def test_a_network_built_twice_is_equal(name: str) -> None:
    first, second = build(name), build(name)
    assert first is not second
    assert first == second
    assert list(first.modules) == list(second.modules)


def having(op: str) -> list[str]:
    return [name for name in NAMES if any(node.op == op for node in build(name).nodes)]


def test_every_network_has_a_convolution_or_reads_tokens() -> None:
    assert {*having("conv"), *having("embedding")} == set(NAMES)


@pytest.mark.parametrize("name", having("embedding"))
def test_one_more_token_changes_params_alone(name: str) -> None:
    graph = build(name)
    place, node = next((n, node) for n, node in enumerate(graph.nodes) if node.op == "embedding")
    more = replace(node, attributes=replace(node.attributes, rows=node.attributes.rows + 1))
    nodes = (*graph.nodes[:place], more, *graph.nodes[place + 1 :])
    before, after = analyze(graph).totals, analyze(replace(graph, nodes=nodes)).totals
    assert after.params - before.params == node.attributes.features
    assert after.macs == before.macs


@pytest.mark.parametrize("name", having("conv"))
def test_one_wider_kernel_changes_params_and_macs(name: str) -> None:
    """The first convolution, wider by one and padded by one on every side, keeps its output."""
    graph = build(name)
    place, node = next((n, node) for n, node in enumerate(graph.nodes) if node.op == "conv")
    before = analyze(graph)
    window = node.attributes.window
    shape = before.by_name[node.name].inputs[0].shape or ()
    wider = replace(
        window,
        kernel=tuple(size + 2 for size in window.kernel),
        pads=tuple((begin + 1, end + 1) for begin, end in window.resolve(shape[2:])),
    )
    changed = replace(node, attributes=replace(node.attributes, window=wider))
    after = analyze(
        replace(graph, nodes=(*graph.nodes[:place], changed, *graph.nodes[place + 1 :]))
    )
    n, out, height, width = before.by_name[node.name].output or ()
    into = shape[1] // node.attributes.groups
    more = out * into * (wider.positions - window.positions)
    assert n == 1
    assert after.totals.params - before.totals.params == more
    assert after.totals.macs - before.totals.macs == more * height * width


# reduction times output of the third branches at 28x28, 14x14 and 7x7: 3a 3b, 4a to 4e, 5a 5b
LARGE = {
    28: 16 * 32 + 32 * 96,
    14: 16 * 48 + 24 * 64 + 24 * 64 + 32 * 64 + 32 * 128,
    7: 32 * 128 + 48 * 128,
}
LARGE_PARAMS = (25 - 9) * sum(LARGE.values())
LARGE_MACS = (25 - 9) * sum(weights * size**2 for size, weights in LARGE.items())
FOUR = (1, 1, 1, 1)

Change = tuple[Callable[[], Graph], Callable[[], Graph], int, int]

# a network, the same with other kernels, and by how much parameters and MACs must differ
CHANGES: dict[str, Change] = {
    "vgg: 5x5 first": (
        vgg.vgg16,
        lambda: vgg.network("x", ((5, 3), *vgg.D[1:])),
        3 * 64 * (25 - 9),
        3 * 64 * (25 - 9) * 224**2,
    ),
    "alexnet: 3x3 in conv2": (
        alexnet.alexnet,
        lambda: alexnet.one_tower(
            "x", (alexnet.TORCHVISION[0], (192, 3, 1, 1, 1), *alexnet.TORCHVISION[2:])
        ),
        64 * 192 * (9 - 25),
        64 * 192 * (9 - 25) * 27**2,
    ),
    "alexnet-caffe: 3x3 in conv2": (
        alexnet.alexnet_caffe,
        lambda: alexnet.classic(
            "x", (alexnet.CAFFE[0], (256, 3, 1, 1, 2), *alexnet.CAFFE[2:]), size=227
        ),
        48 * 256 * (9 - 25),  # each of two groups sees 48 of 96 channels
        48 * 256 * (9 - 25) * 27**2,
    ),
    "nin: 1x1 in conv3": (
        nin.nin,
        lambda: nin.network(
            "x",
            (*nin.CONVS[:6], ("conv3", "relu7", 384, 1, 1, 0), *nin.CONVS[7:]),
            size=224,
            pool2_stride=2,
            last=6,
        ),
        256 * 384 * (1 - 9),
        256 * 384 * (1 - 9) * 13**2,
    ),
    "mtcnn: 1x1 in conv2, so 5x5 and 3x3 positions follow where 3x3 and 1x1 did": (
        mtcnn.pnet,
        lambda: mtcnn.pnet(((10, 3), (16, 1), (32, 3))),
        10 * 16 * (1 - 9),
        10 * 16 * (25 - 9 * 9) + (16 * 9 * 32 + 32 * 2 + 32 * 4) * (9 - 1),
    ),
    "patch32: 1x1 in conv2, which has 4 groups": (
        patch32.patch32,
        lambda: patch32.network("x", (patch32.CONVS[0], (128, 1, 4), *patch32.CONVS[2:])),
        32 * 128 * (1 - 9),
        32 * 128 * (1 - 9) * 32**2,
    ),
    "lenet: 4x4 in C5 leaves 2x2 positions to F6": (
        lenet.lenet5,
        lambda: lenet.network("x", (5, 5, 4)),
        16 * 120 * (16 - 25) + 120 * 84 * 3,
        16 * 120 * (16 * 4 - 25) + 120 * 84 * 3,
    ),
    "googlenet: the paper's 5x5": (
        googlenet.googlenet,
        lambda: googlenet.googlenet(large=5),
        LARGE_PARAMS,
        LARGE_MACS,
    ),
    "googlenet-caffe: 3x3 for 5x5": (
        googlenet.googlenet_caffe,
        lambda: googlenet.googlenet_caffe(large=3),
        -LARGE_PARAMS,
        -LARGE_MACS,
    ),
    "resnet: 5x5 first": (
        resnet.resnet18,
        lambda: resnet.network("x", resnet.BASIC, (2, 2, 2, 2), stem=5),
        3 * 64 * (25 - 49),
        3 * 64 * (25 - 49) * 112**2,
    ),
    "resnet: 3x3 for the first 1x1 of a block, which comes before the stride": (
        lambda: resnet.network("x", resnet.BOTTLENECK, FOUR),
        lambda: resnet.network("x", replace(resnet.BOTTLENECK, kernels=(3, 3, 1)), FOUR),
        8 * (64 * 64 + 256 * 128 + 512 * 256 + 1024 * 512),
        8 * ((64 * 64 + 256 * 128) * 56**2 + 512 * 256 * 28**2 + 1024 * 512 * 14**2),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_network_is_its_table_of_kernels(change: str) -> None:
    plain, changed, params, macs = CHANGES[change]
    before, after = analyze(plain()).totals, analyze(changed()).totals
    assert after.params - before.params == params
    assert after.macs - before.macs == macs
