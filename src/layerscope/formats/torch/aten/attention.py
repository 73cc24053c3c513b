"""Scaled dot-product attention, and the fused kernels of it."""

from __future__ import annotations

from msgspec import Struct

from layerscope.formats.torch.aten.layout import broadcast_to, reshape
from layerscope.formats.torch.aten.linear import linear
from layerscope.formats.torch.aten.signatures import Converter, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.formats.torch.lowering import same_dtypes as one_dtype
from layerscope.graph import attributes as at


class AttentionArgs(Struct, frozen=True):
    """Arguments of aten::scaled_dot_product_attention."""

    query: TensorRef
    key: TensorRef
    value: TensorRef
    attn_mask: TensorRef | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


@takes(AttentionArgs)
def scaled_dot_product_attention(d: Lowering, args: AttentionArgs) -> TensorRef:
    """On N x heads x T x size; axes before the last three are one batch, missing ones are 1."""
    if min(args.query.rank, args.key.rank, args.value.rank) < 2:
        raise Unsupported("attention of tensors of rank 1")
    rank = max(args.query.rank, args.key.rank, args.value.rank)
    lead = args.query.shape[:-2]
    q, k, v = (_to_rank_4(d, ref) for ref in (args.query, args.key, args.value))
    if k.shape[0] != q.shape[0] or v.shape[0] != q.shape[0]:
        batch = max(q.shape[0], k.shape[0], v.shape[0])
        q, k, v = (broadcast_to(d, ref, (batch, *ref.shape[1:])) for ref in (q, k, v))
    fused = not args.dropout_p and _has_fused_kernel(
        (args.query, args.key, args.value), args.attn_mask, args.enable_gqa
    )
    attrs = at.Attention(
        q.shape[1], 0 if k.shape[1] == q.shape[1] else k.shape[1], args.is_causal,
        dropout=args.dropout_p, fused=fused,
    )  # fmt: skip
    inputs = [q, k, v]
    if args.attn_mask is not None:
        mask = args.attn_mask
        if mask.rank > 4:
            mask = reshape(d, mask, (-1, *mask.shape[-3:]))
        inputs.append(mask)
    y = d.add("attention", *inputs, at=attrs)
    return y if rank == 4 else reshape(d, y, (*lead, *y.shape[-2:]))


def _has_fused_kernel(
    qkv: tuple[TensorRef, TensorRef, TensorRef], attn_mask: TensorRef | None, enable_gqa: bool
) -> bool:
    """Whether PyTorch runs one kernel; otherwise it composes attention from single operators."""
    query, key, _ = qkv
    if {ref.rank for ref in qkv} != {4} or len({ref.shape[-1] for ref in qkv}) != 1:
        return False
    if query.shape[:-3] != key.shape[:-3]:
        return False
    if query.shape[-3:-2] != key.shape[-3:-2] and not enable_gqa:
        return False
    return attn_mask is None or (attn_mask.rank in (2, 4) and not attn_mask.stored)


def _to_rank_4(d: Lowering, ref: TensorRef) -> TensorRef:
    if ref.rank == 4:
        return ref
    if ref.rank < 4:
        # the batch of N x T x size becomes the axis of heads: the counts are the same
        shape = (1, *ref.shape) if ref.rank == 3 else (1, 1, *ref.shape)
        return reshape(d, ref, shape)
    return reshape(d, ref, (-1, *ref.shape[-3:]))


def fused_attention(
    d: Lowering,
    query: TensorRef,
    key: TensorRef,
    value: TensorRef,
    *args: object,
    **kwargs: object,
) -> TensorRef:
    """A fused kernel called by its own name; only its first output is converted.

    Kernels differ in the names and the order of their arguments: the mask (attn_mask or attn_bias)
    is the one tensor among them, and a positional `True` stands for is_causal.
    """
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, TensorRef)]
    mask = tensors[0] if tensors else None
    causal = any(each is True for each in args) or kwargs.get("is_causal") is True
    return scaled_dot_product_attention(d, query, key, value, mask, 0.0, causal)


class MultiHeadAttentionArgs(Struct, frozen=True):
    """Arguments of aten::_native_multi_head_attention."""

    query: TensorRef
    key: TensorRef
    value: TensorRef
    embed_dim: int
    num_head: int
    qkv_weight: TensorRef
    qkv_bias: TensorRef | None
    proj_weight: TensorRef
    proj_bias: TensorRef | None
    mask: TensorRef | None = None
    need_weights: bool = True
    average_attn_weights: bool = True
    mask_type: int | None = None


@takes(MultiHeadAttentionArgs)
def native_multi_head_attention(d: Lowering, args: MultiHeadAttentionArgs) -> TensorRef:
    """The fast path of nn.MultiheadAttention: one product for q, k and v, attention, projection."""
    qkv = linear(d, args.query, args.qkv_weight, args.qkv_bias)
    parts = d.several("split", qkv, at=at.Split(2, parts=3))
    if args.mask is not None or args.need_weights:
        raise Unsupported(
            "the fast path of MultiheadAttention with a mask or with weights returned"
        )
    y = d.add("attention", *parts, at=at.Attention(args.num_head))
    return linear(d, y, args.proj_weight, args.proj_bias)


TABLE: dict[str, Converter] = {
    "scaled_dot_product_attention": one_dtype(scaled_dot_product_attention, 3),
    "_scaled_dot_product_flash_attention": fused_attention,
    "_scaled_dot_product_efficient_attention": fused_attention,
    "_scaled_dot_product_flash_attention_for_cpu": fused_attention,
    "_scaled_dot_product_cudnn_attention": fused_attention,
    "_scaled_dot_product_attention_math": fused_attention,
    "_native_multi_head_attention": native_multi_head_attention,
}
