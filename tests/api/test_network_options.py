"""Options for a network that contradict each other, or that have no effect on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope import analyze, compare, fit, load
from layerscope.api.options import APPLIES_TO, REFUSED_BY_READER
from layerscope.cli import run
from layerscope.errors import UsageError
from tests.formats.network_forms import FORMS, kept_run
from tests.formats.onnx.onnx_files import model, node

Captured = pytest.CaptureFixture[str]

# How each command is called with the options of a network; NET is the network.
COMMANDS = {
    "show": ["show", "NET", "--total"],
    "compare": ["compare", "NET", "NET"],
    "explain": ["explain", "NET"],
    "check": ["check", "NET", "--max-params", "900G"],
    "measure": ["measure", "NET", "--runs", "1"],
    "predict": ["predict", "NET", "--on", "a100"],
    "plot": ["plot", "NET"],
    "export": ["export", "NET", "--to", "csv"],
}


def called(command: str, network: str, *options: str) -> list[str]:
    """The arguments of a command."""
    return [network if word == "NET" else word for word in COMMANDS[command]] + list(options)


def refused(capsys: Captured, *args: str) -> str:
    """The one line that a refused command prints."""
    capsys.readouterr()
    assert run(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err


@pytest.fixture
def opened(tmp_path: Path) -> str:
    """An ONNX file with symbolic sizes: an image and token indices."""
    path = tmp_path / "open.onnx"
    nodes = [node("y = Relu x"), node("z = Identity ids")]
    made = model(nodes, "x Nx3xHxW, ids Nxlength int64", "y, z")
    path.write_bytes(made.SerializeToString())
    return str(path)


# Contradictions: option and value of each, for a zoo network, tokens and ONNX


ON_IMAGES = [
    (["--batch", "4", "--input", "2x1x32x32"], ("batch 4", "input data=2x1x32x32")),
    (["--input", "1x32x32", "--input", "data=1x40x40"], ("input 1x32x32", "input data=1x40x40")),
]
ON_TOKENS = [
    (["--tokens", "16", "--input", "1x32"], ("tokens 16", "input input_ids=1x32")),
    (["--decode", "16", "--input", "1x32"], ("decode 16", "input input_ids=1x32")),
    (["--batch", "2", "--input", "1x32"], ("batch 2", "input input_ids=1x32")),
]
ON_ONNX = [
    (["--batch", "4", "--dim", "N=2"], ("batch 4", "dim N=2")),
    (["--batch", "4", "--input", "2x3x8x8"], ("batch 4", "input x=2x3x8x8")),
    (["--dim", "N=4", "--input", "2x3x8x8"], ("dim N=4", "input x=2x3x8x8")),
    (["--dim", "H=9", "--input", "3x8x8"], ("dim H=9", "input x=3x8x8")),
    (["--tokens", "5", "--dim", "length=6"], ("tokens 5", "dim length=6")),
    (["--tokens", "5", "--input", "ids=1x6"], ("tokens 5", "input ids=1x6")),
    (["--input", "3x8x8", "--input", "x=3x9x9"], ("input 3x8x8", "input x=3x9x9")),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("options", "named"), ON_IMAGES)
def test_contradictions_in_every_command(
    command: str, options: list[str], named: tuple[str, str], capsys: Captured
) -> None:
    said = refused(capsys, *called(command, "lenet5", *options))
    assert "cannot be combined with" in said
    assert all(each in said for each in named), said


@pytest.mark.parametrize(("options", "named"), ON_TOKENS)
def test_contradictions_on_tokens(
    options: list[str], named: tuple[str, str], capsys: Captured
) -> None:
    said = refused(capsys, "show", "gpt2", "--total", *options)
    assert all(each in said for each in named), said


@pytest.mark.parametrize(("options", "named"), ON_ONNX)
def test_contradictions_in_an_onnx_file(
    options: list[str], named: tuple[str, str], opened: str, capsys: Captured
) -> None:
    for command in ("show", "explain", "check"):
        said = refused(capsys, *called(command, opened, *options))
        assert all(each in said for each in named), said


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("lenet5", ["--batch", "2", "--input", "2x1x32x32"]),
        ("lenet5", ["--batch", "2", "--input", "1x32x32"]),
        ("lenet5", ["--input", "1x32x32", "--input", "data=1x32x32"]),
        ("gpt2", ["--tokens", "7", "--input", "1x7"]),
        ("gpt2", ["--decode", "7", "--input", "1x1"]),
        ("open", ["--batch", "2", "--dim", "N=2", "--input", "2x3x8x8", "--dim", "H=8"]),
        ("open", ["--tokens", "5", "--dim", "length=5", "--input", "ids=1x5"]),
    ],
)
def test_equal_values_are_accepted(
    network: str, options: list[str], opened: str, capsys: Captured
) -> None:
    name = opened if network == "open" else network
    assert run(["show", name, "--total", *options]) == 0, capsys.readouterr().err


def test_a_sum_of_symbols(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    made = model([node("y = Relu x")], "x NxSUM", "y")
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "past + length"
    path.write_bytes(made.SerializeToString())
    dims = {"past": 3, "length": 4}
    assert analyze(str(path), dims=dims, input=(1, 7)).inputs[0].shape == (1, 7)
    with pytest.raises(UsageError, match=r"dim past=3 and dim length=4 .* past \+ length is 9"):
        analyze(str(path), dims=dims, input=(1, 9))


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (analyze, {"input": (2, 1, 32, 32), "batch": 4}),
        (analyze, {"input": "2x1x32x32", "batch": 4}),
        (analyze, {"input": {"data": (2, 1, 32, 32)}, "batch": 4}),
        (load, {"inputs": {"": (2, 1, 32, 32)}, "batch": 4}),
        (layerscope.explain, {"input": (2, 1, 32, 32), "batch": 4}),
        (layerscope.measure, {"input": (2, 1, 32, 32), "batch": 4}),
        (layerscope.predict, {"input": (2, 1, 32, 32), "batch": 4, "on": "a100"}),
    ],
)
def test_contradictions_in_python(call: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="batch 4 cannot be combined with input data=2x1x32x32"):
        call("lenet5", **options)


def test_a_graph_is_checked_as_well() -> None:
    with pytest.raises(UsageError, match="batch 4 cannot be combined"):
        analyze(load("lenet5"), input=(2, 1, 32, 32), batch=4)


def test_fit_tries_batches_beside_an_input_with_a_batch() -> None:
    room = analyze("lenet5", batch=5).totals
    memory = room.param_bytes + room.peak_activation_bytes
    assert fit("lenet5", memory, input=(1, 1, 32, 32)).batch == 5


def test_a_repeated_option_with_another_value(capsys: Captured) -> None:
    said = refused(capsys, "show", "lenet5", "--batch", "4", "-b", "2", "--total")
    assert "--batch 4 cannot be combined with --batch 2" in said
    assert run(["show", "lenet5", "--batch", "4", "-b", "4", "--total"]) == 0
    assert run(["show", "lenet5", "--total", "--total"]) == 0
    assert "cannot be combined with" in refused(capsys, "show", "lenet5", "--json", "--as", "csv")
    assert "cannot be combined with" in refused(capsys, "show", "lenet5", "--as", "csv", "--json")
    assert run(["show", "lenet5", "--json", "--as", "json"]) == 0
    assert run(["show", "lenet5", "--batch"]) == 2
    assert "requires an argument" in capsys.readouterr().err


# Options without an effect


VALUES = {
    "phase": "train", "proposals": "5", "weights": "WEIGHTS", "keep_going": None, "dims": "n=2",
}  # fmt: skip
NETWORKS = [name for name, form in FORMS.items() if not form.torch]


def given(option: str, weights: str) -> list[str]:
    """An option of readers on the command line."""
    name = "--dim" if option == "dims" else f"--{option.replace('_', '-')}"
    value = VALUES[option]
    return [name] if value is None else [name, value.replace("WEIGHTS", weights)]


def test_every_option_of_readers_has_a_value() -> None:
    from layerscope.formats import ReadOptions

    assert VALUES.keys() == APPLIES_TO.keys()
    assert {*ReadOptions.__struct_fields__} == {*APPLIES_TO, "inputs", "batch"}


@pytest.mark.parametrize("form", NETWORKS)
@pytest.mark.parametrize("option", APPLIES_TO)
def test_an_option_applies_or_is_refused(
    option: str, form: str, tmp_path: Path, capsys: Captured
) -> None:
    from layerscope.formats import looks_like_a_file, recognise_file

    network = FORMS[form].make(tmp_path)
    weights = tmp_path / "other.caffemodel"
    weights.write_bytes(b"")
    found = recognise_file(network) if looks_like_a_file(network) else None
    kind = "" if found is None or found.format is None else found.format.name
    line = ["show", network, "--total", *given(option, str(weights))]
    if kind in REFUSED_BY_READER.get(option, ()):
        assert run(line) in (2, 3)
    elif kind in APPLIES_TO[option]:
        run(line)
        assert "has no effect" not in capsys.readouterr().err
    else:
        assert f"{option} has no effect: " in refused(capsys, *line)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_without_an_effect_in_every_command(
    command: str, opened: str, capsys: Captured
) -> None:
    for network in ("lenet5", opened):
        for option in ("--phase", "test"), ("--proposals", "300"), ("--keep-going",):
            assert " has no effect: " in refused(capsys, *called(command, network, *option))


@pytest.mark.parametrize("option", APPLIES_TO)
def test_saved_results_take_no_option_of_readers(
    option: str, tmp_path: Path, capsys: Captured
) -> None:
    report = str(tmp_path / "report.json")
    assert run(["show", "lenet5", "-o", report]) == 0
    saved = kept_run(tmp_path)
    weights = tmp_path / "other.caffemodel"
    weights.write_bytes(b"")
    for path in (report, saved):
        for command in ("show", "plot", "compare"):
            line = [word for word in called(command, path) if word != "--total"]
            assert "does not apply" in refused(capsys, *line, *given(option, str(weights)))


def test_options_without_an_effect_in_python(opened: str) -> None:
    for network in ("lenet5", opened):
        with pytest.raises(UsageError, match="keep_going has no effect"):
            load(network, keep_going=True)
        with pytest.raises(UsageError, match="phase has no effect"):
            analyze(network, phase="test")
        assert analyze(network, keep_going=False, weights=None).layers


def test_a_batch_needs_an_input(tmp_path: Path, capsys: Captured) -> None:
    form = next(name for name in NETWORKS if FORMS[name].arrays_only)
    network = FORMS[form].make(tmp_path)
    assert "batch has no effect" in refused(capsys, "show", network, "--batch", "2")
    assert "input 3x8x8 has no effect" in refused(capsys, "show", network, "--input", "3x8x8")


def test_load_binds_a_file(tmp_path: Path) -> None:
    network = FORMS[next(name for name in NETWORKS if "prototxt" in name)].make(tmp_path)
    assert load(network, batch=3).inputs[0].shape[:1] == (3,)  # type: ignore[index]


# Comparisons with saved reports


def test_a_saved_report_cannot_be_changed(tmp_path: Path, capsys: Captured) -> None:
    path = str(tmp_path / "saved.json")
    assert run(["show", "lenet5", "-o", path]) == 0
    for options, own in (
        (["--batch", "2"], "batch 1"), (["--dtype", "fp16"], "dtype fp32"),
        (["--input", "1x40x40"], "input data=1x1x32x32"),
    ):  # fmt: skip
        for networks in ([path, "lenet5"], ["lenet5", path]):
            said = refused(capsys, "compare", *networks, *options)
            assert f"does not apply to {path}" in said
            assert own in said
    same = ["--batch", "1", "--dtype", "fp32", "--input", "1x32x32"]
    assert run(["compare", path, "lenet5", *same]) == 0


def test_lengths_of_a_saved_report_cannot_be_changed(tmp_path: Path) -> None:
    read, step = str(tmp_path / "read.json"), str(tmp_path / "step.json")
    Path(read).write_text(analyze("gpt2", tokens=8).to_json(), encoding="utf-8")
    Path(step).write_text(analyze("gpt2", decode=3).to_json(), encoding="utf-8")
    assert compare(read, "gpt2", tokens=8, batch=1).equal
    assert compare(step, "gpt2", decode=3).equal
    wrong: list[tuple[str, dict[str, Any]]] = [
        (read, {"tokens": 9}), (read, {"decode": 3}), (step, {"decode": 4}), (step, {"tokens": 1}),
        (read, {"in_place": True}),
    ]  # fmt: skip
    for path, options in wrong:
        with pytest.raises(UsageError, match=r"does not apply to .*json, which is compared as it"):
            compare(path, "gpt2", **options)


def test_times_of_a_comparison_are_predicted_in_one_dtype(tmp_path: Path) -> None:
    whole = compare(analyze("lenet5"), "lenet5", on="a100", dtype="fp32")
    assert [" fp32, " in time.source for time in whole.times if time] == [True, True]
    half = compare(analyze("lenet5"), "lenet5", on="a100")
    assert [" fp16, " in time.source for time in half.times if time] == [True, True]
    report = analyze("lenet5", dtype="bf16")
    with pytest.raises(UsageError, match=r"bf16 for lenet5 and fp16 for lenet5.*--dtype bf16"):
        compare(report, "lenet5", on="a100")
    both = compare(report, "lenet5", on="a100", dtype="bf16")
    assert [" bf16, " in time.source for time in both.times if time] == [True, True]
    with pytest.raises(UsageError, match="write the reports again with one --dtype"):
        compare(report, analyze("lenet5", dtype="fp16"), on="a100")
