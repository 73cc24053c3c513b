"""Drop-ins under a convention give that tool's figure; without one, exact multiply-adds."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

import layerscope  # noqa: E402
from layerscope.conventions import CONVENTIONS, convention  # noqa: E402
from layerscope.notations.module_rows import ModuleRow  # noqa: E402

WITH_FIGURE = tuple(n for n in CONVENTIONS if n != "exact" and convention(n).figure)


def net() -> Any:
    """A convolution, a norm, an activation, pooling and a linear layer."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    ).eval()


def convention_ops(row: ModuleRow) -> int:
    return sum(layer.convention_ops or 0 for layer in row.own)


IMAGE = torch.zeros(2, 3, 8, 8)
MACS = 2 * 8 * 8 * 8 * 27 + 2 * 32 * 5


@pytest.mark.parametrize("like", WITH_FIGURE)
def test_every_drop_in_gives_the_convention_s_figure(like: str) -> None:
    report = layerscope.analyze(net(), input_data=IMAGE, like=like)
    figure = json.loads(report.to_json())["totals"]["convention_ops"]
    summary = layerscope.summary(net(), input_data=IMAGE, like=like, verbose=0)
    assert summary.total_mult_adds == figure
    assert summary.total_macs == MACS
    assert f"{figure:,}" in str(summary)
    columns = layerscope.summary(
        net(), input_data=IMAGE, like=like, col_names=("mult_adds",), verbose=0
    )
    header, model = str(columns).splitlines()[1:4:2]
    assert header.endswith(columns.convention.figure)
    assert model.split()[-1] == (f"{figure:,}" if columns.rows[0].own else "--")
    assert sum(convention_ops(row) for row in columns.rows) == figure
    macs, params = layerscope.profile(net(), (IMAGE,), like=like)
    assert (macs, params) == (figure, report.totals.params)
    analysis = layerscope.FlopCountAnalysis(net(), IMAGE, like=like)
    assert analysis.total() == figure
    assert analysis.by_module()[""] == figure
    assert sum(analysis.by_module()[str(n)] for n in range(6)) == figure
    assert analysis.total("0") == report.by_name["0"].convention_ops
    assert sum(analysis.by_operator().values()) == figure
    assert sum(analysis.by_module_and_operator()[""].values()) == figure


@pytest.mark.parametrize("like", ["exact", "matconvnet", "cs231n"])
def test_without_a_figure_of_a_tool_they_are_exact_multiply_adds(like: str) -> None:
    assert layerscope.summary(net(), input_data=IMAGE, like=like, verbose=0).total_mult_adds == MACS
    assert layerscope.profile(net(), (IMAGE,), like=like)[0] == MACS
    assert layerscope.FlopCountAnalysis(net(), IMAGE, like=like).total() == MACS


def test_fvcore_adds_norms_and_pools() -> None:
    elements = 2 * 8 * 8 * 8
    assert layerscope.FlopCountAnalysis(net(), IMAGE, like="fvcore").total() == (
        MACS + 2 * elements + elements  # norm: 2 an element; adaptive pool: 1 per input
    )


@pytest.mark.parametrize(
    ("given", "dtypes", "memory"),
    [
        (lambda: torch.zeros(1, 3, 8, 8, dtype=torch.uint8), {"uint8"}, 4),
        (lambda: torch.zeros(1, 3, 8, 8, dtype=torch.float16), {"fp16"}, 4),
    ],
)
def test_an_input_of_another_dtype_is_not_that_of_the_network(
    given: object, dtypes: set[str], memory: int
) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)

        def forward(self, x: Any) -> Any:
            return self.conv(x.float())

    assert callable(given)
    report = layerscope.summary(Net(), input_data=given(), verbose=0)
    stamp = json.loads(report.to_json())["stamp"]
    assert set(stamp["dtypes"]["inputs"]) == dtypes
    assert stamp["dtypes"]["arithmetic"] == {"fp32": 4 * 36}
    assert stamp["dtype"] == "mixed"
    assert report.totals.activation_bytes == memory * (192 + 4 * 36)  # the cast and the product


def test_ids_and_a_mask_are_counted_in_their_own_bytes() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(10, 16)

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.embed(ids).masked_fill(mask[..., None], 0.0)

    ids, mask = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.bool)
    report = layerscope.summary(Net(), input_data=(ids, mask), verbose=0)
    assert report.dtypes.inputs == {"int64": 10, "bool": 10}
    assert report.dtype == "mixed"
    assert report.by_name["embed"].activation_bytes == 4 * 160


def test_the_total_has_parameters_that_no_layer_uses_where_the_tool_counts_them() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = torch.nn.Linear(4, 4), torch.nn.Linear(4, 100)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    for like, params in {"exact": 520, "thop": 20, "fvcore": 520}.items():
        report = layerscope.summary(Net(), (1, 4), like=like, verbose=0)
        assert report.to_text(columns=("name", "params")).split()[-1] == str(params)
        assert report.totals.params == params
        assert "500 parameters that this forward does not use" in str(report)
