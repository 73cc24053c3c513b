"""Empty tensors: what a forward does where nothing is found has figures, none of them unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import Doing, f, torch

pytestmark = pytest.mark.filterwarnings("ignore")
Forward = Callable[[Any], Any]
INDEX, ROWS = torch.zeros(0, dtype=torch.long), torch.zeros(0, 16, dtype=torch.long)


def _assigned(x: Any, where: object, what: Any) -> Any:
    y = x.clone()
    y[where] = what
    return y


# Writes of nothing into a tensor of 10 x 16.
WRITES: dict[str, Forward] = {
    "index_copy": lambda x: x.index_copy(0, INDEX, x[:0]),
    "index_copy, columns": lambda x: x.index_copy(1, INDEX, x[:, :0]),
    "index_copy_": lambda x: x.clone().index_copy_(0, INDEX, x[:0]),
    "index_add": lambda x: x.index_add(0, INDEX, x[:0]),
    "index_add, columns": lambda x: x.index_add(1, INDEX, x[:, :0]),
    "index_add, alpha": lambda x: x.index_add(0, INDEX, x[:0], alpha=2),
    "index_fill": lambda x: x.index_fill(0, INDEX, 1.0),
    "index_fill, columns": lambda x: x.index_fill(1, INDEX, 1.0),
    "index_reduce": lambda x: x.index_reduce(0, INDEX, x[:0], "prod"),
    "index_reduce, columns": lambda x: x.index_reduce(1, INDEX, x[:, :0], "amax"),
    "index_put": lambda x: x.index_put((INDEX,), x[:0]),
    "rows assigned": lambda x: _assigned(x, INDEX, x[:0]),
    "elements assigned": lambda x: _assigned(x, (INDEX, INDEX), x[:0, 0]),
    "slice assigned": lambda x: _assigned(x, slice(0, 0), x[:0]),
    "scatter": lambda x: x.scatter(0, ROWS, x[:0]),
    "scatter, number": lambda x: x.scatter(0, ROWS, 1.0),
    "scatter_add": lambda x: x.scatter_add(0, ROWS, x[:0]),
    "scatter_reduce": lambda x: x.scatter_reduce(0, ROWS, x[:0], "amax"),
    "put": lambda x: x.put(INDEX, x[:0, 0]),
    "cat": lambda x: torch.cat([x[:0], x]),
}
# Functions whose result is empty.
READS: dict[str, Forward] = {
    "index_select": lambda x: x.index_select(0, INDEX),
    "index": lambda x: x[INDEX],
    "gather": lambda x: x.gather(0, ROWS),
    "take": lambda x: x.take(INDEX),
    "embedding": lambda x: f.embedding(INDEX, x),
    "reshape": lambda x: x[:0].reshape(0, 4, 4),
    "view": lambda x: x[:0].view(-1, 8),
    "linear": lambda x: f.linear(x[:0], x),
    "softmax": lambda x: f.softmax(x[:0], -1),
    "layer_norm": lambda x: f.layer_norm(x[:0], (16,)),
    "sort": lambda x: x[:0].sort(0)[0],
    "topk": lambda x: x[:0].topk(2, 1)[0],
    "attention": lambda x: f.scaled_dot_product_attention(x[:0], x, x),
    "repeat_interleave": lambda x: x[:0].repeat_interleave(2, 0),
    "where": lambda x: torch.where(x[:0] > 0, x[:0], x[:0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_of_nothing(name: str) -> None:
    x = torch.zeros(10, 16)
    expected = tuple(WRITES[name](x).shape)
    report = layerscope.summary(Doing(WRITES[name]), input_data=x, verbose=0)
    assert not report.coverage.unknown
    assert report.layers[-1].outputs[0].shape == expected
    assert report.total_macs == 0


@pytest.mark.parametrize("name", READS)
def test_empty_result(name: str) -> None:
    def forward(x: Any) -> Any:
        return READS[name](x).sum() + x

    report = layerscope.summary(Doing(forward), input_data=torch.zeros(10, 16), verbose=0)
    assert not report.coverage.unknown
    assert report.total_macs == 0
