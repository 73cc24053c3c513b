"""Number types of results, and calls that are refused, as PyTorch has them on real tensors."""

from __future__ import annotations

from typing import Any

import pytest

from layerscope.analysis.shapes import infer
from layerscope.errors import ModelError
from layerscope.formats.torch.aten import FLOATS_ONLY
from layerscope.formats.torch.aten.table import CONVERTERS
from layerscope.formats.torch.capture import capture
from layerscope.formats.torch.dtypes import name_of
from tests.formats.torch.torch_nets import Doing, nn, torch

aten: Any = torch.ops.aten
SHAPE = (2, 3, 4, 4)
KINDS = ("int64", "int32", "bool", "uint8", "float16", "bfloat16", "float64", "complex64")
PAIRS = (
    ("float32", "int64"), ("int64", "float32"), ("float32", "bool"), ("bool", "float32"),
    ("float32", "float16"), ("int64", "int32"), ("float64", "float32"), ("uint8", "int64"),
    ("complex64", "float32"), ("float16", "bfloat16"),
)  # fmt: skip
# Of whole numbers there are kernels, for other devices or for narrow ones alone: not refused here.
ELSEWHERE = {
    "histc",
    "max_pool1d",
    "im2col",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
    *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
}
ELSEWHERE |= {f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)}


# Kernels without numbers promote operands of two dtypes otherwise than those of the CPU.
PROMOTED_OTHERWISE = frozenset(("huber_loss", "soft_margin_loss"))


def places(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int64)


CALLS: dict[str, Any] = {
    "bmm": lambda x: aten.bmm(x[0], x[0]),
    "baddbmm": lambda x: aten.baddbmm(x[0], x[0], x[0]),
    "mv": lambda x: aten.mv(x[0, 0], x[0, 0, 0]),
    "addmv": lambda x: aten.addmv(x[0, 0, 0], x[0, 0], x[0, 0, 0]),
    "cat": lambda x: aten.cat([x, x]),
    "stack": lambda x: aten.stack([x, x]),
    "einsum": lambda x: aten.einsum("ij,jk->ik", [x[0, 0], x[0, 0]]),
    "prelu": lambda x: aten.prelu(x, x[0, :, 0, 0]),
    "softmax": lambda x: aten.softmax(x, -1),
    "_softmax": lambda x: aten._softmax(x, 1, False),
    "_log_softmax": lambda x: aten._log_softmax(x, 1, False),
    "masked_fill": lambda x: aten.masked_fill(x, places(*SHAPE) == 0, 1),
    "gather": lambda x: aten.gather(x, 0, places(*SHAPE)),
    "take_along_dim": lambda x: aten.take_along_dim(x, places(*SHAPE), 0),
    "index_select": lambda x: aten.index_select(x, 0, places(3)),
    "index": lambda x: aten.index(x, [places(3)]),
    "index_add": lambda x: aten.index_add(x, 0, places(2), x),
    "index_copy": lambda x: aten.index_copy(x, 0, places(2), x),
    "scatter": lambda x: aten.scatter(x, 0, places(*SHAPE), x),
    "scatter_add": lambda x: aten.scatter_add(x, 0, places(*SHAPE), x),
    "embedding": lambda x: aten.embedding(x[0, 0], places(5)),
    "conv_transpose2d": lambda x: aten.conv_transpose2d(x, x.transpose(0, 1)),
    "batch_norm": lambda x: aten.batch_norm(
        x, *[x[0, :, 0, 0]] * 4, False, 0.1, 1e-5, False
    ),
    "expand": lambda x: aten.expand(x, [3, *SHAPE]),
    "permute": lambda x: aten.permute(x, [1, 0, 3, 2]),
    "narrow": lambda x: aten.narrow(x, 2, 1, 2),
    "unflatten": lambda x: aten.unflatten(x, 2, [2, 2]),
    "upsample_trilinear3d": lambda x: aten.upsample_trilinear3d(x[None], [6, 6, 6], False),
    "upsample_linear1d": lambda x: aten.upsample_linear1d(x[0], [6], False),
    "adaptive_avg_pool3d": lambda x: aten.adaptive_avg_pool3d(x, [2, 2, 2]),
    "_adaptive_avg_pool3d": lambda x: aten._adaptive_avg_pool3d(x, [2, 2, 2]),
    "adaptive_max_pool3d": lambda x: aten.adaptive_max_pool3d(x, [2, 2, 2])[0],
    "adaptive_avg_pool1d": lambda x: aten.adaptive_avg_pool1d(x[0], [2]),
    "adaptive_max_pool1d": lambda x: aten.adaptive_max_pool1d(x[0], [2])[0],
    "instance_norm": lambda x: aten.instance_norm(
        x, None, None, None, None, True, 0.1, 1e-5, False
    ),
    "group_norm": lambda x: aten.group_norm(x, 3),
    "rms_norm": lambda x: aten.rms_norm(x, [4]),
    "layer_norm": lambda x: aten.layer_norm(x, [4]),
    "scaled_dot_product_attention": lambda x: aten.scaled_dot_product_attention(x, x, x),
    "cross_entropy_loss": lambda x: aten.cross_entropy_loss(x, places(2, 4, 4)),
    "nll_loss_nd": lambda x: aten.nll_loss_nd(x, places(2, 4, 4)),
    "nll_loss2d": lambda x: aten.nll_loss2d(x, places(2, 4, 4)),
    "nll_loss": lambda x: aten.nll_loss(x[0, 0], places(4)),
    "_prelu_kernel": lambda x: aten._prelu_kernel(x, x),
    "linear": lambda x: aten.linear(x, x[0, 0]),
    "mm": lambda x: aten.mm(x[0, 0], x[0, 0]),
    "addmm": lambda x: aten.addmm(x[0, 0], x[0, 0], x[0, 0]),
    "dot": lambda x: aten.dot(x[0, 0, 0], x[0, 0, 0]),
    "outer": lambda x: aten.outer(x[0, 0, 0], x[0, 0, 0]),
    "conv1d": lambda x: aten.conv1d(x[0], x[0, :2]),
    "conv3d": lambda x: aten.conv3d(x[None], x[None]),
    "conv_transpose1d": lambda x: aten.conv_transpose1d(x[0], x[0]),
    "conv_transpose3d": lambda x: aten.conv_transpose3d(x[None], x[:, None]),
    "avg_pool1d": lambda x: aten.avg_pool1d(x[0], [2]),
    "max_pool1d_with_indices": lambda x: aten.max_pool1d_with_indices(x[0], [2])[0],
    "reshape": lambda x: aten.reshape(x, [6, 16]),
    "transpose": lambda x: aten.transpose(x, 0, 1),
    "select": lambda x: aten.select(x, 1, 2),
    "movedim": lambda x: aten.movedim(x, 0, 2),
    "roll": lambda x: aten.roll(x, [1], [2]),
    "flip": lambda x: aten.flip(x, [2]),
    "repeat": lambda x: aten.repeat(x, [2, 1, 1, 1]),
    "split_with_sizes": lambda x: aten.split_with_sizes(x, [1, 2], 1)[1],
    "threshold": lambda x: aten.threshold(x, 0, 1),
    "dropout": lambda x: aten.dropout(x, 0.5, False),
    "addcmul": lambda x: aten.addcmul(x, x, x),
    "addcdiv": lambda x: aten.addcdiv(x, x, x),
    "bitwise_not": lambda x: aten.bitwise_not(x),
    "bitwise_and": lambda x: aten.bitwise_and(x, x),
    "bitwise_left_shift": lambda x: aten.bitwise_left_shift(x, x),
    "reflection_pad2d": lambda x: aten.reflection_pad2d(x, [1, 1, 1, 1]),
    "replication_pad2d": lambda x: aten.replication_pad2d(x, [1, 1, 1, 1]),
    "im2col": lambda x: aten.im2col(x, [2, 2], [1, 1], [0, 0], [1, 1]),
    "unfold": lambda x: aten.unfold(x, 2, 2, 1),
    "one_hot": lambda x: aten.one_hot(x, 3),
    "upsample_bilinear2d": lambda x: aten.upsample_bilinear2d(x, [6, 6], False),
    "upsample_bicubic2d": lambda x: aten.upsample_bicubic2d(x, [6, 6], False),
    "lerp": lambda x: aten.lerp(x, x, 0.5),
    "_cdist_forward": lambda x: aten._cdist_forward(x[0], x[1], 1.0, None),
    "addbmm": lambda x: aten.addbmm(x[0, 0], x[0], x[0]),
    "addr": lambda x: aten.addr(x[0, 0], x[0, 0, 0], x[0, 0, 0]),
    "linalg_cross": lambda x: aten.linalg_cross(x, x, dim=1),
    "affine_grid_generator": lambda x: aten.affine_grid_generator(
        x[:, :2, 0, :3], [2, 3, 4, 4], False
    ),
    "grid_sampler_3d": lambda x: aten.grid_sampler_3d(
        x[None, :, :, :], x[:1, :, :, :3].reshape(1, 3, 4, 3, 1)[..., [0, 0, 0]], 0, 0, False
    ),
    "as_strided": lambda x: aten.as_strided(x, [3, 4], [1, 2]),
    "as_strided_copy": lambda x: aten.as_strided_copy(x, [3, 4], [1, 2]),
    "as_strided_scatter": lambda x: aten.as_strided_scatter(x, x[0, 0], [4, 4], [4, 1]),
    "diagonal_scatter": lambda x: aten.diagonal_scatter(x[0, 0], x[0, 0, 0]),
    "block_diag": lambda x: aten.block_diag([x[0, 0], x[0, 1, :2]]),
    "bucketize": lambda x: aten.bucketize(x, x[0, 0, 0]),
    "expand_copy": lambda x: aten.expand_copy(x, [3, *SHAPE]),
    "index_fill": lambda x: aten.index_fill(x, 1, places(2), 1),
    "index_reduce": lambda x: aten.index_reduce(x, 0, places(2), x, "amax"),
    "scatter_reduce": lambda x: aten.scatter_reduce(x, 0, places(*SHAPE), x, "prod"),
    "put": lambda x: aten.put(x, places(3), x[0, 0, 0, :3]),
    "take": lambda x: aten.take(x, places(3)),
    "imag": lambda x: aten.imag(x),
    "narrow_copy": lambda x: aten.narrow_copy(x, 2, 1, 2),
    "permute_copy": lambda x: aten.permute_copy(x, [1, 0, 3, 2]),
    "select_copy": lambda x: aten.select_copy(x, 1, 2),
    "select_scatter": lambda x: aten.select_scatter(x, x[:, 0], 1, 2),
    "split_with_sizes_copy": lambda x: aten.split_with_sizes_copy(x, [1, 2], 1)[1],
    "t_copy": lambda x: aten.t_copy(x[0, 0]),
    "transpose_copy": lambda x: aten.transpose_copy(x, 0, 1),
    "unfold_copy": lambda x: aten.unfold_copy(x, 2, 2, 1),
    "trace": lambda x: aten.trace(x[0, 0]),
    "fill_diagonal": lambda x: aten.fill_diagonal_(x[0, 0].clone(), 1),
    "embedding_renorm": lambda x: aten.embedding_renorm_(x[0, 0].clone(), places(2), 1.0, 2.0),
    "renorm": lambda x: aten.renorm(x, 2, 0, 1.0),
    "polygamma": lambda x: aten.polygamma(1, x),
    "_fft_r2c": lambda x: aten._fft_r2c(x, [2, 3], 0, True),
    "_fft_c2c": lambda x: aten._fft_c2c(x, [2, 3], 1, True),
    "_fft_c2r": lambda x: aten._fft_c2r(x, [2, 3], 2, 6),
    "multi_margin_loss": lambda x: aten.multi_margin_loss(x[0, 0], places(4)),
}  # fmt: skip


def ones(kind: str) -> Any:
    return torch.ones(SHAPE, dtype=getattr(torch, kind))


def takes(call: Any, count: int) -> bool:
    try:
        call(*[ones("float32")] * count)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False
    return True


def found(name: str) -> tuple[Any, int] | None:
    """A call of an operator that PyTorch takes, and how many tensors it is of."""
    if name in CALLS:
        return CALLS[name], 1
    func: Any = getattr(aten, name, None)

    def with_one(x: Any) -> Any:
        return func(x, 1)

    def with_two(x: Any) -> Any:
        return func(x, [2, 2])

    tries = [(func, 1), (func, 2), (with_one, 1), (with_two, 1)] if func is not None else []
    return next(((call, count) for call, count in tries if takes(call, count)), None)


ASKED = {name: call for name in sorted(CONVERTERS) if (call := found(name)) is not None}


def first(made: Any) -> Any:
    return made[0] if isinstance(made, (list, tuple)) else made


def theirs(call: Any, given: list[Any]) -> tuple[str, tuple[int, ...]] | None:
    try:
        made = first(call(*given))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    return name_of(made.dtype), tuple(made.shape)


def ours(call: Any, given: list[Any]) -> tuple[str, tuple[int, ...] | None] | None:
    try:
        graph = capture(Doing(call), tuple(given))
    except ModelError:
        return None
    tensor = infer(graph).tensors[graph.outputs[0]]
    return tensor.dtype, tensor.shape


# Other names of what is asked, its other ranks, what takes no plain tensors or other devices.
LEFT = frozenset((
    "__and__", "__lshift__", "__or__", "__rshift__", "__xor__", "_convolution", "_grouped_mm",
    "_index_put_impl", "_int_mm", "_is_all_true", "_is_any_true", "_native_multi_head_attention",
    "_reshape_alias",
    "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_unsafe_index", "_unsafe_index_put",
    "_unsafe_view", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact3d", "alpha_dropout", "bilinear",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_to", "col2im", "concat",
    "concatenate", "convolution", "feature_alpha_dropout", "feature_dropout", "float", "ger",
    "grid_sampler", "grid_sampler_2d", "grouped_mm", "gru", "gru_cell", "half", "index_put",
    "long", "lstm", "lstm_cell", "matrix_H", "max_pool1d", "max_unpool2d", "moveaxis",
    "reflection_pad1d", "reflection_pad3d", "replication_pad1d", "replication_pad3d",
    "requires_grad", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "roi_align",
    "_ctc_loss", "_embedding_bag", "_embedding_bag_forward_only",
    "_native_batch_norm_legit_no_training", "_scaled_mm", "conv_tbc", "embedding_bag",
    "fractional_max_pool2d", "fractional_max_pool3d", "linalg_ldl_solve", "linalg_lu_solve",
    "lu_unpack", "max_unpool3d", "multilabel_margin_loss_forward", "native_batch_norm",
    "native_dropout", "native_group_norm", "native_layer_norm", "nll_loss2d_forward",
    "nll_loss_forward", "ormqr", "unfold_backward", "swapaxes", "swapdims", "t",
    "unsafe_split_with_sizes", "upsample_nearest1d",
    "upsample_nearest3d", "vdot", "avg_pool2d_backward", "avg_pool3d_backward",
    "upsample_linear1d_backward",
    "upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward",
    "upsample_bilinear2d_backward", "upsample_trilinear3d_backward", "upsample_bicubic2d_backward",
))  # fmt: skip


def test_every_operator_is_asked_or_named_here() -> None:
    assert CONVERTERS.keys() - ASKED.keys() == LEFT
    assert not FLOATS_ONLY - ASKED.keys()
    assert not CALLS.keys() - CONVERTERS.keys()


@pytest.mark.parametrize("name", ASKED)
def test_results_are_of_the_type_that_pytorch_makes(name: str) -> None:
    call, count = ASKED[name]
    rows = [[kind] * count for kind in KINDS]
    rows += [[*pair] for pair in PAIRS] if count == 2 and name not in PROMOTED_OTHERWISE else []
    for row in rows:
        given = [ones(kind) for kind in row]
        wanted, made = theirs(call, given), ours(call, given)
        if wanted is not None:
            assert made == wanted, row
        elif row[0] == "int64" and count == 1 and name not in ELSEWHERE:
            # of other types it is a processor's kernel that is missing, which others may have
            assert made is None, row


@pytest.mark.parametrize("name", sorted(FLOATS_ONLY))
def test_what_is_for_floats_alone(name: str) -> None:
    call, count = ASKED[name]
    assert theirs(call, [ones("float32")] * count) == ours(call, [ones("float32")] * count)
    assert theirs(call, [ones("int64")] * count) is None
    assert ours(call, [ones("int64")] * count) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.long().mean(1, dtype=torch.float32),
        lambda x: x.long().softmax(1, dtype=torch.float32),
        lambda x: torch.linalg.vector_norm(x.half(), dtype=torch.float32),
        lambda x: torch.norm(x.half(), dim=1, dtype=torch.float32),
        lambda x: x.half().transpose(0, 1).cumsum(0, dtype=torch.float64),
        lambda x: (x > 0) + 1,
        lambda x: (x > 0).sum(1),
        lambda x: x.long() / 2,
        lambda x: x.half() * x,
        lambda x: x.long().sqrt().transpose(0, 1) + 1,
        lambda x: x.view(torch.int32),
        lambda x: torch.where(x > 0, x, x.long()),
        lambda x: torch.where(x > 0, x.long(), x),
        lambda x: torch.where(x > 0, x.half(), 1.0),
        lambda x: torch.where(x > 0, x.long(), 1),
        lambda x: torch.where(x > 0, x, x.double()),
        lambda x: x.masked_fill(x > 0, x.long().sum()),
        lambda x: x.long().masked_fill(x > 0, 1),
        lambda x: (x > 0).index_select(0, x[0].long()),
        lambda x: x.half()[x[0].long()],
        lambda x: x.clamp_min(x.double()),
        lambda x: x.long().clamp(min=0.5),
    ],
)
def test_types_along_the_way(call: Any) -> None:
    x = torch.ones(4, 6)
    assert theirs(call, [x]) == ours(call, [x])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.softmax(7),
        lambda x: x.transpose(0, 1).log_softmax(-3),
        lambda x: x.sum((1, 1)),
        lambda x: x.amax((0, -2)),
        lambda x: x.transpose(0, 1).mean(5),
        lambda x: x.gather(1, x),
        lambda x: x.gather(2, x.long()),
        lambda x: x.index_select(1, x[0]),
        lambda x: x.index_select(4, x[0].long()),
        lambda x: x[x],
        lambda x: torch.nn.functional.embedding(x, x),
        lambda x: torch.where(x, x, x),
        lambda x: torch.where(x.long(), x, x),
        lambda x: torch.cat([x, x], 2),
        lambda x: torch.stack([x, x], 3),
        lambda x: x.flip(2),
        lambda x: torch.nn.functional.glu(x, 2),
        lambda x: x.long() ** -1,
        lambda x: (x > 0) - (x > 0),
        lambda x: -(x > 0),
        lambda x: x.scatter(0, x, x),
        lambda x: x.long().mean(),
        lambda x: torch.linalg.vector_norm(x.long(), dtype=torch.float32),
        lambda x: x.repeat_interleave(2, 3),
    ],
)
def test_what_pytorch_refuses_is_refused(call: Any) -> None:
    x = torch.ones(4, 6)
    assert theirs(call, [x]) is None
    with pytest.raises(ModelError):
        capture(Doing(call), (x,))


@pytest.mark.parametrize("kind", [nn.GELU, nn.SiLU, nn.Hardswish, lambda: nn.LayerNorm(6)])
def test_a_module_that_is_given_whole_numbers_is_named(kind: Any) -> None:
    net = nn.Sequential(nn.Identity(), kind())
    x = torch.ones(4, 6, dtype=torch.int64)
    with pytest.raises(RuntimeError):
        net(x)
    with pytest.raises(ModelError, match=r".; in Sequential: 1 \(\w+\) on 4x6 int64"):
        capture(net, (x,))
