"""How results stand in storage, as we tell it, against PyTorch's own tensors drawn by chance."""

from __future__ import annotations

import random
from typing import Any

import pytest

from layerscope.analysis.shapes import infer
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from layerscope.formats.torch.plans import CONTIGUOUS_RESULT
from layerscope.formats.torch.strides import (
    BY_ELEMENT,
    VIEWS,
    element_stride,
    joined_stride,
    view_layouts,
)
from layerscope.formats.torch.tensors import TensorMeta
from layerscope.ops.torch_strides import dense
from tests.formats.torch.torch_nets import Doing, Painted, nn, torch

TWO = ("add", "sub", "mul", "div", "pow", "maximum", "minimum")
LAST = 9223372036854775807


def some(draw: random.Random, rank: int, device: str) -> Any:
    """A tensor of some layout: turned, cut, with axes added or repeated."""
    x = torch.empty([draw.choice([1, 1, 2, 3, 4, 6]) for _ in range(rank)], device=device)
    for _ in range(draw.randrange(4)):
        way, axis = draw.randrange(5), draw.randrange(max(x.dim(), 1))
        if way == 0:
            x = x.unsqueeze(draw.randint(0, x.dim()))
        elif not x.dim():
            continue
        elif way == 1:
            x = x.permute(draw.sample(range(x.dim()), x.dim()))
        elif way == 2 and x.dim() > 1:
            x = x.select(axis, 0)
        elif way == 3:
            x = x.narrow(axis, 0, draw.randint(1, x.shape[axis]))
        elif way == 4:
            x = x.expand([draw.choice([1, 2, 3]) if n == 1 else n for n in x.shape])
    return x


def sig(x: Any) -> TensorMeta:
    return TensorMeta(tuple(x.shape), x.stride(), x.dtype, "", "fp32")


def stand_alike(made: Any, stride: tuple[int, ...]) -> bool:
    """Strides of axes of one are nobody's business."""
    return all(n == 1 or a == b for n, a, b in zip(made.shape, made.stride(), stride, strict=True))


def arguments(draw: random.Random, name: str, x: Any) -> tuple[Any, ...]:
    rank, count = x.dim(), x.numel()
    order = draw.sample(range(rank), rank)
    sizes = [draw.randint(0, 3) for _ in range(draw.randint(0, 3))]
    shapes = [[-1], [2, -1], [*x.shape][::-1], [count], [count, 1], [1, -1, 3], [count, 2]]

    def axis() -> int:
        return draw.randint(-rank - 1, rank + 1)

    found: dict[str, tuple[Any, ...]] = {
        "view": (draw.choice(shapes),),
        "reshape": (draw.choice(shapes),),
        "flatten": (axis(), axis()),
        "unflatten": (axis(), draw.choice([[-1, 1], [2, -1], [1, -1, 1], [3, 2]])),
        "permute": (draw.choice([order, [n - rank for n in order], [0] * rank]),),
        "transpose": (axis(), axis()),
        "unsqueeze": (axis(),),
        "squeeze": (axis(),),
        "select": (axis(), draw.randint(-4, 4)),
        "unbind": (axis(),),
        "slice": (
            axis(), draw.choice([None, 0, 1, -1, -2, 3]), draw.choice([None, 2, -1, LAST, 1]),
            draw.choice([1, 1, 2, 3]),
        ),
        "split": (draw.randint(0, 4), axis()),
        "split_with_sizes": (sizes, axis()),
        "chunk": (draw.randint(0, 5), axis()),
        "expand": (
            draw.choice([[-1] * rank, [3] + [-1] * rank, [*x.shape], [2] * rank, [2, 3, *x.shape]]),
        ),
    }  # fmt: skip
    return found.get(name, ())


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_views_stand_where_pytorch_has_them(name: str) -> None:
    draw = random.Random(name)
    func = torch.ops.aten.flatten.using_ints if name == "flatten" else getattr(torch.ops.aten, name)
    told = 0
    for _ in range(1500):
        x = some(draw, draw.randint(0, 5), "meta")
        args = arguments(draw, name, x)
        layouts = view_layouts(name, sig(x), args, {})
        if layouts is None:
            continue
        told += 1
        what = f"{tuple(x.shape)} {x.stride()} {args}: {layouts}"
        made = func(x, *args)  # what is told of, PyTorch does not refuse
        listed = [made] if isinstance(made, torch.Tensor) else list(made)
        assert [tuple(each.shape) for each in listed] == [each.shape for each in layouts], what
        for each, layout in zip(listed, layouts, strict=True):
            assert stand_alike(each, layout.stride), what
            assert torch._C._is_alias_of(each, x) != layout.copied, what
    assert told > 40


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("name", sorted(BY_ELEMENT))
def test_numbers_worked_out_one_by_one_keep_their_order(name: str, device: str) -> None:
    draw = random.Random(name)
    func = getattr(torch.ops.aten, name)
    told = 0
    for _ in range(300):
        x = some(draw, draw.randint(1, 5), device)
        given = [x]
        if name in TWO:
            y: Any = torch.empty((), device=device)
            way = draw.randrange(4)
            if way == 1:
                y = torch.empty([draw.choice([1, n]) for n in x.shape], device=device)
            elif way == 2:
                order = draw.sample(range(x.dim()), x.dim())
                y = torch.empty([x.shape[n] for n in order], device=device)
                y = y.permute([order.index(n) for n in range(x.dim())])
            given = [x, y] if draw.random() < 0.8 else [y, x]
        made = func(*given)
        stride = element_stride(tuple(made.shape), [sig(each) for each in given])
        if stride is not None:
            told += 1
            assert stand_alike(made, stride), [(each.shape, each.stride()) for each in given]
    assert told > 100


def along(draw: random.Random, x: Any) -> tuple[list[int], bool]:
    """Axes to reduce, and whether they stay as axes of one."""
    return draw.sample(range(x.dim()), draw.randint(1, x.dim())), draw.random() < 0.5


aten: Any = torch.ops.aten
FRESHLY: dict[str, Any] = {
    "sum": lambda d, x: aten.sum.dim_IntList(x, *along(d, x)),
    "mean": lambda d, x: aten.mean.dim(x, *along(d, x)),
    "amax": lambda d, x: aten.amax(x, *along(d, x)),
    "amin": lambda d, x: aten.amin(x, *along(d, x)),
    "var": lambda d, x: aten.var.dim(x, along(d, x)[0], False, d.random() < 0.5),
    "std": lambda d, x: aten.std.dim(x, along(d, x)[0], False, d.random() < 0.5),
    "var_mean": lambda d, x: aten.var_mean.dim(x, along(d, x)[0], False, d.random() < 0.5),
    "linalg_vector_norm": lambda d, x: aten.linalg_vector_norm(x, 2, *along(d, x)),
    "norm": lambda d, x: aten.norm.ScalarOpt_dim(x, 2, *along(d, x)),
    "logsumexp": lambda d, x: aten.logsumexp(x, *along(d, x)),
    "prod": lambda d, x: aten.prod.dim_int(x, d.randrange(x.dim()), d.random() < 0.5),
    "softmax": lambda d, x: aten.softmax.int(x, d.randrange(x.dim())),
    "_softmax": lambda d, x: aten._softmax(x, d.randrange(x.dim()), False),
    "log_softmax": lambda d, x: aten.log_softmax.int(x, d.randrange(x.dim())),
    "cumsum": lambda d, x: aten.cumsum(x, d.randrange(x.dim())),
    "topk": lambda d, x: aten.topk(x, 1, d.randrange(x.dim())),
    "repeat": lambda d, x: aten.repeat(x, [d.randint(1, 3) for _ in x.shape]),
    "layer_norm": lambda d, x: aten.layer_norm(x, x.shape[-1:]),
    "linear": lambda d, x: aten.linear(x, x.new_empty(5, x.shape[-1])),
    "embedding": lambda d, x: aten.embedding(
        torch.zeros(7, 5, device=x.device).T[:, :3], torch.zeros_like(x, dtype=torch.int64)
    ),
    "mm": lambda d, x: aten.mm(x.reshape(-1, x.shape[-1]), x.reshape(-1, x.shape[-1]).T),
    "addmm": lambda d, x: aten.addmm(
        x.new_empty(5), x.reshape(-1, x.shape[-1]), x.new_empty(5, x.shape[-1]).T
    ),
    "bmm": lambda d, x: (
        aten.bmm(flat := x.reshape(-1, 1, x.shape[-1]).expand(-1, 3, -1), flat.mT)
    ),
    "scaled_dot_product_attention": lambda d, x: aten.scaled_dot_product_attention(
        *[x.reshape(1, 1, -1, x.shape[-1]).expand(2, 3, -1, -1).transpose(1, 2)] * 3
    ),
}  # fmt: skip


def test_all_that_is_made_anew_is_asked() -> None:
    assert CONTIGUOUS_RESULT - FRESHLY.keys() == {
        "_grouped_mm"
    }  # has no kernel here for these types


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("name", FRESHLY)
def test_what_is_made_anew_stands_one_behind_the_other(name: str, device: str) -> None:
    draw = random.Random(name)
    for _ in range(150):
        x = some(draw, draw.randint(1, 4), device)
        if not x.dim():
            continue
        made = FRESHLY[name](draw, x)
        for each in made if isinstance(made, tuple) else (made,):
            assert stand_alike(each, dense(tuple(each.shape))), (x.shape, x.stride())


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_parts_joined_stand_one_behind_the_other(device: str) -> None:
    draw = random.Random(device)
    told = 0
    while told < 1500:
        first = some(draw, draw.randint(2, 5), device)
        axis = draw.randrange(first.dim())
        order = draw.sample(range(first.dim()), first.dim())
        size = [first.shape[n] for n in order]
        other = torch.empty(size, device=device).permute([order.index(n) for n in range(len(size))])
        parts = draw.choice([[first, other], [other, first], [first, first]])
        made = torch.cat(parts, axis)
        stride = joined_stride(tuple(made.shape), [sig(part) for part in parts])
        if stride is not None:
            told += 1
            assert stand_alike(made, stride), [(part.shape, part.stride()) for part in parts]


class Storage(nn.Module):  # type: ignore[misc]
    """Looks past the ends of a view, at the storage it stands in."""

    def forward(self, x: Any) -> Any:
        part = x[:, 2:4].transpose(0, 1)
        return torch.as_strided(part, (2, 6), (12, 1)) + x.chunk(2)[1].as_strided((2, 6), (6, 1))


def test_a_view_has_the_storage_of_what_it_is_of() -> None:
    x = torch.zeros(4, 6)
    graph = capture(Storage(), (x,))
    assert graph == capture(Storage(), (x,), shortcuts=False)
    assert [node.op for node in graph.nodes].count("view") == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.transpose(0, 1).view(24),
        lambda x: x.view(5, 5),
        lambda x: x.unsqueeze(4),
        lambda x: x.select(0, 4),
        lambda x: x.permute(0, 0),
        lambda x: x.expand(4, 7),
        lambda x: x.split_with_sizes([2, 3]),
        lambda x: x.flatten(1, 0),
    ],
)
def test_what_pytorch_refuses_is_refused(call: Any) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        call(torch.zeros(4, 6))
    with pytest.raises(ModelError):
        capture(Doing(call), (torch.zeros(4, 6),))


def test_what_is_written_into_constants_is_seen_through_their_views() -> None:
    x = torch.zeros(4, 6)
    graph = capture(Painted(), (x,))
    assert graph == capture(Painted(), (x,), shortcuts=False)
    written = {node.name for node in graph.nodes if node.op == "insert"}
    assert written
    first = next(node for node in graph.nodes if node.name == "fc")
    made = {name: node for node in graph.nodes for name in node.outputs}
    assert made[first.inputs[0]].inputs[0] in written


PLACES = torch.zeros(4, 4, dtype=torch.long)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b, c: torch.mm(a, b, out=c),
        lambda a, b, c: torch.gather(a, 1, PLACES, out=c),
        lambda a, b, c: torch.cat([a[:2], b[:2]], 0, out=c),
        lambda a, b, c: torch.sort(a, out=(c, torch.zeros(4, 4, dtype=torch.long)))[0],
        lambda a, b, c: c.scatter_(0, PLACES, a) + b,
        lambda a, b, c: c.t_() + a,
        lambda a, b, c: c.unsqueeze_(0) + a + b,
        lambda a, b, c: c.resize_(2, 8),
        lambda a, b, c: c.set_(a),
    ],
)
def test_tensors_alike_are_not_one(call: Any) -> None:
    """Made in one go, they still can be written and turned each for itself."""
    x = torch.zeros(4, 4)
    model = Doing(lambda x: call(x + 1, x * 2, x - 1))
    for _ in range(2):  # what is kept of the first run is as it was
        graph = capture(model, (x,))
        assert graph == capture(model, (x,), shortcuts=False)
        made = {tensor.shape for tensor in infer(graph).tensors.values()}
        assert made <= {(4, 4), (2, 4), (1, 4, 4), (4,)}
