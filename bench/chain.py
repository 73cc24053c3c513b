"""Chains of 100 to 200,000 layers: CPU time per stage, how it grows, and peak memory.

    python bench/chain.py [--json FILE] [--lengths 1000,100000]

Each length runs in a process of its own; times are the best of several.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

from saving import save  # the folder of this script is on the path

LENGTHS = (100, 1_000, 10_000, 100_000, 200_000)
RUNS = 3
MOST_TEXT_S = 1.5  # for 100,000 layers


def timed(length: int) -> tuple[float, float, float]:
    """CPU seconds to build, to analyze with totals, to print as text."""
    import layerscope

    start = time.process_time()
    b = layerscope.Builder("chain")
    x = b.input("data", (1, 8, 16, 16))
    for _ in range(length // 2):
        x = b.relu(b.conv(x, 8, 3, padding=1))
    graph = b.build(x)
    built = time.process_time()
    report = layerscope.analyze(graph)
    assert report.totals.macs == length // 2 * 8 * 8 * 9 * 256
    analyzed = time.process_time()
    report.to_text(width=100)
    return built - start, analyzed - built, time.process_time() - analyzed


def measured(length: int) -> dict[str, float]:
    runs = [timed(length) for _ in range(RUNS)]
    build, analyze, text = (min(times) for times in zip(*runs, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"layers": length, "build_s": build, "analyze_s": analyze, "text_s": text,
            "peak_mb": peak}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--one", type=int)
    told = parser.parse_args()
    if told.one:
        print(json.dumps(measured(told.one)))
        return
    print(f"{'layers':>8}{'build s':>10}{'analyze s':>11}{'both':>8}{'text s':>8}{'peak MB':>9}")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    rows = []
    for length in map(int, told.lengths.split(",")):
        command = [sys.executable, __file__, "--one", str(length)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        row = json.loads(ran.stdout)
        rows.append(row)
        both = row["build_s"] + row["analyze_s"]
        over = length == 100_000 and row["text_s"] > MOST_TEXT_S
        print(
            f"{length:>8,}{row['build_s']:>10.3f}{row['analyze_s']:>11.3f}{both:>8.3f}"
            f"{row['text_s']:>8.2f}{row['peak_mb']:>9.0f}{'  text OVER' * over}",
            flush=True,
        )
        save(told.json, {"rows": rows})


if __name__ == "__main__":
    main()
