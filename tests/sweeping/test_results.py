"""Rows of a file of results: conditions, order, columns and forms."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from layerscope import sweep
from layerscope.errors import LayerscopeError, UsageError
from layerscope.report.sweep_results import SweepResults
from layerscope.sweeping.isolation import WorkerLimits
from layerscope.sweeping.results import results
from layerscope.sweeping.run import SweepRequest, sweep_into
from layerscope.sweeping.tasks import SweepOptions

NETWORKS = ("lenet5", "alexnet", "vgg11", "resnet18", "nosuch")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("results")
    listed, path = folder / "networks.txt", str(folder / "r.sqlite")
    listed.write_text("\n".join(NETWORKS))  # of a list, a wrong name is a row
    sweep_into(path, SweepRequest((str(listed),), (SweepOptions(),), WorkerLimits(), 2))
    return path


def test_all_rows_by_name(file: str) -> None:
    assert results(file).column("name") == sorted(NETWORKS)


def test_a_condition_an_order_and_columns(file: str) -> None:
    found = results(file, where="macs < 2e9", sort="-macs", columns=("name", "macs"))
    assert found.column("name") == ["resnet18", "alexnet", "lenet5"]
    assert results(file, where="status = 'error'").column("name") == ["nosuch"]
    assert results(file, sort="-params", top=1).column("name") == ["vgg11"]


@pytest.mark.parametrize("top", [0, -1])
def test_the_number_of_rows_is_at_least_one(file: str, top: int) -> None:
    with pytest.raises(UsageError, match=f"--top {top}, expected at least 1"):
        results(file, top=top)


def test_a_narrow_terminal_keeps_the_time(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    timed = [SweepOptions(batch=batch, on="a100") for batch in (1, 2)]
    sweep("lenet5", "alexnet", output=path, options=timed)
    table = results(path).to_text(width=60)
    assert "time" in table.splitlines()[0].split()
    assert max(map(len, table.splitlines())) <= 60


def test_unknown_figures_come_last_and_are_shown_as_unknown(file: str) -> None:
    found = results(file, sort="macs", columns=("name", "macs"))
    assert found.rows[-1] == ("nosuch", None)
    assert found.to_text().splitlines()[-3].split() == ["nosuch", "?"]


@pytest.mark.parametrize(
    "where",
    [
        "macs <", "nosuch < 1", "1; DROP TABLE results", "1) UNION SELECT 1 --",
        "load_extension('x')", "writefile('a', 'b')",
        "1) OR (SELECT 1 FROM (DELETE FROM results",
    ],
)  # fmt: skip
def test_one_expression_and_no_more(file: str, where: str) -> None:
    with pytest.raises(UsageError, match="--where"):
        results(file, where=where)
    assert len(results(file).rows) == len(NETWORKS)


def test_a_condition_that_never_ends(file: str) -> None:
    endless = (
        "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)"
    )
    with pytest.raises(UsageError, match="it takes too long"):
        results(file, where=endless)


def test_forms(file: str) -> None:
    found = results(file, where="status = 'ok'", columns=("name", "params", "peak"))
    table = list(csv.reader(io.StringIO(found.to_csv())))
    assert table[0] == ["name", "params", "peak"]
    assert table[1] == ["alexnet", "61100840", "1548800"]
    assert json.loads(found.to_json())["rows"][0] == {
        "name": "alexnet", "params": 61100840, "peak": 1548800, "lower_bounds": [],
    }  # fmt: skip
    assert "61,100,840" in found.to_markdown()
    assert list(found.to_pandas()["name"]) == ["alexnet", "lenet5", "resnet18", "vgg11"]


def test_options_are_printed_as_words_and_kept_as_json_in_csv() -> None:
    words = {
        '{"batch":8}': "batch 8", '{"measure":true,"on":"a100"}': "measure, on a100",
        '{"input":["3x8x8"]}': "input 3x8x8", "{": "{",
    }  # fmt: skip
    rows = tuple(("net", options) for options in words)
    bounds = (frozenset[str](),) * len(rows)
    found = SweepResults("x.sqlite", ("name", "options"), rows, bounds, len(rows))
    text = found.to_text()
    assert all(each in text for each in words.values())
    assert '"batch"' not in text
    table = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["options"] for row in table[:-1]] == [*words]  # the last line is a comment


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with pytest.raises(LayerscopeError, match="no such file"):
        results(path)
    path.write_text("text")
    with pytest.raises(LayerscopeError, match="expected a file of `layerscope sweep`"):
        results(path)


def test_unknown_columns_are_refused(file: str) -> None:
    with pytest.raises(UsageError, match="did you mean macs"):
        results(file, columns=("mac",))
