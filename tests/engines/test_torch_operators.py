"""PyTorch calls for ONNX operators compute what onnxruntime does."""

from __future__ import annotations

import numpy as np  # noqa: TID251
import onnxruntime
import pytest

from layerscope.engines.torch import TorchModel
from layerscope.engines.torch_operators import REFUSED
from layerscope.errors import EngineError
from layerscope.lower.weights import samples
from tests.brute.case import Case
from tests.engines.lowered import FATAL, graph_of
from tests.engines.test_operator_table import model_of, operators
from tests.formats.torch.torch_nets import torch
from tests.lower.test_lower import CASES

# Reasons for which single forms of operators in CALLS are refused.
UNSUPPORTED_FORMS = {
    "average pooling padded unequally",
    "a transposed convolution padded unequally",
    "slices with a negative step",
    "padding other than with a constant, or of some axes",
    "GatherND with batch dimensions",
}


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
