"""The report page: its data, the HTML around it, and the command that writes it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import layerscope
from layerscope import Graph
from layerscope.api.reporting import page_data
from layerscope.cli import run
from layerscope.errors import FormatError, InputError, MissingPage, UsageError
from layerscope.export import page_file
from layerscope.export.json import schema
from layerscope.export.page_file import data_text, write
from layerscope.export.page_types import PageData
from layerscope.graph.types import Node, Tensor

Captured = pytest.CaptureFixture[str]
PAGE = (
    '<!doctype html>\n<html lang="en">\n<head>\n<title>layerscope</title>\n</head>\n<body>\n'
    '<script type="application/json" id="layerscope-data">null</script>\n'
    "<script>const x = 1</script>\n</body>\n</html>\n"
)
HOSTILE = '</script><img src=x onerror=alert(1)>\u2028\u202e<!--"\\'
Json = dict[str, Any]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page, as small as it can be."""
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(page_file, "PAGE", str(path))
    return path


class Scripts(HTMLParser):
    """Tags of a document, and the data that a browser finds in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self.title = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "title" and not self.title:
            self.title = data
        if self.tags.count("script") == 1 and data.strip() and not self.data:
            self.data = data


def named(name: str) -> Graph:
    nodes = (Node(name, "relu", (f"x{name}",), (f"y{name}",)),)
    return Graph(name, (Tensor(f"x{name}", (1, 2, 3, 4)),), nodes, (f"y{name}",))


def data_of(*networks: Any, **options: Any) -> Json:
    found: Json = json.loads(data_text(page_data(networks, **options)))
    return found


def read(text: str) -> tuple[Json, Scripts]:
    parser = Scripts()
    parser.feed(text)
    found: Json = json.loads(parser.data)
    return found, parser


def test_names_cannot_leave_the_data(built: Path) -> None:
    text = write(page_data([named(HOSTILE)]))
    found, parser = read(text)
    assert parser.tags == ["html", "head", "title", "body", "script", "script"]
    assert found["reports"][0]["layers"][0]["name"] == HOSTILE
    assert "\u2028" not in text
    assert "\u202e" not in text
    assert "<img" not in text


@given(st.text(min_size=1, max_size=20))
def test_any_name_is_only_text(name: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in name):
        return
    text = data_text(page_data([named(name)]))
    assert not set("<>&") & set(text)
    assert all(char.isprintable() for char in text)
    assert json.loads(text)["reports"][0]["layers"][0]["name"] == name


def test_rows_have_numbers() -> None:
    found = data_of("resnet18")["reports"][0]
    rows = found["tree"]["row"] + 1
    for cells in (found["cells"], *(each["cells"] for each in found["conventions"].values())):
        for column in cells.values():
            assert {len(many) for many in column.values()} <= {rows}
    assert found["cells"]["name"]["texts"][-1] == "total"
    assert found["cells"]["params"]["values"][-1] == found["totals"]["params"]
    assert "sums" not in found["tree"]["children"][4]
    assert set(found["exports"]) == {"csv", "markdown", "latex"}


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_exports_are_what_show_prints(form: str, capsys: Captured) -> None:
    assert run(["show", "lenet5", "--as", form]) == 0
    assert capsys.readouterr().out == data_of("lenet5")["reports"][0]["exports"][form]


def test_comparisons_are_what_compare_finds() -> None:
    found = data_of("resnet18", "resnet34", "lenet5")
    assert [(each["first"], each["second"]) for each in found["comparisons"]] == [(0, 1), (0, 2)]
    pair = found["comparisons"][0]
    compared = layerscope.compare("resnet18", "resnet34")
    assert pair["counts"] == {
        kind: compared.pairs[0].count(kind) for kind in pair["counts"]
    }  # fmt: skip
    signs = [match["sign"] for match in pair["matches"]]
    assert signs.count("=") == pair["counts"]["equal"]
    firsts = [m["first"] for m in pair["matches"] if m["first"] is not None]
    assert sorted(firsts) == list(range(len(found["reports"][0]["layers"])))
    total = next(each for each in pair["totals"] if each["name"] == "params")
    assert (total["first"], total["second"], total["ratio"]) == (
        "11,689,512",
        "21,797,672",
        "×1.86",
    )
    other = data_of("resnet18", layerscope.analyze("resnet18", input=(1, 3, 112, 112)))
    changed = next(m for m in other["comparisons"][0]["matches"] if m["sign"] == "~")
    assert changed["ratios"]["macs"] == "×0.25"
    assert any(text.startswith("output 1x64x112x112 → ") for text in changed["changes"])


def test_predicted_times() -> None:
    found = data_of("lenet5", on="a100")
    times, report = found["runs"][0], found["reports"][0]
    assert times["kind"] == "prediction"
    assert report["machine"]["name"] == "NVIDIA A100 SXM 80 GB"
    assert len(times["cells"]["time"]["texts"]) == report["tree"]["row"] + 1
    assert times["cells"]["time"]["texts"][-1] == times["total"]
    assert "roofline" in found["charts"][0]


def test_the_command_writes_the_page(
    built: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.html"
    assert run(["report", "lenet5", "alexnet", "-o", str(path)]) == 0
    assert capsys.readouterr() == ("", "")
    found, parser = read(path.read_text(encoding="utf-8"))
    assert [report["network"] for report in found["reports"]] == ["lenet5", "alexnet"]
    assert parser.title == "lenet5, alexnet · layerscope"
    assert run(["report", "lenet5", "-o", "-"]) == 0
    assert read(capsys.readouterr().out)[0]["kind"] == "page"
    monkeypatch.chdir(tmp_path)
    assert run(["report", "lenet5"]) == 0
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("layerscope: wrote report.html, ")
    assert (tmp_path / "report.html").exists()


def test_a_run_and_a_saved_report(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    kept, saved = tmp_path / "run.json", tmp_path / "report.json"
    assert run(["measure", "lenet5", "--runs", "10", "-o", str(kept)]) == 0
    assert run(["show", "lenet5", "--like", "fvcore", "-o", str(saved)]) == 0
    found = data_of(str(kept), str(saved))
    times = found["runs"][0]
    assert times["kind"] == "run"
    assert found["runs"][1] is None
    stamp = found["reports"][1]["stamp"]
    assert stamp["convention"] == "exact"  # the page switches conventions
    fused = {layer for layer, _ in times["fused"]}
    blank = {n for n, text in enumerate(times["cells"]["time"]["texts"]) if not text}
    assert fused <= blank
    seconds = [value for value in times["cells"]["time"]["values"][:-1] if value is not None]
    assert sum(seconds) == pytest.approx(
        sum(row["time_s"] for row in times["rows"] if row["kind"] == "layer"), rel=1e-4
    )


def test_a_prediction_is_read_again(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "a100.json"
    assert run(["predict", "lenet5", "--on", "a100", "--dtype", "fp32", "-o", str(path)]) == 0
    again, fresh = data_of(str(path)), data_of("lenet5", on="a100", dtype="fp32")
    assert again["runs"][0]["cells"] == fresh["runs"][0]["cells"]
    assert again["runs"][0]["lines"] == fresh["runs"][0]["lines"]
    assert again["reports"][0]["cells"] == fresh["reports"][0]["cells"]
    assert run(["compare", str(path), "lenet5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["times"][0]["total_s"] > 0
    assert run(["show", str(path)]) == 2
    assert "a prediction that layerscope wrote" in capsys.readouterr().err
    old = json.loads(path.read_text(encoding="utf-8"))
    del old["graph"]
    path.write_text(json.dumps(old), encoding="utf-8")
    assert run(["report", str(path), "--as", "json"]) == 3
    assert "without its network" in capsys.readouterr().err


def test_a_refused_file_is_an_entry_beside_the_others(
    built: Path, tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "a secret folder"
    folder.mkdir()
    text, model = folder / "net.prototxt", folder / "<b>.onnx"
    text.write_text('layer { name: "c" type: ', encoding="utf-8")
    model.write_bytes(b"garbage")
    path = tmp_path / "out.html"
    names = [str(text), "lenet5", str(model), "alexnet"]
    assert run(["report", *names, "-o", str(path)]) == 3
    first, second = capsys.readouterr().err.replace("\n  ", " ").splitlines()
    assert "net.prototxt:1:25: expected a value of type" in first
    assert "<b>.onnx: byte 0" in second
    found = read(path.read_text(encoding="utf-8"))[0]
    assert [(each["kind"], each["network"]) for each in found["reports"]] == [
        ("refused", "net.prototxt"), ("report", "lenet5"),
        ("refused", "<b>.onnx"), ("report", "alexnet"),
    ]  # fmt: skip
    assert found["reports"][0]["text"] == "net.prototxt:1:25: expected a value of type"
    assert "secret" not in json.dumps(found)
    assert [each is None for each in found["runs"]] == [True] * 4
    assert [bool(each) for each in found["charts"]] == [False, True, False, True]
    assert [(each["first"], each["second"]) for each in found["comparisons"]] == [(1, 3)]


def test_the_data_follow_their_schema(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"garbage")
    refused: list[InputError] = []
    networks = ["resnet18", str(bad), "lenet5"]
    found = json.loads(data_text(page_data(networks, on="a100", refused=refused)))
    assert len(refused) == 1
    assert found["comparisons"]
    assert found["reports"][0]["machine"]
    jsonschema.validate(found, json.loads(schema(PageData)))
    del found["comparisons"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, json.loads(schema(PageData)))


def test_no_page_of_refused_files_alone(built: Path, tmp_path: Path, capsys: Captured) -> None:
    bad, path = tmp_path / "bad.onnx", tmp_path / "out.html"
    bad.write_bytes(b"garbage")
    for names in ([str(bad)], [str(bad), str(bad)]):
        assert run(["report", *names, "-o", str(path)]) == 3
        assert capsys.readouterr().err.count("layerscope: ") == 1
        assert not path.exists()
    with pytest.raises(FormatError):
        layerscope.report_page("lenet5", str(bad))


def test_without_a_built_page(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(page_file, "PAGE", "/nowhere/page.html")
    assert run(["report", "lenet5", "-o", "x.html"]) == 4
    message = capsys.readouterr().err
    assert "make page" in message
    assert message.count("\n") == 1
    assert not Path("x.html").exists()
    with pytest.raises(MissingPage, match="make page"):
        layerscope.report_page("lenet5")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["no_such"], 2, "unknown network"),
        (["lenet5", "--on", "no_such"], 2, "unknown machine"),
        (["lenet5", "--phase", "train"], 2, "no effect"),
        (["lenet5", "-o", "x.txt"], 2, "no form has the suffix .txt"),
        (["lenet5", "--as", "csv"], 2, "unknown form"),
        (["no_such.json"], 3, "No such file"),
    ],
)
def test_wrong_arguments(
    args: list[str], code: int, says: str, capsys: Captured, built: Path
) -> None:
    assert run(["report", *args]) == code
    assert says in capsys.readouterr().err


def test_no_network() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        page_data([])


def test_the_data_of_many_layers_stay_small() -> None:
    nodes = tuple(Node(f"r{n}", "relu", (f"t{n}",), (f"t{n + 1}",)) for n in range(1500))
    graph = Graph("chain", (Tensor("t0", (1, 8, 4, 4)),), nodes, ("t1500",))
    assert len(data_text(page_data([graph]))) < 1500 * 800
    assert len(data_text(page_data(["resnet50"]))) < 600_000
