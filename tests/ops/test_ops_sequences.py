"""Ops on sequences, indices and regions: what holds of them beside the counts of test_ops."""

from __future__ import annotations

import random
from typing import Any

import pytest

from layerscope import Graph, Node, Tensor, analyze
from layerscope.analysis.shapes import infer
from layerscope.graph import attributes as at
from layerscope.graph.edits import bind
from layerscope.graph.types import Shape, elements
from layerscope.ops import FREE, SPECS, Call, Ops
from tests.brute import BRUTE
from tests.brute.arrays import Array, Index, Run, places
from tests.brute.case import Case, moved
from tests.brute.engine import Model
from tests.brute.onnx_models import MODELS
from tests.brute.roi import OVERLAP
from tests.brute.scalar import Scalar, Tally


def call(op: str, told: Any, *inputs: Shape) -> Call:
    return Call(told, inputs, SPECS[op].shape(Call(told, inputs)))


def ops(op: str, told: Any, *inputs: Shape) -> Ops:
    return SPECS[op].ops(call(op, told, *inputs))


def one_node(op: str, told: Any, *inputs: tuple[Shape, str]) -> Graph:
    tensors = tuple(Tensor(f"x{n}", shape, dtype) for n, (shape, dtype) in enumerate(inputs))
    made = call(op, told, *(shape for shape, _ in inputs)).outputs
    outputs = tuple(f"y{n}" for n in range(len(made)))
    node = Node("node", op, tuple(tensor.name for tensor in tensors), outputs, told)
    return Graph("one", tensors, (node,), node.outputs)


# -- the same computation told in two ways costs the same


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_its_parts(causal: bool) -> None:
    """Two batched products, a scaling, a mask, a softmax; of a causal mask one comparison each."""
    n, heads, queries, keys, size, values = 2, 4, 3, 5, 6, 7
    q, k, v = (n, heads, queries, size), (n, heads, keys, size), (n, heads, keys, values)
    scores = (n, heads, queries, keys)
    parts = (
        ops("matmul", at.MatMul(transpose_b=True), q, k)
        + ops("mul", None, scores)
        + ops("add", None, scores, (queries, keys))
        + ops("softmax", at.Softmax(-1), scores)
        + ops("matmul", None, scores, v)
        + Ops(comp=elements(scores) if causal else 0)
    )
    assert ops("attention", at.Attention(heads, causal=causal), q, k, v, (queries, keys)) == parts


def test_a_cache_counts_as_keys_and_values_that_were_given() -> None:
    now, before = (2, 4, 1, 8), 6
    whole = (2, 4, 1 + before, 8)
    cached = call("attention", at.Attention(4, past=before), now, now, now)
    given = call("attention", at.Attention(4), now, whole, whole)
    rule = SPECS["attention"]
    assert rule.ops(cached) == rule.ops(given)
    assert rule.gemm(cached) == rule.gemm(given)
    assert moved(cached, rule) == moved(given, rule)
    assert cached.outputs == given.outputs


def test_shared_heads_of_keys_cost_no_product_less_but_less_reading() -> None:
    q, k = (2, 5, 32), (2, 5, 8)
    rule = SPECS["attention"]
    grouped, full = call("attention", at.Attention(8, 2), q, k, k), call(
        "attention", at.Attention(8), q, q, q)  # fmt: skip
    assert rule.ops(grouped) == rule.ops(full)
    assert moved(full, rule)[0] - moved(grouped, rule)[0] == 2 * (320 - 80)


@pytest.mark.parametrize(
    "equation, told, shapes",
    [
        ("ij,jk->ik", None, ((3, 4), (4, 5))),
        ("bij,bkj->bik", at.MatMul(transpose_b=True), ((2, 3, 4), (2, 5, 4))),
        ("...ij,...jk", None, ((2, 3, 3, 4), (2, 3, 4, 5))),
        ("...ij,jk->...ik", None, ((2, 3, 4), (4, 5))),
        ("i,i->", None, ((4,), (4,))),
    ],
)
def test_an_einsum_that_is_a_matrix_product_is_one(
    equation: str, told: Any, shapes: tuple[Shape, ...]
) -> None:
    one, other = call("einsum", at.Einsum(equation), *shapes), call("matmul", told, *shapes)
    assert one.outputs == other.outputs
    for what in ("ops", "backward"):
        assert getattr(SPECS["einsum"], what)(one) == getattr(SPECS["matmul"], what)(other)
    gemms = SPECS["einsum"].gemm(one), SPECS["matmul"].gemm(other)
    assert gemms[0] is not None
    assert gemms[1] is not None
    assert gemms[0].k == gemms[1].k
    assert elements((gemms[0].m, gemms[0].n, gemms[0].count)) == elements(
        (gemms[1].m, gemms[1].n, gemms[1].count)
    )


def test_einsum_as_torch_alone_has_it() -> None:
    """Axes under an ellipsis that the result leaves out are summed; numpy and ONNX refuse it."""
    assert call("einsum", at.Einsum("...i->i"), (5, 2)).y == (2,)
    assert ops("einsum", at.Einsum("...i->i"), (5, 2)) == Ops(add=8)


def test_reductions_that_are_other_ops() -> None:
    x = (2, 3, 4, 5)
    for kind, pool in (("reduce_mean", "global_avg_pool"), ("reduce_max", "global_max_pool")):
        assert ops(kind, at.Reduce((2, 3), keep=True), x) == ops(pool, None, x)
        assert call(kind, at.Reduce((2, 3), keep=True), x).y == call(pool, None, x).y
    assert ops("reduce_sum", at.Reduce((1,)), x) == ops("einsum", at.Einsum("abcd->acd"), x)


def test_instances_are_groups_of_one_channel() -> None:
    x = (2, 6, 3, 4)
    for affine in (True, False):
        told = at.InstanceNorm(affine=affine)
        assert ops("instance_norm", told, x) == ops("group_norm", at.GroupNorm(6, affine), x)


def test_gates_are_the_activations() -> None:
    """Three sigmoids and two hyperbolic tangents, with the products and sums beside them."""
    steps = (4, 2, 3)
    units = (4, 2, 5)
    alone = ops("lstm", at.Recurrent(5, bias=False), steps)
    sigmoid, tanh = ops("sigmoid", at.Activation(), units), ops("tanh", at.Activation(), units)
    rest = Ops(mac=4 * (3 + 5), mul=3, add=1 + 4) * elements(units)
    assert alone == sigmoid * 3 + tanh * 2 + rest


# -- boxes that overlap: the bound is not reached


@pytest.mark.parametrize("seed", range(8))
def test_suppression_keeps_and_compares_no_more_than_the_bound(seed: int) -> None:
    """onnxruntime gives as many rows as it kept; the rule, as many as may be."""
    luck = random.Random(seed)
    case = Case("nms", at.NonMaxSuppression(luck.randint(1, 8)), ((2, 8, 4), (2, 3, 8)))
    tally = Tally()
    boxes: dict[Index, Scalar] = {}
    for n, b in places((2, 8)):
        top, left = luck.randint(0, 24) / 8, luck.randint(0, 24) / 8
        edges = top, left, top + luck.randint(4, 24) / 8, left + luck.randint(4, 24) / 8
        boxes.update({(n, b, i): Scalar(edge, tally) for i, edge in enumerate(edges)})
    ranks = iter(luck.sample(range(1, 1024), 48))  # no two scores alike
    scores = Array((2, 3, 8), {i: Scalar(next(ranks) / 1024, tally) for i in places((2, 3, 8))})
    run = Run(case.attributes, [Array((2, 8, 4), boxes), scores], {}, tally)
    (kept,) = BRUTE["nms"](run)
    model = Model(case.attributes, run.inputs)
    (((rows, _), numbers),) = model.run([str(MODELS["nms"](model))])
    assert numbers == kept.values()
    assert rows == kept.shape[0] <= case.call.y[0]
    bound, counted = SPECS["nms"].ops(case.call), tally.ops()
    for kind in ("add", "mul", "comp", "div"):
        assert getattr(counted, kind) <= getattr(bound, kind)
    assert counted.mac == counted.exp == 0
    assert SPECS["nms"].estimate
    assert 0 < OVERLAP < 1


# -- number types and bytes


@pytest.mark.parametrize(
    "op, told, inputs, made",
    [
        ("arg_max", None, [((2, 3), "fp16")], ["int64"]),
        ("arg_min", at.Reduce((1,)), [((2, 3), "fp32")], ["int64"]),
        ("reduce_sum", None, [((2, 3), "fp16")], ["fp16"]),
        ("compare", None, [((2, 3), "fp32"), ((2, 3), "fp32")], ["bool"]),
        ("where", None, [((2, 3), "bool"), ((2, 3), "fp32"), ((), "fp32")], ["fp32"]),
        ("gather", None, [((5, 3), "fp16"), ((2,), "int64")], ["fp16"]),
        ("top_k", at.TopK(2), [((2, 3), "bf16")], ["bf16", "int64"]),
        ("quantize", at.Quantize("uint8"), [((2, 3), "fp32")], ["uint8"]),
        ("dequantize", at.Quantize("uint8"), [((2, 3), "uint8")], ["fp32"]),
        ("cast", at.Cast("fp16"), [((2, 3), "fp32")], ["fp16"]),
        ("embedding", at.Embedding(9, 4), [((2, 3), "int64")], ["fp32"]),
        ("positions", None, [((2, 3), "int64")], ["int64"]),
        ("table", at.Table((1, 3, 4)), [((2, 3), "int64")], ["fp32"]),
        ("nms", at.NonMaxSuppression(2), [((1, 5, 4), "fp32"), ((1, 2, 5), "fp32")], ["int64"]),
        ("lstm", at.Recurrent(3), [((2, 1, 3), "fp16")], ["fp16"] * 3),
        ("attention", at.Attention(1), [((1, 2, 4), "bf16")] * 3, ["bf16"]),
    ],
)
def test_number_types_of_what_is_made(
    op: str, told: Any, inputs: list[tuple[Shape, str]], made: list[str]
) -> None:
    graph = one_node(op, told, *inputs)
    tensors = infer(graph).tensors
    assert [tensors[name].dtype for name in graph.outputs] == made


@pytest.mark.parametrize("dtype, size", [("fp32", 4), ("fp16", 2), ("bf16", 2), ("fp64", 8)])
def test_an_embedding_has_the_type_of_the_network_and_reads_only_rows(
    dtype: str, size: int
) -> None:
    graph = bind(one_node("embedding", at.Embedding(1000, 8), ((2, 5), "int64")), dtype=dtype)
    assert graph.inputs[0].dtype == "int64"
    assert infer(graph).tensors["y0"].dtype == dtype
    (layer,) = analyze(graph).layers
    assert layer.cost.stored_bytes == 1000 * 8 * size
    assert layer.cost.write_bytes == 2 * 5 * 8 * size
    assert layer.cost.read_bytes == 2 * 5 * 8 * size + 2 * 5 * 8  # rows, and int64 indices


def test_a_cache_is_read_and_nothing_else_more() -> None:
    sizes = [((2, 1, 32), "fp16"), ((2, 1, 8), "fp16"), ((2, 1, 8), "fp16")]
    cost = {
        past: analyze(one_node("attention", at.Attention(8, 2, past=past), *sizes)).layers[0].cost
        for past in (0, 100)
    }
    assert cost[0].read_bytes == 2 * 2 * (32 + 8 + 8)
    assert cost[100].read_bytes - cost[0].read_bytes == 2 * 2 * 100 * (8 + 8)
    assert cost[100].write_bytes == cost[0].write_bytes == 2 * 2 * 32


# -- gradients


def test_gradients_of_attention_are_two_more_of_each_product() -> None:
    made = call("attention", at.Attention(2), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6))
    for_inputs, for_params = SPECS["attention"].backward(made)
    assert for_inputs.mac == 2 * SPECS["attention"].ops(made).mac
    assert for_params == FREE


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_gradients_of_recurrence_are_two_more_of_each_product(kind: str) -> None:
    """But for the first layer's input, whose gradient may not be asked for."""
    told = at.Recurrent(5, 2, True)
    made = call(kind, told, (4, 2, 3))
    for_inputs, for_params = SPECS[kind].backward(made)
    assert for_inputs.mac + for_params.mac == 2 * SPECS[kind].ops(made).mac
    gates = {"rnn": 1, "lstm": 4, "gru": 3}[kind]
    assert for_inputs == Ops(mac=2 * gates * 5 * 3 * 4 * 2)


def test_gradients_of_what_is_only_chosen_or_summed() -> None:
    made = call("embedding", at.Embedding(9, 4), (2, 3))
    assert SPECS["embedding"].backward(made) == (FREE, Ops(add=24))
    for op, told in (("reduce_sum", None), ("arg_max", None), ("einsum", at.Einsum("ij->"))):
        assert SPECS[op].backward(call(op, told, (2, 3))) == (FREE, FREE)
