"""The table of PyTorch calls for ONNX operators is complete; needs no PyTorch."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx  # noqa: TID251

from layerscope.engines.torch_operators import CALLS, REFUSED
from tests.brute.case import Case
from tests.engines.lowered import graph_of, lowered
from tests.lower.test_lower import CASES  # every op with an emitter has a case in it

# Operators that lowering writes without an emitter: tied parameters, constants, zero weights.
WITHOUT_EMITTER = {"Identity", "Constant", "ConstantOfShape"}


@cache
def model_of(case: Case) -> Any:
    return lowered(graph_of(case))


def operators(case: Case) -> set[str]:
    """Operators that lowering emits for a case."""
    return {node.op_type for node in model_of(case).graph.node}


def test_every_operator_that_is_emitted_has_a_call_or_a_reason() -> None:
    emitted = WITHOUT_EMITTER.union(*map(operators, CASES))
    missing = sorted(emitted - set(CALLS) - set(REFUSED))
    assert not missing, f"add a call or a reason to engines/torch_operators.py: {missing}"
    unused = sorted(set(REFUSED) - emitted)
    assert not unused, f"no emitter writes these: {unused}"
    assert not set(CALLS) & set(REFUSED)
    schemas = {schema.name for schema in onnx.defs.get_all_schemas()}
    assert set(CALLS) <= schemas
    assert all(REFUSED.values())
