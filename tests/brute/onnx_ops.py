"""How onnxruntime runs each op: one ONNX operator where there is one, else several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from layerscope.graph.attributes import (
    AdaptivePool,
    Conv,
    Crop,
    GroupNorm,
    L2Norm,
    LayerNorm,
    Linear,
    LocalResponseNorm,
    MatMul,
    Pad,
    PixelShuffle,
    Pool,
    Resize,
    Scale,
    Softmax,
    TransposedConv,
    Window,
)
from tests.brute.engine import Model
from tests.brute.pointwise import CONSTANT

Writer = Callable[[Model], str | tuple[str, ...]]


def _window(window: Window) -> dict[str, object]:
    told: dict[str, object] = {"kernel_shape": window.kernel, "strides": window.stride}
    if isinstance(window.pads, str):
        return {**told, "auto_pad": window.pads.upper()}
    begins, ends = zip(*window.pads, strict=True)
    return {**told, "pads": [*begins, *ends]}


def conv(m: Model) -> str:
    a: Conv = m.attributes
    told = {**_window(a.window), "dilations": a.window.dilation, "group": a.groups}
    return m.node("Conv", m.x, *m.params, **told)


def conv_transpose(m: Model) -> str:
    a: TransposedConv = m.attributes
    told = {**_window(a.window), "dilations": a.window.dilation, "group": a.groups}
    if a.output_padding:
        told["output_padding"] = a.output_padding
    return m.node("ConvTranspose", m.x, *m.params, **told)


def linear(m: Model) -> str:
    a: Linear = m.attributes
    if a.flatten or len(m.shape) == 2:
        return m.node("Gemm", m.node("Flatten", m.x, axis=1), *m.params, transB=1)
    y = m.node("MatMul", m.x, m.node("Transpose", "weight", perm=[1, 0]))
    return m.node("Add", y, "bias") if a.bias else y


def matmul(m: Model) -> str:
    a: MatMul = m.attributes or MatMul()
    sides = []
    for n, swapped in enumerate((a.transpose_a, a.transpose_b)):
        rank = len(m.inputs[n].shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        turn = swapped and rank > 1
        sides.append(m.node("Transpose", m.of(n), perm=order) if turn else m.of(n))
    return m.node("MatMul", *sides)


def pool(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Pool = m.attributes
        told = {**_window(a.window), "ceil_mode": int(a.window.rounding != "floor")}
        if op == "LpPool":
            told["p"] = a.p
        if op == "AveragePool":
            told["count_include_pad"] = int(a.count_include_pad)
        return m.node(op, m.x, dilations=a.window.dilation, **told)

    return write


def global_lp_pool(m: Model) -> str:
    return m.node("GlobalLpPool", m.x, p=m.attributes.p if m.attributes else 2)


def adaptive_pool(op: str) -> Writer:
    """Bin by bin: a slice reduced to one element, all of them put together again."""

    def write(m: Model) -> str:
        a: AdaptivePool = m.attributes
        axes = list(range(len(m.shape) - len(a.output), len(m.shape)))
        sizes = [m.shape[axis] for axis in axes]
        counts = [bins or size for bins, size in zip(a.output, sizes, strict=True)]
        parts = []
        for at in product(*map(range, counts)):
            starts = [i * n // b for i, n, b in zip(at, sizes, counts, strict=True)]
            ends = [math.ceil((i + 1) * n / b) for i, n, b in zip(at, sizes, counts, strict=True)]
            part = m.node("Slice", m.x, m.ints(*starts), m.ints(*ends), m.ints(*axes))
            parts.append(m.node(op, part, m.ints(*axes), keepdims=1))
        for n, axis in reversed(list(enumerate(axes))):
            step = counts[n]
            parts = [
                m.node("Concat", *parts[i : i + step], axis=axis)
                for i in range(0, len(parts), step)
            ]
        return parts[0]

    return write


def batch_norm(m: Model) -> str:
    ones, noughts = m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])
    scale = "weight" if "weight" in m.params else ones
    bias = "bias" if "bias" in m.params else noughts
    eps = m.attributes.eps if m.attributes else 1e-5
    names = (m.x, scale, bias, "running_mean", "running_var")
    return m.node("BatchNormalization", *names, epsilon=eps)


def layer_norm(m: Model) -> str:
    a: LayerNorm = m.attributes or LayerNorm()
    names = list(m.params)
    if not names:
        rest = m.shape[a.axis :]
        ones = m.numbers([1.0] * math.prod(rest))
        names = [m.node("Reshape", ones, m.ints(*rest))]
    return m.node("LayerNormalization", m.x, *names, axis=a.axis, epsilon=a.eps)


def group_norm(m: Model) -> str:
    a: GroupNorm = m.attributes
    names = list(m.params)
    if not names:
        names = [m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])]
    if a.groups == m.shape[1]:
        return m.node("InstanceNormalization", m.x, *names, epsilon=a.eps)
    return m.node("GroupNormalization", m.x, *names, num_groups=a.groups, epsilon=a.eps)


def lrn(m: Model) -> str:
    """Within a channel: an average pool of the squares that counts its padding is Σ/n."""
    a: LocalResponseNorm = m.attributes
    if not a.within_channel:
        return m.node("LRN", m.x, size=a.size, alpha=a.alpha, beta=a.beta, bias=a.k)
    rank = len(m.shape) - 2
    before = (a.size - 1) // 2
    pads = [before] * rank + [a.size - 1 - before] * rank
    squares = m.node("Mul", m.x, m.x)
    kernel = [a.size] * rank
    mean = m.node("AveragePool", squares, kernel_shape=kernel, pads=pads, count_include_pad=1)
    scaled = m.node("Add", m.node("Mul", mean, m.number(a.alpha)), m.number(a.k))
    return m.node("Div", m.x, m.node("Pow", scaled, m.number(a.beta)))


def l2_norm(m: Model) -> str:
    a: L2Norm = m.attributes or L2Norm()
    if len(a.axes) == 1:
        y = m.node("LpNormalization", m.x, axis=a.axes[0], p=2)
    else:
        y = m.node("Div", m.x, m.node("ReduceL2", m.x, m.ints(*a.axes), keepdims=1))
    return m.node("Mul", y, _along(m, "weight", 1, a.shared_scale)) if a.scale else y


def _along(m: Model, param: str, axis: int, shared: bool = False) -> str:
    """A param of one value per place of an axis, shaped to broadcast; the reshape checks its size."""
    axis %= len(m.shape)
    size = 1 if shared else m.shape[axis]
    return m.node("Reshape", param, m.ints(size, *(1 for _ in m.shape[axis + 1 :])))


def scale(m: Model) -> str:
    a: Scale = m.attributes or Scale()
    y = m.node("Mul", m.x, _along(m, "weight", a.axis))
    return m.node("Add", y, _along(m, "bias", a.axis)) if a.bias else y


def prelu(m: Model) -> str:
    return m.node("PRelu", m.x, _along(m, "weight", 1, bool(m.attributes and m.attributes.shared)))


def plain(op: str, **told: object) -> Writer:
    return lambda m: m.node(op, m.x, **told)


def with_alpha(op: str) -> Writer:
    return lambda m: m.node(op, m.x, alpha=m.attributes.alpha)


def clip(low: float | None = None, high: float | None = None) -> Writer:
    def write(m: Model) -> str:
        a = m.attributes
        lowest, highest = a.alpha if low is None else low, a.beta if high is None else high
        return m.node("Clip", m.x, m.number(lowest), m.number(highest))

    return write


def elementwise(op: str, many: bool = False) -> Writer:
    """Sum, Max and Min take any number; the others are chained. A lone operand meets a constant."""

    def write(m: Model) -> str:
        names = [m.of(n) for n in range(len(m.inputs))]
        if len(names) == 1:
            names.append(m.number(CONSTANT))
        if many:
            return m.node(op, *names)
        result = names[0]
        for name in names[1:]:
            result = m.node(op, result, name)
        return result

    return write


def compare(m: Model) -> str:
    other = m.of(1) if len(m.inputs) == 2 else m.number(CONSTANT)
    return m.node("Cast", m.node("Greater", m.x, other), to=1)


def along(op: str) -> Writer:
    return lambda m: m.node(op, m.x, axis=(m.attributes or Softmax()).axis)


def labelled(op: str) -> Writer:
    """ONNX has the classes on axis 1."""

    def write(m: Model) -> str:
        axis = (m.attributes or Softmax()).axis % len(m.shape)
        order = [axis if n == 1 else n - (1 < n <= axis) for n in range(len(m.shape))]
        x = m.node("Transpose", m.x, perm=order) if axis != 1 else m.x
        rows = [size for n, size in enumerate(m.shape) if n != axis]
        labels = m.of(1) if len(m.inputs) == 2 else m.ints(*[0] * math.prod(rows))
        return m.node(op, x, m.node("Reshape", labels, m.ints(*rows)), reduction="mean")

    return write


def paired(terms: Callable[[Model, str, str], str]) -> Writer:
    def write(m: Model) -> str:
        target = m.number(1.0)
        if len(m.inputs) == 2:
            target = m.node("Reshape", m.of(1), m.ints(*m.shape))
        return m.node("ReduceMean", terms(m, m.x, target), keepdims=0)

    return write


def _squares(m: Model, x: str, t: str) -> str:
    gap = m.node("Sub", x, t)
    return m.node("Mul", gap, gap)


def _cross_entropy(m: Model, x: str, t: str) -> str:
    decay = m.node("Exp", m.node("Neg", m.node("Abs", x)))
    soft = m.node("Log", m.node("Add", decay, m.number(1.0)))
    hard = m.node("Sub", m.node("Relu", x), m.node("Mul", x, t))
    return m.node("Add", hard, soft)


def concat(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("Concat", *names, axis=m.attributes.axis if m.attributes else 1)


def split(m: Model) -> tuple[str, ...]:
    a = m.attributes
    return m.several("Split", m.x, m.ints(*a.sizes), outputs=len(a.sizes), axis=a.axis)


def cut(m: Model) -> str:
    a = m.attributes
    steps = a.steps or (1,) * len(a.axes)
    return m.node("Slice", m.x, *(m.ints(*each) for each in (a.starts, a.ends, a.axes, steps)))


def flatten(m: Model) -> str:
    """ONNX's Flatten makes a matrix; any other merging of axes is a Reshape."""
    a = m.attributes
    if a is None or (a.start, a.end) == (1, -1):
        if len(m.shape) >= 1:
            return m.node("Flatten", m.x, axis=1)
    first, last = a.start % len(m.shape), a.end % len(m.shape)
    merged = math.prod(m.shape[first : last + 1])
    return m.node("Reshape", m.x, m.ints(*m.shape[:first], merged, *m.shape[last + 1 :]))


def reshape(m: Model) -> str:
    return m.node("Reshape", m.x, m.ints(*m.attributes.shape))


def pad(m: Model) -> str:
    a: Pad = m.attributes
    begins, ends = zip(*a.pads, strict=True)
    return m.node("Pad", m.x, m.ints(*begins, *ends), mode=a.mode)


def crop(m: Model) -> str:
    a: Crop = m.attributes or Crop()
    axes = range(a.axis % len(m.shape), len(m.shape))
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    sizes = [m.inputs[1].shape[axis] for axis in axes]
    ends = [o + s for o, s in zip(offsets, sizes, strict=True)]
    return m.node("Slice", m.x, m.ints(*offsets), m.ints(*ends), m.ints(*axes))


def resize(m: Model) -> str:
    """Nearest is the floor of i / scale; the weighted ones use pixel centres, or corners."""
    a: Resize = m.attributes
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[a.mode]
    place = "align_corners" if a.align_corners else "half_pixel"
    told: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": place}
    if a.mode == "nearest":
        told.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    spatial = len(m.shape) - 2
    if a.size:
        sizes = a.size if len(a.size) == spatial else a.size * spatial
        return m.node("Resize", m.x, "", "", m.ints(*m.shape[:2], *sizes), **told)
    scales = a.scale if len(a.scale) == spatial else a.scale * spatial
    factors = m.numbers([1.0, 1.0, *(up / down for up, down in scales)])
    return m.node("Resize", m.x, "", factors, **told)


def pixel_shuffle(m: Model) -> str:
    """CRD is the order of channels here. SpaceToDepth has it the other way round, block first."""
    a: PixelShuffle = m.attributes
    n, channels, *sizes = m.shape
    f, rank = a.factor, len(sizes)
    if rank == 2 and not a.inverse:
        return m.node("DepthToSpace", m.x, blocksize=f, mode="CRD")
    if rank == 2:
        blocks = m.node("SpaceToDepth", m.x, blocksize=f)
        height, width = sizes[0] // f, sizes[1] // f
        parts = m.node("Reshape", blocks, m.ints(n, f * f, channels, height, width))
        turned = m.node("Transpose", parts, perm=[0, 2, 1, 3, 4])
        return m.node("Reshape", turned, m.ints(n, channels * f * f, height, width))
    block = f**rank
    assert not a.inverse
    parts = m.node("Reshape", m.x, m.ints(n, channels // block, *[f] * rank, *sizes))
    order = [
        0,
        1,
        *(
            axis
            for pair in zip(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank), strict=True)
            for axis in pair
        ),
    ]
    turned = m.node("Transpose", parts, perm=order)
    return m.node("Reshape", turned, m.ints(n, channels // block, *(size * f for size in sizes)))


def roi_pool(m: Model) -> str:
    told = {"pooled_shape": m.attributes.output, "spatial_scale": m.attributes.scale}
    return m.node("MaxRoiPool", m.x, m.of(1), **told)


def hard_sigmoid(m: Model) -> str:
    return m.node("HardSigmoid", m.x, alpha=m.attributes.alpha, beta=m.attributes.beta)


def names(outputs: str | Sequence[str]) -> tuple[str, ...]:
    return (outputs,) if isinstance(outputs, str) else tuple(outputs)


WRITERS: dict[str, Writer] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "linear": linear,
    "matmul": matmul,
    "max_pool": pool("MaxPool"),
    "avg_pool": pool("AveragePool"),
    "lp_pool": pool("LpPool"),
    "global_max_pool": plain("GlobalMaxPool"),
    "global_avg_pool": plain("GlobalAveragePool"),
    "global_lp_pool": global_lp_pool,
    "adaptive_max_pool": adaptive_pool("ReduceMax"),
    "adaptive_avg_pool": adaptive_pool("ReduceMean"),
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
    "scale": scale,
    "relu": plain("Relu"),
    "relu6": clip(0.0, 6.0),
    "clip": clip(),
    "abs": plain("Abs"),
    "threshold": with_alpha("ThresholdedRelu"),
    "leaky_relu": with_alpha("LeakyRelu"),
    "elu": with_alpha("Elu"),
    "selu": plain("Selu"),
    "sigmoid": plain("Sigmoid"),
    "tanh": plain("Tanh"),
    "silu": lambda m: m.node("Mul", m.x, m.node("Sigmoid", m.x)),
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": plain("HardSwish"),
    "gelu": plain("Gelu", approximate="none"),
    "gelu_tanh": plain("Gelu", approximate="tanh"),
    "softplus": plain("Softplus"),
    "exp": plain("Exp"),
    "log": plain("Log"),
    "sqrt": plain("Sqrt"),
    "neg": plain("Neg"),
    "prelu": prelu,
    "add": elementwise("Sum", many=True),
    "sub": elementwise("Sub"),
    "mul": elementwise("Mul"),
    "div": elementwise("Div"),
    "pow": elementwise("Pow"),
    "max": elementwise("Max", many=True),
    "min": elementwise("Min", many=True),
    "compare": compare,
    "softmax": along("Softmax"),
    "log_softmax": along("LogSoftmax"),
    "softmax_loss": labelled("SoftmaxCrossEntropyLoss"),
    "nll_loss": labelled("NegativeLogLikelihoodLoss"),
    "mse_loss": paired(_squares),
    "l1_loss": paired(lambda m, x, t: m.node("Abs", m.node("Sub", x, t))),
    "hinge_loss": paired(
        lambda m, x, t: m.node("Relu", m.node("Sub", m.number(1.0), m.node("Mul", x, t)))
    ),
    "sigmoid_cross_entropy": paired(_cross_entropy),
    "reshape": reshape,
    "flatten": flatten,
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "concat": concat,
    "split": split,
    "slice": cut,
    "permute": lambda m: m.node("Transpose", m.x, perm=m.attributes.order),
    "pad": pad,
    "crop": crop,
    "resize": resize,
    "pixel_shuffle": pixel_shuffle,
    "roi_pool": roi_pool,
}
