"""What autograd saves where an ATen operator is not the op that its nodes stand for.

A converter may write one operator as several nodes, or several operators as the same op. The
bytes kept are those of the operator.
"""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from layerscope.graph.types import elements
from layerscope.ops.rule import Call
from layerscope.ops.saved import Saved, SavesRule, both, first_input, nothing, result


def _extreme(call: Call) -> Saved:
    """Along an axis the indices are kept; over all elements the input and the result."""
    a: Reduce = call.attributes or Reduce()
    return Saved(extra=((elements(call.y), "int64"),)) if a.axes else both(call)


def _with_statistics(call: Call) -> Saved:
    """The input, which is permuted here, and two numbers per channel."""
    return Saved(inputs=(0,), extra=((2 * call.x[0], ""),))


def _computed_scale(call: Call) -> Saved:
    """A scale that is no parameter."""
    return Saved(inputs=tuple(range(1, len(call.inputs))))


def _running(call: Call) -> Saved:
    """As `instance_norm`, and both stored statistics repeated for every example."""
    channels = elements(call.x[:2])
    repeated = 3 if call.attributes is not None and call.attributes.affine else 2
    kept = (repeated + 2) * channels
    return Saved(inputs=(0,), extra=((kept, ""),), contiguous=((0, False),))


def _smoothed(call: Call) -> Saved:
    """Besides a cross entropy's own: which labels are left out, and how many are not."""
    rows = elements(call.inputs[1])
    return Saved(inputs=(1,), extra=((elements(call.x) + 1, ""), (rows, "bool"), (1, "int64")))


def _bound(call: Call) -> Saved:
    """The upper of two bounds; the input is kept with the lower one."""
    return Saved(inputs=(1,))


def _index_and_source(call: Call) -> Saved:
    return Saved(inputs=(1, 2))


# operator without its namespace and the mark of working in place, op
BY_OPERATOR: dict[tuple[str, str], SavesRule] = {
    ("pow", "sqrt"): first_input,
    ("pow", "rsqrt"): first_input,
    ("pow", "identity"): first_input,
    ("pow.Scalar", "pow"): both,
    ("max", "reduce_max"): _extreme,
    ("min", "reduce_min"): _extreme,
    ("glu", "sigmoid"): first_input,  # a view of the whole input
    ("glu", "mul"): nothing,
    ("linalg_vector_norm", "abs"): first_input,
    ("norm", "abs"): first_input,
    ("linalg_vector_norm", "reduce_max"): result,
    ("norm", "reduce_max"): result,
    ("linalg_vector_norm", "reduce_min"): result,
    ("norm", "reduce_min"): result,
    ("pad.circular", "pad"): nothing,
    ("batch_norm", "layer_norm"): _with_statistics,
    ("batch_norm", "scale"): _computed_scale,
    ("batch_norm", "bias"): nothing,
    ("group_norm", "scale"): nothing,
    ("instance_norm.running", "instance_norm"): _running,
    ("cross_entropy_loss.smoothed", "softmax_loss"): _smoothed,
    ("addcdiv", "mul"): nothing,
    ("sgn", "sign"): both,
    ("clamp.second", "min"): _bound,
    ("clip.second", "min"): _bound,
    ("col2im", "scatter"): nothing,
    ("unfold", "gather"): nothing,  # a view
    ("index_add", "scatter_nd"): _index_and_source,
    ("index_copy", "scatter_nd"): _index_and_source,
}
