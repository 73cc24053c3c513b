"""Calls whose results may share storage with their input: `view`, `reshape`, `contiguous` …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerscope.formats.torch.capture_state import MOST_COMPUTED, Capture
from layerscope.formats.torch.lowering import CallPlan
from layerscope.formats.torch.meta_runs import decompose, run_on_meta
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.plans import LISTS, checked_plan, convert_call, register_empty
from layerscope.formats.torch.strides import view_layouts
from layerscope.formats.torch.tensors import Recompute, TracedTensor, ViewCall
from layerscope.formats.torch.torch_types import Result

if TYPE_CHECKING:
    from torch import Tensor, dtype


def on_view(run: Capture, call: OpCall) -> Result:
    """Handle a call whose results may be views."""
    info, given = call.info, call.given
    if info.convert is None and run.is_composite(call.func):
        opened = decompose(run, call)
        if opened is not NotImplemented:
            return opened
    source = given[0]
    plan, outs = view_plan(run, call)
    if plan.alias == "view" and outs is None and plan.form is None and plan.nodes and plan.results:
        return _one_view(run, plan, call)  # most calls
    if plan.alias == "itself":
        return source.tensor
    listed = [run.empty(meta) for meta in plan.outs] if outs is None else outs
    result = listed[0] if plan.form is None else plan.form(listed)
    if not plan.results:
        register_empty(run, listed, plan)
        return result
    tracker = run.tracker
    # A call without nodes has the name of its source.
    renames = not plan.nodes and len(listed) == 1
    was_read = source.was_read
    names: Sequence[str]
    if not renames:
        names = tracker.emit(plan, given)
    else:
        names = (tracker.read(source) if source.plain or source.parent else source.name,)
        if source.meta.kind and source.meta.shape == plan.outs[0].shape:
            _register_same_param(run, listed[0], source)  # detach() of a parameter
            return result
    if renames and plan.alias == "copy":
        tracker.grads.copy(source, names[0], was_read)
    elif info.name == "detach" and not source.meta.kind:
        tracker.grads.detached.update(names)
    _register_views(run, call, plan, listed, names)
    return result


def _one_view(run: Capture, plan: CallPlan, call: OpCall) -> Tensor:
    """The one result of a call that makes nodes, as a view of its first tensor."""
    tracker, given, [meta] = run.tracker, call.given, plan.outs
    source, out = given[0], run.empty(meta)
    [name] = tracker.emit(plan, given)
    if call.info.name == "detach" and not source.meta.kind:
        tracker.grads.detached.add(name)
    view = TracedTensor(
        out, name, meta, False, source, ViewCall(plan, given, 0), tracker.module,
        source.version if source.parent is None else source.root.version,
    )  # fmt: skip
    if source.computable and out.numel() <= MOST_COMPUTED:
        view.computable = True
        view.recompute = Recompute(call.func, call.args, call.kwargs, None, run.writes)
    tracker.add(view)
    return out


def _register_views(
    run: Capture, call: OpCall, plan: CallPlan, outs: list[Tensor], names: Sequence[str]
) -> None:
    """Register the results of a call, those that share storage as views of its first tensor."""
    tracker, given = run.tracker, call.given
    source, alias, form = given[0], plan.alias, plan.form
    register, computable = tracker.register, source.computable
    for n, out in enumerate(outs):
        traced = register(out, names[n], plan.outs[n])
        if computable and out.numel() <= MOST_COMPUTED:
            traced.computable = True
            output = None if form is None else n
            traced.recompute = Recompute(call.func, call.args, call.kwargs, output, run.writes)
        if alias == "view" or (not alias and alias_of(run, source, [out]) == "view"):
            traced.parent = source
            traced.view_call = ViewCall(plan, given, n)
            traced.module = tracker.module
            traced.version = source.root.version
            traced.plain = False
            if not plan.nodes and len(outs) == 1 and not source.plain and source.parent is None:
                traced.version = -1  # named when it is read


def view_plan(run: Capture, call: OpCall) -> tuple[CallPlan, list[Tensor] | None]:
    """The plan of a call, and its results if it had to be run."""
    source = call.given[0]
    # Autograd must be able to record a view of a tensor that it can record.
    short = run.shortcuts and not run.real and source.tensor.is_inference()
    plan = run.plans.get(call.key) if run.shortcuts else None
    if short and plan is not None and plan.alias:
        return plan, None
    if short and plan is None:
        plan = _infer_view(run, call)
        if plan is not None:
            run.plans[call.key] = plan
    if short and plan is not None and plan.alias:
        return plan, None
    outs = run_on_meta(run, call)
    listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    if plan is None or not plan.alias:
        converted = convert_call(run, call)
        plan, _ = checked_plan(run, call, converted, outs, alias_of(run, source, listed))
        assert plan is not None  # results of a view are tensors
        run.plans[call.key] = plan
    return plan, listed


def infer_layout(run: Capture, call: OpCall) -> CallPlan | None:
    """A plan without nodes: shapes and strides of the results, where a rule is certain of them."""
    info, given = call.info, call.given
    meta = given[0].meta
    layouts = view_layouts(info.name, meta, call.args[1:], call.kwargs) if len(given) == 1 else None
    if layouts is None:
        return None
    metas = [run.tracker.meta_of(each.shape, each.stride, meta.dtype) for each in layouts]
    form = list if info.name in LISTS else None
    return CallPlan((), (), tuple(metas), form, "copy" if layouts[0].copied else "view")


def _infer_view(run: Capture, call: OpCall) -> CallPlan | None:
    """The plan of a call without a run, where a rule is certain of the strides."""
    layout = infer_layout(run, call)
    if layout is None:
        return None
    lowering, results, _ = convert_call(run, call)
    if results is None or [ref.shape for ref in results] != [meta.shape for meta in layout.outs]:
        return None
    dtype = call.given[0].meta.name
    if any(ref.dtype != dtype for ref in results):
        return None
    return lowering.plan(results, layout.outs, layout.form, layout.alias)


def alias_of(run: Capture, source: TracedTensor, outs: Sequence[Tensor]) -> str:
    """How results of a run are stored, as in `CallPlan.alias`."""
    tensors = [each for each in (source.tensor, source.meta_copy) if each is not None]
    if len(outs) == 1 and any(outs[0] is each for each in tensors):
        return "itself"
    shares_storage = run.torch._C._is_alias_of
    shared = {any(shares_storage(out, each) for each in tensors) for out in outs}
    return "" if len(shared) != 1 else "view" if shared.pop() else "copy"


# Parameters under the same name


def cast_param(run: Capture, source: TracedTensor, dtype: dtype) -> Tensor:
    """A parameter cast to another dtype; a layer that reads it still has it as its parameter."""
    tracker = run.tracker
    meta = tracker.cast_meta(source.meta, dtype)
    with run.unwatched():
        out = source.tensor.to(dtype) if run.real else run.empty(meta)
    tracker.param_table.add_alias(out, source.name, buffer=meta.kind == "buffer")
    tracker.register(out, source.name, meta, plain=False)
    return out


def _register_same_param(run: Capture, out: Tensor, source: TracedTensor) -> None:
    """Register a view of a parameter with all its elements as that parameter."""
    tracker, kind = run.tracker, source.meta.kind
    tracker.param_table.add_alias(out, source.name, buffer=kind == "buffer")
    traced = tracker.register(out, source.name, tracker.meta(out, kind), plain=False)
    traced.computable = source.computable
    traced.recompute, traced.random = source.recompute, source.random
