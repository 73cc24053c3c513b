"""Products of random shapes against the installed fvcore and mmengine: run by make test-peers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from layerscope import analyze
from tests.conventions.peers.tools import fvcore, mmengine
from tests.formats.torch.torch_nets import Doing, nn, torch

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore"),
]
Shape = tuple[int, ...]
Case = tuple[Any, list[Shape]]


def size(draw: random.Random) -> int:
    return draw.choice((1, 2, 3, 5))


def batches(draw: random.Random) -> tuple[Shape, Shape]:
    """Two shapes that broadcast."""
    full = [size(draw) for _ in range(draw.randint(0, 3))]
    sides = []
    for _ in range(2):
        kept = [draw.choice((each, each, 1)) for each in full]
        sides.append(tuple(kept[draw.randint(0, len(kept)) :]))
    return sides[0], sides[1]


def matmul(draw: random.Random) -> Case:
    m, k, n = size(draw), size(draw), size(draw)
    a, b = batches(draw)
    one = draw.choice(((*a, m, k), (*a, m, k), (*a, m, k), (k,)))
    two = draw.choice(((*b, k, n), (*b, k, n), (*b, k, n), (k,)))  # fvcore fails on a vector
    return Doing(torch.matmul), [one, two]


def plain(draw: random.Random) -> Case:
    m, k, n, b = (size(draw) for _ in range(4))
    cases: list[tuple[str, list[Shape]]] = [
        ("mm", [(m, k), (k, n)]), ("bmm", [(b, m, k), (b, k, n)]), ("mv", [(m, k), (k,)]),
        ("dot", [(k,), (k,)]), ("outer", [(m,), (n,)]), ("addmm", [(n,), (m, k), (k, n)]),
        ("baddbmm", [(b, m, n), (b, m, k), (b, k, n)]), ("addmv", [(m,), (m, k), (k,)]),
        ("addbmm", [(m, n), (b, m, k), (b, k, n)]), ("inner", [(m, k), (n, k)]),
        ("kron", [(m, k), (n, b)]),
    ]  # fmt: skip
    name, shapes = draw.choice(cases)
    return Doing(getattr(torch, name)), shapes


EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "abc,abd->acd", "abc,adc->adb", "ij,kj->ik", "i,j->ij", "ij->ji",
    "ij->i", "bhid,bhjd->bhij", "ij,jk,kl->il", "i,i->", "ijk,k->ij", "ab,bc,c->a", "ii->i",
)  # fmt: skip


def einsum(draw: random.Random) -> Case:
    equation = draw.choice(EQUATIONS)
    sizes = {letter: size(draw) for letter in equation if letter.isalpha()}
    terms = equation.partition("->")[0].split(",")
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    return Doing(lambda *x: torch.einsum(equation, *x)), shapes


def linear(draw: random.Random) -> Case:
    lead = tuple(size(draw) for _ in range(draw.randint(0, 3)))
    k, n = size(draw), size(draw)
    return nn.Linear(k, n, bias=draw.random() < 0.5), [(*lead, k)]


def conv(draw: random.Random) -> Case:
    rank, groups = draw.randint(1, 3), draw.choice((1, 2))
    kind = draw.choice((nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1 : rank] * 2 + (
        (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[rank - 1],
    ))  # fmt: skip
    c, n = groups * size(draw), groups * size(draw)
    model = kind(c, n, draw.choice((1, 2, 3)), stride=draw.choice((1, 2)), groups=groups)
    return model, [(size(draw), c, *[draw.randint(3, 6) for _ in range(rank)])]


def norm(draw: random.Random) -> Case:
    shape = tuple(size(draw) for _ in range(draw.randint(1, 6)))
    return nn.LayerNorm(shape[-1], elementwise_affine=draw.random() < 0.5), [shape]


FAMILIES: dict[str, Callable[[random.Random], Case]] = {
    "matmul": matmul, "plain": plain, "einsum": einsum, "linear": linear, "conv": conv,
    "norm": norm,
}  # fmt: skip


TOOLS = {"fvcore": (fvcore, ("fvcore", "timm")), "mmengine": (mmengine, ("mmengine",))}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("family", FAMILIES)
def test_figures_of_random_products(family: str, tool: str) -> None:
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    ask, conventions = TOOLS[tool]
    wrong = []
    for seed in range(120):
        draw = random.Random(f"{family} {seed}")
        model, shapes = FAMILIES[family](draw)
        given = [torch.zeros(shape) for shape in shapes]
        try:
            said = ask(model, given)
        except Exception as error:  # it asserts, or has no formula for the shape
            said = None
            what = f"{type(error).__name__} {error}"
        for like in conventions:
            report = analyze(model, input_data=given, like=like)
            found = (report.totals.convention_ops, report.totals.convention_activations)
            told = f"seed {seed}: {getattr(model, 'call', model)} {shapes} {like}"
            noted = any("raises an error" in note for note in report.notes)
            if noted != (said is None):
                wrong.append(f"{told}: {report.notes}, it says {said or what}")
            elif said is not None and found != (said.ops, said.activations):
                wrong.append(f"{told}: {found}, {tool} {said.ops, said.activations}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:15])
