"""Caffe's stored arrays: their shapes, and the params that they are of a layer's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.codecs.message import Message
from layerscope.formats.caffe.inputs import MOST, MOST_AXES
from layerscope.graph.types import Param, Role, Shape, elements
from layerscope.ops import SPECS

if TYPE_CHECKING:
    from layerscope.formats.caffe.layer import Layer

FOUR = ("num", "channels", "height", "width")  # how shapes were told before there was `shape`
RAW = {"DOUBLE": ("fp64", 8), "FLOAT": ("fp32", 4), "FLOAT16": ("fp16", 2)}
ROLES: dict[tuple[str, str], Role] = {
    ("scale", "weight"): "scale",
    ("batch_norm", "weight"): "scale",
    ("l2_norm", "weight"): "scale",
    ("prelu", "weight"): "slope",
    ("embedding", "weight"): "embedding",
}
MATRICES = ("linear", "embedding", "caffe_lstm", "caffe_rnn")  # whose weights have two axes
VECTORS = ("prelu", "l2_norm", "batch_norm")  # whose arrays have one value a channel, or one
FREE = ("scale", "bias")  # whose arrays have as many axes as they are told


class Blob(Struct, frozen=True, gc=False):
    """An array as it is stored."""

    shape: Shape
    dtype: str = "fp32"


def blobs_of(layer: Message) -> tuple[Blob, ...]:
    """The arrays of a layer; raises where an array has not as many numbers as its shape says."""
    return tuple(_blob(layer, blob) for blob in layer.messages("blobs"))


def _blob(layer: Message, blob: Message) -> Blob:
    if any(name in blob for name in FOUR):
        shape = tuple(blob.whole(name) for name in FOUR)
    else:
        shape = tuple(blob.message("shape").wholes("dim"))
    name = layer.text("name")
    if len(shape) > MOST_AXES or any(not 0 <= size <= MOST for size in shape):
        raise blob.error(f"{name}: an array of {told(shape)}, expected sizes from 0 to {MOST}")
    dtype, count = _stored(blob)
    if count != elements(shape):
        raise blob.error(
            f"{name}: an array of {told(shape)} has {elements(shape)} numbers, {count} are stored"
        )
    return Blob(shape, dtype)


def _stored(blob: Message) -> tuple[str, int]:
    """Number type and count of what is stored."""
    if blob.whole("raw_data"):
        dtype, size = RAW[blob.choice("raw_data_type", tuple(RAW), "FLOAT")]
        return dtype, blob.whole("raw_data") // size
    double = blob.whole("double_data")
    return ("fp64", double) if double else ("fp32", blob.whole("data"))


def told(shape: Shape) -> str:
    """A shape as people write it."""
    return "x".join(map(str, shape)) or "1"


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def store(layer: Layer, blobs: Sequence[Blob]) -> None:
    """Give the nodes of a layer the arrays that are stored for it."""
    named = [draft for draft in layer.drafts if draft.blobs]
    if not named:  # of a type that is not known to have any: all are its own
        if layer.drafts and (blobs or layer.drafts[-1].op not in SPECS):
            own = [Param(f"blob{n}", b.shape, "weight", b.dtype) for n, b in enumerate(blobs, 1)]
            layer.drafts[-1].params = tuple(own)
        return
    most = max(len(draft.blobs) for draft in named)
    if len(blobs) > most:
        raise layer.error(f"{len(blobs)} arrays are stored, expected at most {most}")
    for draft in named:
        draft.params = tuple(
            _param(layer, draft.op, name, blob)
            for name, blob in zip(draft.blobs, blobs, strict=False)
            if name
        )


def _param(layer: Layer, op: str, name: str, blob: Blob) -> Param:
    role = ROLES.get((op, name), "bias" if name.startswith("bias") else "weight")
    shape = blob.shape
    if name.startswith("running_"):
        role = "statistic"
    if op in VECTORS or (role == "bias" and op not in FREE):
        shape = (elements(shape),)
    elif op in MATRICES:
        while len(shape) > 2 and shape[0] == 1:
            shape = shape[1:]
        if op == "linear" and _transposed(layer):
            shape = shape[::-1]
    return Param(name, shape, role, blob.dtype)


def _transposed(layer: Layer) -> bool:
    return layer.param("inner_product_param", "squeeze_inner_product_param").flag("transpose")
