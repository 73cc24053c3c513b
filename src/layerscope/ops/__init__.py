"""SPECS: the schema of every op, by name. To add an op, write its OpSpec in its family's file."""

from __future__ import annotations

from layerscope.ops import (
    activation,
    attention,
    caffe_recurrent,
    control,
    convolution,
    data_dependent,
    elementwise,
    fft,
    indexing,
    layout,
    linalg,
    linear,
    loss,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    roi,
    search,
    slice_concat,
)
from layerscope.ops.spec import FREE, Call, Gemm, Ops, OpSpec
from layerscope.tables import merge_tables

SPECS: dict[str, OpSpec] = merge_tables(
    "ops",
    convolution.SPECS,
    linear.SPECS,
    pooling.SPECS,
    normalization.SPECS,
    activation.SPECS,
    elementwise.SPECS,
    loss.SPECS,
    layout.SPECS,
    slice_concat.SPECS,
    resize.SPECS,
    roi.SPECS,
    reduction.SPECS,
    indexing.SPECS,
    attention.SPECS,
    recurrent.SPECS,
    caffe_recurrent.SPECS,
    quantization.SPECS,
    data_dependent.SPECS,
    fft.SPECS,
    control.SPECS,
    search.SPECS,
    linalg.SPECS,
)


def display_name(op: str, system: str) -> str | None:
    """Name of an op in another system; None if it has none there.

    - `torch`, `torch_function`: class in torch.nn and function, {} for the number of spatial axes
    - `caffe`: type of a layer
    - `matconvnet`, `dagnn`: type in the table of a SimpleNN, class of a layer of a DagNN
    - `keras`: class of a layer, {} for the number of spatial axes
    - `sheet`: kind of line in layer sheets
    - `plural`: in sentences of explanations

    An empty name says that the op is one step of a layer that has a name as a whole.
    """
    spec = SPECS.get(op)
    return None if spec is None else spec.names.get(system)


__all__ = ["FREE", "SPECS", "Call", "Gemm", "OpSpec", "Ops", "display_name"]
