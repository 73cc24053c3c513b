"""Results of operators on integers and masks, inferred without running PyTorch.

PyTorch's kernels for them on the meta device are written in Python and take longer than the rest
of a call; a mask of attention needs a dozen of them. Each rule is for tensors of one dtype, which
no scalar promotes, and returns None where only PyTorch can say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.errors import ShapeError
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.tensors import TensorMeta
from layerscope.ops.spec import broadcast
from layerscope.ops.torch_strides import dense

if TYPE_CHECKING:
    from torch import dtype

# The result has the dtype of the tensors; scalars are integers.
ARITHMETIC = frozenset(("add", "sub", "mul", "maximum", "minimum", "abs", "neg"))
COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))  # the result is a mask
BITWISE = frozenset(("__and__", "__or__", "__xor__", "bitwise_and", "bitwise_or", "bitwise_xor"))
OF_TWO = frozenset(("min", "max"))  # of two tensors by element; of one they are reductions
BROADCASTS = ARITHMETIC | COMPARE | BITWISE | OF_TWO | {"where"}
INDEXED = frozenset(("index", "index_select", "gather", "embedding"))  # converters check indices
REDUCED = {"all": "bool", "any": "bool", "sum": "int64"}  # dtype of the result
LIKE = frozenset(("zeros_like", "ones_like", "full_like", "empty_like"))
NEW = frozenset(("new_zeros", "new_ones", "new_full", "new_empty"))
INTEGERS, NUMBERS = frozenset((int,)), frozenset((int, float, bool))


def integer_dtype(run: Capture, call: OpCall) -> dtype | None:
    """The dtype of the result, if all tensors of the call are integers or masks."""
    name, metas = call.info.name, [traced.meta for traced in call.given]
    dtypes = {meta.dtype for meta in metas}
    first = metas[0].dtype
    if call.kwargs or not dtypes <= run.index_dtypes:
        return None
    if name in INDEXED:
        return first
    if name in REDUCED:
        return run.dtypes[REDUCED[name]]
    if name == "where":
        same = len(metas) == 3 and metas[1].dtype is metas[2].dtype
        return metas[1].dtype if same and first is run.torch.bool else None
    if name not in BROADCASTS or len(dtypes) != 1:
        return None
    scalars = {type(arg) for arg in call.args} - run.tensor_types
    if name in COMPARE:
        return run.torch.bool if scalars <= NUMBERS else None
    if name in BITWISE or name in OF_TWO:
        return first if not scalars and len(metas) == 2 else None
    return first if scalars <= INTEGERS and first is not run.torch.bool else None


def integer_result(run: Capture, call: OpCall) -> TensorMeta | None:
    """The result of an operator on contiguous tensors, without its converter."""
    name, metas = call.info.name, [traced.meta for traced in call.given]
    if name in BROADCASTS:
        if False in [meta.contiguous for meta in metas]:
            return None
    elif name not in REDUCED or len(call.args) > 1:
        return None
    dtype = integer_dtype(run, call)
    if dtype is None:
        return None
    try:
        shape = broadcast(tuple([meta.shape for meta in metas])) if name in BROADCASTS else ()
    except ShapeError:  # which PyTorch reports
        return None
    return run.tracker.meta_of(shape, dense(shape), dtype) if 0 not in shape else None


def filled_result(run: Capture, call: OpCall) -> TensorMeta | None:
    """The result of `zeros_like`, `new_ones` and others: the shape is the tensor's or given."""
    name, meta, kwargs = call.info.name, call.given[0].meta, call.kwargs
    dtype = kwargs.get("dtype") or meta.dtype
    if not kwargs.keys() <= {"dtype", "pin_memory"} or kwargs.get("pin_memory"):
        return None
    if name in LIKE:
        return run.tracker.meta_of(meta.shape, meta.stride, dtype) if meta.contiguous else None
    size = call.args[1] if name in NEW else None
    if not isinstance(size, (list, tuple)) or not {*map(type, size)} <= INTEGERS:
        return None
    shape = tuple(size)
    return run.tracker.meta_of(shape, dense(shape), dtype) if min(shape, default=0) >= 0 else None
