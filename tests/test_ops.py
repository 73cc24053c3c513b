"""Every rule against a loop that does the arithmetic, and against onnxruntime, which runs the op."""

from __future__ import annotations

import pytest

from layerscope.ops import RULES
from tests.brute import BRUTE
from tests.brute.cases import CASES, Case
from tests.brute.engine import Model, farthest
from tests.brute.onnx_ops import WRITERS, names

every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
def test_counts_are_those_of_the_loop(case: Case) -> None:
    run = case.run()
    made = BRUTE[case.op](run)
    assert tuple(y.shape for y in made) == case.call.outputs
    assert RULES[case.op].ops(case.call) == run.tally.ops()


@every_case
def test_shape_and_numbers_are_those_of_onnxruntime(case: Case) -> None:
    run = case.run()
    made = BRUTE[case.op](run)
    model = Model(case.attributes, run.inputs, run.params, case.whole)
    results = model.run(names(WRITERS[case.op](model)))
    assert case.call.outputs == tuple(shape for shape, _ in results)
    for ours, (_, theirs) in zip(made, results, strict=True):
        assert farthest(ours.values(), theirs) < 1e-5
