"""Choosing and placing by index, searching, counting up."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import range_length
from layerscope.formats.onnx.dtypes import DTYPES, FLOATS, QUANTIZED
from layerscope.formats.onnx.node import OnnxNode, Op, OpTable
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops import SPECS, Call
from layerscope.ops.spec import axis_of


def gather(node: OnnxNode) -> None:
    """Gather, TorchEmbedding: an embedding if it selects rows of a stored table by an input."""
    data = node.shape()
    axis = axis_of(node.int_attr("axis"), len(data))
    table = node.input()
    entry = table.initializer
    if entry is not None and axis == 0 and len(data) == 2:
        floats = entry.dtype in FLOATS or (entry.quantized and table.dtype in FLOATS)
        if floats and not node.input("indices").constant:
            attrs = at.Embedding(data[0], data[1])
            node.emit(
                "embedding",
                (node.input("indices"),),
                attrs,
                params=(node.param(0, "weight", "embedding"),),
            )
            return
        if entry.dtype in QUANTIZED and not floats:  # dequantized by a later node
            entry.quantized = True
            node.emit("gather", (table, node.input("indices")), at.Gather(axis), roles="embedding")
            return
    node.emit("gather", (table, node.input("indices")), at.Gather(axis))


def gather_elements(node: OnnxNode) -> None:
    """GatherElements."""
    attrs = at.Gather(axis_of(node.int_attr("axis"), len(node.shape("data"))), elements=True)
    node.emit("gather", (node.input("data"), node.input("indices")), attrs)


def gather_nd(node: OnnxNode) -> None:
    """GatherND."""
    node.emit(
        "gather_nd",
        (node.input("data"), node.input("indices")),
        at.GatherND(node.int_attr("batch_dims")),
    )


def scatter(node: OnnxNode) -> None:
    """ScatterElements, and Scatter before it."""
    added = node.str_attr("reduction", "none") != "none"
    attrs = at.Scatter(axis_of(node.int_attr("axis"), len(node.shape("data"))), add=added)
    node.emit("scatter", (node.input("data"), node.input("indices"), node.input("updates")), attrs)


def scatter_nd(node: OnnxNode) -> None:
    """ScatterND."""
    attrs = at.Scatter(add=node.str_attr("reduction", "none") != "none")
    node.emit(
        "scatter_nd", (node.input("data"), node.input("indices"), node.input("updates")), attrs
    )


def top_k(node: OnnxNode) -> None:
    """TopK; `K` is an attribute before opset 10."""
    axis = node.int_attr("axis", -1)
    k = int(node.need_value("K").item) if node.has("K") else node.int_attr("k", 1)
    x = node.shape("X")
    size = x[axis_of(axis, len(x))]
    if k > size:
        raise ShapeError(f"the {k} largest of {size}")
    node.emit("top_k", (node.input("X"),), at.TopK(k, axis))


def one_hot(node: OnnxNode) -> None:
    """OneHot."""
    depth = int(node.need_value("depth").values[0])
    node.mark_constant("values")
    attrs = at.OneHot(depth, node.int_attr("axis", -1))
    y = node.emit("one_hot", (node.input("indices"),), attrs)[0]
    y.dtype = node.dtype("values")


def range_(node: OnnxNode) -> None:
    """Range, where it is too long to be folded or depends on run-time data."""
    start, limit, delta = (node.need_value(name).item for name in ("start", "limit", "delta"))
    count = range_length(start, limit, delta)
    node.emit_shaped("range", (), ((count,),), (node.dtype("start"),))


def filled(node: OnnxNode) -> None:
    """ConstantOfShape, where its sizes depend on run-time data."""
    raise NeedsValue(node.unknown_value("input"))


def eye_like(node: OnnxNode) -> None:
    """EyeLike."""
    dtype = DTYPES.get(node.int_attr("dtype"), node.dtype())
    node.emit_shaped("constant", (), (node.shape(),), (dtype,))


def non_zero(node: OnnxNode) -> None:
    """NonZero: the number of elements is run-time data, unless the file declares it."""
    shape = node.declared_output(0)
    if shape is None:
        raise NeedsValue("the number of elements that are not zero is data")
    node.emit_shaped("non_zero", (node.input(),), (shape,), ("int64",), **node.declared_options(0))


def unique(node: OnnxNode) -> None:
    """Unique: the number of elements is run-time data, unless the file declares it."""
    names = node.outputs
    shapes = [node.declared_output(n) for n in range(len(names)) if names[n]]
    if len(shapes) != len(names) or any(shape is None for shape in shapes):
        raise NeedsValue("the number of elements that are unlike is data")
    declared = [shape for shape in shapes if shape is not None]
    dtypes = (node.dtype(), "int64", "int64", "int64")[: len(declared)]
    node.emit_shaped("unique", (node.input(),), declared, dtypes, **node.declared_options(0))


def suppression(node: OnnxNode) -> None:
    """NonMaxSuppression: at most `max_output_boxes_per_class`, if that is constant, else all."""
    most = node.value("max_output_boxes_per_class")
    node.mark_constant("iou_threshold", "score_threshold")
    boxes = node.shape("boxes")[1]
    if node.has("max_output_boxes_per_class") and (most is None or not most.values):
        note = f"a bound: all boxes kept, as {node.unknown_value('max_output_boxes_per_class')}"
        _suppressed(node, max(boxes, 1), note)
        return
    # the default of max_output_boxes_per_class is 0: no boxes
    count = min(int(most.values[0]), boxes) if most is not None else 0
    if count < 1 or not boxes:
        node.emit_shaped("constant", (), ((0, 3),), ("int64",))
        return
    _suppressed(node, count)


def _suppressed(node: OnnxNode, count: int, note: str = "") -> None:
    """At most `count` boxes kept, or as many as the file declares."""
    attrs, rule = at.NonMaxSuppression(count), SPECS["nms"]
    inputs = (node.input("boxes"), node.input("scores"))
    call = Call(attrs, (node.shape("boxes"), node.shape("scores")))
    call = Call(attrs, call.inputs, rule.shape(call))
    shape = node.declared_output(0)
    if shape is None or len(shape) != 2 or shape[0] > call.y[0]:
        node.emit("nms", inputs, attrs, estimate=bool(note), note=note)
        return
    ops = rule.ops(call)
    counted = at.CustomCost(
        (shape,), ("int64",), add=ops.add, mul=ops.mul, comp=ops.comp, div=ops.div,
        estimate=note or rule.estimate,
    )  # fmt: skip
    node.emit_custom(inputs, counted, **node.declared_options(0))


def roi_align(node: OnnxNode) -> None:
    """RoiAlign."""
    size = (node.int_attr("output_height", 1), node.int_attr("output_width", 1))
    samples = node.int_attr("sampling_ratio")
    attrs = at.RoIAlign(size, samples or 2, node.float_attr("spatial_scale", 1.0))
    note = "" if samples else "2 x 2 samples a bin taken: how many fit, only the run knows"
    node.emit(
        "roi_align", (node.input("X"), node.input("rois")), attrs, estimate=not samples, note=note
    )


def reverse(node: OnnxNode) -> None:
    """ReverseSequence."""
    node.emit("flip", (node.input("input"),), at.Flip((node.int_attr("time_axis"),)))


def random_like(node: OnnxNode) -> None:
    """Random numbers in the shape of a tensor."""
    dtype = DTYPES.get(node.int_attr("dtype"), node.dtype())
    node.emit_shaped("random", (), (node.shape(),), (dtype,))


def random(node: OnnxNode) -> None:
    """Random numbers in the shape of an attribute."""
    node.emit_shaped(
        "random", (), (node.ints_attr("shape"),), (DTYPES.get(node.int_attr("dtype", 1), "fp32"),)
    )


def multinomial(node: OnnxNode) -> None:
    """Multinomial: classes sampled by their probabilities."""
    dtype = DTYPES.get(node.int_attr("dtype", 6), "int32")
    shape = (node.shape()[0], node.int_attr("sample_size", 1))
    node.emit_shaped("random", (), (shape,), (dtype,))


def tensor_scatter(node: OnnxNode) -> None:
    """TensorScatter: a cache updated at some positions."""
    node.emit_shaped(
        "select",
        (node.input("past_cache"), node.input("update")),
        (node.shape("past_cache"),),
        (node.dtype("past_cache"),),
    )


def compress(node: OnnxNode) -> None:
    """Compress by a constant condition, or to a shape that the file declares."""
    x = node.shape("input")
    shape: Shape | None
    given = node.value("condition")
    if given is None:
        shape = node.declared_output(0)
        if shape is None:
            raise NeedsValue(f"{node.unknown_value('condition')}; how many of them hold is data")
        attrs = at.DeclaredOutputs((shape,), (node.dtype("input"),))
        node.emit(
            "compress",
            (node.input("input"), node.input("condition")),
            attrs,
            **node.declared_options(0),
        )
        return
    chosen = [n for n, value in enumerate(given.values) if value]
    if "axis" not in node.attrs:
        shape = (len([n for n in chosen if n < elements(x)]),)
    else:
        axis = axis_of(node.int_attr("axis"), len(x))
        shape = (*x[:axis], len([n for n in chosen if n < x[axis]]), *x[axis + 1 :])
    node.emit_shaped(
        "compress",
        (node.input("input"), node.input("condition")),
        (shape,),
        (node.dtype("input"),),
        roles="constant",
    )


OPERATORS: OpTable = {
    ("", "Gather"): Op(gather, "data indices"),
    ("", "GatherElements"): Op(gather_elements, "data indices"),
    ("", "GatherND"): Op(gather_nd, "data indices"),
    ("com.microsoft", "GatherND"): Op(gather_nd, "data indices"),
    ("", "Scatter"): Op(scatter, "data indices updates"),
    ("", "ScatterElements"): Op(scatter, "data indices updates"),
    ("", "ScatterND"): Op(scatter_nd, "data indices updates"),
    ("", "TopK"): Op(top_k, "X K"),
    ("", "OneHot"): Op(one_hot, "indices depth values"),
    ("", "Range"): Op(range_, "start limit delta"),
    ("com.microsoft", "Range"): Op(range_, "start limit delta"),
    ("", "ConstantOfShape"): Op(filled, "input"),
    ("", "EyeLike"): Op(eye_like, "input"),
    ("", "NonZero"): Op(non_zero, "X"),
    ("", "NonMaxSuppression"): Op(
        suppression, "boxes scores max_output_boxes_per_class iou_threshold score_threshold"
    ),
    ("", "RoiAlign"): Op(roi_align, "X rois batch_indices"),
    ("", "ReverseSequence"): Op(reverse, "input sequence_lens"),
    ("", "RandomNormalLike"): Op(random_like, "input"),
    ("", "RandomUniformLike"): Op(random_like, "input"),
    ("", "Bernoulli"): Op(random_like, "input"),
    ("", "RandomNormal"): Op(random),
    ("", "RandomUniform"): Op(random),
    ("", "Multinomial"): Op(multinomial, "input"),
    ("", "TensorScatter"): Op(tensor_scatter, "past_cache update write_indices"),
    ("", "Compress"): Op(compress, "input condition"),
    ("", "Unique"): Op(unique, "X"),
    ("com.microsoft", "Unique"): Op(unique, "x"),
    ("com.microsoft", "TorchEmbedding"): Op(
        gather, "weight indices padding_idx scale_grad_by_freq"
    ),
}
