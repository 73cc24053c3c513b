"""Views, and what is written in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten import DRAWN, TABLE
from layerscope.formats.torch.calls import MOST_KNOWN, Info
from layerscope.formats.torch.computed_values import KnownValues
from layerscope.formats.torch.lowering import Lowering, TensorRef
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.graph.attributes import DeclaredOutputs


class Writes(KnownValues):
    """Calls whose results share storage with what they are given."""

    def _view(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        if info.words is None and self.is_composite(func):
            with self.mode:
                opened = func.decompose(*args, **kwargs)
            if opened is not NotImplemented:
                return opened
        source = given[0]
        entry, outs = self.viewed(info, func, args, kwargs, given, key)
        way, form = entry.way, entry.form
        if way == "itself":
            return source.tensor
        listed = [self.empty(sig) for sig in entry.outs] if outs is None else outs
        result = listed[0] if form is None else form(listed)
        tracker = self.tracker
        if not entry.results:
            self._nothing(listed, entry)
            return result
        lazy = not entry.steps and len(listed) == 1
        was_read = source.was_read
        names: Sequence[str]
        if not lazy:
            names = tracker.emit(entry, given)
        else:
            names = (tracker.read(source) if source.plain or source.parent else source.name,)
            if source.sig.kind and source.sig.shape == entry.outs[0].shape:
                self._same_array(result, source)  # detach() and the like of an array of the model
                return result
        if lazy and way == "copy":
            tracker.grads.copy(source, names[0], was_read)
        elif info.name == "detach" and not source.sig.kind:
            tracker.grads.detached.update(names)
        register, known = tracker.register, source.known
        for n, out in enumerate(listed):
            made = register(out, names[n], entry.outs[n])
            if known and out.numel() <= MOST_KNOWN:
                made.known = True
                made.recipe = (func, args, kwargs, None if form is None else n, self.moment)
            if way == "view" or (not way and self._way(source, [out]) == "view"):
                made.parent = source
                made.remake = (entry, given, n)
                made.place = tracker.place
                made.version = source.root.version
                made.plain = False
                if lazy and not source.plain and source.parent is None:
                    made.version = -1  # named when it is read
        return result

    def cast_array(self, source: TracedTensor, dtype: Any) -> Any:
        """An array of the model in another dtype: still the array for a layer that holds it."""
        held, tracker = self.tracker.held, self.tracker
        sig = tracker.cast_sig(source.sig, dtype)
        with self.unwatched():
            out = source.tensor.to(dtype) if self.real else self.empty(sig)
        held.names[id(out)] = source.name
        if sig.kind == "buffer":
            held.buffers.add(id(out))
        tracker.register(out, source.name, sig, plain=False)
        return out

    def _same_array(self, out: Any, source: TracedTensor) -> None:
        held, tracker = self.tracker.held, self.tracker
        held.names[id(out)] = source.name
        if source.sig.kind == "buffer":
            held.buffers.add(id(out))
        made = tracker.register(out, source.name, tracker.sig(out, source.sig.kind), plain=False)
        made.known = source.known
        made.recipe = source.recipe

    def _write(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        target = given[0]
        if target.sig.kind == "buffer" and target.tensor.numel() == 1:
            if self.real:
                return func(*args, **kwargs)
            self.need_writable(info, func, args, kwargs, given, key)
            return target.tensor  # a counter of the model's own, such as batches seen
        if self.torch.Tag.inplace_view in func.tags or not info.in_place:
            return self._rewritten(info, func, args, kwargs, given)
        if self.real:
            func(*args, **kwargs)
        entry = self.memo.get(key) if self.shortcuts else None
        if entry is None:
            self.need_writable(info, func, args, kwargs, given, key)
            if info.name in DRAWN:
                told = DeclaredOutputs((target.sig.shape,), (target.sig.name,))
                draft = Lowering(info.source, self.tracker.same, self.floating)
                entry = self._entry(draft, [draft.add("random", at=told)], [target.sig], None)
            else:
                draft, results, _ = self._translate(info, args, kwargs, given)
                if results is None or results[0].shape != target.sig.shape:
                    if self.is_composite(func) and not self.real:
                        with self.mode:
                            opened = func.decompose(*args, **kwargs)
                        if opened is not NotImplemented:
                            return opened
                    entry = self._unknown(info, (target.sig,), given, None)
                else:
                    made = draft.cast(results[0], target.sig.name)
                    entry = self._entry(draft, [made], [target.sig], None)
            self.memo[key] = entry
        name = self.tracker.emit(entry, given)[0]
        known = info.name not in DRAWN and not self.real and self.can_follow_write(given)
        self.tracker.write(target, name)
        if known:
            self.follow_write(target, func, args, kwargs)
            written: TracedTensor | None = target
            while written is not None:
                written.known, written = True, written.parent
        return target.tensor

    def _without_out(self, func: Any, args: Any, kwargs: Any) -> list[str] | None:
        """Names of what the same operator makes that is not given tensors to write into."""
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
                with self.mode:
                    made = plain(*args, **named)
                results = list(made) if isinstance(made, (list, tuple)) else [made]
                return [self.tracker.read(each) for each in results]
        return None

    def _rewritten(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any) -> Any:
        """Operators that change a tensor's own shape, or write into one they are handed."""
        turns = self.torch.Tag.inplace_view in func.tags
        if turns or self.real or not kwargs:
            outs = self._run(info, func, args, kwargs)
        else:  # what is read and what is written must not be in one place, as ours may
            outs = self._run(info, func, self._apart(args), kwargs)
        target = given[0]
        if turns:
            before = target.sig
            base = info.name
            target.sig = self.tracker.sig(target.tensor)
            words = TABLE.get(base)
            if words is not None:
                draft = Lowering(info.source, self.tracker.same, self.floating)
                ref = TensorRef(before.shape, before.name, 0, before.kind != "")
                made = words(draft, ref, *args[1:], **kwargs)
                name = self.tracker.emit(self._entry(draft, [made], [target.sig], None), given)[0]
                self.tracker.write(target, name)
            return outs
        listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        tensors = [out for out in listed if isinstance(out, self.torch.Tensor)]
        if not tensors:
            return outs
        named = self._without_out(func, args, kwargs)
        targets = [kwargs[arg.name] for arg in func._schema.arguments
                   if _is_written(arg) and arg.name in kwargs]  # fmt: skip
        if named is not None and len(named) == len(targets):
            for target_out, out, name in zip(targets, tensors, named, strict=True):
                if not target_out.numel():  # PyTorch gives it the size of the result
                    with self.unwatched():
                        target_out.resize_(out.shape)
                value = self.tracker.value(target_out)
                value.sig = self.tracker.sig(target_out, value.sig.kind)
                self.tracker.write(value, name)
            return targets[0] if len(targets) == 1 else type(outs)(targets)
        sigs = tuple([self.tracker.sig(out) for out in tensors])
        names = self.tracker.emit(self._unknown(info, sigs, given, None), given)
        for out, name, sig in zip(tensors, names, sigs, strict=True):
            if id(out) in self.tracker.values:
                self.tracker.write(self.tracker.values[id(out)], name)
            else:
                self.tracker.register(out, name, sig)
        return outs


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)
