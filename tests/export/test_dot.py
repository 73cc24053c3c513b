"""The Graphviz digraph: whole, and with modules folded into one node each (`--depth`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope import Builder, Graph, Report, analyze
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.escaping import visible
from layerscope.export.dot import write
from layerscope.report.tree import tree_rows
from tests.report.test_bounds import odd
from tests.syntax import Digraph, digraph, label_lines

Captured = pytest.CaptureFixture[str]
NETWORKS = ("lenet5", "resnet18", "googlenet", "mobilenet_v2", "unet", "gpt2")
FIGURES = re.compile(r"([0-9,]+) (params|MACs)")


def kinds(found: Digraph, letter: str) -> list[str]:
    return [name for name in found.nodes if re.fullmatch(f"{letter}[0-9]+", name)]


def quotient(report: Report, depth: int) -> set[tuple[str, str]]:
    """Edges between layers and between scopes of more than one layer at a level, by their paths."""
    inside: dict[tuple[str, ...], int] = {}
    for layer in report.layers:
        if len(layer.scope) >= depth:
            inside[layer.scope[:depth]] = inside.get(layer.scope[:depth], 0) + 1

    def owner(layer: Any) -> str:
        scope = layer.scope[:depth]
        return "scope " + "|".join(scope) if inside.get(scope, 0) > 1 else "layer " + layer.name

    made = {name: owner(layer) for layer in report.layers for name in layer.node.outputs}
    made |= {tensor.name: "input " + tensor.name for tensor in report.graph.inputs}
    found = {
        (made[name], owner(layer))
        for layer in report.layers
        for name in layer.node.inputs
        if name in made
    }
    ends = {(made[name], f"output {n}") for n, name in enumerate(report.graph.outputs)}
    return {pair for pair in found | ends if pair[0] != pair[1]}


@pytest.mark.parametrize(("network", "depth"), [("resnet18", 1), ("resnet18", 2), ("googlenet", 1)])
def test_goldens(network: str, depth: int, golden: Callable[[str, str], None]) -> None:
    golden(f"dot/{network}.depth{depth}.dot", write(analyze(network), depth))


@pytest.mark.parametrize("network", NETWORKS)
def test_the_whole_graph_parses(network: str) -> None:
    report = analyze(network)
    found = digraph(write(report))
    assert len(kinds(found, "n")) == len(report.layers)
    assert not kinds(found, "m")
    assert len(found.edges) == len(set(found.edges)) == len(quotient(report, 99))
    assert write(report, 99) == write(report)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("network", NETWORKS)
def test_folded_nodes_have_the_edges_and_sums_of_their_layers(network: str, depth: int) -> None:
    report = analyze(network)
    found = digraph(write(report, depth))
    edges = quotient(report, depth)
    assert len(found.edges) == len(set(found.edges)) == len(edges)
    assert all(before != after for before, after in found.edges)
    assert {end for edge in found.edges for end in edge} <= found.nodes.keys()
    rows = [
        row
        for row in tree_rows(report, depth, fold=False)
        if row.kind == "scope" and row.depth == depth - 1 and len(row.members) > 1
    ]
    assert [found.nodes[name]["tooltip"] for name in kinds(found, "m")] == [
        f'"{row.name}"' for row in rows
    ]
    params = macs = 0
    for name, row in zip(kinds(found, "m"), rows, strict=True):
        lines = label_lines(found.nodes[name]["label"])
        assert lines[0] == row.label
        texts = {what: text for text, what in FIGURES.findall(lines[-1])}
        assert int(texts.get("params", "0").replace(",", "")) == row.params
        assert int(texts.get("MACs", "0").replace(",", "")) == row.ops.mac
        params, macs = params + row.params, macs + row.ops.mac
    folded = {layer.name for row in rows for layer in row.members}
    rest = [layer for layer in report.layers if layer.name not in folded]
    assert len(kinds(found, "n")) == len(rest)
    assert params + sum(layer.params for layer in rest) == report.totals.params
    assert macs + sum(layer.ops.mac for layer in rest) == report.totals.macs


def test_figures_are_those_of_the_tree_table() -> None:
    report = analyze("resnet18")
    found = digraph(write(report, 1))
    table = report.to_text(columns=("name", "type", "output", "params", "macs"), depth=1)
    rows = {line.split()[0]: line.split() for line in table.splitlines()[2:]}
    shown = [label_lines(found.nodes[name]["label"]) for name in kinds(found, "m")]
    assert [lines[0] for lines in shown] == ["layer1", "layer2", "layer3", "layer4"]
    for name, kind, output, figures in shown:
        params, macs = figures.split(" · ")
        assert rows[name] == [
            name, kind, output, params.removesuffix(" params"), macs.removesuffix(" MACs"),
        ]  # fmt: skip


def test_unknown_figures_are_bounds() -> None:
    report = analyze(odd())
    found = digraph(write(report, 1))
    (name,) = kinds(found, "m")
    assert label_lines(found.nodes[name]["label"]) == [
        "stem", "Stem", "?", "≥108 params · ≥6,912 MACs",
    ]  # fmt: skip
    assert found.nodes[name]["fillcolor"] == '"#ff9999"'
    b = Builder("nothing known")
    with b.scope("part"):
        (x,) = b.add_node("mystery", (b.input("data", (1, 8)),), name="a")
        b.add_node("mystery", (x,), name="b")
    text = write(analyze(b.build()), 1)
    assert "? params · ? MACs" in text  # never a silent zero


def test_a_scope_with_one_layer_stays_as_it_is() -> None:
    b = Builder("single")
    x = b.input("data", (1, 2, 8))
    with b.scope("one", "One"):
        x = b.conv(x, 4, 3, name="conv")
    with b.scope("two", "Two"):
        x = b.relu(b.conv(x, 4, 3, name="conv"), name="relu")
    report = analyze(b.build(x))
    found = digraph(write(report, 1))
    assert kinds(found, "n") == ["n0"]
    assert len(kinds(found, "m")) == 1
    line = next(line for line in write(report).splitlines() if line.startswith("    n0"))
    assert line in write(report, 1).splitlines()
    assert [label_lines(label) for label in found.clusters] == [["one  One"]]


def test_a_module_that_runs_twice_is_one_node() -> None:
    b = Builder("again")
    x = b.input("data", (1, 2, 8))
    with b.scope("a"):
        x = b.relu(b.conv(x, 2, 1, name="conv"), name="relu")
    x = b.relu(x, name="between")
    with b.scope("a"):
        x = b.relu(b.conv(x, 2, 1, name="conv2"), name="relu2")
    found = digraph(write(analyze(b.build(x)), 1))
    (folded,) = kinds(found, "m")
    (between,) = kinds(found, "n")
    assert found.edges == [("i0", folded), (folded, between), (between, folded), (folded, "o0")]


@pytest.mark.parametrize("depth", [0, -1])
def test_wrong_depths(depth: int) -> None:
    with pytest.raises(UsageError, match=f"--depth {depth}, expected at least 1"):
        write(analyze("lenet5"), depth)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--to", "dot", "--depth", "0"], "--depth 0, expected at least 1"),
        (["--to", "dot", "--depth", "x"], "expected a whole number"),
        (["--to", "csv", "--depth", "1"], "--depth needs --to dot"),
        (["--to", "scalesim", "--depth", "1"], "--depth needs --to dot"),
        (["--to", "onnx", "--depth", "1", "-o", "net.onnx"], "--depth needs --to dot"),
    ],
)
def test_wrong_arguments(args: list[str], says: str, capsys: Captured) -> None:
    assert run(["export", "resnet18", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_the_command(capsys: Captured) -> None:
    assert run(["export", "resnet18", "--to", "dot", "--depth", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(write(analyze("resnet18"), 1))
    digraph(out)


NAMES = st.text(alphabet='ab./\\"{}|<>\n\u202e é', min_size=1, max_size=6)


@st.composite
def modules(draw: Any) -> Graph:
    """Chains and branches of layers in scopes of any name, some of them entered again."""
    scopes = draw(st.lists(st.lists(NAMES, max_size=3), min_size=1, max_size=8))
    b = Builder("modules")
    tensors = [b.input("data", (1, 2))]
    for n, scope in enumerate(scopes):
        entered = [b.scope(name) for name in scope]
        for each in entered:
            each.__enter__()
        read = [draw(st.sampled_from(tensors)) for _ in range(2)]
        tensors.append(b.add(*read, name=f"layer{n}"))
        for each in reversed(entered):
            each.__exit__(None, None, None)
    return b.build(tensors[-1])


@given(modules(), st.integers(1, 3))
def test_any_tree_of_modules(graph: Graph, depth: int) -> None:
    report = analyze(graph)
    found = digraph(write(report, depth))
    assert len(found.edges) == len(set(found.edges)) == len(quotient(report, depth))
    ends = {end for edge in found.edges for end in edge}
    assert ends <= found.nodes.keys()
    rows = [row for row in tree_rows(report, depth, fold=False) if row.kind == "scope"]
    folded = [row for row in rows if row.depth == depth - 1 and len(row.members) > 1]
    assert sorted(label_lines(found.nodes[n]["label"])[0] for n in kinds(found, "m")) == sorted(
        visible(row.label) for row in folded
    )
