"""Drop-ins that return plain numbers warn of operators that these numbers lack."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import nn, torch


@pytest.fixture(scope="module")
def odd() -> Any:
    """A module with a linear layer and an operator that nobody knows."""

    @torch.library.custom_op("honest::twist", mutates_args=())  # type: ignore[untyped-decorator]
    def twist(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @twist.register_fake  # type: ignore[untyped-decorator]
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    class Odd(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            return twist(self.fc(twist(x)))

    return Odd()


@pytest.mark.parametrize("like", ["exact", "thop", "fvcore"])
def test_profile_warns_and_names_the_operators(odd: Any, like: str) -> None:
    with pytest.warns(
        UserWarning, match="unknown operators.*lower bound: honest.twist ×2"
    ) as found:
        macs, params = layerscope.profile(odd, (torch.zeros(2, 8),), like=like)
    assert (macs, params) == (128, 72)
    assert [warning.filename for warning in found] == [__file__]


def test_an_analysis_warns_once(odd: Any) -> None:
    analysis = layerscope.FlopCountAnalysis(odd, torch.zeros(2, 8))
    with pytest.warns(UserWarning, match="honest.twist ×2") as found:
        assert analysis.total() == 128
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis.total("fc")
        analysis.by_operator()
        analysis.by_module_and_operator()
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.parametrize("method", ["by_module", "by_operator", "by_module_and_operator"])
def test_every_count_of_an_analysis_warns(odd: Any, method: str) -> None:
    analysis = layerscope.FlopCountAnalysis(odd, torch.zeros(2, 8))
    with pytest.warns(UserWarning, match="honest.twist"):
        getattr(analysis, method)()


def test_warnings_can_be_switched_off_as_in_fvcore(odd: Any) -> None:
    analysis = layerscope.FlopCountAnalysis(odd, torch.zeros(2, 8)).unsupported_ops_warnings(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert analysis.total() == 128


def test_known_models_have_no_warning() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layerscope.profile(model, (torch.zeros(1, 8),)) == (64, 72)
        assert layerscope.FlopCountAnalysis(model, torch.zeros(1, 8)).total() == 64
