"""What measuring promises, on five networks, best of 3: attribution, overhead, mapping, memory.

Noting a time takes as long for a short operator as for a long one: most in a network of many short
ones, so one such is run at two batches. Overhead is the best of the tries; `pairs` the median over
all pairs of runs with and without it. Contention is printed beside it: on a machine that others use
too, all of it is noisier above 1.05.
"""

from __future__ import annotations

import sys
from math import inf
from statistics import median

import layerscope
from layerscope.api.timing import measure
from layerscope.engines.machine import cached_machine, measure_machine
from layerscope.report.measurement import Run, total_s
from layerscope.report.timed import threads_of

NETWORKS = (("nin-nopad", 5, 0.97, 0.05), ("vgg16", 1, 0.97, 0.05), ("resnet50", 1, 0.97, 0.05),
            ("vit_b_16", 1, 0.97, 0.05), ("mobilenet_v2", 1, 0.96, 0.06),
            ("mobilenet_v2", 8, 0.96, 0.06))  # fmt: skip
TRIES = 3


def one_to_one(report: layerscope.Report, run: Run) -> bool:
    """Every convolution is in one row, and no row has two."""
    convs = {layer.name for layer in report.layers if layer.op.startswith("conv")}
    rows = [[n for n in row.layers if n in convs] for row in run.rows if row.kind == "layer"]
    found = [name for names in rows for name in names]
    return sorted(found) == sorted(convs) and all(len(names) <= 1 for names in rows)


def main() -> None:
    machine = cached_machine() or measure_machine()
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else TRIES
    print(
        f"{'network':<16}{'attributed':>11}{'overhead':>10}{'pairs':>8}{'rows/whole':>12}"
        f"{'one to one':>12}"
        f"{'peak MB':>9}{'planned':>9}{'of GEMM':>9}{'contention':>12}"
    )
    missed = []
    for name, batch, least, most in NETWORKS:
        report = layerscope.analyze(name, batch=batch)
        runs = [measure(report.graph, runs=15).runs[0] for _ in range(tries)]
        attributed = max(run.timing.attributed or 0.0 for run in runs)
        overhead = min(run.timing.overhead or 0.0 for run in runs)
        pairs = [
            one / other
            for run in runs
            for one, other in zip(run.timing.runs_s, run.timing.unprofiled_s, strict=True)
        ]
        least_plain = min(run.timing.unprofiled_min_s or 0.0 for run in runs)
        run = min(runs, key=lambda run: run.timing.end_to_end_s or inf)
        whole = total_s(run.rows) / (run.timing.end_to_end_s or inf)
        mapped = all(one_to_one(report, each) for each in runs)
        measured = run.memory.measured_peak_bytes or 0
        planned = run.memory.predicted_peak_bytes or 0
        peak = machine.peak("fp32", threads_of(run, machine))
        rate = 2 * report.totals.macs / least_plain
        share = rate / peak.flops.best if peak else 0.0
        told = name if batch == 1 else f"{name} x{batch}"
        print(
            f"{told:<16}{attributed:>11.1%}{overhead:>10.1%}{median(pairs) - 1:>8.1%}{whole:>12.4f}"
            f"{mapped!s:>12}"
            f"{measured / 1e6:>9.3f}{planned / 1e6:>9.3f}{share:>9.0%}"
            f"{min(each.timing.contention or inf for each in runs):>12.2f}"
        )
        if attributed < least:
            missed.append(f"{told}: attributed {attributed:.1%}, expected {least:.0%}")
        if overhead > most:
            missed.append(f"{told}: overhead {overhead:.1%}, expected at most {most:.0%}")
        if not mapped or abs(whole - 1) > 0.01 or abs(measured / planned - 1) > 0.01:
            missed.append(f"{told}: mapping, sums or memory")
    print("all reached" if not missed else "\n".join(missed))


if __name__ == "__main__":
    main()
