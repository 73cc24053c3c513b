"""What must hold of counts whatever the sizes: placements, batches, groups, gradients, ties."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layerscope import Builder, Graph, Node, Param, Tensor, analyze
from layerscope.errors import ShapeError
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops import SPECS, Call, Ops
from tests.brute import CASES as ALL_CASES
from tests.brute.case import Case, window
from tests.brute.convolution import pads_of, placements
from tests.brute.random_windows import fits, windows

OPS = (
    "abs", "adaptive_avg_pool", "adaptive_max_pool", "add", "avg_pool", "batch_norm", "clip",
    "compare", "concat", "conv", "conv_transpose", "crop", "div", "dropout", "elu", "exp",
    "flatten", "gelu", "gelu_tanh", "global_avg_pool", "global_lp_pool", "global_max_pool",
    "group_norm", "hard_sigmoid", "hard_swish", "hinge_loss", "identity", "l1_loss", "l2_norm",
    "layer_norm", "leaky_relu", "linear", "log", "log_softmax", "lp_pool", "lrn", "matmul", "max",
    "max_pool", "min", "mse_loss", "mul", "neg", "nll_loss", "pad", "permute", "pixel_shuffle",
    "pow", "prelu", "relu", "relu6", "reshape", "resize", "roi_pool", "scale", "selu", "sigmoid",
    "sigmoid_cross_entropy", "silu", "slice", "softmax", "softmax_loss", "softplus", "split",
    "sqrt", "sub", "tanh", "threshold",
)  # fmt: skip
CASES = [case for case in ALL_CASES if case.op in OPS]

steady = settings(max_examples=150, derandomize=True)


def call(op: str, attributes: Any, *inputs: Shape) -> Call:
    return Call(attributes, inputs, SPECS[op].shape(Call(attributes, inputs)))


def ops(op: str, attributes: Any, *inputs: Shape) -> Ops:
    return SPECS[op].ops(call(op, attributes, *inputs))


# -- windows


@pytest.mark.parametrize("rounding", ["floor", "ceil", "caffe", "torch"])
@steady
@given(st.data())
def test_output_size_is_the_number_of_placements(rounding: at.Rounding, data: Any) -> None:
    w, sizes = data.draw(windows(rounding))
    assume(fits(w, sizes))
    starts = placements(sizes, w)
    assume(all(starts))  # one that is wholly in the end padding is dropped, and none is left
    assert w.slide(sizes) == tuple(map(len, starts))


@steady
@given(windows())
def test_a_window_that_does_not_fit_is_refused(given_window: tuple[at.Window, Shape]) -> None:
    w, sizes = given_window
    if fits(w, sizes):
        w.slide(sizes)
    else:
        with pytest.raises(ShapeError, match="does not fit"):
            w.slide(sizes)


@steady
@given(windows(), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_macs_of_a_convolution_are_those_of_its_loops(
    given_window: tuple[at.Window, Shape], batch: int, groups: int, each: int, bias: bool
) -> None:
    w, sizes = given_window
    assume(fits(w, sizes))
    channels, filters = groups * each, groups * 2
    told = at.Conv(w, filters, groups, bias)
    macs = adds = 0
    for _ in product(range(batch), range(filters), *placements(sizes, w)):
        for _ in product(range(channels // groups), *map(range, w.kernel)):
            macs += 1
        adds += bias
    made = call("conv", told, (batch, channels, *sizes))
    assert SPECS["conv"].ops(made) == Ops(mac=macs, add=adds)
    gemm = SPECS["conv"].gemm(made)
    assert gemm is not None
    assert gemm.m * gemm.n * gemm.k * gemm.count == macs


@steady
@given(windows(), st.integers(1, 2), st.integers(1, 3))
def test_a_transposed_convolution_costs_what_the_convolution_costs(
    given_window: tuple[at.Window, Shape], groups: int, each: int
) -> None:
    """It is the gradient of one: the same products, from the other side."""
    w, sizes = given_window
    assume(fits(w, sizes) and not isinstance(w.pads, str))
    channels = groups * each
    forward = call("conv", at.Conv(w, groups, groups, False), (1, channels, *sizes))
    left = [
        (size + begin + end - extent) % step
        for size, (begin, end), extent, step in zip(
            sizes, pads_of(sizes, w), w.extents, w.stride, strict=True
        )
    ]
    told = at.TransposedConv(w, channels, groups, False, tuple(left))
    back = call("conv_transpose", told, forward.y)
    assert back.y == forward.x
    assert SPECS["conv_transpose"].ops(back) == SPECS["conv"].ops(forward)
    weight, other = SPECS["conv"].params(forward)[0], SPECS["conv_transpose"].params(back)[0]
    assert weight.shape == other.shape


@steady
@given(windows(), st.integers(1, 4))
def test_depthwise_is_groups_of_one_channel(
    given_window: tuple[at.Window, Shape], channels: int
) -> None:
    """Every channel alone: as many MACs as convolving each by itself."""
    w, sizes = given_window
    assume(fits(w, sizes))
    alone = ops("conv", at.Conv(w, 1), (1, 1, *sizes))
    assert ops("conv", at.Conv(w, channels, channels), (1, channels, *sizes)) == alone * channels


@steady
@given(windows(), st.integers(1, 3), st.integers(2, 4))
def test_groups_divide_macs_and_weights(
    given_window: tuple[at.Window, Shape], each: int, groups: int
) -> None:
    w, sizes = given_window
    assume(fits(w, sizes))
    x = (1, each * groups, *sizes)
    whole = call("conv", at.Conv(w, groups, bias=False), x)
    cut = call("conv", at.Conv(w, groups, groups, bias=False), x)
    assert SPECS["conv"].ops(whole).mac == groups * SPECS["conv"].ops(cut).mac
    one, other = SPECS["conv"].params(whole)[0], SPECS["conv"].params(cut)[0]
    assert one.elements == groups * other.elements


@steady
@given(windows(), st.integers(1, 4), st.integers(1, 4))
def test_splitting_filters_adds_up(
    given_window: tuple[at.Window, Shape], first: int, second: int
) -> None:
    w, sizes = given_window
    assume(fits(w, sizes))
    x = (2, 3, *sizes)
    parts = ops("conv", at.Conv(w, first), x) + ops("conv", at.Conv(w, second), x)
    assert ops("conv", at.Conv(w, first + second), x) == parts


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 4), st.booleans())
@steady
def test_a_kernel_as_large_as_the_map_is_a_linear_layer(
    sizes: list[int], filters: int, bias: bool
) -> None:
    x = (2, 3, *sizes)
    one = call("conv", at.Conv(window(sizes), filters, bias=bias), x)
    other = call("linear", at.Linear(filters, bias, flatten=True), x)
    assert SPECS["conv"].ops(one) == SPECS["linear"].ops(other)
    assert SPECS["conv"].params(one)[0].elements == SPECS["linear"].params(other)[0].elements


# -- sums and batches


numbers = st.builds(Ops, *[st.integers(0, 10**12)] * 6)


@given(numbers, numbers, st.integers(0, 100))
@steady
def test_ops_add_up_and_so_do_flops(a: Ops, b: Ops, times: int) -> None:
    assert (a + b).flops == a.flops + b.flops
    assert (a * times).flops == a.flops * times
    assert a + b == b + a
    assert a + Ops() == a
    assert a * 2 == a + a
    assert a.flops == 2 * a.mac + a.add + a.mul + a.comp + a.div + a.exp


# Ops in which something does not grow with the batch, or whose first axis is none.
NOT_LINEAR = dict.fromkeys(
    ("softmax_loss", "nll_loss", "mse_loss", "l1_loss", "hinge_loss", "sigmoid_cross_entropy"),
    "the mean of a batch is one number: n − 1 additions and one division",
)
NO_BATCH = ("matmul", "crop", "roi_pool", "slice", "permute")  # see the test after the next


def _grown(case: Case, times: int) -> Case | None:
    """The case with so many times the batch, where all its inputs share one."""
    told = case.attributes
    rank = max(map(len, case.inputs))
    first = {shape[0] for shape in case.inputs if len(shape) == rank}
    if case.op in NO_BATCH or len(first) != 1 or len(case.inputs[0]) < 2:
        return None
    if isinstance(told, at.Reshape):
        if told.shape[0] != 0:
            return None
    elif getattr(told, "axis", 1) == 0 or getattr(told, "start", 1) == 0:
        return None
    shapes = tuple(
        (shape[0] * times, *shape[1:]) if len(shape) == rank else shape for shape in case.inputs
    )
    return Case(case.op, told, shapes)


@pytest.mark.parametrize("times", [2, 5])
def test_costs_are_linear_in_the_batch(times: int) -> None:
    checked = set()
    for case in CASES:
        grown = _grown(case, times)
        if case.op in NOT_LINEAR or grown is None:
            continue
        rule, one, many = SPECS[case.op], case.call, grown.call
        assert rule.ops(many) == rule.ops(one) * times, case
        assert many.out_elements == one.out_elements * times, case
        assert rule.params(many) == rule.params(one), case
        for ahead, behind in zip(rule.backward(one), rule.backward(many), strict=True):
            assert behind == ahead * times, case
        checked.add(case.op)
    assert checked == {case.op for case in CASES} - set(NOT_LINEAR) - set(NO_BATCH)


@pytest.mark.parametrize("times", [2, 5])
def test_costs_of_the_rest_are_linear_in_what_they_repeat(times: int) -> None:
    grown: list[tuple[str, Any, list[Shape], list[Shape]]] = [
        ("matmul", None, [(1, 3, 4), (1, 4, 5)], [(times, 3, 4), (times, 4, 5)]),
        ("crop", at.Crop(), [(1, 2, 5), (1, 2, 3)], [(times, 2, 5), (times, 2, 3)]),
        ("roi_pool", at.RoIPool((2, 2)), [(1, 2, 5, 5), (3, 5)], [(1, 2, 5, 5), (3 * times, 5)]),
        ("slice", at.Slice((2,), (1,), (4,)), [(1, 2, 5)], [(times, 2, 5)]),
        ("permute", at.Permute((0, 2, 1)), [(1, 2, 5)], [(times, 2, 5)]),
    ]
    for op, told, one, many in grown:
        assert ops(op, told, *many) == ops(op, told, *one) * times
        assert call(op, told, *many).out_elements == call(op, told, *one).out_elements * times


def network(batch: int = 1) -> Graph:
    b = Builder("net")
    x = b.input("data", (batch, 3, 12, 12))
    x = b.relu(b.batch_norm(b.conv(x, 8, 3, padding=1, name="first"), name="bn"))
    y = b.conv(x, 8, 3, padding=1, groups=8, name="depthwise")
    x = b.max_pool(b.add(x, y), 2)
    x = b.softmax(b.linear(b.flatten(b.conv(x, 4, 3, stride=2, name="last")), 5, name="fc"))
    return b.build(x)


@pytest.mark.parametrize("batch", [2, 3, 16])
def test_a_network_is_linear_in_its_batch(batch: int) -> None:
    one, many = analyze(network()), analyze(network(), batch=batch)
    assert many.totals == analyze(network(batch)).totals
    assert many.totals.ops == one.totals.ops * batch
    assert many.backward == {name: back * batch for name, back in one.backward.items()}
    assert many.totals.activations == one.totals.activations * batch
    assert many.totals.params == one.totals.params
    assert many.totals.param_bytes == one.totals.param_bytes


def test_totals_are_the_sums_of_the_layers() -> None:
    report = analyze(network())
    total = Ops()
    for layer in report.layers:
        total += layer.ops
    assert report.totals.ops == total
    assert report.totals.flops == sum(layer.ops.flops for layer in report.layers)
    assert report.totals.params == sum(layer.params for layer in report.layers)
    assert report.totals.activations == sum(
        elements(tensor.shape or ())
        for layer in report.layers
        if not SPECS[layer.op].view
        for tensor in layer.outputs
    )


# -- backward


@steady
@given(windows(), st.integers(1, 2), st.integers(1, 2))
def test_gradients_of_a_convolution_are_two_more_of_it(
    given_window: tuple[at.Window, Shape], groups: int, each: int
) -> None:
    """Every product of the forward pass comes again once for the input and once for the weight."""
    w, sizes = given_window
    assume(fits(w, sizes))
    told = at.Conv(w, 2 * groups, groups)
    made = call("conv", told, (2, groups * each, *sizes))
    weight_gradient: dict[tuple[int, ...], int] = {}
    input_gradient = bias_gradient = 0
    for _, filt, *_ in product(range(2), range(2 * groups), *placements(sizes, w)):
        for place in product(range(each), *map(range, w.kernel)):
            weight_gradient[(filt, *place)] = weight_gradient.get((filt, *place), 0) + 1
            input_gradient += 1
        bias_gradient += 1
    for_input, for_params = SPECS["conv"].backward(made)
    assert for_input == Ops(mac=input_gradient)
    assert for_params == Ops(mac=sum(weight_gradient.values()), add=bias_gradient)
    assert len(weight_gradient) == SPECS["conv"].params(made)[0].elements


def test_the_first_layer_needs_no_gradient_of_its_input() -> None:
    report = analyze(network())
    for layer in report.layers:
        if layer.op in ("conv", "linear"):
            again = 1 if layer.name == "first" else 2
            assert report.backward[layer.name].mac == again * layer.ops.mac, layer.name


def test_nothing_flows_back_where_nothing_is_learned() -> None:
    b = Builder("net")
    x = b.max_pool(b.relu(b.input("data", (1, 3, 8, 8)), name="relu"), 2, name="pool")
    report = analyze(b.build(b.relu(b.conv(x, 4, 1, name="conv"), name="after")))
    back = report.backward
    assert back["relu"] == back["pool"] == Ops()
    assert back["conv"] == Ops(mac=report.by_name["conv"].ops.mac, add=4 * 16)
    assert back["after"] == Ops(mul=4 * 16)


def test_a_learned_array_that_is_an_input_has_a_gradient() -> None:
    table = Param("table", (3, 1, 1), "scale")
    node = Node("gate", "mul", ("data", "table"), ("gate",))
    report = analyze(Graph("net", (Tensor("data", (1, 3, 8, 8)),), (node,), ("gate",), (table,)))
    assert report.backward["gate"].mul > 0


# -- parameters


def tied(times: int) -> Graph:
    b = Builder("tied")
    x = b.input("data", (1, 4, 6))
    for n in range(times):
        storage = {"weight": "shared.weight", "bias": "shared.bias"}
        told = at.Conv(window([3], 1, 1), 4)
        (x,) = b.add_node("conv", (x,), told, name=f"conv{n}", ties=storage)
    return b.build(x)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_tied_storage_counts_once(times: int) -> None:
    one, many = analyze(tied(1)), analyze(tied(times))
    assert many.totals.params == one.totals.params == 4 * 4 * 3 + 4
    assert many.totals.param_bytes == one.totals.param_bytes == 4 * 52
    assert many.totals.ops == one.totals.ops * times
    assert [layer.params for layer in many.layers] == [52, *[0] * (times - 1)]
    used = [sum(param.bytes for param in layer.cost.params) for layer in many.layers]
    assert used == [4 * 52] * times  # each still reads them
    assert len({layer.cost.read_bytes for layer in many.layers}) == 1
    assert all("shares shared" in layer.cost.note for layer in many.layers[1:])


def test_half_tied_counts_the_rest() -> None:
    b = Builder("half")
    x = b.input("data", (2, 4))
    (y,) = b.add_node("linear", (x,), at.Linear(4), name="a", ties={"weight": "w"})
    (z,) = b.add_node("linear", (y,), at.Linear(4), name="b", ties={"weight": "w"})
    report = analyze(b.build(z))
    assert [layer.params for layer in report.layers] == [20, 4]
    assert report.totals.params == 24


@given(st.lists(st.integers(-2, 5), min_size=1, max_size=6))
@steady
def test_ties_to_arrays_of_other_layers(owners: list[int]) -> None:
    """A layer's weight is its own (-2), nobody's (-1), or that of a layer before or after it."""
    b = Builder("net")
    x = b.input("data", (2, 4))
    seen: dict[str, int] = {}
    counts = []
    for n, owner in enumerate(owners):
        name = f"fc.{n}"
        storage = {-2: f"{name}.weight", -1: "elsewhere"}.get(owner, f"fc.{owner}.weight")
        ties = None if owner == -2 else {"weight": storage}
        (x,) = b.add_node("linear", (x,), at.Linear(4), name=name, ties=ties)
        counts.append(4 + 16 * (storage not in seen))
        seen[storage] = 16
    report = analyze(b.build(x))
    assert [layer.params for layer in report.layers] == counts
    assert [layer.cost.read_bytes for layer in report.layers] == [4 * (8 + 20)] * len(owners)
    whole = sum(seen.values()) + 4 * len(owners)
    assert report.totals.params == sum(counts) == whole
    assert report.stored == {"parameters": {"fp32": whole}}


def test_a_stored_array_read_twice_counts_once() -> None:
    table = Param("table", (3, 1, 1), "scale")
    nodes = (
        Node("one", "mul", ("data", "table"), ("one",)),
        Node("two", "add", ("one", "table"), ("two",)),
    )
    report = analyze(Graph("net", (Tensor("data", (1, 3, 8, 8)),), nodes, ("two",), (table,)))
    assert report.totals.params == 3
    assert report.totals.param_bytes == 12
    assert report.stored == {"parameters": {"fp32": 3}}


def test_a_storage_may_have_any_name() -> None:
    b = Builder("net")
    x = b.input("data", (2, 4))
    for n, name in enumerate(["." * 100_000, ".", "", "fc1.weight."]):
        (x,) = b.add_node("linear", (x,), at.Linear(4), name=f"fc{n}", ties={"weight": name})
    assert analyze(b.build(x)).totals.params == 4 * 20


def test_an_array_that_a_layer_has_and_another_reads_counts_once() -> None:
    table = Param("table", (4, 4), storage="fc.weight")
    nodes = (
        Node("fc", "linear", ("data",), ("fc",), at.Linear(4)),
        Node("back", "matmul", ("fc", "table"), ("back",)),
    )
    report = analyze(Graph("net", (Tensor("data", (2, 4)),), nodes, ("back",), (table,)))
    assert [layer.params for layer in report.layers] == [20, 0]
    assert report.stored == {"parameters": {"fp32": 20}}


def test_statistics_are_buffers() -> None:
    b = Builder("net")
    report = analyze(b.build(b.batch_norm(b.input("data", (1, 7, 4)), name="bn")))
    assert (report.totals.params, report.totals.buffers) == (14, 14)
    assert report.totals.param_bytes == 4 * 28


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
@steady
def test_elements_of_a_shape_are_its_product(sizes: list[int]) -> None:
    assert elements(tuple(sizes)) == prod(sizes) == Tensor("x", tuple(sizes)).elements
