"""Reductions over axes."""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from layerscope.lower.draft import Site, Writer


def _axes(s: Site) -> list[int]:
    a: Reduce = s.attributes or Reduce()
    if a.tail:
        return list(range(a.axes[0] % s.rank, s.rank))
    return [axis % s.rank for axis in a.axes] or list(range(s.rank))


def reduction(op: str) -> Writer:
    """One operator; all axes are meant where none is named."""

    def write(s: Site) -> str:
        a: Reduce = s.attributes or Reduce()
        axes = (s.ints(*_axes(s)),) if a.axes else ()
        return s.add(op, s.x, *axes, keepdims=int(a.keep))

    return write


def place(op: str) -> Writer:
    """ONNX goes along one axis; several are put last and made one."""

    def write(s: Site) -> str:
        a: Reduce = s.attributes or Reduce()
        axes = _axes(s)
        if len(axes) == 1:
            return s.add(op, s.x, axis=axes[0], keepdims=int(a.keep))
        rest = [axis for axis in range(s.rank) if axis not in axes]
        x = s.add("Transpose", s.x, perm=[*rest, *axes])
        x = s.reshape(x, (*(s.shape[axis] for axis in rest), -1))
        y = s.add(op, x, axis=len(rest), keepdims=0)
        kept = [1 if axis in axes else size for axis, size in enumerate(s.shape)]
        return s.reshape(y, kept) if a.keep else y

    return write


WRITERS: dict[str, Writer] = {
    "reduce_sum": reduction("ReduceSum"),
    "reduce_mean": reduction("ReduceMean"),
    "reduce_max": reduction("ReduceMax"),
    "reduce_min": reduction("ReduceMin"),
    "reduce_prod": reduction("ReduceProd"),
    "reduce_l1": reduction("ReduceL1"),
    "reduce_l2": reduction("ReduceL2"),
    "reduce_sum_square": reduction("ReduceSumSquare"),
    "arg_max": place("ArgMax"),
    "arg_min": place("ArgMin"),
}
