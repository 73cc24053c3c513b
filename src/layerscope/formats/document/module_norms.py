"""Normalization layers of a printed module."""

from __future__ import annotations

from layerscope.formats.document.module_arguments import Arguments
from layerscope.formats.document.module_layer import RANKS, Reader, TextLayer, plane
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Shape


def _statistics(channels: int) -> tuple[Param, ...]:
    return (
        Param("running_mean", (channels,), "statistic"),
        Param("running_var", (channels,), "statistic"),
    )


def _scale_and_bias(shape: Shape, *, bias: bool = True) -> tuple[Param, ...]:
    scale = Param("weight", shape, "scale")
    return (scale, Param("bias", shape, "bias")) if bias else (scale,)


def _batch_norm(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, affine = a.count(0), a.flag("affine", default=True)
        bias = a.flag("bias", default=affine)
        tracks = a.flag("track_running_stats", default=True)
        attributes = at.BatchNorm(affine, a.number("eps", 1e-5), a.number("momentum", 0.1))
        params = None
        if not tracks or (affine and not bias):
            learned = _scale_and_bias((channels,), bias=bias) if affine else ()
            params = (*learned, *(_statistics(channels) if tracks else ()))
        unusual = params is not None or a.value("momentum") is None
        return TextLayer(
            "batch_norm", attributes, plane(channels, rank), channels,
            params=params, keeps_text=unusual or not affine,
        )  # fmt: skip

    return read


def _frozen_batch_norm(a: Arguments) -> TextLayer:
    channels = a.count(0)
    params = tuple(
        Param(name, (channels,), "statistic")
        for name in ("weight", "bias", "running_mean", "running_var")
    )
    attributes = at.BatchNorm(eps=a.number("eps", 1e-5), evaluated=True)
    return TextLayer(
        "batch_norm", attributes, plane(channels, 2), channels, params=params, keeps_text=True
    )


def _instance_norm(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, affine = a.count(0), a.flag("affine", default=False)
        attributes = at.InstanceNorm(affine, a.number("eps", 1e-5))
        tracks = a.flag("track_running_stats", default=False)
        learned = _scale_and_bias((channels,)) if affine else ()
        params = (*learned, *_statistics(channels)) if tracks else None
        return TextLayer(
            "instance_norm", attributes, plane(channels, rank), channels,
            params=params, keeps_text=True,
        )  # fmt: skip

    return read


def _normalized(a: Arguments) -> Shape:
    given = a.value(0) if a.positional else None
    rank = len(given) if isinstance(given, tuple) else 1
    return a.sizes(0, max(rank, 1))


def _layer_norm(a: Arguments) -> TextLayer:
    shape, affine = _normalized(a), a.flag("elementwise_affine", default=True)
    bias = a.flag("bias", default=affine)
    attributes = at.LayerNorm(-len(shape), affine, bias or not affine, a.number("eps", 1e-5))
    return TextLayer("layer_norm", attributes, (1, *shape), trailing=shape, keeps_text=not affine)


def _rms_norm(a: Arguments) -> TextLayer:
    shape, affine = _normalized(a), a.flag("elementwise_affine", default=True)
    attributes = at.RMSNorm(-len(shape), affine, a.number("eps", 1e-6))
    return TextLayer("rms_norm", attributes, (1, *shape), trailing=shape, keeps_text=True)


def _group_norm(a: Arguments) -> TextLayer:
    groups, channels = a.count(0), a.count(1)
    affine = a.flag("affine", default=True)
    attributes = at.GroupNorm(groups, affine, a.number("eps", 1e-5))
    params = None
    if affine and not a.flag("bias", default=True):
        params = _scale_and_bias((channels,), bias=False)
    return TextLayer(
        "group_norm", attributes, plane(channels, 1), channels,
        params=params, keeps_text=not affine or params is not None,
    )  # fmt: skip


def _lrn(a: Arguments) -> TextLayer:
    numbers = (a.number("alpha", 1e-4), a.number("beta", 0.75), a.number("k", 1.0))
    return TextLayer("lrn", at.LocalResponseNorm(a.count(0), *numbers))


NORMS: dict[str, Reader] = {
    **{f"BatchNorm{n}d": _batch_norm(n) for n in RANKS},
    "SyncBatchNorm": _batch_norm(2),
    "FrozenBatchNorm2d": _frozen_batch_norm,
    **{f"InstanceNorm{n}d": _instance_norm(n) for n in RANKS},
    "LayerNorm": _layer_norm,
    "RMSNorm": _rms_norm,
    "GroupNorm": _group_norm,
    "LocalResponseNorm": _lrn,
}
