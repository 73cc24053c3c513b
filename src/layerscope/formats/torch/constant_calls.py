"""Calls that make constants: `zeros`, `arange`, random numbers, and any operator on constants.

A constant is no node until one that is not a constant reads it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from layerscope.formats.torch.aten import RANDOM
from layerscope.formats.torch.capture_state import MOST_COMPUTED, Capture
from layerscope.formats.torch.computed_values import can_follow_write, follow_write
from layerscope.formats.torch.foreach_calls import open_foreach
from layerscope.formats.torch.integer_results import filled_result, integer_result
from layerscope.formats.torch.lowering import CallPlan
from layerscope.formats.torch.meta_runs import run_on_meta
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.plans import checked_plan, convert_call, infer_outputs
from layerscope.formats.torch.tensors import Recompute, TensorMeta, TracedTensor, ViewCall
from layerscope.formats.torch.torch_types import Result
from layerscope.formats.torch.view_calls import alias_of, infer_layout, view_plan
from layerscope.formats.torch.write_calls import check_writable

if TYPE_CHECKING:
    from torch import Tensor


def on_constant(run: Capture, call: OpCall) -> Result:
    """Handle an operator that makes a tensor of no other: `zeros`, `arange`, `rand` …

    On a real device it is run. On the meta device its values are computed if the model reads them.
    """
    info, func, kwargs, given = call.info, call.func, call.kwargs, call.given
    likes = any(t.tensor.is_meta or t.meta.kind for t in given)
    likes = likes and not run.real and "device" not in kwargs
    on_meta = likes or (run.as_meta is None and kwargs.get("device") == run.meta_device)
    plan = key = None
    if on_meta and info.kind == "constant" and run.shortcuts and not run.real:
        key = ("constant", call.key)
        plan = run.plans.get(key)
    filled = filled_result(run, call) if likes and key is not None and plan is None else None
    if filled is not None and key is not None:
        plan = run.plans[key] = CallPlan((), (), (filled,))
    if plan is not None:
        [meta] = plan.outs
        out = run.empty(meta)
    else:
        if likes:
            out = run_on_meta(run, call)
        else:
            out = func(*call.args, **kwargs)
            if run.as_meta is not None and info.kind == "constant":
                return run.as_meta(out)
        meta = run.tracker.meta(out)
        if key is not None:
            run.plans[key] = CallPlan((), (), (meta,))
    traced = run.tracker.register(out, "", meta, plain=False)
    traced.is_const = True
    traced.random = info.kind == "random"
    if out.numel() <= MOST_COMPUTED:
        if not out.is_meta:
            traced.computable = True
        elif all(t.computable for t in given):
            traced.computable = True
            traced.recompute = Recompute(func, call.args, kwargs, None, run.writes)
    return out


def on_constants(run: Capture, call: OpCall) -> Result:
    """Handle any call whose tensors are all constants: its results are constants too."""
    real = all(t.computable and not t.tensor.is_meta for t in call.given)
    if call.info.kind == "write":
        return _write_constant(run, call, real)
    is_view = call.info.kind == "view" and call.info.convert is not None
    alias = ""
    metas: tuple[TensorMeta, ...] = ()  # of the results, where they are inferred
    if is_view and not real:
        plan, found = _constant_view_plan(run, call)
        alias = plan.alias
        if alias == "itself":
            return call.given[0].tensor
        metas = plan.outs if found is None else ()
        listed = [run.empty(meta) for meta in metas] if found is None else found
        outs: Result = listed[0] if plan.form is None else plan.form(listed)
    elif real:
        outs = call.func(*call.args, **call.kwargs)
    else:
        outs, metas = _empty_results(run, call)
    registered = _register_constants(run, call, outs, metas, real)
    if is_view:
        _mark_views(run, call, registered, alias)
    return outs


def _write_constant(run: Capture, call: OpCall, real: bool) -> Result:
    """Write constants into a constant."""
    opened = open_foreach(run, call)
    if opened is not NotImplemented:
        return opened
    target = call.given[0]
    if target.root.foreign:
        run.written.note(target.root.tensor, overwrites=real or run.real)
    if real or run.real:
        return call.func(*call.args, **call.kwargs)
    if run.has_inplace_view_tag(call.func) or not call.info.in_place:
        target.root.computable = target.computable = False
        return run_on_meta(run, call)
    check_writable(run, call)
    if call.info.name in RANDOM or not can_follow_write(run, call.given):
        target.root.computable = target.computable = False
    else:
        follow_write(run, call)
    return target.tensor


def _register_constants(
    run: Capture, call: OpCall, outs: Result, metas: tuple[TensorMeta, ...], real: bool
) -> list[tuple[int, TracedTensor]]:
    """Register the results that are new tensors; these, each with its index."""
    tracker, given = run.tracker, call.given
    many = isinstance(outs, (list, tuple))
    random = any(traced.random for traced in given)
    computable = all(traced.computable for traced in given)
    registered = []
    for n, out in enumerate(outs if many else [outs]):
        if not isinstance(out, run.torch.Tensor) or id(out) in tracker.traced:
            continue
        meta = metas[n] if metas else tracker.meta(out)
        traced = tracker.register(out, "", meta, plain=False)
        traced.is_const = True
        traced.random = random
        if real or (computable and out.numel() <= MOST_COMPUTED):
            traced.computable = True
            if not real or out.is_meta:  # a real tensor has its values
                output = n if many else None
                traced.recompute = Recompute(call.func, call.args, call.kwargs, output, run.writes)
        registered.append((n, traced))
    return registered


def _empty_results(run: Capture, call: OpCall) -> tuple[Result, tuple[TensorMeta, ...]]:
    """Results on the meta device: inferred or cached for an operator with a converter, else run."""
    info = call.info
    if info.kind != "compute" or info.convert is None or not run.shortcuts or run.real:
        return run_on_meta(run, call), ()
    key = ("folded", call.key)
    plan = run.plans.get(key)
    if plan is not None:
        return run.empty(plan.outs[0]), plan.outs
    meta = integer_result(run, call) or _inferred_by_converter(run, call)
    if meta is not None:
        out = run.empty(meta)
    else:
        out = run_on_meta(run, call)
        is_plain = type(out) is run.torch.Tensor and out.is_meta
        if is_plain and not run.sized_by_values:
            meta = run.tracker.meta(out)
        run.sized_by_values = False
    if meta is None:
        return out, ()
    run.plans[key] = CallPlan((), (), (meta,))
    return out, (meta,)


def _inferred_by_converter(run: Capture, call: OpCall) -> TensorMeta | None:
    """The one result of a call, by its converter."""
    converted = convert_call(run, call)
    inferred = infer_outputs(run, call, converted) if converted.form is None else None
    return None if inferred is None else inferred[0]


# Views of constants


def _constant_view_plan(run: Capture, call: OpCall) -> tuple[CallPlan, list[Tensor] | None]:
    """As `view_plan`, without nodes where the strides can be inferred: a constant has none."""
    short = run.shortcuts and not run.real and call.given[0].tensor.is_inference()
    key = ("folded", call.key)
    plan = run.plans.get(key) if short else None
    if short and plan is None:
        plan = infer_layout(run, call)
        if plan is not None:
            run.plans[key] = plan
    if plan is not None:
        return plan, None
    return view_plan(run, call)


def _mark_views(
    run: Capture, call: OpCall, registered: list[tuple[int, TracedTensor]], alias: str
) -> None:
    """Note which results are views of the first tensor: after a write, neither is a constant."""
    source = call.given[0]
    for n, traced in registered:
        if alias == "view" or (not alias and alias_of(run, source, [traced.tensor]) == "view"):
            traced.parent, traced.version = source, source.root.version
            traced.module = run.tracker.module
            traced.view_call = partial(_view_call_of_constant, run, call, n)


def _view_call_of_constant(run: Capture, call: OpCall, output: int) -> ViewCall:
    """The call that takes a view of a constant, once something was written into either."""
    plan: CallPlan | None = run.plans.get(call.key) if run.shortcuts else None
    if plan is None:
        converted = convert_call(run, call)
        with run.unwatched():
            outs = run_on_meta(run, call)
        plan, _ = checked_plan(run, call, converted, outs, "view")
        assert plan is not None  # results of a view are tensors
        run.plans[call.key] = plan
    return ViewCall(plan, call.given, output)
