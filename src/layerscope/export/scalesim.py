"""Topologies for SCALE-Sim: a csv of convolutions, or of matrix products (M, N, K).

Checked against scalesim-project/SCALE-Sim: README.md (both kinds of file, `-i gemm`), the reader
scalesim/topology_utils.py, and topologies/conv_nets/{mobilnet_paper,Resnet50}.csv,
topologies/GEMM_mnk/{tiny_llm,vit_s}.csv. As there, a line ends in a comma, which the reader drops.

- The reader has no padding and rounds the number of output positions up, so the input size is
  written as (positions - 1) * stride + kernel. It has no dilation either: a dilated kernel is
  written as a dense one, with the same products and a smaller input.
- It has one stride, no batch and at most two spatial axes. Other convolutions are written as a
  matrix product, as are linear layers (its files have `FC, 1, 1, 1, 1, 2048, 1000, 1,`): M rows of
  K channels under N filters of 1x1.
- The reader runs every channel separately if the name contains DP. Depthwise convolutions get such
  a name, and DP is removed from all other names. Other groups are written as one row each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layerscope.export.loop_nests import ConvLoops, LoopNest, loop_nests
from layerscope.graph.names import unique_names
from layerscope.report.types import Report

HEAD = (
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, "
    "Strides,"
)

TopologyRow = tuple[str, tuple[int, ...]]


def write(report: Report) -> str:
    """One row per convolution or product, and per group or head if there are several."""
    return _table(HEAD, [row for nest in loop_nests(report) for row in _rows(nest)])


def write_gemm(report: Report) -> str:
    """One row per product, for `-i gemm`: batch, groups and windows of any kind as M, N, K."""
    rows = [
        (name, (nest.gemm.m, nest.gemm.n, nest.gemm.k))
        for nest in loop_nests(report)
        for name in _copies(nest)
    ]
    return _table("Layer,M,N,K,", rows)


def _table(head: str, rows: Sequence[TopologyRow]) -> str:
    names = unique_names(name for name, _ in rows)
    lines = [
        f"{name}, {', '.join(map(str, sizes))},"
        for name, (_, sizes) in zip(names, rows, strict=True)
    ]
    return "\n".join([head, *lines]) + "\n"


def _rows(nest: LoopNest) -> Iterator[TopologyRow]:
    window = nest.window
    sizes: tuple[int, ...]
    if window is None or window.batch > 1 or _stride(window) == 0:
        sizes = (nest.gemm.m, 1, 1, 1, nest.gemm.k, nest.gemm.n, 1)
        yield from ((name, sizes) for name in _copies(nest))
        return
    stride = _stride(window)
    inputs = [(axis.output - 1) * stride + axis.kernel for axis in (window.y, window.x)]
    kernel = (window.y.kernel, window.x.kernel)
    if window.groups > 1 and window.in_channels == 1:
        sizes = (*inputs, *kernel, window.groups, window.out_channels, stride)
        yield f"{_name(nest.name)}_DP", sizes
        return
    sizes = (*inputs, *kernel, window.in_channels, window.out_channels, stride)
    yield from ((name, sizes) for name in _copies(nest))


def _stride(window: ConvLoops) -> int:
    """The common stride of both axes, 0 if they differ; an axis of one position has no stride."""
    strides = {axis.stride for axis in (window.y, window.x) if axis.output > 1} or {1}
    return strides.pop() if len(strides) == 1 else 0


def _copies(nest: LoopNest) -> list[str]:
    name = _name(nest.name)
    count = nest.gemm.count
    return [name] if count == 1 else [f"{name}_{n}" for n in range(count)]


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name).replace("DP", "Dp")
