"""The page of all networks of a file of results: its data, the reports inside, the command."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from layerscope import analyze
from layerscope.cli import run
from layerscope.errors import MissingPage
from layerscope.export import page_file
from layerscope.sweeping.isolation import WorkerLimits
from layerscope.sweeping.pages import networks_page
from layerscope.sweeping.run import SweepRequest, sweep_into
from layerscope.sweeping.tasks import SweepOptions
from tests.export.test_page_data import HOSTILE, PAGE, Scripts

NETWORKS = ("lenet5", "alexnet", "resnet18", "nosuch")
Captured = pytest.CaptureFixture[str]
ELEMENT = re.compile(r'<script type="text/plain" id="report-(\w+)">([\w+/=]+)</script>')


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pages")
    listed, path = folder / "networks.txt", str(folder / "r.sqlite")
    listed.write_text("\n".join(NETWORKS))  # of a list, a wrong name is a row
    sweep_into(path, SweepRequest((str(listed),), (SweepOptions(),), WorkerLimits(), 2))
    return path


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(page_file, "PAGE", str(path))


def data_of(text: str) -> dict[str, Any]:
    scripts = Scripts()
    scripts.feed(text)
    found: dict[str, Any] = json.loads(scripts.data)
    return found


def reports_of(text: str) -> dict[str, Any]:
    """The data of every report inside a page, by its key."""
    found = ELEMENT.findall(text)
    return {key: json.loads(gzip.decompress(base64.b64decode(each))) for key, each in found}


def test_every_row_has_its_figures_and_report(file: str) -> None:
    text = networks_page(file)
    data, reports = data_of(text), reports_of(text)
    assert data["kind"] == "networks"
    assert [row["name"] for row in data["rows"]] == sorted(NETWORKS)
    at = [column["name"] for column in data["columns"]].index("macs")
    for row in data["rows"]:
        if row["name"] == "nosuch":
            assert row["texts"][at] == "?"
            assert "unknown network" in row["error"]
            assert row["key"] not in reports
            continue
        macs = analyze(row["name"]).totals.macs
        assert (row["values"][at], row["texts"][at]) == (macs, f"{macs:,}")
        (report,) = reports[row["key"]]["reports"]
        assert (row["has_report"], report["network"]) == (True, row["name"])
        assert report["totals"]["macs"] == macs


def test_a_view_chooses_rows_and_columns(file: str) -> None:
    data = data_of(
        networks_page(file, 0, where="macs > 1e6", sort="-macs", columns=("name", "macs"))
    )
    assert [row["name"] for row in data["rows"]] == ["resnet18", "alexnet"]
    assert [column["name"] for column in data["columns"]] == ["name", "macs"]
    assert data["notes"][0] == "2 of 4 rows"


def test_reports_stay_below_the_bound(file: str, capsys: Captured) -> None:
    whole = reports_of(networks_page(file))
    assert len(whole) == 3
    sizes = [len(each) for _, each in ELEMENT.findall(networks_page(file))]
    text = networks_page(file, sum(sizes) - 1)
    assert len(reports_of(text)) == 2
    (lacking,) = [row for row in data_of(text)["rows"] if row.get("command")]
    assert not reports_of(networks_page(file, 0))
    arguments = shlex.split(lacking["command"])[1:]
    target = Path(file).with_name("one.html")
    assert run([*arguments[:-1], str(target)]) == 0
    written = target.read_text(encoding="utf-8")
    assert [row["name"] for row in data_of(written)["rows"]] == [lacking["name"]]
    assert list(reports_of(written)) == [lacking["key"]]


def test_the_same_file_gives_the_same_page(file: str) -> None:
    assert networks_page(file) == networks_page(file)


def test_strange_names_and_rows_stay_data(file: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(Path(file).read_bytes())
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE results SET name = ? WHERE name = 'lenet5'", (HOSTILE,))
    connection.execute("UPDATE results SET json = '{' WHERE name = 'alexnet'")
    connection.execute(
        "UPDATE results SET key = ? WHERE name = 'resnet18'", ('x"></script><img src=y>',)
    )
    connection.commit()
    connection.close()
    text = networks_page(str(copy))
    scripts = Scripts()
    scripts.feed(text)
    assert "img" not in scripts.tags
    assert len(reports_of(text)) == 1
    assert {row["name"] for row in data_of(text)["rows"]} >= {"alexnet", "nosuch"}


def test_the_command_writes_the_page(file: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "all.html"
    assert run(["results", file, "-o", str(target), "--reports", "1kB"]) == 0
    assert not reports_of(target.read_text(encoding="utf-8"))
    assert run(["results", file, "--as", "html"]) == 0  # a plain table to a pipe
    assert "<table" in capsys.readouterr().out
    assert run(["results", file, "--reports", "1MB"]) == 2
    assert "--reports has an effect with -o FILE.html only" in capsys.readouterr().err
    assert run(["results", file, "-o", str(target), "--reports", "many"]) == 2
    assert run(["results", file, "--plot", "params,macs", "--reports", "1"]) == 2


def test_without_a_built_page(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_file, "PAGE", "/nowhere/page.html")
    with pytest.raises(MissingPage, match="make page"):
        networks_page(file)
