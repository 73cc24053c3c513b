"""Tables that programs print: round trips, networks, hostile texts."""

from __future__ import annotations

import time
from html import escape
from random import Random

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from layerscope import Builder, analyze
from layerscope.errors import LayerscopeError
from layerscope.formats.document import networks_of
from layerscope.formats.document.assembly import network_of
from layerscope.graph.types import Graph
from layerscope.notations import notation, write
from tests.brute.random_graphs import lines, planes

NOTATIONS = (
    "module", "ptflops", "torchsummary", "torchinfo", "torchstat", "fvcore", "keras", "keras.box",
    "darknet", "darknet.2019", "darknet.2018",
)  # fmt: skip
NAMES = ("alexnet", "vgg16", "resnet18", "googlenet", "mobilenet_v2", "squeezenet1_0", "vit_b_32")
CHAINS = ("alexnet", "vgg16", "vgg11_bn")


def printed(network: str | Graph, name: str) -> str:
    return write(analyze(network, like=notation(name).like), name)


def graph_of(text: str) -> Graph:
    found = networks_of(text)
    assert len(found) == 1
    [network] = found
    if network.build is not None:
        return network.build("net.txt", {})
    return network_of(network, "net.txt", network.name or "net")


@pytest.mark.parametrize("name", NOTATIONS)
@pytest.mark.parametrize("network", NAMES)
def test_round_trip(name: str, network: str) -> None:
    text = printed(network, name)
    assert printed(graph_of(text), name) == text


@pytest.mark.parametrize("name", ["keras", "keras.box", "darknet", "torchsummary"])
@pytest.mark.parametrize("network", CHAINS)
def test_a_chain_is_printed_from_the_network_alone(name: str, network: str) -> None:
    """The text of the document is not used: its network gives every figure again."""
    text = printed(network, name)
    graph = replace(graph_of(text), claims=None)
    if name in ("keras", "keras.box"):
        assert printed(graph, name) == text
    else:
        totals = analyze(graph).totals
        expected = analyze(network).totals
        assert totals.ops.mac == expected.ops.mac
        if name == "torchsummary":
            assert totals.params == expected.params


@pytest.mark.parametrize("network", ["alexnet", "vgg16", "resnet18"])
@pytest.mark.parametrize("name", ["keras", "keras.box"])
def test_keras_gives_the_network_again(name: str, network: str) -> None:
    wanted, found = analyze(network), analyze(graph_of(printed(network, name)))
    assert {layer.name: layer.output for layer in found.layers} == {
        layer.name: layer.output for layer in wanted.layers
    }
    assert found.totals.ops.mac == wanted.totals.ops.mac
    assert found.totals.params == wanted.totals.params
    assert {n.name: n.inputs for n in found.graph.nodes} == {
        n.name: n.inputs for n in wanted.graph.nodes
    }


def test_keras_in_html() -> None:
    text = printed("vgg16", "keras.box")
    coloured = (f'<span style="color: #0af">{escape(c)}</span>' if c.isdigit() else c for c in text)
    html = f'<pre style="white-space:pre">{"".join(coloured)}</pre>'
    assert analyze(graph_of(html)).totals.params == analyze("vgg16").totals.params


KERAS_3 = """\
Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape      ┃    Param # ┃ Connected to      ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━┩
│ input_layer         │ (None, 8, 8, 3)   │          0 │ -                 │
│ (InputLayer)        │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ conv2_block1_1_co…  │ (None, 8, 8, 4)   │        112 │ input_layer[0][0] │
│ (Conv2D)            │                   │            │                   │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ other (Conv2D)      │ (None, 8, 8, 4)   │         16 │ input_layer[0][0] │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ add (Add)           │ (None, 8, 8, 4)   │          0 │ conv2_block1_1_c… │
│                     │                   │            │ other[0][0]       │
└─────────────────────┴───────────────────┴────────────┴───────────────────┘
 Total params: 128 (512.00 B)
 Trainable params: 128 (512.00 B)
 Non-trainable params: 0 (0.00 B)
"""


def test_names_that_keras_cuts() -> None:
    graph = graph_of(KERAS_3)
    assert graph.name == "functional"
    first, other, add = graph.nodes
    assert first.inputs == other.inputs == ("input_layer",)
    assert add.op == "add"
    assert add.inputs == (first.name, other.name)
    assert analyze(graph).totals.params == 128


def test_darknet_routes_are_edges() -> None:
    graph = graph_of(printed("squeezenet1_0", "darknet"))
    concats = [node for node in graph.nodes if node.op == "concat"]
    assert len(concats) == 8
    assert all(len(node.inputs) == 2 for node in concats)
    adds = [n for n in graph_of(printed("resnet18", "darknet.2018")).nodes if n.op == "add"]
    assert len(adds) == 8


PJREDDIE = """\
layer     filters    size              input                output
    0 conv     16  3 x 3 / 1   416 x 416 x   3   ->   416 x 416 x  16  0.150 BFLOPs
    1 max          2 x 2 / 2   416 x 416 x  16   ->   208 x 208 x  16
    2 conv     32  3 x 3 / 1   208 x 208 x  16   ->   208 x 208 x  32  0.399 BFLOPs
    3 upsample            2x   208 x 208 x  32   ->   416 x 416 x  32
    4 route  3 0
    5 conv     16/ 16  3 x 3 / 1   416 x 416 x  48   ->   416 x 416 x  16  0.001 BFLOPs
"""


def test_a_log_of_darknet_itself() -> None:
    graph = graph_of(PJREDDIE)
    assert [node.op for node in graph.nodes][:5] == ["conv", "max_pool", "conv", "resize", "concat"]
    assert graph.nodes[4].inputs == (graph.nodes[3].name, graph.nodes[0].name)
    report = analyze(graph)
    assert report.layers[4].output == (1, 48, 416, 416)


def test_rows_that_contain_others_are_no_layers() -> None:
    network = networks_of(printed("resnet18", "torchsummary"))[0]
    assert network.groups == 8
    assert all(row.type != "BasicBlock" for row in network.rows)
    network = networks_of(printed("resnet18", "torchinfo"))[0]
    assert network.groups == 1 + 4 + 8  # the downsamplings are as deep as the table goes
    assert {row.type for row in network.rows} == {
        "Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "AdaptiveAvgPool2d", "Linear", "Sequential"
    }  # fmt: skip
    assert network.modules["4.0"] == "BasicBlock"


def test_fvcore_has_parameters_and_no_operations() -> None:
    report = analyze(graph_of(printed("resnet18", "fvcore")))
    assert report.by_name["conv1"].params == 9408
    assert not report.params_complete
    assert any("no operations" in note for note in report.notes)
    assert any("rounded" in note and "M)" in note for note in report.notes)


def test_other_inputs_drop_the_figures_of_a_document() -> None:
    [found] = networks_of(printed("vgg11", "ptflops"))
    assert found.build is not None
    kept, computed = found.build("x", {}), found.build("x", {"": (1, 3, 448, 448)})
    assert kept.claims is not None
    assert computed.claims is None
    assert any("--as ptflops" in note for note in kept.notes)


@pytest.mark.parametrize(
    "text",
    [
        "  Layer (type)  Output Shape  Param #\n" * 10_000,
        "Layer (type:depth-idx)   Output Shape   Param #\n====================\n" + "│" * 300_000,
        "│ Layer (type) │ Output Shape │ Param # │\n" + "│ a (B) │ (None, 1) │ 1 │\n" * 10_000,
        "layer filters size input output\n" + "0 conv " + "1 x " * 300_000,
        "layer filters size input output\n" * 10_000,
        "| module | #parameters or shape | #flops |\n" * 10_000,
        "  module name  input shape output shape params memory(MB)\n" + "0 a\n" * 10_000,
        "<" * 1_000_000 + "Layer (type) Output Shape Param #",
    ],
    ids=range(8),
)
def test_hostile_texts_take_bounded_time(text: str) -> None:
    start = time.process_time()
    networks_of(text)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("name", NOTATIONS)
def test_random_networks_are_printed_again(name: str) -> None:
    """Branches of any ops, in planes and in lines."""

    @settings(max_examples=15)
    @given(planes() | lines())
    def check(graph: Graph) -> None:
        text = printed(graph, name)
        if graph.nodes:
            assert printed(graph_of(text), name) == text

    check()


SIGNS = (
    "", "(", ")", "[", ",", "'", "…", "│", "x", "-1", "0", "9" * 30, "None", "->", ":", "\t", "=",
    "?", "(0-9): 10 x ",
)  # fmt: skip


def damaged(text: str, rng: Random) -> str:
    """A text with some lines removed, repeated or changed."""
    rows = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        n = rng.randrange(len(rows))
        line = rows[n]
        at = rng.randrange(len(line) + 1)
        changed = line[:at] + rng.choice(SIGNS) + line[at + rng.randrange(6) :]
        rows[n : n + 1] = rng.choice([[], [line, line], [changed], [changed]])
        rows = rows or [""]
    return "\n".join(rows)


@pytest.mark.parametrize("name", NOTATIONS)
def test_damaged_texts_raise_only_errors_of_layerscope(name: str) -> None:
    rng = Random(name)
    text = printed("lenet5", name)
    for _ in range(60):
        changed = damaged(text, rng)
        try:
            for network in networks_of(changed):
                shapes = rng.choice([{}, {"": (1, 1, 28, 28)}])
                built = network.build("x", shapes) if network.build else network_of(network, "x")
                analyze(built)
        except LayerscopeError:
            continue


@pytest.mark.parametrize("name", ["darknet", "darknet.2018", "darknet.2019"])
@pytest.mark.parametrize(
    ("kernel", "padding"), [((1, 3), (0, 2)), ((3, 3), (2, 2)), ((4, 2), (3, 1))]
)
def test_a_pool_with_more_padding_than_half_its_kernel(
    name: str, kernel: tuple[int, int], padding: tuple[int, int]
) -> None:
    """Darknet's log has no padding: the output has it."""
    builder = Builder("pool")
    x = builder.max_pool(
        builder.input("data", (1, 4, 5, 5)), kernel, stride=1, padding=padding, name="pool"
    )
    text = printed(builder.build(x), name)
    (network,) = networks_of(text)[:1]
    assert printed(network_of(network, "x", "pool"), name) == text


@pytest.mark.parametrize("name", ["torchsummary", "torchinfo", "torchstat"])
def test_an_op_that_is_named_after_arguments_not_printed(name: str) -> None:
    """PyTorch's LPPool has no padding: with padding the row has the name of the op."""
    builder = Builder("pool")
    x = builder.input("data", (1, 4, 5, 5))
    text = printed(builder.build(builder.lp_pool(x, (1, 2), stride=1, padding=(0, 1))), name)
    (network,) = networks_of(text)[:1]
    assert printed(network_of(network, "x", "pool"), name) == text


@pytest.mark.parametrize("side", range(3, 9))
def test_torchsummary_does_not_print_the_input(side: int) -> None:
    """The total in megabytes contains the input, which no row has."""
    builder = Builder("up")
    x = builder.resize(builder.input("data", (1, 4, side, side)), 2)
    text = printed(builder.build(x), "torchsummary")
    assert printed(graph_of(text), "torchsummary") == text
