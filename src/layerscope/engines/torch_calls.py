"""Functions that compute one ONNX operator each with PyTorch; torch_operators.py is their table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from layerscope.engines.onnx_nodes import NodeAttributes

if TYPE_CHECKING:
    from torch import Tensor
    from torch import dtype as Dtype  # noqa: N812

    Result: TypeAlias = Tensor | Sequence[Tensor]

# (torch, attributes, inputs in order; None for an optional one left out) -> output or outputs
TorchCall = Callable[..., "Result"]


Attrs = NodeAttributes

# -- convolution and pooling


def _pads(attrs: Attrs, rank: int) -> tuple[list[int], list[int]]:
    pads = attrs.integers("pads", [0] * (2 * rank))
    return pads[:rank], pads[rank:]


def _padded(
    torch: ModuleType, x: Tensor, attrs: Attrs, rank: int, value: float
) -> tuple[Tensor, list[int]]:
    """Pad the input if its sides differ; also the padding left for the operator itself."""
    begin, end = _pads(attrs, rank)
    if begin == end:
        return x, begin
    sides = [side for n in reversed(range(rank)) for side in (begin[n], end[n])]
    return torch.nn.functional.pad(x, sides, value=value), [0] * rank


def conv(
    torch: ModuleType, attrs: Attrs, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    rank = x.dim() - 2
    x, pads = _padded(torch, x, attrs, rank, 0.0)
    call = (torch.conv1d, torch.conv2d, torch.conv3d)[rank - 1]
    ones = [1] * rank
    strides, dilations = attrs.integers("strides", ones), attrs.integers("dilations", ones)
    return call(x, weight, bias, strides, pads, dilations, attrs.integer("group", 1))


def conv_transpose(
    torch: ModuleType, attrs: Attrs, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    rank = x.dim() - 2
    begin, end = _pads(attrs, rank)
    if begin != end:
        raise NotImplementedError("a transposed convolution padded unequally")
    call = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[rank - 1]
    ones = [1] * rank
    return call(
        x, weight, bias, attrs.integers("strides", ones), begin,
        attrs.integers("output_padding", [0] * rank), attrs.integer("group", 1),
        attrs.integers("dilations", ones),
    )  # fmt: skip


def max_pool(torch: ModuleType, attrs: Attrs, x: Tensor) -> Result:
    rank = x.dim() - 2
    if attrs.outputs > 1 and _pads(attrs, rank)[0] != _pads(attrs, rank)[1]:
        raise NotImplementedError("indices of maxima with unequal padding")
    x, pads = _padded(torch, x, attrs, rank, float("-inf"))
    functions = torch.nn.functional
    call = (functions.max_pool1d, functions.max_pool2d, functions.max_pool3d)[rank - 1]
    ones = [1] * rank
    found: Result = call(
        x, attrs.integers("kernel_shape"), attrs.integers("strides", ones), pads,
        attrs.integers("dilations", ones), bool(attrs.integer("ceil_mode")), attrs.outputs > 1,
    )  # fmt: skip
    if attrs.outputs == 1:
        return found
    y, indices = found  # PyTorch's indices are within a plane, ONNX's within the whole tensor
    planes = torch.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *ones)
    return y, indices + planes * x[0, 0].numel()


def avg_pool(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    rank = x.dim() - 2
    begin, end = _pads(attrs, rank)
    if begin != end:
        raise NotImplementedError("average pooling padded unequally")
    if set(attrs.integers("dilations", [1])) != {1}:
        raise NotImplementedError("average pooling with dilation")
    functions = torch.nn.functional
    call = (functions.avg_pool1d, functions.avg_pool2d, functions.avg_pool3d)[rank - 1]
    return call(
        x, attrs.integers("kernel_shape"), attrs.integers("strides", [1] * rank), begin,
        bool(attrs.integer("ceil_mode")), bool(attrs.integer("count_include_pad")),
    )  # fmt: skip


def spatial(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


def global_lp_pool(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, attrs.integer("p", 2), spatial(x), True)


# -- products


def gemm(torch: ModuleType, attrs: Attrs, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    alpha, beta = attrs.number("alpha", 1.0), attrs.number("beta", 1.0)
    a = a.t() if attrs.integer("transA") else a
    if c is not None and attrs.integer("transB") and alpha == beta == 1:
        return torch.nn.functional.linear(a, b, c)
    y = a @ (b.t() if attrs.integer("transB") else b)
    y = y if alpha == 1.0 else y * alpha
    return y if c is None else y + c * beta


# -- elementwise


def unary(name: str) -> TorchCall:
    return lambda torch, attrs, x: getattr(torch, name)(x)


def activation(name: str) -> TorchCall:
    return lambda torch, attrs, x: getattr(torch.nn.functional, name)(x)


def scaled(name: str, default: float) -> TorchCall:
    """An activation with the parameter alpha."""
    return lambda torch, attrs, x: getattr(torch.nn.functional, name)(
        x, attrs.number("alpha", default)
    )


def binary(name: str) -> TorchCall:
    return lambda torch, attrs, a, b: getattr(torch, name)(a, b)


def variadic(name: str) -> TorchCall:
    def run(torch: ModuleType, attrs: Attrs, first: Tensor, *rest: Tensor) -> Tensor:
        for other in rest:
            first = getattr(torch, name)(first, other)
        return first

    return run


def mean(torch: ModuleType, attrs: Attrs, *inputs: Tensor) -> Tensor:
    return sum(inputs[1:], inputs[0]) / len(inputs)


def modulo(torch: ModuleType, attrs: Attrs, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, b) if attrs.integer("fmod") else torch.remainder(a, b)


def hard_sigmoid(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    alpha, beta = attrs.number("alpha", 0.2), attrs.number("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return torch.nn.functional.hardsigmoid(x)
    return torch.clamp(x * alpha + beta, 0.0, 1.0)


def thresholded_relu(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    return torch.nn.functional.threshold(x, attrs.number("alpha", 1.0), 0.0)


def shrink(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    lambd, bias = attrs.number("lambd", 0.5), attrs.number("bias", 0.0)
    inner = torch.where(x > lambd, x - bias, torch.zeros_like(x))
    return torch.where(x < -lambd, x + bias, inner)


def clip(
    torch: ModuleType,
    attrs: Attrs,
    x: Tensor,
    low: Tensor | None = None,
    high: Tensor | None = None,
) -> Tensor:
    return torch.clamp(
        x, None if low is None else low.item(), None if high is None else high.item()
    )


def cast_to(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    return x.to(_dtype(torch, attrs.integer("to")))


def _dtype(torch: ModuleType, element_type: int) -> Dtype:
    """The torch.dtype of an element type of ONNX."""
    from onnx import helper

    name = helper.tensor_dtype_to_np_dtype(element_type).name
    return getattr(torch, name)


def hardmax(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    axis = attrs.integer("axis", -1)
    return torch.zeros_like(x).scatter_(axis, x.argmax(axis, True), 1.0)


# -- normalization


def batch_norm(
    torch: ModuleType, attrs: Attrs, x: Tensor, scale: Tensor, bias: Tensor, *moments: Tensor
) -> Tensor:
    mean, variance = moments
    epsilon = attrs.number("epsilon", 1e-5)
    return torch.nn.functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def layer_norm(
    torch: ModuleType, attrs: Attrs, x: Tensor, scale: Tensor, bias: Tensor | None = None
) -> Tensor:
    shape = list(x.shape[attrs.integer("axis", -1) :])
    return torch.nn.functional.layer_norm(x, shape, scale, bias, attrs.number("epsilon", 1e-5))


def instance_norm(
    torch: ModuleType, attrs: Attrs, x: Tensor, scale: Tensor, bias: Tensor
) -> Tensor:
    return torch.nn.functional.instance_norm(
        x, weight=scale, bias=bias, eps=attrs.number("epsilon", 1e-5)
    )


def group_norm(torch: ModuleType, attrs: Attrs, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups, epsilon = attrs.integer("num_groups"), attrs.number("epsilon", 1e-5)
    return torch.nn.functional.group_norm(x, groups, scale, bias, epsilon)


def local_response_norm(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    alpha, beta, k = (
        attrs.number("alpha", 1e-4), attrs.number("beta", 0.75), attrs.number("bias", 1.0),
    )  # fmt: skip
    return torch.nn.functional.local_response_norm(x, attrs.integer("size"), alpha, beta, k)


def lp_norm(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(x, attrs.integer("p", 2), attrs.integer("axis", -1), True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


# -- reduction and search


def reduce(call: Callable[[ModuleType, Tensor, list[int], bool], Tensor]) -> TorchCall:
    def run(torch: ModuleType, attrs: Attrs, x: Tensor, axes: Tensor | None = None) -> Tensor:
        dims = attrs.integers("axes") if axes is None else axes.tolist()
        if not dims and attrs.integer("noop_with_empty_axes"):
            return x
        return call(torch, x, dims or list(range(x.dim())), bool(attrs.integer("keepdims", 1)))

    return run


def reduce_prod(torch: ModuleType, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in sorted((dim % x.dim() for dim in dims), reverse=True):
        x = torch.prod(x, dim, keep)
    return x


def arg(name: str) -> TorchCall:
    def run(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
        if attrs.integer("select_last_index"):
            raise NotImplementedError("the last of several equal values")
        axis, keep = attrs.integer("axis"), bool(attrs.integer("keepdims", 1))
        return getattr(torch, name)(x, axis, keep)

    return run


def top_k(torch: ModuleType, attrs: Attrs, x: Tensor, k: Tensor) -> Result:
    largest, ordered = bool(attrs.integer("largest", 1)), bool(attrs.integer("sorted", 1))
    return torch.topk(x, int(k), attrs.integer("axis", -1), largest, ordered)


def cumsum(torch: ModuleType, attrs: Attrs, x: Tensor, axis: Tensor) -> Tensor:
    if attrs.integer("exclusive") or attrs.integer("reverse"):
        raise NotImplementedError("exclusive or reversed cumulative sums")
    return torch.cumsum(x, int(axis))


# -- layout


def reshape(torch: ModuleType, attrs: Attrs, x: Tensor, shape: Tensor) -> Tensor:
    keep = not attrs.integer("allowzero")
    sizes = shape.tolist()
    return x.reshape(
        [x.shape[n] if size == 0 and keep else int(size) for n, size in enumerate(sizes)]
    )


def flatten(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    """A matrix; axes before `axis` are its rows."""
    return x.reshape(prod(x.shape[: attrs.integer("axis", 1)]), -1)


def unsqueeze(torch: ModuleType, attrs: Attrs, x: Tensor, axes: Tensor) -> Tensor:
    for axis in sorted(axes.tolist()):
        x = x.unsqueeze(axis)
    return x


def expand(torch: ModuleType, attrs: Attrs, x: Tensor, shape: Tensor) -> Tensor:
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape.tolist())))


def split(torch: ModuleType, attrs: Attrs, x: Tensor, sizes: Tensor | None = None) -> Result:
    axis = attrs.integer("axis")
    if sizes is not None:
        return torch.split(x, sizes.tolist(), axis)
    return torch.chunk(x, attrs.integer("num_outputs", attrs.outputs), axis)


def slice_(
    torch: ModuleType, attrs: Attrs, x: Tensor, starts: Tensor, ends: Tensor, *more: Tensor
) -> Tensor:
    axes = more[0].tolist() if more else range(len(starts))
    steps = more[1].tolist() if len(more) > 1 else [1] * len(starts)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes, steps, strict=True):
        if step < 1:
            raise NotImplementedError("slices with a negative step")
        size = x.shape[axis]
        low, high = (max(min(v + size if v < 0 else v, size), 0) for v in (start, end))
        where = [slice(None)] * x.dim()
        where[axis] = slice(low, high, step)
        x = x[tuple(where)]
    return x


def pad(torch: ModuleType, attrs: Attrs, x: Tensor, pads: Tensor, *more: Tensor | None) -> Tensor:
    mode = attrs.text("mode", "constant")
    value = more[0].item() if more and more[0] is not None else 0.0
    sides, rank = pads.tolist(), x.dim()
    if mode != "constant" or len(more) > 1:
        raise NotImplementedError("padding other than with a constant, or of some axes")
    flat = [side for n in reversed(range(rank)) for side in (sides[n], sides[n + rank])]
    return torch.nn.functional.pad(x, flat, value=value)


def depth_to_space(torch: ModuleType, attrs: Attrs, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = attrs.integer("blocksize")
    if attrs.text("mode", "DCR") == "DCR":
        x = x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(n, c // b**2, h * b, w * b)


def trilu(torch: ModuleType, attrs: Attrs, x: Tensor, k: Tensor | None = None) -> Tensor:
    diagonal = 0 if k is None else int(k)
    return (torch.triu if attrs.integer("upper", 1) else torch.tril)(x, diagonal)


# -- indexing


def gather(torch: ModuleType, attrs: Attrs, x: Tensor, index: Tensor) -> Tensor:
    axis = attrs.integer("axis") % max(x.dim(), 1)
    taken = torch.index_select(x, axis, index.reshape(-1))
    return taken.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def gather_elements(torch: ModuleType, attrs: Attrs, x: Tensor, index: Tensor) -> Tensor:
    return torch.gather(x, attrs.integer("axis"), index)


def gather_nd(torch: ModuleType, attrs: Attrs, x: Tensor, index: Tensor) -> Tensor:
    if attrs.integer("batch_dims"):
        raise NotImplementedError("GatherND with batch dimensions")
    return x[tuple(index.unbind(-1))]


# -- constants


def constant(torch: ModuleType, attrs: Attrs) -> Tensor:
    return torch.from_numpy(attrs.array("value").copy())


def constant_of_shape(torch: ModuleType, attrs: Attrs, shape: Tensor) -> Tensor:
    value = torch.from_numpy(attrs.array("value").copy())
    return value.expand(shape.tolist()).clone()
