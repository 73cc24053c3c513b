"""Calls that compute new tensors: `linear`, `add`, `softmax` …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerscope.errors import ShapeError
from layerscope.formats.torch.backward_calls import open_backward
from layerscope.formats.torch.capture_state import MOST_COMPUTED, Capture, NoKernel
from layerscope.formats.torch.custom_ops import custom_plan, find_rule
from layerscope.formats.torch.dtypes import FLOATS
from layerscope.formats.torch.foreach_calls import open_foreach
from layerscope.formats.torch.lowering import FIRST_OUTPUT, CallPlan, PlannedNode
from layerscope.formats.torch.meta_runs import decompose, run_on_meta
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.plans import (
    Converted,
    checked_plan,
    contiguous_metas,
    convert_call,
    has_contiguous_result,
    infer_outputs,
    register_empty,
)
from layerscope.formats.torch.tensors import Recompute, TracedTensor
from layerscope.formats.torch.torch_types import Result
from layerscope.graph.attributes import Concat
from layerscope.ops.calls import infer_call
from layerscope.ops.torch_strides import dense

if TYPE_CHECKING:
    from torch import Tensor


def on_compute(run: Capture, call: OpCall) -> Result:
    """Handle a call whose results are new tensors."""
    info, given = call.info, call.given
    saved = info.others and run.by_products
    plan = run.plans.get(call.key) if run.shortcuts and not (run.real or saved) else None
    outs = None
    if plan is None:
        plan, outs = _new_plan(run, call)
        if plan is None:
            run.sized_by_values = False
            return outs
        # An operator without a converter may be registered otherwise next time. With values, plans
        # differ: more operators can be run.
        if info.convert is not None and not (run.real or saved or run.sized_by_values):
            run.plans[call.key] = plan
        run.sized_by_values = False
    if outs is None:
        if plan.form is None and len(plan.outs) == 1 and plan.results and not info.others:
            return _one_result(run, plan, call)  # most calls
        outs = [run.empty(meta) for meta in plan.outs]
    if not plan.results:
        register_empty(run, outs, plan)
        return outs[0] if plan.form is None else plan.form(outs)
    names = run.tracker.emit(plan, given)
    _register(run, call, plan, outs, names)
    if plan.form is None:
        if not info.others:
            return outs[0]
        run.left_out = True  # of several results, PyTorch expects all and mostly reads one
        return (outs[0], *[None] * info.others)
    return plan.form(outs)


def _one_result(run: Capture, plan: CallPlan, call: OpCall) -> Tensor:
    """The one result of a call, as a tensor of its own."""
    tracker, given, [meta] = run.tracker, call.given, plan.outs
    out = run.empty(meta)
    [name] = tracker.emit(plan, given)
    traced = TracedTensor(out, name, meta)
    if given[0].computable and _is_computable(given, out):
        traced.computable = True
        traced.recompute = Recompute(call.func, call.args, call.kwargs, None, run.writes)
    tracker.add(traced)
    return out


def _is_computable(given: Sequence[TracedTensor], out: Tensor) -> bool:
    """Whether the values of a result can be computed from those of the inputs."""
    return out.numel() <= MOST_COMPUTED and all(traced.computable for traced in given)


def _register(
    run: Capture, call: OpCall, plan: CallPlan, outs: list[Tensor], names: Sequence[str]
) -> None:
    given = call.given
    computable = given[0].computable and all(traced.computable for traced in given)
    register = run.tracker.register
    if len(names) < len(outs):  # by-products: a constant unless one is read
        for out, meta in zip(outs[len(names) :], plan.outs[len(names) :], strict=True):
            register(out, "", meta, plain=False).is_const = True
        outs = outs[: len(names)]
    for n, (out, name, meta) in enumerate(zip(outs, names, plan.outs, strict=False)):
        traced = register(out, name, meta)
        if computable and out.numel() <= MOST_COMPUTED:
            traced.computable = True
            output = n if plan.form else None
            traced.recompute = Recompute(call.func, call.args, call.kwargs, output, run.writes)


def _new_plan(run: Capture, call: OpCall) -> tuple[CallPlan | None, Result]:
    """The plan of a call, and its results if it had to be run.

    The plan is None if the results are final: the operator was decomposed, or returns no tensors.
    """
    info, func = call.info, call.func
    if info.quantized and info.name.endswith("_unpack"):
        pack = run.packs.of(call.args[0])
        if pack is not None:  # its arrays have names, others that are unpacked have none
            return None, pack.arrays["weight"] if "embed" in info.name else pack.pair
    if info.name == "cat" and run.shortcuts and not run.real:
        plan = _cat_plan(run, call)
        if plan is not None:
            return plan, None
    converted = convert_call(run, call)
    plan = None if info.others and run.by_products else _inferred_plan(run, call, converted)
    if plan is not None:
        return plan, None
    results = converted.results
    rule = find_rule(run, call) if results is None else None
    if results is None and rule is None and run.is_composite(func):
        opened = decompose(run, call)
        if opened is not NotImplemented:
            return None, opened
    if results is None and rule is None:
        opened = open_backward(run, call)
        if opened is NotImplemented:
            opened = open_foreach(run, call)
        if opened is not NotImplemented:
            return None, opened
    try:
        outs = run_on_meta(run, call)
    except RuntimeError:
        if results is None or run.real or not _can_be_inferred(call):
            raise  # for the others, meta kernels refuse what real ones refuse
        return _contiguous_plan(run, call, converted), None
    if rule is not None:
        return custom_plan(run, call, rule, outs)
    return checked_plan(run, call, converted, outs)


def _can_be_inferred(call: OpCall) -> bool:
    """Whether a result is contiguous; the meta kernel of `where` refuses masks of uint8."""
    return call.info.name == "where" or has_contiguous_result(call.info.name, call.given)


def _inferred_plan(run: Capture, call: OpCall, converted: Converted) -> CallPlan | None:
    """The plan of a call without a run; None where PyTorch must be asked."""
    lowering, results, form = converted
    if call.info.quantized and results is not None and not run.real:
        if form is not None or results[0].dtype not in FLOATS:
            raise run.needs_values(call.info, "has no kernel without them", NoKernel)
        return _contiguous_plan(run, call, converted)
    inferred = infer_outputs(run, call, converted)
    if inferred is None or results is None:
        return None
    return lowering.plan(results, tuple(inferred), form)


def _contiguous_plan(run: Capture, call: OpCall, converted: Converted) -> CallPlan:
    lowering, results, form = converted
    assert results is not None
    metas = contiguous_metas(run, results, [traced.meta for traced in call.given])
    return lowering.plan(results, tuple(metas), form)


def _cat_plan(run: Capture, call: OpCall) -> CallPlan | None:
    """A concatenation of contiguous tensors of one dtype. There may be many: no converter."""
    metas = [traced.meta for traced in call.given]
    first = metas[0]
    dim = call.args[1] if len(call.args) == 2 else 0
    if call.kwargs or call.info.quantized or first.dtype in run.quantized_dtypes or len(metas) < 2:
        return None
    for meta in {*metas}:
        if meta.dtype is not first.dtype or not meta.contiguous or 0 in meta.shape:
            return None
    if not -len(first.shape) <= dim < len(first.shape):
        return None
    attributes = run.tracker.intern(Concat(dim % len(first.shape)))
    try:
        [shape] = infer_call("concat", attributes, tuple([meta.shape for meta in metas])).outputs
    except ShapeError:
        return None
    inputs = tuple(range(len(metas)))
    node = PlannedNode("concat", inputs, attributes, (), 1, call.info.source)
    out = run.tracker.meta_of(shape, dense(shape), first.dtype)
    return CallPlan((node,), FIRST_OUTPUT, (out,))
