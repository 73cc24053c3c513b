"""The page on speed says where another tool is faster or right, and which part failed."""

from __future__ import annotations

import importlib.util
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
MACHINE = {"cores": 2, "architecture": "x86_64", "python": "3.11", "layerscope": "1",
           "packages": {"torch": "2"}}  # fmt: skip


def page(**parts: Any) -> str:
    write = runpy.run_path(str(ROOT / "docs" / "performance.py"))["page"]
    text: str = write({"machine": MACHINE, "quick": True, "parts": parts})
    return text


def told(macs: int, first: float, best: float) -> dict[str, float]:
    return {"macs": macs, "first_cpu": first, "best_cpu": best}


def models(**tools: Any) -> dict[str, Any]:
    fastest = {"first_cpu": 0.4, "best_cpu": 0.2}
    ours = {"first_cpu": 0.1, "best_cpu": 0.1}
    model = {"model": "net", "macs": 100, "tools": tools, "fastest": fastest, "ours": ours}
    return {"models": [model]}


def test_a_faster_right_tool_is_bold_and_a_wrong_one_is_not() -> None:
    text = page(cases=models(
        layerscope=told(100, 0.1, 0.1), slow=told(100, 0.5, 0.4), quick=told(101, 0.05, 0.2),
        wrong=told(50, 0.01, 0.01), broken={"error": "TypeError"},
        **{"layerscope@meta": told(100, 0.09, 0.1)},
    ))  # fmt: skip
    assert "| **quick** | **1.010** |" in text
    assert "| slow | exact | 500 | 400 | 5.0 / 4.0 |" in text
    assert "| wrong | 0.500 |" in text
    assert "| broken | failed |" in text
    assert "| layerscope@meta | exact |" in text
    assert "takes 4.0 and 2.0 times as long" in text


def test_a_right_tool_is_bold_where_we_are_wrong() -> None:
    text = page(cases=models(layerscope=told(70, 0.1, 0.1), slow=told(100, 0.5, 0.4)))
    assert "| **slow** | **exact** |" in text
    assert "| layerscope | 0.700 |" in text


def test_parts_that_failed_or_are_missing() -> None:
    text = page(startup={"error": "no such file", "seconds": 1})
    assert "## Start-up\n\nIt failed: no such file" in text
    assert "## Growth" not in text
    rows = [{"layers": 100, "build_s": 0.1, "analyze_s": 0.2, "text_s": 0.3, "peak_mb": 20.0}]
    assert "| 100 | 0.100 | 0.200 | 0.30 | 20 |" in page(growth={"rows": rows})


def test_what_a_part_measured_before_it_failed_is_on_the_page() -> None:
    rows = [{"layers": 100, "build_s": 0.1, "analyze_s": 0.2, "text_s": 0.3, "peak_mb": 20.0}]
    text = page(growth={"rows": rows, "error": "MemoryError", "seconds": 1})
    assert "It failed: MemoryError\n\nMeasured before:" in text
    assert "| 100 | 0.100 | 0.200 | 0.30 | 20 |" in text


def test_peers_that_are_missing_or_fail_are_on_the_page() -> None:
    ours = {"error": "RuntimeError: no rule"}
    text = page(cases={**models(layerscope=ours, slow=told(100, 0.5, 0.4)), "missing": ["thop"]})
    assert "| layerscope | failed |" in text
    assert "| **slow** | **exact** |" in text
    assert "Not installed, so not measured: thop." in text
    row = {"tool": "layerscope", "cpu_s": 1.0, "ratio": 1.0, "other": 0, "failed": 0}
    text = page(built={"models": 3, "rows": [row], "failures": {"fvcore": "not installed"}})
    assert "| fvcore | not installed |" in text
    step = {"step": "chain against onnx-tool", "error": "ValueError: shape"}
    text = page(onnx={"against": [], "show": [], "failures": [step]})
    assert "Failed: chain against onnx-tool: ValueError: shape" in text


GROWTH = """
import json, sys
rows = [{"layers": 100, "build_s": 0.1, "analyze_s": 0.2, "text_s": 0.3, "peak_mb": 20.0}]
open(sys.argv[2], "w").write(json.dumps({"rows": rows}))
sys.exit(EXIT)
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """bench/all.py with three scripts: one misses its goal, one fails, one fails half way."""
    folder = ROOT / "bench"
    monkeypatch.syspath_prepend(folder)
    spec = importlib.util.spec_from_file_location("bench_all", folder / "all.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scripts = {"growth": GROWTH.replace("EXIT", str(module.GOAL_MISSED)),
               "startup": "raise ValueError('no clock')",
               "sweep": GROWTH.replace("EXIT", "'killed'")}  # fmt: skip
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "BENCH", tmp_path)
    monkeypatch.setattr(module, "PARTS", {name: (f"{name}.py", "", "") for name in scripts})
    return module


def results(folder: Path) -> Any:
    return json.loads((folder / "performance.json").read_text(encoding="utf-8"))


def test_a_part_that_fails_loses_no_other(bench: Any, tmp_path: Path) -> None:
    bench.PARTS.pop("sweep")
    bench.main(["--out", str(tmp_path)])
    data = results(tmp_path)
    assert data["parts"]["growth"]["rows"][0]["layers"] == 100
    assert "error" not in data["parts"]["growth"]
    assert data["parts"]["startup"]["error"] == "ValueError: no clock"
    assert "left" not in data
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "It failed: ValueError: no clock" in text
    assert "| 100 | 0.100 |" in text


def test_a_script_that_fails_half_way_keeps_its_rows_and_the_error(
    bench: Any, tmp_path: Path
) -> None:
    part = bench.run_part("sweep", False, "", tmp_path)
    assert part["error"] == "killed"
    assert part["rows"]


def test_a_stopped_run_is_resumed(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, calls = bench.run_part, []

    def stop(name: str, *more: Any) -> Any:
        calls.append(name)
        if name == "startup" and calls.count(name) == 1:
            raise KeyboardInterrupt
        return whole(name, *more)

    bench.PARTS.pop("sweep")
    monkeypatch.setattr(bench, "run_part", stop)
    with pytest.raises(KeyboardInterrupt):
        bench.main(["--quick", "--out", str(tmp_path)])
    assert results(tmp_path)["left"] == ["startup"]
    bench.main(["--resume", "--out", str(tmp_path)])
    assert calls == ["growth", "startup", "startup"]
    data = results(tmp_path)
    assert (data["quick"], sorted(data["parts"])) == (True, ["growth", "startup"])
    with pytest.raises(SystemExit, match="no stopped run"):
        bench.main(["--resume", "--out", str(tmp_path)])
