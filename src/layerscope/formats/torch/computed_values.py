"""Values that a model reads, computed where neither weights nor unknown inputs play a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from layerscope.formats.torch.calls import Info, NoKernel
from layerscope.formats.torch.tensors import NO_VALUES, TracedTensor
from layerscope.formats.torch.views import Views

# Arguments, by position, whose values decide the sizes of an operator's results.
DECIDING = {
    "nonzero": (0,), "index": (1,), "masked_select": (1,), "repeat_interleave": (0,),
    "_unique": (0,), "_unique2": (0,), "unique_dim": (0,), "unique_consecutive": (0,),
    "unique_dim_consecutive": (0,), "bincount": (0,), "_pack_padded_sequence": (1,),
    "_pad_packed_sequence": (1,),
}  # fmt: skip
ON_CPU = {"_pack_padded_sequence": 1, "_pad_packed_sequence": 1}  # results that stay real tensors
ASSUMED = "given without values, taken as zeros where the model takes a decision by them"


class Unset(Exception):
    """Values that cannot be had without weights or inputs; the text says whose."""


class Write(Struct, frozen=True, gc=False):
    """A call that wrote into a tensor whose values are known."""

    moment: int
    target: TracedTensor
    func: Any
    args: Any
    kwargs: Any


class KnownValues(Views):
    """How a tensor came about is kept until a model reads its values, and computed then.

    What is written in place is kept in order: a tensor computed from another has the values that
    this one had at that moment.
    """

    moment = 0  # writes into known tensors so far

    def _look(self, info: Info, args: Any, kwargs: Any) -> Any:
        """A value the model reads."""
        assumed: dict[str, None] = {}
        try:
            with self.torch.no_grad():
                first, rest = self._numbers(args[:2], assumed, self.moment), args[2:]
                found = info.func(*[self._tensor(each) for each in first], *rest, **kwargs)
        except Unset as gap:
            raise self.needs_numbers(info, f"reads {gap}") from None
        except Exception as error:
            raise self.needs_numbers(info, f"fails: {error}") from error
        if assumed and type(found) is not bool:  # a number may become a size
            raise self.needs_numbers(info, f"reads a number of {_inputs(assumed)}")
        for name in assumed:
            self.notes.setdefault(name, f"{name}: {ASSUMED} ({info.full}{self.where()})")
        return found

    def _tensor(self, arg: Any) -> Any:
        """A number that PyTorch handed over in place of the tensor it holds."""
        return self.torch.tensor(arg) if isinstance(arg, (bool, int, float)) else arg

    def _numbers(self, arg: Any, assumed: dict[str, None], moment: int) -> Any:
        """Arguments with the values of their tensors; inputs taken as zeros are added by name."""
        if isinstance(arg, self.torch.Tensor):
            return self._values_of(self.tracker.value(arg), assumed, moment)
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._numbers(each, assumed, moment) for each in arg])
        return self._cpu if isinstance(arg, self.torch.device) else arg

    def _values_of(self, value: TracedTensor, assumed: dict[str, None], moment: int) -> Any:
        """The values that a tensor has after the writes of so many moments."""
        if value.tensor.device != self._meta:
            if not self.real and value.sig.kind == "param":
                raise Unset(f"the parameter {value.name}")
            return value.tensor
        root = value.root
        if not value.known or not root.known:
            raise self._unset(value)
        writes = [w for w in self.tracker.writes.get(root, ()) if w.moment < moment]
        if writes:
            return self._view_of(value, self._written_values(root, writes, assumed), assumed)
        if value.recipe == NO_VALUES:
            assumed[value.name] = None
            return self.torch.zeros(value.sig.shape, dtype=value.sig.dtype)
        if value.twin is None:
            inner: dict[str, None] = {}
            value.twin = self._computed(value, inner)
            value.assumed = inner
        assumed |= value.assumed or {}
        return value.twin

    def _computed(self, value: TracedTensor, assumed: dict[str, None], source: Any = None) -> Any:
        """The call that made a tensor, on real values; of a view, on those of its source."""
        recipe = value.drawn if value.recipe == "random" else value.recipe
        if not isinstance(recipe, tuple):
            raise self._unset(value)
        func, args, kwargs, place, moment = recipe
        named = {k: self._numbers(v, assumed, moment) for k, v in kwargs.items()}
        if "device" in named:
            named["device"] = self._cpu
        if source is None:
            made = func(*self._numbers(args, assumed, moment), **named)
        else:
            made = func(source, *self._numbers(args[1:], assumed, moment), **named)
        return made if place is None else made[place]

    def _written_values(
        self, root: TracedTensor, writes: Sequence[Write], assumed: dict[str, None]
    ) -> Any:
        """The values of a tensor after the first of its writes; the last answer is kept."""
        applied, base, inner = self.tracker.written.get(root, (0, None, {}))
        if base is None or applied > len(writes):
            inner = {}
            base = self._values_of(root, inner, writes[0].moment).clone()
            applied = 0
        for write in writes[applied:]:
            target = self._view_of(write.target, base, inner)
            rest = self._numbers(write.args[1:], inner, write.moment)
            named = {k: self._numbers(v, inner, write.moment) for k, v in write.kwargs.items()}
            write.func(target, *rest, **named)
        self.tracker.written[root] = (len(writes), base, inner)
        assumed |= inner
        return base

    def _view_of(self, value: TracedTensor, base: Any, assumed: dict[str, None]) -> Any:
        """A view taken again, of other values of what holds its storage."""
        if value.parent is None:
            return base
        return self._computed(value, assumed, self._view_of(value.parent, base, assumed))

    def can_follow_write(self, given: Sequence[TracedTensor]) -> bool:
        """Whether what is written, and what it is written into, is known."""
        target = given[0]
        if target.tensor.device != self._meta:
            return False
        while target.parent is not None:
            if not isinstance(target.recipe, tuple) and not target.drawn:
                return False
            target = target.parent
        return target.known and all(value.known for value in given)

    def follow_write(self, target: TracedTensor, func: Any, args: Any, kwargs: Any) -> None:
        """Keep a write for when the values are read."""
        writes = self.tracker.writes.setdefault(target.root, [])
        writes.append(Write(self.moment, target, func, args, kwargs))
        self.moment += 1

    def _unset(self, value: TracedTensor) -> Unset:
        """The error that says which values are missing."""
        if value.recipe == "random":
            return Unset("random numbers")
        maker = next((n for n in reversed(self.tracker.nodes) if value.name in n.outputs), None)
        if maker is not None and maker.op != "constant":
            return Unset(f"the result of {maker.source.op if maker.source else maker.op}")
        if maker is None and value.name:
            return Unset(value.name)
        return Unset("a tensor that the forward makes on the device of its inputs")

    # Sizes that depend on values

    def sized(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """Results of an operator whose sizes depend on values, where these are known."""
        deciding = DECIDING.get(info.name)
        if deciding is None or kwargs.get("out") is not None:
            return None
        if info.name == "repeat_interleave" and len(args) > 1:
            deciding = (1,)
        assumed: dict[str, None] = {}
        try:
            with self.torch.no_grad():
                real = [
                    self._numbers(arg, assumed, self.moment) if n in deciding else self._zeros(arg)
                    for n, arg in enumerate(args)
                ]
                outs = func(*real, **kwargs)
        except Unset as gap:
            why = f"makes a tensor whose size depends on {gap}"
            raise self.needs_numbers(info, why, NoKernel) from None
        if assumed:
            why = f"makes a tensor whose size depends on {_inputs(assumed)}"
            raise self.needs_numbers(info, why, NoKernel)
        self.by_values = True
        if not isinstance(outs, (list, tuple)):
            return self.empty(self.tracker.sig(outs))
        kept = ON_CPU.get(info.name)
        return type(outs)([
            out if n == kept else self.empty(self.tracker.sig(out)) for n, out in enumerate(outs)
        ])  # fmt: skip

    def _zeros(self, arg: Any) -> Any:
        """Arguments with zeros that take no memory in place of tensors."""
        if isinstance(arg, self.torch.Tensor):
            sig = self.tracker.value(arg).sig
            return self.torch.zeros((), dtype=sig.dtype).expand(sig.shape)
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._zeros(each) for each in arg])
        return arg


def _inputs(names: dict[str, None]) -> str:
    listed = ", ".join(names)
    return f"{listed}, {'inputs' if len(names) > 1 else 'an input'} given without values"
