"""How onnxruntime runs reductions, indices, sampling and changes of number type."""

from __future__ import annotations

from layerscope.graph.attributes import (
    Expand,
    Gather,
    GridSample,
    InstanceNorm,
    PriorBox,
    Quantize,
    Reduce,
    RoIAlign,
    Scatter,
    Table,
    TopK,
)
from tests.brute.engine import Model, Writer
from tests.brute.indexing import SHIFT
from tests.brute.sampling import OVERLAP, STEP, VARIANCES, half_sizes


def reduction(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Reduce = m.attributes or Reduce()
        over = range(a.axes[0], len(m.shape)) if a.tail else a.axes
        axes = (m.ints(*over),) if over else ()
        return m.node(op, m.x, *axes, keepdims=int(a.keep))

    return write


def place(op: str) -> Writer:
    """ONNX goes along one axis; over all of them the input is made flat."""

    def write(m: Model) -> str:
        a: Reduce = m.attributes or Reduce()
        if a.axes:
            return m.node(op, m.x, axis=a.axes[0], keepdims=int(a.keep))
        flat = m.node(op, m.node("Reshape", m.x, m.ints(-1)), axis=0, keepdims=0)
        return m.node("Reshape", flat, m.ints(*(1 for _ in m.shape))) if a.keep else flat

    return write


def gather(m: Model) -> str:
    a: Gather = m.attributes or Gather()
    return m.node("GatherElements" if a.elements else "Gather", m.x, m.of(1), axis=a.axis)


def scatter(m: Model) -> str:
    a: Scatter = m.attributes or Scatter()
    told = {"axis": a.axis, "reduction": "add" if a.add else "none"}
    return m.node("ScatterElements", m.x, m.of(1), m.of(2), **told)


def expand(m: Model) -> str:
    """ONNX keeps an axis that is asked to be 1."""
    a: Expand = m.attributes
    return m.node("Expand", m.x, m.ints(*(1 if size in (0, -1) else size for size in a.shape)))


def where(m: Model) -> str:
    return m.node("Where", m.cast(m.x, "bool"), m.of(1), m.of(2))


def top_k(m: Model) -> tuple[str, ...]:
    a: TopK = m.attributes
    return m.several("TopK", m.x, m.ints(a.k), outputs=2, axis=a.axis)


def table(m: Model) -> str:
    a: Table = m.attributes
    if not a.batched:
        return m.node("Identity", "weight")
    return m.node("Expand", "weight", m.ints(m.shape[0], *a.shape[1:]))


def positions(m: Model) -> str:
    length = m.node("Squeeze", m.node("Shape", m.x, start=1, end=2))
    one = m.node("Squeeze", m.ints(1))
    nought = m.node("Squeeze", m.ints(0))
    return m.node("Unsqueeze", m.node("Range", nought, length, one), m.ints(0))


def roll(m: Model) -> str:
    """What falls off the end of an axis is put in front of it."""
    y = m.x
    for axis, size in list(enumerate(m.shape))[1:]:
        cut = size - SHIFT % size
        end = m.node("Slice", y, m.ints(cut), m.ints(size), m.ints(axis))
        rest = m.node("Slice", y, m.ints(0), m.ints(cut), m.ints(axis))
        y = m.node("Concat", end, rest, axis=axis)
    return y


def instance_norm(m: Model) -> str:
    a: InstanceNorm = m.attributes or InstanceNorm()
    if not a.variance:
        places = m.ints(*range(2, len(m.shape)))
        return m.node("Sub", m.x, m.node("ReduceMean", m.x, places, keepdims=1))
    names = list(m.params) or [m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])]
    return m.node("InstanceNormalization", m.x, *names, epsilon=a.eps)


def grid_sample(m: Model) -> str:
    a: GridSample = m.attributes or GridSample()
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[a.mode]
    return m.node("GridSample", m.x, m.of(1), mode=mode, padding_mode="zeros")


def roi_align(m: Model) -> str:
    """ONNX takes the images apart from the corners."""
    a: RoIAlign = m.attributes
    regions, columns = m.of(1), m.inputs[1].shape[1]
    corners = m.node("Slice", regions, m.ints(columns - 4), m.ints(columns), m.ints(1))
    if columns == 5:
        first = m.node("Slice", regions, m.ints(0), m.ints(1), m.ints(1))
        images = m.cast(m.node("Squeeze", first, m.ints(1)), "int64")
    else:
        images = m.of(2) if len(m.inputs) == 3 else m.ints(*[0] * m.inputs[1].shape[0])
    height, width = a.output
    told: dict[str, object] = {"output_height": height, "output_width": width, "mode": "avg"}
    told.update(sampling_ratio=a.samples, spatial_scale=a.scale)
    return m.node("RoiAlign", m.x, corners, images, **told)


def nms(m: Model) -> str:
    most, overlap = m.ints(m.attributes.most), m.numbers([OVERLAP])
    return m.node("NonMaxSuppression", m.x, m.of(1), most, overlap)


def prior_box(m: Model) -> str:
    """Of single operators: centres as a column of places, plus and minus half of every box."""
    a: PriorBox = m.attributes
    (height, width), image = m.shape[2:], m.inputs[1].shape[2:]
    centres = []
    for size, shape in ((width, (1, width, 1, 1)), (height, (height, 1, 1, 1))):
        line = m.node("Add", m.numbers([float(n) for n in range(size)]), m.number(0.5))
        line = m.node("Reshape", m.node("Mul", line, m.number(STEP)), m.ints(*shape))
        centres.append(m.node("Expand", line, m.ints(height, width, 1, 1)))
    middle = m.node("Concat", *centres * 2, axis=3)  # x y x y
    halves = [n for w, h in half_sizes(a.boxes) for n in (-w, -h, w, h)]
    edges = m.node("Add", middle, m.tensor(halves, (a.boxes, 4)))
    parts = m.node("Div", edges, m.numbers([float(image[1]), float(image[0])] * 2))
    count = height * width * a.boxes
    flat = m.node("Reshape", parts, m.ints(1, 1, 4 * count))
    return m.node("Concat", flat, m.tensor(VARIANCES * count, (1, 1, 4 * count)), axis=1)


def quantized(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Quantize = m.attributes or Quantize()
        x = m.cast(m.x, a.dtype) if op == "DequantizeLinear" else m.x
        nought = m.cast("zero_point", a.dtype)
        axis = {"axis": 1} if a.per_channel and len(m.shape) > 1 else {}
        return m.node(op, x, "scale", nought, **axis)

    return write


WRITERS: dict[str, Writer] = {
    "reduce_sum": reduction("ReduceSum"),
    "reduce_mean": reduction("ReduceMean"),
    "reduce_max": reduction("ReduceMax"),
    "reduce_min": reduction("ReduceMin"),
    "reduce_prod": reduction("ReduceProd"),
    "reduce_l1": reduction("ReduceL1"),
    "reduce_sum_square": reduction("ReduceSumSquare"),
    "reduce_l2": reduction("ReduceL2"),
    "arg_max": place("ArgMax"),
    "arg_min": place("ArgMin"),
    "gather": gather,
    "scatter": scatter,
    "expand": expand,
    "where": where,
    "top_k": top_k,
    "embedding": lambda m: m.node("Gather", "weight", m.x, axis=0),
    "table": table,
    "positions": positions,
    "roll": roll,
    "instance_norm": instance_norm,
    "grid_sample": grid_sample,
    "roi_align": roi_align,
    "nms": nms,
    "prior_box": prior_box,
    "quantize": quantized("QuantizeLinear"),
    "dequantize": quantized("DequantizeLinear"),
    "cast": lambda m: m.cast(m.x, m.attributes.dtype),
}
