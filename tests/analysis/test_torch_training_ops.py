"""Every operator against autograd: bytes kept by one call, counted live by its own hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import layerscope
from layerscope.analysis.autograd import UNCHECKED_OPERATORS, kept
from layerscope.formats.torch import plans
from layerscope.formats.torch.aten.table import CONVERTERS
from layerscope.formats.torch.caches import CACHES, CaptureCaches
from tests.formats.torch.torch_more_cases import MORE
from tests.formats.torch.torch_nets import f, saved_bytes, torch

aten: Any = torch.ops.aten

Case = tuple[Callable[..., Any], tuple[Any, ...]]
IMAGE = (2, 4, 6, 6)
LONG, BOOL = "long", "bool"
Y = (IMAGE, IMAGE)
Y6 = ((2, 4, 6, 6), (2, 6, 4, 6))
HEADS = ((2, 4, 6, 8),) * 3


def turned(x: Any) -> Any:
    """A view whose axes are in another order than its storage."""
    return x.transpose(1, 2)


def copied(x: Any) -> Any:
    """What an operator in place may write over."""
    return x * 1.0


def twice_kept(run: Callable[[Any], Any], order: tuple[int, ...]) -> Callable[[Any], Any]:
    """Of permuted axes; the result is kept as it is and flattened, once more if that is a copy."""
    back = tuple([order.index(n) for n in range(len(order))])

    def call(x: Any) -> Any:
        y = run(x.permute(order))
        return y.sin().sum() + y.permute(back).reshape(-1).sin().sum()

    return call


UNARY = (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "reciprocal", "square", "abs", "neg",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erf", "expm1", "log1p", "log2",
    "exp2", "floor", "ceil", "round", "sign", "cumsum1", "cumprod1", "logsumexp1", "prod1", "sum1",
    "mean1", "amax1", "amin1", "std1", "var1", "flip1",
)  # fmt: skip
ACTIVATIONS = (
    "gelu", "silu", "elu", "selu", "celu", "leaky_relu", "relu6", "hardswish", "hardsigmoid",
    "hardtanh", "softplus", "mish", "logsigmoid", "softsign", "hardshrink", "softshrink",
    "tanhshrink",
)  # fmt: skip


def unary(name: str) -> Callable[[Any], Any]:
    if name.endswith("1") and name not in ("expm1", "log1p"):
        return lambda x: getattr(x, name[:-1])(1)
    return lambda x: getattr(torch, name)(x)


CASES: dict[str, Case] = {
    **{name: (unary(name), (IMAGE,)) for name in UNARY if name != "flip1"},
    **{name: ((lambda n: lambda x: getattr(f, n)(x))(name), (IMAGE,)) for name in ACTIVATIONS},
    "flip": (lambda x: x.flip(1), (IMAGE,)),
    "times a number": (lambda x: x * 2, (IMAGE,)),
    "number times": (lambda x: 2.5 * x, (IMAGE,)),
    "divided by a number": (lambda x: x / 3, (IMAGE,)),
    "number divided by": (lambda x: 3 / x, (IMAGE,)),
    "plus a number": (lambda x: x + 1, (IMAGE,)),
    "number minus": (lambda x: 1 - x, (IMAGE,)),
    "modulo a number": (lambda x: x % 2, (IMAGE,)),
    "x*y": (lambda x, y: x * y, Y),
    "x*x": (lambda x: x * x, (IMAGE,)),
    "x*constant": (lambda x: x * torch.ones(6), (IMAGE,)),
    "x*y broadcast": (lambda x, y: x * y, (IMAGE, (6,))),
    "x/y": (lambda x, y: x / y, Y),
    "x+y": (lambda x, y: x + y, Y),
    "x-y scaled": (lambda x, y: torch.sub(x, y, alpha=2), Y),
    "x%y": (lambda x, y: torch.remainder(x, y), Y),
    "x**2": (lambda x: x**2, (IMAGE,)),
    "x**3": (lambda x: x**3, (IMAGE,)),
    "x**0.5": (lambda x: x**0.5, (IMAGE,)),
    "x**-0.5": (lambda x: x**-0.5, (IMAGE,)),
    "x**1": (lambda x: x**1, (IMAGE,)),
    "2**x": (lambda x: 2**x, (IMAGE,)),
    "x**y": (lambda x, y: x**y, Y),
    "maximum": (torch.maximum, Y),
    "minimum": (torch.minimum, Y),
    "atan2": (torch.atan2, Y),
    "addcmul": (lambda x, y: torch.addcmul(x, y, x, value=0.5), Y),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), Y),
    "clamp": (lambda x: x.clamp(0.2, 0.8), (IMAGE,)),
    "clamp min": (lambda x: x.clamp(min=0.2), (IMAGE,)),
    "relu_": (lambda x: copied(x).relu_(), (IMAGE,)),
    "gelu of a view": (lambda x: f.gelu(turned(x)), (IMAGE,)),
    "silu_": (lambda x: f.silu(copied(x), inplace=True), (IMAGE,)),
    "hardswish_": (lambda x: f.hardswish(copied(x), inplace=True), (IMAGE,)),
    "leaky_relu_": (lambda x: f.leaky_relu(copied(x), inplace=True), (IMAGE,)),
    "mul_": (lambda x, y: copied(x).mul_(y), Y),
    "mul_ a number": (lambda x: copied(x).mul_(2), (IMAGE,)),
    "add_": (lambda x, y: copied(x).add_(y), Y),
    "div_": (lambda x, y: copied(x).div_(y), Y),
    "glu": (lambda x: f.glu(x, 1), (IMAGE,)),
    "prelu": (f.prelu, (IMAGE, (4,))),
    "max": (lambda x: x.max(), (IMAGE,)),
    "max dim": (lambda x: x.max(1)[0], (IMAGE,)),
    "min dim": (lambda x: x.min(1)[0], (IMAGE,)),
    "sum all": (lambda x: x.sum(), (IMAGE,)),
    "norm": (lambda x: x.norm(), (IMAGE,)),
    "norm 1": (lambda x: x.norm(1, 1), (IMAGE,)),
    "norm inf": (lambda x: torch.linalg.vector_norm(x, float("inf"), 1), (IMAGE,)),
    "var_mean": (lambda x: torch.var_mean(x, 1), (IMAGE,)),
    "topk": (lambda x: x.topk(2, 1)[0], (IMAGE,)),
    "sort": (lambda x: x.sort(1)[0], (IMAGE,)),
    "argmax": (lambda x: x * x.argmax(1, keepdim=True), (IMAGE,)),
    "cat": (lambda x, y: torch.cat((x, y), 1), Y),
    "stack": (lambda x, y: torch.stack((x, y), 1), Y),
    "chunk": (lambda x: torch.sigmoid(x.chunk(2, 1)[0]) * x.chunk(2, 1)[1], (IMAGE,)),
    "chunk of a result": (lambda x: (lambda a, b: a * b)(*(x + 1).chunk(2, 1)), (IMAGE,)),
    "split": (lambda x: (lambda a, b: a * b)(*(x + 1).split(2, 1)), (IMAGE,)),
    "split sizes": (lambda x: (x + 1).split((1, 3), 1)[1].square(), (IMAGE,)),
    "unbind": (lambda x: (x + 1).unbind(1)[2].square(), (IMAGE,)),
    "select": (lambda x: (x + 1)[:, 1].square(), (IMAGE,)),
    "slice": (lambda x: (x + 1)[:, :, 1:3].square(), (IMAGE,)),
    "expand": (lambda x: x.expand(2, 4, 6, 6).square(), ((2, 1, 6, 6),)),
    "repeat": (lambda x: x.repeat(1, 2, 1, 1).square(), (IMAGE,)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1).square(), (IMAGE,)),
    "reshape": (lambda x: x.reshape(2, -1).square(), (IMAGE,)),
    "reshape that copies": (lambda x: turned(x).reshape(2, -1).square(), (IMAGE,)),
    "reshape that copies, twice kept": (
        lambda x: turned(x).reshape(2, -1).square().sum() + x.square().sum(), (IMAGE,),
    ),
    "permute": (lambda x: x.permute(3, 0, 1, 2).square(), (IMAGE,)),
    "contiguous": (lambda x: turned(x).contiguous().view(2, -1).square() + x.exp().sum(), (IMAGE,)),
    "contiguous, and as it is": (
        lambda x: (lambda y: y.contiguous().square().sum() + y.sin().sum())(turned(x)), (IMAGE,),
    ),
    "as it is, and contiguous": (
        lambda x: (lambda y: y.sin().sum() + y.contiguous().square().sum())(turned(x)), (IMAGE,),
    ),
    "contiguous, read twice": (
        lambda x: (lambda y: y.square().sum() + y.sin().sum() + x.cos().sum())(
            turned(x).contiguous()
        ), (IMAGE,),
    ),
    "contiguous of contiguous": (lambda x: x.contiguous().square() * x.sum(), (IMAGE,)),
    "clone": (lambda x: x.clone().square() + x.square(), (IMAGE,)),
    "unfold": (lambda x: f.unfold(x, 3), (IMAGE,)),
    "where": (lambda x, y, m: torch.where(m, x, y), (*Y, (IMAGE, BOOL))),
    "masked_fill": (lambda x, m: x.masked_fill(m, 0.0), (IMAGE, (IMAGE, BOOL))),
    "index_select": (lambda x, i: x.index_select(1, i), (IMAGE, ((3,), LONG))),
    "index": (lambda x, i: x[i], (IMAGE, ((3,), LONG))),
    "index along two axes": (lambda x, i, j: x[i, j], (IMAGE, ((3,), LONG), ((3,), LONG))),
    "gather": (lambda x, i: x.gather(1, i), (IMAGE, (IMAGE, LONG))),
    "embedding": (lambda i, w: f.embedding(i, w), (((2, 5), LONG), (10, 8))),
    "roll": (lambda x: x.roll(1, 2), (IMAGE,)),
    "tril": (lambda x: x.tril(), (IMAGE,)),
    "pad": (lambda x: f.pad(x, (1, 1)), (IMAGE,)),
    "pad by nothing": (lambda x: f.pad(x, (0, 0)).square() * x.square(), (IMAGE,)),
    "pad reflect": (lambda x: f.pad(x, (1, 1, 1, 1), mode="reflect"), (IMAGE,)),
    "pad replicate": (lambda x: f.pad(x, (1, 1, 1, 1), mode="replicate"), (IMAGE,)),
    "pad circular": (lambda x: f.pad(x, (1, 1, 1, 1), mode="circular"), (IMAGE,)),
    "dropout": (lambda x: f.dropout(x, 0.5), (IMAGE,)),
    "dropout p=0": (lambda x: f.dropout(x, 0.0).square(), (IMAGE,)),
    "dropout p=1": (lambda x: f.dropout(x, 1.0), (IMAGE,)),
    "dropout off": (lambda x: f.dropout(x, 0.5, training=False).square(), (IMAGE,)),
    "dropout2d": (lambda x: f.dropout2d(x, 0.5), (IMAGE,)),
    "alpha_dropout": (lambda x: f.alpha_dropout(x, 0.5, True), (IMAGE,)),
    "layer_norm": (lambda x: f.layer_norm(x, (6,)), (IMAGE,)),
    "group_norm": (lambda x: f.group_norm(x, 2), (IMAGE,)),
    "instance_norm": (f.instance_norm, (IMAGE,)),
    "batch_norm": (
        lambda x: f.batch_norm(x, torch.zeros(4), torch.ones(4), training=True), (IMAGE,),
    ),
    "rms_norm": (lambda x: f.rms_norm(x, (6,)), (IMAGE,)),
    "softmax": (lambda x: f.softmax(x, 1), (IMAGE,)),
    "log_softmax": (lambda x: f.log_softmax(x, 1), (IMAGE,)),
    "cross_entropy": (f.cross_entropy, ((4, 8), ((4,), LONG))),
    "cross_entropy of images": (f.cross_entropy, (IMAGE, ((2, 6, 6), LONG))),
    "cross_entropy sum": (
        lambda x, t: f.cross_entropy(x, t, reduction="sum"), ((4, 8), ((4,), LONG)),
    ),
    "cross_entropy smoothed": (
        lambda x, t: f.cross_entropy(x, t, label_smoothing=0.1), ((4, 8), ((4,), LONG)),
    ),
    "nll_loss": (f.nll_loss, ((4, 8), ((4,), LONG))),
    "mse_loss": (f.mse_loss, Y),
    "l1_loss": (f.l1_loss, Y),
    "matmul": (torch.matmul, ((3, 4), (4, 5))),
    "matmul of batches": (torch.matmul, ((2, 4, 6, 8), (2, 4, 8, 5))),
    "matmul of views": (lambda x, y: turned(x) @ turned(y), ((2, 6, 4, 8), (2, 8, 4, 5))),
    "matmul, batch by matrix": (torch.matmul, ((2, 4, 6, 8), (8, 5))),
    "matmul, view by matrix": (lambda x, w: turned(x) @ w, ((2, 4, 6, 8), (8, 5))),
    "matmul, matrix by batch": (torch.matmul, ((5, 6), (2, 4, 6, 8))),
    "matmul broadcast": (torch.matmul, ((2, 4, 6, 8), (4, 8, 5))),
    "matmul, vector": (torch.matmul, ((2, 6, 8), (8,))),
    "bmm": (torch.bmm, ((2, 3, 4), (2, 4, 5))),
    "bmm of views": (lambda x, y: torch.bmm(x, y.transpose(1, 2)), ((2, 3, 4), (2, 5, 4))),
    "addmm": (torch.addmm, ((5,), (3, 4), (4, 5))),
    "baddbmm": (torch.baddbmm, ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    "linear": (f.linear, ((2, 3, 8), (5, 8), (5,))),
    "linear of a view": (lambda x, w: f.linear(turned(x), w), ((2, 3, 4, 8), (5, 8))),
    "einsum": (lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y), ((2, 4, 6, 8), (2, 4, 5, 8))),
    "einsum, heads inside": (
        lambda x, y: torch.einsum("bihd,bjhd->bhij", x, y), ((2, 6, 4, 8), (2, 5, 4, 8)),
    ),
    "einsum of products": (lambda x, y: torch.einsum("ij,ij->ij", x, y), ((3, 4), (3, 4))),
    "einsum, matrix": (lambda x, y: torch.einsum("bnd,de->bne", x, y), ((2, 3, 4), (4, 5))),
    "attention": (f.scaled_dot_product_attention, HEADS),
    "attention causal": (
        lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), HEADS,
    ),
    "attention with dropout": (
        lambda q, k, v: f.scaled_dot_product_attention(q, k, v, dropout_p=0.1), HEADS,
    ),
    "attention of views": (
        lambda q: f.scaled_dot_product_attention(*[turned(q)] * 3).transpose(1, 2).flatten(2)
        .square(), ((2, 6, 4, 8),),
    ),
    "attention of views with dropout": (
        lambda q: f.scaled_dot_product_attention(*[turned(q)] * 3, dropout_p=0.1), ((2, 6, 4, 8),),
    ),
    "attention, flags": (
        lambda q, k, v, m: f.scaled_dot_product_attention(q, k, v, m), (*HEADS, ((6, 6), BOOL)),
    ),
    "attention, strided features": (
        lambda q, k, v: f.scaled_dot_product_attention(
            q.transpose(2, 3), k.transpose(2, 3), v.transpose(2, 3)
        ), HEADS,
    ),
    "attention of three axes": (f.scaled_dot_product_attention, ((4, 6, 8),) * 3),
    "attention, fewer keys": (
        lambda q, k, v: f.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ((2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8)),
    ),
    "conv1d": (f.conv1d, ((2, 4, 9), (5, 4, 3))),
    "conv2d": (f.conv2d, (IMAGE, (5, 4, 3, 3), (5,))),
    "conv2d same": (lambda x, w: f.conv2d(x, w, padding="same"), (IMAGE, (5, 4, 3, 3))),
    "conv2d same, even": (lambda x, w: f.conv2d(x, w, padding="same"), (IMAGE, (5, 4, 2, 2))),
    "conv3d": (f.conv3d, ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2))),
    "conv_transpose2d": (f.conv_transpose2d, (IMAGE, (4, 5, 3, 3))),
    "max_pool1d": (lambda x: f.max_pool1d(x, 2), ((2, 4, 8),)),
    "max_pool2d": (lambda x: f.max_pool2d(x, 2), (IMAGE,)),
    "max_pool2d with indices": (lambda x: f.max_pool2d(x, 2, return_indices=True)[0], (IMAGE,)),
    "max_pool3d": (lambda x: f.max_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "avg_pool1d": (lambda x: f.avg_pool1d(x, 2), ((2, 4, 8),)),
    "avg_pool2d": (lambda x: f.avg_pool2d(x, 2), (IMAGE,)),
    "adaptive_avg_pool2d": (lambda x: f.adaptive_avg_pool2d(x, 2), (IMAGE,)),
    "adaptive_avg_pool2d to one": (lambda x: f.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "adaptive_avg_pool1d to one": (lambda x: f.adaptive_avg_pool1d(x, 1), ((2, 4, 8),)),
    "adaptive_max_pool2d": (lambda x: f.adaptive_max_pool2d(x, 2), (IMAGE,)),
    "interpolate nearest": (lambda x: f.interpolate(x, scale_factor=2), (IMAGE,)),
    "interpolate bilinear": (
        lambda x: f.interpolate(x, scale_factor=2, mode="bilinear"), (IMAGE,),
    ),
    "grid_sample": (
        lambda x, g: f.grid_sample(x, g, align_corners=False), (IMAGE, (2, 3, 3, 2)),
    ),
    "pixel_shuffle": (lambda x: f.pixel_shuffle(x, 2).square(), (IMAGE,)),
    "pixel_unshuffle": (lambda x: f.pixel_unshuffle(x, 2).square(), (IMAGE,)),
    "part written": (lambda x: _written(x, 0.0), (IMAGE,)),
    "part written with a tensor": (lambda x, y: _written(x, y[:, :2]), Y),
    "einsum, result reshaped": (
        lambda x, y: torch.einsum("bihd,bjhd->bihj", x, y).flatten(2).square(),
        ((2, 6, 4, 8), (2, 5, 4, 8)),
    ),
    "matmul, result reshaped": (
        lambda x, y: (x @ y).transpose(1, 2).reshape(2, 6, -1).square(),
        ((2, 4, 6, 8), (2, 4, 8, 5)),
    ),
    "channels last": (
        lambda x, w: f.conv2d(f.layer_norm(x.permute(0, 2, 3, 1), (4,)).permute(0, 3, 1, 2), w)
        .permute(0, 2, 3, 1).reshape(2, -1).square(), (IMAGE, (5, 4, 3, 3)),
    ),
    "sum of views": (lambda x, y: (turned(x) + turned(y)).reshape(2, -1).square(), Y),
    "sum of a view and not": (lambda x, y: (turned(x) + y).reshape(2, -1).square(), Y6),
    "cat with nothing": (
        lambda x: torch.cat((turned(x), x[:, :0].transpose(1, 2)), 2).transpose(1, 2)
        .reshape(2, -1).square(), (IMAGE,),
    ),
    "a constant that is expanded": (lambda x: x * torch.ones(6).expand(6, 6), (IMAGE,)),
    "two views of a constant": (
        lambda x: (lambda c: x * c[:6] + x.sum() * c[6:])(torch.ones(12)), (IMAGE,),
    ),
    "masked_fill_": (
        lambda x, m: copied(x).masked_fill_(m, 0.0).sin(), (IMAGE, (IMAGE, BOOL)),
    ),
    "copy_": (lambda x: torch.empty(IMAGE).copy_(x).sin() * x.sin(), (IMAGE,)),
    "addcmul_": (lambda x, y: copied(x).addcmul_(y, y).sin() * y.sin(), Y),
    "add_ scaled": (lambda x, y: copied(x).add_(y, alpha=2).sin() * y.sin(), Y),
    "sub_ scaled": (lambda x, y: copied(x).sub_(y, alpha=2).sin() * y.sin(), Y),
    "addmm_": (
        lambda x, y, z: copied(x).addmm_(y, z).sin() * x.sin(), ((3, 5), (3, 4), (4, 5)),
    ),
    "pow_": (lambda x: copied(x).pow_(2).sin(), (IMAGE,)),
    "exp_": (lambda x: copied(x).exp_().sin(), (IMAGE,)),
    "sin_": (lambda x: copied(x).sin_().cos(), (IMAGE,)),
    "clamp_": (lambda x: copied(x).clamp_(0.3, 0.6).cos(), (IMAGE,)),
    "squeeze_": (lambda x: (x + 1).squeeze_(1).transpose_(0, 1).reshape(12).cos(), ((2, 1, 6),)),
    "zero_": (lambda x: x * copied(x).zero_(), (IMAGE,)),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), (IMAGE, (IMAGE, LONG), IMAGE)),
    "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), (IMAGE, (IMAGE, LONG), IMAGE)),
    "index_add": (lambda x, i, y: x.index_add(0, i, y), ((4, 6), ((2,), LONG), (2, 6))),
    "index_copy": (lambda x, i, y: x.index_copy(0, i, y), ((4, 6), ((2,), LONG), (2, 6))),
    "index put with a tensor": (lambda x, i, y: _put(x, i, y), (IMAGE, ((2,), LONG), (2, 4, 6, 6))),
    "unfold of a tensor": (lambda x: x.exp().unfold(2, 3, 1).sin(), (IMAGE,)),
    "unfold that is copied": (
        lambda x: x.exp().unfold(2, 3, 2).reshape(2, -1).sin() * x.sin().sum(), (IMAGE,),
    ),
    "index put": (lambda x, i: _put(x, i), (IMAGE, ((2,), LONG))),
    "group_norm of a part": (lambda x: f.group_norm(x.chunk(2, 1)[0], 1), (IMAGE,)),
    "group_norm, channels last": (
        lambda x: f.group_norm(x.exp().permute(0, 3, 1, 2), 2), (IMAGE,),
    ),
    "instance_norm of a part": (lambda x: f.instance_norm(x.chunk(2, 1)[0]), (IMAGE,)),
    "layer_norm of a part": (lambda x: f.layer_norm(x.chunk(2, 1)[0], (6,)), (IMAGE,)),
    "batch_norm of a part": (
        lambda x: f.batch_norm(x.chunk(2, 1)[0], None, None, training=True), (IMAGE,),
    ),
    "softmax of a part": (lambda x: f.softmax(x.chunk(2, 1)[0], 1), (IMAGE,)),
    "conv2d of a part": (
        lambda x, w: f.conv2d(x.chunk(2, 1)[0], w), (IMAGE, (5, 2, 3, 3)),
    ),
    "max_pool2d of a part": (lambda x: f.max_pool2d(x.chunk(2, 1)[0], 2), (IMAGE,)),
    "attention of parts": (
        lambda x: f.scaled_dot_product_attention(*x.chunk(3, -1)), ((2, 4, 6, 24),),
    ),
    "linear of a part": (lambda x, w: f.linear(x.chunk(2, 1)[0], w), (IMAGE, (5, 6))),
    "bmm of parts": (lambda x: torch.bmm(*x.chunk(2, 2)), ((2, 3, 6),)),
    "cross_entropy of a part": (
        lambda x, t: f.cross_entropy(x.chunk(2, 1)[0], t), ((4, 8), ((4,), LONG)),
    ),
    **{
        name: ((lambda n: lambda x: getattr(torch, n)(x))(name), (IMAGE,))
        for name in ("absolute", "arctan", "asinh", "atanh", "log10", "negative", "trunc", "sgn",
                     "positive", "adjoint", "triu")
    },
    "acosh": (lambda x: torch.acosh(x + 2), (IMAGE,)),
    "special_expm1": (torch.special.expm1, (IMAGE,)),
    **{
        name: ((lambda n: lambda x, y: getattr(torch, n)(x, y))(name), Y)
        for name in ("arctan2", "divide", "true_divide", "multiply", "subtract", "fmax", "fmin",
                     "fmod", "floor_divide")
    },
    **{
        name: ((lambda n: lambda x, y: x * getattr(torch, n)(x, y))(name), Y)
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "less", "greater", "not_equal",
                     "less_equal", "greater_equal")
    },
    **{
        name: ((lambda n: lambda x, a, b: x * getattr(torch, n)(a, b))(name),
               (IMAGE, (IMAGE, BOOL), (IMAGE, BOOL)))
        for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
                     "bitwise_xor")
    },
    **{
        name: ((lambda n: lambda x, a: x * getattr(torch, n)(a, 1))(name), (IMAGE, (IMAGE, LONG)))
        for name in ("bitwise_left_shift", "bitwise_right_shift")
    },
    "operators of flags": (
        lambda x, a, b: x * (a & b) * (a | b) * (a ^ b), (IMAGE, (IMAGE, BOOL), (IMAGE, BOOL)),
    ),
    "operators of bits": (
        lambda x, a: x * (a << 1) * (a >> 1), (IMAGE, (IMAGE, LONG)),
    ),
    **{
        name: ((lambda n: lambda x: x * getattr(torch, n)(x))(name), (IMAGE,))
        for name in ("isinf", "isnan", "logical_not")
    },
    "bitwise_not": (lambda x, a: x * torch.bitwise_not(a), (IMAGE, (IMAGE, BOOL))),
    "all": (lambda x, a: x * a.all(1, keepdim=True), (IMAGE, (IMAGE, BOOL))),
    "any": (lambda x, a: x * a.any(1, keepdim=True), (IMAGE, (IMAGE, BOOL))),
    "_is_all_true": (lambda x, a: x * torch._is_all_true(a), (IMAGE, (IMAGE, BOOL))),
    "_is_any_true": (lambda x, a: x * torch._is_any_true(a), (IMAGE, (IMAGE, BOOL))),
    "argmin": (lambda x: x * x.argmin(1, keepdim=True), (IMAGE,)),
    "argsort": (lambda x: x * x.argsort(1), (IMAGE,)),
    "count_nonzero": (lambda x: x * torch.count_nonzero(x, 1).unsqueeze(1), (IMAGE,)),
    "one_hot": (lambda x, i: x * f.one_hot(i, 6), ((2, 6), ((2,), LONG))),
    "clamp_min": (lambda x: torch.clamp_min(x, 0.3), (IMAGE,)),
    "clamp_max": (lambda x: torch.clamp_max(x, 0.6), (IMAGE,)),
    "clip": (lambda x: torch.clip(x, 0.3, 0.6), (IMAGE,)),
    "clamp by tensors": (lambda x, y: torch.clamp(x, y, y + 1), Y),
    "threshold": (lambda x: f.threshold(x, 0.3, 0.0), (IMAGE,)),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), (IMAGE, *Y)),
    "addmv": (torch.addmv, ((3,), (3, 4), (4,))),
    "mv": (torch.mv, ((3, 4), (4,))),
    "inner": (torch.inner, ((3, 4), (5, 4))),
    "inner of batches": (torch.inner, ((2, 3, 4), (5, 4))),
    "inner of vectors": (torch.inner, ((4,), (4,))),
    "mm": (torch.mm, ((3, 4), (4, 5))),
    "dot": (torch.dot, ((4,), (4,))),
    "vdot": (torch.vdot, ((4,), (4,))),
    "outer": (torch.outer, ((3,), (4,))),
    "ger": (torch.ger, ((3,), (4,))),
    "bilinear": (f.bilinear, ((3, 4), (3, 5), (6, 4, 5))),
    "cosine_similarity": (lambda x, y: f.cosine_similarity(x, y), Y),
    "norm of torch": (lambda x: torch.norm(x, 2, 1), (IMAGE,)),
    "norm 3": (lambda x: torch.linalg.vector_norm(x, 3, 1), (IMAGE,)),
    "channel_shuffle": (lambda x: f.channel_shuffle(x, 2).sin(), (IMAGE,)),
    "concat": (lambda x, y: torch.concat((x, y)), Y),
    "concatenate": (lambda x, y: torch.concatenate((x, y)), Y),
    "constant_pad_nd": (lambda x: torch.constant_pad_nd(x, (1, 1)), (IMAGE,)),
    "pad by less than nothing": (lambda x: f.pad(x, (-1, 0)).sin(), (IMAGE,)),
    "ReflectionPad1d": (lambda x: aten.reflection_pad1d(x, (1, 1)), ((2, 4, 8),)),
    "ReflectionPad2d": (lambda x: aten.reflection_pad2d(x, (1, 1, 1, 1)), (IMAGE,)),
    "ReflectionPad3d": (lambda x: aten.reflection_pad3d(x, (1,) * 6), ((1, 2, 4, 4, 4),)),
    "ReplicationPad1d": (lambda x: aten.replication_pad1d(x, (1, 1)), ((2, 4, 8),)),
    "ReplicationPad2d": (lambda x: aten.replication_pad2d(x, (1, 1, 1, 1)), (IMAGE,)),
    "ReplicationPad3d": (lambda x: aten.replication_pad3d(x, (1,) * 6), ((1, 2, 4, 4, 4),)),
    "conv_transpose1d": (f.conv_transpose1d, ((2, 4, 9), (4, 5, 3))),
    "conv_transpose3d": (f.conv_transpose3d, ((1, 2, 4, 4, 4), (2, 3, 2, 2, 2))),
    "convolution": (
        lambda x, w: torch.convolution(x, w, None, [1], [0], [1], False, [0], 1),
        ((2, 4, 9), (5, 4, 3)),
    ),
    "avg_pool3d": (lambda x: f.avg_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "adaptive_avg_pool3d": (lambda x: f.adaptive_avg_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "adaptive_max_pool1d": (lambda x: f.adaptive_max_pool1d(x, 2), ((2, 4, 8),)),
    "adaptive_max_pool3d": (lambda x: f.adaptive_max_pool3d(x, 2), ((1, 2, 4, 4, 4),)),
    "max_pool1d with indices": (
        lambda x: f.max_pool1d(x, 2, return_indices=True)[0], ((2, 4, 8),),
    ),
    "max_pool3d with indices": (
        lambda x: f.max_pool3d(x, 2, return_indices=True)[0], ((1, 2, 4, 4, 4),),
    ),
    "max_unpool2d": (
        lambda x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2), (IMAGE,),
    ),
    "fold": (lambda x: f.fold(x, (4, 4), 2, stride=2), ((1, 8, 4),)),
    "grid_sampler_2d": (
        lambda x, g: torch.grid_sampler_2d(x, g, 0, 0, False), (IMAGE, (2, 3, 3, 2)),
    ),
    **{
        f"interpolate {mode} of {len(shape) - 2}": (
            (lambda m: lambda x: f.interpolate(x, scale_factor=2, mode=m))(mode), (shape,)
        )
        for mode, shape in (
            ("nearest", (2, 4, 8)), ("nearest", (1, 2, 4, 4, 4)), ("nearest-exact", (2, 4, 8)),
            ("nearest-exact", IMAGE), ("nearest-exact", (1, 2, 4, 4, 4)), ("linear", (2, 4, 8)),
            ("bicubic", IMAGE), ("trilinear", (1, 2, 4, 4, 4)),
        )
    },
    "interpolate bilinear, antialiased": (
        lambda x: f.interpolate(x, size=3, mode="bilinear", antialias=True), (IMAGE,),
    ),
    "interpolate bicubic, antialiased": (
        lambda x: f.interpolate(x, size=3, mode="bicubic", antialias=True), (IMAGE,),
    ),
    "feature_alpha_dropout": (lambda x: f.feature_alpha_dropout(x, 0.5, True), (IMAGE,)),
    "broadcast_to": (lambda x: torch.broadcast_to(x, (2, 4, 6, 6)).sin(), ((2, 1, 6, 6),)),
    "expand_as": (lambda x, y: x.expand_as(y).sin() + y, ((2, 1, 6, 6), IMAGE)),
    "views": (
        lambda x: aten.alias(x.exp()).movedim(1, 2).moveaxis(1, 2).swapaxes(1, 2).swapdims(1, 2)
        .mT.mT.unflatten(1, (2, 2)).narrow(1, 0, 1).squeeze(1).unsqueeze(1).sin(), (IMAGE,),
    ),
    "views of a matrix": (lambda x: (x.exp().t().T.mH.H.ravel()).sin(), ((3, 4),)),
    "reshapes by others": (
        lambda x, y: x.exp().reshape_as(y).sin() + x.exp().view_as(y).cos() + y, ((4, 6), (6, 4)),
    ),
    "tensor_split": (lambda x: x.exp().tensor_split(3, 1)[1].sin(), (IMAGE,)),
    "tile": (lambda x: x.tile(2).sin(), (IMAGE,)),
    "take_along_dim": (lambda x, i: x.take_along_dim(i, 1), (IMAGE, (IMAGE, LONG))),
    "type_as": (lambda x, y: x.double().type_as(y).sin() * y, Y),
    "float": (lambda x, i: x * i.float(), (IMAGE, (IMAGE, LONG))),
    "long": (lambda x: x * x.long(), (IMAGE,)),
    "fill": (lambda x: x * torch.fill(x, 2.0).exp(), (IMAGE,)),
    "unsafe splits": (
        lambda x: torch.unsafe_chunk(x.exp(), 2, 1)[0].sin() + torch.unsafe_split(x.exp(), 2, 1)[1]
        .sin() + torch.unsafe_split_with_sizes(x.exp(), (2, 2), 1)[0].sin(), (IMAGE,),
    ),
    "matmul, matrix by batch, reshaped": (
        lambda x, y: (x @ y).transpose(1, 2).reshape(-1).sin(), ((5, 6), (2, 6, 8)),
    ),
    "matmul, matrix by a transposed batch": (
        lambda x, y: (x @ y.transpose(1, 2)).reshape(-1).sin() + y.sin().sum(),
        ((5, 6), (2, 8, 6)),
    ),
    **{
        f"{name} of transposed rows": (
            twice_kept(run, (0, 2, 1)), ((2, 8, 16),),
        )
        for name, run in {
            "max_pool1d": lambda x: f.max_pool1d(x, 2),
            "avg_pool1d": lambda x: f.avg_pool1d(x, 2),
            "adaptive_avg_pool1d": lambda x: f.adaptive_avg_pool1d(x, 2),
            "batch_norm": lambda x: f.batch_norm(x, None, None, training=True),
            "interpolate": lambda x: f.interpolate(x, scale_factor=2.0),
            "conv1d": lambda x: f.conv1d(x, torch.ones(4, 16, 3)),
            "group_norm": lambda x: f.group_norm(x, 2),
            "pad": lambda x: f.pad(x, (1, 1)),
            "cat": lambda x: torch.cat((x, x)),
            "softmax": lambda x: x.softmax(1),
            "layer_norm": lambda x: f.layer_norm(x, (8,)),
            "dropout": lambda x: f.dropout(x, 0.5),
            "where": lambda x: torch.where(x > 0.5, x, 0.0),
            "cumsum": lambda x: x.cumsum(1),
            "flip": lambda x: x.flip(1),
            "roll": lambda x: x.roll(1, 1),
            "clone": lambda x: x.clone(),
            "repeat": lambda x: x.repeat(1, 2, 1),
            "index_select": lambda x: x.index_select(1, torch.tensor([0, 1])),
            "sum": lambda x: x.sum(1, keepdim=True),
            "mean": lambda x: x.mean(2, keepdim=True),
            "masked_fill": lambda x: x.masked_fill(x > 0.5, 0.0),
            "gather": lambda x: x.gather(1, torch.zeros(2, 3, 8, dtype=torch.long)),
            "sort": lambda x: x.sort(1)[0],
            "topk": lambda x: x.topk(2, 1)[0],
            "tril": lambda x: x.tril(),
            "log_softmax": lambda x: x.log_softmax(1),
            "cast": lambda x: x.double(),
            "rms_norm": lambda x: f.rms_norm(x, (8,)),
            "amax": lambda x: x.amax(1, keepdim=True),
            "std": lambda x: x.std(1, keepdim=True),
            "max": lambda x: x.max(1, keepdim=True)[0],
            "stack": lambda x: torch.stack((x, x), 1).flatten(1, 2),
            "glu": lambda x: f.glu(x, 1),
            "prelu": lambda x: f.prelu(x, torch.ones(1)),
            "index": lambda x: x[:, torch.tensor([0, 2])],
            "norm": lambda x: torch.linalg.vector_norm(x, 2, 1, keepdim=True),
        }.items()
    },
    **{
        f"{name} of transposed images": (
            twice_kept(run, (0, 3, 1, 2)), ((2, 6, 6, 4),),
        )
        for name, run in {
            "max_pool2d": lambda x: f.max_pool2d(x, 2),
            "avg_pool2d": lambda x: f.avg_pool2d(x, 2),
            "adaptive_avg_pool2d": lambda x: f.adaptive_avg_pool2d(x, 2),
            "adaptive_avg_pool2d to one": lambda x: f.adaptive_avg_pool2d(x, 1),
            "adaptive_max_pool2d": lambda x: f.adaptive_max_pool2d(x, 2),
            "batch_norm": lambda x: f.batch_norm(x, None, None, training=True),
            "interpolate": lambda x: f.interpolate(x, scale_factor=2.0),
            "interpolate bilinear": lambda x: f.interpolate(x, scale_factor=2.0, mode="bilinear"),
            "interpolate bicubic": lambda x: f.interpolate(x, scale_factor=2.0, mode="bicubic"),
            "conv2d": lambda x: f.conv2d(x, torch.ones(5, 4, 3, 3)),
            "conv2d of groups": lambda x: f.conv2d(x, torch.ones(4, 1, 3, 3), groups=4),
            "conv_transpose2d": lambda x: f.conv_transpose2d(x, torch.ones(4, 5, 3, 3)),
            "group_norm": lambda x: f.group_norm(x, 2),
            "instance_norm": f.instance_norm,
            "pad": lambda x: f.pad(x, (1, 1)),
            "pad reflect": lambda x: f.pad(x, (1, 1, 1, 1), mode="reflect"),
            "cat": lambda x: torch.cat((x, x), 1),
            "cat with others": lambda x: torch.cat((x, x.contiguous()), 1),
            "pixel_shuffle": lambda x: f.pixel_shuffle(x, 2),
            "pixel_unshuffle": lambda x: f.pixel_unshuffle(x, 2),
            "channel_shuffle": lambda x: f.channel_shuffle(x, 2),
            "prelu": lambda x: f.prelu(x, torch.ones(4)),
            "unfold": lambda x: f.unfold(x, 2).unsqueeze(-1),
            "grid_sample": lambda x: f.grid_sample(x, torch.zeros(2, 3, 3, 2), align_corners=False),
            "dropout2d": lambda x: f.dropout2d(x, 0.5),
            "softmax": lambda x: x.softmax(1),
            "split": lambda x: f.conv2d(x.chunk(2, 1)[0], torch.ones(5, 2, 3, 3)),
        }.items()
    },
    "no_grad": (lambda x: x * _without_gradient(x), (IMAGE,)),
    "detach of a result": (lambda x: x * torch.sigmoid(x).detach(), (IMAGE,)),
    "cast": (lambda x: x.double().square(), (IMAGE,)),
    **MORE,
}  # fmt: skip
ESTIMATES = (  # and marked as such
    "detach of a result", "zero_", "fill", "bilinear", "cosine_similarity",
    "contiguous, and as it is", "as it is, and contiguous",
)  # fmt: skip


def _written(x: Any, value: Any) -> Any:
    y = x.exp()
    y[:, :2] = value
    return y.reshape(2, -1).sin()


def _put(x: Any, index: Any, value: Any = 0.0) -> Any:
    y = x.exp()
    y[index] = value
    return y.sin()


def _without_gradient(x: Any) -> Any:
    with torch.no_grad():
        return torch.sigmoid(x).square()


# Operators that single calls do not reach: recurrent ones are among the modules of
# test_torch_training_modules.py, others are of exported programs or quantized numbers, or name what
# another name is called by; what `isfinite` saves is freed at once.
RECURRENT = frozenset((
    "gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell",
    "rnn_relu_cell",
))  # fmt: skip
UNREACHED = frozenset((
    "embedding_renorm",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_convolution", "_index_put_impl",
    "_int_mm", "_log_softmax", "_prelu_kernel", "_reshape_alias", "_safe_softmax",
    "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_softmax", "_to_copy", "_unsafe_index",
    "_unsafe_index_put", "_unsafe_view", "float", "half", "isfinite", "lift", "lift_fresh",
    "long", "native_channel_shuffle", "nll_loss", "nll_loss2d", "norm", "requires_grad",
    "resolve_conj", "resolve_neg", "split_copy", "_cdist_forward", "_euclidean_dist",
    "_conj_physical", "grid_sampler_3d", "nll_loss2d_forward", "nll_loss_forward",
))  # fmt: skip


class Call(torch.nn.Module):  # type: ignore[misc]
    """One function as a module."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *given: Any) -> Any:
        return self.run(*given)


def tensor(spec: Any) -> Any:
    """An input: numbers that require a gradient, indices or flags."""
    if isinstance(spec[-1], str):
        shape, kind = spec
        made = torch.zeros(shape, dtype=torch.long)
        return made if kind == LONG else torch.arange(made.numel()).reshape(shape) % 2 == 0
    return (torch.rand(spec) * 0.5 + 0.25).requires_grad_()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_one_call_keeps_what_autograd_keeps(case: str) -> None:
    run, specs = CASES[case]
    model = Call(run).train()
    given = [tensor(each) for each in specs]
    report = layerscope.analyze(model, input_data=given)
    ours = kept(report.graph, report.shapes, report.costs)
    if case in ESTIMATES:
        assert ours.status == "estimate"
        return
    assert ours.total_bytes == saved_bytes(model, given)
    assert (ours.status, ours.notes) == ("exact", ())


@pytest.mark.filterwarnings("ignore")
def test_every_operator_is_compared_or_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that nobody compares with autograd is not called exact."""
    seen: set[str] = set()
    lowering_for = plans.lowering_for

    def spy(run: Any, info: Any) -> Any:
        seen.add(info.name)
        return lowering_for(run, info)

    monkeypatch.setattr(plans, "lowering_for", spy)
    for run, specs in CASES.values():
        CACHES[0] = CaptureCaches()
        layerscope.analyze(Call(run).train(), input_data=[tensor(each) for each in specs])
    assert CONVERTERS.keys() - seen - UNCHECKED_OPERATORS - RECURRENT == UNREACHED
