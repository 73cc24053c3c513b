"""The five source documents as networks: every right figure, and the zoo's network in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope import Graph, analyze, load
from layerscope.cli import run
from layerscope.formats.document import networks_of
from layerscope.notations import NOTATIONS, write
from tests.notations.test_notation_boda_times import ROUNDED, cells

Captured = pytest.CaptureFixture[str]


def document(shared: Path, number: int) -> str:
    (path,) = (shared / "seeds").glob(f"00{number}_*.txt")
    return str(path)


def part(shared: Path, number: int, notation: str) -> str:
    """The network of a document that is printed in a notation."""
    path = document(shared, number)
    found = [network.notation for network in networks_of(Path(path).read_text())]
    return f"{path}#{found.index(notation) + 1}"


def windows(graph: Graph) -> list[tuple[object, ...]]:
    """Ops with weights or windows in order: what the documents print of a network."""
    found: list[tuple[object, ...]] = []
    for node in graph.nodes:
        a = node.attributes
        if node.op == "conv":
            found.append((a.window.kernel, a.window.stride, a.window.pads, a.out_channels))
        elif node.op == "linear":
            found.append(("linear", a.out_features))
        elif node.op == "max_pool":
            found.append((a.window.kernel, a.window.stride))
    return found


def opened(graph: Graph) -> str:
    return "\n".join(note for note in graph.notes if note.startswith("left open"))


def test_000_is_patch32(shared: Path) -> None:
    graph, zoo = load(document(shared, 0)), load("patch32")
    assert [(n.name, n.op, n.inputs, n.attributes) for n in graph.nodes] == [
        (n.name, n.op, n.inputs, n.attributes) for n in zoo.nodes
    ]
    text = Path(document(shared, 0)).read_text()
    printed = write(analyze(graph, like="matconvnet"), "matconvnet")
    ours, theirs = printed.splitlines(), text.rstrip("\n").splitlines()
    other = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    assert [(a.split("|")[7].strip(), b.split("|")[7].strip()) for a, b in other] == [("5", "7")]


@pytest.mark.parametrize(("number", "zoo"), [(1, "pnet"), (2, "rnet"), (3, "onet")])
def test_001_are_the_networks_of_mtcnn(shared: Path, number: int, zoo: str) -> None:
    report = analyze(f"{document(shared, 1)}#{number}", like="netscope")
    theirs = analyze(f"mtcnn-{zoo}", like="netscope")
    assert report.totals.convention_ops == theirs.totals.convention_ops
    assert report.totals.params == theirs.totals.params
    ours = write(report, "netscope").splitlines()[2:-1]
    whole = write(theirs, "netscope")
    for row in ours:  # names of O-Net differ, and the order of two rows
        assert "|".join(row.split("|")[3:]) in whole, row
    assert "the kernels of" in opened(report.graph)
    assert "the inputs of" in opened(report.graph)


@pytest.mark.parametrize(
    ("number", "notation", "zoo"),
    [(2, "backbone", "vgg16"), (2, "cs231n", "vgg16"), (3, "layersheet", "vgg19"),
     (3, "cs231n", "vgg19")],
)  # fmt: skip
def test_002_and_003_are_vgg(shared: Path, number: int, notation: str, zoo: str) -> None:
    graph, expected = load(part(shared, number, notation)), load(zoo)
    assert windows(graph) == windows(expected)
    figures, theirs = (analyze(each, like="cs231n").totals for each in (graph, expected))
    assert figures.params == theirs.params
    assert figures.convention_activations == theirs.convention_activations
    for what in ("biases", "activations", "dtype"):
        assert what in opened(graph)


@pytest.mark.parametrize(
    ("number", "notation", "wrong"), [(2, "backbone", 6), (2, "cs231n", 0), (3, "layersheet", 4)]
)
def test_tables_are_printed_again_but_for_wrong_cells(
    shared: Path, number: int, notation: str, wrong: int
) -> None:
    """Cells that differ: decimal commas of 002, and the names of four convolutions of 003."""
    path = document(shared, number)
    report = analyze(part(shared, number, notation), like=NOTATIONS[notation].like)
    printed = write(report, notation)
    rows = [" ".join(line.split()) for line in printed.splitlines() if line and line[0] != "-"]
    given = {" ".join(line.split()) for line in Path(path).read_text().splitlines()}
    missing = [row for row in rows if row not in given and not set(row) <= set("|:- ")]
    missing = [row for row in missing if "total" not in row.lower()]
    assert len(missing) == wrong, missing


def test_004_is_nin(shared: Path) -> None:
    graph, zoo = load(document(shared, 4)), load("nin-nopad")
    convolutions = [n.attributes for n in graph.nodes if n.op == "conv"]
    assert convolutions == [n.attributes for n in zoo.nodes if n.op == "conv"]
    assert graph.inputs[0].shape == (5, 3, 227, 227)
    assert [n.name for n in graph.nodes if n.op != "conv"] == ["pool0", "pool2", "pool3", "pool4"]
    assert "pools where the sizes of convolutions differ" in opened(graph)
    assert "activations" in opened(graph)


def test_004_is_printed_again(shared: Path, capsys: Captured) -> None:
    """From TIMERS on, but for the eleven cells that printed times cannot give."""
    path = document(shared, 4)
    assert run(["show", path, "--as", "boda", "--no-stamp"]) == 0
    ours = capsys.readouterr().out.splitlines()
    theirs = Path(path).read_text().splitlines()
    first = next(n for n, line in enumerate(theirs) if line.startswith("TIMERS:"))
    start = next(n for n, line in enumerate(ours) if line.startswith("conv1 input"))
    assert ours[:start] == theirs[first : first + start]
    found, expected = cells(ours[start:]), cells(theirs[first + start : -1])
    other = {key: (expected[key][-1], found[key][-1]) for key in expected
             if expected[key] != found[key]}  # fmt: skip
    assert other == ROUNDED


def test_004_is_shown_with_its_times(shared: Path, capsys: Captured) -> None:
    assert run(["show", document(shared, 4)]) == 0
    shown = capsys.readouterr().out
    assert "end to end" in shown
    assert "1.59 J per run at 200 W, printed in the document" in shown
    assert run(["show", document(shared, 4), "--total"]) == 0  # an option of the plain table
    assert "7,595,176 params" in capsys.readouterr().out
