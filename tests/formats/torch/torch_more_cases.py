"""More calls to compare with autograd: losses, indices, views, complex numbers, distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.formats.torch.torch_nets import f, torch

Case = tuple[Callable[..., Any], tuple[Any, ...]]
IMAGE = (2, 4, 6, 6)
LONG, BOOL = "long", "bool"
Y = (IMAGE, IMAGE)
MATRIX = (6, 6)
INDEX = ((3,), LONG)
ROW = ((6,), ((6,), LONG), (6,))
LABELS = ((3, 5), ((3,), LONG))
FLAGS = (IMAGE, (IMAGE, BOOL))
PAIRS = (6, 2)

UNARY = (
    "lgamma", "digamma", "erfinv", "erfc", "logit", "sinc", "frac", "deg2rad", "rad2deg",
    "nan_to_num", "i0", "signbit", "isposinf", "isneginf", "std_mean", "median", "nanmedian",
    "nansum", "aminmax",
)  # fmt: skip
SPECIAL = ("i1", "i0e", "i1e", "ndtri", "log_ndtr", "erfcx", "entr")
BINARY = ("copysign", "hypot", "logaddexp", "logaddexp2", "xlogy", "ldexp", "heaviside", "polar",
          "complex")  # fmt: skip
COPIES: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: torch.view_copy(x, (36,)),
    "expand": lambda x: torch.expand_copy(x, (2, 6, 6)),
    "permute": lambda x: torch.permute_copy(x, (1, 0)),
    "transpose": lambda x: torch.transpose_copy(x, 0, 1),
    "t": torch.t_copy,
    "squeeze": torch.squeeze_copy,
    "unsqueeze": lambda x: torch.unsqueeze_copy(x, 0),
    "diagonal": torch.diagonal_copy,
    "as_strided": lambda x: torch.as_strided_copy(x, (3,), (1,)),
    "alias": torch.alias_copy,
    "detach": torch.detach_copy,
    "split_with_sizes": lambda x: torch.split_with_sizes_copy(x, (2, 4))[0],
    "narrow": lambda x: torch.narrow_copy(x, 0, 1, 2),
    "slice": lambda x: torch.slice_copy(x, 0, 1, 2),
    "select": lambda x: torch.select_copy(x, 0, 1),
    "unbind": lambda x: torch.unbind_copy(x)[0],
    "unfold": lambda x: torch.unfold_copy(x, 0, 2, 2),
}


def named(space: Any, name: str) -> Callable[..., Any]:
    return lambda *given: getattr(space, name)(*given)


def complex_of(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: run(torch.view_as_complex(x))


MORE: dict[str, Case] = {
    **{name: (named(torch, name), (IMAGE,)) for name in UNARY},
    **{f"special {name}": (named(torch.special, name), (IMAGE,)) for name in SPECIAL},
    **{name: (named(torch, name), Y) for name in BINARY},
    **{f"{name}_copy": (run, (MATRIX,)) for name, run in COPIES.items()},
    "logit clipped": (lambda x: torch.logit(x, 0.1), (IMAGE,)),
    "polygamma": (lambda x: torch.polygamma(1, x), (IMAGE,)),
    "mvlgamma": (lambda x: torch.mvlgamma(x + 2, 2), (IMAGE,)),
    "xlog1py": (torch.special.xlog1py, Y),
    "igamma": (lambda x: torch.igamma(torch.ones(6), x), (IMAGE,)),
    "igammac": (lambda x: torch.igammac(torch.ones(6), x), (IMAGE,)),
    "zeta": (lambda x: torch.special.zeta(torch.ones(6) * 2, x), (IMAGE,)),
    "cummax": (lambda x: x.cummax(1)[0], (IMAGE,)),
    "cummin": (lambda x: x.cummin(1)[0], (IMAGE,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (IMAGE,)),
    "kthvalue": (lambda x: x.kthvalue(2, 1)[0], (IMAGE,)),
    "median along": (lambda x: x.median(1)[0], (IMAGE,)),
    "mode": (lambda x: x.mode(1)[0], (IMAGE,)),
    "std_mean along": (lambda x: torch.std_mean(x, 1)[0], (IMAGE,)),
    "trace": (lambda x: x.trace(), (MATRIX,)),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), (MATRIX,)),
    "smooth_l1_loss": (f.smooth_l1_loss, Y),
    "smooth_l1_loss none": (lambda x, y: f.smooth_l1_loss(x, y, reduction="none"), Y),
    "huber_loss": (f.huber_loss, Y),
    "huber_loss sum": (lambda x, y: f.huber_loss(x, y, reduction="sum"), Y),
    "mse_loss none": (lambda x, y: f.mse_loss(x, y, reduction="none"), Y),
    "mse_loss sum": (lambda x, y: f.mse_loss(x, y, reduction="sum"), Y),
    "l1_loss none": (lambda x, y: f.l1_loss(x, y, reduction="none"), Y),
    "bce": (lambda x, m: f.binary_cross_entropy(x, m.float()), FLAGS),
    "bce none": (lambda x, m: f.binary_cross_entropy(x, m.float(), reduction="none"), FLAGS),
    "bce weighted": (
        lambda x, m: f.binary_cross_entropy(x, m.float(), weight=torch.ones(6)), FLAGS
    ),
    "bce with logits": (lambda x, m: f.binary_cross_entropy_with_logits(x, m.float()), FLAGS),
    "soft_margin_loss": (lambda x, m: f.soft_margin_loss(x, m.float()), FLAGS),
    "multi_margin_loss": (f.multi_margin_loss, LABELS),
    "nll_loss none": (lambda x, i: f.nll_loss(x, i, reduction="none"), LABELS),
    "cross_entropy none": (lambda x, i: f.cross_entropy(x, i, reduction="none"), LABELS),
    "take": (lambda x, i: x.take(i), (MATRIX, INDEX)),
    "put": (lambda x, i, y: x.put(i, y), (MATRIX, INDEX, (3,))),
    "index_fill": (lambda x, i: x.index_fill(1, i, 0.5), (MATRIX, INDEX)),
    "index_add behind": (lambda x, i, y: x.index_add(1, i, y), (MATRIX, INDEX, (6, 3))),
    "masked_scatter": (
        lambda x, m, y: x.masked_scatter(m, y), (MATRIX, (MATRIX, BOOL), (36,))
    ),
    "masked_select": (lambda x, m: x.masked_select(m), (MATRIX, (MATRIX, BOOL))),
    "index by flags": (lambda x, m: x[m], (MATRIX, (MATRIX, BOOL))),
    **{
        f"scatter_reduce {how}": (
            partial(lambda how, x, i, y: x.scatter_reduce(0, i, y, how), how), ROW
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
    },
    "index_reduce": (lambda x, i, y: x.index_reduce(0, i, y, "amax"), ROW),
    "bucketize": (lambda x: torch.bucketize(x, torch.arange(5.0)), (IMAGE,)),
    "searchsorted": (lambda x: torch.searchsorted(torch.arange(5.0), x), (IMAGE,)),
    "isin": (lambda x: torch.isin(x, torch.arange(5.0)), (IMAGE,)),
    "diagonal": (lambda x: x.diagonal().sin(), (MATRIX,)),
    "as_strided": (lambda x: x.as_strided((3, 4), (1, 2)).sin(), (MATRIX,)),
    "diag_embed": (lambda x: x.diag_embed().sin(), (MATRIX,)),
    "fill_diagonal_": (lambda x: x.sin().fill_diagonal_(0.5), (MATRIX,)),
    "diagonal_scatter": (lambda x, y: x.diagonal_scatter(y).sin(), (MATRIX, (6,))),
    "as_strided_scatter": (
        lambda x, y: x.as_strided_scatter(y, (6,), (1,)).sin(), (MATRIX, (6,))
    ),
    "slice_scatter": (lambda x, y: x.slice_scatter(y, 1, 0, 3).sin(), (MATRIX, (6, 3))),
    "select_scatter": (lambda x, y: x.select_scatter(y, 1, 0).sin(), (MATRIX, (6,))),
    "rot90": (lambda x: x.rot90().sin(), (MATRIX,)),
    "block_diag": (lambda x, y: torch.block_diag(x, y).sin(), (MATRIX, MATRIX)),
    "view_as_complex": (complex_of(lambda z: torch.view_as_real(z * 2).sin()), (PAIRS,)),
    "real": (complex_of(lambda z: torch.ops.aten.real(z).sin()), (PAIRS,)),
    "imag": (complex_of(lambda z: torch.ops.aten.imag(z).sin()), (PAIRS,)),
    "conj_physical": (complex_of(lambda z: z.conj_physical().abs()), (PAIRS,)),
    "rfft": (lambda x: torch.fft.rfft(x).abs(), (IMAGE,)),
    "fft": (lambda x: torch.fft.fft(x).abs(), (IMAGE,)),
    "irfft": (complex_of(torch.fft.irfft), (PAIRS,)),
    "fft2": (complex_of(lambda z: torch.fft.fft2(z).abs()), ((6, 6, 2),)),
    "addbmm": (torch.addbmm, ((3, 5), (2, 3, 4), (2, 4, 5))),
    "addr": (torch.addr, ((3, 5), (3,), (5,))),
    "cross": (torch.linalg.cross, ((4, 3), (4, 3))),
    "cdist": (torch.cdist, ((4, 3), (5, 3))),
    "cdist of 1": (lambda x, y: torch.cdist(x, y, p=1), ((4, 3), (5, 3))),
    "cdist by a product": (torch.cdist, ((30, 3), (5, 3))),
    "pdist": (f.pdist, ((4, 3),)),
    "conv_tbc": (lambda x, w, b: torch.conv_tbc(x, w, b, 1), ((5, 2, 3), (3, 3, 4), (4,))),
    "weight_norm": (lambda v, g: torch._weight_norm(v, g, 0), ((4, 3), (4, 1))),
    "grid_sample 3d": (
        lambda x, g: f.grid_sample(x, g, align_corners=False), ((1, 2, 3, 4, 4), (1, 2, 2, 2, 3))
    ),
    "affine_grid": (lambda t: f.affine_grid(t, (2, 3, 4, 4), align_corners=False), ((2, 2, 3),)),
    "max_unpool3d": (
        lambda x, i: f.max_unpool3d(x, i, 2), ((1, 2, 2, 2, 2), ((1, 2, 2, 2, 2), LONG))
    ),
    "rrelu": (f.rrelu, (IMAGE,)),
    "native_layer_norm": (
        lambda x: torch.native_layer_norm(x, (6,), None, None, 1e-5)[0], (IMAGE,)
    ),
    "native_group_norm": (
        lambda x: torch.native_group_norm(x, None, None, 2, 4, 36, 2, 1e-5)[0], (IMAGE,)
    ),
    "native_dropout": (lambda x: torch.native_dropout(x, 0.5, True)[0], (IMAGE,)),
}  # fmt: skip
