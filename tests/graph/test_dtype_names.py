"""Dtypes by our names and by PyTorch's, wherever a dtype is given."""

from __future__ import annotations

import pytest

from layerscope import analyze, load, predict
from layerscope.cli import run
from layerscope.errors import UnknownName
from layerscope.graph import DTYPE_BITS
from layerscope.graph.dtype_names import SHORT, TORCH_NAMES, USUAL, USUAL_TORCH, dtype_name
from layerscope.graph.edits import bind

Captured = pytest.CaptureFixture[str]
PAIRS = [
    ("float16", "fp16"), ("half", "fp16"), ("torch.float16", "fp16"), ("bfloat16", "bf16"),
    ("float32", "fp32"), ("float", "fp32"), ("float64", "fp64"), ("double", "fp64"),
    ("int8", "int8"), ("float8_e4m3fn", "fp8"),
]  # fmt: skip


def test_every_name_stands_for_a_dtype() -> None:
    assert set(TORCH_NAMES.values()) <= set(DTYPE_BITS)
    assert set(SHORT.values()) <= set(TORCH_NAMES)
    assert set(USUAL) <= set(DTYPE_BITS)
    assert {dtype_name(name) for name in USUAL_TORCH} <= set(DTYPE_BITS)
    assert all(dtype_name(name) == name for name in DTYPE_BITS)


@pytest.mark.parametrize("given, ours", PAIRS)
def test_networks_take_both_names(given: str, ours: str) -> None:
    wanted = analyze("lenet5", dtype=ours)
    for found in (analyze("lenet5", dtype=given), analyze(bind(load("lenet5"), dtype=given))):
        assert found.dtype == wanted.dtype == ours
        assert found.totals == wanted.totals


COMMANDS = (
    "show lenet5 --total",
    "compare lenet5 alexnet",
    "explain lenet5",
    "check lenet5 --max-params 1",
    "export lenet5 --to csv",
    "predict lenet5 --on a100",
    "plot lenet5 --on a100",
    "show lenet5 --train adam --mixed --total",
)


@pytest.mark.parametrize("args", COMMANDS)
def test_commands_take_both_names(args: str, capsys: Captured) -> None:
    printed = {}
    for name in ("fp16", "float16", "half", "torch.float16"):
        code = run([*args.split(), "--dtype", name])
        printed[name] = (code, *capsys.readouterr())
    assert printed["fp16"][0] == (1 if args.startswith("check") else 0)
    assert set(printed.values()) == {printed["fp16"]}


def test_predictions_take_both_names() -> None:
    assert predict("lenet5", on="a100", dtype="half") == predict("lenet5", on="a100", dtype="fp16")


def test_a_wrong_name_is_refused_with_the_names_of_both(capsys: Captured) -> None:
    for args in (["show", "lenet5"], ["plot", "lenet5", "--on", "a100"], ["measure", "lenet5"]):
        assert run([*args, "--dtype", "foo"]) == 2
        said = capsys.readouterr().err
        for name in (*USUAL, *USUAL_TORCH):
            assert name in said
    with pytest.raises(UnknownName, match="did you mean float16"):
        analyze("lenet5", dtype="flaot16")
    with pytest.raises(UnknownName, match="did you mean bf16"):
        bind(load("lenet5"), dtype="bf61")
