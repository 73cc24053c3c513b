"""Functions of mathematics and of the parts of numbers, element by element."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.elements import binary, number
from layerscope.formats.torch.dtypes import INEXACT
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Source

MOST_GAMMAS = 64  # logarithms of one mvlgamma, each a step of its own


def _float(d: Lowering, x: TensorRef) -> TensorRef:
    """Whole numbers as floats, which these functions are of."""
    return x if x.dtype.startswith(INEXACT) else d.cast(x, d.floating)


def _pair(d: Lowering, op: str, a: Any, b: Any) -> TensorRef:
    """An op of two tensors, or of one and a number, in the dtype that PyTorch computes in."""
    sides = [_float(d, each) if isinstance(each, TensorRef) else each for each in (a, b)]
    made: TensorRef = binary(op)(d, *sides)
    return made


def special(d: Lowering, *given: Any, **_: Any) -> TensorRef:
    """One `exp` for every element; numbers such as an order are constants of it."""
    refs = [each for each in given if isinstance(each, TensorRef)]
    if len(refs) == 1:
        return d.add("special", _float(d, refs[0]))
    return _pair(d, "special", *refs[:2])


def scaled(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("mul", _float(d, self))


def frac(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("sub", self, d.add("floor", self))


def frexp(d: Lowering, self: TensorRef) -> list[TensorRef]:
    """The bits of the exponent, and the others."""
    made = d.add("bitwise", self)
    return [made, d.cast(made, "int32")]


def ldexp(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return _pair(d, "mul", self, d.add("pow", _float(d, other)))


def by_bits(d: Lowering, self: Any, other: Any) -> TensorRef:
    """The bits of one number taken over into another."""
    sides = [_float(d, each) for each in (self, other) if isinstance(each, TensorRef)]
    return d.add("bitwise", *sides)


def heaviside(d: Lowering, self: TensorRef, values: TensorRef) -> TensorRef:
    return d.add("where", d.add("compare", self), values, number(d, values.dtype))


def log_add_exp(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    """The larger, and log(1 + exp(−|a − b|))"""
    gap = d.add("neg", d.add("abs", _pair(d, "sub", self, other), at=at.Activation()))
    more = d.add("log1p", d.add("exp", gap))
    return d.add("add", _pair(d, "max", self, other), more)


def times_log(op: str) -> Any:
    """X · log y, and 0 where x is."""

    def translate(d: Lowering, self: Any, other: Any) -> TensorRef:
        if not isinstance(other, TensorRef):
            return _pair(d, "mul", self, other)  # the logarithm of a number is a constant
        logs = d.add(op, _float(d, other))
        made = _pair(d, "mul", self, logs)
        if not isinstance(self, TensorRef):
            return made
        return d.add("where", d.add("compare", self), number(d, made.dtype), made)

    return translate


def entropy(d: Lowering, self: TensorRef) -> TensorRef:
    """−x · log x"""
    x = _float(d, self)
    made = d.add("neg", d.add("mul", x, d.add("log", x)))
    return d.add("where", d.add("compare", x), made, number(d, made.dtype))


def hypot(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    squares = [d.add("square", each) for each in (self, other)]
    return d.add("sqrt", _pair(d, "add", *squares))


def logit(d: Lowering, self: TensorRef, eps: float | None = None) -> TensorRef:
    """log(x / (1 − x)), of numbers kept from 0 and 1 by eps"""
    x = _float(d, self)
    if eps is not None:
        d.source = Source(op=f"{d.source.op}.clipped")
        x = d.add("clip", x, at=at.Activation())
    return d.add("log", d.add("div", x, d.add("sub", x)))


def sinc(d: Lowering, self: TensorRef) -> TensorRef:
    """sin(πx) / πx, and 1 where x is 0"""
    x = d.add("mul", _float(d, self))
    made = d.add("div", d.add("sin", x), x)
    return d.add("where", d.add("compare", x), number(d, made.dtype), made)


def sign_bit(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("compare", self)


def is_infinite(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("is_inf", self)


def nan_to_num(
    d: Lowering, self: TensorRef, nan: Any = None, posinf: Any = None, neginf: Any = None
) -> TensorRef:
    """What is no number replaced, then what is beyond the largest ones."""
    if not self.dtype.startswith(INEXACT):
        return d.add("identity", self)
    made = d.add("where", d.add("is_nan", self), number(d, self.dtype), self)
    return d.add("clip", made, at=at.Activation())


def mvlgamma(d: Lowering, self: TensorRef, p: int) -> TensorRef:
    """P logarithms of the gamma function added up, each of x less another half, and a constant."""
    if p > MOST_GAMMAS:
        raise Unsupported(f"mvlgamma of {p} logarithms, more than {MOST_GAMMAS}")
    x = _float(d, self)
    made = d.add("special", d.add("sub", x))
    for _ in range(1, p):
        made = d.add("add", made, d.add("special", d.add("sub", x)))
    return d.add("add", made)


def rrelu(
    d: Lowering,
    self: TensorRef,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    *_: Any,
) -> TensorRef:
    """In training every slope is drawn; else it is the mean of both ends."""
    if not training:
        return d.add("leaky_relu", self, at=at.Activation((lower + upper) / 2, None, d.in_place))
    slopes = d.add("random", at=at.DeclaredOutputs((self.shape,), (self.dtype,)))
    d.source = Source(op=f"{d.source.op}.drawn")
    return d.add("where", d.add("compare", self), self, d.add("mul", self, slopes))


SPECIAL = (
    "i0", "igamma", "igammac", "digamma", "erfc", "erfinv", "lgamma", "polygamma",
    "special_i0e", "special_i1", "special_i1e", "special_zeta", "special_ndtri",
    "special_log_ndtr", "special_erfcx", "special_airy_ai", "special_bessel_j0",
    "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0",
)  # fmt: skip

TABLE: dict[str, Any] = {
    **dict.fromkeys(SPECIAL, special),
    "polygamma": lambda d, n, self: special(d, self),
    "deg2rad": scaled,
    "rad2deg": scaled,
    "frac": frac,
    "frexp": frexp,
    "ldexp": ldexp,
    "copysign": by_bits,
    "nextafter": by_bits,
    "heaviside": heaviside,
    "logaddexp": log_add_exp,
    "logaddexp2": log_add_exp,
    "xlogy": times_log("log"),
    "special_xlog1py": times_log("log1p"),
    "special_entr": entropy,
    "hypot": hypot,
    "logit": logit,
    "sinc": sinc,
    "signbit": sign_bit,
    "isposinf": is_infinite,
    "isneginf": is_infinite,
    "nan_to_num": nan_to_num,
    "mvlgamma": mvlgamma,
    "rrelu": rrelu,
}
