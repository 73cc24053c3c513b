"""Reductions over axes."""

from __future__ import annotations

from layerscope.graph.attributes import CumSum, Reduce
from layerscope.lower.builder import Array, Site, Writer


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


def variance(s: Site) -> str:
    a: Reduce = s.attributes or Reduce()
    axes = s.ints(*_axes(s))
    rest = s.add("Sub", s.x, s.add("ReduceMean", s.x, axes, keepdims=1, part="mean"))
    return s.add("ReduceMean", s.add("Mul", rest, rest), axes, keepdims=int(a.keep))


def answer(op: str) -> Writer:
    """Yes and no as one and nought."""

    def write(s: Site) -> str:
        a: Reduce = s.attributes or Reduce()
        y = s.add(op, s.operand(0, "int32"), s.ints(*_axes(s)), keepdims=int(a.keep))
        return s.cast(y, "bool")

    return write


def cum_prod(s: Site) -> str:
    """Each element against all along its axis, those after it as ones, multiplied."""
    a: CumSum = s.attributes or CumSum()
    axis = a.axis % s.rank
    size = s.shape[axis]
    upto = tuple(float(j <= i) for i in range(size) for j in range(size))
    mask = s.draft.constant(Array(upto, (size, size, *[1] * (s.rank - axis - 1)), "bool"))
    rows = s.add("Unsqueeze", s.x, s.ints(axis))
    return s.add("ReduceProd", s.add("Where", mask, rows, s.number(1.0)), s.ints(axis + 1),
                 keepdims=0)  # fmt: skip


def cum_sum(s: Site) -> str:
    return s.add("CumSum", s.x, s.ints((s.attributes or CumSum()).axis))


WRITERS: dict[str, Writer] = {
    "reduce_sum": reduction("ReduceSum"),
    "reduce_mean": reduction("ReduceMean"),
    "reduce_max": reduction("ReduceMax"),
    "reduce_min": reduction("ReduceMin"),
    "reduce_prod": reduction("ReduceProd"),
    "reduce_l1": reduction("ReduceL1"),
    "reduce_l2": reduction("ReduceL2"),
    "reduce_sum_square": reduction("ReduceSumSquare"),
    "reduce_log_sum": reduction("ReduceLogSum"),
    "reduce_log_sum_exp": reduction("ReduceLogSumExp"),
    "reduce_var": variance,
    "reduce_std": lambda s: s.add("Sqrt", variance(s)),
    "reduce_any": answer("ReduceMax"),
    "reduce_all": answer("ReduceMin"),
    "cum_sum": cum_sum,
    "cum_prod": cum_prod,
    "arg_max": place("ArgMax"),
    "arg_min": place("ArgMin"),
}
