"""`show` with `--tokens` and `--decode` together: the accounts of both, in one output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layerscope.api.networks import analyze
from layerscope.cli import run
from layerscope.report.numbers import exact_text

NETWORK, TOKENS, PAST = "gpt2", 12, 30
BOTH = ["show", NETWORK, "--tokens", str(TOKENS), "--decode", str(PAST)]


@pytest.fixture(scope="module")
def macs() -> tuple[int, int]:
    prefill, decode = analyze(NETWORK, tokens=TOKENS), analyze(NETWORK, decode=PAST)
    return prefill.total_macs, decode.total_macs


@pytest.mark.parametrize("more", [["--depth", "1"], ["--total"], ["--as", "markdown"]])
def test_two_tables(
    more: list[str], macs: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*BOTH, *more]) == 0
    prefill, decode = capsys.readouterr().out.split("Decode: one token after 30 in the cache\n")
    assert prefill.startswith(("Prefill: 12 tokens at once\n", "## Prefill: 12 tokens at once\n"))
    assert exact_text(macs[0]) in prefill
    assert exact_text(macs[1]) not in prefill
    assert exact_text(macs[1]) in decode


@pytest.mark.parametrize("more", [[], ["--total"]])
def test_two_members_of_json(
    more: list[str], macs: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*BOTH, "--as", "json", *more]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["kind", "schema", "prefill", "decode"]
    for name, count in zip(("prefill", "decode"), macs, strict=True):
        assert found[name].get("totals", found[name])["macs"] == count


def test_what_it_writes_is_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "both.json"
    assert run([*BOTH, "--total", "--as", "json", "-o", str(path)]) == 0
    assert run(["show", str(path)]) == 2
    assert "cannot be read back" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*BOTH, "--as", "csv"], "cannot be combined with --as csv"),
        ([*BOTH, "--as", "netscope"], "cannot be combined with --as netscope"),
        ([*BOTH, "--runtime", "0.1"], "cannot be combined with times"),
        (["show", "lenet5", "--tokens", "4", "--decode", "4"], "takes no tokens"),
        ([*BOTH, "--train", "sgd"], "--train cannot be combined with --decode"),
    ],
)
def test_wrong_combinations_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) in (2, 3)
    assert message in capsys.readouterr().err
