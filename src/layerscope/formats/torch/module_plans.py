"""Plans of modules that are one operation, cached by shapes and attributes."""

from __future__ import annotations

from typing import Any, NamedTuple

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import COMMON
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.fast_paths import FastPath
from layerscope.formats.torch.lowering import CallPlan, Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.meta_runs import on_meta
from layerscope.formats.torch.module_table import ModuleInfo
from layerscope.formats.torch.plans import (
    CONTIGUOUS_RESULT,
    contiguous_metas,
    has_one_float_dtype,
)
from layerscope.formats.torch.strides import BY_ELEMENT, element_stride
from layerscope.formats.torch.tensors import TensorMeta
from layerscope.formats.torch.torch_types import Args, Attrs, Torch
from layerscope.graph.types import Source

MUST_RUN = CallPlan((), (), ())  # of a module that no fast path takes


class ModuleCall(NamedTuple):
    """A call of a module by its fast path, on an input of this shape, strides and dtype."""

    fast_path: FastPath
    meta: TensorMeta
    arrays: Args  # parameters and buffers, None where the module has none
    attrs: Args
    in_place: bool


class ModulePlans:
    """The plans of fast paths in one run; those of equal modules are shared by all captures."""

    def __init__(self, torch: Torch, run: Capture, no_hooks: object) -> None:
        self.torch, self.run, self.tracker = torch, run, run.tracker
        self._plans, self._names = run.plans, run.tracker.param_table.names
        self._reused: dict[Any, CallPlan] = {}  # plans for other shapes or channels
        self._no_hooks = no_hooks  # all hook tables of a plain shadow

    def find(self, info: ModuleInfo, meta: TensorMeta) -> tuple[CallPlan, list[Any], bool] | None:
        """The plan of a module, names of its parameters, and whether it works in place.

        None if it must be run.
        """
        path, attrs = info.fast_path, info.attrs
        if path is None or "forward" in attrs:
            return None
        if attrs["_forward_hooks"] is not self._no_hooks and has_hooks(attrs):
            return None
        arrays: Args = ()
        params: list[Any] = []
        try:
            options = path.attrs(attrs) if path.attrs is not None else ()
            in_place = path.in_place and attrs["inplace"]
            key: Any = (info.cls, meta, options, in_place)
            if path.params is not None:
                arrays = path.params(attrs["_parameters"])
                if path.buffers is not None:
                    arrays += path.buffers(attrs["_buffers"])
                names, own = self._names, [key]
                for array in arrays:
                    params.append(names.get(id(array)))
                    own += (None, None) if array is None else (array.shape, array.dtype)
                key = tuple(own)
            plan = self._plans.get(key)
        except (KeyError, TypeError):  # attributes are missing, or cannot be hashed
            return None
        if plan is None:
            call = ModuleCall(path, meta, arrays, options, in_place)
            plan = self._plans[key] = self._plan(call) or MUST_RUN
        if plan is MUST_RUN:
            return None
        if None in params:
            for _, n in plan.nodes[0].holds:
                if params[n] is None:
                    return None  # the forward replaced a parameter
        return plan, params, in_place

    def _plan(self, call: ModuleCall) -> CallPlan | None:
        """The plan of a fast path; None if the module must be run."""
        if call.meta.contiguous and not call.meta.kind:
            if call.fast_path.keeps_shape:
                return self._plan_by_rank(call)
            if call.fast_path.shape_key:
                return self._plan_by_shape_key(call)
        return self._new_plan(call)

    def _plan_by_rank(self, call: ModuleCall) -> CallPlan | None:
        """The plan of a module with equal attributes on another shape of the same rank."""
        meta = call.meta
        channels = meta.shape[1:2]
        for array in call.arrays:
            if array is not None and array.shape != channels:
                return self._new_plan(call)
        buffers = self.tracker.param_table.buffers
        dtypes = tuple([a is not None and (a.dtype, id(a) in buffers) for a in call.arrays])
        key = (call.fast_path, call.attrs, call.in_place, meta.dtype, len(meta.shape), dtypes)
        plan = self._reused.get(key)
        if plan is not None:
            return CallPlan(plan.nodes, plan.results, (meta,))
        plan = self._new_plan(call)
        if plan is not None and plan.outs[0] is meta:
            self._reused[key] = plan
        return plan

    def _plan_by_shape_key(self, call: ModuleCall) -> CallPlan | None:
        """The plan of a module with equal attributes and another number of input channels."""
        path, meta = call.fast_path, call.meta
        buffers, names = self.tracker.param_table.buffers, self.tracker.param_table.names
        weight, bias = call.arrays
        shape_key = None
        if path.shape_key is not None and weight is not None:
            shape_key = path.shape_key(meta, call.arrays, call.attrs)
        if shape_key is None or (bias is not None and bias.shape != weight.shape[:1]):
            return self._new_plan(call)
        dtypes = tuple([
            a is not None and (a.dtype, id(a) in buffers, id(a) in names) for a in call.arrays
        ])  # fmt: skip
        key = (path, call.attrs, meta.dtype, dtypes, shape_key)
        plan = self._reused.get(key)
        if plan is None:
            plan = self._new_plan(call)
            if plan is not None:
                self._reused[key] = plan
        return plan

    def _new_plan(self, call: ModuleCall) -> CallPlan | None:
        """Call the converter of the module's operator; None if PyTorch must be asked."""
        run, tracker, (path, meta, arrays, attrs, in_place) = self.run, self.tracker, call
        names, buffers = tracker.param_table.names, tracker.param_table.buffers
        given = [meta]
        refs: list[TensorRef | None] = []
        for n, array in enumerate(arrays):
            if array is None:
                refs.append(None)
                continue
            if id(array) not in names:
                return None
            buffer = id(array) in buffers
            array_meta = tracker.meta(array, "buffer" if buffer else "param")
            given.append(array_meta)
            refs.append(TensorRef(array_meta.shape, array_meta.name, n, True, buffer))
        if not has_one_float_dtype(run, path.operator, given):
            return None
        # ids count the parameters, as in emit_module; the one input is -1
        x = TensorRef(meta.shape, meta.name, -1, meta.kind != "")
        source = Source(op=f"aten.{path.operator}{'_' if in_place else ''}")
        lowering = Lowering(source, tracker.attr_cache, run.floating)
        lowering.in_place = in_place
        lowering.training = tracker.grads.training
        arguments = path.arguments(x, tuple(refs), attrs)
        if arguments is None:
            return None
        try:
            result = COMMON[path.operator](lowering, *arguments)
        except (Unsupported, Refused, ShapeError, TypeError, ValueError, IndexError):
            return None
        same_dtype = all(each.name == result.dtype for each in given[1:])
        if len(lowering.nodes) != 1 or lowering.nodes[0].inputs != (-1,) or not same_dtype:
            return None
        out: TensorMeta | None = meta
        if not in_place and (meta.contiguous or path.operator in CONTIGUOUS_RESULT):
            [out] = contiguous_metas(run, [result], given)
        elif not in_place:
            out = self._strided_result(call)
        if out is None or out.shape != result.shape or out.name != result.dtype:
            return None
        return lowering.plan([result], (out,))

    def _strided_result(self, call: ModuleCall) -> TensorMeta | None:
        """The result for an input that is not contiguous, by a rule or a run on the meta device."""
        run, (path, meta, arrays, attrs, _) = self.run, call
        if path.operator in BY_ELEMENT:
            stride = element_stride(meta.shape, [meta])
            if stride is not None:
                return self.tracker.meta_of(meta.shape, stride, meta.dtype)
        func = getattr(self.torch.ops.aten, path.operator)
        extra: tuple[bool, ...] = (False,) if path.operator == "batch_norm" else ()
        with run.unwatched():
            x = run.empty(meta)
            metas = tuple([None if a is None else on_meta(run, a) for a in arrays])
            args = (*(path.arguments(x, metas, attrs) or ()), *extra)
            try:
                out = func(x, approximate=attrs[0]) if path.operator == "gelu" else func(*args)
            except RuntimeError:  # the operator does not take the module's attributes as they are
                return None
            return self.tracker.meta(out)


def has_hooks(attrs: Attrs) -> bool:
    """Whether a module has hooks of its own."""
    return bool(
        attrs["_forward_hooks"]
        or attrs["_forward_pre_hooks"]
        or attrs["_backward_hooks"]
        or attrs["_backward_pre_hooks"]
    )


def is_hooked(attrs: Attrs) -> bool:
    """Whether a module has hooks, or a forward of its own."""
    return "forward" in attrs or has_hooks(attrs)
