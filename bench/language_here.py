"""Predicted against measured steps of small language models on this machine.

    python bench/language_here.py [threads] [runs]

Models have the shapes of published ones and random weights. A step is predicted for onnxruntime by
the calibration of this machine (made if there is none), and measured with onnxruntime and with
torch, whose times have no prediction. The error is that of onnxruntime.

Where other programs took the processors (`busy` above 1), measured times are too long by about as
much: `alone` is the measured time divided by it, and its error is printed beside the other.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from layerscope.api.generating import steps_of
from layerscope.api.generating_here import measure_generation
from layerscope.api.timing import predict
from layerscope.engines.machine import cores
from layerscope.engines.measuring import MeasureRequest
from layerscope.prediction.calibration import cached_calibration, calibrate
from layerscope.report.generation_runs import MeasuredStep

PROMPT, PAST = 128, 512
MODELS = {
    "gpt2 124M": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]},
    "smollm2 135M": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576,
        "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "vocab_size": 49152, "tie_word_embeddings": True,
        "max_position_embeddings": 8192,
    },
    "pythia 410M": {
        "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 1024,
        "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "vocab_size": 50304, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    },
}  # fmt: skip


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else cores()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    found = cached_calibration("onnxruntime", threads) or calibrate("onnxruntime", threads)
    print(f"calibrated {found.measured}, contention {found.contention:.2f}; {threads} threads")
    print(f"{'model':<16}{'step':<9}{'predicted':>11}{'measured':>10}{'error':>8}{'busy':>7}"
          f"{'alone':>10}{'error':>8}{'torch':>10}{'busy':>7}")  # fmt: skip
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for name, config in MODELS.items():
            path = Path(folder) / "config.json"
            path.write_text(json.dumps(config), encoding="utf-8")
            errors += _judge(name, f"hf:{path}", threads, runs)
    for name, each in zip(("measured", "alone"), zip(*errors, strict=True), strict=True):
        print(f"{name}: median error {median(each):.1%}, worst {max(each):.1%}")


def _judge(name: str, network: str, threads: int, runs: int) -> list[tuple[float, float]]:
    request = MeasureRequest("onnxruntime,torch", threads, runs)
    measured = measure_generation(network, steps_of(PROMPT, PAST), request)
    times: dict[tuple[str, str], MeasuredStep] = {
        (step.engine, step.phase): step for step in measured.steps
    }
    for failure in measured.failures:
        print(f"{name}: {failure}")
    errors = []
    for phase, tokens, decode in (("prefill", PROMPT, None), ("decode", None, PAST)):
        guess = predict(network, threads=threads, tokens=tokens, decode=decode).total_s
        here, torch = times["onnxruntime", phase], times["torch", phase]
        alone = here.median_s / max(here.contention or 1, 1)
        error, other = guess / here.median_s - 1, guess / alone - 1
        errors.append((abs(error), abs(other)))
        print(
            f"{name:<16}{phase:<9}{guess * 1e3:>8.1f} ms{here.median_s * 1e3:>7.1f} ms"
            f"{error:>+8.1%}{here.contention or 0:>7.2f}{alone * 1e3:>7.1f} ms{other:>+8.1%}"
            f"{torch.median_s * 1e3:>7.1f} ms"
            f"{torch.contention or 0:>7.2f}"
        )
    return errors


if __name__ == "__main__":
    main()
