"""Numbers of options, budgets, the environment and the API: whole, of ASCII digits, of 63 bits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layerscope
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.limits import MOST_SIZE
from layerscope.report.quantities import NumberTooLarge, quantity, sizes, whole

Captured = pytest.CaptureFixture[str]

OPTIONS = [
    "show lenet5 --batch {}", "show lenet5 --top {}", "show lenet5 --depth {}",
    "show lenet5 --input 1x32x{}", "show lenet5 --input data=1x1x32x{}", "show lenet5 --fit {}",
    "show llama-3-8b --tokens {}", "show llama-3-8b --decode {}", "show x.onnx --dim batch={}",
    "show x.prototxt --proposals {}", "check lenet5 --max-params {}", "check lenet5 --max-peak {}",
    "check lenet5 --max-macs {}k", "explain lenet5 --figure {}", "measure lenet5 --runs {}",
    "measure lenet5 --threads {}", "measure lenet5 --power {}", "measure lenet5 --top {}",
    "predict lenet5 --top {}", "predict lenet5 --threads {}", "export lenet5 --to onnx --seed {}",
    "machine --calibrate --threads {}",
]  # fmt: skip
WRONG = [
    str(2**63), "9" * 400, "9" * 5000, "-" + "9" * 5000, "nan", "inf", "-inf", "١٢", "1e400", "²",
    "0x10", "", "1 0", "１",
]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("number", WRONG, ids=lambda text: text[:12] or "empty")
def test_wrong_numbers_of_options_are_one_line(option: str, number: str, capsys: Captured) -> None:
    assert run([word.format(number) for word in option.split(" ")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert len(err) < 400


def test_the_largest_number_is_taken_and_what_grows_is_exact(capsys: Captured) -> None:
    assert run(["show", "lenet5", "--total", "--batch", str(MOST_SIZE)]) == 0
    assert f"{MOST_SIZE * 416_520:,} MACs" in capsys.readouterr().out
    assert run(["check", "lenet5", "--max-params", str(MOST_SIZE)]) == 0


@pytest.mark.parametrize("columns", ["9" * 400, "9" * 5000, "٣٣", "nan", "-5", "1_0", "", "0"])
def test_columns_that_are_none_are_ignored(
    columns: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run(["show", "lenet5"]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["show", "lenet5"]) == 0
    assert capsys.readouterr().out == expected


BUDGETS = [
    "max-params = {}", 'max-params = "{}"', 'max-peak = "{}TB"', "max-params = 1\nbatch = {}",
    'max-params = 1\ninput = "1x32x{}"', 'max-params = 1\ninput = ["data=1x1x32x{}"]',
    "max-params = 1\nproposals = {}", "max-params = 1\ndims = {{ n = {} }}",
]  # fmt: skip


@pytest.mark.parametrize("line", BUDGETS)
@pytest.mark.parametrize("number", [str(2**63), "9" * 400, "9" * 5000, "0x" + "f" * 5000],
                         ids=["2^63", "400", "5000", "hex"])  # fmt: skip
def test_numbers_of_budgets_that_are_too_large(
    line: str, number: str, tmp_path: Path, capsys: Captured
) -> None:
    if "0x" in number and '"' in line:
        pytest.skip("texts have no hexadecimal numbers")
    file = tmp_path / "b.toml"
    file.write_text(f"[tool.layerscope.budgets.lenet5]\n{line.format(number)}\n")
    assert run(["check", "--config", str(file)]) == 3
    err = capsys.readouterr().err
    assert "2^63 - 1" in err
    assert err.count("\n") == 1
    assert len(err) < 500


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b".".join([b"a"] * 50_000) + b" = 1", "BUDGET_DEPTH = 64"),
        (b'"a" . ' * 20_000 + b"b = 1", "BUDGET_DEPTH = 64"),
        (b"# " + b"x" * (1 << 20), "BUDGET_BYTES = 262,144"),
        (b'a = "\xff"', "not UTF-8 at byte 5"),
        (b"\0", "b.toml: "),
        (b"[tool.layerscope.budgets.lenet5]\nmax-params = nan", "expected a count"),
        (b"[tool.layerscope.budgets.lenet5]\nmax-params = 1\ninput = [1]", "a list of texts"),
        (b"[tool.layerscope.budgets.lenet5]\nmax-params = 1\ndims.n = 'x'", "a whole number"),
        (b"[tool.layerscope.budgets.lenet5]\nmax-params = 1\ndims.n = 0", "at least 1"),
    ],
)
def test_damaged_files_of_budgets_are_one_line(
    data: bytes, says: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "b.toml"
    file.write_bytes(data)
    assert run(["check", "--config", str(file)]) in (2, 3)
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_line_of_dots_is_no_long_key(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    dots = "." * 301
    file.write_text(f"# {dots}\n[tool.layerscope.budgets.lenet5]\nmax-params = '1M'\n")
    assert run(["check", "--config", str(file)]) == 0


class Index:
    """What numpy has for a whole number."""

    def __index__(self) -> int:
        return 32


SHAPES: list[Any] = [
    (1, 1, 32, 32), [1, 1, 32, 32], [[1, 1, 32, 32]], "1x1x32x32", "1x32x32", (1, 32, 32),
    {"data": [1, 1, 32, 32]}, {"data": (1, 32, 32)}, {"data": "1x1x32x32"}, None,
    (1, 1, Index(), Index()), iter((1, 1, 32, 32)),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_input_takes_lists_and_texts(shape: Any) -> None:
    assert layerscope.analyze("lenet5", input=shape).totals.macs == 416_520


@pytest.mark.parametrize(
    "shape",
    [32, 1.5, [1, 1, 32.5, 32], [1, 1, 2**63, 32], [1, 1, 10**5000, 32], [1, 1, True, 32], "axb",
     [[1, 1, 32, 32], [1]], {"data": 5}, [1] * 65, "1" + "x1" * 70, [1, 1, -32, 32], b"11", {1: {}},
     {"data": [None]}],
    ids=lambda shape: str(type(shape)),
)  # fmt: skip
def test_input_that_is_no_shape(shape: Any) -> None:
    with pytest.raises(UsageError):
        layerscope.analyze("lenet5", input=shape)


@pytest.mark.parametrize("name", ["batch", "tokens", "decode"])
@pytest.mark.parametrize("value", [2**63, 10**5000, 1.5, "3", True], ids=lambda v: str(type(v)))
def test_counts_of_the_api(name: str, value: Any) -> None:
    with pytest.raises(UsageError):
        layerscope.analyze("llama-3-8b", **{name: value})


@given(st.integers())
def test_whole_numbers_are_exact_or_too_large(number: int) -> None:
    if abs(number) <= MOST_SIZE:
        assert whole(str(number), "") == number
    else:
        with pytest.raises(NumberTooLarge):
            whole(str(number), "")


@given(st.text())
def test_any_text_is_a_number_or_a_named_error(text: str) -> None:
    for read in (lambda: whole(text, ""), lambda: sizes(text, ""),
                 lambda: quantity(text, "bytes", "")):  # fmt: skip
        with suppress(UsageError):
            read()
