"""How onnxruntime runs what files of other frameworks ask for."""

from __future__ import annotations

import math

from layerscope.graph.attributes import (
    DFT,
    STFT,
    AffineGrid,
    CumSum,
    DeclaredOutputs,
    DeformConv,
    Flip,
    GatherND,
    OneHot,
    ReverseSequence,
    Scatter,
    Slice,
    Softmax,
    Unique,
)
from tests.brute import onnx_layers
from tests.brute.engine import Model, Writer, plain
from tests.brute.onnx_elements import elementwise, with_alpha
from tests.brute.onnx_indices import reduction
from tests.brute.pointwise import CONSTANT, MARK

WHOLE = {
    "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign",
    "reciprocal": "Reciprocal", "is_nan": "IsNaN", "is_inf": "IsInf", "bitwise_not": "BitwiseNot",
    "mish": "Mish", "softsign": "Softsign",
}  # fmt: skip


def quick_gelu(m: Model) -> str:
    return m.node("Mul", m.x, m.node("Sigmoid", m.node("Mul", m.x, m.number(1.702))))


def log_sigmoid(m: Model) -> str:
    return m.node("Neg", m.node("Softplus", m.node("Neg", m.x)))


def insert(m: Model) -> str:
    a: Slice = m.attributes
    axis, size = a.axes[0] % len(m.shape), m.shape[a.axes[0]]
    taken = range(size)[slice(a.starts[0], a.ends[0], (a.steps or (1,))[0])]
    line = [len(taken) if n == axis else 1 for n in range(len(m.shape))]
    row = m.node("Reshape", m.ints(*taken), m.ints(*line))
    places = m.node("Expand", row, m.ints(*m.inputs[1].shape))
    return m.node("ScatterElements", m.x, places, m.of(1), axis=axis)


def shrink(m: Model) -> str:
    return m.node("Shrink", m.x, lambd=m.attributes.alpha, bias=m.attributes.beta)


def logical(m: Model) -> str:
    names = [m.cast(m.of(n), "bool") for n in range(len(m.inputs))]
    return m.node("And", *names, *[m.cast(m.number(CONSTANT), "bool")] * (2 - len(names)))


def bitwise(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("BitwiseAnd", *names, *[m.ints(MARK)] * (2 - len(names)))


def mod(m: Model) -> str:
    return m.node("Mod", m.x, m.of(1) if len(m.inputs) == 2 else m.number(CONSTANT), fmod=1)


def softmax(op: str) -> Writer:
    """Over several axes together they are made one."""

    def write(m: Model) -> str:
        a: Softmax = m.attributes or Softmax()
        if not a.tail:
            return m.node(op, m.x, axis=a.axis)
        rows = math.prod(m.shape[: a.axis])
        y = m.node(op, m.node("Reshape", m.x, m.ints(rows, -1)), axis=1)
        return m.node("Reshape", y, m.ints(*m.shape))

    return write


def max_pool_places(m: Model) -> tuple[str, ...]:
    """ONNX counts places through the whole input."""
    w = m.attributes.window
    begins, ends = zip(*w.pads, strict=True)
    told = {"kernel_shape": w.kernel, "strides": w.stride, "pads": (*begins, *ends)}
    y, places = m.several("MaxPool", m.x, outputs=2, **told)
    return y, m.node("Mod", places, m.ints(math.prod(m.shape[2:])))


def adaptive_places(m: Model) -> tuple[str, ...]:
    kernel = [size // b for size, b in zip(m.shape[2:], m.attributes.output, strict=True)]
    y, places = m.several("MaxPool", m.x, outputs=2, kernel_shape=kernel, strides=kernel)
    return y, m.node("Mod", places, m.ints(math.prod(m.shape[2:])))


def variance(m: Model) -> str:
    axes = (m.ints(*m.attributes.axes),) if m.attributes and m.attributes.axes else ()
    rest = m.node("Sub", m.x, m.node("ReduceMean", m.x, *axes, keepdims=1))
    keep = int(bool(m.attributes and m.attributes.keep))
    return m.node("ReduceMean", m.node("Mul", rest, rest), *axes, keepdims=keep)


def cum_prod(m: Model) -> str:
    """Each element against all along its axis, those after it as ones, multiplied."""
    a: CumSum = m.attributes
    axis = a.axis % len(m.shape)
    size, behind = m.shape[axis], len(m.shape) - axis - 1
    upto = [float(j <= i) for i in range(size) for j in range(size)]
    mask = m.cast(m.tensor(upto, (size, size, *[1] * behind)), "bool")
    rows = m.node("Unsqueeze", m.x, m.ints(axis))
    chosen = m.node("Where", mask, rows, m.number(1.0))
    return m.node("ReduceProd", chosen, m.ints(axis + 1), keepdims=0)


def flip(m: Model) -> str:
    a: Flip = m.attributes
    count = len(a.axes)
    return m.node("Slice", m.x, m.ints(*[-1] * count), m.ints(*[-(2**31)] * count),
                  m.ints(*a.axes), m.ints(*[-1] * count))  # fmt: skip


def gather_nd(m: Model) -> str:
    a: GatherND = m.attributes or GatherND()
    return m.node("GatherND", m.x, m.of(1), batch_dims=a.batch)


def scatter_nd(m: Model) -> str:
    a: Scatter = m.attributes or Scatter()
    return m.node("ScatterND", m.x, m.of(1), m.of(2), reduction="add" if a.add else "none")


def one_hot(m: Model) -> str:
    a: OneHot = m.attributes
    return m.node("OneHot", m.x, m.ints(a.depth), m.numbers([0.0, 1.0]), axis=a.axis)


def constant(m: Model) -> tuple[str, ...]:
    a: DeclaredOutputs = m.attributes
    made = []
    for shape, dtype in zip(a.shapes, a.dtypes, strict=True):
        value = m.cast(m.number(1.0 if dtype == "fp32" else 0.0), dtype)
        made.append(m.node("Expand", value, m.ints(*shape)))
    return tuple(made)


def count(m: Model) -> str:
    ends = [m.node("Squeeze", m.ints(end)) for end in (0, m.attributes.shapes[0][0], 1)]
    return m.node("Range", *ends)


def deform_conv(m: Model) -> str:
    a: DeformConv = m.attributes
    begins, ends = zip(*a.window.pads, strict=True)
    told = {"kernel_shape": a.window.kernel, "strides": a.window.stride, "group": a.groups}
    told.update(pads=(*begins, *ends), dilations=a.window.dilation, offset_group=a.offset_groups)
    names = [m.x, "weight", m.of(1), "bias" if a.bias else ""]
    return m.node("DeformConv", *names, *[m.of(2)] * (len(m.inputs) == 3), **told)


def affine_grid(m: Model) -> str:
    a: AffineGrid = m.attributes
    return m.node("AffineGrid", m.x, m.ints(*a.size), align_corners=int(a.align_corners))


def dft(m: Model) -> str:
    a: DFT = m.attributes
    length = m.node("Squeeze", m.ints(a.length)) if a.length else ""
    axis = m.node("Squeeze", m.ints(a.axis))
    return m.node("DFT", m.x, length, axis, inverse=int(a.inverse), onesided=int(a.onesided))


def stft(m: Model) -> str:
    a: STFT = m.attributes
    step, frame = (m.node("Squeeze", m.ints(size)) for size in (a.step, a.frame))
    window = m.of(1) if len(m.inputs) == 2 else ""
    return m.node("STFT", m.x, step, window, frame, onesided=int(a.onesided))


def compress(m: Model) -> str:
    told = {"axis": m.attributes.axis} if m.attributes and m.attributes.axis is not None else {}
    return m.node("Compress", m.x, m.cast(m.of(1), "bool"), **told)


def unique(m: Model) -> tuple[str, ...]:
    a = m.attributes or Unique()
    told = {} if a.axis is None else {"axis": a.axis}
    return m.several("Unique", m.x, outputs=a.outputs, **told)


def reverse_sequence(m: Model) -> str:
    a: ReverseSequence = m.attributes
    return m.node("ReverseSequence", m.x, m.of(1), batch_axis=a.batch_axis, time_axis=a.time_axis)


def with_places(op: str, places: Writer) -> Writer:
    return lambda m: places(m) if m.attributes.indices else onnx_layers.WRITERS[op](m)


WRITERS: dict[str, Writer] = {
    "max_pool": with_places("max_pool", max_pool_places),
    "adaptive_max_pool": with_places("adaptive_max_pool", adaptive_places),
    **{ours: plain(op) for ours, op in WHOLE.items()},
    "not": lambda m: m.node("Not", m.cast(m.x, "bool")),
    "quick_gelu": quick_gelu,
    "rsqrt": lambda m: m.node("Reciprocal", m.node("Sqrt", m.x)),
    "square": lambda m: m.node("Mul", m.x, m.x),
    "log_sigmoid": log_sigmoid,
    "expm1": lambda m: m.node("Sub", m.node("Exp", m.x), m.number(1.0)),
    "log1p": lambda m: m.node("Log", m.node("Add", m.x, m.number(1.0))),
    "celu": with_alpha("Celu"),
    "thresholded_relu": with_alpha("ThresholdedRelu"),
    "shrink": shrink,
    "logical": logical,
    "bitwise": bitwise,
    "mod": mod,
    "floor_div": lambda m: m.node("Floor", elementwise("Div")(m)),  # type: ignore[arg-type]
    "atan2": lambda m: m.node("Atan", elementwise("Div")(m)),  # type: ignore[arg-type]
    "mean": lambda m: m.node("Mean", *(m.of(n) for n in range(len(m.inputs)))),
    "hardmax": softmax("Hardmax"),
    "softmax": softmax("Softmax"),
    "log_softmax": softmax("LogSoftmax"),
    "reduce_log_sum": reduction("ReduceLogSum"),
    "reduce_log_sum_exp": reduction("ReduceLogSumExp"),
    "reduce_var": variance,
    "reduce_std": lambda m: m.node("Sqrt", variance(m)),
    "reduce_any": reduction("ReduceMax"),
    "reduce_all": reduction("ReduceMin"),
    "cum_sum": lambda m: m.node("CumSum", m.x, m.ints(m.attributes.axis)),
    "cum_prod": cum_prod,
    "repeat": lambda m: m.node("Tile", m.x, m.ints(*m.attributes.times)),
    "insert": insert,
    "flip": flip,
    "trilu": plain("Trilu"),
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "constant": constant,
    "select": lambda m: tuple(m.node("Identity", m.of(n)) for n in range(len(m.attributes.shapes))),
    "range": count,
    "shape_of": plain("Shape"),
    "deform_conv": deform_conv,
    "affine_grid": affine_grid,
    "dft": dft,
    "stft": stft,
    "det": plain("Det"),
    "non_zero": plain("NonZero"),
    "compress": compress,
    "unique": unique,
    "reverse_sequence": reverse_sequence,
}
