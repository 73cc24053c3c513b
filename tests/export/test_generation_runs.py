"""What is printed under measured steps: cache, contention, failures."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.report.generation_runs import GenerationRuns, MeasuredStep

STEP = MeasuredStep(
    engine="torch", engine_version="2.13", phase="decode", tokens=1, past=128, batch=4,
    runs_s=(0.2, 0.1, 0.4), contention=1.0, cache_bytes=4096, expected_cache_bytes=4096,
)  # fmt: skip
RUNS = GenerationRuns(
    network="llama", machine="a CPU", params=1_234_567, dtype="fp32", threads=2, steps=(STEP,),
    version="0.1.0", measured="2026-01-01T00:00:00+00:00", failures=("onnxruntime: refused",),
)  # fmt: skip


def test_figures_are_medians() -> None:
    assert (STEP.median_s, STEP.min_s, STEP.max_s) == (0.2, 0.1, 0.4)
    assert STEP.tokens_per_s == 4 / 0.2
    text = RUNS.to_text()
    assert "200 ms" in text
    assert "1,234,567 random weights in fp32" in text
    assert "onnxruntime: refused" in text
    assert "contention" not in text


def test_a_cache_that_differs_is_said() -> None:
    assert "(4,096 bytes), as counted." in RUNS.to_text()
    other = replace(RUNS, steps=(replace(STEP, expected_cache_bytes=4000),))
    assert "4,000 bytes were counted" in other.to_text()
    unknown = replace(RUNS, steps=(replace(STEP, cache_bytes=None),))
    assert "The cache" not in unknown.to_text()


def test_a_loaded_machine_is_said() -> None:
    busy = replace(RUNS, steps=(replace(STEP, contention=1.7),))
    assert "contention 1.70; its times are too long" in busy.to_text()
    assert ",?," in replace(RUNS, steps=(replace(STEP, contention=None),)).to_csv()


def test_narrow_output_fits() -> None:
    table = next(line for line in RUNS.to_text(width=60).splitlines() if "decode" in line)
    assert len(table) <= 60
