"""Graphs that onnxruntime optimised and saved: the figures of the network they were made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx  # noqa: TID251
import onnxruntime
import pytest

import layerscope
from layerscope import Graph, Report
from layerscope.zoo import bert, gpt2, mobilenet, resnet, shufflenet, squeezenet, vit
from tests.engines.lowered import lowered
from tests.formats.onnx import onnx_models as models

NETWORKS: dict[str, Callable[[], Graph]] = {
    "resnet": lambda: resnet.network("resnet", resnet.BASIC, (1, 1, 1, 1)),
    "mobilenet": lambda: mobilenet.mobilenet_v2(width=0.25),
    "excited": lambda: mobilenet.mobilenet_v3("mobilenet_v3_small"),
    "squeezenet": squeezenet.squeezenet1_1,
    "shufflenet": lambda: shufflenet.shufflenet("shufflenet_v2_x0_5"),
    "vit": lambda: vit.network("vit", vit.VitConfig(16, 2, 2, 32, 64), 64, 64),
    "bert": lambda: bert.network("bert", bert.BertConfig(2, 2, 32, 64)),
    "gpt2": lambda: gpt2.network("gpt2", gpt2.Gpt2Config(2, 2, 32)),
}
PICTURES = ("resnet", "mobilenet", "excited", "squeezenet", "shufflenet")
SIZES = dict.fromkeys(PICTURES, (1, 3, 64, 64))


def optimised(graph: Graph, level: str, path: Path) -> onnx.ModelProto:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}"
    )
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(
        lowered(graph).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return onnx.load(path)


@pytest.mark.parametrize("level", ["EXTENDED", "ALL"])
@pytest.mark.parametrize("name", NETWORKS)
def test_optimised(tmp_path: Path, name: str, level: str) -> None:
    before = layerscope.analyze(NETWORKS[name](), input=SIZES.get(name))
    proto = optimised(before.graph, level, tmp_path / "one.onnx")
    after = layerscope.analyze(str(tmp_path / "one.onnx"))
    assert not after.coverage.unknown
    shapes = {tensor.name: tensor.shape or () for tensor in after.inputs}
    fed = models.feeds(proto, shapes)
    ran = models.run(proto, {n: a * 0 if a.dtype == "int64" else a for n, a in fed.items()})
    for tensor, shape in ran.shapes.items():
        assert after.tensors[tensor].shape == shape, tensor
    if level == "EXTENDED" or not _blocked(proto):
        assert after.totals.macs == before.totals.macs
        assert after.totals.params == before.totals.params + _changed(name, before)
        return
    # Channels come in blocks: those that fill up the last one are stored and reckoned as well.
    assert after.totals.macs == models.macs(proto, ran.events) >= before.totals.macs
    assert after.totals.params == sum(models.float_elements(proto).values())
    assert after.totals.params >= before.totals.params + _changed(name, before)


def _blocked(proto: onnx.ModelProto) -> bool:
    return any(node.domain == "com.microsoft.nchwc" for node in proto.graph.node)


def _changed(name: str, before: Report) -> int:
    """What folding changed of parameters."""
    if name == "gpt2":
        # The table of words is stored a second time, transposed for the head; of positions only
        # those looked up are left. The causal mask is an array too, and told by its numbers.
        return gpt2.VOCABULARY * 32 - (gpt2.POSITIONS - 128) * 32
    if name == "bert":
        return -(bert.POSITIONS - 128) * 32
    # Scale, shift, mean and variance of a folded norm became one bias a channel.
    return -sum(layer.params // 2 for layer in before.layers if layer.op == "batch_norm")


def test_blocks_that_are_full_change_nothing(tmp_path: Path) -> None:
    before = layerscope.analyze(NETWORKS["resnet"](), input=SIZES["resnet"])
    optimised(before.graph, "ALL", tmp_path / "one.onnx")
    after = layerscope.analyze(str(tmp_path / "one.onnx"))
    assert after.totals.macs == before.totals.macs
    assert after.totals.params == before.totals.params + _changed("resnet", before)
