"""Rows of a document as a graph: ops, attributes, inputs, and what is left open."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from layerscope.analysis.shapes import infer
from layerscope.documents.headings import Meaning
from layerscope.formats.document.assembly import network_of
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork, amount
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Shape
from layerscope.sheets.kinds import Kind

INPUT = LayerRow("data", "input", output=(1, 3, 32, 32))


def network(*rows: LayerRow, branched: bool = True) -> Graph:
    graph = network_of(PrintedNetwork((INPUT, *rows), branched=branched), "notes.md", "net")
    infer(graph)
    return graph


def params(text: str) -> dict[Meaning, Amount]:
    found = amount(text)
    assert found is not None
    return {"params": found}


def window(
    kernel: int, stride: int = 1, pad: int = 0, rounding: at.Rounding = "floor"
) -> at.Window:
    return at.Window((kernel,) * 2, (stride,) * 2, ((pad, pad),) * 2, (1, 1), rounding)


@pytest.mark.parametrize("kernel", range(1, 8))
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("pad", [0, 1, 2, 3])
def test_a_convolution_follows_from_its_output_and_parameters(
    kernel: int, bias: bool, pad: int
) -> None:
    """Kernel, bias and padding of a convolution of stride 1, of which the row prints none."""
    if pad > kernel // 2:
        pytest.skip("more padding than half a kernel")
    size = 32 + 2 * pad - kernel + 1
    count = str(kernel * kernel * 3 * 8 + 8 * bias)
    row = LayerRow("c", "conv", output=(1, 8, size, size), amounts=params(count))
    (node,) = network(row).nodes
    assert node.attributes == at.Conv(window(kernel, 1, pad), 8, 1, bias)


@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16])
def test_groups_follow_from_parameters(groups: int) -> None:
    first = LayerRow("a", "conv", output=(1, 16, 32, 32), kernel=(1, 1))
    count = str(9 * 16 * 32 // groups)
    row = LayerRow("b", "conv", output=(1, 32, 32, 32), kernel=(3, 3), amounts=params(count))
    node = network(first, row).nodes[1]
    assert isinstance(node.attributes, at.Conv)
    assert (node.attributes.groups, node.attributes.bias) == (groups, False)


@pytest.mark.parametrize(
    ("row", "op", "attributes"),
    [
        (LayerRow("p", "max_pool", output=(1, 3, 16, 16)), "max_pool", at.Pool(window(2, 2))),
        (LayerRow("p", "pool", kernel=(3, 3), stride=(2, 2), output=(1, 3, 16, 16)), "max_pool",
         at.Pool(window(3, 2, 1))),
        (LayerRow("p", "avg_pool", kernel=(3, 3), stride=(2, 2), pads=((0, 0),) * 2,
                  output=(1, 3, 16, 16)), "avg_pool", at.Pool(window(3, 2, 0, "ceil"))),
        (LayerRow("r", "activation"), "relu", at.Activation()),
        (LayerRow("r", op="sigmoid"), "sigmoid", at.Activation()),
        (LayerRow("f", "fc", filters=10), "linear", at.Linear(10, True, True)),
        (LayerRow("g", "global_pool"), "global_avg_pool", at.GlobalPool()),
        (LayerRow("u", "upsample", output=(1, 3, 64, 64)), "resize",
         at.Resize("nearest", scale=((2, 1),))),
        (LayerRow("x", op="conv", attributes=at.Conv(window(5), 7, 1, False)), "conv",
         at.Conv(window(5), 7, 1, False)),
    ],
)  # fmt: skip
def test_ops_of_rows(row: LayerRow, op: str, attributes: object) -> None:
    (node,) = network(row).nodes
    assert (node.op, node.attributes) == (op, attributes)


def test_a_row_takes_the_last_earlier_row_that_explains_it() -> None:
    def conv(name: str, given: Shape, channels: int) -> LayerRow:
        return LayerRow(name, "conv", given=given, output=(1, channels, 32, 32), kernel=(1, 1))

    graph = network(
        conv("a", (1, 3, 32, 32), 8), conv("b", (1, 8, 32, 32), 4), conv("c", (1, 8, 32, 32), 5)
    )
    assert [node.inputs for node in graph.nodes] == [("data",), ("a",), ("a",)]
    assert graph.outputs == ("b", "c")
    assert any("c takes a" in note for note in graph.notes)


def test_rows_take_what_they_name() -> None:
    rows = (
        LayerRow("a", "conv", filters=4, kernel=(1, 1), key="1"),
        LayerRow("a", "conv", filters=4, kernel=(1, 1), takes=("data",), key="2"),
        LayerRow("s", "add", takes=("1", "2")),
        LayerRow("j", "concat", takes=("1", "2", "s")),
    )
    graph = network(*rows)
    assert [node.name for node in graph.nodes] == ["a", "a_2", "s", "j"]
    assert graph.nodes[2].inputs == ("a", "a_2")
    assert infer(graph).tensors["j"].shape == (1, 12, 32, 32)


def test_joins_take_rows_that_nothing_reads() -> None:
    rows = (
        LayerRow("a", "conv", given=(1, 3, 32, 32), output=(1, 4, 32, 32), kernel=(1, 1)),
        LayerRow("b", "conv", given=(1, 3, 32, 32), output=(1, 6, 32, 32), kernel=(1, 1)),
        LayerRow("j", "concat", output=(1, 10, 32, 32)),
    )
    assert network(*rows).nodes[2].inputs == ("a", "b")


def test_what_nothing_explains_is_unknown() -> None:
    row = LayerRow("deformed", type="Deform", output=(1, 7, 9, 9), line=12)
    graph = network(row, LayerRow("r", "activation"))
    node = graph.nodes[0]
    assert node.op == "document.Deform"
    assert node.attributes == at.Opaque(
        ((1, 7, 9, 9),), ("fp32",), (True,), "the document does not say what it computes"
    )
    assert str(node.source) == "notes.md:12"
    assert infer(graph).tensors["r"].shape == (1, 7, 9, 9)
    assert any("unknown: what deformed computes" in note for note in graph.notes)


def test_a_chain_with_a_wrong_output_stays_a_chain() -> None:
    pool = LayerRow("p", "max_pool", kernel=(2, 2), output=(1, 99, 32, 32))
    conv = LayerRow("c", "conv", kernel=(3, 3), output=(1, 8, 16, 16))
    graph = network(pool, conv, branched=False)
    assert [node.inputs for node in graph.nodes] == [("data",), ("p",)]
    assert infer(graph).tensors["p"].shape == (1, 3, 16, 16)
    assert any("no layer has all that the document prints of p" in note for note in graph.notes)


@pytest.mark.parametrize("bias", [False, True])
def test_rows_that_show_no_bias_are_as_those_that_do(bias: bool) -> None:
    def conv(name: str, count: str) -> LayerRow:
        return LayerRow(name, "conv", output=(1, 64, 32, 32), kernel=(3, 3), amounts=params(count))

    graph = network(conv("a", str(27 * 64 + 64 * bias)), conv("b", "37k" if bias else "36.9k"))
    assert [node.attributes.bias for node in graph.nodes] == [bias, bias]


def test_an_input_without_a_row_follows_from_the_first_row() -> None:
    row = LayerRow("c", "conv", output=(1, 8, 30, 30), kernel=(3, 3), pads=((0, 0),) * 2)
    graph = network_of(PrintedNetwork((row,)), "notes.md")
    assert graph.inputs[0].shape == (1, 3, 32, 32)
    assert any("the input, which no row prints: 1x3x32x32" in note for note in graph.notes)
    fc = LayerRow("f", "fc", output=(1, 10), amounts=params("7850"))
    assert network_of(PrintedNetwork((fc,)), "notes.md").inputs[0].shape == (1, 784)


def test_every_row_has_a_node() -> None:
    kinds: tuple[Kind, ...] = ("unknown", "add", "lstm", "fc")
    rows = tuple(LayerRow(f"n{n}", kind) for n, kind in enumerate(kinds))
    graph = network(*rows, replace(rows[0], name="n0"))
    assert [node.source.line for node in graph.nodes if node.source] == [0] * 5
    assert len(graph.nodes) == 5
