"""Element by element: functions of one tensor, of two, and of constants."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.shaping import broadcast_to, reshape
from layerscope.formats.torch.dtypes import FLOATS, INEXACT
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Source, elements
from layerscope.ops.spec import COMPLEX_OF, axis_of

SWAPPED = ("add", "mul", "max", "min", "logical", "bitwise")  # both sides are alike


def _wider(a: str, b: str) -> str:
    """Of two number types the one that PyTorch makes of both, where it is one of them."""
    order = ("bool", "uint8", "int8", "int16", "int32", "int64", "fp8", "fp16", "bf16", "fp32")
    if {a, b} == {"fp16", "bf16"}:
        return "fp32"
    if {a, b} == {"fp64", "complex64"}:
        return "complex128"
    ranks = {name: n for n, name in enumerate((*order, "fp64", "complex64", "complex128"))}
    return a if ranks.get(a, 99) >= ranks.get(b, 99) else b


def unary(op: str) -> Any:
    """What else PyTorch tells it (a slope, a threshold) is a constant of it."""

    def translate(d: Lowering, self: TensorRef, *told: Any, **_: Any) -> TensorRef:
        x = self
        if op == "bitwise_not":
            _need_bits(x)
        if not x.dtype.startswith(INEXACT) and op in MAKES_FLOATS:
            x = d.cast(x, d.floating)
        constants = [each for each in told if isinstance(each, (int, float))][:2]
        return d.add(op, x, at=_activation(op, constants, d.in_place))

    return translate


CONSTANTS = {"leaky_relu": (0.01,), "elu": (1.0,), "softplus": (1.0, 20.0)}
ACTIVATIONS = (
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "sigmoid", "tanh", "silu", "mish",
    "hard_sigmoid", "hard_swish", "gelu", "gelu_tanh", "softplus", "clip", "threshold",
)  # fmt: skip
MAKES_FLOATS = (
    "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "erf", "sigmoid", "tanh", "reciprocal",
    "log1p", "expm1", "atan",
)  # fmt: skip


def _activation(op: str, constants: list[float], in_place: bool) -> at.Activation | None:
    if op not in ACTIVATIONS:
        return None
    if op not in CONSTANTS:
        return at.Activation(in_place=in_place)
    told = [float(c) for c in constants]
    told += CONSTANTS[op][len(told) :]
    return at.Activation(told[0], told[1] if len(told) > 1 else None, in_place)


def gelu(d: Lowering, self: TensorRef, approximate: str = "none") -> TensorRef:
    op = "gelu_tanh" if approximate == "tanh" else "gelu"
    return d.add(op, self, at=at.Activation(in_place=d.in_place))


def hardtanh(
    d: Lowering, self: TensorRef, min_val: float = -1.0, max_val: float = 1.0
) -> TensorRef:
    op = "relu6" if (min_val, max_val) == (0, 6) else "clip"
    return d.add(op, self, at=at.Activation(in_place=d.in_place))


def clamp(d: Lowering, self: TensorRef, min: Any = None, max: Any = None) -> TensorRef:
    if not any(each is None or isinstance(each, TensorRef) for each in (min, max)):
        return d.add("clip", self, at=at.Activation(in_place=d.in_place))
    x = self
    for op, bound in (("max", min), ("min", max)):
        if bound is not None:
            if x is not self:
                d.source = Source(op=f"{d.source.op}.second")
            x = d.add(op, x, *([bound] if isinstance(bound, TensorRef) else []))
    return x


def clamp_max(d: Lowering, self: TensorRef, max: Any) -> TensorRef:
    return clamp(d, self, None, max)


def prelu(d: Lowering, self: TensorRef, weight: TensorRef) -> TensorRef:
    if not weight.rank or not self.rank:
        return prelu_kernel(d, self, weight)
    told = at.PReLU(shared=elements(weight.shape) == 1)
    if weight.stored:
        return d.add("prelu", self, at=told, holds={"weight": weight})
    return d.add("prelu", self, weight, at=told)


def prelu_kernel(d: Lowering, self: TensorRef, weight: TensorRef) -> TensorRef:
    """As `prelu`, the slopes with an axis of one for every other axis of the input."""
    row = (elements(weight.shape),)
    x = self if self.rank else reshape(d, self, (1,))
    made = d.add("prelu", x, reshape(d, weight, row), at=at.PReLU(row == (1,)))
    return reshape(d, made, self.shape)


def glu(d: Lowering, self: TensorRef, dim: int = -1) -> TensorRef:
    a, b = d.several("split", self, at=at.Split(axis_of(dim, self.rank), parts=2))
    return d.add("mul", a, d.add("sigmoid", b))


def binary(op: str) -> Any:
    def translate(d: Lowering, self: Any, other: Any, *, alpha: Any = 1, **_: Any) -> TensorRef:
        """One side may be a number; the result has the wider number type."""
        given = [ref for ref in (self, other) if isinstance(ref, TensorRef)]
        if alpha != 1 and isinstance(other, TensorRef) and given:
            given[-1] = d.add("mul", given[-1])
        return _meet(d, op, given, [c for c in (self, other) if not isinstance(c, TensorRef)])

    return translate


def _need_bits(*given: TensorRef) -> None:
    for ref in given:
        if ref.dtype.startswith(INEXACT):
            raise Refused(f"bits of numbers of {ref.dtype}")


def _meet(d: Lowering, op: str, given: list[TensorRef], constants: list[Any]) -> TensorRef:
    if op == "bitwise":
        _need_bits(*given)
    kind = given[0].dtype
    if len(given) == 2:
        first, second = given
        kind = first.dtype
        if first.dtype != second.dtype:
            # a single number does not widen a tensor of the same sort
            if second.rank == 0 < first.rank and _sort(second.dtype) <= _sort(first.dtype):
                kind = first.dtype
            elif first.rank == 0 < second.rank and _sort(first.dtype) <= _sort(second.dtype):
                kind = second.dtype
            else:
                kind = _wider(first.dtype, second.dtype)
    elif constants and isinstance(constants[0], complex):
        kind = COMPLEX_OF.get(kind, kind if _sort(kind) == 3 else COMPLEX_OF[d.floating])
        given = [*given, number(d, kind)]
    elif constants and isinstance(constants[0], float) and not kind.startswith(INEXACT):
        kind = d.floating
    if op == "div" and kind not in FLOATS and not kind.startswith("complex"):
        kind = d.floating
    if op in ("compare", "logical"):
        return d.add(op, *given)
    if given[0].dtype != kind:
        if len(given) == 2 and op in SWAPPED and given[1].dtype == kind:
            given = given[::-1]
        else:
            given = [d.cast(given[0], kind), *given[1:]]
    return d.add(op, *given)


def _sort(dtype: str) -> int:
    return 3 if dtype.startswith("complex") else 2 if dtype in FLOATS else dtype != "bool"


def rsub(d: Lowering, self: TensorRef, other: Any, alpha: Any = 1) -> TensorRef:
    result: TensorRef = binary("sub")(d, other, self)
    return result


def divide(d: Lowering, self: Any, other: Any, *, rounding_mode: str | None = None) -> TensorRef:
    result: TensorRef = binary("floor_div" if rounding_mode else "div")(d, self, other)
    return result


def power(d: Lowering, self: Any, exponent: Any) -> TensorRef:
    if isinstance(self, TensorRef) and not isinstance(exponent, TensorRef):
        if isinstance(exponent, int) and exponent < 0 and not self.dtype.startswith(INEXACT):
            raise Refused(f"numbers of {self.dtype} to a negative power")
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
    result: TensorRef = binary("pow")(d, self, exponent)
    return result


def where(d: Lowering, condition: TensorRef, self: Any = None, other: Any = None) -> TensorRef:
    if self is None:
        raise Unsupported("places that data decides")
    if condition.dtype not in ("bool", "uint8"):
        raise Refused(f"a choice by numbers of {condition.dtype}")
    return d.add("where", condition, *_both(d, condition, self, other))


def _both(d: Lowering, condition: TensorRef, a: Any, b: Any) -> list[TensorRef]:
    """Numbers in place of tensors are constants of one element."""
    kinds = [ref.dtype for ref in (a, b) if isinstance(ref, TensorRef)]
    kind = kinds[0] if kinds else d.floating
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        kind = _wider(*kinds)
    return [
        d.cast(each, kind) if isinstance(each, TensorRef) else number(d, kind) for each in (a, b)
    ]


def number(d: Lowering, dtype: str) -> TensorRef:
    """A constant of one element."""
    return d.add("constant", at=at.DeclaredOutputs(((),), (dtype,)))


def masked_fill(d: Lowering, self: TensorRef, mask: TensorRef, value: Any) -> TensorRef:
    """A choice between the tensor and one value."""
    if mask.dtype != "bool":
        raise Refused(f"a mask of {mask.dtype}")
    if isinstance(value, TensorRef) and value.rank:
        raise Unsupported("a tensor to fill with")
    filler = d.cast(value, self.dtype) if isinstance(value, TensorRef) else number(d, self.dtype)
    return d.add("where", mask, filler, self)


def copy(d: Lowering, self: TensorRef, src: TensorRef, non_blocking: bool = False) -> TensorRef:
    made = broadcast_to(d, d.cast(src, self.dtype), self.shape)
    return made if made is not src else d.add("identity", src)


def fill(d: Lowering, self: TensorRef, value: Any = 0) -> TensorRef:
    if isinstance(value, TensorRef) and value.rank:
        raise Unsupported("a tensor to fill with")
    return d.add("constant", at=at.DeclaredOutputs((self.shape,), (self.dtype,)))


def addcmul(
    d: Lowering, self: TensorRef, tensor1: TensorRef, tensor2: TensorRef, *, value: Any = 1
) -> TensorRef:
    made = d.add("mul", tensor1, tensor2)
    return d.add("add", self, made if value == 1 else d.add("mul", made))


def addcdiv(
    d: Lowering, self: TensorRef, tensor1: TensorRef, tensor2: TensorRef, *, value: Any = 1
) -> TensorRef:
    made = d.add("div", tensor1, tensor2)
    return d.add("add", self, made if value == 1 else d.add("mul", made))


def lerp(d: Lowering, self: TensorRef, end: TensorRef, weight: Any) -> TensorRef:
    """Start + weight · (end − start)."""
    gap = d.add("sub", end, self)
    return d.add(
        "add", self, d.add("mul", gap, *([weight] if isinstance(weight, TensorRef) else []))
    )


def isfinite(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("is_inf", self)


UNARY = {
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "selu": "selu",
    "celu": "celu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "mish": "mish",
    "hardsigmoid": "hard_sigmoid", "hardswish": "hard_swish", "softplus": "softplus",
    "log_sigmoid": "log_sigmoid", "hardshrink": "shrink", "softshrink": "shrink",
    "threshold": "threshold", "exp": "exp", "log": "log", "sqrt": "sqrt", "neg": "neg",
    "negative": "neg", "abs": "abs", "absolute": "abs", "rsqrt": "rsqrt",
    "reciprocal": "reciprocal", "square": "square", "erf": "erf", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "arctan": "atan",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "floor", "sign": "sign",
    "sgn": "sign", "logical_not": "not", "bitwise_not": "bitwise_not", "isnan": "is_nan",
    "isinf": "is_inf", "expm1": "expm1", "log1p": "log1p", "log2": "log", "log10": "log",
    "exp2": "exp", "special_expm1": "expm1",
}  # fmt: skip
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

TABLE: dict[str, Any] = {
    **{name: unary(op) for name, op in UNARY.items()},
    **{name: binary(op) for name, op in BINARY.items()},
    "gelu": gelu,
    "hardtanh": hardtanh,
    "clamp": clamp,
    "clip": clamp,
    "clamp_min": clamp,
    "clamp_max": clamp_max,
    "prelu": prelu,
    "_prelu_kernel": prelu_kernel,
    "glu": glu,
    "rsub": rsub,
    "div": divide,
    "divide": divide,
    "pow": power,
    "where": where,
    "masked_fill": masked_fill,
    "copy": copy,
    "fill": fill,
    "zero": fill,
    "addcmul": addcmul,
    "addcdiv": addcdiv,
    "lerp": lerp,
    "isfinite": isfinite,
}
