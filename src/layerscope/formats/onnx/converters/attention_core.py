"""Scaled dot-product attention with heads, masks and key/value caches, shared by converters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.onnx.dtypes import FLOATS
from layerscope.formats.onnx.node import OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

UNKNOWN_LENGTH = "the filled length of the cache is run-time data: all of it is counted"


class AttentionConfig(Struct, frozen=True):
    """Options of attention."""

    heads: int
    kv_heads: int = 0  # 0: as many as heads
    causal: bool = False
    scaled: bool = True
    softcap: float = 0.0
    scores: str = ""  # the output that takes the scores
    stage: int = 0  # of these scores. 0: QK products, 1: with the mask, 2: capped, 3: softmax
    note: str = ""  # why the figures are an upper bound


class QKV(NamedTuple):
    """Queries, keys and values."""

    q: TensorInfo
    k: TensorInfo
    v: TensorInfo

    def by_heads(self, node: OnnxNode, heads: int, kv_heads: int) -> QKV:
        """Each as N x heads x T x size."""
        return QKV(
            by_heads(node, self.q, heads, "queries"),
            by_heads(node, self.k, kv_heads, "keys"),
            by_heads(node, self.v, kv_heads, "values"),
        )


def view(
    node: OnnxNode,
    tensor: TensorInfo,
    shape: Shape,
    part: str,
    outputs: Sequence[str] | None = None,
) -> TensorInfo:
    """The same elements in another shape."""
    if tensor.shape == shape and not outputs:
        return tensor
    attrs = at.DeclaredOutputs((shape,), (tensor.dtype,))
    return node.emit("select", (tensor,), attrs, part=part, outputs=outputs, roles="constant")[0]


def by_heads(node: OnnxNode, tensor: TensorInfo, heads: int, part: str) -> TensorInfo:
    """N x T x (heads · size) as N x heads x T x size."""
    shape = tensor.shape
    assert shape is not None
    if len(shape) == 4:
        return tensor
    if len(shape) != 3 or shape[2] % heads:
        raise ShapeError(f"{shape} cut into {heads} heads")
    return view(node, tensor, (shape[0], heads, shape[1], shape[2] // heads), part)


def attend(
    node: OnnxNode,
    qkv: QKV,
    config: AttentionConfig,
    mask: TensorInfo | None = None,
    *,
    part: str = "",
) -> TensorInfo:
    """Attention: one node, or several if an output takes the scores."""
    kv_heads = config.kv_heads or config.heads
    assert qkv.q.shape is not None
    assert qkv.k.shape is not None
    assert qkv.v.shape is not None
    flat = len(qkv.q.shape) == 3
    if flat and (len(qkv.k.shape) == 4 or len(qkv.v.shape) == 4):
        qkv = qkv.by_heads(node, config.heads, kv_heads)
    assert qkv.q.shape is not None
    kind = _kind(mask) if mask is not None else ""
    attrs = at.Attention(
        config.heads, config.kv_heads, causal=config.causal, scaled=config.scaled, mask=kind,
        softcap=config.softcap,
    )  # fmt: skip
    split_heads = flat and len(qkv.q.shape) == 4
    inside = "attention" if split_heads else part
    more = (mask,) if mask is not None else ()
    if not config.scores:
        y = node.emit(
            "attention", (*qkv, *more), attrs, part=inside,
            outputs=None if inside else node.outputs[:1],
            estimate=bool(config.note), note=config.note,
        )[0]  # fmt: skip
    else:
        qkv = qkv.by_heads(node, config.heads, kv_heads)
        split_heads = flat
        y = _by_steps(node, qkv, config, mask, part="context" if split_heads else part)
    if not split_heads:
        return y
    assert y.shape is not None
    batch, heads, steps, size = y.shape
    outputs = None if part else node.outputs[:1]
    return view(node, y, (batch, steps, heads * size), part, outputs)


def _kind(mask: TensorInfo) -> Literal["add", "bool"]:
    """Floats are added to scores, booleans select them."""
    return "add" if mask.dtype in FLOATS else "bool"


def _by_steps(
    node: OnnxNode, qkv: QKV, config: AttentionConfig, mask: TensorInfo | None, *, part: str
) -> TensorInfo:
    """Attention as separate matmul, scale, mask and softmax nodes."""
    q, k, v = qkv
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    batch, heads, steps, size = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    shared = heads // kv_heads
    scores: Shape = (batch, heads, steps, keys)
    if shared > 1:
        q = view(node, q, (batch, kv_heads, shared, steps, size), "groups")
        k = view(node, k, (batch, kv_heads, 1, keys, size), "keys_of_groups")
        v = view(node, v, (batch, kv_heads, 1, keys, v.shape[3]), "values_of_groups")
    y = node.emit("matmul", (q, k), at.MatMul(False, True), part="scores")[0]
    y = view(node, y, scores, "of_heads")
    if config.scaled:
        y = node.emit("mul", (y,), part="scale")[0]
    _output_scores(node, y, config, 0)
    if config.softcap:
        y = node.emit("div", (y,), part="cap_in")[0]
        y = node.emit("tanh", (y,), part="cap")[0]
        y = node.emit("mul", (y,), part="cap_out")[0]
    _output_scores(node, y, config, 2)
    if mask is not None:
        if _kind(mask) == "add":
            y = node.emit("add", (y, mask), part="mask")[0]
        else:
            y = node.emit("where", (mask, y, y), part="mask")[0]
    if config.causal:
        y = node.emit("trilu", (y,), part="causal")[0]
    _output_scores(node, y, config, 1)
    y = node.emit("softmax", (y,), at.Softmax(-1), part="softmax")[0]
    _output_scores(node, y, config, 3)
    if shared > 1:
        y = view(node, y, (batch, kv_heads, shared, steps, keys), "weights_of_groups")
    whole = shared == 1
    outputs = None if part or not whole else node.outputs[:1]
    y = node.emit("matmul", (y, v), part=part if whole else "product", outputs=outputs)[0]
    if whole:
        return y
    assert y.shape is not None
    outputs = None if part else node.outputs[:1]
    return view(node, y, (batch, heads, steps, y.shape[-1]), part, outputs)


def _output_scores(node: OnnxNode, scores: TensorInfo, config: AttentionConfig, stage: int) -> None:
    if config.scores and config.stage == stage:
        node.emit("identity", (scores,), part="handed_out", outputs=[config.scores])


def output(node: OnnxNode, n: int) -> str:
    """The name of the n-th output; "" if it is not used."""
    names = node.outputs
    return names[n] if n < len(names) else ""


def append_cache(
    node: OnnxNode, past: TensorInfo | None, new: TensorInfo, length: int, names: tuple[str, str]
) -> TensorInfo:
    """A key or value cache with new steps after the past ones, `length` of them in all.

    `names` are the part's name and that of the output it is, if any.
    """
    part, name = names
    assert new.shape is not None
    outputs = [name] if name else None
    if past is None or past.shape is None or 0 in past.shape:
        return view(node, new, new.shape, part, outputs)
    batch, heads, steps, size = new.shape
    if past.shape != (batch, heads, past.shape[2], size):
        raise ShapeError(f"a cache of {past.shape} for {new.shape}")
    if length == past.shape[2] + steps:
        return node.emit("concat", (past, new), at.Concat(2), part=part, outputs=outputs)[0]
    attrs = at.DeclaredOutputs(((batch, heads, length, size),), (new.dtype,))
    return node.emit("select", (past, new), attrs, part=part, outputs=outputs)[0]


def mask_of(node: OnnxNode, name: str, scores: Shape) -> TensorInfo | None:
    """A mask for scores of batch x heads x queries x keys, from any of the shapes it may have."""
    tensor = node.optional(name)
    if tensor is None:
        return None
    n = node.index(name)
    shape = tensor.shape
    assert shape is not None
    batch, _, steps, keys = scores
    if len(shape) == 1:  # lengths: compared with positions
        lengths = view(node, tensor, (batch, 1, 1, 1), "lengths")
        positions = node.emit_shaped("constant", (), ((keys,),), (tensor.dtype,), part="places")[0]
        return node.emit("compare", (lengths, positions), part="mask_of_lengths")[0]
    if len(shape) == 2:
        return view(node, tensor, (shape[0], 1, 1, keys), f"mask{n}")
    if len(shape) == 3:
        return view(node, tensor, (shape[0], 1, steps, keys), f"mask{n}")
    return view(node, tensor, (*shape[:2], min(shape[2], steps), keys), f"mask{n}")


def masks(node: OnnxNode, names: Sequence[str], scores: Shape) -> TensorInfo | None:
    """The sum of all masks and biases of the scores."""
    found = [mask for name in names if (mask := mask_of(node, name, scores)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    return node.emit("add", found, part="masks")[0]


def past_sides(
    node: OnnxNode, past: TensorInfo | None
) -> tuple[TensorInfo | None, TensorInfo | None]:
    """Keys and values of a cache that has both in one tensor."""
    if past is None:
        return None, None
    shape = past.shape
    if shape is None or len(shape) != 5 or shape[0] != 2:
        raise ShapeError(f"a cache of {shape}, expected 2 x N x heads x steps x size")
    return view(node, past, shape[1:], "past_keys"), view(node, past, shape[1:], "past_values")


def cache_length(
    node: OnnxNode, past: TensorInfo | None, axis: int, steps: int, share: bool
) -> tuple[int, str]:
    """Number of keys, past and new; of a shared buffer, as many as are filled, if that is known."""
    if past is None or past.shape is None:
        return steps, ""
    room = past.shape[axis]
    if not share:
        return room + steps, ""
    value = node.value("past_sequence_length")
    if value is None:
        return room, UNKNOWN_LENGTH
    return min(int(value.item) + steps, room), ""


def filled(
    node: OnnxNode, k: TensorInfo, v: TensorInfo, total: int
) -> tuple[TensorInfo, TensorInfo]:
    """The first `total` steps of cache buffers."""
    assert k.shape is not None
    assert v.shape is not None
    return (
        view(node, k, (*k.shape[:2], total, k.shape[3]), "filled_keys"),
        view(node, v, (*v.shape[:2], total, v.shape[3]), "filled_values"),
    )
