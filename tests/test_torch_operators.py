"""ONNX operators as PyTorch calls: complete for what lowering emits, equal to onnxruntime."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import onnxruntime
import pytest

from layerscope.engines.torch import TorchModel
from layerscope.engines.torch_operators import CALLS, REFUSED
from layerscope.errors import EngineError
from layerscope.lower.weights import samples
from tests.brute.case import Case
from tests.lowered import FATAL, graph_of, lowered
from tests.test_lower import CASES  # every op with an emitter has a case in it
from tests.torch_nets import torch

# Constants that lowering writes without an emitter: parameters used twice, zero weights.
WITHOUT_EMITTER = {"Identity", "Constant", "ConstantOfShape"}
# Reasons for which single forms of operators in CALLS are refused.
UNSUPPORTED_FORMS = {
    "average pooling padded unequally",
    "a transposed convolution padded unequally",
    "slices with a negative step",
    "padding other than with a constant, or of some axes",
    "GatherND with batch dimensions",
}


@cache
def model_of(case: Case) -> Any:
    return lowered(graph_of(case))


def operators(case: Case) -> set[str]:
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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_calls_compute_what_onnxruntime_does(case: Case) -> None:
    model, graph = model_of(case), graph_of(case)
    if operators(case) & set(REFUSED):
        with pytest.raises(EngineError, match="torch refuses"):
            TorchModel(model, "case")
        return
    given = samples(model, graph)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, given)
    network = TorchModel(model, "case")
    try:
        with torch.inference_mode():
            tensors = network.run({name: torch.from_numpy(x) for name, x in given.items()})
    except EngineError as error:
        if any(str(error).endswith(f": {form}") for form in UNSUPPORTED_FORMS):
            return
        raise
    found = {**network.constants, **tensors}
    for name, theirs in zip(graph.outputs, expected, strict=True):
        ours = found[name].numpy()
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-4, atol=1e-5
        )
