"""Autocast: the casts that PyTorch makes before an operator, for tensors on the meta device.

PyTorch casts tensors of the device that autocast is on for, and never those on the meta device.
So a model that runs under autocast is run with its parameters on the meta device too, and the casts
are made here. Which casts an operator gets is PyTorch's answer: its autocast kernel is called on
stand-ins, tensors without storage that report the model's device, and what it does to them is done
to the traced tensors. Whether autocast is on is asked at every call; PyTorch keeps that per thread.
On real tensors PyTorch makes the casts itself, and those of parameters are recognised.

Casts of activations are nodes of their own. The cast of a parameter is part of the layer that has
it: the layer reads it as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.op_calls import cache_key, named_key, op_info
from layerscope.formats.torch.shadows import Rerun
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor
from layerscope.formats.torch.torch_types import Arg, Args, Dispatch, Kwargs, Result, Torch
from layerscope.formats.torch.view_calls import cast_param

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch._ops import OpOverload

DEVICES = ("cpu", "cuda", "xpu", "mps")


class Slot(NamedTuple):
    """The n-th tensor of a call, in this dtype; None: its own."""

    n: int
    dtype: dtype | None


class CastCall(NamedTuple):
    """The call that autocast makes of a call, with slots instead of tensors."""

    func: OpOverload
    args: Args
    kwargs: Kwargs
    result: dtype | None = None  # dtype that the result is cast back to


class Composite(NamedTuple):
    """Dtypes of the results of a composite operator, and how many casts there are inside it."""

    dtypes: tuple[Any, ...]
    casts: int


class UncastCall(NamedTuple):
    """A call before its casts, and its tensors."""

    func: OpOverload
    args: Args
    kwargs: Kwargs
    given: list[TracedTensor]


class FinalCall(Exception):
    """Ends a call on stand-ins, at the operator behind the autocast kernel."""


class Autocast:
    """Makes the casts of autocast while the context lasts, and restores its state."""

    def __init__(
        self, torch: Torch, run: Capture, dispatch: Dispatch, device: Callable[[], str]
    ) -> None:
        self.torch = torch
        self.run = run
        self.dispatch = dispatch
        self._find_device = device  # type of the model's device, "" for the meta device
        self._device: str | None = None
        self.starts_enabled = False
        self.arrays_on_meta = False  # the model's parameters were copied to the meta device
        self.notes: dict[str, None] = {}
        self._casts: dict[int, tuple[Tensor, Tensor]] = {}  # of parameters, as PyTorch's cache
        self._plans: dict[Any, CastCall | None] = {}
        self._before: list[tuple[Any, ...]] = []
        self._keeps_casts = True
        self._on = ""  # device type that casts are made for now

    def __enter__(self) -> Autocast:
        torch = self.torch
        devices = with_autocast(torch)
        self.starts_enabled = bool(torch._C._is_any_autocast_enabled())
        for device in devices:
            enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
            self._before.append((torch.set_autocast_enabled, device, enabled))
            self._before.append((torch.set_autocast_dtype, device, dtype))
        self._before.append((torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled()))
        self._keeps_casts = torch.is_autocast_cache_enabled()
        # all threads share it, and casts made here have no values
        torch.set_autocast_cache_enabled(False)
        return self

    def __exit__(self, *_: object) -> None:
        for setter, *state in self._before:
            setter(*state)
        self._casts.clear()
        self._plans.clear()

    def nested(self) -> bool:
        """Whether the call is inside an autocast context, enabled or not."""
        level = self.torch.autocast_increment_nesting()
        self.torch.autocast_decrement_nesting()
        return bool(level > 1)

    def _casts_for(self) -> str:
        """The type of device that casts are made for now; "" for none."""
        if self._device is None:
            self._device = self._find_device()
        devices = (self._device,) if self._device else with_autocast(self.torch)
        enabled = self.torch.is_autocast_enabled
        return next((device for device in devices if device in DEVICES and enabled(device)), "")

    # Calls

    def call(self, func: OpOverload, args: Args, kwargs: Kwargs) -> Result:
        """Dispatch one call while autocast may be on."""
        run, dispatch = self.run, self.dispatch
        with self.torch._C._RestorePythonTLSSnapshot():  # below the dispatcher it is always off
            self._on = self._casts_for()
        if not self._on:
            if self._casts and not self.nested():
                self._casts.clear()  # as PyTorch does at the end of the outermost context
            return dispatch(func, args, kwargs)
        if not self.arrays_on_meta and not run.real:
            raise Rerun("meta_arrays")
        given: list[TracedTensor] = []
        dtype = self.torch.get_autocast_dtype(self._on)
        own_key = cache_key(run, args, given), named_key(run, kwargs, given) if kwargs else None
        key = (func, own_key, self._on, dtype)
        if key not in self._plans:
            self._plans[key] = self._plan(UncastCall(func, args, kwargs, given))
        plan = self._plans[key]
        reads_param = run.real and given and given[0].meta.kind
        if reads_param and func.overloadpacket in cast_operators(self.torch):
            # PyTorch casts real tensors itself; the cast of a parameter is part of its layer
            self._note(dtype)
            return self._cast(given[0], _target_dtype(self.torch, args, kwargs))
        if plan is None:
            return dispatch(func, args, kwargs)

        def fill(slot: Slot) -> Tensor:
            traced = given[slot.n]
            return traced.tensor if slot.dtype is None else self._cast(traced, slot.dtype)

        new_args, new_kwargs = _replaced((plan.args, plan.kwargs), Slot, fill)
        self._note(dtype)
        out = dispatch(plan.func, new_args, new_kwargs)
        if plan.result is not None:
            out = dispatch(self.torch.ops.aten.to.dtype, (out, plan.result), {})
        return out

    def _note(self, dtype: dtype) -> None:
        self.notes[f"under autocast to {name_of(dtype)}, as on {self._on}"] = None

    def _cast(self, traced: TracedTensor, dtype: dtype) -> Tensor:
        tensor = traced.tensor
        if not traced.meta.kind:
            return self.dispatch(self.torch.ops.aten.to.dtype, (tensor, dtype), {})
        keeps = (
            tensor.requires_grad
            and tensor.is_leaf
            and tensor.dtype is self.torch.float32
            and dtype is self.torch.get_autocast_dtype(self._on)
            and self._keeps_casts
        )
        found = self._casts.get(id(tensor)) if keeps else None
        if found is None:
            found = (tensor, cast_param(self.run, traced, dtype))
            if keeps:
                self._casts[id(tensor)] = found
        return found[1]

    # What PyTorch does under autocast

    def _plan(self, call: UncastCall) -> CastCall | None:
        """The call with casts; None if there are none."""
        if not any(traced.meta.dtype.is_floating_point for traced in call.given):
            return None
        if call.func.name() in with_kernels(self.torch, self._on):
            return self._of_kernel(call)
        if op_info(call.func).kind == "compute" and self.run.is_composite(call.func):
            return self._of_composite(call)
        return None

    def _of_kernel(self, call: UncastCall) -> CastCall | None:
        """The call that the autocast kernel of an operator makes."""
        torch, given = self.torch, call.given
        casts = (torch.ops.aten.to.dtype, torch.ops.aten._to_copy.default)
        final: list[Any] = []

        def dispatch(func: OpOverload, args: Args, kwargs: Kwargs) -> Result:
            x: Any = args[0] if args else None
            if func in casts:
                dtype = kwargs["dtype"] if "dtype" in kwargs else args[1]
                return stand_in(torch, x.traced_meta, dtype, self._on, (x.n, dispatch))
            final[:] = [func, args, kwargs]
            if func.namespace == "aten":
                raise FinalCall
            return x  # kernels of other libraries may cast their result

        out = None
        try:
            out = self._rehearse(call, dispatch)
        except FinalCall:
            pass
        except RuntimeError:
            if not final:
                raise  # PyTorch refuses the operator under autocast
        if not final:
            return None
        last, last_args, last_kwargs = final

        def slot(x: Any) -> Slot:
            return Slot(x.n, None if x.dtype is given[x.n].meta.dtype else x.dtype)

        cls = stand_in_class(torch)
        back = None
        if isinstance(out, cls) and isinstance(last_args[0], cls):
            back = out.dtype if out.dtype is not last_args[0].dtype else None
        new_args, new_kwargs = _replaced((last_args, last_kwargs), cls, slot)
        return CastCall(last, new_args, new_kwargs, back)

    def _of_composite(self, call: UncastCall) -> CastCall | None:
        """The call of an operator that has no autocast kernel, but is made of others that have.

        If all its results have the lower dtype, all its inputs are cast; it stays one node.
        """
        on = self._composite(call, on=True)
        off = self._composite(call, on=False)
        lower = self.torch.get_autocast_dtype(self._on)
        if on is None or on == off:
            return None  # without casts, or refused: the call itself will raise the error
        if {*on.dtypes} != {lower}:
            self.notes[
                f"{call.func.overloadpacket} is one row, and computes in {name_of(lower)} inside"
            ] = None
            return None
        numbers = iter(range(len(call.given)))

        def slot(_: Tensor) -> Slot:
            n = next(numbers)
            dtype = call.given[n].meta.dtype
            casts = dtype.is_floating_point and dtype not in (lower, self.torch.float64)
            return Slot(n, lower if casts else None)

        new_args, new_kwargs = _replaced((call.args, call.kwargs), self.torch.Tensor, slot)
        return CastCall(call.func, new_args, new_kwargs)

    def _composite(self, call: UncastCall, *, on: bool) -> Composite | None:
        """Dtypes and casts of a composite operator; None if it cannot be run on stand-ins."""
        torch, meta_of = self.torch, self.run.tracker.meta
        cls = stand_in_class(torch)
        casts = 0

        def dispatch(func: OpOverload, args: Args, kwargs: Kwargs) -> Result:
            nonlocal casts
            casts += func is torch.ops.aten._to_copy.default
            bare, named = _replaced((args, kwargs), cls, lambda x: x.on_meta)
            named.pop("device", None)
            return _replaced(func(*bare, **named), torch.Tensor, wrap)

        def wrap(x: Tensor) -> Tensor:
            return stand_in(torch, meta_of(x), x.dtype, self._on, (-1, dispatch))

        try:
            with torch.inference_mode(False), torch.no_grad():
                out = self._rehearse(call, dispatch, on=on)
        except Exception:  # it needs values, or PyTorch refuses it
            return None
        dtypes: list[Any] = []
        _replaced(out, cls, lambda x: dtypes.append(x.dtype))
        return Composite(tuple(dtypes), casts)

    def _rehearse(self, call: UncastCall, dispatch: Dispatch, on: bool = True) -> Result:
        """The call on stand-ins, with PyTorch's own casts."""
        torch = self.torch
        tensors = iter(enumerate(call.given))

        def change(_: Tensor) -> Tensor:
            n, traced = next(tensors)
            return stand_in(torch, traced.meta, traced.meta.dtype, self._on, (n, dispatch))

        new_args, new_kwargs = _replaced((call.args, call.kwargs), torch.Tensor, change)
        set_enabled, enabled = torch.set_autocast_enabled, torch.is_autocast_enabled(self._on)
        set_enabled(self._on, on)
        try:
            return call.func(*new_args, **new_kwargs)
        finally:
            set_enabled(self._on, enabled)


def _replaced(arg: Arg, kind: type, change: Callable[[Any], object]) -> Arg:
    """A nest of arguments with every value of a type replaced."""
    if isinstance(arg, kind):
        return change(arg)
    if isinstance(arg, dict):
        return {name: _replaced(each, kind, change) for name, each in arg.items()}
    if type(arg) in (list, tuple):
        return type(arg)([_replaced(each, kind, change) for each in arg])
    return arg


@cache
def with_autocast(torch: Torch) -> tuple[str, ...]:
    """Device types that this PyTorch has autocast for."""
    found = []
    for device in DEVICES:
        with suppress(RuntimeError):
            torch.get_autocast_dtype(device)
            found.append(device)
    return tuple(found)


def cast_operators(torch: Torch) -> tuple[OpOverload, OpOverload]:
    """Operators that PyTorch casts with."""
    return torch.ops.aten.to, torch.ops.aten._to_copy


def _target_dtype(torch: Torch, args: Args, kwargs: Kwargs) -> dtype:
    """The dtype that a tensor is cast to; its own if none is given."""
    given = [*args[1:], *kwargs.values()]
    found = [each for each in given if isinstance(each, torch.dtype)]
    return found[0] if found else args[0].dtype


@cache
def with_kernels(torch: Torch, device: str) -> frozenset[str]:
    """Names of the operators that PyTorch has autocast kernels for."""
    key = f"Autocast{device.upper()}"
    return frozenset(torch._C._dispatch_get_registrations_for_dispatch_key(key))


@cache
def stand_in_class(torch: Torch) -> Any:
    """The class of tensors without storage that report a device and pass on every call on them."""

    def dispatch(
        cls: Any, func: OpOverload, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Result:
        first: list[Any] = []
        _replaced((args, kwargs or {}), stand_ins, first.append)
        return first[0].dispatch(func, args, kwargs or {})

    attrs = {"__torch_dispatch__": classmethod(dispatch)}
    stand_ins: Any = type("StandIn", (torch.Tensor,), attrs)
    return stand_ins


def stand_in(
    torch: Torch, meta: TensorMeta, dtype: dtype, device: str, handler: tuple[int, Dispatch]
) -> Tensor:
    """A tensor of this shape, dtype and device; `handler` is its number and its dispatcher."""
    out = torch.Tensor._make_wrapper_subclass(
        stand_in_class(torch), meta.shape, strides=meta.stride, dtype=dtype,
        device=torch.device(device),
    )  # fmt: skip
    out.traced_meta, (out.n, out.dispatch) = meta, handler
    out.on_meta = torch.empty_strided(meta.shape, meta.stride, dtype=dtype, device="meta")
    return out
