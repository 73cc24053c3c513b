"""Tables against networks: rows are aligned with layers, and their figures compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import layerscope
from layerscope.api.auditing import audit
from layerscope.auditing.findings import Audit
from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.notations import NOTATIONS


def table(network: str, notation: str) -> str:
    return layerscope.analyze(network, like=NOTATIONS[notation].like).to_notation(notation)


def found(text: str, against: str, like: str | None = None) -> Audit:
    return audit(text=text, against=against, like=like)


@pytest.mark.parametrize(
    ("notation", "network"),
    [
        ("netscope", "lenet5"), ("netscope", "alexnet"), ("cs231n", "alexnet"),
        ("cs231n.md", "vgg16"), ("layersheet", "vgg16"), ("torchsummary", "alexnet"),
        ("matconvnet", "lenet5"), ("netscope", "resnet18"), ("netscope", "squeezenet1_0"),
        ("layersheet", "mobilenet_v2"), ("cs231n", "googlenet"), ("backbone", "resnet18"),
    ],
)  # fmt: skip
def test_a_table_agrees_with_its_own_network(notation: str, network: str) -> None:
    """Every figure is compared and explained; none is a finding that only the network shows."""
    own = {(f.line, f.column, f.kind) for f in audit(text=table(network, notation)).findings}
    result = found(table(network, notation), network)
    more = [f for f in result.findings if f.kind in ("figure", "total", "missing")
            and (f.line, f.column, f.kind) not in own]  # fmt: skip
    assert not more
    (one,) = result.tables
    count = re.fullmatch(rf"(\d+) of (\d+) rows are layers of {network}", one.network)
    assert count is not None
    assert count[1] == count[2]
    other = ("rf offset", "Ratio")  # these the network is not asked for
    checked = [column for column in one.columns if column.of and column.heading not in other]
    assert checked
    assert all(column.explained == column.of for column in checked)


@pytest.mark.parametrize("notation", ["netscope", "cs231n.md", "layersheet", "torchsummary"])
def test_one_wrong_figure_is_found(notation: str) -> None:
    """4,194,304 and the like have no witness in some tables; the network is one."""
    text = table("alexnet", notation)
    figures = re.findall(r"\b(?:3[37],?748,?736|37\.7\d?M|37,752,832)\b", text)
    assert figures
    wrong = text.replace(figures[0], figures[0].replace("7", "9", 1), 1)
    pairs = zip(text.splitlines(), wrong.splitlines(), strict=True)
    (line,) = [n for n, (a, b) in enumerate(pairs, 1) if a != b]
    before = {(f.line, f.column, f.kind) for f in found(text, "alexnet").findings}
    after = [f for f in found(wrong, "alexnet").findings
             if (f.line, f.column, f.kind) not in before]  # fmt: skip
    assert line in {f.line for f in after}
    assert all(f.expected for f in after)


def test_layers_that_the_table_lacks_are_found() -> None:
    result = found(table("vgg16", "cs231n.md"), "vgg19")
    lacking = [f for f in result.findings if f.kind == "missing"]
    assert [f.expected for f in lacking] == ["features.16", "features.25", "features.34"]
    assert all(not f.column for f in lacking)
    assert any(f.kind == "total" for f in result.findings)


@pytest.mark.parametrize("notation", ["keras", "keras.box", "torchinfo"])
def test_no_layer_is_missing_whose_row_has_a_type_or_is_a_module(notation: str) -> None:
    """Names end with a type, or a row has the parameters of the modules in it."""
    result = found(table("resnet18", notation), "resnet18")
    assert [f for f in result.findings if f.kind == "missing"] == []


def test_rows_that_are_no_layers_are_named() -> None:
    result = found(table("vgg19", "cs231n.md"), "vgg16")
    (one,) = result.tables
    assert one.network == "22 of 25 rows are layers of vgg16"
    assert any(note.startswith("not aligned with a layer, and not checked: ") for note in one.notes)
    assert not result.ok  # the totals are those of another network


def test_a_wrong_shape_is_found() -> None:
    text = table("alexnet", "torchsummary")
    wrong = text.replace("[-1, 192, 27, 27]", "[-1, 192, 26, 27]", 1)
    assert wrong != text
    shapes = [f for f in found(wrong, "alexnet").findings if f.column == "Output Shape"]
    assert [(f.printed, f.expected) for f in shapes] == [("[-1, 192, 26, 27]", "192x27x27")]


def test_like_restricts_what_may_be_counted() -> None:
    text = table("alexnet", "netscope")
    free = {column.heading: column for column in found(text, "alexnet").tables[0].columns}
    bound = {c.heading: c for c in found(text, "alexnet", "netscope").tables[0].columns}
    other = {c.heading: c for c in found(text, "alexnet", "torchvision").tables[0].columns}
    assert free["macs"].explained == free["macs"].of
    assert "netscope" in bound["macs"].meaning
    assert bound["macs"].explained == bound["macs"].of
    assert "netscope" not in other["macs"].meaning


def test_no_column_is_checked_by_a_convention_that_gives_few_figures() -> None:
    result = found(table("alexnet", "torchsummary"), "resnet18")
    (one,) = result.tables
    (column,) = one.columns
    assert (column.meaning, column.explained) == ("no convention found", 0)
    assert any(note.startswith("Param # is not checked: ") for note in one.notes)
    assert not result.ok  # the shapes are


def test_a_document_without_any_layer_of_the_network() -> None:
    text = "| layer | type | params |\n|---|---|---|\n| a | LSTM | 12 |\n| b | LSTM | 12 |\n"
    with pytest.raises(FormatError, match="no row is a layer of alexnet"):
        found(text, "alexnet")


def test_names_count_more_than_the_order() -> None:
    """Rows in another order than the layers, all with a layer's name."""
    lines = table("resnet18", "netscope").splitlines(keepends=True)
    head, rows, total = lines[:2], lines[2:-1], lines[-1]
    text = "".join([*head, *rows[::-1], total])
    assert not [f for f in found(text, "resnet18").findings if f.column in ("OPS", "Mem")]


def test_a_batch_is_recognised() -> None:
    text = layerscope.analyze("alexnet", like="netscope", batch=10).to_notation("netscope")
    result = found(text, "alexnet")
    meanings = {column.heading: column.meaning for column in result.tables[0].columns}
    assert "x batch 10" in meanings["activations"]
    assert "batch" not in meanings["params"]
    assert result.ok


def test_wrong_arguments() -> None:
    text = table("lenet5", "netscope")
    with pytest.raises(UsageError, match="like needs a network"):
        audit(text=text, like="netscope")
    with pytest.raises(UnknownName, match="convention 'nobody'"):
        audit(text=text, against="lenet5", like="nobody")
    with pytest.raises(UnknownName, match="network 'nobody'"):
        audit(text=text, against="nobody")


def test_a_graph_and_a_report_are_networks_too() -> None:
    text = table("lenet5", "netscope")
    by_name = audit(text=text, against="lenet5")
    assert audit(text=text, against=layerscope.load("lenet5")) == by_name
    assert audit(text=text, against=layerscope.analyze("lenet5")) == by_name


def test_source_documents(shared: Path) -> None:
    """003 is VGG19: its wrong figures are the ones that the document itself contradicts."""
    (path,) = (shared / "seeds").glob("003_*")
    by_itself = audit(path)
    against = audit(path, against="vgg19")
    assert {(f.line, f.column) for f in against.findings} == {
        (f.line, f.column) for f in by_itself.findings
    }
    (path,) = (shared / "seeds").glob("002_*")
    assert {(f.line, f.column) for f in audit(path, against="vgg16").findings} == {
        (f.line, f.column) for f in audit(path).findings
    }
