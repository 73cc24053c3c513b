"""A chain of 1,000, 10,000 and 100,000 layers: CPU time per stage, and how it grows."""

from __future__ import annotations

import time

import layerscope

LENGTHS = (1_000, 10_000, 100_000)
RUNS = 3


def chain(length: int) -> layerscope.Graph:
    b = layerscope.Builder("chain")
    x = b.input("data", (1, 8, 16, 16))
    for _ in range(length // 2):
        x = b.relu(b.conv(x, 8, 3, padding=1))
    return b.build(x)


def timed(length: int) -> tuple[float, float, float]:
    """CPU seconds to build, to analyze with totals, to print as text."""
    start = time.process_time()
    graph = chain(length)
    built = time.process_time()
    report = layerscope.analyze(graph)
    assert report.totals.macs == length // 2 * 8 * 8 * 9 * 256
    analyzed = time.process_time()
    report.to_text(width=100)
    return built - start, analyzed - built, time.process_time() - analyzed


def main() -> None:
    print(f"{'layers':>8}{'build s':>10}{'analyze s':>11}{'both':>8}{'× before':>10}{'text s':>8}")
    before = 0.0
    for length in LENGTHS:
        runs = [timed(length) for _ in range(RUNS)]
        build, analyze, text = (min(times) for times in zip(*runs, strict=True))
        both = build + analyze
        ratio = f"{both / before:>10.1f}" if before else f"{'':>10}"
        print(f"{length:>8,}{build:>10.3f}{analyze:>11.3f}{both:>8.3f}{ratio}{text:>8.2f}")
        before = both


if __name__ == "__main__":
    main()
