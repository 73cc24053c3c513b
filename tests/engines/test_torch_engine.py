"""PyTorch as an engine that is measured."""

from __future__ import annotations

import pytest

from tests.engines.test_measure import agrees_with_onnxruntime
from tests.formats.torch.torch_nets import torch


@pytest.mark.filterwarnings("ignore")
def test_pytorch_agrees() -> None:
    assert torch.__version__
    agrees_with_onnxruntime("torch")
