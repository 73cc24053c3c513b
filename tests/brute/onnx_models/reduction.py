"""ONNX models of reductions."""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from tests.brute.engine import Model, Writer


def reduction(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Reduce = m.attributes or Reduce()
        over = range(a.axes[0], len(m.shape)) if a.tail else a.axes
        axes = (m.ints(*over),) if over else ()
        return m.node(op, m.x, *axes, keepdims=int(a.keep))

    return write


def place(op: str) -> Writer:
    """ONNX goes along one axis; over all of them the input is made flat."""

    def write(m: Model) -> str:
        a: Reduce = m.attributes or Reduce()
        if a.axes:
            return m.node(op, m.x, axis=a.axes[0], keepdims=int(a.keep))
        flat = m.node(op, m.node("Reshape", m.x, m.ints(-1)), axis=0, keepdims=0)
        return m.node("Reshape", flat, m.ints(*(1 for _ in m.shape))) if a.keep else flat

    return write


def variance(m: Model) -> str:
    axes = (m.ints(*m.attributes.axes),) if m.attributes and m.attributes.axes else ()
    rest = m.node("Sub", m.x, m.node("ReduceMean", m.x, *axes, keepdims=1))
    keep = int(bool(m.attributes and m.attributes.keep))
    return m.node("ReduceMean", m.node("Mul", rest, rest), *axes, keepdims=keep)


MODELS: dict[str, Writer] = {
    "reduce_sum": reduction("ReduceSum"),
    "reduce_mean": reduction("ReduceMean"),
    "reduce_max": reduction("ReduceMax"),
    "reduce_min": reduction("ReduceMin"),
    "reduce_prod": reduction("ReduceProd"),
    "reduce_l1": reduction("ReduceL1"),
    "reduce_sum_square": reduction("ReduceSumSquare"),
    "reduce_l2": reduction("ReduceL2"),
    "arg_max": place("ArgMax"),
    "arg_min": place("ArgMin"),
    "reduce_log_sum": reduction("ReduceLogSum"),
    "reduce_log_sum_exp": reduction("ReduceLogSumExp"),
    "reduce_var": variance,
    "reduce_std": lambda m: m.node("Sqrt", variance(m)),
    "reduce_any": reduction("ReduceMax"),
    "reduce_all": reduction("ReduceMin"),
}
