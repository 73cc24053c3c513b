"""Options of `show` for language models, on a GGUF file, which needs no PyTorch."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from layerscope.cli import run
from tests.formats.stored_files import gguf
from tests.llm.test_gguf_config import METADATA, _arrays


@pytest.fixture
def path(tmp_path: Path) -> str:
    return gguf(tmp_path / "net.gguf", _arrays(True), METADATA)


def _shown(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["show", *words]) == 0
    return " ".join(out.getvalue().split())


def _refused(*words: str) -> str:
    err = io.StringIO()
    with redirect_stderr(err):
        assert run(["show", *words]) == 2
    return err.getvalue()


def test_cache_memory_and_fit(path: str) -> None:
    text = _shown(path, "--total", "--runtime", "llama.cpp", "--decode", "300", "--fit", "1MB")
    assert "as llama.cpp allocates it: 131 kB (131,072 bytes) = 2 layers of full" in text
    assert "The mathematics needs 76.8 kB (76,800 bytes) of it." in text
    assert "in the types of the file" in text
    assert "batch longest context weights cache activations workspace memory" in text


def test_fit_alone_has_batch_context_and_the_table(path: str) -> None:
    text = _shown(path, "--total", "--decode", "300", "--fit", "1MB")
    assert "Batch 12 is the largest in 1.00 MB at 300 tokens: 971 kB" in text
    assert "A context of 3,737 is the largest in 1.00 MB at batch 1: 1.00 MB" in text
    assert " 2 1,867 42.6 kB 956 kB 256 B 800 B 1.00 MB" in text
    table = _shown(path, "--decode", "300", "--fit", "1MB", "--as", "markdown")
    assert "| 2 | 1,867 | 42.6 kB | 956 kB | 256 B | 800 B | 1.00 MB |" in table


def test_fit_of_a_training_step_is_the_largest_batch() -> None:
    text = _shown("lenet5", "--total", "--train", "sgd", "--fit", "1GB")
    assert "longest context" not in text


@pytest.mark.parametrize("words", [["--runtime", "vllm"], ["--cache-dtype", "fp8"]])
def test_memory_in_use_is_not_that_of_training(path: str, words: list[str]) -> None:
    assert "cannot be combined with --train" in _refused(path, "--train", "adam", *words)


def test_formats_of_keys_and_values(path: str) -> None:
    text = _shown(path, "--total", "--cache-dtype", "q8_0,q4_0", "--decode", "256")
    assert "in q8_0/q4_0, as it is needed: 26.6 kB (26,624 bytes)" in text


@pytest.mark.parametrize(
    "words, message",
    [
        (["--runtime", "llamacpp"], "unknown runtime 'llamacpp'; did you mean llama.cpp"),
        (["--runtime", "vllm", "--as", "csv"], "--runtime cannot be combined with --as csv"),
        (["--weight-dtype", "q4_0"], "has the types of its weights"),
        (["--cache-dtype", "q4_k_m"], "a file of several types"),
        (["--cache-dtype", "f99"], "unknown format 'f99'"),
    ],
)
def test_wrong_options_are_refused(path: str, words: list[str], message: str) -> None:
    assert message in _refused(path, *words)


def test_other_networks_have_no_cache() -> None:
    assert "needs a language model, as hf:" in _refused("lenet5", "--cache-dtype", "fp8")


def test_json_has_what_the_sentences_say(path: str) -> None:
    words = ("--runtime", "llama.cpp", "--decode", "300", "--fit", "1MB", "--as", "json")
    shown = json.loads(_shown(path, *words))
    found = shown["deployment"]
    assert found == json.loads(_shown(path, *words, "--total"))["deployment"]
    assert (found["runtime"], found["weight_format"]) == ("llama.cpp", "the types of the file")
    assert found["params"] == shown["totals"]["params"]
    assert set(found["active_params"].values()) == {found["params"], found["params"] - 6400}
    cache, memory, fit = found["cache"], found["memory"], found["fit"]
    assert (cache["bytes"], cache["needed_bytes"]) == (131_072, 76_800)
    assert cache["bytes"] == sum(
        layer[name] for layer in cache["layers"] for name in layer if name.endswith("_bytes")
    )
    assert [layer["kind"] for layer in cache["layers"]] == ["full", "full"]
    assert cache["bytes_per_token"] == 2 * 2 * 32 * 2
    assert memory["weights"] == shown["totals"]["param_bytes"]
    total = memory.pop("total")
    assert total == sum(memory.values())
    assert fit["memory_bytes"] == 10**6
    assert fit["contexts"][0] == {"batch": 1, "tokens": fit["longest_context"]}
    assert fit["longest_context"] > 300
    assert found["attention"] == {"all_macs": 2 * 2 * 64 * 301, "needed_macs": 2 * 2 * 64 * 301}


def test_json_without_the_options_has_no_deployment(path: str) -> None:
    assert json.loads(_shown(path, "--as", "json"))["deployment"] is None


@pytest.mark.parametrize("more", [[], ["--as", "json"], ["--fit", "1GB"]])
def test_other_tables_do_not_import_language_models(more: list[str]) -> None:
    code = (
        "import sys; from layerscope.cli import run; "
        f"assert run(['show', 'lenet5', *{more!r}]) == 0; "
        "print([name for name in sys.modules if name.startswith('layerscope.llm')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


def test_a_report_with_a_deployment_is_read_again(path: str, tmp_path: Path) -> None:
    saved = tmp_path / "net.json"
    _shown(path, "--runtime", "vllm", "-o", str(saved))
    assert _shown(str(saved), "--total") == _shown(path, "--total")


@pytest.mark.parametrize(
    ("option", "key"), [(("--fit", "2GB"), "fit"), (("--train", "adam"), "training")]
)
def test_totals_have_the_memory_that_is_asked_for(
    option: tuple[str, str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["show", "lenet5", *option, "--as", "json"]
    assert run(words) == 0
    whole = json.loads(capsys.readouterr().out)
    assert run([*words, "--total"]) == 0
    totals = json.loads(capsys.readouterr().out)
    assert totals[key] == whole[key] is not None
