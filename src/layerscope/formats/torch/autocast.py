"""Autocast: the casts that PyTorch makes before an operator, for tensors on the meta device.

PyTorch casts tensors of the device that autocast is on for, and never those on the meta device.
So a model that runs under autocast is run with its arrays on the meta device too, and its casts are
made here. Which casts an operator gets is PyTorch's answer: its autocast kernel is called on
stand-ins, tensors without storage that report the model's device, and what it does to them is done
to the traced tensors. Whether autocast is on is asked at every call; PyTorch keeps that per thread.
With real numbers PyTorch makes the casts itself, and those of arrays are recognised.

Activations are cast in rows of their own. An array that a layer holds is cast as part of the layer:
the layer reads it as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from layerscope.formats.torch.calls import INFOS
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.mode import Recorder
from layerscope.formats.torch.shadows import Rerun
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor

DEVICES = ("cpu", "cuda", "xpu", "mps")


class Slot(NamedTuple):
    """The n-th tensor of a call, in this dtype; None: as it is."""

    n: int
    dtype: Any


class Plan(NamedTuple):
    """The call that autocast makes of a call, with slots in place of tensors."""

    func: Any
    args: Any
    kwargs: Any
    result: Any = None  # dtype that the result is cast back to


class Made(NamedTuple):
    """What a composite operator makes, and how many casts there are inside it."""

    dtypes: tuple[Any, ...]
    casts: int


class FinalCall(Exception):
    """Ends a call on stand-ins, at the operator behind the autocast kernel."""


class Autocast:
    """Makes the casts of autocast while the context lasts, and leaves its state as it was."""

    def __init__(self, torch: Any, recorder: Recorder, device: Callable[[], str]) -> None:
        self.torch = torch
        self.recorder = recorder
        self._find_device = device  # type of the model's device, "" for the meta device
        self._device: str | None = None
        self.starts_enabled = False
        self.arrays_on_meta: Any = None  # None: the model's arrays are where they are
        self.notes: dict[str, None] = {}
        self._weights: dict[int, tuple[Any, Any]] = {}  # by identity, as PyTorch's cache
        self._plans: dict[Any, Plan | None] = {}
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
        # it is shared by all threads, and what is cast here has no numbers
        torch.set_autocast_cache_enabled(False)
        return self

    def __exit__(self, *_: object) -> None:
        for put, *state in self._before:
            put(*state)
        self._weights.clear()
        self._plans.clear()

    def nested(self) -> bool:
        """Whether a context of autocast is around, be it on or off."""
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

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One call of the dispatcher while autocast may be on."""
        recorder = self.recorder
        with self.torch._C._RestorePythonTLSSnapshot():  # below the dispatcher it is always off
            self._on = self._casts_for()
        if not self._on:
            if self._weights and not self.nested():
                self._weights.clear()  # as PyTorch does where no autocast is left
            return recorder.dispatch(func, args, kwargs)
        if self.arrays_on_meta is None and not recorder.real:
            raise Rerun("meta_arrays")
        given: list[TracedTensor] = []
        dtype = self.torch.get_autocast_dtype(self._on)
        key = (func, recorder.key_of(args, kwargs, given), self._on, dtype)
        if key not in self._plans:
            self._plans[key] = self._plan(func, args, kwargs, given)
        plan = self._plans[key]
        if (
            recorder.real
            and given
            and given[0].sig.kind
            and func.overloadpacket in casts(self.torch)
        ):
            # PyTorch casts what has numbers itself, an array of the model as part of its layer
            self.notes[f"under autocast to {name_of(dtype)}, as on {self._on}"] = None
            return self._cast(given[0], _target_dtype(self.torch, args, kwargs))
        if plan is None:
            return recorder.dispatch(func, args, kwargs)

        def fill(slot: Slot) -> Any:
            value = given[slot.n]
            return value.tensor if slot.dtype is None else self._cast(value, slot.dtype)

        new_args, new_kwargs = _replaced((plan.args, plan.kwargs), Slot, fill)
        self.notes[f"under autocast to {name_of(dtype)}, as on {self._on}"] = None
        out = recorder.dispatch(plan.func, new_args, new_kwargs)
        if plan.result is not None:
            out = recorder.dispatch(self.torch.ops.aten.to.dtype, (out, plan.result), {})
        return out

    def _cast(self, value: TracedTensor, dtype: Any) -> Any:
        if not value.sig.kind:
            return self.recorder.dispatch(self.torch.ops.aten.to.dtype, (value.tensor, dtype), {})
        tensor = value.tensor
        keeps = (
            tensor.requires_grad
            and tensor.is_leaf
            and tensor.dtype is self.torch.float32
            and dtype is self.torch.get_autocast_dtype(self._on)
            and self._keeps_casts
        )
        found = self._weights.get(id(tensor)) if keeps else None
        if found is None:
            found = (tensor, self.recorder.cast_array(value, dtype))
            if keeps:
                self._weights[id(tensor)] = found
        return found[1]

    # What PyTorch does under autocast

    def _plan(self, func: Any, args: Any, kwargs: Any, given: list[TracedTensor]) -> Plan | None:
        """The call with casts; None where there are none."""
        recorder = self.recorder
        info = INFOS.get(id(func))
        if info is None:
            info = INFOS.setdefault(id(func), recorder.inform(func))
        if not any(value.sig.dtype.is_floating_point for value in given):
            return None
        if func.name() in with_kernels(self.torch, self._on):
            return self._of_kernel(func, args, kwargs, given)
        if info.kind == "new" and recorder.is_composite(func):
            return self._of_composite(func, args, kwargs, given)
        return None

    def _of_kernel(
        self, func: Any, args: Any, kwargs: Any, given: list[TracedTensor]
    ) -> Plan | None:
        torch = self.torch
        casts = (torch.ops.aten.to.dtype, torch.ops.aten._to_copy.default)
        final: list[Any] = []

        def dispatch(inner: Any, inner_args: Any, inner_kwargs: Any) -> Any:
            x: Any = inner_args[0] if inner_args else None
            if inner in casts:
                dtype = inner_kwargs["dtype"] if "dtype" in inner_kwargs else inner_args[1]
                return stand_in(torch, x.sig, dtype, self._on, (x.n, dispatch))
            final[:] = [inner, inner_args, inner_kwargs]
            if inner.namespace == "aten":
                raise FinalCall
            return x  # kernels of others may cast what they make

        made = None
        try:
            made = self._rehearse(func, args, kwargs, given, dispatch)
        except FinalCall:
            pass
        except RuntimeError:
            if not final:
                raise  # PyTorch refuses the operator under autocast
        if not final:
            return None
        last, last_args, last_kwargs = final

        def slot(x: Any) -> Slot:
            return Slot(x.n, None if x.dtype is given[x.n].sig.dtype else x.dtype)

        kind = stand_in_class(torch)
        back = None
        if isinstance(made, kind) and isinstance(last_args[0], kind):
            back = made.dtype if made.dtype is not last_args[0].dtype else None
        new_args, new_kwargs = _replaced((last_args, last_kwargs), kind, slot)
        return Plan(last, new_args, new_kwargs, back)

    def _of_composite(
        self, func: Any, args: Any, kwargs: Any, given: list[TracedTensor]
    ) -> Plan | None:
        """Of an operator without an autocast kernel that is made of others which have one.

        Where all it makes has the lower dtype, all it reads is cast; it stays one row.
        """
        on = self._made(func, args, kwargs, given, on=True)
        off = self._made(func, args, kwargs, given, on=False)
        lower = self.torch.get_autocast_dtype(self._on)
        if on is None or on == off:
            return None  # without casts, or refused: the call itself will say so
        if {*on.dtypes} != {lower}:
            self.notes[
                f"{func.overloadpacket} is one row, and computes in {name_of(lower)} inside"
            ] = None
            return None
        numbers = iter(range(len(given)))

        def slot(_: Any) -> Slot:
            n = next(numbers)
            dtype = given[n].sig.dtype
            casts = dtype.is_floating_point and dtype not in (lower, self.torch.float64)
            return Slot(n, lower if casts else None)

        new_args, new_kwargs = _replaced((args, kwargs), self.torch.Tensor, slot)
        return Plan(func, new_args, new_kwargs)

    def _made(
        self, func: Any, args: Any, kwargs: Any, given: list[TracedTensor], *, on: bool
    ) -> Made | None:
        """What a composite operator makes; None where it cannot be run on stand-ins."""
        torch, sig_of = self.torch, self.recorder.tracker.sig
        kind = stand_in_class(torch)
        casts = 0

        def dispatch(inner: Any, inner_args: Any, inner_kwargs: Any) -> Any:
            nonlocal casts
            casts += inner is torch.ops.aten._to_copy.default
            bare, named = _replaced((inner_args, inner_kwargs), kind, lambda x: x.meta)
            named.pop("device", None)
            return _replaced(inner(*bare, **named), torch.Tensor, wrap)

        def wrap(x: Any) -> Any:
            return stand_in(torch, sig_of(x), x.dtype, self._on, (-1, dispatch))

        try:
            with torch.inference_mode(False), torch.no_grad():
                out = self._rehearse(func, args, kwargs, given, dispatch, on=on)
        except Exception:  # it needs numbers, or PyTorch refuses it
            return None
        dtypes: list[Any] = []
        _replaced(out, kind, lambda x: dtypes.append(x.dtype))
        return Made(tuple(dtypes), casts)

    def _rehearse(
        self,
        func: Any,
        args: Any,
        kwargs: Any,
        given: list[TracedTensor],
        dispatch: Any,
        on: bool = True,
    ) -> Any:
        """The call on stand-ins, with PyTorch's own casts."""
        torch = self.torch
        values = iter(enumerate(given))

        def change(_: Any) -> Any:
            n, value = next(values)
            return stand_in(torch, value.sig, value.sig.dtype, self._on, (n, dispatch))

        new_args, new_kwargs = _replaced((args, kwargs), torch.Tensor, change)
        put, enabled = torch.set_autocast_enabled, torch.is_autocast_enabled(self._on)
        put(self._on, on)
        try:
            return func(*new_args, **new_kwargs)
        finally:
            put(self._on, enabled)


def _replaced(arg: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A nest of arguments with another value in place of every one of this type."""
    if isinstance(arg, kind):
        return change(arg)
    if isinstance(arg, dict):
        return {name: _replaced(each, kind, change) for name, each in arg.items()}
    if type(arg) in (list, tuple):
        return type(arg)([_replaced(each, kind, change) for each in arg])
    return arg


@cache
def with_autocast(torch: Any) -> tuple[str, ...]:
    """Device types that this PyTorch has autocast for."""
    found = []
    for device in DEVICES:
        with suppress(RuntimeError):
            torch.get_autocast_dtype(device)
            found.append(device)
    return tuple(found)


def casts(torch: Any) -> tuple[Any, Any]:
    """Operators that PyTorch casts with."""
    return torch.ops.aten.to, torch.ops.aten._to_copy


def _target_dtype(torch: Any, args: Any, kwargs: Any) -> Any:
    """The dtype that a tensor is cast to; its own if none is given."""
    given = [*args[1:], *kwargs.values()]
    found = [each for each in given if isinstance(each, torch.dtype)]
    return found[0] if found else args[0].dtype


@cache
def with_kernels(torch: Any, device: str) -> frozenset[str]:
    """Names of the operators that PyTorch has autocast kernels for."""
    key = f"Autocast{device.upper()}"
    return frozenset(torch._C._dispatch_get_registrations_for_dispatch_key(key))


@cache
def stand_in_class(torch: Any) -> Any:
    """The class of tensors that report a device, have no storage, and name every call on them."""

    def dispatch(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first: list[Any] = []
        _replaced((args, kwargs or {}), made, first.append)
        return first[0].dispatch(func, args, kwargs or {})

    made: Any = type("StandIn", (torch.Tensor,), {"__torch_dispatch__": classmethod(dispatch)})
    return made


def stand_in(torch: Any, sig: TensorMeta, dtype: Any, device: str, way: tuple[int, Any]) -> Any:
    """A tensor of this shape, dtype and device; `way` has its number and what handles its calls."""
    kind = stand_in_class(torch)
    made = torch.Tensor._make_wrapper_subclass(
        kind, sig.shape, strides=sig.stride, dtype=dtype, device=torch.device(device)
    )
    made.sig, (made.n, made.dispatch) = sig, way
    made.meta = torch.empty_strided(sig.shape, sig.stride, dtype=dtype, device="meta")
    return made
