"""Element-wise functions of one tensor, by the operator's name."""

from __future__ import annotations

from layerscope.formats.onnx.known import Known, NeedsValue
from layerscope.formats.onnx.site import Site
from layerscope.graph import attributes as at

UNARY = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Abs": "abs", "Exp": "exp",
    "Log": "log", "Sqrt": "sqrt", "Neg": "neg", "LeakyRelu": "leaky_relu", "Elu": "elu",
    "Selu": "selu", "Celu": "celu", "Softplus": "softplus", "Softsign": "softsign",
    "HardSigmoid": "hard_sigmoid", "HardSwish": "hard_swish", "Mish": "mish", "Erf": "erf",
    "ThresholdedRelu": "thresholded_relu", "Shrink": "shrink",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign",
    "Reciprocal": "reciprocal", "Not": "not", "IsNaN": "is_nan", "IsInf": "is_inf",
    "BitwiseNot": "bitwise_not", "QuickGelu": "quick_gelu", "HardTanh": "clip",
}  # fmt: skip
WITH_ALPHA = {"leaky_relu", "elu", "selu", "celu", "thresholded_relu", "hard_sigmoid"}


def activated(s: Site, name: str, known: Known, *, part: str = "") -> Known:
    """The activation that another operator has behind it, by its name there."""
    op = {"clip": "clip", "swish": "silu", "gelu": "gelu", "fastgelu": "gelu_tanh"}.get(
        name.lower()
    ) or {onnx.lower(): ours for onnx, ours in UNARY.items()}.get(name.lower())
    if op is None:
        raise NeedsValue(f"no rule for activation {name!r}")
    return s.emit(op, (known,), part=part)[0]


def unary(s: Site) -> None:
    """Any function of one tensor."""
    op = UNARY[s.op]
    attributes = None
    if op in WITH_ALPHA and ("alpha" in s.told or "gamma" in s.told):
        beta = s.told.get("beta", s.told.get("gamma"))
        attributes = at.Activation(s.told.get("alpha"), beta)
    s.emit(op, (s.given(0),), attributes)
