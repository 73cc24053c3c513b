"""Wrong and ineffective arguments of the functions for modules are refused as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import layerscope
from layerscope.errors import UsageError
from tests.formats.torch.torch_nets import nn, torch

SIZE = (2, 8)


def small() -> Any:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))


def summarized(**options: Any) -> Callable[[], object]:
    return lambda: layerscope.summary(small(), SIZE, verbose=0, **options)


def counted() -> layerscope.FlopCountAnalysis:
    return layerscope.FlopCountAnalysis(small(), torch.zeros(SIZE))


def report() -> layerscope.Report:
    return layerscope.analyze(small(), input_size=SIZE)


WRONG: dict[str, Callable[[], object]] = {
    "col_width as text": summarized(col_width="a"),
    "depth as text": summarized(depth="a"),
    "batch_dim as text": summarized(batch_dim="a"),
    "a convention that is no text": summarized(like=5),
    "a text in the cache": lambda: layerscope.summary("resnet18", SIZE, cache_forward_pass=True),
    "None in the cache": lambda: layerscope.summary(None, SIZE, cache_forward_pass=True),
    "two sizes": lambda: layerscope.analyze(small(), input=SIZE, input_size=(4, 8)),
    "inputs None": lambda: layerscope.profile(small(), None),  # type: ignore[arg-type]
    "inputs that are one tensor": lambda: layerscope.profile(small(), torch.zeros(SIZE)),
    "a module that is not there": lambda: counted().total("nope"),
    "unsupported ops of such a module": lambda: counted().unsupported_ops("nope"),
    "a batch for a Report": lambda: layerscope.explain(report(), batch=3),
    "a batch for Reports": lambda: layerscope.compare(report(), report(), batch=3),
    "a counter as text": lambda: layerscope.explain(small(), input_size=SIZE, counters="thop"),
    "a figure as a number": lambda: layerscope.explain(small(), input_size=SIZE, figure=5),
    "a module to load": lambda: layerscope.load(small()),
    "a machine that is no text": lambda: layerscope.predict("lenet5", on=5),  # type: ignore[arg-type]
    "runs as text": lambda: layerscope.measure("lenet5", runs="a"),  # type: ignore[arg-type]
    "threads as text": lambda: layerscope.measure("lenet5", threads="a"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError):
        WRONG[name]()


def test_live_modules_are_compared() -> None:
    found = layerscope.compare(small(), nn.Linear(8, 4), input_size=SIZE)
    assert [each.total_macs for each in found.reports] == [2 * 8 * 8 + 2 * 8 * 4, 2 * 8 * 4]
    assert layerscope.compare(report(), small(), input_size=SIZE).equal
    assert layerscope.compare(small(), small(), input_data=torch.zeros(SIZE), on="a100").equal


def test_counts_by_module_and_operator_have_no_zeros() -> None:
    found = counted()
    assert found.by_operator() == {"linear": 192}
    assert found.by_module_and_operator() == {
        "": {"linear": 192}, "0": {"linear": 128}, "1": {}, "2": {"linear": 64},
    }  # fmt: skip
    assert all(0 not in counts.values() for counts in found.by_module_and_operator().values())
    assert found.total("1") == 0  # a module of the model, without multiply-adds
