"""MatConvNet's print of a DagNN is read: edges, filters and windows, and printed again."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from layerscope import analyze, load
from layerscope.formats.document import networks_of
from layerscope.notations import write

STYLES = ("", ".csv", ".latex")
NETWORKS = ("lenet5", "vgg11", "resnet18", "googlenet", "squeezenet1_1", "alexnet-caffe")
PRINT = """\
   func|  c1|  p1|
-------|----|----|
   type|Conv|Pooling|
 inputs|data|  c1|
outputs|  c1|  p1|
 params| c1f|    |
    pad|   2|0x1x0x1|
 stride|   1|   2|

 param|    c1f|
  dims|3x3x1x6|

   var|   data|     c1|     p1|
  dims|9x9x1x1|9x9x6x1|4x4x6x1|
 fanin|      0|      1|      1|

rf in 'data'|data|c1|p1|
        size|   1| 5| 7|
      stride|   1| 1| 2|
"""


def printed(network: str, style: str, folder: Path) -> tuple[str, Path]:
    text = write(analyze(network, like="matconvnet"), f"matconvnet.dag{style}")
    path = folder / "net.txt"
    path.write_text(text, encoding="utf-8")
    return text, path


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("network", NETWORKS)
def test_it_is_computed_again(network: str, style: str, tmp_path: Path) -> None:
    """Also without the lines of the document."""
    text, path = printed(network, style, tmp_path)
    graph = load(path)
    assert write(analyze(graph, like="matconvnet"), f"matconvnet.dag{style}") == text
    computed = analyze(replace(graph, claims=None), like="matconvnet")
    assert write(computed, f"matconvnet.dag{style}") == text


@pytest.mark.parametrize("network", NETWORKS)
def test_layers_and_edges_are_those_of_the_network(network: str, tmp_path: Path) -> None:
    first, second = load(network), load(printed(network, "", tmp_path)[1])
    assert [node.name for node in first.nodes] == [node.name for node in second.nodes]
    for a, b in zip(first.nodes, second.nodes, strict=True):
        assert a.inputs == b.inputs
        if a.op in ("conv", "linear"):
            assert a.op == b.op
        if a.op == "conv":
            assert (a.attributes.bias, a.attributes.groups) == (
                b.attributes.bias,
                b.attributes.groups,
            )
        if a.op in ("conv", "max_pool"):
            assert (a.attributes.window.kernel, a.attributes.window.dilation) == (
                b.attributes.window.kernel,
                b.attributes.window.dilation,
            )


@pytest.mark.parametrize("network", ["bert_base", "unet"])
def test_what_it_does_not_determine_is_printed_as_it_is(network: str, tmp_path: Path) -> None:
    text, path = printed(network, "", tmp_path)
    graph = load(path)
    assert write(analyze(graph, like="matconvnet"), "matconvnet.dag") == text
    assert any("its text does not determine the network" in note for note in graph.notes)


def test_windows_follow_from_fields(tmp_path: Path) -> None:
    """A dilated convolution, and a pool whose kernel is not printed."""
    path = tmp_path / "notes.md"
    path.write_text(f"Our network:\n\n{PRINT}\nand more\n", encoding="utf-8")
    conv, pool = load(path).nodes
    assert conv.attributes.window.dilation == (2, 2)
    assert not conv.attributes.bias
    assert pool.attributes.window.kernel == (3, 3)
    assert pool.attributes.window.pads == ((0, 1), (0, 1))


@pytest.mark.parametrize(
    "text",
    [PRINT.replace("data", ""), PRINT.replace("3x3x1x6", "0x0x0"), PRINT.replace("|", ","),
     PRINT.replace("5| 7", "0| 0"), PRINT.replace("9x9", "99999999999x9"), PRINT[:90],
     PRINT.replace("outputs", "output"), PRINT.replace("c1", "p1")],
)  # fmt: skip
def test_broken_prints_raise_nothing(text: str, tmp_path: Path) -> None:
    for network in networks_of(text):
        assert network.rows
    path = tmp_path / "net.txt"
    path.write_text(text, encoding="utf-8")
    if any(network.notation == "matconvnet.dag" for network in networks_of(text)):
        load(path)
