"""Names from strangers' files in every form of every command: nothing that prints is obeyed."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, save  # noqa: TID251

from layerscope import escaping
from layerscope.cli import run
from layerscope.cli.output import RESULT_FORMS
from layerscope.export import FORMS, TARGETS
from layerscope.export.page import SCRIPT
from layerscope.notations import NOTATIONS
from tests.formats.onnx.onnx_files import zeros
from tests.syntax import digraph, latex_rows

Captured = pytest.CaptureFixture[str]

# Sequences of terminals, bidirectional overrides, separators, tags, formulas, macros, quotes.
HOSTILE = (
    "=cmd|'/C x'!A0\x1b]0;t\x07\x1b[31m\u202e\u2066\u200f\u200b\ufeff\u2028\u2029\x85\x7f\r\n"
    '<script>alert(1)</script>"`b`[l](javascript:x)|$x$&{y}%z#~^\\ ,=1+1;@x\U000e0041'
)
FILE = HOSTILE.replace("/", "-").replace("\n", "")[:90]


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Hostile names in a file that engines run, and a type that nobody knows in another."""
    folder = tmp_path_factory.mktemp("hostile")

    def model(name: str, more: list[Any]) -> str:
        x, y = f"{HOSTILE}x", f"{HOSTILE}y"
        weights = zeros(f"-{HOSTILE}w", 4, 3, 3, 3)
        conv = helper.make_node("Conv", [x, weights.name], [y], f"-{HOSTILE}")
        relu = helper.make_node("Relu", [y], [f"{y}2"], f"@{HOSTILE}/{HOSTILE}")
        last = more[-1].output[0] if more else f"{y}2"
        graph = helper.make_graph(
            [conv, relu, *more],
            HOSTILE,
            [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, 3, 8, 8])],
            [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
            [weights],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
        path = folder / f"{FILE}{name}.onnx"
        save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
        return str(path)

    odd = helper.make_node(f"T{HOSTILE}", [f"{HOSTILE}y2"], ["z"], f"+{HOSTILE}", domain="custom")
    return {"runs": model("", []), "unknown": model("2", [odd]), "folder": str(folder)}


COMMANDS = [
    *(("show", "--as", form) for form in (*FORMS, *NOTATIONS)),
    ("show", "--total"), ("show", "--total", "--as", "json"), ("show", "--by", "op"),
    ("show", "--by", "layer", "--as", "csv"), ("show", "--train", "adam", "--as", "markdown"),
    *(("compare", *(["--all"] if form != "csv" else []), "--as", form) for form in RESULT_FORMS),
    *(("explain", "--as", form) for form in RESULT_FORMS),
    ("explain", "--figure", "1"),
    *(("check", "--max-params", "1", "--allow-unknown", "--as", form)
      for form in (*RESULT_FORMS, "junit")),
    *(("predict", "--on", "rtx4090", "--as", form) for form in RESULT_FORMS),
    *(("export", "--to", target) for target in (*TARGETS, *FORMS) if target != "text"),
    ("export", "--depth", "1", "--to", "dot"),
    *(("show", "--max-columns", "1", "--as", f"matconvnet{form}")
      for form in ("", ".csv", ".latex", ".dag", ".dag.csv", ".dag.latex")),
    ("show", "--parts", "layers,vars", "--as", "matconvnet.dag.dot"),
    ("show", "--columns", "name,alive", "--as", "csv"),
    ("show", "--conventions", "all", "--as", "json"), ("report", "--as", "json"),
    ("report", "--on", "rtx4090", "--as", "json"),
    *(("plot", "--of", what, "--as", form)
      for what in ("memory", "activations", "costs", "params") for form in ("json", "svg")),
    *(("plot", "--of", what, "--on", "a100", "--as", form)
      for what in ("roofline", "time") for form in ("json", "svg")),
]  # fmt: skip


@pytest.mark.parametrize("network", ["runs", "unknown"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_obeys_a_name(
    command: tuple[str, ...], network: str, networks: dict[str, str], capsys: Captured
) -> None:
    given_ = [networks[network]]
    if command[0] == "compare":
        given_ += [networks["unknown"], "lenet5"]
    code = run([command[0], *given_, *command[1:]])
    out, err = capsys.readouterr()
    refused = "builder" in command  # arrays of a file; names in calls: test_builder_text.py
    assert code == (2 if refused else 1 if command[0] == "check" else 0), err
    assert err if refused else out
    form = command[-1] if len(command) > 1 else "text"
    harmless(out, form)
    harmless(err, "error")


MARKDOWN = ("markdown", "netscope", "netscope.folded", "backbone", "cs231n.md", "layersheet")


def harmless(out: str, form: str) -> None:
    """Raise where an output holds something that its reader would obey."""
    bad = {char for char in out if not char.isprintable() and char not in "\n\t"}
    assert not bad, (form, bad)
    if form == "backbone":
        out = re.sub("`[^`]*`", "", out)  # text of code is shown as it is
    if form in MARKDOWN:
        assert not re.search(r"(?<!\\)<|(?<!\\)\[l|&#", re.sub("&emsp;|<br>", "", out)), form
    if form in ("html", "junit", "svg"):
        assert "<script" not in out.replace(f"<script>{SCRIPT}</script>", "")
    if form in ("junit", "svg"):
        ElementTree.fromstring(out)
    if form == "json":
        json.loads(out)
    if form.endswith("csv"):
        for row in csv.reader(io.StringIO(out)):
            for cell in row:
                number = re.fullmatch(r"[-\d.ex+]+", cell)
                assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
    if form.endswith("latex"):
        body = "\n".join(line for line in out.splitlines() if not line.startswith("%"))
        assert not re.search(r"(?<!\\)[#%~^]|(?<!\\)_(?<!`_)", body), form
    if form.startswith("matconvnet") and form.endswith("latex"):
        latex_rows(out)
    if form.endswith("dot"):
        digraph(out)
    if form in ("timeloop", "zigzag"):
        list(yaml.safe_load_all(out))
    if form == "error":
        assert "\t" not in out


@pytest.mark.parametrize("form", [*RESULT_FORMS, "boda"])
def test_measured_runs_obey_no_name(
    form: str, networks: dict[str, str], capsys: Captured, tmp_path: Path
) -> None:
    kept = tmp_path / f"{FILE}.json"
    assert run(["measure", networks["runs"], "--as", form, "-o", str(kept)]) == 0
    harmless(capsys.readouterr().out, "text" if form == "json" else form)
    harmless(kept.read_text(encoding="utf-8"), "json")
    for args, shown in (
        (["show", str(kept), "--as", form], form),
        (["plot", str(kept), "--as", "svg"], "svg"),
        (["plot", str(kept), "--of", "time"], "json"),
    ):
        assert run(args) == 0
        out, err = capsys.readouterr()
        harmless(out, shown)
        harmless(err, "error")


ERRORS = [
    f"show {FILE}.onnx", "show {net} --input {bad}=3", "show {net} --columns {bad}",
    "show {net} --sort {bad}", "show {net} --as {bad}", "show {net} --like {bad}",
    "show {net} --dtype {bad}", "show {net} --dim {bad}", "show {net} --dim {bad}=4",
    "show {net} --batch {bad}", "show {net} --input {bad}", "show {net} --weights {bad}",
    "show {net} -o {bad}/{bad}", "show {net} --fit {bad}", "show {net} --by {bad}",
    "show {net} --phase {bad}", "compare {net} {bad}", "explain {net} --figure {bad}",
    "explain {net} --like {bad}", "check {net} --max-params {bad}", "check {bad}",
    "check --config {bad}", "measure {net} --engine {bad}", "measure {net} --fusion {bad}",
    "measure {net} --parts {bad}", "predict {net} --on {bad}", "plot {net} --of {bad}",
    "plot {net} -o {bad}.gif", "machine --on {bad}", "export {net} --to {bad}", "zoo {bad}",
    "completion {bad}", "{bad}", "show {bad}.py:make", "show hf:{bad}", "show {net} --strict",
    "show {net} {bad}", "show {net} --{bad}", "--debug show {bad}",
]  # fmt: skip


@pytest.mark.parametrize("line", ERRORS)
def test_no_error_obeys_a_name(line: str, networks: dict[str, str], capsys: Captured) -> None:
    bad = HOSTILE.replace("\n", "")
    words = [
        word.replace("{net}", networks["unknown"]).replace("{bad}", bad)
        for word in (line.split(" ") if FILE not in line else ["show", f"{FILE}.onnx"])
    ]
    assert run(words) in (1, 2, 3, 4), shlex.join(words)
    out, err = capsys.readouterr()
    assert err
    assert err.count("\n") == 1 or "--debug" in words
    harmless(err, "debug" if "--debug" in words else "error")
    harmless(out, "text")


def test_files_are_escaped_too(networks: dict[str, str], tmp_path: Path) -> None:
    for name in ("a.csv", "a.md", "a.json", "a.tex", "a.html", "a.txt"):
        path = tmp_path / name
        assert run(["show", networks["unknown"], "-o", str(path)]) == 0
        form = {"md": "markdown", "tex": "latex", "txt": "text"}.get(name[2:], name[2:])
        harmless(path.read_text(encoding="utf-8"), form)
    folder = tmp_path / "problems"
    assert run(["export", networks["unknown"], "--to", "timeloop", "-o", str(folder)]) == 0
    for file in folder.iterdir():
        harmless(file.read_text(encoding="utf-8"), "timeloop")


def test_a_name_that_is_not_utf8_prints(networks: dict[str, str], capsys: Captured) -> None:
    path = Path(networks["folder"], "\udc80.onnx")
    path.write_bytes(Path(networks["runs"]).read_bytes())
    for form in FORMS:
        assert run(["show", str(path), "--as", form]) == 0
        harmless(capsys.readouterr().out, form)


@given(st.text(), st.sampled_from(["visible", "one_line", "markdown", "latex", "html", "quoted"]))
def test_every_step_leaves_what_prints(text: str, name: str) -> None:
    assert getattr(escaping, name)(text).isprintable()
    assert str(escaping.csv_cell(text)).isprintable()


@given(st.text(), st.recursive(st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_json_is_read_back_as_it_was(text: str, document: Any) -> None:
    written = escaping.json_text([text, document])
    assert written.replace("\n", "").isprintable()
    assert json.loads(written) == [text, document]


@pytest.mark.parametrize("number", [-1, -1.5, "-1.5", "-3x-3", "-", "+2", "-1e5"])
def test_negative_numbers_of_csv_stay_numbers(number: Any) -> None:
    assert str(escaping.csv_cell(number)) == str(number)


@pytest.mark.parametrize("text", ["-a", "=1", "+x", "@f", "\tx", " =1", "＝1", "-1+cmd", "-x()"])
def test_formulas_of_csv_are_texts(text: str) -> None:
    assert str(escaping.csv_cell(text)).startswith("'")


def test_only_our_own_styles_pass_to_a_terminal() -> None:
    styled = "\x1b[1mhead\x1b[0m \x1b[31mred\x1b]0;t\x07"
    shown = escaping.delivered(styled, styled=True)
    assert shown == "\x1b[1mhead\x1b[0m \\x1b[31mred\\x1b]0;t\\x07"
    assert "\x1b" not in escaping.delivered(styled)
