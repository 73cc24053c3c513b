"""Calls of modules: each runs in its scope, or is captured by a fast path without a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import COMMON
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.failures import shapes_in
from layerscope.formats.torch.fast_paths import FastPath
from layerscope.formats.torch.inplace_writes import write
from layerscope.formats.torch.lowering import CallPlan, Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.meta_runs import on_meta
from layerscope.formats.torch.module_log import CallRecord, first_shape
from layerscope.formats.torch.module_table import ModuleInfo
from layerscope.formats.torch.plans import (
    CONTIGUOUS_RESULT,
    contiguous_metas,
    has_one_float_dtype,
)
from layerscope.formats.torch.restore import pass_through
from layerscope.formats.torch.shadows import Shadows
from layerscope.formats.torch.strides import BY_ELEMENT, element_stride
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor
from layerscope.formats.torch.torch_types import Arg, Args, Attrs, Kwargs, Result, Torch
from layerscope.graph.types import Shape, Source

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

TRACKERS = ("ModuleTracker", "ModTracker")  # of torch.utils and torch.distributed
MUST_RUN = CallPlan((), (), ())  # of a module that no fast path takes


class ModuleCall(NamedTuple):
    """A call of a module by its fast path, on an input of this shape, strides and dtype."""

    fast_path: FastPath
    meta: TensorMeta
    arrays: Args  # parameters and buffers, None where the module has none
    attrs: Args
    in_place: bool


class ModuleCalls:
    """Handles calls of modules while the context lasts, in this thread alone.

    Shadows run instead of the modules. With `short`, modules with a fast path are not run.
    """

    def __init__(self, torch: Torch, run: Capture, shadows: Shadows, *, short: bool) -> None:
        self.torch = torch
        self.run = run
        self.tracker = run.tracker
        self.shadows = shadows
        self.short = short
        self._plans, self._names = run.plans, run.tracker.param_table.names
        self._failed: tuple[BaseException, ModuleInfo, list[tuple[Shape, str]]] | None = None
        self._reused: dict[Any, CallPlan] = {}  # plans for other shapes or channels
        sequential, identity = torch.nn.Sequential, torch.nn.Identity
        self._sequential = (sequential.forward, sequential.__iter__)
        if not sequential.forward.__module__.startswith("torch.nn."):  # replaced by somebody
            self._sequential = (None, None)
        self._identity = identity if identity.forward.__module__.startswith("torch.nn.") else None
        self._no_hooks = shadows.no_hooks  # all hook tables of a plain shadow
        self._call: Any = None
        self.records: list[CallRecord] | None = None  # calls so far, if they are to be recorded

    def __enter__(self) -> ModuleCalls:
        self._call = self.shadows.call = self._handler()
        return self

    def __exit__(self, *_: object) -> None:
        self._call = self._failed = None
        self.shadows.close()

    def start(self, model: Module, args: Args, kwargs: Kwargs) -> Result:
        """Call the model itself."""
        info = self.tracker.modules[id(model)]
        if info.cls.__call__ is not self.torch.nn.Module.__call__:  # it has its own
            return self.shadows.of(model)(*args, **kwargs)
        return self._call(info, *args, **kwargs)

    def _handler(self) -> Callable[..., Result]:
        """The function that is called for a module; one Python frame, because models are deep."""
        owner, torch, tracker, run = get_ident(), self.torch, self.tracker, self.run
        traced_by_id, nodes, log = tracker.traced, tracker.nodes, tracker.log
        plain_grad, autocasting = run.plain_grad, torch._C._is_any_autocast_enabled
        call_impl = torch.nn.Module._call_impl
        global_hooks = has_global_hooks(torch)
        attention = _attention_classes(torch) if run.real else ()
        shortens, identity, by_fast_path = self.short, self._identity, self._by_fast_path
        records, shape_of = self.records, self._shape

        def call(info: ModuleInfo, *args: Arg, **kwargs: Arg) -> Result:
            """Call a module; a branch per shortcut: another frame would cost time and depth."""
            if get_ident() != owner:
                return info.shadow._call_impl(*args, **kwargs)
            short = shortens and len(args) == 1 and not kwargs and plain_grad()
            if autocasting():
                short, run.mode.casts = False, True
            if short and info.path:
                if info.cls is identity and not _is_hooked(info.attrs):
                    if records is not None:
                        shape = first_shape(args, torch)
                        records.append(CallRecord(info, len(nodes), len(nodes), shape, shape))
                    return args[0]
                if info.fast_path is not None:
                    traced = traced_by_id.get(id(args[0]))
                    if traced is not None:
                        out = by_fast_path(info, args[0], traced)
                        if out is not None:
                            return out
            outer, tracker.module = tracker.module, info if info.scope else info.opened()
            before, mark = len(nodes), len(log)
            record = None
            if records is not None:
                record = CallRecord(info, before, before, shape_of(args, *args[:1]))
                records.append(record)
            try:
                if short and self._is_plain_sequential(info):
                    result = self._run_sequential(info, args[0])
                else:
                    shadow = info.shadow or self.shadows.make(info)
                    own_call = global_hooks or _has_hooks(info.attrs)
                    if attention and isinstance(shadow, attention):
                        with pass_through(torch):
                            result = shadow._call_impl(*args, **kwargs)
                    elif own_call or info.cls._call_impl is not call_impl:
                        result = shadow._call_impl(*args, **kwargs)
                    else:
                        result = shadow.forward(*args, **kwargs)
            except BaseException as error:
                if self._failed is None or self._failed[0] is not error:
                    self._failed = (error, info, shapes_in((args, kwargs), torch))
                raise
            finally:
                tracker.module = outer
            if record is not None:
                record.end, record.output = len(nodes), shape_of(result, result)
            if info.childless and tracker.name_by_module(info, before, mark):
                info.printed = info.fast_path is not None
            return result

        return call

    def _shape(self, value: Arg, tensor: object = None) -> Shape:
        """Shape of a tensor of the run, else as `first_shape` of a value."""
        traced = self.tracker.traced.get(id(tensor))
        return first_shape(value, self.torch) if traced is None else traced.meta.shape

    def where(self, error: BaseException) -> tuple[ModuleInfo | None, list[tuple[Shape, str]]]:
        """The innermost module that raised an error, and the shapes and dtypes of its inputs."""
        failed, self._failed = self._failed, None  # the traceback refers to all tensors
        return failed[1:] if failed is not None and failed[0] is error else (None, [])

    # Modules that are one operation

    def _by_fast_path(self, info: ModuleInfo, x: Tensor, traced: TracedTensor) -> Tensor | None:
        """The result of a module by its fast path; None if it must be run."""
        found = self._find_plan(info, traced.meta)
        if found is None:
            return None
        plan, params, in_place = found
        if in_place and traced.parent is not None:
            return None
        tracker = self.tracker
        source = traced.name if traced.plain else tracker.read(traced)
        [name] = tracker.emit_module(info, plan.nodes[0], (source,), params)
        if in_place:
            write(tracker, traced, name)
            return x
        return self._new_tensor(name, plan.outs[0])

    def _find_plan(
        self, info: ModuleInfo, meta: TensorMeta
    ) -> tuple[CallPlan, list[Any], bool] | None:
        """The plan of a module, names of its parameters, and whether it works in place.

        None if it must be run.
        """
        path, attrs = info.fast_path, info.attrs
        if path is None or "forward" in attrs:
            return None
        if attrs["_forward_hooks"] is not self._no_hooks and _has_hooks(attrs):
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

    def _new_tensor(self, name: str, meta: TensorMeta) -> Tensor:
        """A tensor for the model's own code."""
        out = self.run.empty_undispatched(meta)
        self.tracker.add(TracedTensor(out, name, meta))
        return out

    # Plans of fast paths

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

    # Sequential

    def _is_plain_sequential(self, info: ModuleInfo) -> bool:
        """Whether a module only calls its children one after the other."""
        cls = info.cls
        return (
            issubclass(cls, self.torch.nn.Sequential)
            and cls.forward is self._sequential[0]
            and cls.__iter__ is self._sequential[1]
            and not _is_hooked(info.attrs)
        )

    def _run_sequential(self, sequential: ModuleInfo, x: Arg) -> Result:
        """As `Sequential.forward`, without tensors between modules that have a fast path."""
        tracker = self.tracker
        modules, traced_by_id, shadows = tracker.modules, tracker.traced, self.shadows
        plain_call = self.torch.nn.Module.__call__
        inputs: tuple[str, ...] = ()  # name of the input of the next module
        meta: TensorMeta | None = None  # of that input, while there is no tensor of it
        for module in [*dict.values(sequential.attrs["_modules"])]:
            info = modules.get(id(module)) or shadows.by_shadow.get(id(module))
            if info is not None and info.fast_path is not None:
                traced = traced_by_id.get(id(x)) if meta is None else None
                x_meta = meta if traced is None else traced.meta
                found = None if x_meta is None else self._find_plan(info, x_meta)
                if found is not None and not (found[2] and meta is None):
                    if traced is not None:
                        inputs = (traced.name if traced.plain else tracker.read(traced),)
                    inputs = tracker.emit_module(info, found[0].nodes[0], inputs, found[1])
                    meta = found[0].outs[0]
                    continue
            elif info is not None and info.cls is self._identity and not _is_hooked(info.attrs):
                if self.records is not None:
                    shape = first_shape(x, self.torch) if meta is None else meta.shape
                    at = len(tracker.nodes)
                    self.records.append(CallRecord(info, at, at, shape, shape))
                continue
            if meta is not None:
                x, meta = self._new_tensor(inputs[0], meta), None
            if info is not None and info.cls.__call__ is plain_call:
                x = self._call(info, x)
            else:
                x = shadows.of(module)(x)
        return x if meta is None else self._new_tensor(inputs[0], meta)


def _has_hooks(attrs: Attrs) -> bool:
    """Whether a module has hooks of its own."""
    return bool(
        attrs["_forward_hooks"]
        or attrs["_forward_pre_hooks"]
        or attrs["_backward_hooks"]
        or attrs["_backward_pre_hooks"]
    )


def _is_hooked(attrs: Attrs) -> bool:
    """Whether a module has hooks, or a forward of its own."""
    return "forward" in attrs or _has_hooks(attrs)


@cache
def _attention_classes(torch: Torch) -> tuple[Any, ...]:
    """Classes that may run attention as one fused operator, which has no converter."""
    nn = torch.nn
    return (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


def has_global_hooks(torch: Torch) -> bool:
    """Whether there are hooks on all modules, other than those of PyTorch's own counters.

    Those only note which module runs, and a capture is no call of the user's.
    """
    home = torch.nn.modules.module
    tables = (
        home._global_forward_hooks, home._global_forward_pre_hooks,
        home._global_backward_hooks, home._global_backward_pre_hooks,
    )  # fmt: skip
    hooks = [hook for table in tables for hook in [*table.values()]]
    return any(type(getattr(hook, "__self__", None)).__name__ not in TRACKERS for hook in hooks)
