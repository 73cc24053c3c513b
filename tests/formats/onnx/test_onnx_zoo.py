"""Networks of the zoo written as ONNX and read again: the same figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import layerscope
from layerscope import Graph
from layerscope.lower.onnx import Weights, save
from layerscope.zoo import NAMES, build
from tests.engines.lowered import accounted
from tests.lower.test_lower import GIANTS, SMALL

QUICK = (
    "lenet5", "alexnet-caffe", "squeezenet1_1", "mobilenet_v2", "resnet18", "densenet121",
    "efficientnet_b0", "shufflenet_v2_x1_0", "googlenet", "vit_b_16", "swin_t", "bert_base",
    "gpt2", "llama-3-8b", "t5-base",
)  # fmt: skip


def check(graph: Graph, folder: Path, weights: Weights) -> None:
    """Parameters, buffers, multiply-adds and the shapes of all tensors of ours."""
    path = str(folder / f"{graph.name}.onnx")
    save(path, *accounted(graph), weights=weights)
    first, again = layerscope.analyze(graph), layerscope.analyze(path)
    assert (again.totals.params, again.totals.buffers, again.totals.macs) == (
        first.totals.params, first.totals.buffers, first.totals.macs,
    )  # fmt: skip
    assert not again.coverage.unknown
    for node in graph.nodes:
        for name in node.outputs:
            assert again.tensors[name].shape == first.tensors[name].shape, name
    assert [again.tensors[name].shape for name in graph.outputs] == [
        first.tensors[name].shape for name in graph.outputs
    ]


@pytest.mark.parametrize("name", [name for name in QUICK if name in NAMES])
def test_networks_are_read_again(name: str, tmp_path: Path) -> None:
    check(build(name), tmp_path, "zero")


@pytest.mark.parametrize("name", SMALL)
def test_transformers_are_read_again(name: str, tmp_path: Path) -> None:
    check(SMALL[name], tmp_path, "random")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_zoo_is_read_again(name: str, tmp_path: Path) -> None:
    check(build(name), tmp_path, "zero")
    if name not in GIANTS:
        check(build(name), tmp_path, "random")
