"""Calls that write into a tensor: in place (`add_`), or into one given as `out=`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from layerscope.formats.torch.aten import RANDOM, converter_of
from layerscope.formats.torch.capture_state import Capture, DataDependent
from layerscope.formats.torch.computed_values import can_follow_write, follow_write
from layerscope.formats.torch.foreach_calls import open_foreach
from layerscope.formats.torch.inplace_writes import write
from layerscope.formats.torch.lowering import CallPlan, TensorRef
from layerscope.formats.torch.meta_runs import decompose, run_on_meta, with_own_storage
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.plans import convert_call, lowering_for, unknown_plan
from layerscope.formats.torch.shadows import Rerun
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Arg, Result
from layerscope.graph.attributes import DeclaredOutputs
from layerscope.graph.types import elements
from layerscope.ops.spec import shown

if TYPE_CHECKING:
    from torch import Argument, Tensor

MOST_WRITTEN = 1 << 12  # elements that a check of a write computes with; more are scaled down
WRITABLE = CallPlan((), (), ())  # the cached plan of a write that was checked
NOT_ON_CPU = ("Half", "BFloat16", "Float8")  # dtypes that other devices have more kernels for


def on_write(run: Capture, call: OpCall) -> Result:
    """Handle a call that writes into its first tensor, or into tensors given as `out=`."""
    info, func, given = call.info, call.func, call.given
    opened = open_foreach(run, call)
    if opened is not NotImplemented:
        return opened
    target = given[0]
    _note_writes(run, call)
    if target.meta.kind == "buffer" and target.tensor.numel() == 1:
        if run.real:
            return func(*call.args, **call.kwargs)
        check_writable(run, call)
        return target.tensor  # a counter such as num_batches_tracked
    if run.has_inplace_view_tag(func):
        return _on_inplace_view(run, call)
    if not info.in_place:
        return _on_out(run, call)
    if run.real:
        func(*call.args, **call.kwargs)
    plan = run.plans.get(call.key) if run.shortcuts else None
    if plan is None:
        check_writable(run, call)
        plan = _in_place_plan(run, call)
        if plan is None:
            if run.is_composite(func) and not run.real:
                opened = decompose(run, call)
                if opened is not NotImplemented:
                    return opened
            plan = unknown_plan(run, call, (target.meta,))
        run.plans[call.key] = plan
    name = run.tracker.emit(plan, given)[0]
    computable = info.name not in RANDOM and not run.real and can_follow_write(run, given)
    write(run.tracker, target, name)
    if computable:
        follow_write(run, call)
        written: TracedTensor | None = target
        while written is not None:
            written.computable, written = True, written.parent
    return target.tensor


def _note_writes(run: Capture, call: OpCall) -> None:
    """Note writes into the user's tensors. A run with values starts again on copies of them."""
    kwargs = call.kwargs
    named = [each for name in call.info.outs if (each := kwargs.get(name)) is not None]
    for traced in [run.tracker.lookup(each) for each in named] or call.given[:1]:
        root = traced.root
        if root.meta.kind == "param" and run.real and run.own_params:
            raise Rerun("param_copies")
        if root.meta.kind or root.foreign:
            run.written.note(root.tensor, overwrites=run.real and root.foreign)


def _in_place_plan(run: Capture, call: OpCall) -> CallPlan | None:
    """The nodes of an in-place call; None if no converter supports it."""
    info, target = call.info, call.given[0]
    if info.name in RANDOM:
        lowering = lowering_for(run, info)
        attributes = DeclaredOutputs((target.meta.shape,), (target.meta.name,))
        return lowering.plan([lowering.add("random", at=attributes)], (target.meta,))
    lowering, results, _ = convert_call(run, call)
    if results is None or results[0].shape != target.meta.shape:
        return None
    return lowering.plan([lowering.cast(results[0], target.meta.name)], (target.meta,))


def _on_inplace_view(run: Capture, call: OpCall) -> Result:
    """An operator that changes the shape of its tensor, such as `t_` or `squeeze_`."""
    outs = run_on_meta(run, call)
    target, info, tracker = call.given[0], call.info, run.tracker
    before = target.meta
    target.meta = tracker.meta(target.tensor)
    convert = converter_of(info.name)
    if convert is not None:
        lowering = lowering_for(run, info)
        ref = TensorRef(before.shape, before.name, 0, before.kind != "")
        result = convert(lowering, ref, *call.args[1:], **call.kwargs)
        plan = lowering.plan([result], (target.meta,))
        write(tracker, target, tracker.emit(plan, call.given)[0])
    return outs


def _on_out(run: Capture, call: OpCall) -> Result:
    """An operator that writes into tensors given as `out=`, or into some of its arguments."""
    tracker, kwargs = run.tracker, call.kwargs
    separate = call
    if kwargs and not run.real:  # PyTorch refuses inputs and outputs that share storage
        args = with_own_storage(run, call.args)
        separate = OpCall(call.info, call.func, args, kwargs, call.given, call.key)
    outs = run_on_meta(run, separate)
    listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    tensors = [out for out in listed if isinstance(out, run.torch.Tensor)]
    if not tensors:
        return outs
    names = _names_without_out(run, call)
    targets = [kwargs[name] for name in call.info.outs if name in kwargs]
    if names is not None and len(names) == len(targets):
        for target, out, name in zip(targets, tensors, names, strict=True):
            if not target.numel():  # PyTorch gives it the size of the result
                with run.unwatched():
                    target.resize_(out.shape)
            traced = tracker.lookup(target)
            traced.meta = tracker.meta(target, traced.meta.kind)
            write(tracker, traced, name)
        return targets[0] if len(targets) == 1 else type(outs)(targets)
    metas = tuple([tracker.meta(out) for out in tensors])
    for out, name, meta in zip(
        tensors, tracker.emit(unknown_plan(run, call, metas), call.given), metas, strict=True
    ):
        if id(out) in tracker.traced:
            write(tracker, tracker.traced[id(out)], name)
        else:
            tracker.register(out, name, meta)
    return outs


def _names_without_out(run: Capture, call: OpCall) -> list[str] | None:
    """Names of the results of the overload without `out=`, called on the same arguments."""
    func, kwargs = call.func, call.kwargs
    wanted = [arg for arg in func._schema.arguments if not _is_written(arg)]
    written = {arg.name for arg in func._schema.arguments if _is_written(arg)}
    if not written or not written <= kwargs.keys():
        return None
    packet = func.overloadpacket
    for overload in packet.overloads():
        plain = getattr(packet, overload)
        same = [(arg.name, str(arg.type)) for arg in plain._schema.arguments]
        if not plain._schema.is_mutable and same == [(a.name, str(a.type)) for a in wanted]:
            named = {name: arg for name, arg in kwargs.items() if name not in written}
            with run.mode:
                outs = plain(*call.args, **named)
            results = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            return [run.tracker.read(run.tracker.lookup(each)) for each in results]
    return None


def _is_written(argument: Argument) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


# Writes that PyTorch refuses


def check_writable(run: Capture, call: OpCall) -> None:
    """Raise what PyTorch raises if a tensor cannot hold what is written into it.

    Kernels of the meta device accept more than others do, so small tensors of zeros are written on
    the CPU: sizes that are equal, ordered or 1 stay so.
    """
    info, given = call.info, call.given
    meta = given[0].meta
    plain = meta.dtype in run.float_dtypes and all(traced.meta is meta for traced in given)
    plain = plain and bool not in map(type, call.args)  # which may not be subtracted
    if run.real or plain or info.name in RANDOM or not info.full.startswith("aten."):
        return
    if _is_masked(run, call):
        return
    if run.shortcuts and ("written", call.key) in run.plans:
        return
    sizes = sorted({2, *[size for traced in given for size in traced.meta.shape]})
    small = {size: size for size in sizes}
    if sum([elements(traced.meta.shape) for traced in given]) > MOST_WRITTEN:
        _run_on_new_tensors(run, call)  # its error message has the sizes
        first = sizes.index(2)
        small |= {size: n for n, size in enumerate(sizes[first:], 2)}
    try:
        with run.torch.no_grad():
            call.func(*_zeros_in(run, call.args, small), **_zeros_in(run, call.kwargs, small))
    except (RuntimeError, IndexError) as error:
        if not _is_of_zeros_on_cpu(error):
            if small[sizes[-1]] == sizes[-1]:
                raise
            shapes = ", ".join(f"{shown(t.meta.shape)} {t.meta.name}" for t in given)
            raise RuntimeError(f"PyTorch refuses {info.full} of {shapes}") from error
    run.plans["written", call.key] = WRITABLE


def _is_masked(run: Capture, call: OpCall) -> bool:
    """Whether values of a mask decide how many elements are written: `x[mask] = y`."""
    if not call.info.name.startswith("index_put"):
        return False
    indices = call.args[1] if len(call.args) > 1 else call.kwargs["indices"]
    masks = (run.torch.bool, run.torch.uint8)
    return any(isinstance(each, run.torch.Tensor) and each.dtype in masks for each in indices or ())


def _run_on_new_tensors(run: Capture, call: OpCall) -> None:
    args = with_own_storage(run, call.args)
    kwargs = {name: with_own_storage(run, arg) for name, arg in call.kwargs.items()}
    with suppress(DataDependent):
        run_on_meta(run, OpCall(call.info, call.func, args, kwargs, call.given, call.key))
    run.raised = None


def _zeros_in(run: Capture, arg: Arg, sizes: dict[int, int]) -> Arg:
    """An argument with zeros on the CPU instead of tensors, of other sizes."""
    if isinstance(arg, run.torch.Tensor):
        meta = run.tracker.lookup(arg).meta
        shape = [sizes[size] for size in meta.shape]
        zeros: Tensor = run.torch.zeros(shape, dtype=meta.dtype, device="cpu")
        return zeros
    if isinstance(arg, dict):
        return {name: _zeros_in(run, each, sizes) for name, each in arg.items()}
    if isinstance(arg, (list, tuple)):
        return type(arg)([_zeros_in(run, each, sizes) for each in arg])
    return arg


def _is_of_zeros_on_cpu(error: Exception) -> bool:
    """Whether the check fails only because it writes zeros on the CPU."""
    text = str(error)
    if "not implemented for" in text:
        return any(f"not implemented for '{dtype}" in text for dtype in NOT_ON_CPU)
    return isinstance(error, NotImplementedError) or "ZeroDivisionError" in text
