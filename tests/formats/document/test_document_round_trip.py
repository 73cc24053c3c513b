"""What a notation writes is read, and printed again to the character."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope import Builder, Graph, analyze, load
from layerscope.errors import FormatError, NoTable
from layerscope.graph.attributes import TransposedConv, Window
from layerscope.graph.types import Node, Tensor
from layerscope.notations import NOTATIONS, write
from layerscope.report import Report
from layerscope.zoo import NAMES
from tests.brute.random_graphs import lines, planes

TABLES = (
    "matconvnet", "matconvnet.csv", "matconvnet.latex", "matconvnet.dilation", "netscope",
    "netscope.folded", "backbone", "cs231n", "cs231n.md", "layersheet", "boda",
)  # fmt: skip
# chains, branches, groups, joins, transposed convolutions, products of sequences
SAMPLE = (
    "lenet5", "alexnet-caffe", "vgg16", "nin-nopad", "mtcnn-pnet", "googlenet", "resnet18",
    "resnext50_32x4d", "mobilenet_v2", "densenet121", "unet", "shufflenet_v2_x1_0", "bert_base",
)  # fmt: skip
# a digraph is not read
READ = tuple(name for name in NOTATIONS if name != "matconvnet.dag.dot")
# prints of layers, which are empty for a network without any
WITHOUT_INPUTS = (
    "matconvnet.dag", "matconvnet.dag.csv", "matconvnet.dag.latex", "module", "ptflops",
    "torchsummary", "torchinfo", "torchstat", "darknet", "darknet.2019", "darknet.2018",
)  # fmt: skip
EXAMPLES = 200  # random networks per notation
# a row is what several tables say of one layer; modules with their weights, but no layers
WITHOUT_COLUMNS = ("matconvnet.dag", "matconvnet.dag.csv", "matconvnet.dag.latex", "fvcore")
CHAINS = ("lenet5", "alexnet-caffe", "vgg16", "nin-nopad", "patch32", "zfnet", "vgg11_bn")


def report_of(network: str | Graph, notation: str) -> Report:
    return analyze(network, like=NOTATIONS[notation].like)


def again(network: str | Graph, notation: str, folder: Path) -> tuple[str, str]:
    """What a notation prints of a network, and of what is read from that."""
    text = write(report_of(network, notation), notation)
    path = folder / "document.txt"
    path.write_text(text, encoding="utf-8")
    return text, write(report_of(str(path), notation), notation)


@pytest.mark.parametrize("notation", TABLES)
@pytest.mark.parametrize("network", SAMPLE)
def test_a_network_is_printed_again(network: str, notation: str, tmp_path: Path) -> None:
    text, printed = again(network, notation, tmp_path)
    assert printed == text


@pytest.mark.parametrize("notation", sorted(NOTATIONS))
def test_layers_have_the_line_and_column_of_what_is_printed(notation: str, tmp_path: Path) -> None:
    """A reader without columns has 0; another points at what is printed."""
    lines = write(report_of("alexnet-caffe", notation), notation).split("\n")
    path = tmp_path / "document.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        nodes = load(str(path)).nodes
    except FormatError:
        pytest.skip(f"{notation} prints no network")
    for source in (node.source for node in nodes if node.source is not None):
        assert source.file.endswith("document.txt")
        if source.column:
            at = lines[source.line - 1][source.column - 1 :]
            assert at.strip(), (source, lines[source.line - 1])
    if notation not in WITHOUT_COLUMNS:
        assert any(node.source.column for node in nodes if node.source)


@pytest.mark.slow
@pytest.mark.parametrize("notation", READ)
@pytest.mark.parametrize("network", NAMES)
def test_the_zoo_is_printed_again(network: str, notation: str, tmp_path: Path) -> None:
    text, printed = again(network, notation, tmp_path)
    assert printed == text


@pytest.mark.parametrize("notation", READ)
def test_random_networks_are_printed_again(notation: str, tmp_path: Path) -> None:
    """Branches of any ops, in planes and in lines: all of them, to the character."""

    @settings(max_examples=EXAMPLES, derandomize=True)
    @given(st.one_of(planes(), lines()))
    def compare(graph: Graph) -> None:
        if not graph.nodes and notation in WITHOUT_INPUTS:
            with pytest.raises(NoTable, match="no network in it"):
                again(graph, notation, tmp_path)
            return
        text, printed = again(graph, notation, tmp_path)
        assert printed == text

    compare()


@pytest.mark.parametrize(
    "notation", ["module", "ptflops", "torchsummary", "torchinfo", "torchstat", "darknet"]
)
def test_a_print_without_layers_is_refused_in_its_words(notation: str, tmp_path: Path) -> None:
    empty = Graph("net", (Tensor("data", (1, 4, 8, 8)),), (), ("data",))
    with pytest.raises(NoTable, match=f"in the notation {notation} without layers"):
        again(empty, notation, tmp_path)


@pytest.mark.parametrize("network", CHAINS)
def test_a_display_of_matconvnet_tells_a_chain(network: str, tmp_path: Path) -> None:
    """All but views, products (convolutions there), roundings of pools and constants of ops."""
    path = tmp_path / "net.txt"
    path.write_text(write(report_of(network, "matconvnet.dilation"), "matconvnet.dilation"))
    first, second = load(network), load(str(path))
    views = ("flatten", "reshape", "identity")
    listed = [node for node in first.nodes if node.op not in views]
    assert [node.name for node in listed] == [node.name for node in second.nodes]
    for a, b in zip(listed, second.nodes, strict=True):
        if a.op == "conv":
            assert b.op == "conv"
            bias = getattr(a.attributes, "bias", None)
            assert getattr(b.attributes, "bias", None) == bias
            for part in ("kernel", "stride", "dilation"):
                assert getattr(a.attributes.window, part) == getattr(b.attributes.window, part)
            assert (a.attributes.out_channels, a.attributes.groups) == (
                b.attributes.out_channels,
                b.attributes.groups,
            )
        elif a.op != "linear" and "pool" not in a.op:
            assert a.op == b.op


@pytest.mark.parametrize("notation", ["backbone", "layersheet"])
def test_the_stage_in_a_name_tells_the_input(notation: str, tmp_path: Path) -> None:
    """The sizes of the second row follow from the first one too, but not its stage."""
    builder = Builder("branches")
    x = builder.input("data", (1, 4, 16, 16))
    a = builder.conv(x, 4, 3, padding=1, name="a")
    graph = builder.build(a, builder.conv(x, 4, 3, stride=2, padding=1, name="b"))
    text, printed = again(graph, notation, tmp_path)
    assert printed == text
    first, second = load(str(tmp_path / "document.txt")).nodes
    assert second.inputs == first.inputs


def test_a_line_that_contradicts_itself_is_not_kept(tmp_path: Path) -> None:
    """A row of Boda's is kept as it is printed only where its dims, bytes and product agree."""
    lines = write(report_of("alexnet-caffe", "boda"), "boda").split("\n")
    number = next(n for n, line in enumerate(lines) if line.startswith("conv3 input"))
    lines[number] = lines[number].replace("filts 384*", "filts 394*")
    path = tmp_path / "document.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert lines[number] not in write(report_of(str(path), "boda"), "boda")


def test_cut_pads_of_a_transposed_convolution_have_the_output_padding() -> None:
    """SAME with output padding cuts more, which the pads and the offset both say."""
    window = Window((4,), (2,), "same_lower", (1,))
    node = Node("up", "conv_transpose", ("x",), ("up",), TransposedConv(window, 2, 1, True, (1,)))
    graph = Graph("up", (Tensor("x", (1, 2, 23)),), (node,), ("up",))
    text = write(report_of(graph, "matconvnet.csv"), "matconvnet.csv")
    assert '"pad","n/a","2x1x0x0",' in text
    assert '"rf offset","n/a","1.5x1",' in text


def test_cells_of_a_document_are_marked(tmp_path: Path) -> None:
    """What the text does not determine is printed as the document has it, and said to be so."""
    text, printed = again("bert_base", "netscope", tmp_path)
    assert printed == text
    graph = load(str(tmp_path / "document.txt"))
    assert graph.claims is not None
    unknown = {node.name for node in graph.nodes if node.op.startswith("document.")}
    assert set(graph.claims.rows) == unknown
    assert any(note.startswith("taken from the document, not computed") for note in graph.notes)
    other = analyze(graph, batch=2)
    assert other.graph.claims is None  # they are of another batch
    figures = write(analyze(graph, like="matconvnet"), "matconvnet")
    assert "?" in figures  # another notation does not print them


def test_a_chain_has_no_cells_of_its_document(tmp_path: Path) -> None:
    for notation in TABLES[:-1]:  # Boda prints neither the pool nor the view before a product
        again("vgg16", notation, tmp_path)
        claims = load(str(tmp_path / "document.txt")).claims
        assert claims is None or (not claims.rows and not claims.totals), notation
