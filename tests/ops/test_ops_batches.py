"""Ops on sequences, indices and regions cost so many times as much on so many times the batch."""

from __future__ import annotations

from typing import Any

import pytest

from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops import SPECS, Call, Ops
from tests.brute import CASES as ALL_CASES
from tests.brute.case import Case, moved

OPS = (
    "arg_max", "arg_min", "attention", "cast", "dequantize", "einsum", "embedding", "expand",
    "gather", "grid_sample", "gru", "instance_norm", "lstm", "nms", "positions", "prior_box",
    "quantize", "reduce_l1", "reduce_l2", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "rms_norm", "rnn", "roi_align", "roll", "rotary", "scatter", "table", "top_k",
    "where",
)  # fmt: skip
CASES = [case for case in ALL_CASES if case.op in OPS]


def call(op: str, told: Any, *inputs: Shape) -> Call:
    return Call(told, inputs, SPECS[op].shape(Call(told, inputs)))


def ops(op: str, told: Any, *inputs: Shape) -> Ops:
    return SPECS[op].ops(call(op, told, *inputs))


FIXED = {
    "table": "the same for every batch",
    "positions": "the same for every batch",
    "prior_box": "told by the map alone",
    "nms": "counted below",
    "roi_align": "counted below: as many results as regions",
    "expand": "counted below: told its result",
}


def _batch_axis(case: Case) -> int | None:
    """The axis of all inputs of its rank that the case only repeats over, if it has one."""
    told, rank = case.attributes, len(case.inputs[0])
    if isinstance(told, at.Recurrent):
        return 0 if told.batch_first else 1
    if isinstance(told, at.Einsum):
        left, _, right = told.equation.partition("->")
        return 0 if all(term[:1] == "b" for term in (*left.split(","), right)) else None
    if case.op in ("gather", "scatter", "where") and {len(s) for s in case.inputs} != {rank}:
        return None
    worked_on = [0] if case.op.startswith(("reduce", "arg", "gather", "scatter")) else []
    if told is not None and (hasattr(told, "axes") or hasattr(told, "axis")):
        axes = getattr(told, "axes", None) or [getattr(told, "axis", 0)]
        worked_on = [axis % rank for axis in axes]
    return 0 if rank > 1 and 0 not in worked_on else None


def _grown(case: Case, times: int) -> Case | None:
    axis = _batch_axis(case)
    if axis is None:
        return None
    first = case.inputs[0]
    shapes = tuple(
        (*s[:axis], s[axis] * times, *s[axis + 1 :])
        if len(s) == len(first) and s[axis] == first[axis]
        else s
        for s in case.inputs
    )
    return Case(case.op, case.attributes, shapes)


@pytest.mark.parametrize("times", [2, 5])
def test_costs_are_linear_in_the_batch(times: int) -> None:
    checked = set()
    for case in CASES:
        grown = None if case.op in FIXED else _grown(case, times)
        if grown is None:
            continue
        rule, one, many = SPECS[case.op], case.call, grown.call
        assert rule.ops(many) == rule.ops(one) * times, case
        assert many.out_elements == one.out_elements * times, case
        assert rule.params(many) == rule.params(one), case
        for behind, ahead in zip(rule.backward(many), rule.backward(one), strict=True):
            assert behind == ahead * times, case
        checked.add(case.op)
    assert checked == {case.op for case in CASES} - set(FIXED)


@pytest.mark.parametrize("times", [2, 5])
def test_costs_of_the_rest_are_linear_in_what_they_repeat(times: int) -> None:
    grown: list[tuple[str, Any, list[Shape], list[Shape]]] = [
        ("nms", at.NonMaxSuppression(3), [(1, 7, 4), (1, 2, 7)], [(times, 7, 4), (times, 2, 7)]),
        ("roi_align", at.RoIAlign((2, 2)), [(1, 2, 5, 5), (3, 5)], [(1, 2, 5, 5), (3 * times, 5)]),
        ("expand", at.Expand((-1, 4)), [(2, 1)], [(2 * times, 1)]),
    ]
    for op, told, one, many in grown:
        assert ops(op, told, *many) == ops(op, told, *one) * times
        ahead, behind = call(op, told, *one), call(op, told, *many)
        assert behind.out_elements == ahead.out_elements * times
        assert SPECS[op].backward(behind)[0] == SPECS[op].backward(ahead)[0] * times
    table = call("table", at.Table((1, 3), batched=True), (times, 9))
    assert (moved(table, SPECS["table"])[0], table.y) == (3, (times, 3))
