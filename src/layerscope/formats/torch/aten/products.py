"""Matrix products, attention, recurrence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from layerscope.formats.torch.aten.shaping import broadcast_to, reshape
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported, same_dtypes
from layerscope.graph import attributes as at


def linear(
    d: Lowering, input: TensorRef, weight: TensorRef, bias: TensorRef | None = None
) -> TensorRef:
    if weight.rank != 2:
        return _with_bias(d, d.add("matmul", input, weight), bias)
    if input.shape[-1:] != weight.shape[1:]:
        raise Unsupported("features that do not agree")
    told = at.Linear(weight.shape[0], bias is not None)
    return d.with_param_inputs("linear", input, told, {"weight": weight, "bias": bias})


def _with_bias(d: Lowering, x: TensorRef, bias: TensorRef | None) -> TensorRef:
    return x if bias is None else d.add("add", x, bias)


def matmul(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return d.add("matmul", self, other)


def of_ranks(words: Any, *ranks: int) -> Any:
    """Words of a product that is of tensors of these ranks alone."""

    def translate(d: Lowering, *told: Any, **named: Any) -> Any:
        refs = [each for each in (*told, *named.values()) if isinstance(each, TensorRef)]
        if tuple([ref.rank for ref in refs[-len(ranks) :]]) != ranks:
            raise Unsupported("a product of other tensors")
        return words(d, *told, **named)

    return translate


def addmm(
    d: Lowering, self: TensorRef, mat1: TensorRef, mat2: TensorRef, *, beta: Any = 1, alpha: Any = 1
) -> TensorRef:
    """The product, each side scaled where a factor other than 1 is given, and the sum."""
    made = d.add("matmul", mat1, mat2)
    if alpha != 1:
        made = d.add("mul", made)
    if beta == 0:
        return made
    return d.add("add", made, self if beta == 1 else d.add("mul", self))


def einsum(
    d: Lowering, equation: str, tensors: Sequence[TensorRef], *, path: Any = None
) -> TensorRef:
    given, arrow, result = equation.replace(" ", "").partition("->")
    dtypes = {ref.dtype: None for ref in tensors}
    if len(dtypes) > 1:
        summed = not arrow or not set(given) - {","} <= set(result)
        _need_mul(dtypes, summed)
    return d.add("einsum", *tensors, at=at.Einsum(equation.replace(" ", "")))


def bilinear(
    d: Lowering,
    input1: TensorRef,
    input2: TensorRef,
    weight: TensorRef,
    bias: TensorRef | None = None,
) -> TensorRef:
    """Per output feature a matrix between both inputs."""
    made = d.add("einsum", input1, weight, input2, at=at.Einsum("...i,oij,...j->...o"))
    return _with_bias(d, made, bias)


def grouped(
    d: Lowering, self: TensorRef, mat2: TensorRef, offs: TensorRef | None = None, *_: Any, **__: Any
) -> TensorRef:
    """Rows dealt out to matrices, as experts have them: each row meets one matrix."""
    if self.rank != 2 or mat2.rank != 3:
        raise Unsupported("groups of columns")
    rows, inner, columns = self.shape[0], self.shape[1], mat2.shape[2]
    told = at.CustomCost(((rows, columns),), (self.dtype,), mac=rows * inner * columns)
    return d.add("custom", self, mat2, at=told)


def _need_mul(dtypes: Mapping[str, None], summed: bool) -> None:
    """Refuse a product of several dtypes; one without a sum is PyTorch's `mul`, which casts."""
    if summed:
        raise Refused(f"numbers of {' and '.join(dtypes)} in one product")
    raise Unsupported("a product of several dtypes without a sum")


def outer(d: Lowering, self: TensorRef, vec2: TensorRef) -> TensorRef:
    if self.dtype != vec2.dtype:
        _need_mul({self.dtype: None, vec2.dtype: None}, summed=False)
    return d.add("einsum", self, vec2, at=at.Einsum("i,j->ij"))


def inner(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    """Sums of products along the last axes of both."""
    if not self.rank or not other.rank:
        raise Unsupported("a product with a number")
    one, two = ascii_lowercase[1 : self.rank], ascii_lowercase[self.rank :][: other.rank - 1]
    return d.add("einsum", self, other, at=at.Einsum(f"{one}a,{two}a->{one}{two}"))


def dot(d: Lowering, self: TensorRef, tensor: TensorRef) -> TensorRef:
    if self.shape != tensor.shape:
        raise Unsupported("rows of other lengths")
    return d.add("einsum", self, tensor, at=at.Einsum("i,i->"))


def attention(
    d: Lowering,
    query: TensorRef,
    key: TensorRef,
    value: TensorRef,
    attn_mask: TensorRef | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> TensorRef:
    """On N x heads x T x size; axes before the last three are one batch, missing ones are 1."""
    if min(query.rank, key.rank, value.rank) < 2:
        raise Unsupported("attention of rows")
    rank = max(query.rank, key.rank, value.rank)
    lead = query.shape[:-2]
    shared = lead[-1] if lead else 1
    q, k, v = (_four(d, ref, rank) for ref in (query, key, value))
    if k.shape[0] != q.shape[0] or v.shape[0] != q.shape[0]:
        batch = max(q.shape[0], k.shape[0], v.shape[0])
        q, k, v = (broadcast_to(d, ref, (batch, *ref.shape[1:])) for ref in (q, k, v))
    ranks = {query.rank, key.rank, value.rank}
    sizes = {query.shape[-1], key.shape[-1], value.shape[-1]}
    fused = ranks == {4} and len(sizes) == 1 and not dropout_p
    if query.shape[:-3] != key.shape[:-3] or (
        query.shape[-3:-2] != key.shape[-3:-2] and not enable_gqa
    ):
        fused = False
    if attn_mask is not None and (attn_mask.rank not in (2, 4) or attn_mask.stored):
        fused = False
    told = at.Attention(
        q.shape[1], 0 if k.shape[1] == q.shape[1] else k.shape[1], is_causal,
        dropout=dropout_p, fused=fused,
    )  # fmt: skip
    given = [q, k, v]
    if attn_mask is not None:
        mask = attn_mask
        if mask.rank > 4:
            mask = reshape(d, mask, (-1, *mask.shape[-3:]))
        given.append(mask)
    made = d.add("attention", *given, at=told)
    if rank == 4:
        return made
    shape = (*lead[:-1], shared) if lead else ()
    return reshape(d, made, (*shape, *made.shape[-2:]))


def _four(d: Lowering, ref: TensorRef, rank: int) -> TensorRef:
    if ref.rank == 4:
        return ref
    if ref.rank < 4:
        shape = (1, *ref.shape) if ref.rank == 3 else (1, 1, *ref.shape)
        # of N x T x size the batch is taken for heads: what is counted is the same
        return reshape(d, ref, shape)
    return reshape(d, ref, (-1, *ref.shape[-3:]))


def flash_attention(
    d: Lowering, query: TensorRef, key: TensorRef, value: TensorRef, *rest: Any, **told: Any
) -> TensorRef:
    """The fused kernels, where a model calls them itself; of their outputs the first is it."""
    mask = next((ref for ref in rest if isinstance(ref, TensorRef)), told.get("attn_bias"))
    causal = any(word is True for word in rest) or bool(told.get("is_causal"))
    return attention(d, query, key, value, mask, 0.0, causal)


def native_mha(
    d: Lowering,
    query: TensorRef,
    key: TensorRef,
    value: TensorRef,
    embed_dim: int,
    num_head: int,
    qkv_weight: TensorRef,
    qkv_bias: TensorRef | None,
    proj_weight: TensorRef,
    proj_bias: TensorRef | None,
    mask: TensorRef | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> TensorRef:
    """The fast path of nn.MultiheadAttention: three projections at once, attention, projection."""
    joined = linear(d, query, qkv_weight, qkv_bias)
    parts = d.several("split", joined, at=at.Split(2, parts=3))
    given = list(parts)
    if mask is not None or need_weights:
        raise Unsupported("a mask in the fast path, or its weights")
    made = d.add("attention", *given, at=at.Attention(num_head))
    return linear(d, made, proj_weight, proj_bias)


def _recurrent(op: str, activation: str = "tanh") -> Any:
    def translate(
        d: Lowering, input: TensorRef, hx: Any, params: Sequence[TensorRef], *told: Any
    ) -> Any:
        if input.rank not in (2, 3):
            raise Unsupported(f"a sequence of {input.rank} axes")
        if isinstance(params, TensorRef):  # packed sequences: data, sizes, state, params
            raise Unsupported("a packed sequence")
        has_biases, num_layers, dropout, train, bidirectional, batch_first = told[:6]
        directions = 2 if bidirectional else 1
        per = len(params) // (num_layers * directions)
        projected = per in (3, 5)
        hidden = params[0].shape[0] // {"rnn": 1, "lstm": 4, "gru": 3}[op]
        holds: dict[str, TensorRef] = {}
        each = iter(params)
        names = ["weight_ih", "weight_hh"]
        names += ["bias_ih", "bias_hh"] if has_biases else []
        names += ["weight_hr"] if projected else []
        for layer in range(num_layers):
            for end in ("", "_reverse")[:directions]:
                for name in names:
                    holds[f"{name}_l{layer}{end}"] = next(each)
        recurrent = at.Recurrent(
            hidden,
            num_layers,
            bidirectional,
            has_biases,
            batch_first,
            params[per - 1].shape[0] if projected else 0,
            "relu" if activation == "relu" else "tanh",
            dropout=dropout if train else 0.0,
        )
        return list(d.several(op, input, at=recurrent, holds=holds))

    return translate


def _cell(gates: int, op: str) -> Any:
    """One step: both products, then gates element by element as a sequence of one."""

    def translate(
        d: Lowering,
        input: TensorRef,
        hx: Any,
        w_ih: TensorRef,
        w_hh: TensorRef,
        b_ih: TensorRef | None = None,
        b_hh: TensorRef | None = None,
    ) -> Any:
        if any(not ref.stored for ref in (w_ih, w_hh)):
            raise Unsupported("a cell with computed weights")
        holds = {"weight_ih_l0": w_ih, "weight_hh_l0": w_hh}
        if b_ih is not None and b_hh is not None:
            holds |= {"bias_ih_l0": b_ih, "bias_hh_l0": b_hh}
        hidden = w_ih.shape[0] // gates
        step = reshape(d, input, (1, *input.shape))
        told = at.Recurrent(hidden, bias=b_ih is not None)
        made = d.several(op, step, at=told, holds=holds)
        shape = (*input.shape[:-1], hidden)
        if op == "lstm":
            return [reshape(d, made[1], shape), reshape(d, made[2], shape)]
        return reshape(d, made[1], shape)

    return translate


TABLE: dict[str, Any] = {
    "linear": same_dtypes(linear),
    "matmul": same_dtypes(matmul),
    "mm": same_dtypes(of_ranks(matmul, 2, 2)),
    "bmm": same_dtypes(of_ranks(matmul, 3, 3)),
    "mv": same_dtypes(of_ranks(matmul, 2, 1)),
    "_int_mm": matmul,
    "addmm": same_dtypes(of_ranks(addmm, 2, 2)),
    "baddbmm": same_dtypes(of_ranks(addmm, 3, 3)),
    "addmv": same_dtypes(of_ranks(addmm, 2, 1)),
    "einsum": einsum,
    "bilinear": same_dtypes(bilinear),
    "_grouped_mm": grouped,
    "grouped_mm": grouped,
    "inner": same_dtypes(inner),
    "outer": outer,
    "ger": outer,
    **dict.fromkeys(("dot", "vdot"), same_dtypes(dot)),
    "scaled_dot_product_attention": same_dtypes(attention, 3),
    "_scaled_dot_product_flash_attention": flash_attention,
    "_scaled_dot_product_efficient_attention": flash_attention,
    "_scaled_dot_product_flash_attention_for_cpu": flash_attention,
    "_scaled_dot_product_cudnn_attention": flash_attention,
    "_scaled_dot_product_attention_math": flash_attention,
    "_native_multi_head_attention": native_mha,
    "lstm": _recurrent("lstm"),
    "gru": _recurrent("gru"),
    "rnn_tanh": _recurrent("rnn"),
    "rnn_relu": _recurrent("rnn", "relu"),
    "lstm_cell": same_dtypes(_cell(4, "lstm")),
    "gru_cell": same_dtypes(_cell(3, "gru")),
    "rnn_tanh_cell": same_dtypes(_cell(1, "rnn")),
    "rnn_relu_cell": same_dtypes(_cell(1, "rnn")),
}
