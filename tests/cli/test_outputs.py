"""One behaviour of all commands: forms, suffixes, options, widths and encodings."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from layerscope.cli import COMMANDS, group, run
from layerscope.cli.output import SUFFIXES
from layerscope.export import page_file
from tests.export.test_page_data import PAGE
from tests.syntax import latex_rows

Captured = pytest.CaptureFixture[str]

# Every command that writes a result, as short as it can be called; {run} is a run of `measure`,
# {document} a table without findings, {results} a file of `sweep`.
WRITERS = {
    "show": ["show", "lenet5"],
    "show run": ["show", "{run}"],
    "compare": ["compare", "lenet5", "alexnet"],
    "compare runs": ["compare", "{run}", "{run}"],
    "explain": ["explain", "lenet5"],
    "check": ["check", "lenet5", "--max-params", "1G"],
    "audit": ["audit", "{document}"],
    "measure": ["measure", "lenet5", "--runs", "10"],
    "predict": ["predict", "lenet5", "--on", "a100"],
    "machine": ["machine", "--on", "a100"],
    "machine list": ["machine", "--list"],
    "zoo": ["zoo", "lenet"],
    "results": ["results", "{results}"],
}
PLOTS = {"plot": ["plot", "lenet5"], "plot run": ["plot", "{run}"]}
RESULTS = (".txt", ".md", ".csv", ".json", ".tex", ".html")
KINDS = {
    "show": "report", "show run": "run", "compare": "comparison", "compare runs": "comparison",
    "explain": "explanation", "check": "budget", "audit": "audit", "measure": "run",
    "predict": "prediction", "machine": "machine", "machine list": "machine", "zoo": "zoo",
    "results": "results",
}  # fmt: skip


@pytest.fixture(autouse=True)
def built_page(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without scripts stands for the one that `make page` builds."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(page_file, "PAGE", str(path))


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of lenet5 in a file; its table and the results of a sweep are beside it."""
    path = tmp_path_factory.mktemp("runs") / "run.json"
    assert run(["show", "lenet5", "--as", "netscope", "-o", str(path.with_name("table.txt"))]) == 0
    assert run(["measure", "lenet5", "-o", str(path)]) == 0
    assert run(["sweep", "lenet5", "-o", str(path.with_name("results.sqlite"))]) == 0
    return str(path)


def arguments(command: list[str], kept_run: str) -> list[str]:
    folder = os.path.dirname(kept_run)
    files = {"{run}": kept_run, "{document}": os.path.join(folder, "table.txt"),
             "{results}": os.path.join(folder, "results.sqlite")}  # fmt: skip
    return [files.get(word, word) for word in command]


class Page(HTMLParser):
    """Counts tags, and rows of tables."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1


def read_back(text: str, suffix: str) -> None:
    """Parse a file by its suffix."""
    if suffix == ".json":
        keys = list(json.loads(text))
        assert keys[:2] == ["kind", "schema"]
    elif suffix == ".csv":
        lines = [line for line in text.splitlines() if not line.startswith("# ")]
        rows = list(csv.reader(io.StringIO("\n".join(lines))))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
    elif suffix == ".md":
        assert any(line.startswith("|") and ":--- " in line for line in text.splitlines())
    elif suffix == ".tex":
        assert r"\begin{tabular}" in text
        assert len(latex_rows(text)) > 1
    elif suffix == ".html":
        page = Page()
        page.feed(text)
        assert text.startswith("<!DOCTYPE html>")
        assert page.tags["html"] == page.tags["body"] == page.tags["script"] == 1
        assert page.tags["tr"] > 1
    elif suffix in (".xml", ".svg"):
        ElementTree.fromstring(text)
    else:
        assert "─" in text


@pytest.mark.parametrize("suffix", RESULTS)
@pytest.mark.parametrize("name", WRITERS)
def test_the_suffix_chooses_the_form(
    name: str, suffix: str, kept_run: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / f"result{suffix}"
    assert run([*arguments(WRITERS[name], kept_run), "-o", str(path)]) == 0
    printed = capsys.readouterr().out
    assert bool(printed) == (name == "measure" and suffix == ".json")  # which also prints its table
    text = path.read_text(encoding="utf-8")
    if (name, suffix) == ("results", ".html"):
        assert 'id="layerscope-data"' in text  # the page of all networks, which draws its table
    else:
        read_back(text, suffix)
    if suffix == ".json":
        assert json.loads(text)["kind"] == KINDS[name]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # nothing is left behind


@pytest.mark.parametrize("name", WRITERS)
def test_as_and_json_choose_the_same_forms(
    name: str, kept_run: str, tmp_path: Path, capsys: Captured
) -> None:
    command = arguments(WRITERS[name], kept_run)
    for suffix in RESULTS:
        form = SUFFIXES[suffix]
        assert run([*command, "--as", form]) == 0
        read_back(capsys.readouterr().out, suffix)
    assert run([*command, "--json"]) == 0
    read_back(capsys.readouterr().out, ".json")


@pytest.mark.parametrize("name", [*WRITERS, *PLOTS])
@pytest.mark.parametrize("suffix", [".gif", ".docx", ".jsn"])
def test_an_unknown_suffix_is_refused(
    name: str, suffix: str, kept_run: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / f"result{suffix}"
    command = arguments({**WRITERS, **PLOTS}[name], kept_run)
    assert run([*command, "-o", str(path)]) == 2
    message = capsys.readouterr().err
    assert suffix in message
    expected = (".json", ".html", ".svg", ".png", ".pdf") if name in PLOTS else RESULTS
    assert all(each in message for each in expected)
    assert not path.exists()


@pytest.mark.parametrize("network", ["lenet5", "{run}"])
def test_the_data_of_a_page_are_written(
    network: str, kept_run: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "data.json"
    command = arguments(["report", network], kept_run)
    assert run([*command, "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    read_back(path.read_text(encoding="utf-8"), ".json")
    assert run([*command, "--json"]) == 0
    assert capsys.readouterr().out == path.read_text(encoding="utf-8")
    assert run([*command, "-o", str(tmp_path / "x.docx")]) == 2
    message = capsys.readouterr().err
    assert all(each in message for each in (".docx", ".html", ".json"))


@pytest.mark.parametrize("name", ["check", "audit"])
def test_checks_are_written_as_junit(name: str, kept_run: str, tmp_path: Path) -> None:
    path = tmp_path / "checked.xml"
    assert run([*arguments(WRITERS[name], kept_run), "-o", str(path)]) == 0
    assert ElementTree.parse(path).getroot().tag == "testsuites"


@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_written_by_suffix(name: str, kept_run: str, tmp_path: Path) -> None:
    command = arguments(PLOTS[name], kept_run)
    assert run([*command, "-o", str(tmp_path / "plot.svg")]) == 0
    read_back((tmp_path / "plot.svg").read_text(encoding="utf-8"), ".svg")
    assert run([*command, "-o", str(tmp_path / "plot.vl.json")]) == 0
    assert "$schema" in json.loads((tmp_path / "plot.vl.json").read_text(encoding="utf-8"))


def test_a_symlink_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "real.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    assert run(["show", "lenet5", "-o", str(link)]) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["kind"] == "report"
    assert not list(tmp_path.glob("*.partial"))
    assert not list(target.parent.glob(".*"))


def test_a_report_is_read_again(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "report.txt"  # read by its content, whatever the suffix
    assert run(["show", "resnet18", "--as", "json", "-o", str(path)]) == 0
    for form in ("text", "markdown", "csv", "latex", "json", "netscope", "matconvnet"):
        assert run(["show", str(path), "--as", form]) == 0
        again = capsys.readouterr().out
        assert run(["show", "resnet18", "--as", form]) == 0
        assert again == capsys.readouterr().out
    assert run(["compare", str(path), "resnet18", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["counts"]["changed"] == 0
    assert run(["show", str(path), "--batch", "2"]) == 2
    assert "does not apply to a report in a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "schema 99"),
        ({"graph": {}}, "without its graph"),
        ({"graph": {"name": 3}}, "not a serialized graph"),
        ({"options": {"like": "nobody", "in_place": False}}, "nobody"),
    ],
)
def test_damaged_reports_are_refused(
    change: dict[str, object], message: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "report.json"
    assert run(["show", "lenet5", "-o", str(path)]) == 0
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert run(["show", str(path)]) in (2, 3)
    assert message in capsys.readouterr().err


def test_results_that_cannot_be_read_say_so(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "comparison.json"
    assert run(["compare", "lenet5", "alexnet", "-o", str(path)]) == 0
    assert run(["show", str(path)]) == 2
    assert "cannot be read back" in capsys.readouterr().err


# Options

TAKE_A_NETWORK = (
    "show", "compare", "report", "explain", "check", "measure", "predict", "plot", "export",
)  # fmt: skip
OF_NETWORKS = {
    "--input", "--batch", "--dtype", "--tokens", "--decode", "--dim", "--phase", "--proposals",
    "--weights", "--keep-going",
}  # fmt: skip


def options_of(name: str) -> dict[str, click.Option]:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    found = [param for param in command.params if isinstance(param, click.Option)]
    return {max(param.opts, key=len): param for param in found}


def test_all_commands_take_the_options_of_a_network() -> None:
    for name in TAKE_A_NETWORK:
        assert options_of(name).keys() >= OF_NETWORKS, name


def test_all_commands_write_alike() -> None:
    for name in COMMANDS:
        if name == "completion":
            continue
        options = options_of(name)
        assert "--output" in options, name
        if name not in ("export", "plot", "sweep"):  # a sweep writes a database
            assert {"--as", "--json"} <= options.keys(), name


def test_the_same_option_has_the_same_help() -> None:
    """Of options that several commands share; a default may differ."""
    for option in sorted(OF_NETWORKS):
        texts = {str(options_of(name)[option].help) for name in TAKE_A_NETWORK}
        assert len(texts) == 1, option


@pytest.mark.parametrize(
    "name", ["explain", "compare", "report", "measure", "predict", "export", "plot"]
)
def test_tokens_reach_every_command(name: str, tmp_path: Path, capsys: Captured) -> None:
    more = {"compare": ["gpt2"], "predict": ["--on", "a100"], "export": ["--to", "csv"],
            "measure": ["--engine", "nobody"], "report": ["--as", "json"]}  # fmt: skip
    code = run([name, "gpt2", *more.get(name, []), "--tokens", "7", "--decode", "5"])
    assert code == 2
    assert "tokens cannot be combined with decode" in capsys.readouterr().err


# Terminals

NARROW = [
    ["show", "resnet18"], ["show", "vit_b_16", "--depth", "3"], ["show", "resnet18", "--by", "op"],
    ["show", "lenet5", "--all"], ["show", "vgg16", "--sort", "macs", "--top", "5"],
    ["show", "llama-3-8b", "--decode", "4096", "--depth", "1"], ["show", "vgg16", "--total"],
    ["show", "resnet18", "--train", "adam"], ["show", "resnet18", "--fit", "8GB"],
    ["show", "{run}"], ["show", "{run}", "--sort", "time"],
    ["compare", "vgg16", "vgg19"], ["compare", "vgg16", "resnet50", "mobilenet_v2", "--layers"],
    ["compare", "{run}", "{run}"], ["explain", "resnet18"],
    ["explain", "resnet18", "--figure", "1.8G"],
    ["check", "vgg16", "--max-params", "1M"], ["audit", "{document}"],
    ["audit", "{document}", "--against", "alexnet"], ["predict", "resnet18", "--on", "a100"],
    ["predict", "vgg16", "--on", "rtx4090", "--sort", "--top", "3"], ["machine", "--on", "a100"],
    ["machine", "--list"], ["zoo"], ["results", "{results}"], ["--help"],
    *([name, "--help"] for name in COMMANDS),
]  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("command", NARROW, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    command: list[str], width: int, kept_run: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    if "--help" in command and width == 40:
        pytest.skip("examples are commands, which are not broken")
    assert run(arguments(command, kept_run)) in (0, 1)
    for line in capsys.readouterr().out.splitlines():
        assert len(line) <= width, line


def environment(encoding: str) -> Iterator[tuple[str, str]]:
    yield "PYTHONIOENCODING", encoding
    if encoding == "C":
        yield from {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "C"])
@pytest.mark.parametrize("command", [["show", "lenet5"], ["compare", "lenet5", "alexnet"],
                                     ["show", "nobody"], ["predict", "lenet5", "--on", "a100"]],
                         ids=" ".join)  # fmt: skip
def test_encodings_without_our_signs(command: list[str], encoding: str) -> None:
    """Signs become ASCII, not escapes; no traceback."""
    env = {**os.environ, **dict(environment(encoding))}
    if encoding == "C":
        del env["PYTHONIOENCODING"]
    done = subprocess.run(
        [sys.executable, "-m", "layerscope", *command], capture_output=True, env=env, check=False
    )
    assert done.returncode == (2 if "nobody" in command else 0), done.stderr
    text = (done.stdout or done.stderr).decode("ascii" if encoding in ("ascii", "C") else encoding)
    assert "\\u" not in text
    assert "\\x" not in text
    assert "Traceback" not in text


def test_a_closed_standard_output_is_an_error_of_one_line() -> None:
    done = subprocess.run(
        f"{sys.executable} -m layerscope show lenet5 >&-", shell=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.decode().count("\n") == 1


def test_help_without_a_command(capsys: Captured) -> None:
    assert run([]) == 0
    bare = capsys.readouterr().out
    assert run(["--help"]) == 0
    assert bare == capsys.readouterr().out
    assert "Examples:" in bare


# Completion

COMPLETED = {
    "show vgg1": "vgg16",
    "show vgg16 --dtype f": "fp16",
    "show vgg16 --columns name,par": "name,params",
    "show vgg16 --sort ma": "macs",
    "show vgg16 --like tor": "torchvision",
    "show vgg16 --as net": "netscope",
    "show vgg16 --by m": "module",
    "show vgg16 --train a": "adam",
    "show net.prototxt --phase t": "train",
    "predict vgg16 --on a1": "a100",
    "machine --on h1": "h100",
    "compare a b --as la": "latex",
    "compare a b --columns ti": "time",
    "explain vgg16 --like tho": "thop",
    "check vgg16 --on a1": "a100",
    "check vgg16 --as ju": "junit",
    "audit README.md --as git": "github",
    "audit README.md --against vgg1": "vgg16",
    "audit README.md --like nets": "netscope",
    "measure vgg16 --engine onn": "onnxruntime",
    "measure vgg16 --fusion b": "both",
    "plot vgg16 --of r": "roofline",
    "plot vgg16 --on a1": "a100",
    "export vgg16 --to s": "scalesim",
}
FILES = (
    "show some", "show vgg16 -o some", "show vgg16 --weights some", "show vgg16 --times some",
    "audit some", "audit some -o some", "check --config some", "measure vgg16 -o some",
    "export vgg16 -o some", "zoo -o some",
)  # fmt: skip


def completed(line: str, shell: str) -> list[str]:
    """What the shell is told to offer for the last word of a line."""
    words = line.split(" ")
    env = {"_LAYERSCOPE_COMPLETE": f"{shell}_complete", "COMP_WORDS": f"layerscope {line}",
           "COMP_CWORD": words[-1] if shell == "fish" else str(len(words))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "layerscope"], capture_output=True, text=True, check=True,
        env={**os.environ, **env},
    )  # fmt: skip
    return done.stdout.replace("\n", " ").replace(",", " ", 1).split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_values_and_files(shell: str) -> None:
    sample = list(COMPLETED) if shell == "bash" else ["show vgg1", "predict vgg16 --on a1"]
    for line in sample:
        assert COMPLETED[line] in " ".join(completed(line, shell)), line
    for line in FILES if shell == "bash" else FILES[:1]:
        assert "file" in " ".join(completed(line, shell)), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_complete(shell: str, capsys: Captured) -> None:
    assert run(["completion", shell]) == 0
    assert f"{shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize("command", [*WRITERS.values(), *PLOTS.values(), ["export", "lenet5"]])
def test_an_empty_file_name_is_refused(command: list[str], kept_run: str, capsys: Captured) -> None:
    assert run([*arguments(command, kept_run), "-o", ""]) == 2
    assert "-o is empty" in capsys.readouterr().err


def test_export_names_suffixes_that_it_takes(tmp_path: Path, capsys: Captured) -> None:
    assert run(["export", "lenet5", "-o", str(tmp_path / "x.txt")]) == 2
    message = capsys.readouterr().err
    assert "no target has the suffix .txt" in message
    listed = message.partition("choose from ")[2].partition(", or")[0].split(", ")
    assert len(listed) > 5
    for suffix in listed:
        assert run(["export", "lenet5", "-o", str(tmp_path / f"x{suffix}")]) == 0


def test_a_plot_of_times_names_a_network_to_measure(tmp_path: Path, capsys: Captured) -> None:
    file = str(tmp_path / "report.json")
    assert run(["show", "lenet5", "-o", file]) == 0
    assert run(["plot", file, "--of", "time"]) == 2
    assert "layerscope measure lenet5 -o" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--list"], ["--on", "a100"], ["--again"]])
def test_threads_of_a_machine_need_calibrate(more: list[str], capsys: Captured) -> None:
    assert run(["machine", "--threads", "1", *more]) == 2
    assert "--threads needs --calibrate" in capsys.readouterr().err


def test_this_machine_can_be_named(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from layerscope.engines import machine
    from layerscope.engines.accelerators import machine_of

    monkeypatch.setattr(machine, "cached_machine", lambda: machine_of("a100"))
    assert run(["machine", "--on", "this"]) == 0
    named = capsys.readouterr().out
    assert run(["machine"]) == 0
    assert capsys.readouterr().out == named
