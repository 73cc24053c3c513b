"""Findings under a table name its rows, or the modules around them, and count layers one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layerscope import Builder, analyze
from layerscope.cli import run
from layerscope.notations import NOTATIONS, write
from layerscope.notations import findings as notation_findings
from layerscope.report import Report
from layerscope.report.findings import scope_paths

Captured = pytest.CaptureFixture[str]
MOST = re.compile(r"^(?:- )?Most .+? (?:are|is) in (.+): [\d.<]+% of")
COUNTS = re.compile(r"([^\s,]+) \((?:(\d+) of|all) (\d+) layers\)")


def printed(args: str, capsys: Captured) -> tuple[str, list[str]]:
    """The table, and the findings under it."""
    assert run(["show", *args.split()]) == 0
    table, _, below = capsys.readouterr().out.partition("\n\n")
    return table, [line.removeprefix("- ") for line in below.partition("\n\n")[0].splitlines()]


def names_in(line: str) -> list[str]:
    """The names in a sentence that begins with Most."""
    found = MOST.match(line)
    if not found:
        return []
    text = re.sub(r" \((?:all )?\d+ (?:of \d+ )?layers\)", "", found[1])
    text = re.sub(r"^(?:early |late )?(?:[A-Z]+|rows) \((.*)\)$", r"\1", text)
    return re.split(", | and ", text)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("network", ["vgg16", "resnet50", "googlenet", "vit_b_16", "lenet5"])
def test_findings_under_a_cut_tree_name_modules_of_it(
    network: str, depth: int, capsys: Captured
) -> None:
    report = analyze(network)
    allowed = {layer.name for layer in report.layers if len(layer.scope) < max(depth, 1)}
    for layer in report.layers:
        allowed |= set(scope_paths(layer)[: max(depth, 1)])
    _, found = printed(f"{network} --depth {depth}", capsys)
    named = [name for line in found for name in names_in(line)]
    assert named
    assert set(named) <= allowed
    (peak,) = [line for line in found if line.startswith("Memory peaks at ")]
    alive = re.findall(r"(\S+) [\d.<]+%", peak.partition("alive: ")[2])
    assert set(alive) <= allowed | {tensor.name for tensor in report.inputs}
    where = re.match(r"Memory peaks at ([^,]+)(?:, in ([^,]+))?,", peak)
    assert where
    assert (where[2] or where[1]) in allowed


def test_findings_under_groups_name_them(capsys: Captured) -> None:
    report = analyze("resnet50")
    ops = {layer.op for layer in report.layers}
    table, found = printed("resnet50 --by op", capsys)
    assert {name for line in found for name in names_in(line)} <= ops
    assert found[-1].startswith("Memory peaks at layer1.0.downsample.1, in batch_norm, with")
    assert all(op in table for op in ops)
    _, found = printed("vgg16 --by module", capsys)
    modules = {layer.name for layer in analyze("vgg16").layers} | {"features", "classifier"}
    assert {name for line in found for name in names_in(line)} <= modules


@pytest.mark.parametrize("args", ["", "--depth 1", "--depth 2", "--by op", "--by module"])
@pytest.mark.parametrize("network", ["resnet50", "googlenet", "vit_b_16"])
def test_counts_of_layers_are_of_all_layers_of_the_module(
    network: str, args: str, capsys: Captured
) -> None:
    """The second number is the same in every sentence: the layers of the module or op."""
    report = analyze(network)
    sizes: dict[str, int] = {}
    for layer in report.layers:
        for name in (*scope_paths(layer), layer.op):
            sizes[name] = sizes.get(name, 0) + 1
    figures = {
        "activations": lambda x: x.activations,
        "parameters": lambda x: x.params,
        "MACs": lambda x: x.ops.mac,
    }
    _, found = printed(f"{network} {args}", capsys)
    counted = 0
    for line in found:
        figure = figures.get(line.removeprefix("Most ").split()[0])
        for name, some, size in COUNTS.findall(line):
            assert int(size) == sizes[name], line
            assert figure is not None
            inside = [x for x in report.layers if name in (*scope_paths(x), x.op)]
            assert int(some or size) == sum(1 for x in inside if figure(x)), line
            counted += 1
    assert counted or args == ""


@pytest.mark.parametrize("form", ["backbone", "cs231n"])
@pytest.mark.parametrize(
    "network", ["vgg16", "vgg19", "alexnet", "resnet50", "googlenet", "lenet5"]
)
def test_findings_of_a_sheet_name_its_rows(network: str, form: str) -> None:
    report = analyze(network, like="cs231n")
    table = write(report, form)
    if form == "backbone":
        rows = set(re.findall(r"^\| +`(.+?)`", table, re.M)) - {"total"}
        found = list(notation_findings(report, form))
    else:
        table, _, below = table.partition("\n\n")
        rows = set(re.findall(r"^([^:\n]+): \[", table, re.M))
        found = [line.removeprefix("- ") for line in below.splitlines()]
    assert len(found) == 2
    for line in found:
        for name in names_in(line):
            first, _, last = name.partition(" to ")
            assert first.partition(" in row ")[0] in rows, line
            assert not last or last in rows, line
    assert found[0].split()[:3] in (["Most", "memory", "is"], ["No", "part", "has"])


def test_rows_of_a_sheet_with_one_name_are_numbered() -> None:
    text = write(analyze("vgg16", like="cs231n"), "cs231n")
    for label, number in re.findall(r"([^\s(]+) in row (\d+)", text):
        assert text.splitlines()[int(number) - 1].startswith(f"{label}: ")


def test_backbone_ends_with_the_findings_of_document_002(capsys: Captured) -> None:
    """Most memory is in early CONV, most params in late FC, in the names of the table."""
    table, found = printed("vgg16 --as backbone", capsys)
    assert found == [
        "Most memory is in early CONV (conv1_1, conv1_2 and conv2_1): 52.7% of 15,237,608.",
        "Most params are in late FC (fc1): 74.3% of 138,344,128.",
    ]
    for name in ("conv1_1", "conv1_2", "conv2_1", "fc1"):
        assert f"`{name}`" in table
    assert run(["show", "vgg16", "--as", "backbone", "--no-stamp"]) == 0
    assert "Most" not in capsys.readouterr().out


@pytest.mark.parametrize("form", NOTATIONS)
def test_no_notation_prints_findings_in_names_it_does_not_have(form: str, capsys: Captured) -> None:
    assert run(["show", "vgg16", "--as", form]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [line for line in lines if re.match(r"(- )?(Most|No part|Memory peaks)", line)]
    assert bool(found) == (form in ("backbone", "cs231n"))
    assert not any("features." in line for line in found)


def two_halves() -> Report:
    """Two equal layers outside of any module, so that no part has most of anything."""
    b = Builder("flat")
    x = b.input("data", (1, 4, 8, 8))
    for n in range(12):
        x = b.conv(x, 4, 3, padding=1, bias=False, name=f"conv{n}")
    return analyze(b.build())


def test_no_part_with_most() -> None:
    found = two_halves().findings()
    assert found[1] == (
        "No part has most parameters: the 7 largest of 12 layers with parameters have half of "
        "1,728, and conv0 has 8.3%."
    )


def test_findings_of_files_name_the_rows_that_write_tensors(
    tmp_path: Path, capsys: Captured
) -> None:
    """Tensors alive at the peak have other names than layers there."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    kind = onnx.TensorProto.FLOAT
    shape = [1, 4, 8, 8]
    nodes = [
        helper.make_node("Relu", ["x"], ["tensor_one"], name="/stem/first"),
        helper.make_node("Sigmoid", ["tensor_one"], ["tensor_two"], name="/stem/second"),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("tensor_two", kind, shape)],
    )  # fmt: skip
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph), path)
    _, found = printed(f"{path} --depth 1", capsys)
    assert "tensor_" not in found[-1]
    assert "stem/first 50.0%" in found[-1]
