"""Every field of every convention, on one small model that all counters were run on.

The model is two linear layers with a ReLU between them: the first is frozen, as is the bias of a
third layer, which is never called. `make test-peers` runs the counters on it again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from layerscope import Builder, Explanation, Graph, Report, analyze, explain
from layerscope.conventions import CONVENTIONS, COUNTERS, convention, netscope
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Param, Tensor
from layerscope.notations import findings
from layerscope.ops import Ops

BATCH, INTO, HIDDEN, OUT = 2, 10, 20, 5
INPUT = BATCH * INTO
WRITTEN = BATCH * (HIDDEN + HIDDEN + OUT)  # what the layers write, the ReLU included
MACS = BATCH * (INTO * HIDDEN + HIDDEN * OUT)
USED = (INTO + 1) * HIDDEN + (HIDDEN + 1) * OUT
UNUSED = (OUT + 1) * 3
FROZEN = (INTO + 1) * HIDDEN + 3
RELU, BIASES = BATCH * HIDDEN, BATCH * (HIDDEN + OUT)


class Expected(NamedTuple):
    params: int
    ops: int | None  # the one figure of the counter
    flops: int
    activations: int


# flop_counter prints no parameters; activations are those of fvcore, mmengine, timm and the
# documents of MatConvNet, Netscope and CS231n. No other prints any: ours stay, without the
# input.
EXPECTED = {
    "exact": Expected(USED + UNUSED, 2 * MACS + BIASES + RELU, 2 * MACS + BIASES + RELU, WRITTEN),
    "matconvnet": Expected(USED, None, 2 * MACS + BIASES + RELU, WRITTEN + INPUT),
    "netscope": Expected(USED, MACS, 2 * MACS + RELU, WRITTEN + INPUT),
    "cs231n": Expected(USED - HIDDEN - OUT, None, 2 * MACS + BIASES + RELU, WRITTEN - RELU + INPUT),
    "boda": Expected(USED, 2 * MACS, 2 * MACS, WRITTEN),
    "torchvision": Expected(USED + UNUSED, MACS, 2 * MACS, WRITTEN),
    "flop_counter": Expected(USED + UNUSED, 1200, 1200, WRITTEN),
    "fvcore": Expected(343, 600, 2 * MACS, 50),
    "timm": Expected(343, 600, 2 * MACS, 50),
    "mmengine": Expected(343, 600, 2 * MACS, 50),
    "torchinfo": Expected(343, 650, 2 * MACS + BIASES, WRITTEN),
    "ptflops": Expected(120, 730, 2 * MACS + BIASES + 2 * RELU, WRITTEN),
    "ptflops-aten": Expected(120, 650, 2 * MACS + BIASES, WRITTEN),
    "thop": Expected(325, 600, 2 * MACS, WRITTEN),
    "calflops": Expected(120, 600, 1240, WRITTEN),
    "deepspeed": Expected(343, 600, 1240, WRITTEN),
}


def partly_frozen() -> Graph:
    b = Builder("partly-frozen")
    x = b.relu(b.linear(b.input("x", (BATCH, INTO)), HIDDEN, name="first"), name="relu")
    graph = b.build(b.linear(x, OUT, name="second"))
    third = (
        Param("third.weight", (3, OUT), "weight", storage="third.weight"),
        Param("third.bias", (3,), "bias", storage="third.bias"),
    )
    frozen = frozenset({"first.weight", "first.bias", "third.bias"})
    return replace(graph, unused=third, frozen=frozen)


@cache
def counted(name: str) -> Report:
    return analyze(partly_frozen(), like=name)


def test_every_convention_is_expected() -> None:
    assert tuple(EXPECTED) == CONVENTIONS
    assert (MACS, USED, USED + UNUSED, USED + UNUSED - FROZEN) == (600, 325, 343, 120)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_figures_are_those_of_the_counter(name: str) -> None:
    totals = counted(name).totals
    kinds, activations = totals.convention_kinds, totals.convention_activations
    found = totals.params, totals.convention_ops, kinds.flops, activations
    assert Expected(*found) == EXPECTED[name]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_findings_are_of_what_is_counted(name: str) -> None:
    """The share of activations is of the same sum as the total, with the input or without."""
    said = findings(counted(name), "backbone")[0]
    assert said.split(" memory")[0] in ("Most", "No part has most")
    assert f" {EXPECTED[name].activations:,}" in said


def test_torchinfo_counts_tied_parameters_again() -> None:
    """Of Embedding(30, 8) and a Linear that shares its table it prints 480 parameters."""
    tied = 50257 * 768  # the head of GPT-2
    assert analyze("gpt2", like="torchinfo").totals.params == 124_439_808 + tied == 163_037_184


# -- what a figure is called, and how many it has for a multiply-add

CALLED = {
    "exact": ("FLOPs", 2),
    "matconvnet": ("", None),
    "netscope": ("macc", 1),
    "cs231n": ("", None),
    "boda": ("FLOPs", 2),
    "torchvision": ("FLOPs", 1),
    "flop_counter": ("FLOPs", 2),
    "fvcore": ("flops", 1),
    "timm": ("MACs", 1),
    "mmengine": ("flops", 1),
    "torchinfo": ("mult-adds", 1),
    "ptflops": ("MACs", 1),
    "ptflops-aten": ("MACs", 1),
    "thop": ("MACs", 1),
    "calflops": ("MACs", 1),
    "deepspeed": ("MACs", 1),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_what_the_figure_is_called_and_counts(name: str) -> None:
    rules = convention(name)
    assert (rules.figure, rules.headline(Ops(mac=1))) == CALLED[name]
    assert rules.two_per_mac == (CALLED[name][1] == 2)


@pytest.mark.parametrize("name", COUNTERS)
def test_an_opinion_is_in_multiply_adds(name: str) -> None:
    (said,) = explain(partly_frozen(), counters=(name,)).opinions
    ops = EXPECTED[name].ops
    assert ops is not None
    assert (said.figure, said.value) == (CALLED[name][0], ops)
    assert said.macs == ops // (CALLED[name][1] or 1)


# -- why a counter misses something


def recurrent() -> Graph:
    node = Node("lstm", "lstm", ("x",), ("y", "h", "c"), at.Recurrent(8))
    return Graph("recurrent", (Tensor("x", (7, 2, 16)),), (node,), ("y",))


def product() -> Graph:
    b = Builder("product")
    return b.build(b.einsum("ij,jk->ik", b.input("x", (4, 8)), b.input("y", (8, 8))))


def grouped() -> Graph:
    b = Builder("grouped")
    x = b.input("x", (1, 6, 8, 8))
    return b.build(b.conv_transpose(x, 6, 2, stride=2, groups=3, name="up"))


MADE: dict[str, Callable[[], Graph]] = {
    "recurrent": recurrent, "product": product, "grouped": grouped,
}  # fmt: skip
ONE_KERNEL = "without gradients PyTorch runs them as one kernel it does not"
# network, counter -> what differs, and the cause it is known for
CAUSES = {
    ("vit_b_16", "fvcore"): ("attention modules missed", f"{ONE_KERNEL} know"),
    ("vit_b_16", "mmengine"): ("attention modules missed", f"{ONE_KERNEL} know"),
    ("vit_b_16", "ptflops-aten"): ("attention modules missed", f"{ONE_KERNEL} know"),
    ("vit_b_16", "calflops"): ("attention modules missed", f"{ONE_KERNEL} wrap"),
    ("vit_b_16", "deepspeed"): ("attention modules missed", f"{ONE_KERNEL} wrap"),
    ("vit_b_16", "thop"): ("attention modules missed", "it has no rule for the class"),
    ("vit_b_16", "torchinfo"): (
        "attention modules missed", "they hold modules inside, and only leaves are counted",
    ),
    ("gpt2", "fvcore"): ("fused attention missed", "it has no formula for it"),
    ("gpt2", "ptflops-aten"): ("fused attention missed", "it has no formula for it"),
    ("gpt2", "ptflops"): ("fused attention missed", "it does not wrap that function"),
    ("gpt2", "calflops"): ("fused attention missed", "it does not wrap that function"),
    ("gpt2", "torchinfo"): (
        "linear layers inside attention modules counted for less", "it counts the first axis alone",
    ),
    ("convnext_tiny", "torchinfo"): (
        "linear layers on sequences counted for less", "it counts the first axis alone",
    ),
    ("recurrent", "fvcore"): ("recurrent layers missed", "it has no formula for them"),
    ("recurrent", "ptflops-aten"): (
        "recurrent layers missed", "oneDNN runs an LSTM as one kernel it does not know",
    ),
    ("recurrent", "calflops"): ("recurrent layers missed", "counted in its FLOPs alone"),
    ("recurrent", "deepspeed"): ("recurrent layers missed", "counted in its FLOPs alone"),
    ("product", "calflops"): ("einsum missed", "counted in its FLOPs alone"),
    ("product", "deepspeed"): ("einsum missed", "counted in its FLOPs alone"),
    ("grouped", "calflops"): ("transposed convolutions missed", "it divides by groups twice"),
    ("grouped", "thop"): (
        "transposed convolutions counted for more",
        "it counts output positions, not input positions",
    ),
    ("grouped", "torchinfo"): (
        "transposed convolutions counted for more",
        "it counts output positions, not input positions, and no groups",
    ),
}  # fmt: skip


@cache
def explained(network: str) -> Explanation:
    return explain(MADE[network]() if network in MADE else network)


@pytest.mark.parametrize("network, counter", CAUSES)
def test_the_cause_of_a_difference(network: str, counter: str) -> None:
    said = {opinion.name: opinion for opinion in explained(network).opinions}
    assert ", ".join(CAUSES[network, counter]) in [part.what for part in said[counter].parts]


# -- one operation at a time, as Netscope's and Boda's programs count it

X = (2, 6, 8, 8)
N = 2 * 6 * 8 * 8
Make = Callable[[Builder, str], str]
NETSCOPE: dict[str, tuple[Make, Ops]] = {
    "conv": (lambda b, x: b.conv(x, 4, 3, padding=1), Ops(mac=2 * 4 * 64 * 6 * 9)),
    "conv_transpose": (
        lambda b, x: b.conv_transpose(x, 4, 4, stride=2), Ops(mac=6 * 2 * 4 * 18 * 18 * 4),
    ),
    "linear": (lambda b, x: b.linear(b.flatten(x), 5), Ops(mac=N * 5)),
    "max_pool": (lambda b, x: b.max_pool(x, 2), Ops(comp=N)),
    "avg_pool": (lambda b, x: b.avg_pool(x, 2), Ops(add=N)),
    "global_max_pool": (lambda b, x: b.global_pool(x, "max"), Ops(comp=N)),
    "global_avg_pool": (lambda b, x: b.global_pool(x), Ops(add=N)),
    "adaptive_max_pool": (lambda b, x: b.adaptive_pool(x, 2, kind="max"), Ops(comp=N)),
    "adaptive_avg_pool": (lambda b, x: b.adaptive_pool(x, 2), Ops(add=N)),
    "relu": (lambda b, x: b.relu(x), Ops(comp=N)),
    "relu6": (lambda b, x: b.activation("relu6", x), Ops(comp=N)),
    "elu": (lambda b, x: b.activation("elu", x), Ops(comp=N)),
    "leaky_relu": (lambda b, x: b.activation("leaky_relu", x), Ops(comp=N)),
    "prelu": (lambda b, x: b.prelu(x), Ops(comp=N)),
    "dropout": (lambda b, x: b.dropout(x), Ops(comp=N)),
    "batch_norm": (lambda b, x: b.batch_norm(x), Ops(add=N, div=N)),
    "scale": (lambda b, x: b.scale(x), Ops(mac=N)),
    "lrn": (lambda b, x: b.lrn(x, 5), Ops(mac=5 * N, add=N, exp=N, div=2 * N)),
    "l2_norm": (lambda b, x: b.l2_norm(x), Ops(mac=N, add=N, exp=N, div=2 * N)),
    "softmax": (lambda b, x: b.softmax(x), Ops(add=N, div=N, exp=N)),
    "softmax_loss": (lambda b, x: b.softmax_loss(x), Ops(add=N, div=N, exp=N)),
    "add": (lambda b, x: b.add(x, x), Ops(add=N)),
    "sub": (lambda b, x: b.sub(x, x), Ops(add=N)),
    "mul": (lambda b, x: b.mul(x, x), Ops(mac=N)),
    "sigmoid": (lambda b, x: b.activation("sigmoid", x), Ops()),
}  # fmt: skip
ELSEWHERE = {"max", "roi_pool", "proposals"}  # tested with the Caffe layers they are of


def one_operation(make: Make) -> Graph:
    b = Builder("one")
    return b.build(make(b, b.input("x", X)))


@pytest.mark.parametrize("op", NETSCOPE)
def test_netscope_counts_an_operation(op: str) -> None:
    make, ops = NETSCOPE[op]
    layer = analyze(one_operation(make), like="netscope").layers[-1]
    assert (layer.op, layer.convention_kinds) == (op, ops)


def test_every_rule_of_netscope_is_tested() -> None:
    tested = set(NETSCOPE) - {"sigmoid"} | ELSEWHERE | {"power"}
    assert tested == set(netscope.RULES)


@pytest.mark.parametrize(
    "scale, shift, power, ops",
    [
        (2.0, 0.0, 1.0, Ops(mac=N // 2)),
        (1.0, 3.0, 1.0, Ops(add=N // 2)),
        (1.0, 0.0, 2.0, Ops(exp=N // 2)),
        (2.0, 3.0, 2.0, Ops(mac=N // 2, add=N // 2, exp=N // 2)),
        (1.0, 0.0, 1.0, Ops()),
    ],
)
def test_netscope_counts_a_power_of_one_image(
    scale: float, shift: float, power: float, ops: Ops
) -> None:
    node = Node("it", "power", ("x",), ("y",), at.Power(power=power, scale=scale, shift=shift))
    graph = Graph("one", (Tensor("x", X),), (node,), ("y",))
    assert analyze(graph, like="netscope").totals.convention_kinds == ops


@pytest.mark.parametrize("op", NETSCOPE)
def test_boda_counts_products_alone(op: str) -> None:
    graph = one_operation(NETSCOPE[op][0])
    exact = analyze(graph).totals.macs if op in ("conv", "conv_transpose", "linear") else 0
    assert analyze(graph, like="boda").totals.convention_kinds == Ops(mac=exact)
    assert (exact > 0) == (op in ("conv", "conv_transpose", "linear"))


def test_stored_arrays_and_views_of_matconvnet() -> None:
    """Moments of a norm are parameters there, and a layer that works in place has its own data."""
    b = Builder("norms")
    x = b.relu(b.batch_norm(b.conv(b.input("x", X), 4, 1)))
    totals = analyze(b.build(b.flatten(x)), like="matconvnet").totals
    assert totals.params == (6 * 4 + 4) + 4 * 4
    assert totals.convention_activations == N + 3 * (2 * 4 * 64)
