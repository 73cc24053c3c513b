"""Networks that onnxruntime quantised: parameters and products as before, by number type."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx  # noqa: TID251
import pytest
from onnxruntime import quantization as q

import layerscope
from layerscope import Graph
from layerscope.zoo import bert, mobilenet, vit
from tests.engines.lowered import lowered
from tests.formats.onnx import onnx_models as models

NETWORKS: dict[str, Callable[[], Graph]] = {
    "mobilenet": lambda: mobilenet.mobilenet_v2(width=0.25),
    "vit": lambda: vit.network("vit", vit.VitConfig(16, 2, 2, 32, 64), 64, 64),
    "bert": lambda: bert.network("bert", bert.BertConfig(2, 2, 32, 64)),
}
PICTURES = ("mobilenet",)


class Once(q.CalibrationDataReader):  # type: ignore[misc]
    """One sample."""

    def __init__(self, fed: dict[str, Any]) -> None:
        self.left = [fed]

    def get_next(self) -> Any:
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("way", ["dynamic", "QDQ", "QOperator"])
@pytest.mark.parametrize("name", NETWORKS)
def test_quantised(tmp_path: Path, name: str, way: str) -> None:
    size = (1, 3, 64, 64) if name in PICTURES else None
    before = layerscope.analyze(NETWORKS[name](), input=size)
    model = lowered(before.graph)
    source, made = tmp_path / "float.onnx", tmp_path / "narrow.onnx"
    source.write_bytes(model.SerializeToString())
    fed = models.feeds(model, {tensor.name: tensor.shape or () for tensor in before.inputs})
    fed = {n: array * 0 if array.dtype == "int64" else array for n, array in fed.items()}
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if way == "dynamic":
                q.quantize_dynamic(source, made, weight_type=q.QuantType.QInt8)
            else:
                form = getattr(q.QuantFormat, way)
                q.quantize_static(source, made, Once(fed), quant_format=form, per_channel=True)
    finally:
        logging.disable(logging.NOTSET)
    after = layerscope.analyze(str(made))
    assert not after.coverage.unknown
    assert after.totals.macs == before.totals.macs
    assert after.totals.params == before.totals.params
    assert after.totals.param_bytes < before.totals.param_bytes / 2
    ran = models.run(onnx.load(made), fed)
    for tensor, shape in ran.shapes.items():
        assert after.tensors[tensor].shape == shape, tensor
    if name in PICTURES or way == "QOperator":
        assert after.macs_by_dtype == {"int8": before.totals.macs}
    else:  # products of two tensors are of floats between the roundings
        assert sum(after.macs_by_dtype.values()) == before.totals.macs
        assert set(after.macs_by_dtype) == {"int8", "fp32"}
