"""Inferred results of integer and mask operators, against the tensors that PyTorch makes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from layerscope.errors import ModelError
from layerscope.formats.torch import compute_calls, constant_calls, meta_runs, view_calls
from layerscope.formats.torch.capture import capture
from layerscope.formats.torch.integer_results import (
    ARITHMETIC,
    BITWISE,
    COMPARE,
    LIKE,
    NEW,
    OF_TWO,
    REDUCED,
)
from tests.formats.torch.torch_nets import nn, torch

DTYPES = (torch.int64, torch.int32, torch.bool, torch.uint8, torch.float32)
SCALARS = (2, -1, 0, True, 1.5)
SHAPES = ((), (3,), (4, 3), (4, 1), (1, 3), (2, 1, 4, 1), (0, 3))
NAMES = ARITHMETIC | COMPARE | BITWISE | OF_TWO | LIKE | NEW | {*REDUCED, "argmax", "where"}
TRIES = 12  # calls of an operator

SEEN: list[Any] = []  # results of the forward at hand; a capture runs copies of modules


class Recorded(nn.Module):  # type: ignore[misc]
    """A function of tensors that are constants or computed; notes what its result is."""

    def __init__(self, func: Callable[..., Any], constant: bool) -> None:
        super().__init__()
        self.func, self.constant = func, constant

    def forward(self, x: Any, *given: Any) -> Any:
        if self.constant:
            given = tuple([torch.zeros(t.shape, dtype=t.dtype, device=x.device) for t in given])
        y = self.func(*given)
        SEEN[:] = [(tuple(y.shape), y.stride(), y.dtype)]
        return x + y.to(x.dtype).sum()


def result(net: Recorded, *given: Any, shortcuts: bool | None = None) -> Any:
    """The result of a plain run, or of a capture on the meta device; None if it is refused."""
    try:
        if shortcuts is None:
            net(*given)
        else:
            capture(net, tuple([t.to("meta") for t in given]), shortcuts=shortcuts, real=False)
    except (RuntimeError, TypeError, IndexError, ModelError):
        return None
    return SEEN[0]


def operator(name: str) -> Callable[..., Any]:
    packet = getattr(torch.ops.aten, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return packet(*args, **kwargs)

    return call


def drawn(draw: random.Random, name: str) -> tuple[Callable[..., Any], list[Any]]:
    """A call of an operator with tensors and scalars drawn at random, and its tensors."""
    run, kind = operator(name), draw.choice(DTYPES)

    def tensor(dtype: Any = None) -> Any:
        x = torch.ones(draw.choice(SHAPES)).to(dtype or draw.choice((kind, kind, *DTYPES)))
        return x.t() if x.dim() == 2 and draw.random() < 0.3 else x

    if name in REDUCED or name in ("abs", "neg", "argmax"):
        return run, [tensor()]
    if name == "where":
        return run, [tensor(torch.bool), tensor(), tensor()]
    if name in LIKE or name in NEW:
        options = draw.choice(({}, {"dtype": draw.choice(DTYPES)}))
        size = [list(draw.choice(SHAPES))] if name in NEW else []
        fill = [draw.choice(SCALARS)] if "full" in name else []
        return lambda x: run(x, *size, *fill, **options), [tensor()]
    if name not in OF_TWO and draw.random() < 0.5:
        scalar = draw.choice(SCALARS)
        return lambda x: run(x, scalar), [tensor()]
    return run, [tensor(), tensor()]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    "name",
    sorted({*ARITHMETIC, *COMPARE, *BITWISE, *OF_TWO, *REDUCED, *LIKE, *NEW, "where", "argmax"}),
)
def test_results_are_those_of_pytorch(name: str, constant: bool) -> None:
    draw = random.Random(f"{name} {constant}")
    for _ in range(TRIES):
        func, tensors = drawn(draw, name)
        net, given = Recorded(func, constant), (torch.zeros(2), *tensors)
        true, short = result(net, *given), result(net, *given, shortcuts=True)
        if true is None:  # the meta device refuses less
            continue
        if short is None:
            assert result(net, *given, shortcuts=False) is None, (name, tensors)
            continue
        assert (short[0], short[2]) == (true[0], true[2]), (name, tensors)
        steps = zip(*short[:2], true[1], strict=True)
        assert 0 in true[0] or all(n == 1 or a == b for n, a, b in steps), (name, tensors)


@pytest.mark.parametrize("training", [False, True])
def test_graphs_are_those_without_shortcuts(training: bool) -> None:
    def func(ids: Any, mask: Any) -> Any:
        position = torch.arange(ids.shape[1], device=ids.device)
        causal = position[None, :] <= position[:, None] + 0
        allowed = (mask[:, None, :] != 0) & causal & mask.new_ones((), dtype=torch.bool)
        bucket = torch.where(position > 2, torch.min(position, torch.full_like(position, 3)), 0)
        kept = mask.bool().all() | (mask.sum() == 0)
        return allowed * ids[:, :, None] + bucket.abs() + kept

    ids, mask = torch.zeros(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
    given = tuple([t.to("meta") for t in (torch.zeros(2), ids, mask)])
    mode = "train" if training else "eval"
    short, full = (
        capture(Recorded(func, False), given, shortcuts=shortcuts, mode=mode)
        for shortcuts in (True, False)
    )
    assert short.nodes == full.nodes
    assert short.outputs == full.outputs


def test_a_mask_is_built_without_running_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run_on_meta = meta_runs.run_on_meta

    def counted(run: Any, call: Any) -> Any:
        ran.append(call.info.name)
        return run_on_meta(run, call)

    for module in (compute_calls, constant_calls, view_calls):
        monkeypatch.setattr(module, "run_on_meta", counted)

    def func(mask: Any) -> Any:
        position = torch.arange(7, device=mask.device)
        return (position[:, None] >= position) & (mask[:, None, :] != 0)

    mask = torch.ones(3, 7, dtype=torch.long, device="meta")
    capture(Recorded(func, False), (torch.zeros(2, device="meta"), mask))
    assert SEEN[0][0] == (3, 7, 7)
    assert ran == ["to"]  # of this test
