"""How far off predictions are here: networks that no micro-benchmark is made of, measured after.

    python bench/predict.py [threads] [passes]

Calibrates if nobody has. Times are the least of repeats, as in a calibration. The median error is
over rows above 1 % of the whole.
"""

from __future__ import annotations

import sys
from math import inf
from statistics import median

from layerscope.engines.affinity import pinned
from layerscope.engines.machine import cores
from layerscope.prediction.calibration import Calibration, cached_calibration, calibrate
from layerscope.prediction.floors import Floors
from layerscope.prediction.row_times import end_to_end, row_times, run_once
from layerscope.prediction.this_machine import guesses, overhead
from layerscope.report.build import report_of
from layerscope.report.measurement import Run
from layerscope.zoo import build

DENSE = ("resnet50", "vgg16", "googlenet", "densenet121", "alexnet", "resnet18", "vit_b_16",
         "inception_v3")  # fmt: skip
LIGHT = ("mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "squeezenet1_1",
         "shufflenet_v2_x1_0", "mnasnet1_0")  # fmt: skip


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else cores()
    passes = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found = cached_calibration("onnxruntime", threads) or calibrate("onnxruntime", threads)
    print(
        f"{len(found.samples)} samples in {found.seconds:.0f} s, contention {found.contention:.2f}"
    )
    print(
        f"{'network':<20}{'ms':>9}{'predicted':>11}{'error':>8}{'per layer':>11}{'contention':>12}"
    )
    reports = {name: report_of(build(name)) for name in (*DENSE, *LIGHT)}
    runs: dict[str, list[Run]] = {name: [] for name in reports}
    with pinned(threads):
        for _ in range(passes):
            for name, kept in runs.items():
                kept.append(run_once(reports[name], "onnxruntime", threads))
    for kind, names in (("dense", DENSE), ("light", LIGHT)):
        off = [each for name in names for each in judge(name, runs[name], found)]
        print(f"{kind}: {median(off):.1%} at the median of {len(off)} layers")


def judge(name: str, kept: list[Run], found: Calibration) -> list[float]:
    """One line: the end-to-end time against the predicted one, and rows against rows."""
    truth = row_times(kept)
    report = report_of(build(name))
    rows = guesses(report, found, Floors(report, found.limits))
    whole = sum(truth.values())
    predicted = sum(row.time_s or 0.0 for row in rows) + overhead(rows, found)
    end = end_to_end(kept)
    off = []
    for key, seconds in truth.items():
        guess = sum(row.time_s or 0.0 for row in rows if set(row.layers) & set(key))
        if seconds > 0.01 * whole:
            off.append(abs(guess / seconds - 1))
    busy = min(run.timing.contention or inf for run in kept)
    print(
        f"{name:<20}{end * 1e3:>9.2f}{predicted * 1e3:>11.2f}{predicted / end - 1:>+8.1%}"
        f"{median(off):>11.1%}{busy:>12.2f}"
    )
    return off


if __name__ == "__main__":
    main()
