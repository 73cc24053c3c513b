"""Reshape, transpose, pad, expand and other changes of layout."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    axes_of,
    reshaped,
    squeezed,
    unsqueezed,
)
from layerscope.formats.onnx.dtypes import cast_dtype
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of, broadcast


def moved_shape(node: OnnxNode) -> tuple[Shape, str]:
    """Output shape and dtype of an operator that does not change values."""
    shape, dtype = node.shape(), node.dtype()
    if node.op == "Cast":
        return shape, cast_dtype(node.attrs.get("to", 0)) or dtype
    if node.op == "CastLike":
        return shape, node.dtype("target_type")
    if node.op == "Transpose":
        return tuple(shape[n] for n in order(node)), dtype
    if node.op == "Reshape":
        return reshaped(shape, wanted(node), bool(node.int_attr("allowzero"))), dtype
    if node.op == "Squeeze":
        return squeezed(shape, _axes(node)), dtype
    if node.op == "Unsqueeze":
        return unsqueezed(shape, _axes(node) or ()), dtype
    if node.op == "Flatten":
        axis = node.int_attr("axis", 1)
        axis = axis + len(shape) if axis < 0 else axis
        return (elements(shape[:axis]), elements(shape[axis:])), dtype
    return shape, dtype


def wanted(node: OnnxNode) -> tuple[int, ...]:
    """The shape of a Reshape: an attribute before opset 5."""
    return node.ints_attr("shape") if "shape" in node.attrs else node.need_value("shape").ints()


def _axes(node: OnnxNode) -> tuple[int, ...] | None:
    if "axes" not in node.attrs and node.has("axes"):
        node.need_value("axes")
    return axes_of(node.attrs, [None, node.value("axes")])


def order(node: OnnxNode) -> tuple[int, ...]:
    """The order of axes of a Transpose."""
    rank = len(node.shape())
    perm = node.ints_attr("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise ShapeError(f"an order {perm} of {rank} axes")
    return perm


def reshape(node: OnnxNode) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze; -1 in the shape of a Reshape is kept."""
    shape, _ = moved_shape(node)
    if node.op == "Reshape" and not node.int_attr("allowzero"):
        sizes, rank = wanted(node), len(node.shape())
        if all(size != 0 or n < rank for n, size in enumerate(sizes)) and elements(shape):
            node.emit("reshape", (node.input(),), at.Reshape(sizes))
            return
    node.emit("reshape", (node.input(),), at.Reshape(shape))


def transpose(node: OnnxNode) -> None:
    """Transpose."""
    node.emit("permute", (node.input(),), at.Permute(order(node)))


def identity(node: OnnxNode) -> None:
    """Identity of a tensor or a sequence."""
    tensor = node.input()
    if not tensor.tensor:
        node.env[node.outputs[0]] = tensor
        return
    node.alias(tensor)


FILLINGS: dict[str, at.Filling] = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "wrap": "wrap",
}


def pad(node: OnnxNode) -> None:
    """Pad; since opset 18 axes may be an input."""
    rank = len(node.shape("data"))
    pads = node.ints_attr("pads") or node.ints_attr("paddings") or node.need_value("pads").ints()
    node.mark_constant(2)  # constant_value, or value in com.microsoft
    named = node.value("axes")
    axes = named.ints() if named is not None else tuple(range(rank))
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads for {len(axes)} axes")
    each = [(0, 0)] * rank
    for n, axis in enumerate(axes):
        each[axis_of(axis, rank)] = (pads[n], pads[n + len(axes)])
    mode = node.str_attr("mode", "constant")
    if mode not in FILLINGS:
        raise ShapeError(f"mode {mode!r}, expected {', '.join(FILLINGS)}")
    node.emit("pad", (node.input("data"),), at.Pad(tuple(each), FILLINGS[mode]))


def tile(node: OnnxNode) -> None:
    """Tile."""
    times = node.need_value("repeats").ints()
    if node.opset < 6:
        axis, count = int(node.need_value(2).item), int(node.need_value("repeats").item)
        times = tuple(count if n == axis else 1 for n in range(len(node.shape("input"))))
    node.emit("repeat", (node.input("input"),), at.Repeat(times))


def expand(node: OnnxNode) -> None:
    """Expand: broadcast both ways."""
    shape = broadcast((node.shape("input"), node.need_value("shape").ints()))
    if 0 in shape:
        node.emit_shaped("constant", (), (shape,), (node.dtype("input"),))
        return
    node.emit("expand", (node.input("input"),), at.Expand(shape))


def shape_of(node: OnnxNode) -> None:
    """Shape or Size of a tensor whose shape is unknown; others are folded."""
    node.emit_unknown()


def trilu(node: OnnxNode) -> None:
    """Trilu."""
    node.mark_constant("k")
    node.emit("trilu", (node.input(),), roles="constant")  # a stored one is a mask


def crop_pad(node: OnnxNode) -> None:
    """CenterCropPad: cropped or padded on both sides to a size."""
    x = node.shape("input_data")
    sizes = node.need_value("shape").ints()
    axes = node.ints_attr("axes") or tuple(range(len(x)))
    starts, ends, pads = [], [], [(0, 0)] * len(x)
    for axis, size in zip(axes, sizes, strict=True):
        axis = axis_of(axis, len(x))
        cut, more = max(x[axis] - size, 0), max(size - x[axis], 0)
        starts.append(cut // 2)
        ends.append(cut // 2 + min(size, x[axis]))
        pads[axis] = (more // 2, more - more // 2)
    attrs = at.Slice(tuple(axis_of(axis, len(x)) for axis in axes), tuple(starts), tuple(ends))
    y = node.emit("slice", (node.input("input_data"),), attrs, part="crop")[0]
    node.emit("pad", (y,), at.Pad(tuple(pads)))


def dropout(node: OnnxNode) -> None:
    """Dropout, which does nothing at inference; its mask is all ones."""
    ratio = node.value("ratio")
    node.mark_constant("training_mode")
    p = (
        float(ratio.values[0])
        if ratio is not None and ratio.values
        else node.float_attr("ratio", 0.5)
    )
    node.emit("dropout", (node.input("data"),), at.Dropout(p), outputs=node.outputs[:1])
    node.extra_output(1, node.shape("data"), "bool")


def reverse(node: OnnxNode) -> None:
    """ReverseSequence."""
    node.emit("flip", (node.input("input"),), at.Flip((node.int_attr("time_axis"),)))


def expand_dims(node: OnnxNode) -> None:
    """ExpandDims: one more axis."""
    x = list(node.shape("X"))
    axis = axis_of(int(node.need_value("axis").item), len(x) + 1)
    x.insert(axis, 1)
    node.emit("reshape", (node.input("X"),), at.Reshape(tuple(x)))


OPERATORS: ConverterTable = {
    ("", "Reshape"): Converter(reshape, "data shape"),
    ("", "Flatten"): Converter(reshape, "input"),
    ("", "Squeeze"): Converter(reshape, "data axes"),
    ("", "Unsqueeze"): Converter(reshape, "data axes"),
    ("", "Transpose"): Converter(transpose, "data"),
    ("", "Identity"): Converter(identity, "input"),
    ("", "Pad"): Converter(pad, "data pads constant_value axes"),
    ("", "Tile"): Converter(tile, "input repeats"),
    ("", "Expand"): Converter(expand, "input shape"),
    ("", "Shape"): Converter(shape_of, "data"),
    ("", "Size"): Converter(shape_of, "data"),
    ("", "Trilu"): Converter(trilu, "input k"),
    ("com.microsoft", "Trilu"): Converter(trilu, "X k"),
    ("", "CenterCropPad"): Converter(crop_pad, "input_data shape"),
    ("", "Dropout"): Converter(dropout, "data ratio training_mode"),
    ("", "ReverseSequence"): Converter(reverse, "input sequence_lens"),
    ("com.microsoft", "ExpandDims"): Converter(expand_dims, "X axis"),
    ("com.microsoft", "Pad"): Converter(pad, "data pads value"),
}
