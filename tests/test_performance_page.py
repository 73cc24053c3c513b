"""The page on speed says where another tool is faster or right, and which part failed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

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
    ))  # fmt: skip
    assert "| **quick** | **1.010** |" in text
    assert "| slow | exact | 500 | 400 | 5.0 / 4.0 |" in text
    assert "| wrong | 0.500 |" in text
    assert "| broken | failed |" in text
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
