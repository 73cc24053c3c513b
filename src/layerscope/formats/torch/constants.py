"""What is made of constants alone, and numbers that a model looks at."""

from __future__ import annotations

from functools import partial
from typing import Any

from layerscope.formats.torch.calls import MOST_KNOWN, DataDependent, Info
from layerscope.formats.torch.sized import depends_on_values
from layerscope.formats.torch.tracking import Entry
from layerscope.formats.torch.views import Views


class Constants(Views):
    """Calls on nothing, or on constants."""

    def _constant(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """What is made of nothing: with its numbers on a real device if small, without on meta."""
        given: list[Any] = []
        self._freeze(args, given)
        likes = any(value.tensor.device == self._meta or value.sig.kind for value in given)
        if likes and not self.real and "device" not in kwargs:
            out = self._run(info, func, args, kwargs)
        else:
            out = func(*args, **kwargs)
        sig = self.tracker.sig(out)
        made = self.tracker.register(out, "", sig, plain=False)
        made.fixed = True
        drawn = info.kind == "drawn"
        made.recipe = "random" if drawn else None
        if out.device != self._meta and out.numel() <= MOST_KNOWN:
            made.known = True
        elif not drawn and all(v.known for v in given) and out.numel() <= MOST_KNOWN:
            made.known = True
            made.recipe = (func, args, kwargs, None)
        return out

    def _folded(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        """A call on constants alone makes a constant; with their numbers where all have some."""
        target = given[0]
        numbers = all(v.tensor.device != self._meta and v.known for v in given)
        if info.kind == "write":
            if numbers or self.real:
                return func(*args, **kwargs)
            target.root.known = target.known = False
            if self.torch.Tag.inplace_view in func.tags or not info.in_place:
                return self._run(info, func, args, kwargs)
            self.need_writable(info, func, args, kwargs, given, key)
            return target.tensor
        view = info.kind == "view" and info.words is not None
        entry: Entry | None = None
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
                made.recipe = None if numbers else (func, args, kwargs, n if many else None)
            elif drawn:
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
    ) -> tuple[Entry, list[Any] | None]:
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
    ) -> tuple[Entry, Any, int]:
        """How a view of a constant is made, once something else was written into either."""
        entry: Entry | None = self.memo.get(key) if self.shortcuts else None
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
            if type(out) is self.torch.Tensor and out.device == self._meta:
                sig = self.tracker.sig(out)
        if sig is not None and not depends_on_values(self.torch, info.name, args):
            self.memo["folded", key] = Entry((), (), (sig,))
        return out

    def _look(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A number the model looks at, worked out where weights play no part in it."""
        try:
            with self.torch.no_grad():
                first, rest = self._numbers(args[:2]), args[2:]
                return func(*[self._tensor(each) for each in first], *rest, **kwargs)
        except DataDependent:
            raise
        except Exception as error:
            raise DataDependent(f"{func}: {error}") from error

    def _tensor(self, arg: Any) -> Any:
        """A number that PyTorch handed over in place of the tensor it holds."""
        return self.torch.tensor(arg) if isinstance(arg, (bool, int, float)) else arg

    def _numbers(self, arg: Any) -> Any:
        if isinstance(arg, self.torch.Tensor):
            value = self.tracker.value(arg)
            if arg.device != self._meta:
                if not self.real and value.sig.kind == "param":
                    raise DataDependent("of a parameter")
                return arg
            if not value.root.known:
                raise DataDependent("of a tensor whose numbers are not known")
            if not value.known or not isinstance(value.recipe, tuple):
                if value.known and value.twin is not None:
                    return value.twin
                raise DataDependent("of a tensor whose numbers are not known")
            func, args, kwargs, place = value.recipe
            named = {k: self._numbers(v) for k, v in kwargs.items()}
            if "device" in named:
                named["device"] = "cpu"
            made = func(*self._numbers(args), **named)
            made = made if place is None else made[place]
            value.twin = made
            value.recipe = None
            return made
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._numbers(each) for each in arg])
        return arg
