"""Norms: their arrays are the node's own where the file stores them."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role
from layerscope.ops.spec import axis_of

Arrays = Sequence[tuple[int, str, Role]]


def arrays(s: Site, wanted: Arrays) -> tuple[list[Param], list[Known]]:
    """Arrays of the file as params, those that the network makes as further inputs."""
    params: list[Param] = []
    given: list[Known] = []
    for n, name, role in wanted:
        if s.stored(n):
            params.append(s.param(n, name, role))
        elif s.has(n):
            given.append(s.given(n))
    return params, given


AFFINE: Arrays = ((1, "weight", "scale"), (2, "bias", "bias"))
STATISTICS: Arrays = ((3, "running_mean", "statistic"), (4, "running_var", "statistic"))


def batch_norm(s: Site) -> None:
    """BatchNormalization by stored statistics."""
    params, given = arrays(s, (*AFFINE, *STATISTICS))
    told = at.BatchNorm(eps=s.real("epsilon", 1e-5), momentum=s.real("momentum", 0.9))
    outputs = s.operator.outputs
    s.emit("batch_norm", (s.given(0), *given), told, params=params, outputs=outputs[:1])
    for n in range(1, len(outputs)):
        s.extra(n, s.shape(0)[1:2], s.dtype(0))


def instance_norm(s: Site) -> None:
    """InstanceNormalization."""
    params, given = arrays(s, AFFINE)
    told = at.InstanceNorm(affine=True, eps=s.real("epsilon", 1e-5))
    s.emit("instance_norm", (s.given(0), *given), told, params=params)


def layer_norm(s: Site) -> None:
    """LayerNormalization; mean and deviation come with it."""
    params, given = arrays(s, AFFINE)
    x = s.shape(0)
    axis = axis_of(s.whole("axis", -1), len(x))
    told = at.LayerNorm(axis - len(x), bias=s.has(2), eps=s.real("epsilon", 1e-5))
    outputs = s.operator.outputs
    s.emit("layer_norm", (s.given(0), *given), told, params=params, outputs=outputs[:1])
    for n in (1, 2):
        s.extra(n, (*x[:axis], *(1 for _ in x[axis:])), "fp32")


def group_norm(s: Site) -> None:
    """GroupNormalization."""
    params, given = arrays(s, AFFINE)
    told = at.GroupNorm(s.whole("num_groups", 1), eps=s.real("epsilon", 1e-5))
    s.emit("group_norm", (s.given(0), *given), told, params=params)


def rms_norm(s: Site) -> None:
    """RMSNormalization, and SimplifiedLayerNormalization before it."""
    params, given = arrays(s, ((1, "weight", "scale"),))
    x = s.shape(0)
    axis = axis_of(s.whole("axis", -1), len(x))
    told = at.RMSNorm(axis - len(x), eps=s.real("epsilon", 1e-5))
    outputs = s.operator.outputs
    s.emit("rms_norm", (s.given(0), *given), told, params=params, outputs=outputs[:1])
    s.extra(1, (*x[:axis], *(1 for _ in x[axis:])), "fp32")


def response_norm(s: Site) -> None:
    """LRN."""
    told = at.LocalResponseNorm(
        s.whole("size", 1), s.real("alpha", 1e-4), s.real("beta", 0.75), s.real("bias", 1.0)
    )
    s.emit("lrn", (s.given(0),), told)


def lp_norm(s: Site) -> None:
    """LpNormalization: division by a norm along one axis."""
    x = s.given(0)
    axis = s.whole("axis", -1)
    if s.whole("p", 2) == 2:
        s.emit("l2_norm", (x,), at.L2Norm((axis_of(axis, len(s.shape(0))),)))
        return
    norm = s.emit("reduce_l1", (x,), at.Reduce((axis,), keep=True), part="norm")[0]
    s.emit("div", (x, norm))


def mean_variance(s: Site) -> None:
    """MeanVarianceNormalization, by its steps."""
    x = s.given(0)
    told = at.Reduce(s.wholes("axes", (0, 2, 3)), keep=True)
    if len(s.shape(0)) < 3:
        raise ShapeError(f"normalisation of {s.shape(0)} over {told.axes}")
    mean = s.emit("reduce_mean", (x,), told, part="mean")[0]
    centred = s.emit("sub", (x, mean), part="centred")[0]
    squares = s.emit("square", (centred,), part="squares")[0]
    variance = s.emit("reduce_mean", (squares,), told, part="variance")[0]
    root = s.emit("sqrt", (variance,), part="deviation")[0]
    s.emit("div", (centred, root))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "BatchNormalization"): batch_norm,
    ("", "InstanceNormalization"): instance_norm,
    ("", "LayerNormalization"): layer_norm,
    ("com.microsoft", "LayerNormalization"): layer_norm,
    ("", "GroupNormalization"): group_norm,
    ("", "RMSNormalization"): rms_norm,
    ("", "SimplifiedLayerNormalization"): rms_norm,
    ("com.microsoft", "SimplifiedLayerNormalization"): rms_norm,
    ("com.microsoft", "RMSNormalization"): rms_norm,
    ("", "LRN"): response_norm,
    ("", "LpNormalization"): lp_norm,
    ("", "MeanVarianceNormalization"): mean_variance,
}
