"""Throughput over latency by batch size: figures of the prediction, forms, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layerscope.api.generating import predict_generation, steps_of
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.plot.log_axes import log_axis
from layerscope.plot.throughput import throughput
from layerscope.report.generation import GenerationTimes
from tests.llm.test_work import LLAMA_8B


@pytest.fixture
def llama(tmp_path: Path) -> str:
    path = tmp_path / "llama" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    return f"hf:{path}"


def swept(llama: str, tokens: int | None, decode: int | None) -> GenerationTimes:
    return predict_generation(llama, steps_of(tokens, decode, [8, 1, 64]), on="a100")


def test_dots_are_the_steps_in_the_order_of_batches(llama: str) -> None:
    found = swept(llama, None, 1024)
    spec: Any = throughput(found)
    rows = spec["data"]["values"]
    assert [row["batch"] for row in rows] == ["1", "8", "64"]
    by_batch = {f"{step.batch}": step for step in found.steps}
    for row in rows:
        step = by_batch[row["batch"]]
        assert (row["x"], row["y"]) == (step.total_s, step.tokens_per_s)
        assert (row["low"], row["high"]) == (step.low_s, step.high_s)
    assert "a100" not in json.dumps(rows)
    assert "A token after 1,024" in json.dumps(spec)


def test_both_phases_are_two_views(llama: str) -> None:
    spec: Any = throughput(swept(llama, 256, 1024))
    texts = [view["title"]["text"] for view in spec["vconcat"]]
    assert [text.partition(":")[0] for text in texts] == ["Decode", "Prefill"]


def test_vega_draws_it(llama: str) -> None:
    pytest.importorskip("vl_convert")
    svg = swept(llama, 256, 1024).plot().to_svg()
    assert svg.count(">64<") == 4  # a halo and a name in each view


@pytest.mark.parametrize("values", [(3.1, 3.2), (7.0, 7.0), (1.0, 5.0), (1e-4, 1e9), (0.9, 1.1)])
def test_an_axis_has_two_lines(values: tuple[float, float]) -> None:
    axis: Any = log_axis("y", "", values)
    low, high = axis["scale"].get("domain", values)
    assert low <= min(values) <= max(values) <= high
    ticks = [tick for tick in axis["axis"]["values"] if low <= tick <= high]
    assert len(ticks) >= (1 if low == high else 2)


@pytest.mark.parametrize("suffix", ["vl.json", "html", "svg", "png"])
def test_the_command_writes_it(llama: str, suffix: str, tmp_path: Path) -> None:
    if suffix in ("svg", "png"):
        pytest.importorskip("vl_convert")
    if suffix == "html":
        pytest.importorskip("layerscope.plot.html_page")
        if not (Path(__file__).parents[2] / "src" / "layerscope" / "web").exists():
            pytest.skip("make page has not been run")
    path = tmp_path / f"x.{suffix}"
    asked = ["plot", llama, "--of", "throughput", "--on", "h100", "--decode", "512"]
    assert run([*asked, "--batches", "1,4", "--weight-dtype", "q4_0", "-o", str(path)]) == 0
    assert path.stat().st_size > 500


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ((), "needs the configuration of a language model and a machine"),
        (("--on", "this"), "needs the configuration of a language model and a machine"),
        (("--on", "h100", "--batches", "1,x"), "--batches"),
        (("--on", "h100", "--batches", "1", "--batch", "2"), "one of them"),
        (("--on", "h100", "--input", "3x8x8"), "does not apply"),
        (("--on", "h10"), "did you mean"),
    ],
)
def test_wrong_options(
    llama: str, more: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plot", llama, "--of", "throughput", *more]) == 2
    assert word in capsys.readouterr().err


def test_other_networks_and_charts_refuse(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "lenet5", "--of", "throughput", "--on", "h100"]) == 2
    assert "language model" in capsys.readouterr().err
    assert run(["plot", "lenet5", "--batches", "1,2"]) == 2
    assert "--batches applies to --of throughput" in capsys.readouterr().err
    with pytest.raises(UsageError, match="throughput alone"):
        swept(llama, None, 8).plot("memory")
    found = swept(llama, None, 8)
    assert found.plot().spec["description"] == throughput(found)["description"]
