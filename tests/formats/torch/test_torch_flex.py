"""Flex attention: counted over all pairs, what it is told beyond that named."""

from __future__ import annotations

from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import nn, torch

flex = pytest.importorskip("torch.nn.attention.flex_attention")
flex_attention = flex.flex_attention  # as models import it
SIZE = 300


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self, **told: Any) -> None:
        super().__init__()
        self.project = nn.Linear(64, 192)
        self.told = told

    def forward(self, x: Any) -> Any:
        q, k, v = self.project(x).view(1, SIZE, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v, **self.told)


MACS = SIZE * 64 * 192 + 2 * SIZE * SIZE * 64


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_all_pairs_are_counted(device: str) -> None:
    code, defaults = flex_attention.__code__, flex_attention.__kwdefaults__
    with torch.device(device):
        report = layerscope.summary(Net(), (1, SIZE, 64), verbose=0)
    assert report.total_macs == MACS
    assert not report.coverage.unknown
    assert flex_attention.__code__ is code
    assert flex_attention.__kwdefaults__ is defaults


def test_fewer_heads_of_keys() -> None:
    class Grouped(nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any) -> Any:
            return flex_attention(q, k, k, enable_gqa=True)

    report = layerscope.summary(Grouped(), input_size=[(2, 8, 6, 4), (2, 2, 10, 4)], verbose=0)
    assert report.total_macs == 2 * 2 * 8 * 6 * 10 * 4


def test_functions_of_scores_are_unknown_until_taught() -> None:
    net = Net(score_mod=lambda score, b, h, q, k: score * 2 + q)
    report = layerscope.summary(net, (1, SIZE, 64), verbose=0)
    assert report.coverage.unknown == {"flex_attention.score_mod": 1}
    rule = lambda x, out_shape: {"mul": SIZE * SIZE * 4, "add": SIZE * SIZE * 4}  # noqa: E731
    taught = layerscope.summary(
        net, (1, SIZE, 64), rules={"flex_attention.score_mod": rule}, verbose=0
    )
    assert not taught.coverage.unknown
    assert taught.total_macs == MACS
    [row] = [layer for layer in taught.layers if layer.op == "custom"]
    assert (row.ops.mul, row.ops.add) == (SIZE * SIZE * 4, SIZE * SIZE * 4)


def test_skipped_blocks_are_told() -> None:
    mask = flex.create_block_mask(
        lambda b, h, q, k: q >= k, 1, 1, SIZE, SIZE, device="cpu", BLOCK_SIZE=128
    )
    report = layerscope.summary(Net(block_mask=mask), (1, SIZE, 64), verbose=0)
    assert report.total_macs == MACS
    assert report.graph.notes == (
        "flex attention is counted over all pairs; its mask skips 3 of 9 blocks of 128x128",
    )


def test_further_results() -> None:
    report = layerscope.summary(Net(return_lse=True), (1, SIZE, 64), verbose=0)
    assert [report.tensors[name].shape for name in report.graph.outputs] == [
        (1, 4, SIZE, 16), (1, 4, SIZE),
    ]  # fmt: skip
    assert report.coverage.unknown == {"flex_attention.lse": 1}


def test_it_is_left_as_it_was_where_the_forward_raises() -> None:
    class Raising(Net):
        def forward(self, x: Any) -> Any:
            super().forward(x)
            raise ValueError("no more")

    code = flex_attention.__code__
    with pytest.raises(layerscope.LayerscopeError, match="no more"):
        layerscope.summary(Raising(), (1, SIZE, 64), verbose=0)
    assert flex_attention.__code__ is code
    assert not hasattr(flex, "_layerscope_answer")
