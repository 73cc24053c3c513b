"""Operators whose sizes only the run computes, by the output shapes that the file declares."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.onnx.operators.reducing import KINDS
from layerscope.formats.onnx.operators.resizing import resize_to
from layerscope.formats.onnx.site import Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of

Shapes = list[Shape]


def by_declared(s: Site) -> bool:
    """Count an operator by its declared outputs; False where they do not tell enough."""
    convert = BY_SHAPES.get(s.op) if not s.operator.domain else None
    if convert is None or s.blank:
        return False
    shapes = [s.declared_output(n) for n, name in enumerate(s.operator.outputs) if name]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) != len(s.operator.outputs):
        return False
    return convert(s, known)


def _reshape(s: Site, shapes: Shapes) -> bool:
    if elements(shapes[0]) != elements(s.shape(0)):
        return False
    s.emit("reshape", (s.given(0),), at.Reshape(shapes[0]), **s.from_file(0))
    return True


def _expand(s: Site, shapes: Shapes) -> bool:
    s.emit("expand", (s.given(0),), at.Expand(shapes[0]), **s.from_file(0))
    return True


def _copy(s: Site, shapes: Shapes) -> bool:
    told = at.CustomCost(tuple(shapes), (s.dtype(0),) * len(shapes))
    s.counted((s.given(0),), told, **s.from_file(0))
    return True


def _range(s: Site, shapes: Shapes) -> bool:
    s.told_node("range", (), shapes, (s.dtype(0),), **s.from_file(0))
    return True


def _constant(s: Site, shapes: Shapes) -> bool:
    s.told_node("constant", (), shapes, (s.declared_dtype(0),), **s.from_file(0))
    return True


def _top_k(s: Site, shapes: Shapes) -> bool:
    axis = s.whole("axis", -1)
    k = shapes[0][axis_of(axis, len(shapes[0]))]
    s.emit("top_k", (s.given(0),), at.TopK(k, axis), **s.from_file(0))
    return True


def _one_hot(s: Site, shapes: Shapes) -> bool:
    axis = s.whole("axis", -1)
    told = at.OneHot(shapes[0][axis_of(axis, len(shapes[0]))], axis)
    made = s.emit("one_hot", (s.given(0),), told, **s.from_file(0))[0]
    made.dtype = s.dtype(2)
    return True


def _reduce(s: Site, shapes: Shapes) -> bool:
    """Axes that are gone, or of one element; which of equal ones makes no difference to counts."""
    x, made, keep = s.shape(0), shapes[0], bool(s.whole("keepdims", 1))
    if keep:
        axes = tuple(n for n, size in enumerate(made) if size == 1 and x[n] != 1)
        if len(made) != len(x):
            return False
    else:
        rest, gone = list(made), []
        for n, size in enumerate(x):
            if rest and rest[0] == size and len(rest) <= len(x) - n:
                rest.pop(0)
            else:
                gone.append(n)
        if rest:
            return False
        axes = tuple(gone)
    if not axes:
        return made == x and _copy(s, shapes)
    s.emit(KINDS[s.op], (s.given(0),), at.Reduce(axes, keep=keep), **s.from_file(0))
    return True


def _resize(s: Site, shapes: Shapes) -> bool:
    if len(shapes[0]) != len(s.shape(0)):
        return False
    resize_to(s, shapes[0], **s.from_file(0))
    return True


def _unpool(s: Site, shapes: Shapes) -> bool:
    told = at.Unpool(size=shapes[0][2:])
    s.emit("unpool", (s.given(0), s.given(1)), told, **s.from_file(0))
    return True


def _affine_grid(s: Site, shapes: Shapes) -> bool:
    size = (s.shape(0)[0], 1, *shapes[0][1:-1])
    told = at.AffineGrid(size, bool(s.whole("align_corners")))
    s.emit("affine_grid", (s.given(0),), told, **s.from_file(0))
    return True


BY_SHAPES: dict[str, Callable[[Site, Shapes], bool]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _reshape),
    **dict.fromkeys(("Slice", "Split", "Tile", "Pad", "CenterCropPad"), _copy),
    **dict.fromkeys(("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow",
                     "MelWeightMatrix"), _constant),
    **dict.fromkeys(KINDS, _reduce),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Expand": _expand, "Range": _range, "TopK": _top_k, "OneHot": _one_hot, "MaxUnpool": _unpool,
    "AffineGrid": _affine_grid,
}  # fmt: skip
