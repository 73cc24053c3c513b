"""Topologies for SCALE-Sim: a csv of convolutions, or of products (M, N, K).

Checked against scalesim-project/SCALE-Sim: README.md (both kinds of file, `-i gemm`), the reader
scalesim/topology_utils.py, and topologies/conv_nets/{mobilnet_paper,Resnet50}.csv,
topologies/GEMM_mnk/{tiny_llm,vit_s}.csv. As there, a line ends in a comma, which the reader drops.

- The reader knows no padding and rounds the number of positions up, so the input is given as large
  as the windows reach: (positions - 1) * stride + kernel. Dilation it does not know either: the
  window counts as dense, with the same products and a smaller input.
- It has one stride, no batch and at most two axes: a convolution that needs more is written as the
  product it amounts to, as are linear layers (its files have `FC, 1, 1, 1, 1, 2048, 1000, 1,`): M
  rows of K channels under N filters of 1x1.
- A name with DP in it makes the reader run every channel by itself: depthwise convolutions are
  written so, and no other name keeps these two letters. Other groups it has none: a row each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layerscope.export.nests import Nest, Window, nests, unique
from layerscope.report.types import Report

HEAD = (
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, "
    "Strides,"
)

Row = tuple[str, tuple[int, ...]]


def write(report: Report) -> str:
    """A row a convolution or product; one a group or a head where there are several."""
    return _table(HEAD, [row for nest in nests(report) for row in _rows(nest)])


def write_gemm(report: Report) -> str:
    """A row a product, for `-i gemm`: batch, groups and windows of any kind as M, N, K."""
    rows = [
        (name, (nest.gemm.m, nest.gemm.n, nest.gemm.k))
        for nest in nests(report)
        for name in _copies(nest)
    ]
    return _table("Layer,M,N,K,", rows)


def _table(head: str, rows: Sequence[Row]) -> str:
    names = unique(name for name, _ in rows)
    lines = [
        f"{name}, {', '.join(map(str, sizes))},"
        for name, (_, sizes) in zip(names, rows, strict=True)
    ]
    return "\n".join([head, *lines]) + "\n"


def _rows(nest: Nest) -> Iterator[Row]:
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


def _stride(window: Window) -> int:
    """The stride of both axes, 0 where they differ; that of a single position says nothing."""
    strides = {axis.stride for axis in (window.y, window.x) if axis.output > 1} or {1}
    return strides.pop() if len(strides) == 1 else 0


def _copies(nest: Nest) -> list[str]:
    name = _name(nest.name)
    count = nest.gemm.count
    return [name] if count == 1 else [f"{name}_{n}" for n in range(count)]


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name).replace("DP", "Dp")
