"""Writes in place: accepted where PyTorch accepts them on real tensors, refused elsewhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.torch_nets import Doing, torch

pytestmark = pytest.mark.filterwarnings("ignore")
F32, F16, I64, BOOL, C64 = torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64
Forward = Callable[..., Any]
Case = tuple[Forward, list[Any]]  # and its tensors


def shape(draw: random.Random, rank: int = 3) -> tuple[int, ...]:
    return tuple(draw.choice((1, 2, 3)) for _ in range(draw.randint(0, rank)))


def near(draw: random.Random, of: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that often broadcasts to another."""
    if draw.random() < 0.25:
        return shape(draw)
    made = [draw.choice((size, size, 1)) for size in of]
    return tuple(made[draw.randint(0, len(made)) :] if draw.random() < 0.5 else made)


def tensor(size: tuple[int, ...], dtype: Any = F32) -> Any:
    return torch.ones(size, dtype=dtype)


BINARY = (
    "add_", "sub_", "mul_", "div_", "pow_", "floor_divide_", "remainder_", "fmod_", "atan2_", "eq_",
    "lt_", "ge_", "logical_and_", "bitwise_and_", "copysign_", "true_divide_", "maximum", "ne_",
)  # fmt: skip
UNARY = (
    "relu_", "sigmoid_", "tanh_", "exp_", "log_", "sqrt_", "rsqrt_", "neg_", "abs_", "reciprocal_",
    "floor_", "round_", "erf_", "sin_", "square_", "logical_not_", "bitwise_not_", "zero_",
    "log1p_", "expm1_", "trunc_", "sign_",
)  # fmt: skip


def of_two(draw: random.Random) -> Case:
    name, one = draw.choice(BINARY), shape(draw)
    kinds = [draw.choice((F32, F32, F16, I64, BOOL)) for _ in range(2)]
    return (
        lambda x, y: getattr(x, name)(y),
        [tensor(one, kinds[0]), tensor(near(draw, one), kinds[1])],
    )


def of_a_number(draw: random.Random) -> Case:
    name = draw.choice(("add_", "sub_", "mul_", "div_", "pow_", "fill_", "clamp_", "clamp_min_"))
    value = draw.choice((2, 1.5, True))
    given = [tensor(shape(draw), draw.choice((F32, F16, I64, BOOL)))]
    return lambda x: getattr(x, name)(value), given


def of_one(draw: random.Random) -> Case:
    name = draw.choice(UNARY)
    given = [tensor(shape(draw), draw.choice((F32, F16, I64, BOOL)))]
    return lambda x: getattr(x, name)(), given


def of_three(draw: random.Random) -> Case:
    name, one = draw.choice(("addcmul_", "addcdiv_", "lerp_")), shape(draw)
    kinds = [draw.choice((F32, F32, F32, I64)) for _ in range(3)]
    sizes = [one, near(draw, one), near(draw, one)]
    return (
        lambda x, y, z: getattr(x, name)(y, z),
        [tensor(size, kind) for size, kind in zip(sizes, kinds, strict=True)],
    )


def masked(draw: random.Random) -> Case:
    one = shape(draw)
    mask = tensor(near(draw, one), draw.choice((BOOL, BOOL, BOOL, I64)))
    x = tensor(one, draw.choice((F32, I64)))
    if draw.random() < 0.5:
        value = draw.choice((1, 0.5))
        return lambda x, m: x.masked_fill_(m, value), [x, mask]
    filler = tensor(draw.choice(((), (), (2,))), draw.choice((F32, I64)))
    return lambda x, m, v: x.masked_fill_(m, v), [x, mask, filler]


def copied(draw: random.Random) -> Case:
    one = shape(draw)
    kinds = [draw.choice((F32, F16, I64, BOOL)) for _ in range(2)]
    return lambda x, y: x.copy_(y), [tensor(one, kinds[0]), tensor(near(draw, one), kinds[1])]


def assigned(draw: random.Random) -> Case:
    one = tuple(draw.choice((2, 3)) for _ in range(3))
    part = draw.choice((
        slice(None), slice(1, None), (slice(None), 0), (Ellipsis, slice(0, 1)), 1, (0, 1),
    ))  # fmt: skip
    size = near(draw, tuple(torch.zeros(one)[part].shape))

    def forward(x: Any, y: Any) -> Any:
        x = x * 1
        x[part] = y
        return x

    return forward, [tensor(one, draw.choice((F32, I64))), tensor(size, draw.choice((F32, I64)))]


def put(draw: random.Random) -> Case:
    one = tuple(draw.choice((2, 3)) for _ in range(2))
    index = torch.zeros(draw.choice(((2,), (3,), (1,), (2, 2))), dtype=I64)
    values = tensor(
        draw.choice(((2,), (1,), (), (2, one[1]), (3, one[1]))), draw.choice((F32, I64))
    )
    adds = draw.random() < 0.5

    def forward(x: Any, i: Any, v: Any) -> Any:
        return (x * 1).index_put_((i,), v, accumulate=adds)

    return forward, [tensor(one), index, values]


def indexed(draw: random.Random) -> Case:
    name = draw.choice(("index_add_", "index_copy_", "scatter_", "scatter_add_"))
    one = tuple(draw.choice((2, 3)) for _ in range(2))
    source = tensor(
        draw.choice(((2, one[1]), (3, one[1]), one, (2,))), draw.choice((F32, F32, I64))
    )
    size = (draw.choice((2, 3)),) if name.startswith("index") else tuple(source.shape)
    index = torch.zeros(size, dtype=I64)
    return lambda x, i, s: getattr(x * 1, name)(0, i, s), [tensor(one), index, source]


def products(draw: random.Random) -> Case:
    m, k, n = (draw.choice((1, 2, 3)) for _ in range(3))
    bias = draw.choice(((m, n), (n,), (1, n), (m, 1), (3, 3)))
    kinds = [draw.choice((F32, F32, F32, F16)) for _ in range(3)]
    name, lead = draw.choice((("addmm_", ()), ("baddbmm_", (2,))))
    given = [tensor((*lead, *bias) if lead and len(bias) == 2 else bias, kinds[0])]
    given += [tensor((*lead, m, k), kinds[1]), tensor((*lead, k, n), kinds[2])]
    return lambda x, a, b: getattr(x, name)(a, b), given


def out_of(draw: random.Random) -> Case:
    one = shape(draw)
    two = near(draw, one)
    name = draw.choice(("add", "mul", "sub", "div", "maximum"))
    kinds = [draw.choice((F32, F32, I64)) for _ in range(3)]

    def forward(x: Any, y: Any, o: Any) -> Any:
        return getattr(torch, name)(x, y, out=o)

    try:
        full = tuple(torch.broadcast_shapes(one, two))
    except RuntimeError:
        full = one
    size = full if draw.random() < 0.7 else shape(draw)
    return forward, [tensor(one, kinds[0]), tensor(two, kinds[1]), tensor(size, kinds[2])]


def where_out(draw: random.Random) -> Case:
    one = shape(draw)
    given = [
        tensor(near(draw, one), BOOL),
        tensor(one),
        tensor(near(draw, one)),
        tensor(shape(draw)),
    ]
    return lambda c, x, y, o: torch.where(c, x, y, out=o), given


def constants(draw: random.Random) -> Case:
    """Into what the forward makes itself."""
    one, kind = shape(draw), draw.choice((F32, I64))
    two = near(draw, one)
    value = draw.choice((1, 0.5))

    def forward(x: Any) -> Any:
        made = torch.zeros(one, dtype=kind, device=x.device)
        made += torch.full(two, value, device=x.device)
        return x + made.sum()

    return forward, [tensor((2,))]


FAMILIES: dict[str, Callable[[random.Random], Case]] = {
    "two tensors": of_two, "a number": of_a_number, "one tensor": of_one, "three": of_three,
    "masked_fill_": masked, "copy_": copied, "__setitem__": assigned, "index_put_": put,
    "by index": indexed, "products": products, "out=": out_of, "where out=": where_out,
    "constants": constants,
}  # fmt: skip


NOT_ON_CPU = (-1,)  # which other devices may have


def outcome(forward: Forward, given: list[Any]) -> tuple[int, ...] | None:
    """The shape that PyTorch makes on real tensors; None where it refuses."""
    try:
        with torch.no_grad():
            return tuple(forward(*[each.clone() for each in given]).shape)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return NOT_ON_CPU if "not implemented for 'Half'" in str(error) else None


@pytest.mark.parametrize("family", FAMILIES)
def test_writes_are_accepted_where_pytorch_accepts_them(family: str) -> None:
    seen = {True: 0, False: 0}
    wrong = []
    for seed in range(300):
        draw = random.Random(f"{family} {seed}")
        forward, given = FAMILIES[family](draw)
        expected = outcome(forward, given)
        if expected == NOT_ON_CPU:
            continue
        seen[expected is not None] += 1
        told = [(tuple(each.shape), str(each.dtype)) for each in given]
        for shortcuts in (True, False):
            try:
                report = layerscope.summary(
                    Doing(forward), input_data=given, shortcuts=shortcuts, verbose=0
                )
                [name] = report.graph.outputs
                found = report.tensors[name].shape
            except ModelError:
                found = None
            if found != expected:
                wrong.append(f"seed {seed}: {told}: {found}, PyTorch {expected}")
    assert not wrong, f"{len(wrong)} differ: " + "\n".join(wrong[:10])
    assert seen[True] >= 30
    assert seen[False] >= 5


class Adding(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.block = Doing(forward)

    def forward(self, *given: Any) -> Any:
        return self.block(*given)


def add(x: Any, y: Any) -> Any:
    x = x * 1
    x += y
    return x


@pytest.mark.parametrize("scale", [1, 4096])  # of sizes that are computed with, or scaled down
def test_a_refusal_says_what_and_where(scale: int) -> None:
    given = [tensor((1, 16, 64 * scale)), tensor((17, 16))]
    with pytest.raises(
        ModelError,
        match=r"(size|broadcast).*; in Adding: block \(Doing\) on 1x16x\d+ fp32, 17x16 fp32",
    ):
        layerscope.summary(Adding(add), input_data=given, verbose=0)
    whole = [torch.ones((16, 64 * scale), dtype=I64), tensor((16, 64 * scale))]
    with pytest.raises(ModelError, match=r"(cast to .* Long|Promotion of int)"):
        layerscope.summary(Adding(lambda x, y: x.add_(y)), input_data=whole, verbose=0)


def test_a_refusal_that_only_kernels_with_numbers_make() -> None:
    values, index = tensor((5, 2048)), torch.zeros(3, dtype=I64)
    given = [tensor((4, 2048)), index, values]
    for shortcuts in (True, False):
        with pytest.raises(
            ModelError, match=r"PyTorch refuses aten\.index_put_ of 4x2048 fp32, 3 int64"
        ):
            layerscope.summary(
                Adding(lambda x, i, v: (x * 1).index_put_((i,), v)),
                input_data=given,
                shortcuts=shortcuts,
                verbose=0,
            )


def test_a_counter_cannot_take_a_tensor() -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1, dtype=I64))

        def forward(self, x: Any) -> Any:
            self.count += x
            return x

    layerscope.summary(Counting(), input_data=torch.ones(1, dtype=I64), verbose=0)
    for given in (torch.ones(1), torch.ones(3, dtype=I64)):
        with pytest.raises(ModelError):
            layerscope.summary(Counting(), input_data=given, verbose=0)


def test_a_mask_selects_what_is_written() -> None:
    """The values of a mask decide how many elements `x[mask] = y[mask]` writes."""

    def forward(x: Any) -> Any:
        mask = torch.ones((1, 7, 7), dtype=torch.bool).view(1, -1)
        target, source = torch.zeros(1, 49), x * torch.arange(49)[None]
        target[mask] = source[mask]
        return target

    for device in ("cpu", "meta"):
        with torch.device(device):
            graph = capture(Doing(forward), (torch.ones(1, 1),))
        assert graph.outputs == ("masked_scatter1",)
