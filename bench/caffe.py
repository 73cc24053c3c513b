"""Every Caffe file of ../shared: CPU time to parse, to make a graph, to analyze."""

from __future__ import annotations

import time
from pathlib import Path

import layerscope
from layerscope.formats import options_of
from layerscope.formats.caffe.network import graph_of
from layerscope.formats.caffe.prototxt import message

FILES = sorted((Path(__file__).parents[2] / "shared" / "truth").rglob("*.prototxt"))


def timed(path: str) -> tuple[float, float, float, int]:
    """CPU seconds of each stage, and the number of layers."""
    start = time.process_time()
    net = message(path)
    parsed = time.process_time()
    graph = graph_of(net, path, options_of(phase="train", keep_going=True))
    made = time.process_time()
    layerscope.analyze(graph, like="netscope")
    return parsed - start, made - parsed, time.process_time() - made, len(graph.nodes)


def main() -> None:
    totals = [0.0, 0.0, 0.0]
    print(f"{'file':<34}{'layers':>7}{'parse s':>9}{'graph s':>9}{'analyze s':>11}")
    for path in FILES:
        parse, graph, analyze, layers = timed(str(path))
        print(f"{path.name:<34}{layers:>7}{parse:>9.3f}{graph:>9.3f}{analyze:>11.3f}")
        totals = [old + new for old, new in zip(totals, (parse, graph, analyze), strict=True)]
    parse, graph, analyze = totals
    print(f"{'all':<41}{parse:>9.3f}{graph:>9.3f}{analyze:>11.3f}  together {sum(totals):.2f} s")


if __name__ == "__main__":
    main()
