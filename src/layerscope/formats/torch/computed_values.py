"""Values of meta tensors, computed when the model reads them.

The call that makes a tensor is kept with it (`Recompute`) and run on real tensors only on demand:
most masks are never read. Values can be computed where neither parameters nor unknown inputs take
part. In-place writes are kept in order: a tensor computed from another uses the values that this
one had at the time of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerscope.formats.torch.capture_state import Capture, NoKernel
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Arg, Kwargs, Result
from layerscope.formats.torch.tracking import Write

if TYPE_CHECKING:
    from torch import Tensor

# Arguments, by position, whose values decide the sizes of an operator's results.
DECIDING = {
    "nonzero": (0,), "index": (1,), "masked_select": (1,), "repeat_interleave": (0,),
    "_unique": (0,), "_unique2": (0,), "unique_dim": (0,), "unique_consecutive": (0,),
    "unique_dim_consecutive": (0,), "bincount": (0,), "_pack_padded_sequence": (1,),
    "_pad_packed_sequence": (1,),
}  # fmt: skip
ON_CPU = {"_pack_padded_sequence": 1, "_pad_packed_sequence": 1}  # results that stay real tensors
ASSUMED = "given without values, taken as {} where the model takes a decision by them"
ONES = "attention_mask"  # ends the names of masks in which 1 is a token that is no padding

Names = dict[str, None]  # of inputs that were taken as zeros, or as ones


class NoValues(Exception):
    """Values that depend on parameters or on inputs without values; the text says which."""


def on_read(run: Capture, call: OpCall) -> Result:
    """Handle an operator that returns a value to Python: `item`, `equal` …"""
    info, args = call.info, call.args
    assumed: Names = {}
    try:
        with run.torch.no_grad():
            operands = values_in(run, args[:2], assumed, run.writes)
            found = info.func(*[_as_tensor(run, x) for x in operands], *args[2:], **call.kwargs)
    except NoValues as gap:
        raise run.needs_values(info, f"reads {gap}") from None
    except Exception as error:
        raise run.needs_values(info, f"fails: {error}") from error
    if assumed and type(found) is not bool:  # a number may become a size
        raise run.needs_values(info, f"reads a number of {_inputs(assumed)}")
    for name in assumed:
        taken = ASSUMED.format("ones" if name.endswith(ONES) else "zeros")
        run.notes.setdefault(name, f"{name}: {taken} ({info.full}{run.in_module()})")
    return found


def _as_tensor(run: Capture, arg: Arg) -> Arg:
    """PyTorch passes a Python number for a tensor that holds one."""
    return run.torch.tensor(arg) if isinstance(arg, (bool, int, float)) else arg


def values_in(run: Capture, arg: Arg, assumed: Names, writes: int) -> Arg:
    """An argument with the values of its tensors, after so many writes.

    The names of inputs that are taken as zeros or ones are added to `assumed`.
    """
    if isinstance(arg, run.torch.Tensor):
        return _values_of(run, run.tracker.lookup(arg), assumed, writes)
    if isinstance(arg, (list, tuple)):
        return type(arg)([values_in(run, each, assumed, writes) for each in arg])
    return run.cpu if isinstance(arg, run.torch.device) else arg


def _named_values(run: Capture, kwargs: Kwargs, assumed: Names, writes: int) -> Kwargs:
    return {name: values_in(run, arg, assumed, writes) for name, arg in kwargs.items()}


def _values_of(run: Capture, traced: TracedTensor, assumed: Names, writes: int) -> Tensor:
    """The values of a tensor after so many writes."""
    if traced.tensor.device != run.meta_device:
        if not run.real and traced.meta.kind == "param":
            raise NoValues(f"the parameter {traced.name}")
        return traced.tensor
    root = traced.root
    if not traced.computable or not root.computable:
        raise _no_values(run, traced)
    before = [write for write in run.tracker.writes.get(root, ()) if write.index < writes]
    if before:
        return _view_of(run, traced, _written_values(run, root, before, assumed), assumed)
    if traced.no_values:
        assumed[traced.name] = None
        filled = run.torch.ones if traced.name.endswith(ONES) else run.torch.zeros
        return filled(traced.meta.shape, dtype=traced.meta.dtype)
    if traced.values is None:
        inner: Names = {}
        traced.values = _compute(run, traced, inner)
        traced.assumed = inner
    assumed |= traced.assumed or {}
    return traced.values


def _compute(
    run: Capture, traced: TracedTensor, assumed: Names, source: Tensor | None = None
) -> Tensor:
    """Run the call that makes a tensor; for a view, on `source` instead of its first argument."""
    call = traced.recompute
    if call is None:
        raise _no_values(run, traced)
    named = _named_values(run, call.kwargs, assumed, call.writes)
    if "device" in named:
        named["device"] = run.cpu
    if source is None:
        out = call.func(*values_in(run, call.args, assumed, call.writes), **named)
    else:
        out = call.func(source, *values_in(run, call.args[1:], assumed, call.writes), **named)
    return out if call.output is None else out[call.output]


def _written_values(
    run: Capture, root: TracedTensor, writes: Sequence[Write], assumed: Names
) -> Tensor:
    """The values of a tensor after these writes; the last result is cached."""
    applied, base, inner = run.tracker.written.get(root, (0, None, {}))
    if base is None or applied > len(writes):
        inner = {}
        base = _values_of(run, root, inner, writes[0].index).clone()
        applied = 0
    for write in writes[applied:]:
        target = _view_of(run, write.target, base, inner)
        rest = values_in(run, write.args[1:], inner, write.index)
        write.func(target, *rest, **_named_values(run, write.kwargs, inner, write.index))
    run.tracker.written[root] = (len(writes), base, inner)
    assumed |= inner
    return base


def _view_of(run: Capture, traced: TracedTensor, base: Tensor, assumed: Names) -> Tensor:
    """A view taken again, of other values of the tensor that owns the storage."""
    if traced.parent is None:
        return base
    return _compute(run, traced, assumed, _view_of(run, traced.parent, base, assumed))


def _no_values(run: Capture, traced: TracedTensor) -> NoValues:
    """The error that says which values are missing."""
    if traced.random:
        return NoValues("random numbers")
    node = next((n for n in reversed(run.tracker.nodes) if traced.name in n.outputs), None)
    if node is not None and node.op != "constant":
        return NoValues(f"the result of {node.source.op if node.source else node.op}")
    if node is None and traced.name:
        return NoValues(traced.name)
    return NoValues("a tensor that the forward makes on the device of its inputs")


# Writes into computable tensors


def can_follow_write(run: Capture, given: Sequence[TracedTensor]) -> bool:
    """Whether the values that are written, and the tensor that they go into, are computable."""
    target = given[0]
    if target.tensor.device != run.meta_device:
        return False
    while target.parent is not None:
        if target.recompute is None:
            return False
        target = target.parent
    return target.computable and all(traced.computable for traced in given)


def follow_write(run: Capture, call: OpCall) -> None:
    """Keep a write for when the values are read."""
    target = call.given[0]
    writes = run.tracker.writes.setdefault(target.root, [])
    writes.append(Write(run.writes, target, call.func, call.args, call.kwargs))
    run.writes += 1


# Sizes that depend on values


def run_with_known_sizes(run: Capture, call: OpCall) -> Result:
    """Results of an operator whose sizes depend on computable values; None for any other.

    Raises NoKernel if the values are not computable.
    """
    info, args, kwargs = call.info, call.args, call.kwargs
    deciding = DECIDING.get(info.name)
    if deciding is None or kwargs.get("out") is not None:
        return None
    if info.name == "repeat_interleave" and len(args) > 1:
        deciding = (1,)
    assumed: Names = {}
    try:
        with run.torch.no_grad():
            real = [
                values_in(run, arg, assumed, run.writes) if n in deciding else _zeros(run, arg)
                for n, arg in enumerate(args)
            ]
            outs = call.func(*real, **kwargs)
    except NoValues as gap:
        why = f"makes a tensor whose size depends on {gap}"
        raise run.needs_values(info, why, NoKernel) from None
    if assumed:
        why = f"makes a tensor whose size depends on {_inputs(assumed)}"
        raise run.needs_values(info, why, NoKernel)
    run.sized_by_values = True
    meta_of = run.tracker.meta
    if not isinstance(outs, (list, tuple)):
        return run.empty(meta_of(outs))
    real_output = ON_CPU.get(info.name)
    return type(outs)([
        out if n == real_output else run.empty(meta_of(out)) for n, out in enumerate(outs)
    ])  # fmt: skip


def _zeros(run: Capture, arg: Arg) -> Arg:
    """An argument with zeros instead of tensors; expanded, so that they take no memory."""
    if isinstance(arg, run.torch.Tensor):
        meta = run.tracker.lookup(arg).meta
        return run.torch.zeros((), dtype=meta.dtype).expand(meta.shape)
    if isinstance(arg, (list, tuple)):
        return type(arg)([_zeros(run, each) for each in arg])
    return arg


def _inputs(names: Names) -> str:
    listed = ", ".join(names)
    return f"{listed}, {'inputs' if len(names) > 1 else 'an input'} given without values"
