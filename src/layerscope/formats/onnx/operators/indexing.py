"""Choosing and placing by index, searching, counting up."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import range_length
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.numbers import DTYPES, FLOATS, NARROW
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops import SPECS, Call
from layerscope.ops.spec import axis_of


def gather(s: Site) -> None:
    """Gather: rows of a stored table are an embedding."""
    data = s.shape(0)
    axis = axis_of(s.whole("axis"), len(data))
    table = s.given(0)
    entry = table.entry
    if entry is not None and axis == 0 and len(data) == 2:
        floats = entry.dtype in FLOATS or (entry.narrow and table.dtype in FLOATS)
        if floats and not s.given(1).constant:
            told = at.Embedding(data[0], data[1])
            s.emit("embedding", (s.given(1),), told, params=(s.param(0, "weight", "embedding"),))
            return
        if entry.dtype in NARROW and not floats:  # widened behind
            entry.narrow = True
            s.emit("gather", (table, s.given(1)), at.Gather(axis), roles="embedding")
            return
    s.emit("gather", (table, s.given(1)), at.Gather(axis))


def gather_elements(s: Site) -> None:
    """GatherElements."""
    told = at.Gather(axis_of(s.whole("axis"), len(s.shape(0))), elements=True)
    s.emit("gather", (s.given(0), s.given(1)), told)


def gather_nd(s: Site) -> None:
    """GatherND."""
    s.emit("gather_nd", (s.given(0), s.given(1)), at.GatherND(s.whole("batch_dims")))


def scatter(s: Site) -> None:
    """ScatterElements, and Scatter before it."""
    added = s.text("reduction", "none") != "none"
    told = at.Scatter(axis_of(s.whole("axis"), len(s.shape(0))), add=added)
    s.emit("scatter", (s.given(0), s.given(1), s.given(2)), told)


def scatter_nd(s: Site) -> None:
    """ScatterND."""
    told = at.Scatter(add=s.text("reduction", "none") != "none")
    s.emit("scatter_nd", (s.given(0), s.given(1), s.given(2)), told)


def top_k(s: Site) -> None:
    """TopK; a k that is worked out in the run leaves the shape open."""
    axis = s.whole("axis", -1)
    k = int(s.need(1).item) if s.has(1) else s.whole("k", 1)
    x = s.shape(0)
    size = x[axis_of(axis, len(x))]
    if k > size:
        raise ShapeError(f"the {k} largest of {size}")
    s.emit("top_k", (s.given(0),), at.TopK(k, axis))


def one_hot(s: Site) -> None:
    """OneHot."""
    depth = int(s.need(1).values[0])
    s.value(2)
    told = at.OneHot(depth, s.whole("axis", -1))
    made = s.emit("one_hot", (s.given(0),), told)[0]
    made.dtype = s.dtype(2)


def range_(s: Site) -> None:
    """A Range too long to carry along, or of numbers that only the run knows."""
    start, limit, delta = (s.need(n).item for n in range(3))
    count = range_length(start, limit, delta)
    s.told_node("range", (), ((count,),), (s.dtype(0),))


def filled(s: Site) -> None:
    """A ConstantOfShape whose sizes only the run knows."""
    raise NeedsValue(s.unknown_value(0))


def eye_like(s: Site) -> None:
    """EyeLike."""
    dtype = DTYPES.get(s.whole("dtype"), s.dtype(0))
    s.told_node("constant", (), (s.shape(0),), (dtype,))


def non_zero(s: Site) -> None:
    """NonZero: how many there are only the run knows, or the file declares."""
    shape = s.declared_output(0)
    if shape is None:
        raise NeedsValue("the number of elements that are not zero is data")
    s.told_node("non_zero", (s.given(0),), (shape,), ("int64",), **s.from_file(0))


def unique(s: Site) -> None:
    """Unique: how many there are only the run knows, or the file declares."""
    names = s.operator.outputs
    shapes = [s.declared_output(n) for n in range(len(names)) if names[n]]
    if len(shapes) != len(names) or any(shape is None for shape in shapes):
        raise NeedsValue("the number of elements that are unlike is data")
    known = [shape for shape in shapes if shape is not None]
    dtypes = (s.dtype(0), "int64", "int64", "int64")[: len(known)]
    s.told_node("unique", (s.given(0),), known, dtypes, **s.from_file(0))


def suppression(s: Site) -> None:
    """NonMaxSuppression: at most so many boxes a class, if that number is known."""
    most = s.value(2)
    for n in (3, 4):
        s.value(n)
    boxes = s.shape(0)[1]
    if s.has(2) and (most is None or not most.values):
        note = f"a bound: all boxes kept, as {s.unknown_value(2)}"
        _suppressed(s, max(boxes, 1), note)
        return
    # without a limit, ONNX takes none to be meant; engines then return no boxes
    count = min(int(most.values[0]), boxes) if most is not None else 0
    if count < 1 or not boxes:
        s.told_node("constant", (), ((0, 3),), ("int64",))
        return
    _suppressed(s, count)


def _suppressed(s: Site, count: int, note: str = "") -> None:
    """At most `count` boxes kept; where the file declares how many are, as many."""
    told, rule = at.NonMaxSuppression(count), SPECS["nms"]
    call = Call(told, (s.shape(0), s.shape(1)))
    call = Call(told, call.inputs, rule.shape(call))
    shape = s.declared_output(0)
    if shape is None or len(shape) != 2 or shape[0] > call.y[0]:
        s.emit("nms", (s.given(0), s.given(1)), told, estimate=bool(note), note=note)
        return
    ops = rule.ops(call)
    counted = at.CustomCost(
        (shape,), ("int64",), add=ops.add, mul=ops.mul, comp=ops.comp, div=ops.div,
        estimate=note or rule.estimate,
    )  # fmt: skip
    s.counted((s.given(0), s.given(1)), counted, **s.from_file(0))


def roi_align(s: Site) -> None:
    """RoiAlign."""
    size = (s.whole("output_height", 1), s.whole("output_width", 1))
    samples = s.whole("sampling_ratio")
    told = at.RoIAlign(size, samples or 2, s.real("spatial_scale", 1.0))
    note = "" if samples else "2 x 2 samples a bin taken: how many fit, only the run knows"
    s.emit("roi_align", (s.given(0), s.given(1)), told, estimate=not samples, note=note)


def reverse(s: Site) -> None:
    """ReverseSequence."""
    s.emit("flip", (s.given(0),), at.Flip((s.whole("time_axis"),)))


def random_like(s: Site) -> None:
    """Random numbers in the shape of a tensor."""
    dtype = DTYPES.get(s.whole("dtype"), s.dtype(0))
    s.told_node("random", (), (s.shape(0),), (dtype,))


def random(s: Site) -> None:
    """Random numbers in a shape that is told."""
    s.told_node("random", (), (s.wholes("shape"),), (DTYPES.get(s.whole("dtype", 1), "fp32"),))


def multinomial(s: Site) -> None:
    """Classes drawn by their chances."""
    dtype = DTYPES.get(s.whole("dtype", 6), "int32")
    shape = (s.shape(0)[0], s.whole("sample_size", 1))
    s.told_node("random", (), (shape,), (dtype,))


def tensor_scatter(s: Site) -> None:
    """TensorScatter: new entries of a cache in their place."""
    s.told_node("select", (s.given(0), s.given(1)), (s.shape(0),), (s.dtype(0),))


def compress(s: Site) -> None:
    """Compress by a condition that is known, or to a shape that the file declares."""
    x = s.shape(0)
    shape: Shape | None
    given = s.value(1)
    if given is None:
        shape = s.declared_output(0)
        if shape is None:
            raise NeedsValue(f"{s.unknown_value(1)}; how many of them hold is data")
        told = at.DeclaredOutputs((shape,), (s.dtype(0),))
        s.emit("compress", (s.given(0), s.given(1)), told, **s.from_file(0))
        return
    chosen = [n for n, value in enumerate(given.values) if value]
    if "axis" not in s.told:
        shape = (len([n for n in chosen if n < elements(x)]),)
    else:
        axis = axis_of(s.whole("axis"), len(x))
        shape = (*x[:axis], len([n for n in chosen if n < x[axis]]), *x[axis + 1 :])
    s.told_node("compress", (s.given(0), s.given(1)), (shape,), (s.dtype(0),), roles="constant")


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Gather"): gather,
    ("", "GatherElements"): gather_elements,
    ("", "GatherND"): gather_nd,
    ("com.microsoft", "GatherND"): gather_nd,
    ("", "Scatter"): scatter,
    ("", "ScatterElements"): scatter,
    ("", "ScatterND"): scatter_nd,
    ("", "TopK"): top_k,
    ("", "OneHot"): one_hot,
    ("", "Range"): range_,
    ("com.microsoft", "Range"): range_,
    ("", "ConstantOfShape"): filled,
    ("", "EyeLike"): eye_like,
    ("", "NonZero"): non_zero,
    ("", "NonMaxSuppression"): suppression,
    ("", "RoiAlign"): roi_align,
    ("", "ReverseSequence"): reverse,
    ("", "RandomNormalLike"): random_like,
    ("", "RandomUniformLike"): random_like,
    ("", "Bernoulli"): random_like,
    ("", "RandomNormal"): random,
    ("", "RandomUniform"): random,
    ("", "Multinomial"): multinomial,
    ("", "TensorScatter"): tensor_scatter,
    ("", "Compress"): compress,
    ("", "Unique"): unique,
    ("com.microsoft", "Unique"): unique,
    ("com.microsoft", "TorchEmbedding"): gather,
}
