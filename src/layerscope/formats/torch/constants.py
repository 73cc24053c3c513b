"""What is made of constants alone, and numbers that a model looks at."""

from __future__ import annotations

from functools import partial
from typing import Any

from layerscope.formats.torch.aten import DRAWN
from layerscope.formats.torch.calls import MOST_KNOWN, Info
from layerscope.formats.torch.computed_values import KnownValues
from layerscope.formats.torch.tracking import CallPlan


class Constants(KnownValues):
    """Calls on nothing, or on constants."""

    def _constant(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """What is made of nothing: with its numbers on a real device if small, without on meta."""
        given: list[Any] = []
        frozen = self.key_of(args, kwargs, given)
        likes = any(value.tensor.device == self._meta or value.sig.kind for value in given)
        likes = likes and not self.real and "device" not in kwargs
        on_meta = likes or (self.as_meta is None and kwargs.get("device") == self._meta)
        entry = key = None
        if on_meta and info.kind == "constant" and self.shortcuts and not self.real:
            key = ("made", info, frozen)
            entry = self.memo.get(key)
        if entry is not None:
            [sig] = entry.outs
            out = self.empty(sig)
        else:
            if likes:
                out = self._run(info, func, args, kwargs)
            else:
                out = func(*args, **kwargs)
                if self.as_meta is not None and info.kind == "constant":
                    return self.as_meta(out)
            sig = self.tracker.sig(out)
            if key is not None:
                self.memo[key] = CallPlan((), (), (sig,))
        made = self.tracker.register(out, "", sig, plain=False)
        made.fixed = True
        drawn = info.kind == "drawn"
        made.recipe = "random" if drawn else None
        if out.device != self._meta and out.numel() <= MOST_KNOWN:
            made.known = True
        elif all(v.known for v in given) and out.numel() <= MOST_KNOWN:
            made.known = True
            setattr(made, "drawn" if drawn else "recipe", (func, args, kwargs, None, self.moment))
        return out

    def _folded(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        """A call on constants alone makes a constant; with their numbers where all have some."""
        target = given[0]
        numbers = all(v.tensor.device != self._meta and v.known for v in given)
        if info.kind == "write":
            if numbers or self.real:
                return func(*args, **kwargs)
            if self.torch.Tag.inplace_view in func.tags or not info.in_place:
                target.root.known = target.known = False
                return self._run(info, func, args, kwargs)
            self.need_writable(info, func, args, kwargs, given, key)
            if info.name in DRAWN or not self.can_follow_write(given):
                target.root.known = target.known = False
            else:
                self.follow_write(target, func, args, kwargs)
            return target.tensor
        view = info.kind == "view" and info.words is not None
        entry: CallPlan | None = None
        if view and not numbers:
            entry, found = self._of_constant(info, func, args, kwargs, given, key)
            if entry.way == "itself":
                return target.tensor
            listed = [self.empty(sig) for sig in entry.outs] if found is None else found
            outs: Any = listed[0] if entry.form is None else entry.form(listed)
        else:
            if numbers:
                outs = func(*args, **kwargs)
            else:
                outs = self._alike(info, func, args, kwargs, given, key)
            listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        many = isinstance(outs, (list, tuple))
        drawn = any(value.recipe == "random" for value in given)
        known = all(value.known for value in given)
        for n, out in enumerate(listed):
            if not isinstance(out, self.torch.Tensor) or id(out) in self.tracker.values:
                continue
            made = self.tracker.register(out, "", self.tracker.sig(out), plain=False)
            made.fixed = True
            if numbers or (known and out.numel() <= MOST_KNOWN):
                made.known = True
                place = n if many else None
                kept = numbers and out.device != self._meta  # the tensor itself has its values
                recipe = None if kept else (func, args, kwargs, place, self.moment)
                setattr(made, "drawn" if drawn else "recipe", recipe)
            if drawn:
                made.recipe = "random"
            way = entry.way if entry is not None else ""
            if view and (way == "view" or (not way and self._way(target, [out]) == "view")):
                # written into, it is a constant no more, nor what it is of
                made.parent, made.version = target, target.root.version
                made.place = self.tracker.place
                made.remake = partial(self._words, info, args, kwargs, given, key, n)
        return outs

    def _of_constant(
        self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any
    ) -> tuple[CallPlan, list[Any] | None]:
        """As `viewed`, without words: a constant has no nodes."""
        short = self.shortcuts and not self.real and given[0].tensor.is_inference()
        entry = self.memo.get(("folded", key)) if short else None
        if short and entry is None:
            entry = self._laid_out(info, args, kwargs, given)
            if entry is not None:
                self.memo["folded", key] = entry
        if entry is not None:
            return entry, None
        return self.viewed(info, func, args, kwargs, given, key)

    def _words(
        self, info: Info, args: Any, kwargs: Any, given: Any, key: Any, n: int
    ) -> tuple[CallPlan, Any, int]:
        """How a view of a constant is made, once something else was written into either."""
        entry: CallPlan | None = self.memo.get(key) if self.shortcuts else None
        if entry is None:
            draft, results, _ = self._translate(info, args, kwargs, given)
            with self.unwatched():
                outs = self._run(info, info.func, args, kwargs)
            entry, _ = self._checked(info, draft, results, outs, given, "view")
            self.memo[key] = entry
        return entry, given, n

    def _alike(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        """What a call makes without numbers, as its words or one like it tell; views are run."""
        if info.kind != "new" or info.words is None or not self.shortcuts or self.real:
            return self._run(info, func, args, kwargs)
        entry = self.memo.get(("folded", key))
        if entry is not None:
            return self.empty(entry.outs[0])
        out = sig = None
        _, results, form = self._translate(info, args, kwargs, given)
        foreseen = self._foreseen(info, results, given) if form is None else None
        if foreseen is not None:
            [sig] = foreseen
            out = self.empty(sig)
        else:
            out = self._run(info, func, args, kwargs)
            if type(out) is self.torch.Tensor and out.device == self._meta and not self.by_values:
                sig = self.tracker.sig(out)
            self.by_values = False
        if sig is not None:
            self.memo["folded", key] = CallPlan((), (), (sig,))
        return out
