"""Comparisons: which layer is which, what changed, and how it is printed."""

from __future__ import annotations

import itertools
import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layerscope
from layerscope import Builder, Graph
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.report.align import CELLS, Item, align
from layerscope.report.compare import LayerMatch, Pair

Captured = pytest.CaptureFixture[str]


def small(name: str = "small", *, width: int = 8, kernel: int = 3, extra: bool = False) -> Graph:
    b = Builder(name)
    x = b.relu(b.conv(b.input("data", (1, 3, 16, 16)), width, kernel, name="conv1"), name="relu1")
    if extra:
        x = b.batch_norm(x, name="bn1")
    x = b.relu(b.conv(x, 8, 3, name="conv2"), name="relu2")
    return b.build(b.linear(b.flatten(x, name="flat"), 5, name="fc"))


def renamed(graph: Graph, prefix: str) -> Graph:
    """The same network with other names for its layers."""
    from msgspec.structs import replace

    names = {tensor.name: tensor.name for tensor in graph.inputs}
    nodes = []
    for node in graph.nodes:
        names.update({output: f"{prefix}{output}" for output in node.outputs})
        nodes.append(
            replace(
                node,
                name=f"{prefix}{node.name}",
                inputs=tuple(names[name] for name in node.inputs),
                outputs=tuple(names[name] for name in node.outputs),
            )
        )
    return replace(graph, nodes=tuple(nodes), outputs=tuple(names[o] for o in graph.outputs))


def pair(first: str | Graph, second: str | Graph) -> Pair:
    return layerscope.compare(first, second).pairs[0]


def kinds(found: Pair) -> dict[str, int]:
    return {kind: found.count(kind) for kind in ("equal", "changed", "only_first", "only_second")}


def changed(found: Pair) -> list[LayerMatch]:
    return [match for match in found.matches if match.kind == "changed"]


def test_a_network_equals_itself() -> None:
    found = layerscope.compare("resnet50", "resnet50")
    assert found.equal
    assert found.pairs[0].count("equal") == 175
    assert all(ratio == 1 for figure in found.figures for ratio in figure.ratios)


def test_totals_and_ratios_are_exact() -> None:
    found = layerscope.compare("vgg16", "vgg19", "resnet50")
    figures = {figure.name: figure for figure in found.figures}
    assert list(figures) == [
        "params", "macs", "flops", "activations", "activation_bytes", "peak_activation_bytes",
        "param_bytes",
    ]  # fmt: skip
    assert figures["params"].values == (138_357_544, 143_667_240, 25_557_032)
    assert figures["macs"].values == (15_470_264_320, 19_632_062_464, 4_089_184_256)
    assert figures["macs"].ratios[1] == Fraction(19_632_062_464, 15_470_264_320)
    assert [p.second.name for p in found.pairs] == ["vgg19", "resnet50"]


def test_what_changed_is_named() -> None:
    match = changed(pair(small(), small(kernel=5)))[0]
    assert match.layer.name == "conv1"
    assert [(c.what, c.first, c.second) for c in match.changes] == [
        ("kernel", "3x3", "5x5"),
        ("output", "1x8x14x14", "1x8x12x12"),
        ("params", 224, 608),
        ("MACs", 42_336, 86_400),
    ]
    wider = changed(pair(small(), small(width=16)))
    assert [m.layer.name for m in wider] == ["conv1", "relu1", "conv2"]
    assert [c.what for c in wider[0].changes] == ["out channels", "output", "params", "MACs"]
    assert [c.what for c in wider[1].changes] == ["input", "output", "FLOPs"]


def test_an_inserted_layer_is_the_only_difference() -> None:
    found = pair(small(), small(extra=True))
    assert kinds(found) == {"equal": 6, "changed": 0, "only_first": 0, "only_second": 1}
    assert [m.layer.name for m in found.matches if m.kind == "only_second"] == ["bn1"]
    back = pair(small(extra=True), small())
    assert kinds(back) == {"equal": 6, "changed": 0, "only_first": 1, "only_second": 0}
    assert [m.layer.name for m in back.matches] == [
        "conv1", "relu1", "bn1", "conv2", "relu2", "flat", "fc",
    ]  # fmt: skip


def test_names_that_say_nothing_give_way_to_structure() -> None:
    found = pair("vgg16", "vgg19")  # features.19 is another layer in each
    assert kinds(found) == {"equal": 40, "changed": 0, "only_first": 0, "only_second": 6}
    assert kinds(pair("vgg16", "vgg16_bn")) == {
        "equal": 40, "changed": 0, "only_first": 0, "only_second": 13,
    }  # fmt: skip
    other = pair("resnet18", renamed(layerscope.load("resnet18"), "net/"))
    assert kinds(other)["equal"] == 69


def test_names_decide_between_like_blocks() -> None:
    found = pair("resnet50", "resnet101")
    assert kinds(found) == {"equal": 175, "changed": 0, "only_first": 0, "only_second": 170}
    assert all(m.first is None or m.first.name == m.layer.name for m in found.matches)


def test_layers_in_another_order_are_found_by_name() -> None:
    def branches(order: str) -> Graph:
        b = Builder("branches")
        x = b.input("data", (1, 4, 8, 8))
        made = {
            name: b.conv(x, 4 + n, 1, name=name)
            for n, name in sorted(enumerate("ab"), key=lambda i: order.index(i[1]))
        }
        return b.build(b.concat(made["a"], made["b"], name="both"))

    assert kinds(pair(branches("ab"), branches("ba")))["equal"] == 3


def test_a_large_network_takes_no_quadratic_time() -> None:
    def chain(count: int, *, at: int = -1, prefix: str = "r") -> Graph:
        b = Builder("chain")
        x = b.input("data", (1, 4))
        for n in range(count):
            x = b.linear(x, 4, name="odd") if n == at else b.relu(x, name=f"{prefix}{n}")
        return b.build(x)

    plain = layerscope.analyze(chain(100_000))
    others = (chain(100_000, at=50_000), chain(100_001, at=50_000, prefix="s"))
    reports = [layerscope.analyze(graph) for graph in others]
    start = time.process_time()
    same, moved = layerscope.compare(plain, *reports).pairs
    assert time.process_time() - start < 20
    assert (same.count("equal"), same.count("only_second")) == (99_999, 1)
    assert (moved.count("equal"), moved.count("only_second")) == (100_000, 1)


@given(
    st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12)
)
def test_alignment_pairs_each_layer_once_and_most_of_them(
    first: list[str], second: list[str]
) -> None:
    def items(letters: list[str], side: str) -> list[Item]:
        return [Item(f"{side}{n}", x, ord(x), ord(x)) for n, x in enumerate(letters)]

    found = align(items(first, "a"), items(second, "b"))
    assert len(set(found.values())) == len(found)
    assert all(first[i] == second[j] for i, j in found.items())
    assert sorted(found.values()) == [found[i] for i in sorted(found)]
    assert len(found) == _longest(first, second)


def _longest(first: list[str], second: list[str]) -> int:
    rows = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else max(rows[i][j + 1], rows[i + 1][j])
    return rows[-1][-1]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_large_spans_are_cut_soundly(letters: list[int], random: object) -> None:
    import layerscope.report.align as module

    first = [Item(f"n{n}", "op", x, x) for n, x in enumerate(letters)]
    second = [item for item in first if random.random() < 0.8]  # type: ignore[attr-defined]
    kept, module.CELLS = CELLS, 20
    try:
        found = align(first, second)
    finally:
        module.CELLS = kept
    assert len(set(found.values())) == len(found) == len(second)


def test_renamed_layers_without_landmarks_are_followed() -> None:
    first = [Item(f"a{n}", "op", n * n % 97, 0) for n in range(5_000)]
    second = [Item(f"b{n}", item.op, item.signature, 1) for n, item in enumerate(first) if n % 10]
    found = align(first, second)
    assert len(found) > 4_000
    assert len(set(found.values())) == len(found)
    assert all(first[i].signature == second[j].signature for i, j in found.items())


def test_conventions_must_agree() -> None:
    with pytest.raises(UsageError, match="counted by exact and netscope"):
        layerscope.compare("lenet5", layerscope.analyze("lenet5", like="netscope"))
    with pytest.raises(UsageError, match="1 network to compare"):
        layerscope.compare("lenet5")


def test_reports_and_options_may_be_mixed() -> None:
    found = layerscope.compare(layerscope.analyze("lenet5"), "lenet5", batch=4)
    macs = found.figures[1]
    assert macs.ratios[1] == 4
    assert str(found) == found.to_text()
    assert found.to_markdown().startswith("| network | params | ratio | MACs | ratio |")
    assert json.loads(found.to_json())["networks"] == ["lenet5", "lenet5"]


def test_unknown_layers_are_told() -> None:
    b = Builder("odd")
    odd = b.build(b.add_node("warp::drive", (b.input("data", (1, 3, 16, 16)),), name="conv1")[0])
    found = layerscope.compare(small(), odd)
    row = next(line for line in found.to_text().splitlines() if line.startswith("odd"))
    assert row.split()[1:5] == ["?"] * 4
    line = next(line for line in found.to_text().splitlines() if "warp" in line)
    assert line.split() == ["+", "conv1", "warp::drive", "?", "?", "?"]
    assert json.loads(found.to_json())["complete"] == [True, False]


def test_the_text(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = ["--columns", "name,params,macs"]
    assert run(["compare", "resnet50", "resnet101", "--no-stamp", *columns]) == 0
    assert (
        capsys.readouterr().out
        == """\
network        params  ratio           MACs  ratio
──────────────────────────────────────────────────
resnet50   25,557,032         4,089,184,256
resnet101  44,549,160  ×1.74  7,801,405,440  ×1.91

resnet50 → resnet101: 175 layers equal, 0 changed (~), 0 only in resnet50 (-), \
170 only in resnet101 (+)
   layer                          type        output            params           MACs
─────────────────────────────────────────────────────────────────────────────────────
+  layer3.6…22 × 17 (170 layers)  Bottleneck  1x1024x14x14  18,992,128  3,712,221,184
"""
    )
    assert 25_557_032 + 18_992_128 == 44_549_160
    assert 4_089_184_256 + 3_712_221_184 == 7_801_405_440


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("names", [("vgg16", "vgg19"), ("alexnet", "alexnet-caffe", "resnet18")])
def test_the_text_fits_the_terminal(
    width: int, names: tuple[str, ...], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["compare", *names]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_json_lists_every_difference(capsys: Captured) -> None:
    assert run(["compare", "resnet50", "resnet101", "--as", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    layers = found["pairs"][0]["layers"]
    assert len(layers) == 170 == found["pairs"][0]["counts"]["only_second"]
    totals = found["totals"]["macs"]["values"]
    assert sum(layer["second"]["macs"] for layer in layers) == totals[1] - totals[0]
    assert len(found["stamps"]) == 2
    assert run(["compare", "resnet50", "resnet101", "--as", "json", "--all", "--no-stamp"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["pairs"][0]["layers"]) == 345
    assert found["stamps"] is None


def test_all_lists_equal_layers_and_folds_none(capsys: Captured) -> None:
    assert run(["compare", "resnet18", "resnet34", "--all", "--no-stamp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("+ ") for line in lines) == 56
    assert sum(line.startswith("   ") and "layers equal" not in line for line in lines) >= 69


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["vgg16"], 2, "Missing argument 'OTHER…'"),
        (["vgg16", "vgg91"], 2, "did you mean vgg"),
        (["vgg16", "vgg19", "--as", "jsn"], 2, "did you mean json"),
        (["vgg16", "vgg19", "--like", "netscop"], 2, "did you mean netscope"),
        (["vgg16", "vgg19", "--input", "3x8x8"], 3, "does not fit"),
    ],
)
def test_wrong_arguments(args: list[str], code: int, says: str, capsys: Captured) -> None:
    assert run(["compare", *args]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err


def test_names_are_escaped(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = renamed(small("evil\x1b[31m|"), "\x1b|<b>")
    graphs = {"a": small(), "b": evil}
    monkeypatch.setattr("layerscope.zoo.build", lambda name: graphs[name])
    for form in ("text", "markdown", "json"):
        assert run(["compare", "a", "b", "--all", "--as", form]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert form != "markdown" or "\\|\\<b\\>" in out


@pytest.mark.parametrize("option", ["--columns", "--sort"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["time"], "the column time needs --measure"),
        (["counted"], "the column counted needs --like"),
        (["counted", "--like", "cs231n"], "the convention cs231n counts no operations"),
        (["nosuch"], "unknown column 'nosuch'"),
    ],
)
def test_columns_that_a_comparison_does_not_have_are_refused(
    option: str, arguments: list[str], message: str, capsys: Captured
) -> None:
    assert run(["compare", "lenet5", "alexnet", option, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_options_of_networks_are_refused_if_all_are_results(
    tmp_path: Path, capsys: Captured
) -> None:
    file = str(tmp_path / "report.json")
    assert run(["show", "lenet5", "-o", file]) == 0
    for option in (["--batch", "2"], ["--input", "1x9x9"], ["--dtype", "fp16"], ["--dim", "n=1"]):
        assert run(["compare", file, file, *option]) == 2
        assert "does not apply to reports and runs" in capsys.readouterr().err
    with pytest.raises(UsageError, match="batch has no effect"):
        layerscope.compare(layerscope.analyze("lenet5"), layerscope.analyze("lenet5"), batch=2)


def test_like_applies_to_reports_in_files(tmp_path: Path, capsys: Captured) -> None:
    file = str(tmp_path / "report.json")
    assert run(["show", "lenet5", "--like", "thop", "-o", file]) == 0
    expected = layerscope.compare("lenet5", "lenet5", like="netscope").figures
    assert layerscope.compare(file, file, like="netscope").figures == expected
    assert layerscope.compare(file, file).reports[0].convention.name == "thop"
    assert layerscope.compare(file, "lenet5", like="exact").reports[0].convention.is_exact
    assert run(["compare", file, "lenet5"]) == 2
    assert "--like thop applies to networks and files" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html"])
def test_equal_networks_have_no_empty_table(form: str) -> None:
    text = getattr(layerscope.compare("lenet5", "lenet5"), f"to_{form}")()
    assert "12 layers equal" in text
    assert "output" not in text


@pytest.mark.parametrize("option", ["--layers", "--all"])
def test_csv_has_no_layers(option: str, capsys: Captured, tmp_path: Path) -> None:
    for form in (["--as", "csv"], ["-o", str(tmp_path / "x.csv")]):
        assert run(["compare", "lenet5", "alexnet", option, *form]) == 2
        assert f"{option} cannot be combined with --as csv" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html"])
def test_times_that_lack_layers_are_lower_bounds_in_both_tables(form: str) -> None:
    b = Builder("odd")
    x = b.relu(b.input("data", (1, 3, 16, 16)), name="relu")
    odd = b.build(b.add_node("warp::drive", (x,), name="warp")[0])
    found = layerscope.compare(odd, small(), on="a100")
    text = getattr(found, f"to_{form}")(columns=["name", "time"]).replace(r"$\geq$", "≥")
    lines = text.replace("<tr>", "\n<tr>").splitlines()
    [whole] = [line for line in lines if "end to end" in line]
    assert whole.count("≥") == whole.count("?") == 1
    assert "×" not in whole


def unknown_net(name: str, channels: int, *, odd: bool) -> layerscope.Graph:
    """A convolution, with an unknown operator behind it if it is `odd`."""
    b = Builder(name)
    x = b.conv(b.input("data", (1, 3, 16, 16)), channels, 3, name="conv1")
    return b.build(b.add_node("warp::drive", (x,), name="odd")[0] if odd else x)


def first_column(text: str) -> list[str]:
    return [line.split(",")[0] for line in text.splitlines()[1:] if line and line[0] != "#"]


@pytest.mark.parametrize("column", ["macs", "params", "flops", "weights"])
def test_a_lower_bound_is_sorted_by_its_size(column: str) -> None:
    nets = [
        unknown_net("small", 2, odd=False), unknown_net("exact", 4, odd=False),
        unknown_net("bound", 4, odd=True), unknown_net("large", 8, odd=False),
        unknown_net("tiny", 1, odd=True),
    ]  # fmt: skip
    for order in (nets, nets[::-1]):
        text = layerscope.compare(*order).to_csv(columns=[column], sort=column)
        assert first_column(text) == ["large", "bound", "exact", "small", "tiny"]


def test_networks_are_sorted_by_their_receptive_field() -> None:
    """lenet5 sees everything, nin 355x355, unet 204x204."""
    for order in itertools.permutations(["unet", "lenet5", "nin"]):
        found = layerscope.compare(*order)
        text = found.to_csv(columns=["field"], sort="field")
        assert first_column(text) == ["lenet5", "nin", "unet"]


def test_a_column_is_printed_once(capsys: Captured) -> None:
    assert run(["compare", "lenet5", "alexnet", "--columns", "macs,macs,params,macs", "--as", "csv",
                "--no-stamp"]) == 0  # fmt: skip
    head = capsys.readouterr().out.splitlines()[0]
    assert head == "network,macs,macs_ratio,params,params_ratio"
    assert run(["show", "lenet5", "--columns", "name,ratio,params%,name", "--as", "csv",
                "--no-stamp"]) == 0  # fmt: skip
    assert capsys.readouterr().out.splitlines()[0] == "name,params%"
    assert run(["show", "lenet5", "--columns", "name,name,macs", "--no-stamp"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["layer", "MACs"]


def test_a_counter_is_printed_once(capsys: Captured) -> None:
    assert run(["explain", "lenet5", "--like", "thop", "--like", "thop"]) == 0
    twice = capsys.readouterr().out
    assert run(["explain", "lenet5", "--like", "thop"]) == 0
    assert capsys.readouterr().out == twice
    names = [said.name for said in layerscope.explain("lenet5", counters=["thop"] * 2).opinions]
    assert names == ["thop"]


def test_a_budget_is_checked_once(capsys: Captured) -> None:
    assert run(["check", "lenet5", "lenet5", "--max-params", "1G", "--as", "junit"]) == 0
    assert capsys.readouterr().out.count("<testcase") == 1


def test_an_engine_runs_once() -> None:
    from layerscope.engines.measuring import MeasureRequest

    tasks = MeasureRequest("onnxruntime,torch,onnxruntime").tasks()
    assert [name for name, _ in tasks] == ["onnxruntime", "torch"]


@pytest.mark.parametrize(("column", "which"), [("field", "size"), ("field_stride", "stride")])
def test_layers_are_sorted_by_their_receptive_field(column: str, which: str) -> None:
    report = layerscope.analyze("nin")
    lines = report.to_csv(columns=["name"], sort=column).splitlines()[1:]
    fields = [report.by_name[line].field for line in lines if line in report.by_name]
    numbers = [getattr(field, which)[0] for field in fields if field is not None]
    assert len(numbers) > 10
    assert numbers == sorted(numbers, reverse=True)


def test_rows_with_a_lower_bound_are_sorted_before_equal_ones() -> None:
    b = Builder("groups")
    x = b.input("data", (1, 3, 8, 8))
    with b.scope("exact"):
        x = b.conv(x, 3, 3, padding=1, name="conv")
    with b.scope("bound"):
        x = b.conv(x, 3, 3, padding=1, name="conv")
        x = b.add_node("warp::drive", (x,), name="odd")[0]
    report = layerscope.analyze(b.build(x))
    text = report.to_csv(depth=1, columns=["name", "macs"], sort="macs")
    rows = [line for line in text.splitlines() if line.startswith(("exact", "bound"))]
    assert [row.split(",")[0] for row in rows] == ["bound", "exact"]
    assert rows[0].split(",")[1].startswith("≥")
