"""Calls of modules: each runs in its scope, or is captured by a fast path without a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import get_ident
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.failures import shapes_in
from layerscope.formats.torch.inplace_writes import write
from layerscope.formats.torch.module_log import CallRecord, first_shape
from layerscope.formats.torch.module_plans import ModulePlans, has_hooks, is_hooked
from layerscope.formats.torch.module_table import ModuleInfo
from layerscope.formats.torch.restore import pass_through
from layerscope.formats.torch.shadows import Shadows
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor
from layerscope.formats.torch.torch_types import Arg, Args, Kwargs, Result, Torch
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

TRACKERS = ("ModuleTracker", "ModTracker")  # of torch.utils and torch.distributed


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
        self._plans = ModulePlans(torch, run, shadows.no_hooks)
        self._failed: tuple[BaseException, ModuleInfo, list[tuple[Shape, str]]] | None = None
        sequential, identity = torch.nn.Sequential, torch.nn.Identity
        self._sequential = (sequential.forward, sequential.__iter__)
        if not sequential.forward.__module__.startswith("torch.nn."):  # replaced by somebody
            self._sequential = (None, None)
        self._identity = identity if identity.forward.__module__.startswith("torch.nn.") else None
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
                if info.cls is identity and not is_hooked(info.attrs):
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
                    own_call = global_hooks or has_hooks(info.attrs)
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
        found = self._plans.find(info, traced.meta)
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

    def _new_tensor(self, name: str, meta: TensorMeta) -> Tensor:
        """A tensor for the model's own code."""
        out = self.run.empty_undispatched(meta)
        self.tracker.add(TracedTensor(out, name, meta))
        return out

    # Sequential

    def _is_plain_sequential(self, info: ModuleInfo) -> bool:
        """Whether a module only calls its children one after the other."""
        cls = info.cls
        return (
            issubclass(cls, self.torch.nn.Sequential)
            and cls.forward is self._sequential[0]
            and cls.__iter__ is self._sequential[1]
            and not is_hooked(info.attrs)
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
                found = None if x_meta is None else self._plans.find(info, x_meta)
                if found is not None and not (found[2] and meta is None):
                    if traced is not None:
                        inputs = (traced.name if traced.plain else tracker.read(traced),)
                    inputs = tracker.emit_module(info, found[0].nodes[0], inputs, found[1])
                    meta = found[0].outs[0]
                    continue
            elif info is not None and info.cls is self._identity and not is_hooked(info.attrs):
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
