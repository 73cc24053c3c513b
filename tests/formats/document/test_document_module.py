"""Printed modules: the grammar, errors with line and column, layers, order, hostile texts."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from layerscope import Report, analyze
from layerscope.errors import FormatError
from layerscope.formats.document import networks_of
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Shape
from layerscope.notations import write


def graph_of(text: str, input: Shape | None = None) -> Graph:
    [found] = networks_of(text)
    assert found.build is not None
    shapes: Mapping[str, Shape] = {} if input is None else {"": input}
    return found.build("net.txt", shapes)


def report_of(text: str, input: Shape | None = None) -> Report:
    return analyze(graph_of(text, input))


CHAIN = """\
Sequential(
  (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)
  (1): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (2): Sequential(
    (0): ReLU(inplace=True)
    (1): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
  )
  (3): Flatten(start_dim=1, end_dim=-1)
  (4): Linear(in_features=128, out_features=10, bias=True)
)
"""


def test_a_chain_of_sequentials_is_exact() -> None:
    report = report_of(CHAIN, (1, 3, 16, 16))
    assert [layer.op for layer in report.layers] == [
        "conv", "batch_norm", "relu", "max_pool", "flatten", "linear"
    ]  # fmt: skip
    assert report.totals.params == 3 * 8 * 9 + 16 + 1290
    assert report.totals.ops.mac == 8 * 64 * 27 + 1280
    assert not report.coverage.estimated
    assert report.graph.nodes[0].attributes == at.Conv(
        at.Window((3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)), 8, 1, False
    )
    assert not any("order" in note for note in report.graph.notes)


def test_without_an_input_parameters_are_exact_and_sizes_unknown() -> None:
    report = report_of(CHAIN)
    assert report.totals.params == 3 * 8 * 9 + 16 + 1290
    assert report.params_complete
    assert report.totals.buffers == 16
    assert report.coverage.unknown
    assert any("--input" in note for note in report.graph.notes)


def test_an_input_may_leave_out_the_batch() -> None:
    assert graph_of(CHAIN, (3, 16, 16)).inputs[0].shape == (1, 3, 16, 16)


BLOCKS = """\
Net(
  (stem): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
  (blocks): ModuleList(
    (0-5): 6 x Block(
      (a): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
      (act): GELU(approximate='none')
    )
  )
  (skip): None
  (lost): Conv2d(7, 4, kernel_size=(1, 1), stride=(1, 1))
)
"""


def test_repeated_blocks_and_containers_whose_order_is_assumed() -> None:
    report = report_of(BLOCKS, (1, 3, 8, 8))
    assert [layer.name for layer in report.layers if layer.op == "conv"] == [
        "stem", *(f"blocks.{n}.a" for n in range(6)), "lost"
    ]  # fmt: skip
    assert report.totals.params == 16 + 6 * (4 * 36 + 4) + 32
    assert all(layer.status == "estimate" for layer in report.layers[:-1])
    assert report.by_name["lost"].call is None  # 7 channels, which no module has
    [note] = [note for note in report.notes if "order" in note and "Net" in note]
    assert "ModuleList, Block" in note
    assert any("lost" in note and "unknown" in note for note in report.notes)


def test_a_branch_takes_the_input_of_its_block() -> None:
    text = """\
Block(
  (conv1): Conv2d(4, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
  (downsample): Sequential(
    (0): Conv2d(4, 8, kernel_size=(1, 1), stride=(2, 2))
  )
)
"""
    graph = graph_of(text, (1, 4, 8, 8))
    assert graph.nodes[1].inputs == ("input",)


def test_what_may_be_weighted_by_a_pool_has_an_open_size() -> None:
    text = """\
Net(
  (se): Squeeze(
    (pool): AdaptiveAvgPool2d(output_size=1)
    (fc): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))
  )
  (after): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))
)
"""
    report = report_of(text, (1, 4, 8, 8))
    assert report.by_name["se.fc"].call is not None
    assert report.by_name["after"].call is None
    assert report.totals.params == 40


def test_classes_of_others() -> None:
    text = """\
Net(
  (a): Conv2dSame(3, 4, kernel_size=(3, 3), stride=(2, 2), bias=False)
  (b): LayerScale()
  (c): LayerNorm()
  (w): ParameterList(
      (0): Parameter containing: [torch.float32 of size 3x4]
  )
)
"""
    report = report_of(text, (1, 3, 8, 8))
    assert report.totals.params == 108 + 12
    assert not report.coverage.unknown.get("conv")
    notes = " ".join(report.notes)
    assert "Conv2dSame is read as Conv2d" in notes
    assert "LayerScale, LayerNorm" in notes


def test_attention_has_its_input_projections() -> None:
    text = """\
MultiheadAttention(
  (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
)
"""
    assert report_of(text).totals.params == 4 * 64 + 4 * 8


def test_quantized_weights_are_int8() -> None:
    text = """\
Sequential(
  (0): QuantizedConv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), scale=1.0, zero_point=0)
)
"""
    [node] = graph_of(text, (1, 3, 8, 8)).nodes
    assert node.params is not None
    assert [p.dtype for p in node.params] == ["int8", "fp32"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Net(\n  (a): ReLU()\n", "net.txt:1:1: Net( is not closed"),
        ("Net(\n  (a): B(\n    (c): ReLU()\n  )\n", "net.txt:1:1: Net( is not closed"),
        (
            "Net(\n  (a): Conv2d(3, 4, kernel_size=(3, x), stride=(1, 1))\n)\n",
            "net.txt:2:21: kernel_size=(3, x), expected 2 whole numbers",
        ),
        (
            "Net(\n  (a): Linear(in_features=4, out_features=2, bias=7)\n)\n",
            "net.txt:2:46: bias=7, expected True or False",
        ),
        ("Net(\n  (0-5): 7 x ReLU()\n)\n", "net.txt:2:4: 7 modules named (0-5)"),
        ("Net(\n  (a): ReLU())\n)\n", "net.txt:2:14: `)` without a `(`"),
        (
            f"Net(\n  (a): Linear(in_features={'9' * 500}, out_features=2)\n)\n",
            "NUMBER_DIGITS",
        ),
    ],
)
def test_errors_have_line_and_column(text: str, message: str) -> None:
    with pytest.raises(FormatError) as error:
        graph_of(text)
    assert message in str(error.value)


def deep(depth: int) -> str:
    return "Net(\n" + "(a): B(\n" * depth + "(b): ReLU()\n" + ")\n" * (depth + 1)


def test_hostile_texts_are_refused_in_bounded_time() -> None:
    start = time.process_time()
    with pytest.raises(FormatError, match="PRINT_DEPTH"):
        graph_of(deep(10_000))
    nested = "Net(\n" + "(0-99999): 100000 x B(\n" * 20 + "(a): ReLU()\n" + ")\n" * 21
    with pytest.raises(FormatError, match="PRINTED_MODULES"):
        graph_of(nested)
    with pytest.raises(FormatError, match="PRINTED_MODULES"):
        graph_of("Net(\n" + "  (a): ReLU()\n" * 1_000_000 + ")\n")
    quotes = "Net(\n  (a): B('" + "'," * 200_000 + ")\n)\n"
    assert networks_of(quotes)
    graph_of(quotes)
    assert networks_of("(" * 5_000_000) == ()
    assert time.process_time() - start < 30


def test_names_are_escaped() -> None:
    text = "Net(\n  (a\x1b[31m): Bad\x1b(x=\x1b)\n)\n"
    assert "\x1b" not in write(report_of(text), "module")


def test_a_document_may_have_prose_and_two_models() -> None:
    text = f"Some words.\n\n```\n>>> print(net)\n{CHAIN}```\n\nAnd then\n{BLOCKS}"
    found = networks_of(text)
    assert [each.line for each in found] == [5, 18]
    assert all(each.build for each in found)


@pytest.mark.parametrize("name", ["vgg11", "resnet18", "googlenet", "densenet121", "alexnet-caffe"])
def test_round_trip(name: str) -> None:
    text = write(analyze(name), "module")
    assert write(report_of(text), "module") == text
