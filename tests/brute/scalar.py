"""A number that tallies every operation done with it, and remembers what it was made of."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.ops import Ops

BORDER = 1  # the bit of `seen` that padding, and whatever stands outside a tensor, leaves


class Tally:
    """Operations done so far."""

    def __init__(self) -> None:
        self.counts = {"mac": 0, "add": 0, "mul": 0, "comp": 0, "div": 0, "exp": 0}

    def tick(self, kind: str) -> None:
        self.counts[kind] += 1

    def ops(self) -> Ops:
        return Ops(**self.counts)


class Scalar:
    """A value, the inputs it depends on as bits, and the tally that its operations go to.

    There is no conversion to float but reading `value`: arithmetic cannot go uncounted by accident.
    """

    __slots__ = ("seen", "tally", "value")

    def __init__(self, value: float, tally: Tally, seen: int = 0) -> None:
        self.value = value
        self.tally = tally
        self.seen = seen

    def _made(self, kind: str, value: float, *others: Scalar | float) -> Scalar:
        self.tally.tick(kind)
        seen = self.seen
        for other in others:
            if isinstance(other, Scalar):
                seen |= other.seen
        return Scalar(value, self.tally, seen)

    def mac(self, a: Scalar, b: Scalar) -> Scalar:
        """This accumulator plus a product of two tensors' elements."""
        return self._made("mac", self.value + a.value * b.value, a, b)

    def __add__(self, other: Scalar | float) -> Scalar:
        return self._made("add", self.value + _value(other), other)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self._made("add", self.value - _value(other), other)

    def __rsub__(self, other: float) -> Scalar:
        return self._made("add", other - self.value)

    def __mul__(self, other: Scalar | float) -> Scalar:
        made = self._made("mul", self.value * _value(other), other)
        if not isinstance(other, Scalar) and other == 0:
            made.seen = 0  # a constant weight of nought passes nothing on
        return made

    def __neg__(self) -> Scalar:
        return self._made("mul", -self.value)

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self._made("div", self.value / _value(other), other)

    def __rtruediv__(self, other: float) -> Scalar:
        return self._made("div", other / self.value)

    def __pow__(self, other: Scalar | float) -> Scalar:
        return self._made("exp", self.value ** _value(other), other)

    def __abs__(self) -> Scalar:
        return self._made("comp", abs(self.value))

    def apply(self, function: Callable[[float], float]) -> Scalar:
        """A transcendental function or a root: one `exp`."""
        return self._made("exp", function(self.value))

    def once(self, kind: str, function: Callable[..., float], *others: Scalar | float) -> Scalar:
        """A function that counts as one operation of that kind."""
        return self._made(kind, function(self.value, *map(_value, others)), *others)

    def larger(self, other: Scalar | float) -> Scalar:
        return self._made("comp", max(self.value, _value(other)), other)

    def smaller(self, other: Scalar | float) -> Scalar:
        return self._made("comp", min(self.value, _value(other)), other)

    def above(
        self, other: Scalar | float, then: Scalar | float, otherwise: Scalar | float
    ) -> Scalar:
        """One comparison that picks between two values already there."""
        taken = then if self.value > _value(other) else otherwise
        return self._made("comp", _value(taken), other, then, otherwise)


def _value(number: Scalar | float) -> float:
    return number.value if isinstance(number, Scalar) else number
