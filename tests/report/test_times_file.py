"""Times of layers from files: csv, JSON and Boda's per-call file; what is wrong is one line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope import Builder, Graph, Report, analyze
from layerscope.errors import FormatError
from layerscope.limits import TIMES_BYTES, TIMES_ROWS
from layerscope.report.given_run import Given, run_of
from layerscope.report.times_file import TimesFile, read
from tests.bounded import run_bounded

SECONDS = {"conv1": 4.65e-4, "conv1__inxp": 5.66e-5, "relu0": 0.0, 'odd, "name"': 1.0}
CSV = 'layer,seconds\nconv1,0.000465\nconv1__inxp,5.66e-05\n\nrelu0,0\n"odd, ""name""",1\n'
BODA = """net.args.runtime=0.00793677
# a comment
per_layer_time['conv1']=per_layer_time.get('conv1',0.0) + 0.000465 # tconv__out_chan_96__1
per_layer_time['conv1__inxp']=per_layer_time.get('conv1__inxp',0.0) + 5.66e-05 # xpose\x20

per_layer_time["relu0"]=0 # older versions assign
per_layer_time['odd, "name"']=1.0
net.add_nda( "data", NDA("data",1,3,8,8) ) # SOURCE img,chan,y,x
net.add_nda( "conv1_filts", NDA("conv1_filts",96,3,11,11) ) # SOURCE out_chan,in_chan,y,x
net.add_op( Convolution(name="conv1",bot_names=["data"],top_names=["conv1"],in_pad="0 0") )
net.ndas["pool"] = NDA("pool",num_img,96,27,27) # num,chan,y,x
ReLU(name="relu0",in_place=["conv1"])
"""


def small() -> Graph:
    b = Builder("small")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv1")
    return b.build(b.relu(x, name="relu0"))


@pytest.fixture(scope="module")
def report() -> Report:
    return analyze(small())


def written(tmp_path: Path, text: str | bytes, name: str = "times") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace("\n", "\r\n"),
        "\ufeff" + CSV,
        "layer , seconds\n" + CSV.partition("\n")[2],
        json.dumps(SECONDS),
        json.dumps(SECONDS, indent=2),
        BODA,
    ],
)
def test_every_form_is_recognised_by_its_content(text: str, tmp_path: Path) -> None:
    found = read(str(written(tmp_path, text)))
    assert found.seconds == SECONDS
    assert list(found.seconds) == list(SECONDS)
    assert found.runtime_s == (0.00793677 if text == BODA else None)


def test_calls_of_one_name_are_summed_as_boda_does(tmp_path: Path) -> None:
    line = "per_layer_time['conv1']=per_layer_time.get('conv1',0.0) + 0.25 # a\n"
    assert read(str(written(tmp_path, line * 3))).seconds == {"conv1": 0.75}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "empty"),
        ("\n \n", 0, "empty"),
        ("layer,seconds\n", 0, "no times"),
        ("name,time\na,1\n", 1, "heading 'name,time'; expected csv with the heading layer,seconds"),
        ("\nlayer;seconds\na;1\n", 2, "heading 'layer;seconds'"),
        ("layer,seconds,runs\na,1,2\n", 1, "heading"),
        ("layer,seconds\na,1\nb,2,3\n", 3, "3 cells"),
        ("layer,seconds\na,1\nb\n", 3, "1 cells"),
        ("layer,seconds\na,1\nb,1\n\na,1\n", 5, "'a' is there twice"),
        ("layer,seconds\na,-1\n", 2, "'a': -1: expected 0, or 1e-12 to 1e+09 seconds"),
        ("layer,seconds\na,1e-200\n", 2, "expected 0, or 1e-12"),
        ("layer,seconds\na,2e9\n", 2, "to 1e+09 seconds"),
        ("layer,seconds\na,1e300\n", 2, "expected a number"),
        ("layer,seconds\na,nan\n", 2, "expected a number"),
        ("layer,seconds\na,inf\n", 2, "expected a number"),
        ("layer,seconds\na,?\n", 2, "expected a number"),
        ("layer,seconds\na,\n", 2, "expected a number"),
        ("layer,seconds\na,1 ms\n", 2, "expected a number"),
        ("layer,seconds\na,١\n", 2, "expected a number"),
        ("layer,seconds\na," + "1" * 5000 + "\n", 2, "(5,000 characters): expected a number"),
        ("layer,seconds\n,1\n", 2, "without the name of a layer"),
        ('layer,seconds\n"a,1\n', 2, "unexpected end of data"),
        ("layer,seconds\n" + "a" * 2000 + ",1\n", 2, "NAME_CHARACTERS"),
        ('{"a": 1,\n "b": }', 2, "expected JSON"),
        ('{"a": 1,\n "b": 2,\n "a": 3}', 3, "'a' is there twice"),
        ('{"a": 1,\n "b": -2}', 2, "'b': -2: expected 0"),
        ('{"a": 1,\n "b": NaN}', 2, "expected a number"),
        ('{"a": 1,\n "b": Infinity}', 2, "expected a number"),
        ('{"a": 1,\n "b": {"c": 1}}', 2, "'b' is an object, expected seconds"),
        ('{"a": [1]}', 1, "'a' is an array, expected seconds"),
        ('{"a": "1"}', 1, "'a' is a string, expected seconds"),
        ('{"a": true}', 1, "'a' is a truth value, expected seconds"),
        ('{"a": null}', 1, "'a' is null, expected seconds"),
        ('{"a": ' + "9" * 5000 + "}", 1, "expected a number"),
        ("{}", 0, "no times"),
        ('{"a":' * 100_000, 0, "nested too deeply"),
        ("[1, 2]", 1, "heading '[1, 2]'"),
        ("per_layer_time['a']=1\nper_layer_time['a']=2\n", 2, "'a' is there twice"),
        ("per_layer_time['a']=-1\n", 1, "expected 0"),
        ("per_layer_time['a']=1; import os\n", 1, "expected per_layer_time['conv1']=0.0005"),
        ("per_layer_time['a']=1 + 1\n", 1, "expected per_layer_time['conv1']=0.0005"),
        ("per_layer_time['a']=per_layer_time.get('b',0.0) + 1\n", 1, "expected per_layer_time"),
        ("per_layer_time['a']=per_layer_time.get('a',9.0) + 1\n", 1, "expected per_layer_time"),
        ("per_layer_time={}\n", 1, "expected per_layer_time"),
        ("per_layer_time['a']=1\nimport os\n", 2, "'import os': not a line of Boda's"),
        ("net.args.runtime=0\nper_layer_time['a']=1\n", 1, "net.args.runtime 0, expected more"),
        ("net.args.runtime=1e-99\n", 1, "expected 0, or 1e-12"),
        ("net.args.runtime=1\n", 0, "no times"),
        ("num_img=x\n", 1, "expected a whole number"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_their_line(
    text: str, line: int, says: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FormatError) as caught:
        read(str(path))
    where = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(where), caught.value
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_broken_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"layer,seconds\na,1\nb\xff,1\n")
    with pytest.raises(FormatError, match=r":3: not UTF-8 at byte 19"):
        read(str(path))
    with pytest.raises(FormatError, match="No such file"):
        read(str(tmp_path / "missing"))
    with pytest.raises(FormatError, match="directory"):
        read(str(tmp_path))


def test_limits_have_names(tmp_path: Path) -> None:
    rows = "".join(f"l{n},1\n" for n in range(TIMES_ROWS.most))
    path = written(tmp_path, "layer,seconds\n" + rows)
    assert len(read(str(path)).seconds) == TIMES_ROWS.most
    for text in (
        f"layer,seconds\n{rows}one,1\n",
        json.dumps(dict.fromkeys(map(str, range(TIMES_ROWS.most + 1)), 1)),
        "per_layer_time['a']=per_layer_time.get('a',0.0) + 1\n" * (TIMES_ROWS.most + 1),
    ):
        with pytest.raises(FormatError, match="the limit TIMES_ROWS is 100,000"):
            read(str(written(tmp_path, text)))
    with pytest.raises(FormatError, match="the limit TIMES_BYTES is"):
        read(str(written(tmp_path, "#" * (TIMES_BYTES.most + 1))))


def test_a_file_of_boda_is_never_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    act = "open('executed', 'w')"
    lines = (
        f"per_layer_time['a']={act}",
        f"per_layer_time[{act}]=1",
        f"net.args.runtime={act}",
        f"net.args.other={act}",
        f"net.add_op( {act} )",
        f"num_img={act}",
        f"ReLU(name={act})",
        act,
    )
    for line in lines:
        text = f"per_layer_time['b']=1\n{line}\n"
        with suppress(FormatError):
            assert read(str(written(tmp_path, text))).seconds == {"b": 1.0}
        assert not (tmp_path / "executed").exists(), line


@pytest.mark.parametrize(
    "text",
    [
        "layer,seconds\n" + "".join(f"l{n},1e-6\n" for n in range(90_000)),
        "{" + ",".join(f'"l{n}": 1e-6' for n in range(70_000)) + "}",
        "per_layer_time['" + "']=['" * 400 + " x\n",
        "net.add_nda( \"a\", NDA(\"a\"" + ",1" * 300_000 + ") ) #\n",
        "{" + '"a":[' * 150_000,
        'layer,seconds\n"' + "a" * 900_000,
        "#" * 1_000_000,
    ],
)  # fmt: skip
def test_any_file_takes_bounded_time_and_memory(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    code, _, errors = run_bounded("show", "lenet5", "--times", str(path))
    assert code in (0, 3), errors
    assert errors.count("\n") == (code != 0)


@given(st.one_of(
    st.binary(max_size=300),
    st.binary(max_size=80).map(lambda data: b"layer,seconds\n" + data),
    st.binary(max_size=80).map(lambda data: b"{" + data),
    st.text("'\"[]=(),.+01e-#aper_lytim\n ", max_size=80).map(
        lambda text: b"per_layer_time[" + text.encode()
    ),
))  # fmt: skip
def test_any_bytes_are_times_or_a_named_error(data: bytes) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with suppress(FormatError):
            found = read(file.name)
            assert found.seconds
            assert all(0 <= value <= 1e9 for value in found.seconds.values())


# -- the run of a file


def test_a_run_says_only_what_its_file_says(report: Report) -> None:
    times = TimesFile("t.csv", {"relu0": 0.1, "conv1__inxp": 0.2, "other": 0.3})
    run = run_of(times, report, Given())
    assert [(row.name, row.kind, row.time_s) for row in run.rows] == [
        ("conv1", "layer", None),
        ("relu0", "layer", 0.1),
        ("conv1__inxp", "layout", 0.2),
        ("other", "unattributed", 0.3),
    ]
    assert run.engine == "times from t.csv"
    assert (run.threads, run.fusion, run.energy, run.timers) == (None, None, None, ())
    timing = run.timing
    assert (timing.attributed_s, timing.layout_s) == (0.1, 0.2)
    unknown = (timing.end_to_end_s, timing.unattributed_s, timing.min_s, timing.contention,
               timing.spread, timing.cpu_s, timing.attributed)  # fmt: skip
    assert set(unknown) == {None}
    assert timing.runs_s == ()
    assert run.notes == ("t.csv: 1 of 3 rows match a layer; 1 of 2 layers have no time (?)",)


def test_runtime_and_power_are_those_given(report: Report) -> None:
    times = TimesFile("t", {"conv1": 0.5, "relu0": 0.5}, runtime_s=2.0)
    run = run_of(times, report, Given())
    assert (run.timing.end_to_end_s, run.timing.unattributed_s) == (2.0, 1.0)
    assert run.notes == ("t: 2 of 2 rows match a layer; every layer has a time",)
    run = run_of(times, report, Given(4.0, 3.0))
    assert run.timing.end_to_end_s == 4.0
    assert run.energy is not None
    assert (run.energy.joules, run.energy.watts) == (12.0, 3.0)
    assert run.energy.source == "assumed by --power"
    short = run_of(times, report, Given(0.5))
    assert short.notes[1:] == ("the rows add up to 1 s, more than the runtime of 0.5 s",)
    assert run_of(TimesFile("t", {"conv1": 1.0}), report, Given(None, 3.0)).energy == (
        run_of(TimesFile("t", {"relu0": 1.0}), report, Given(None, 3.0)).energy
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('net.add_nda( "data", NDA("data",5,3,8,8) ) #',
         "input data 5x3x8x8, in the network 1x3x8x8"),
        ("net.args.num_imgs=5", "batch 5, in the network 1"),
        ("num_img=5", "batch 5, in the network 1"),
    ],
)  # fmt: skip
def test_times_of_another_input_are_refused(
    line: str, says: str, report: Report, tmp_path: Path
) -> None:
    path = written(tmp_path, f"per_layer_time['conv1']=1\n{line}\n")
    with pytest.raises(FormatError) as caught:
        run_of(read(str(path)), report, Given())
    assert str(caught.value) == f"{path}:2: {says}; give --batch or --input"
