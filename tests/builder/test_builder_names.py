"""A second node of the same name is refused for every op that can have parameters."""

from __future__ import annotations

import pytest

from layerscope import Builder, analyze
from layerscope.errors import GraphError
from layerscope.graph import attributes as at
from layerscope.ops import SPECS
from tests.brute import CASES
from tests.brute.case import Case

LEARNED = sorted({case.op for case in CASES if SPECS[case.op].params(case.call)})


def twice(case: Case) -> Builder:
    """A Builder to which the op of a case was added twice under one name."""
    b = Builder("net")
    b.input("unread", (1,))
    inputs = [b.input(f"x{n}", shape) for n, shape in enumerate(case.inputs)]
    for _ in range(2):
        b.add_node(case.op, inputs, case.attributes, name="twice", outputs=len(case.call.outputs))
    return b


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parameters_never_count_twice_under_one_name(case: Case) -> None:
    if case.op in LEARNED:
        with pytest.raises(GraphError, match="net: two nodes are named 'twice'"):
            twice(case)
        return
    names = [node.name for node in twice(case).build().nodes]
    assert names == ["twice", "twice_1"]


def test_the_sweep_meets_every_op_with_parameters() -> None:
    assert sorted(op for op, rule in SPECS.items() if rule.has_params) == LEARNED
    assert {"bias", "deform_conv", "caffe_lstm", "caffe_rnn"} <= set(LEARNED)


def test_an_op_without_a_rule_may_have_parameters() -> None:
    b = Builder("net")
    x = b.add_node("warp::drive", (b.input("x", (1, 3)),), name="twice")[0]
    with pytest.raises(GraphError, match="two nodes are named 'twice'"):
        b.add_node("warp::drive", (x,), name="twice")


def test_one_name_each_counts_each() -> None:
    b = Builder("net")
    x = b.input("x", (1, 3, 8, 8))
    for name in ("one", "two"):
        x = b.add_node("bias", (x,), at.Bias(), name=name)[0]
        x = b.conv(x, 3, 1, bias=False, name=f"conv_{name}")
    assert analyze(b.build(x)).totals.params == 2 * (3 + 9)
