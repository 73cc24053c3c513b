"""Normalisations: by stored statistics, by those of the input, by neighbours, by length."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import ShapeError
from layerscope.graph.attributes import (
    BatchNorm,
    Bias,
    GroupNorm,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
    Scale,
)
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, Map, WindowMap, keep
from layerscope.ops.autograd import WEIGHT, Saved, SavedRule, nothing
from layerscope.ops.spec import (
    FREE,
    Call,
    Ops,
    OpSpec,
    axis_of,
    need_rank,
    param,
    same,
    with_param_inputs,
)

PLAIN = BatchNorm()


def _affine(shape: Shape, bias: bool = True) -> tuple[Param, ...]:
    scale = param("weight", shape, "scale")
    return (scale, param("bias", shape, "bias")) if bias else (scale,)


def _batch_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "batch norm")
    return same(call)


def _batch_ops(call: Call) -> Ops:
    """Statistics and affine part fold into one multiply and one add."""
    return Ops(mul=1, add=1) * elements(call.y)


def _batch_params(call: Call) -> tuple[Param, ...]:
    a: BatchNorm = call.attributes or PLAIN
    channels = (call.x[1],)
    statistics = (
        param("running_mean", channels, "statistic"),
        param("running_var", channels, "statistic"),
    )
    if not a.affine:
        return statistics
    learned = _affine(channels)
    return (*(learned if a.scale else learned[1:]), *statistics)


def _layer_axes(call: Call) -> int:
    return axis_of((call.attributes or LayerNorm()).axis, len(call.x))


def _layer_ops(call: Call) -> Ops:
    a: LayerNorm = call.attributes or LayerNorm()
    size = elements(call.y)
    ops = _statistics_ops(size, elements(call.x[: _layer_axes(call)]), a.variance)
    if a.affine:
        ops += Ops(mul=size, add=size if a.bias else 0)
    return ops


def _statistics_ops(size: int, groups: int, variance: bool = True) -> Ops:
    """Mean, variance and division by its root for `size` elements in `groups`."""
    if not variance:
        return Ops(add=2) * size + Ops(div=1) * groups
    return Ops(add=3, mul=2) * size + Ops(div=2, add=1, exp=1) * groups


def _layer_params(call: Call) -> tuple[Param, ...]:
    a: LayerNorm = call.attributes or LayerNorm()
    return _affine(call.x[_layer_axes(call) :], a.bias) if a.affine else ()


def _layer_shape(call: Call) -> tuple[Shape, ...]:
    _layer_axes(call)
    return same(call)


def _group_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "group norm")
    groups = call.attributes.groups
    if groups < 1 or call.x[1] % groups:
        raise ShapeError(f"{call.x[1]} channels cannot be cut into {groups} groups")
    return same(call)


def _group_ops(call: Call) -> Ops:
    a: GroupNorm = call.attributes
    size = elements(call.y)
    ops = _statistics_ops(size, call.x[0] * a.groups)
    return ops + Ops(mul=size, add=size) if a.affine else ops


def _instance_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "instance norm")
    return same(call)


def _instance_ops(call: Call) -> Ops:
    a: InstanceNorm = call.attributes or InstanceNorm()
    size = elements(call.y)
    ops = _statistics_ops(size, elements(call.x[:2]), a.variance)
    return ops + Ops(mul=size, add=size) if a.affine else ops


def _rms_axis(call: Call) -> int:
    return axis_of((call.attributes or RMSNorm()).axis, len(call.x))


def _rms_ops(call: Call) -> Ops:
    """Squares, their sum and the scaling; per group a mean, the constant and a root."""
    a: RMSNorm = call.attributes or RMSNorm()
    size = elements(call.y)
    ops = Ops(add=1, mul=2) * size
    ops += Ops(div=1, add=1, exp=1) * elements(call.x[: _rms_axis(call)])
    return ops + Ops(mul=size) if a.scale else ops


def _rms_shape(call: Call) -> tuple[Shape, ...]:
    _rms_axis(call)
    return same(call)


def _rms_params(call: Call) -> tuple[Param, ...]:
    a: RMSNorm = call.attributes or RMSNorm()
    return _affine(call.x[_rms_axis(call) :], bias=False) if a.scale else ()


def _lrn_ops(call: Call) -> Ops:
    """Squares and scaling mul 2, the sum and the constant add n, a power, a division."""
    a: LocalResponseNorm = call.attributes
    neighbours = a.size ** len(call.x[2:]) if a.within_channel else a.size
    return Ops(mul=2, add=neighbours, exp=1, div=1) * elements(call.y)


def _lrn_access(call: Call) -> tuple[AccessMap, ...]:
    a: LocalResponseNorm = call.attributes
    if not a.within_channel:
        return (keep((0, *range(2, len(call.x)))),)
    near: Map = WindowMap(taps=a.size, begin=(a.size - 1) // 2)
    return ({**keep((0, 1)), **{axis: (axis, near) for axis in range(2, len(call.x))}},)


def _l2_axes(call: Call) -> tuple[int, ...]:
    a: L2Norm = call.attributes or L2Norm()
    return tuple(axis_of(axis, len(call.x)) for axis in a.axes)


def _l2_shape(call: Call) -> tuple[Shape, ...]:
    _l2_axes(call)
    return same(call)


def _l2_ops(call: Call) -> Ops:
    a: L2Norm = call.attributes or L2Norm()
    size = elements(call.y)
    length = elements(tuple(call.x[axis] for axis in _l2_axes(call)))
    ops = Ops(mul=1, add=1, div=1) * size + Ops(exp=size // length)
    return ops + Ops(mul=size) if a.scale else ops


def _l2_params(call: Call) -> tuple[Param, ...]:
    a: L2Norm = call.attributes or L2Norm()
    if not a.scale:
        return ()
    return (param("weight", (1,) if a.shared_scale else (call.x[1],), "scale"),)


def _l2_saves(call: Call) -> Saved:
    """The input, its norms before and after they are kept from zero; a scale needs the quotient."""
    a: L2Norm = call.attributes or L2Norm()
    size = elements(call.x)
    norms = size // elements(tuple(call.x[axis] for axis in _l2_axes(call)))
    return Saved(inputs=(0,), extra=((2 * norms + (size if a.scale else 0), ""),))


def _without(axes: tuple[int, ...], call: Call) -> tuple[AccessMap, ...]:
    return (keep(tuple(axis for axis in range(len(call.x)) if axis not in axes)),)


def _values(call: Call) -> tuple[int, Shape]:
    """The first axis along which values of Scale or Bias stand, and their shape."""
    a: Scale | Bias = call.attributes or Scale()
    given = call.inputs[1] if len(call.inputs) == 2 else None
    if given == ():
        return 0, ()
    axis = axis_of(a.axis, len(call.x))
    if given is None:
        end = len(call.x) if a.axes == -1 else axis + a.axes
        if not axis <= end <= len(call.x):
            raise ShapeError(f"{a.axes} axes from {axis} on of a tensor with {len(call.x)}")
        return axis, call.x[axis:end]
    if call.x[axis : axis + len(given)] != given:
        shapes = " by ".join("x".join(map(str, shape)) for shape in call.inputs)
        raise ShapeError(f"scaling or shifting {shapes} from axis {axis} on: they do not agree")
    return axis, given


def _values_access(call: Call) -> tuple[AccessMap, ...]:
    every = keep(range(len(call.y)))
    if len(call.inputs) == 1:
        return (every,)
    axis, shape = _values(call)
    return (every, {n: (axis + n, SAME) for n in range(len(shape))})


def _scale_ops(call: Call) -> Ops:
    a: Scale = call.attributes or Scale()
    return Ops(mul=1, add=1 if a.bias else 0) * elements(call.y)


def _scale_params(call: Call) -> tuple[Param, ...]:
    learned = _affine(_values(call)[1], (call.attributes or Scale()).bias)
    return learned[1:] if len(call.inputs) == 2 else learned


def _bias_params(call: Call) -> tuple[Param, ...]:
    return () if len(call.inputs) == 2 else (param("bias", _values(call)[1], "bias"),)


def _scale_shape(call: Call) -> tuple[Shape, ...]:
    _values(call)
    return same(call)


def _with_statistics(count: Callable[[Call], int]) -> SavedRule:
    """The input, and the mean and deviation of every group."""
    return lambda call: Saved(inputs=(0,), extra=((2 * count(call), ""),))


def _batch_saves(call: Call) -> Saved:
    """The input, and mean and deviation of every channel; none by stored statistics."""
    a: BatchNorm = call.attributes or BatchNorm()
    given = range(1, len(call.inputs))
    arrays = tuple([n for n in given if not (a.affine and n == (2 if a.scale else 1))])
    return Saved(inputs=(0, *arrays), extra=() if a.evaluated else ((2 * call.x[1], ""),))


def _instance_saves(call: Call) -> Saved:
    """As a batch norm of N x C channels: a scale is repeated for every example."""
    a: InstanceNorm = call.attributes or InstanceNorm()
    channels = elements(call.x[:2])
    kept = (3 if a.affine else 2) * channels
    return Saved(inputs=(0,), extra=((kept, ""),), contiguous=((0, False),))


def _group_saves(call: Call) -> Saved:
    """The input, and mean and deviation of every group."""
    groups = call.x[0] * call.attributes.groups
    return Saved(inputs=(0,), extra=((2 * groups, ""),), contiguous=((0, True),))


def _scale_saves(call: Call) -> Saved:
    if len(call.inputs) == 2:
        return Saved(crossed=((0, 1), (1, 0)))
    return Saved(crossed=((0, WEIGHT),))


def _lrn_saves(call: Call) -> Saved:
    """Several operators in PyTorch: the input, the padded squares, the sum and its power."""
    size = elements(call.x)
    padded = size // call.x[1] * (call.x[1] + call.attributes.size - 1)
    return Saved(inputs=(0,), extra=((padded + 2 * size, ""),))


def _norm_backward(call: Call) -> tuple[Ops, Ops]:
    """Inputs: the two sums over a group and the combination; params: a product and two sums."""
    size = elements(call.y)
    return Ops(mul=3, add=3) * size, Ops(mul=1, add=2) * size


SPECS = {
    "batch_norm": with_param_inputs(
        OpSpec(
            family="normalization",
            attributes=BatchNorm,
            names={
                "torch": "BatchNorm{}d",
                "torch_function": "batch_norm",
                "caffe": "BatchNorm",
                "matconvnet": "bnorm",
                "dagnn": "BatchNorm",
                "keras": "BatchNormalization",
            },
            shape=_batch_shape,
            ops=_batch_ops,
            params=_batch_params,
            backward=_norm_backward,
            in_place=True,
            saved_for_backward=_batch_saves,
        ),
        4,
        saved_for_backward=_batch_saves,
    ),
    "layer_norm": with_param_inputs(
        OpSpec(
            family="normalization",
            attributes=LayerNorm,
            names={
                "torch": "LayerNorm",
                "torch_function": "layer_norm",
                "keras": "LayerNormalization",
            },
            shape=_layer_shape,
            ops=_layer_ops,
            params=_layer_params,
            access_map=lambda call: (keep(range(_layer_axes(call))),),
            backward=_norm_backward,
            saved_for_backward=_with_statistics(lambda call: elements(call.x[: _layer_axes(call)])),
        ),
        2,
    ),
    "group_norm": with_param_inputs(
        OpSpec(
            family="normalization",
            attributes=GroupNorm,
            names={
                "torch": "GroupNorm",
                "torch_function": "group_norm",
                "keras": "GroupNormalization",
            },
            shape=_group_shape,
            ops=_group_ops,
            params=lambda call: _affine((call.x[1],)) if call.attributes.affine else (),
            access_map=lambda call: (keep((0,)),),
            backward=_norm_backward,
            saved_for_backward=_group_saves,
        ),
        2,
    ),
    "instance_norm": with_param_inputs(
        OpSpec(
            family="normalization",
            attributes=InstanceNorm,
            names={"torch": "InstanceNorm{}d", "torch_function": "instance_norm"},
            shape=_instance_shape,
            ops=_instance_ops,
            params=lambda call: (
                _affine((call.x[1],)) if (call.attributes or InstanceNorm()).affine else ()
            ),
            saved_for_backward=_instance_saves,
            access_map=lambda call: (keep((0, 1)),),
            backward=_norm_backward,
        ),
        2,
    ),
    "rms_norm": with_param_inputs(
        OpSpec(
            family="normalization",
            attributes=RMSNorm,
            names={
                "torch": "RMSNorm",
                "torch_function": "rms_norm",
                "keras": "RMSNormalization",
            },
            shape=_rms_shape,
            ops=_rms_ops,
            params=_rms_params,
            access_map=lambda call: (keep(range(_rms_axis(call))),),
            backward=_norm_backward,
            saved_for_backward=lambda call: Saved(
                inputs=(0,), extra=((elements(call.x[: _rms_axis(call)]), ""),)
            ),
        ),
        1,
    ),
    "lrn": OpSpec(
        family="normalization",
        attributes=LocalResponseNorm,
        names={
            "torch": "LocalResponseNorm",
            "torch_function": "local_response_norm",
            "caffe": "LRN",
            "matconvnet": "norm",
            "dagnn": "LRN",
        },
        shape=_batch_shape,
        ops=_lrn_ops,
        access_map=_lrn_access,
        backward=lambda call: (_lrn_ops(call) * 2, Ops()),
        saved_for_backward=_lrn_saves,
    ),
    "l2_norm": OpSpec(
        family="normalization",
        attributes=L2Norm,
        names={"caffe": "Normalize"},
        shape=_l2_shape,
        ops=_l2_ops,
        params=_l2_params,
        access_map=lambda call: _without(_l2_axes(call), call),
        backward=_norm_backward,
        saved_for_backward=_l2_saves,
    ),
    "scale": OpSpec(
        family="normalization",
        attributes=Scale,
        names={"torch": "", "torch_function": "", "caffe": "Scale", "dagnn": "Scale"},
        shape=_scale_shape,
        ops=_scale_ops,
        params=_scale_params,
        access_map=_values_access,
        backward=lambda call: (Ops(mul=call.out_elements), Ops(mul=1, add=2) * call.out_elements),
        in_place=True,
        saved_for_backward=_scale_saves,
        arity=(1, 2),
    ),
    "bias": OpSpec(
        family="normalization",
        attributes=Bias,
        shape=_scale_shape,
        ops=lambda call: Ops(add=call.out_elements),
        params=_bias_params,
        access_map=_values_access,
        backward=lambda call: (FREE, Ops(add=call.out_elements)),
        in_place=True,
        saved_for_backward=nothing,
        arity=(1, 2),
    ),
}
