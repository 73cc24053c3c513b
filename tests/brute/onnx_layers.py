"""How onnxruntime runs layers that mix positions or have params."""

from __future__ import annotations

import math
from itertools import product

from layerscope.graph.attributes import (
    AdaptivePool,
    Conv,
    GroupNorm,
    L2Norm,
    LayerNorm,
    Linear,
    LocalResponseNorm,
    MatMul,
    PixelShuffle,
    Pool,
    Resize,
    TransposedConv,
    Window,
)
from tests.brute.engine import Model, Writer, along_axis, plain


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
    extra = a.output_padding
    if all(e < s for e, s in zip(extra, a.window.stride, strict=False)):
        if extra:
            told["output_padding"] = extra
        return m.node("ConvTranspose", m.x, *m.params, **told)
    # onnxruntime takes output padding only below the stride, torch also below the dilation:
    # made without any padding, then padded and cut to size.
    assert not isinstance(a.window.pads, str)
    ends = [e - end for e, (_, end) in zip(extra, a.window.pads, strict=True)]
    begins = [-begin for begin, _ in a.window.pads]
    del told["pads"]
    y = m.node("ConvTranspose", m.x, "weight", **told)
    y = m.node("Pad", y, m.ints(0, 0, *begins, 0, 0, *ends))
    return m.node("Add", y, m.node("Reshape", "bias", m.ints(a.out_channels, 1, 1)))


def linear(m: Model) -> str:
    a: Linear = m.attributes
    if a.flatten or len(m.shape) == 2:
        axis = a.axis % len(m.shape) if a.flatten else 1
        y = m.node("Gemm", m.node("Flatten", m.x, axis=axis), *m.params, transB=1)
        return m.node("Reshape", y, m.ints(*m.shape[:axis], a.out_features))
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
    if not a.variance:
        places = m.ints(*range(a.axis, len(m.shape)))
        return m.node("Sub", m.x, m.node("ReduceMean", m.x, places, keepdims=1))
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
    """By hand, Σ/n is an average pool of the squares that counts its padding.

    So it is within a channel; and across channels of even size, which onnxruntime's LRN refuses.
    """
    a: LocalResponseNorm = m.attributes
    if not a.within_channel and a.size % 2:
        return m.node("LRN", m.x, size=a.size, alpha=a.alpha, beta=a.beta, bias=a.k)
    before = (a.size - 1) // 2
    pads = (before, a.size - 1 - before)
    squares = m.node("Mul", m.x, m.x)
    if a.within_channel:
        mean = _average(m, squares, [a.size] * (len(m.shape) - 2), [pads] * (len(m.shape) - 2))
    else:
        batch, channels, *rest = m.shape
        column = m.node("Reshape", squares, m.ints(batch, 1, channels, math.prod(rest)))
        mean = _average(m, column, [a.size, 1], [pads, (0, 0)])
        mean = m.node("Reshape", mean, m.ints(*m.shape))
    scaled = m.node("Add", m.node("Mul", mean, m.number(a.alpha)), m.number(a.k))
    return m.node("Div", m.x, m.node("Pow", scaled, m.number(a.beta)))


def _average(m: Model, x: str, kernel: list[int], pads: list[tuple[int, int]]) -> str:
    begins, ends = zip(*pads, strict=True)
    told = {"kernel_shape": kernel, "pads": [*begins, *ends], "count_include_pad": 1}
    return m.node("AveragePool", x, **told)


def l2_norm(m: Model) -> str:
    a: L2Norm = m.attributes or L2Norm()
    if len(a.axes) == 1:
        y = m.node("LpNormalization", m.x, axis=a.axes[0], p=2)
    else:
        y = m.node("Div", m.x, m.node("ReduceL2", m.x, m.ints(*a.axes), keepdims=1))
    return m.node("Mul", y, along_axis(m, "weight", 1, a.shared_scale)) if a.scale else y


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
    "resize": resize,
    "pixel_shuffle": pixel_shuffle,
    "roi_pool": roi_pool,
}
