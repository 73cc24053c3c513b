"""Operators that layerscope has no op for: counted by a rule of their owner's, or unknown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from layerscope.errors import UnknownName, UsageError
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.lowering import CallPlan, PlannedNode
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.torch_types import Arg, Args, Kwargs, Result
from layerscope.graph.attributes import CustomCost, Opaque
from layerscope.graph.types import Shape, Source
from layerscope.ops.spec import Ops
from layerscope.ops.torch_strides import dense

if TYPE_CHECKING:
    from torch import Tensor

KINDS = Ops.__struct_fields__

# counts the operations of a call, given its arguments and results
CallRule = Callable[[Args, Kwargs, Result], Any]


def find_rule(run: Capture, call: OpCall) -> CallRule | None:
    """The cost function of an operator: the user's, or one registered with PyTorch's counter."""
    info = call.info
    for name in (info.full, info.full.replace(".", "::"), info.name):
        rule = run.rules.get(name)
        if rule is not None:
            return lambda args, kwargs, outs: rule(
                *_shapes(run, args),
                out_shape=_out_shapes(outs),
                **{name: _shapes(run, arg) for name, arg in kwargs.items()},
            )
    counter = sys.modules.get("torch.utils.flop_counter")
    formula = counter.flop_registry.get(call.func.overloadpacket) if counter is not None else None
    if formula is None or info.full.startswith("aten."):
        return None
    # it takes tensors, and counts 2 per MAC
    return lambda args, kwargs, outs: formula(*args, **kwargs, out_val=outs) // 2


def custom_plan(
    run: Capture, call: OpCall, rule: CallRule, outs: Result
) -> tuple[CallPlan, list[Tensor]]:
    """A node with the counts that a rule returns, and the results as a list."""
    many = isinstance(outs, (list, tuple))
    listed = list(outs) if many else [outs]
    metas = tuple([run.tracker.meta(out) for out in listed])
    shapes = tuple([meta.shape for meta in metas])
    counts = _by_kind(call.info.full, rule(call.args, call.kwargs, outs))
    cost = CustomCost(shapes, tuple([meta.name for meta in metas]), **counts)
    inputs = tuple(range(len(call.given)))
    node = PlannedNode("custom", inputs, cost, (), len(metas), call.info.source)
    results = tuple([(0, n) for n in range(len(metas))])
    return CallPlan((node,), results, metas, tuple if many else None), listed


def _by_kind(op: str, counts: Any) -> dict[str, Any]:
    """Operation counts by kind; a bare number counts multiply-adds."""
    given = counts if isinstance(counts, Mapping) else {"mac": counts}
    for kind in given:
        if kind not in KINDS:
            choices = f"; choose from {', '.join(KINDS)}"
            raise UnknownName(
                f"kind of operation, by the rule for {op},", str(kind), KINDS, choices
            )
    return {kind: _count(op, value) for kind, value in given.items()}


def _count(op: str, value: Any) -> int:
    """A count that a rule returned; a float is one if it is a whole number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < 0:
        raise UsageError(f"the rule for {op} returned {value!r}, expected a whole number from 0")
    return index(value)


def _shapes(run: Capture, arg: Arg) -> Arg:
    """An argument with shapes instead of tensors."""
    if isinstance(arg, run.torch.Tensor):
        return tuple(arg.shape)
    if isinstance(arg, (list, tuple)):
        return type(arg)([_shapes(run, each) for each in arg])
    return arg


def _out_shapes(outs: Result) -> Shape | tuple[Shape, ...]:
    """The shape of a result, or those of several as a tuple."""
    if isinstance(outs, (list, tuple)):
        return tuple([tuple(out.shape) for out in outs])
    return tuple(outs.shape)


def unknown_tensor(run: Capture, name: str, x: Tensor, shape: Shape | None = None) -> Tensor:
    """The result of a function without figures; fp32 if it has another shape than `x`."""
    tracker = run.tracker
    traced = tracker.lookup(x)
    meta = tracker.meta_of(traced.meta.shape, traced.meta.stride, traced.meta.dtype)
    if shape is not None:
        meta = tracker.meta_of(shape, dense(shape), run.torch.float32)
    opaque = Opaque((meta.shape,), (meta.name,))
    node = PlannedNode(name, (0,), opaque, (), 1, Source(op=name))
    if name in run.rules:
        counts = _by_kind(name, run.rules[name](traced.meta.shape, out_shape=meta.shape))
        cost = CustomCost((meta.shape,), (meta.name,), **counts)
        node = PlannedNode("custom", (0,), cost, (), 1, Source(op=name))
    [out_name] = tracker.emit(CallPlan((node,), ((0, 0),), (meta,)), [traced])
    with run.unwatched():
        out = x.new_zeros(meta.shape, dtype=meta.dtype) if run.real else run.empty(meta)
    tracker.register(out, out_name, meta)
    return out
