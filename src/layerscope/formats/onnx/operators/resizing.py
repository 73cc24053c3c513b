"""Resampling."""

from __future__ import annotations

from math import floor
from typing import Any

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import axis_of

MODES: dict[str, at.Sampling] = {
    "nearest": "nearest",
    "linear": "bilinear",
    "bilinear": "bilinear",
    "cubic": "bicubic",
    "bicubic": "bicubic",  # GridSample before opset 20
}


def _mode(s: Site, default: str) -> at.Sampling:
    """How it samples; what nobody defined is not taken for something else."""
    told = s.text("mode", default)
    if told not in MODES:
        raise ShapeError(f"mode {told!r}, expected {', '.join(MODES)}")
    return MODES[told]


def resize(s: Site) -> None:
    """Resize by scales or to sizes; Upsample before it, by scales alone."""
    x = s.shape(0)
    scales, sizes = _told(s)
    axes = s.wholes("axes") or tuple(range(len(x)))
    axes = tuple(axis_of(axis, len(x)) for axis in axes)
    wanted = list(x)
    given = sizes if sizes is not None else scales
    if given is None:
        raise NeedsValue("neither scales nor sizes are given")
    if len(given) != len(axes):
        raise ShapeError(f"{len(given)} sizes or scales for {len(axes)} axes")
    if sizes is not None:
        policy = s.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratios = [size / x[axis] for size, axis in zip(sizes, axes, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = tuple(floor(ratio * x[axis] + 0.5) for axis in axes)
        for axis, size in zip(axes, sizes, strict=True):
            wanted[axis] = int(size)
    else:
        for axis, scale in zip(axes, given, strict=True):
            wanted[axis] = floor(x[axis] * scale)
    resize_to(s, tuple(wanted))


def resize_to(s: Site, wanted: Shape, **more: Any) -> None:
    """Resize to a shape; `more` are options of the node that is emitted."""
    x = s.shape(0)
    mode = _mode(s, "nearest")
    corners = s.text("coordinate_transformation_mode", "half_pixel") == "align_corners"
    if len(x) >= 3 and wanted[:2] == x[:2]:
        told = at.Resize(mode, wanted[2:], align_corners=corners)
        s.emit("resize", (s.given(0),), told, **more)
        return
    if wanted == x:
        s.emit("identity", (s.given(0),), outputs=s.operator.outputs[:1], **more)
        return
    _any_axes(s, wanted, at.Resize(mode, (), align_corners=corners), more)


def _any_axes(s: Site, wanted: Shape, how: at.Resize, more: dict[str, Any]) -> None:
    """Axes that are resized brought to the end, and back."""
    x = s.shape(0)
    moved = [n for n in range(len(x)) if wanted[n] != x[n]]
    kept = [n for n in range(len(x)) if n not in moved]
    lead = tuple(x[n] for n in kept)
    order = (*kept, *moved)
    count = 1
    for size in lead:
        count *= size
    made = s.emit("permute", (s.given(0),), at.Permute(order), part="axes")[0]
    flat = at.Reshape((1, count, *(x[n] for n in moved)))
    made = s.emit("reshape", (made,), flat, part="flat")[0]
    told = replace(how, size=tuple(wanted[n] for n in moved))
    made = s.emit("resize", (made,), told, part="resize", **more)[0]
    full = at.Reshape((*lead, *(wanted[n] for n in moved)))
    made = s.emit("reshape", (made,), full, part="full")[0]
    back = tuple(order.index(n) for n in range(len(x)))
    s.emit("permute", (made,), at.Permute(back))


Floats = tuple[float, ...] | None


def _told(s: Site) -> tuple[Floats, tuple[int, ...] | None]:
    """Scales and sizes, wherever the version has them; an empty array is none."""
    if s.op == "Upsample" or s.opset < 11:
        if "scales" in s.told:
            return tuple(float(v) for v in s.told["scales"]), None
        if "height_scale" in s.told:
            return (1.0, 1.0, s.real("height_scale"), s.real("width_scale")), None
        return tuple(float(v) for v in s.need(1).values), None
    s.value(1)
    if s.has(3):
        sizes = s.need(3)
        if sizes.values:
            return None, sizes.ints()
    if s.has(2):
        scales = s.need(2)
        if scales.values:
            return tuple(float(v) for v in scales.values), None
    raise NeedsValue("neither scales nor sizes are given")


def grid_sample(s: Site) -> None:
    """GridSample."""
    mode = _mode(s, "linear")
    s.emit("grid_sample", (s.given(0), s.given(1)), at.GridSample(mode))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Resize"): resize,
    ("", "Upsample"): resize,
    ("", "GridSample"): grid_sample,
    ("com.microsoft", "GridSample"): grid_sample,
}
