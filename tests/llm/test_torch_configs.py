"""Every published configuration has an answer to each question, or a reason why not."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from layerscope.cli import run
from tests.llm.published_rows import SHARED

pytest.importorskip("torch")
pytest.importorskip("transformers")

QUESTIONS = {
    "show": ["show", "--total"],
    "decode": ["show", "--decode", "8192", "--total"],
    "fit": ["show", "--fit", "80GB", "--runtime", "vllm", "--total"],
    "predict": ["predict", "--on", "h100", "--tokens", "2048", "--decode", "8192", "--batch", "16",
                "--top", "3"],
}  # fmt: skip
REASONS = {  # by model_type: what is printed instead of an answer, for these questions
    "deepseek_ref": ({"fit"}, "model_type for caches and memory: 'deepseek_ref'"),
    "deepseek_v4": ({"fit"}, "model_type for caches and memory: 'deepseek_v4'"),
    "kimi_k3": (set(QUESTIONS), "kimi_k3 needs remote code, which is not run"),
    "step3p7": (set(QUESTIONS), "is not read: Step3p7Config of transformers expects it in"),
}
ANSWERS = {  # a figure that is no zero
    "show": r": [1-9][\d,]* params · ~?[1-9][\d,]* MACs",
    "decode": r": [1-9][\d,]* params · ~?[1-9][\d,]* MACs",
    "fit": r"Cache of 1 sequence .*: [1-9][\d.]* [kMGT]?B .*72\.0 GB \(90 % of 80\.0 GB\)",
    "predict": r"total +[1-9][\d.]* m?s .*total +[1-9][\d.]* m?s",
}
FILES = sorted((SHARED / "configs").glob("*_config.json"))
FEW = ("Qwen--Qwen3-0.6B_", "Qwen--Qwen3-VL-2B", "Kimi-K2-I", "Step-3.7-Flash_", "V4-Flash_c")


def _is_slow(path: Path) -> bool:
    return not any(name in path.name for name in FEW)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=pytest.mark.slow if _is_slow(p) else ()) for p in FILES],
)
def test_an_answer_or_a_reason(path: Path, question: str) -> None:
    words = QUESTIONS[question]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([words[0], f"hf:{path}", *words[1:]])
    questions, reason = REASONS.get(json.loads(path.read_text())["model_type"], ((), ""))
    if question in questions:
        assert code in (2, 3)
        assert reason in err.getvalue()
        assert "\n" not in err.getvalue().rstrip("\n")
    else:
        assert code == 0, err.getvalue()
        assert re.search(ANSWERS[question], " ".join(out.getvalue().split()))
