"""Times of language models by `predict`: prefill, decode and batch sizes, in every form."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from layerscope.api.generating import predict_generation, steps_of
from layerscope.cli import run
from layerscope.errors import LayerscopeError
from layerscope.report.numbers import bytes_text
from tests.formats.stored_files import gguf
from tests.llm.test_gguf_config import METADATA, _arrays
from tests.llm.test_work import LLAMA_8B, MIXTRAL

ROOT = Path(__file__).parents[2]
FORMS = ("text", "markdown", "csv", "json", "latex", "html")


@pytest.fixture
def llama(tmp_path: Path) -> str:
    path = tmp_path / "llama" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    return f"hf:{path}"


def test_a_published_speed(llama: str) -> None:
    """llama.cpp decodes a Llama 3 8B of 4.58 GiB on an RTX 4090 at 127.7 tokens/s (tg1024)."""
    found = predict_generation(llama, steps_of(decode=512), on="rtx4090", formats=("q4_k", "f16"))
    (step,) = found.steps
    assert step.phase == "decode"
    assert step.tokens_per_s == pytest.approx(127.7, rel=0.15)
    assert step.low_s <= step.total_s <= step.high_s


def test_rows_are_the_layers(llama: str) -> None:
    prefill, decode = predict_generation(llama, steps_of(2048, 8192, [16]), on="h100").steps
    names = ["embedding", *(f"layers.{n}" for n in range(32)), "head"]
    assert [row.name for row in prefill.rows] == [row.name for row in decode.rows] == names
    assert {row.roof for row in prefill.rows[1:-1]} == {"compute"}
    assert {row.roof for row in decode.rows[1:-1]} == {"memory"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [(), ("--batches", "1,4,16"), ("--sort", "--top", "3")])
def test_every_form(
    llama: str, form: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["predict", llama, "--on", "a100", "--tokens", "256", "--decode", "1024", *more]
    assert run([*asked, "--as", form]) == 0
    out = capsys.readouterr().out
    assert "0.00 us" not in out
    if form == "json":
        found = json.loads(out)
        count = 6 if "--batches" in more else 2
        assert [step["phase"] for step in found["steps"]] == ["prefill", "decode"] * (count // 2)
        for step in found["steps"]:
            assert sum(row["time_s"] for row in step["rows"]) == pytest.approx(step["total_s"])
    if form == "csv":
        figures = [line for line in out.splitlines() if not line.startswith("#")]
        rows = list(csv.DictReader(figures))
        assert all(float(row["time_s"]) > 0 for row in rows)
        assert len(rows) == (6 if "--batches" in more else 6 if "--top" in more else 2 * 34)
    if form == "text":
        assert "llama, a prompt of 256 tokens, 1,024 tokens before; weights bf16" in out


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--batches", "1,0"), "batch 0"),
        (("--batches", "1,x"), "--batches"),
        (("--batches", "1,2", "--batch", "2"), "one of them"),
        (("--threads", "2"), "--threads does not apply"),
        (("--input", "3x8x8"), "--input does not apply"),
        (("--weight-dtype", "q9"), "unknown format"),
        (("--cache-dtype", "q9"), "unknown format"),
        (("--tokens", "0"), "0"),
    ],
)
def test_wrong_options(
    llama: str, more: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["predict", llama, "--on", "a100", *more]) == 2
    err = capsys.readouterr().err
    assert word in err
    assert err.count("\n") == 1


def test_a_file_has_the_bytes_of_its_types(tmp_path: Path) -> None:
    """All matrices are in q8_0; of the embedding a step reads one row."""
    types = {name: "f32" if "norm" in name else "q8_0" for name in _arrays(False)}
    arrays = {name: (types[name], shape) for name, (_, shape) in _arrays(False).items()}
    path = gguf(tmp_path / "net.gguf", arrays, METADATA)
    found = predict_generation(path, steps_of(decode=100), on="h100")
    (step,) = found.steps
    matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96) + 6400
    read = (matrices * 34 + 64 * 34) / 32 + (2 * 2 + 1) * 64 * 4 + 2 * 100 * 2 * 32 * 2
    assert step.floor_s == pytest.approx(read / 3350e9, rel=0.01)
    assert found.weights == "the types of the file"
    size = (matrices + 6400) * 34 // 32 + 5 * 64 * 4
    assert f"Weights take {bytes_text(size)}, and the largest cache 25.9 kB" in found.notes[-1]


def test_a_file_has_its_own_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gguf(tmp_path / "net.gguf", _arrays(False), METADATA)
    assert run(["predict", path, "--on", "h100", "--weight-dtype", "q4_0"]) == 2
    assert "has the types of its weights" in capsys.readouterr().err


def test_options_of_language_models_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (("--batches", "1,2"), ("--weight-dtype", "q4_0"), ("--cache-dtype", "f16")):
        assert run(["predict", "resnet50", "--on", "a100", *more]) == 2
        assert f"{more[0]} applies to the configuration" in capsys.readouterr().err


def test_experts_cost_more_in_a_batch(tmp_path: Path) -> None:
    """Reading more experts makes a step of a batch slower than one of a dense model."""
    times = []
    for config in (LLAMA_8B, MIXTRAL):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        one, many = predict_generation(f"hf:{path}", steps_of(None, 100, [1, 16]), on="h100").steps
        times.append(many.total_s / one.total_s)
    assert times[1] > 2 * times[0]


def test_wrong_arguments(llama: str) -> None:
    with pytest.raises(LayerscopeError, match="did you mean"):
        predict_generation(llama, on="rtx409")
    (step,) = predict_generation(llama, on="h100").steps
    assert (step.phase, step.tokens, step.batch) == ("prefill", 512, 1)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("llama-3.1-8b", ""), ("llama-3.1-8b", "config.json"), ("x", "llama-3.1-8b_config.json")],
)
def test_a_version_in_a_name_is_no_suffix(tmp_path: Path, folder: str, name: str) -> None:
    path = tmp_path / folder / (name or "config.json")
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    found = predict_generation(f"hf:{path if name else path.parent}", on="a100")
    assert found.network == "llama-3.1-8b"


def test_the_worked_example_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "llama-3.1-8b" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["predict", "hf:llama-3.1-8b/config.json", "--on", "rtx4090", "--decode", "8192"]
    page = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    prompt = ["--tokens", "2048", "--weight-dtype", "q4_k", "--sort", "--top", "2"]
    assert run([*words, *prompt]) == 0
    assert f"```text\n{capsys.readouterr().out}```" in page
    assert run([*words, "--batches", "1,8,64"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0]
    assert f"```text\n{table}\n```" in page
