"""Caffe's blobs: shape and dtype of stored arrays, and the params of nodes that they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.codecs.message import Message
from layerscope.formats.caffe.inputs import MOST, MOST_AXES
from layerscope.graph.names import shape_text
from layerscope.graph.types import Param, Role, Shape, elements
from layerscope.ops import SPECS

if TYPE_CHECKING:
    from layerscope.formats.caffe.layer import CaffeLayer

FOUR = ("num", "channels", "height", "width")  # the fields of a shape before `shape` was one
RAW = {"DOUBLE": ("fp64", 8), "FLOAT": ("fp32", 4), "FLOAT16": ("fp16", 2)}
ROLES: dict[tuple[str, str], Role] = {
    ("scale", "weight"): "scale",
    ("batch_norm", "weight"): "scale",
    ("l2_norm", "weight"): "scale",
    ("prelu", "weight"): "slope",
    ("embedding", "weight"): "embedding",
}
MATRICES = ("linear", "embedding", "caffe_lstm", "caffe_rnn")  # weights have two axes
VECTORS = ("prelu", "l2_norm", "batch_norm")  # arrays have one value per channel, or one value
ANY_RANK = ("scale", "bias")  # arrays have as many axes as `num_axes` says


class Blob(Struct, frozen=True, gc=False):
    """Shape and dtype of a stored array."""

    shape: Shape
    dtype: str = "fp32"


def blobs_of(layer: Message) -> tuple[Blob, ...]:
    """The blobs of a layer; raises where a blob does not have as many numbers as its shape."""
    return tuple(_blob(layer, blob) for blob in layer.messages("blobs"))


def _blob(layer: Message, blob: Message) -> Blob:
    if any(name in blob for name in FOUR):
        shape = tuple(blob.whole(name) for name in FOUR)
    else:
        shape = tuple(blob.message("shape").wholes("dim"))
    name = layer.text("name")
    if len(shape) > MOST_AXES or any(not 0 <= size <= MOST for size in shape):
        raise blob.error(
            f"{name}: an array of {shape_text(shape, '1')}, expected sizes from 0 to {MOST}"
        )
    dtype, count = _stored(blob)
    if count != elements(shape):
        raise blob.error(
            f"{name}: an array of {shape_text(shape, '1')} has {elements(shape)} numbers, "
            f"{count} are stored"
        )
    return Blob(shape, dtype)


def _stored(blob: Message) -> tuple[str, int]:
    """Dtype and number of the stored values."""
    if blob.whole("raw_data"):
        dtype, size = RAW[blob.choice("raw_data_type", tuple(RAW), "FLOAT")]
        return dtype, blob.whole("raw_data") // size
    double = blob.whole("double_data")
    return ("fp64", double) if double else ("fp32", blob.whole("data"))


def names_text(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def assign_blobs(layer: CaffeLayer, blobs: Sequence[Blob]) -> None:
    """Set the params of a layer's nodes from its stored blobs."""
    named = [node for node in layer.nodes if node.blobs]
    if not named:  # no param names for this type: every blob becomes a weight of the last node
        if layer.nodes and (blobs or layer.nodes[-1].op not in SPECS):
            own = [Param(f"blob{n}", b.shape, "weight", b.dtype) for n, b in enumerate(blobs, 1)]
            layer.nodes[-1].params = tuple(own)
        return
    most = max(len(node.blobs) for node in named)
    if len(blobs) > most:
        raise layer.error(f"{len(blobs)} arrays are stored, expected at most {most}")
    for node in named:
        node.params = tuple(
            _param(layer, node.op, name, blob)
            for name, blob in zip(node.blobs, blobs, strict=False)
            if name
        )


def _param(layer: CaffeLayer, op: str, name: str, blob: Blob) -> Param:
    role = ROLES.get((op, name), "bias" if name.startswith("bias") else "weight")
    shape = blob.shape
    if name.startswith("running_"):
        role = "statistic"
    if op in VECTORS or (role == "bias" and op not in ANY_RANK):
        shape = (elements(shape),)
    elif op in MATRICES:
        while len(shape) > 2 and shape[0] == 1:
            shape = shape[1:]
        if op == "linear" and _transposed(layer):
            shape = shape[::-1]
    return Param(name, shape, role, blob.dtype)


def _transposed(layer: CaffeLayer) -> bool:
    return layer.param("inner_product_param", "squeeze_inner_product_param").flag("transpose")
