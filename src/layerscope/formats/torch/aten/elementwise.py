"""Functions of two tensors, or of a tensor and a scalar, element by element."""

from __future__ import annotations

from layerscope.formats.torch.aten.control import scalar_constant
from layerscope.formats.torch.aten.layout import part
from layerscope.formats.torch.aten.promotion import (
    category,
    require_integers,
    result_type,
    to_floating,
)
from layerscope.formats.torch.aten.signatures import Converter, OneOutput, Operand, Scalar
from layerscope.formats.torch.dtypes import FLOATS, INEXACT
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Source
from layerscope.ops.complex_arithmetic import is_complex
from layerscope.ops.spec import COMPLEX_OF

COMMUTATIVE = ("add", "mul", "max", "min", "logical", "bitwise")
MOST_GAMMAS = 64  # logarithms of one mvlgamma, each a step of its own


def binary(op: str) -> OneOutput:
    """A converter to `op`; the result has the promoted dtype."""

    def convert(
        d: Lowering, self: Operand, other: Operand, *, alpha: Scalar = 1, **_: object
    ) -> TensorRef:
        tensors = [ref for ref in (self, other) if isinstance(ref, TensorRef)]
        if alpha != 1 and isinstance(other, TensorRef) and tensors:
            tensors[-1] = d.add("mul", tensors[-1])
        return _add_binary(
            d, op, tensors, [c for c in (self, other) if not isinstance(c, TensorRef)]
        )

    return convert


def _add_binary(d: Lowering, op: str, tensors: list[TensorRef], scalars: list[Scalar]) -> TensorRef:
    if op == "bitwise":
        require_integers(*tensors)
    dtype = tensors[0].dtype
    if len(tensors) == 2:
        dtype = result_type(*tensors)
    elif scalars and isinstance(scalars[0], complex):
        dtype = COMPLEX_OF.get(dtype, dtype if category(dtype) == 3 else COMPLEX_OF[d.floating])
        tensors = [*tensors, scalar_constant(d, dtype)]
    elif scalars and isinstance(scalars[0], float) and not dtype.startswith(INEXACT):
        dtype = d.floating
    if op == "div" and dtype not in FLOATS and not dtype.startswith("complex"):
        dtype = d.floating
    if op in ("compare", "logical"):
        return d.add(op, *tensors)
    if tensors[0].dtype != dtype:
        if len(tensors) == 2 and op in COMMUTATIVE and tensors[1].dtype == dtype:
            tensors = tensors[::-1]
        else:
            tensors = [d.cast(tensors[0], dtype), *tensors[1:]]
    return d.add(op, *tensors)


def rsub(d: Lowering, self: TensorRef, other: Operand, alpha: Scalar = 1) -> TensorRef:
    return binary("sub")(d, other, self)


def div(
    d: Lowering, self: Operand, other: Operand, *, rounding_mode: str | None = None
) -> TensorRef:
    return binary("floor_div" if rounding_mode else "div")(d, self, other)


def pow_(d: Lowering, self: Operand, exponent: Operand) -> TensorRef:
    if isinstance(self, TensorRef) and not isinstance(exponent, TensorRef):
        if isinstance(exponent, int) and exponent < 0 and not self.dtype.startswith(INEXACT):
            raise Refused(f"{self.dtype} to a negative power")
        if exponent == 2:
            return d.add("square", self)
        if exponent == 0.5:
            return d.add("sqrt", self)
        if exponent == -0.5:
            return d.add("rsqrt", self)
        if exponent == 1:
            return d.add("identity", self)
    if not isinstance(self, TensorRef):
        d.source = Source(op=f"{d.source.op}.Scalar")
    return binary("pow")(d, self, exponent)


def addcmul(
    d: Lowering, self: TensorRef, tensor1: TensorRef, tensor2: TensorRef, *, value: Scalar = 1
) -> TensorRef:
    product = d.add("mul", tensor1, tensor2)
    return d.add("add", self, product if value == 1 else d.add("mul", product))


def addcdiv(
    d: Lowering, self: TensorRef, tensor1: TensorRef, tensor2: TensorRef, *, value: Scalar = 1
) -> TensorRef:
    quotient = d.add("div", tensor1, tensor2)
    return d.add("add", self, quotient if value == 1 else d.add("mul", quotient))


def lerp(d: Lowering, self: TensorRef, end: TensorRef, weight: Operand) -> TensorRef:
    """Start + weight · (end − start)."""
    gap = d.add("sub", end, self)
    return d.add(
        "add", self, d.add("mul", gap, *([weight] if isinstance(weight, TensorRef) else []))
    )


def cross(d: Lowering, self: TensorRef, other: TensorRef, *, dim: int = -1) -> TensorRef:
    """Two products and their difference for each of three components."""
    return d.add("sub", d.add("mul", self, other), d.add("mul", self, other))


# Complex numbers


def polar(d: Lowering, abs: TensorRef, angle: TensorRef) -> TensorRef:
    """The absolute value times cosine and sine of the angle."""
    parts = [d.add("mul", abs, d.add(op, angle)) for op in ("cos", "sin")]
    return d.add("complex", *parts)


def angle(d: Lowering, self: TensorRef) -> TensorRef:
    """For real numbers 0 or π, by their sign."""
    if is_complex(self.dtype):
        return d.add("atan2", part(d, self), part(d, self))
    dtype = self.dtype if self.dtype.startswith(("fp", "bf")) else d.floating
    return d.add(
        "where", d.add("compare", self), scalar_constant(d, dtype), scalar_constant(d, dtype)
    )


# Special functions


def _float_binary(d: Lowering, op: str, a: Operand, b: Operand) -> TensorRef:
    """An op of two operands, integer tensors cast to floats."""
    operands = [to_floating(d, each) if isinstance(each, TensorRef) else each for each in (a, b)]
    return binary(op)(d, *operands)


def special(d: Lowering, *args: object, **_: object) -> TensorRef:
    """One `exp` per element; scalars such as an order are constants."""
    refs = [each for each in args if isinstance(each, TensorRef)]
    if len(refs) == 1:
        return d.add("special", to_floating(d, refs[0]))
    return _float_binary(d, "special", *refs[:2])


def polygamma(d: Lowering, n: int, self: TensorRef) -> TensorRef:
    return special(d, self)


def scale_by_constant(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("mul", to_floating(d, self))


def frac(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("sub", self, d.add("floor", self))


def frexp(d: Lowering, self: TensorRef) -> list[TensorRef]:
    """Mantissa and exponent, by one bitwise operation."""
    mantissa = d.add("bitwise", self)
    return [mantissa, d.cast(mantissa, "int32")]


def ldexp(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return _float_binary(d, "mul", self, d.add("pow", to_floating(d, other)))


def float_bits(d: Lowering, self: Operand, other: Operand) -> TensorRef:
    """A bitwise operation on floats, such as taking the sign bit of the other."""
    operands = [to_floating(d, each) for each in (self, other) if isinstance(each, TensorRef)]
    return d.add("bitwise", *operands)


def heaviside(d: Lowering, self: TensorRef, values: TensorRef) -> TensorRef:
    return d.add("where", d.add("compare", self), values, scalar_constant(d, values.dtype))


def logaddexp(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    """max(a, b) + log(1 + exp(−|a − b|))"""
    gap = d.add("neg", d.add("abs", _float_binary(d, "sub", self, other), at=at.Activation()))
    rest = d.add("log1p", d.add("exp", gap))
    return d.add("add", _float_binary(d, "max", self, other), rest)


def xlogy(op: str) -> OneOutput:
    """A converter of x · log y, with 0 where x is 0."""

    def convert(d: Lowering, self: Operand, other: Operand) -> TensorRef:
        if not isinstance(other, TensorRef):
            return _float_binary(d, "mul", self, other)  # the logarithm of a scalar is a constant
        product = _float_binary(d, "mul", self, d.add(op, to_floating(d, other)))
        if not isinstance(self, TensorRef):
            return product
        is_zero = d.add("compare", self)
        return d.add("where", is_zero, scalar_constant(d, product.dtype), product)

    return convert


def entropy(d: Lowering, self: TensorRef) -> TensorRef:
    """−x · log x"""
    x = to_floating(d, self)
    y = d.add("neg", d.add("mul", x, d.add("log", x)))
    return d.add("where", d.add("compare", x), y, scalar_constant(d, y.dtype))


def hypot(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    squares = [d.add("square", each) for each in (self, other)]
    return d.add("sqrt", _float_binary(d, "add", *squares))


def logit(d: Lowering, self: TensorRef, eps: float | None = None) -> TensorRef:
    """log(x / (1 − x)), x clipped to [eps, 1 − eps]"""
    x = to_floating(d, self)
    if eps is not None:
        d.source = Source(op=f"{d.source.op}.clipped")
        x = d.add("clip", x, at=at.Activation())
    return d.add("log", d.add("div", x, d.add("sub", x)))


def sinc(d: Lowering, self: TensorRef) -> TensorRef:
    """sin(πx) / πx, and 1 where x is 0"""
    x = d.add("mul", to_floating(d, self))
    y = d.add("div", d.add("sin", x), x)
    return d.add("where", d.add("compare", x), scalar_constant(d, y.dtype), y)


def signbit(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("compare", self)


def mvlgamma(d: Lowering, self: TensorRef, p: int) -> TensorRef:
    """The sum of lgamma(x − j/2) for j from 0 to p − 1, plus a constant."""
    if p > MOST_GAMMAS:
        raise Unsupported(f"mvlgamma of {p} logarithms, more than {MOST_GAMMAS}")
    x = to_floating(d, self)
    total = d.add("special", d.add("sub", x))
    for _ in range(1, p):
        total = d.add("add", total, d.add("special", d.add("sub", x)))
    return d.add("add", total)


# ATen operator -> op
BINARY = {
    "add": "add", "sub": "sub", "subtract": "sub", "mul": "mul", "multiply": "mul",
    "true_divide": "div", "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min",
    "eq": "compare", "ne": "compare", "lt": "compare", "le": "compare", "gt": "compare",
    "ge": "compare", "less": "compare", "greater": "compare", "not_equal": "compare",
    "less_equal": "compare", "greater_equal": "compare", "logical_and": "logical",
    "logical_or": "logical", "logical_xor": "logical", "bitwise_and": "bitwise",
    "bitwise_or": "bitwise", "bitwise_xor": "bitwise", "__and__": "bitwise", "__or__": "bitwise",
    "__xor__": "bitwise", "bitwise_left_shift": "bitwise", "bitwise_right_shift": "bitwise",
    "__lshift__": "bitwise", "__rshift__": "bitwise", "floor_divide": "floor_div",
    "remainder": "mod", "fmod": "mod", "atan2": "atan2", "arctan2": "atan2",
}  # fmt: skip
SPECIAL = (
    "i0", "igamma", "igammac", "digamma", "erfc", "erfinv", "lgamma",
    "special_i0e", "special_i1", "special_i1e", "special_zeta", "special_ndtri",
    "special_log_ndtr", "special_erfcx", "special_airy_ai", "special_bessel_j0",
    "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0",
)  # fmt: skip

TABLE: dict[str, Converter] = {
    **{name: binary(op) for name, op in BINARY.items()},
    "rsub": rsub,
    "div": div,
    "divide": div,
    "pow": pow_,
    "addcmul": addcmul,
    "addcdiv": addcdiv,
    "lerp": lerp,
    "linalg_cross": cross,
    "polar": polar,
    "angle": angle,
    **dict.fromkeys(SPECIAL, special),
    "polygamma": polygamma,
    "deg2rad": scale_by_constant,
    "rad2deg": scale_by_constant,
    "frac": frac,
    "frexp": frexp,
    "ldexp": ldexp,
    "copysign": float_bits,
    "nextafter": float_bits,
    "heaviside": heaviside,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp,
    "xlogy": xlogy("log"),
    "special_xlog1py": xlogy("log1p"),
    "special_entr": entropy,
    "hypot": hypot,
    "logit": logit,
    "sinc": sinc,
    "signbit": signbit,
    "mvlgamma": mvlgamma,
}
