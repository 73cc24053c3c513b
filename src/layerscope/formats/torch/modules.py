"""Calls of modules: known ones are answered without entering PyTorch, others run in their scope."""

from __future__ import annotations

from functools import cache
from threading import get_ident
from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import TABLE
from layerscope.formats.torch.calls import CONTIGUOUS_RESULT, shapes_in
from layerscope.formats.torch.fast_paths import FastPath
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.mode import Recorder
from layerscope.formats.torch.module_table import ModuleInfo
from layerscope.formats.torch.restore import pass_through
from layerscope.formats.torch.shadows import Shadows
from layerscope.formats.torch.strides import BY_ELEMENT, element_stride
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor
from layerscope.formats.torch.tracking import CallPlan
from layerscope.graph.types import Source

TRACKERS = ("ModuleTracker", "ModTracker")  # of torch.utils and torch.distributed
NO_ENTRY = CallPlan((), (), ())  # of a module that must be entered


class Calls:
    """Calls of modules while the context lasts: shadows of them are run, in this thread alone.

    With `short`, modules that are one operation are not run.
    """

    def __init__(self, torch: Any, recorder: Recorder, shadows: Shadows, *, short: bool) -> None:
        self.torch = torch
        self.recorder = recorder
        self.tracker = recorder.tracker
        self.shadows = shadows
        self._memo, self._names = recorder.memo, recorder.tracker.held.names
        self.short = short
        self._failed: tuple[BaseException, ModuleInfo, Any] | None = None
        self._steps: dict[Any, CallPlan] = {}
        row = torch.nn.Sequential
        self._row = (row.forward, row.__iter__)
        if not row.forward.__module__.startswith("torch.nn."):  # somebody's own
            self._row = (None, None)
        same = torch.nn.Identity
        self._same = same if same.forward.__module__.startswith("torch.nn.") else None
        self._call: Any = None

    def __enter__(self) -> Calls:
        self._call = self.shadows.call = self._handler()
        return self

    def __exit__(self, *_: object) -> None:
        self._call = self._failed = None
        self.shadows.close()

    def start(self, model: Any, args: Any, kwargs: Any) -> Any:
        """Call the model itself."""
        place = self.tracker.places[id(model)]
        if place.kind.__call__ is not self.torch.nn.Module.__call__:  # it has its own
            return self.shadows.of(model)(*args, **kwargs)
        return self._call(place, *args, **kwargs)

    def _handler(self) -> Any:
        """What is called in place of a module; one frame of Python, because models are deep."""
        owner, torch, tracker = get_ident(), self.torch, self.tracker
        values, nodes, log = tracker.values, tracker.nodes, tracker.log
        plain_grad, casting = self.recorder.plain_grad, torch._C._is_any_autocast_enabled
        call_impl = torch.nn.Module._call_impl
        global_hooks = watched(torch)
        attention = _with_fast_path(torch) if self.recorder.real else ()
        shortens, same, answer = self.short, self._same, self.answer

        def call(place: ModuleInfo, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != owner:
                return place.shadow._call_impl(*args, **kwargs)
            short = shortens and len(args) == 1 and not kwargs and plain_grad()
            if casting():
                short, self.recorder.mode.casts = False, True
            if short and place.path:
                if place.kind is same and not _hooked(place.held):
                    return args[0]
                if place.leaf is not None:
                    value = values.get(id(args[0]))
                    if value is not None:
                        made = answer(place, args[0], value)
                        if made is not None:
                            return made
            outer, tracker.place = tracker.place, place.opened()
            before, mark = len(nodes), len(log)
            try:
                if short and self._is_row(place):
                    return self._through(place, args[0])
                shadow = place.shadow or self.shadows.make(place)
                if attention and isinstance(shadow, attention):
                    with pass_through(torch):
                        result = shadow._call_impl(*args, **kwargs)
                elif (
                    global_hooks or _has_hooks(place.held) or place.kind._call_impl is not call_impl
                ):
                    result = shadow._call_impl(*args, **kwargs)
                else:
                    result = shadow.forward(*args, **kwargs)
            except BaseException as error:
                if self._failed is None or self._failed[0] is not error:
                    self._failed = (error, place, shapes_in((args, kwargs), torch))
                raise
            finally:
                tracker.place = outer
            if place.childless and tracker.settle(place, before, mark):
                place.printed = place.leaf is not None
            return result

        return call

    def where(self, error: BaseException) -> tuple[ModuleInfo | None, Any]:
        """The innermost module that an error came out of, and shapes of what it was given."""
        failed, self._failed = self._failed, None  # which holds all that the error came through
        return failed[1:] if failed is not None and failed[0] is error else (None, [])

    # Modules that are one operation

    def answer(self, place: ModuleInfo, x: Any, value: TracedTensor) -> Any:
        """What a module that is one operation makes, without entering PyTorch; None: it must be."""
        found = self._found(place, value.sig)
        if found is None:
            return None
        entry, stored, in_place = found
        if in_place and value.parent is not None:
            return None
        tracker = self.tracker
        source = value.name if value.plain else tracker.read(value)
        [name] = tracker.emit_leaf(place, entry.steps[0], (source,), stored)
        if in_place:
            tracker.write(value, name)
            return x
        return self._tensor(name, entry.outs[0])

    def _found(self, place: ModuleInfo, sig: TensorMeta) -> tuple[CallPlan, list[Any], bool] | None:
        """What the call of a leaf amounts to, names of its arrays, and whether it is in place."""
        leaf = place.leaf
        held = place.held
        if (
            held["_forward_hooks"]
            or held["_forward_pre_hooks"]
            or held["_backward_hooks"]
            or held["_backward_pre_hooks"]
            or "forward" in held
        ):
            return None
        arrays: tuple[Any, ...] = ()
        stored: list[Any] = []
        try:
            told = leaf.told(held) if leaf.told is not None else ()
            in_place = leaf.in_place and held["inplace"]
            key: Any = (place.kind, sig, told, in_place)
            if leaf.params is not None:
                arrays = leaf.params(held["_parameters"])
                if leaf.buffers is not None:
                    arrays += leaf.buffers(held["_buffers"])
                names = self._names
                for array in arrays:
                    stored.append(names.get(id(array)))
                    key = (key, None) if array is None else (key, array.shape, array.dtype)
            entry = self._memo.get(key)
        except (KeyError, TypeError):  # not made as others of its type, or told by what has no hash
            return None
        if entry is None:
            make = self._entry
            if sig.contiguous and not sig.kind:
                make = self._kept if leaf.keeps else self._gist if leaf.gist else make
            entry = self._memo[key] = make(leaf, sig, arrays, told, in_place) or NO_ENTRY
        if entry is NO_ENTRY:
            return None
        if None in stored:
            for _, n in entry.steps[0].holds:
                if stored[n] is None:
                    return None  # put in place of the model's own while it ran
        return entry, stored, in_place

    def _tensor(self, name: str, sig: TensorMeta) -> Any:
        """A tensor that the model is handed."""
        out = self.recorder.unseen(sig)
        self.tracker.register(out, name, sig)
        return out

    def _kept(
        self, leaf: FastPath, sig: TensorMeta, arrays: tuple[Any, ...], told: Any, in_place: bool
    ) -> CallPlan | None:
        """As `_entry`, from that of a module told alike, on another shape of the same rank."""
        buffers = self.tracker.held.buffers
        held = tuple([a is not None and (a.dtype, id(a) in buffers) for a in arrays])
        channels = sig.shape[1:2]
        for array in arrays:
            if array is not None and array.shape != channels:
                return self._entry(leaf, sig, arrays, told, in_place)
        key = (leaf, told, in_place, sig.dtype, len(sig.shape), held)
        known = self._steps.get(key)
        if known is not None:
            return CallPlan(known.steps, known.results, (sig,))
        entry = self._entry(leaf, sig, arrays, told, in_place)
        if entry is not None and entry.outs[0] is sig:
            self._steps[key] = entry
        return entry

    def _gist(
        self, leaf: FastPath, sig: TensorMeta, arrays: tuple[Any, ...], told: Any, in_place: bool
    ) -> CallPlan | None:
        """As `_entry`, from that of a module told alike that reads another number of channels."""
        buffers, names = self.tracker.held.buffers, self.tracker.held.names
        weight, bias = arrays
        gist = (
            leaf.gist(sig, arrays, told) if leaf.gist is not None and weight is not None else None
        )
        if gist is None or (bias is not None and bias.shape != weight.shape[:1]):
            return self._entry(leaf, sig, arrays, told, in_place)
        held = tuple([
            a is not None and (a.dtype, id(a) in buffers, id(a) in names) for a in arrays
        ])  # fmt: skip
        key = (leaf, told, sig.dtype, held, gist)
        known = self._steps.get(key)
        if known is None:
            known = self._entry(leaf, sig, arrays, told, in_place)
            if known is not None:
                self._steps[key] = known
        return known

    def _entry(
        self, leaf: FastPath, sig: TensorMeta, arrays: tuple[Any, ...], told: Any, in_place: bool
    ) -> CallPlan | None:
        recorder, tracker = self.recorder, self.tracker
        names, buffers = tracker.held.names, tracker.held.buffers
        given = [sig]
        refs: list[TensorRef | None] = []
        for n, array in enumerate(arrays):
            if array is None:
                refs.append(None)
                continue
            if id(array) not in names:
                return None
            buffer = id(array) in buffers
            held = tracker.sig(array, "buffer" if buffer else "param")
            given.append(held)
            refs.append(TensorRef(held.shape, held.name, n, True, buffer))
        if not recorder.usual(leaf.operator, given):
            return None
        # places count arrays here; the one tensor that is read is told apart
        x = TensorRef(sig.shape, sig.name, -1, sig.kind != "")
        source = Source(op=f"aten.{leaf.operator}{'_' if in_place else ''}")
        draft = Lowering(source, tracker.same, recorder.floating)
        draft.in_place = in_place
        draft.training = tracker.grads.training
        arguments = leaf.arguments(x, tuple(refs), told)
        if arguments is None:
            return None
        try:
            made = TABLE[leaf.operator](draft, *arguments)
        except (Unsupported, Refused, ShapeError, TypeError, ValueError, IndexError):
            return None
        alike = all(held.name == made.dtype for held in given[1:])
        if len(draft.steps) != 1 or draft.steps[0].inputs != (-1,) or not alike:
            return None
        out: TensorMeta | None = sig
        if not in_place and (sig.contiguous or leaf.operator in CONTIGUOUS_RESULT):
            [out] = recorder.sigs_of([made], given)
        elif not in_place:
            out = self._layout(leaf, sig, arrays, told)
        if out is None or out.shape != made.shape or out.name != made.dtype:
            return None
        return CallPlan(tuple(draft.steps), (made.value_id,), (out,))

    def _layout(
        self, leaf: FastPath, sig: TensorMeta, arrays: tuple[Any, ...], told: Any
    ) -> TensorMeta | None:
        """What is made of an input that does not stand one behind the other; PyTorch is asked."""
        if leaf.operator in BY_ELEMENT:
            stride = element_stride(sig.shape, [sig])
            if stride is not None:
                return self.tracker.sig_of(sig.shape, stride, sig.dtype)
        func = getattr(self.torch.ops.aten, leaf.operator)
        extra: tuple[bool, ...] = (False,) if leaf.operator == "batch_norm" else ()
        with self.recorder.unwatched():
            x = self.recorder.empty(sig)
            metas = tuple([None if a is None else self.recorder.on_meta(a) for a in arrays])
            args = (*(leaf.arguments(x, metas, told) or ()), *extra)
            try:
                out = func(x, approximate=told[0]) if leaf.operator == "gelu" else func(*args)
            except RuntimeError:  # told in another way than its operator takes it
                return None
            return self.tracker.sig(out)

    # Modules that call others one after the other

    def _is_row(self, place: ModuleInfo) -> bool:
        """Whether a module does nothing but hand what it is given through its children."""
        kind = place.kind
        return (
            issubclass(kind, self.torch.nn.Sequential)
            and kind.forward is self._row[0]
            and kind.__iter__ is self._row[1]
            and not _hooked(place.held)
        )

    def _through(self, row: ModuleInfo, x: Any) -> Any:
        """As `Sequential.forward`; a tensor that only leaves hand on is never made."""
        tracker = self.tracker
        places, values, shadows = tracker.places, tracker.values, self.shadows
        plain_call = self.torch.nn.Module.__call__
        read: tuple[str, ...] = ()
        sig: TensorMeta | None = None  # of what stands under that name and was not made yet
        for module in [*dict.values(row.held["_modules"])]:
            place = places.get(id(module)) or shadows.by_shadow.get(id(module))
            if place is not None and place.leaf is not None:
                value = values.get(id(x)) if sig is None else None
                seen = sig if value is None else value.sig
                found = None if seen is None else self._found(place, seen)
                if found is not None and not (found[2] and sig is None):
                    if value is not None:
                        read = (value.name if value.plain else tracker.read(value),)
                    read = tracker.emit_leaf(place, found[0].steps[0], read, found[1])
                    sig = found[0].outs[0]
                    continue
            elif place is not None and place.kind is self._same and not _hooked(place.held):
                continue
            if sig is not None:
                x, sig = self._tensor(read[0], sig), None
            if place is not None and place.kind.__call__ is plain_call:
                x = self._call(place, x)
            else:
                x = shadows.of(module)(x)
        return x if sig is None else self._tensor(read[0], sig)


def _has_hooks(held: dict[str, Any]) -> bool:
    """Whether a module has hooks of its own."""
    return bool(
        held["_forward_hooks"]
        or held["_forward_pre_hooks"]
        or held["_backward_hooks"]
        or held["_backward_pre_hooks"]
    )


def _hooked(held: dict[str, Any]) -> bool:
    """Whether a module has hooks, or a forward of its own."""
    return "forward" in held or _has_hooks(held)


@cache
def _with_fast_path(torch: Any) -> tuple[Any, ...]:
    """Classes that may run attention as one operator, which nothing is known of."""
    nn = torch.nn
    return (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


def watched(torch: Any) -> bool:
    """Whether somebody's hooks look at the calls of all modules.

    Those of PyTorch's own counter only ask which module runs; a capture is no call of the user's.
    """
    home = torch.nn.modules.module
    tables = (
        home._global_forward_hooks, home._global_forward_pre_hooks,
        home._global_backward_hooks, home._global_backward_pre_hooks,
    )  # fmt: skip
    hooks = [hook for table in tables for hook in [*table.values()]]
    return any(type(getattr(hook, "__self__", None)).__name__ not in TRACKERS for hook in hooks)
