"""Reductions over axes."""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from layerscope.lower.builder import Emitter, NodeEmitter


def _axes(node: NodeEmitter) -> list[int]:
    a: Reduce = node.attributes or Reduce()
    if a.tail:
        return list(range(a.axes[0] % node.rank, node.rank))
    return [axis % node.rank for axis in a.axes] or list(range(node.rank))


def reduction(op: str) -> Emitter:
    """Emitter for one operator; without axes it reduces all."""

    def emit(node: NodeEmitter) -> str:
        a: Reduce = node.attributes or Reduce()
        axes = (node.ints(*_axes(node)),) if a.axes else ()
        return node.add(op, node.x, *axes, keepdims=int(a.keep))

    return emit


def arg_extreme(op: str) -> Emitter:
    """Emitter for ArgMax or ArgMin; several axes are moved to the end and flattened into one."""

    def emit(node: NodeEmitter) -> str:
        a: Reduce = node.attributes or Reduce()
        axes = _axes(node)
        if len(axes) == 1:
            return node.add(op, node.x, axis=axes[0], keepdims=int(a.keep))
        rest = [axis for axis in range(node.rank) if axis not in axes]
        x = node.add("Transpose", node.x, perm=[*rest, *axes])
        x = node.reshape(x, (*(node.shape[axis] for axis in rest), -1))
        y = node.add(op, x, axis=len(rest), keepdims=0)
        kept = [1 if axis in axes else size for axis, size in enumerate(node.shape)]
        return node.reshape(y, kept) if a.keep else y

    return emit


def variance(node: NodeEmitter) -> str:
    a: Reduce = node.attributes or Reduce()
    axes = node.ints(*_axes(node))
    centred = node.add("Sub", node.x, node.add("ReduceMean", node.x, axes, keepdims=1, part="mean"))
    return node.add("ReduceMean", node.add("Mul", centred, centred), axes, keepdims=int(a.keep))


def reduce_bool(op: str) -> Emitter:
    """Emitter for a reduction of booleans as the integers 1 and 0."""

    def emit(node: NodeEmitter) -> str:
        a: Reduce = node.attributes or Reduce()
        y = node.add(op, node.operand(0, "int32"), node.ints(*_axes(node)), keepdims=int(a.keep))
        return node.cast(y, "bool")

    return emit


EMITTERS: dict[str, Emitter] = {
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
    "reduce_std": lambda node: node.add("Sqrt", variance(node)),
    "reduce_any": reduce_bool("ReduceMax"),
    "reduce_all": reduce_bool("ReduceMin"),
    "arg_max": arg_extreme("ArgMax"),
    "arg_min": arg_extreme("ArgMin"),
}
