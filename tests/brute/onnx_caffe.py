"""How onnxruntime runs what only Caffe has as a layer: out of several operators."""

from __future__ import annotations

import math
from typing import Any

from layerscope.graph import attributes as at
from tests.brute.caffe import GAIN, LEAST, MARGIN, level
from tests.brute.engine import Model, Writer


def power(m: Model) -> str:
    a: at.Power = m.attributes
    y = m.node("Add", m.node("Mul", m.x, m.number(a.scale)), m.number(a.shift))
    return m.node("Pow", y, m.number(a.power))


def axpy(m: Model) -> str:
    shape = m.inputs[1].shape
    scale = m.node("Reshape", m.x, m.ints(*shape[:2], *(1 for _ in shape[2:])))
    return m.node("Add", m.node("Mul", m.of(1), scale), m.of(2))


def _values(m: Model, name: str, shape: tuple[int, ...]) -> str:
    """Values of Scale or Bias, with axes of one behind them."""
    axis = (m.attributes or at.Scale()).axis % len(m.shape) if shape else 0
    rest = len(m.shape) - axis - len(shape)
    return m.node("Reshape", name, m.ints(*shape, *(1 for _ in range(rest))))


def scale(m: Model) -> str:
    given = len(m.inputs) == 2
    shape = (m.inputs[1] if given else m.params["weight"]).shape
    y = m.node("Mul", m.x, _values(m, m.of(1) if given else "weight", shape))
    return m.node("Add", y, _values(m, "bias", shape)) if "bias" in m.params else y


def bias(m: Model) -> str:
    given = len(m.inputs) == 2
    held = m.inputs[1] if given else m.params["bias"]
    return m.node("Add", m.x, _values(m, m.of(1) if given else "bias", held.shape))


def tile(m: Model) -> str:
    a: at.Tile = m.attributes
    axis = a.axis % len(m.shape)
    return m.node("Tile", m.x, m.ints(*(a.times if n == axis else 1 for n in range(len(m.shape)))))


def channel_shuffle(m: Model) -> str:
    groups = m.attributes.groups
    batch, channels, *rest = m.shape
    order = [0, 2, 1, *range(3, len(m.shape) + 1)]
    apart = m.node("Reshape", m.x, m.ints(batch, groups, channels // groups, *rest))
    return m.node("Reshape", m.node("Transpose", apart, perm=order), m.ints(*m.shape))


def _told(window: at.Window) -> dict[str, Any]:
    begins, ends = zip(*window.pads, strict=True)
    return {
        "kernel_shape": list(window.kernel),
        "strides": list(window.stride),
        "pads": [*begins, *ends],
    }


def im2col(m: Model) -> str:
    """A convolution each filter of which picks one tap of one channel."""
    window: at.Window = m.attributes.window
    size = m.shape[1] * math.prod(window.kernel)
    eye = [float(row == column) for row in range(size) for column in range(size)]
    weight = m.tensor(eye, (size, m.shape[1], *window.kernel))
    return m.node("Conv", m.x, weight, **_told(window), dilations=list(window.dilation))


def _pool(m: Model, kind: str, told: dict[str, Any]) -> str:
    if kind == "max":
        return m.node("MaxPool", m.x, **told)
    if kind == "avg":
        return m.node("AveragePool", m.x, count_include_pad=1, **told)
    squares = m.node("AveragePool", m.node("Mul", m.x, m.x), count_include_pad=1, **told)
    return m.node("Div", squares, m.node("AveragePool", m.x, count_include_pad=1, **told))


def stochastic_pool(m: Model) -> str:
    return _pool(m, "stochastic", _told(m.attributes.window))


def global_stochastic_pool(m: Model) -> str:
    squares = m.node("GlobalAveragePool", m.node("Mul", m.x, m.x))
    return m.node("Div", squares, m.node("GlobalAveragePool", m.x))


def pyramid(kind: str) -> Writer:
    def write(m: Model) -> str:
        made = []
        for n in range(m.attributes.levels):
            told = _told(level(m.shape[2:], n))
            odd = [
                (k * 2**n - size) % 2
                for k, size in zip(told["kernel_shape"], m.shape[2:], strict=True)
            ]
            pads = told["pads"]
            told["pads"] = [*pads[:2], *(p - o for p, o in zip(pads[2:], odd, strict=True))]
            made.append(_pool(m, kind, told))
        if len(made) == 1:
            return made[0]
        return m.node("Concat", *(m.node("Flatten", y, axis=1) for y in made), axis=1)

    return write


def interp(m: Model) -> str:
    a: at.Interp = m.attributes
    begin, end = a.crop
    sizes = [size - begin - end for size in m.shape[2:]]
    new = a.size or tuple(((size - 1) // a.shrink) * a.zoom + 1 for size in sizes)
    if len(m.inputs) == 2:
        new = m.inputs[1].shape[2:]
    ends = (m.shape[2] - end, m.shape[3] - end)
    x = m.node("Slice", m.x, m.ints(begin, begin), m.ints(*ends), m.ints(2, 3))
    told = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    return m.node("Resize", x, "", "", m.ints(*m.shape[:2], *new), **told)


def unpool(m: Model) -> str:
    """ONNX numbers the places of all planes together."""
    a: at.Unpool = m.attributes
    sizes = a.size or tuple(
        s * by - less for s, by, less in zip(m.shape[2:], a.scale, a.less, strict=True)
    )
    planes = [n * math.prod(sizes) for n in range(math.prod(m.shape[:2]))]
    first = m.node("Reshape", m.ints(*planes), m.ints(*m.shape[:2], 1, 1))
    places = m.node("Add", m.cast(m.of(1), "int64"), first)
    shape = m.ints(*m.shape[:2], *sizes)
    return m.node("MaxUnpool", m.x, places, shape, kernel_shape=[1, 1])


def _labels(m: Model) -> str:
    rows = [size for n, size in enumerate(m.shape) if n != 1]
    given = m.of(1) if len(m.inputs) == 2 else m.ints(*[0] * math.prod(rows))
    return m.node("Reshape", given, m.ints(*rows))


def accuracy(m: Model) -> str:
    best = m.node("ArgMax", m.x, axis=1, keepdims=0)
    return m.node("ReduceMean", m.cast(m.node("Equal", best, _labels(m)), "fp32"), keepdims=0)


def log_loss(m: Model) -> str:
    logs = m.node("Log", m.node("Max", m.x, m.number(LEAST)))
    return m.node("NegativeLogLikelihoodLoss", logs, _labels(m), reduction="mean")


def infogain_loss(m: Model) -> str:
    chances = m.node("Max", m.node("Softmax", m.x, axis=1), m.number(LEAST))
    rows = math.prod(m.shape) // m.shape[1]
    gains = m.node("Mul", m.node("Log", chances), m.number(-GAIN / rows))
    return m.node("ReduceSum", gains, keepdims=0)


def smooth_l1_loss(m: Model) -> str:
    target = m.of(1) if len(m.inputs) == 2 else m.number(1.0)
    gap = m.node("Sub", m.x, target)
    size = m.node("Abs", gap)
    curve = m.node("Mul", m.node("Mul", gap, gap), m.number(0.5))
    line = m.node("Sub", size, m.number(0.5))
    return m.node(
        "ReduceMean", m.node("Where", m.node("Less", size, m.number(1.0)), curve, line), keepdims=0
    )


def contrastive_loss(m: Model) -> str:
    gap = m.node("Flatten", m.node("Sub", m.x, m.of(1)), axis=1)
    far = m.node("ReduceL2", gap, m.ints(1), keepdims=0)
    short = m.node("Relu", m.node("Sub", m.number(MARGIN), far))
    return m.node("ReduceMean", m.node("Mul", short, short), keepdims=0)


def unrolled(kind: str) -> Writer:
    """Step after step: products, marks, gates."""

    def write(m: Model) -> str:
        a: at.Unrolled = m.attributes
        steps, batch = m.shape[:2]
        rows = m.node("Reshape", m.x, m.ints(steps, batch, -1))
        state = cell = m.tensor([0.0] * (batch * a.hidden), (batch, a.hidden))
        made = []
        for t in range(steps):
            x = m.node("Gather", rows, m.ints(t), axis=0)
            mark = m.node("Reshape", m.node("Gather", m.of(1), m.ints(t), axis=0), m.ints(batch, 1))
            x = m.node("Reshape", x, m.ints(batch, -1))
            joined = m.node("Gemm", x, "weight_x", "bias", transB=1)
            old = m.node("Gemm", m.node("Mul", state, mark), "weight_h", transB=1)
            joined = m.node("Add", joined, old)
            if a.static:
                joined = m.node("Add", joined, m.node("Gemm", m.of(2), "weight_static", transB=1))
            if kind == "caffe_rnn":
                state = m.node("Tanh", joined)
                made.append(m.node("Tanh", m.node("Gemm", state, "weight_o", "bias_o", transB=1)))
                continue
            i, f, o, g = m.several("Split", joined, outputs=4, axis=1, num_outputs=4)
            keep = m.node("Mul", m.node("Mul", m.node("Sigmoid", f), mark), cell)
            cell = m.node("Add", keep, m.node("Mul", m.node("Sigmoid", i), m.node("Tanh", g)))
            state = m.node("Mul", m.node("Sigmoid", o), m.node("Tanh", cell))
            made.append(state)
        apart = [m.node("Reshape", y, m.ints(1, batch, a.hidden)) for y in made]
        return m.node("Concat", *apart, axis=0)

    return write


WRITERS: dict[str, Writer] = {
    "power": power,
    "axpy": axpy,
    "scale": scale,
    "bias": bias,
    "tile": tile,
    "channel_shuffle": channel_shuffle,
    "im2col": im2col,
    "stochastic_pool": stochastic_pool,
    "global_stochastic_pool": global_stochastic_pool,
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in ("max", "avg", "stochastic")},
    "interp": interp,
    "unpool": unpool,
    "accuracy": accuracy,
    "log_loss": log_loss,
    "infogain_loss": infogain_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "contrastive_loss": contrastive_loss,
    "caffe_lstm": unrolled("caffe_lstm"),
    "caffe_rnn": unrolled("caffe_rnn"),
}
