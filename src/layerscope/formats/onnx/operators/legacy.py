"""Experimental operators of ONNX 1.0 to 1.4, which were removed again: old files have them."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.operators.moving import slice_
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at


def affine(s: Site) -> None:
    """Affine: alpha · x + beta."""
    made = s.emit("mul", (s.given(0),), part="alpha")[0]
    s.emit("add", (made,))


def scale(s: Site) -> None:
    """Scale: by one number."""
    s.emit("mul", (s.given(0),))


def image_scaler(s: Site) -> None:
    """ImageScaler: one factor for all, and a bias for each channel."""
    made = s.emit("mul", (s.given(0),), part="scale")[0]
    s.emit("add", (made,))


def scaled_tanh(s: Site) -> None:
    """ScaledTanh: alpha · tanh(beta · x)."""
    made = s.emit("mul", (s.given(0),), part="beta")[0]
    made = s.emit("tanh", (made,), part="tanh")[0]
    s.emit("mul", (made,))


def parametric_softplus(s: Site) -> None:
    """ParametricSoftplus: alpha · softplus(beta · x)."""
    made = s.emit("mul", (s.given(0),), part="beta")[0]
    made = s.emit("softplus", (made,), part="softplus")[0]
    s.emit("mul", (made,))


def crop(s: Site) -> None:
    """Crop: borders left, top, right, bottom of an image, or a size behind the first two."""
    x, border, size = s.shape(0), s.wholes("border"), s.wholes("scale")
    if len(x) != 4 or len(border) != 4:
        raise ShapeError(f"borders {border} of {x}")
    left, top, right, bottom = border
    ends = (top + size[0], left + size[1]) if len(size) == 2 else (x[2] - bottom, x[3] - right)
    if not (0 <= top < ends[0] <= x[2] and 0 <= left < ends[1] <= x[3]):
        raise ShapeError(f"borders {border} of {x}")
    s.emit("slice", (s.given(0),), at.Slice((2, 3), (top, left), ends))


def filled(s: Site) -> None:
    """ConstantFill and GivenTensorFill: a shape that is an attribute, an input, or an input's."""
    shape = s.wholes("shape")
    if s.has(0):
        shape = s.need(0).ints() if s.whole("input_as_shape") else s.shape(0)
        shape = (*shape, *s.wholes("extra_shape"))
    elif "shape" not in s.told:
        raise NeedsValue("shape is missing")
    s.told_node("constant", (), (shape,), (DTYPES.get(s.whole("dtype", 1), "fp32"),))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Affine"): affine,
    ("", "Scale"): scale,
    ("", "ImageScaler"): image_scaler,
    ("", "ScaledTanh"): scaled_tanh,
    ("", "ParametricSoftplus"): parametric_softplus,
    ("", "Crop"): crop,
    ("", "ConstantFill"): filled,
    ("", "GivenTensorFill"): filled,
    ("", "DynamicSlice"): slice_,
}
