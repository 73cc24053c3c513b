"""Models of one operator, run by onnxruntime and read here."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper  # noqa: TID251

import layerscope
from layerscope import Report

MS, ML = "com.microsoft", "ai.onnx.ml"
OPSETS = (("", 23), (MS, 1), (ML, 5))


@dataclass
class One:
    """A model of one operator: arrays that are fed, arrays that are stored, attributes."""

    op: str
    fed: dict[str, np.ndarray]
    stored: dict[str, np.ndarray] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = MS
    order: str = ""  # names of inputs in their order, `-` for one that is left out
    opsets: tuple[tuple[str, int], ...] = OPSETS
    packed: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [f"y{n}" for n in range(self.outputs)]

    def proto(self) -> onnx.ModelProto:
        names = self.order.split() if self.order else [*self.fed, *self.stored]
        names = ["" if name == "-" else name for name in names]
        told = {key: value for key, value in self.told.items() if value is not None}
        node = helper.make_node(self.op, names, self.names, "node", domain=self.domain, **told)
        inputs = [
            helper.make_tensor_value_info(name, _kind(array), array.shape)
            for name, array in self.fed.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.names]
        arrays = [numpy_helper.from_array(array, name) for name, array in self.stored.items()]
        for name, (kind, dims) in self.packed.items():
            raw = np.zeros((prod(dims) + 1) // 2, np.uint8).tobytes()
            arrays.append(helper.make_tensor(name, kind, dims, raw, raw=True))
        graph = helper.make_graph([node], "one", inputs, outputs, arrays)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def run(self) -> list[Any]:
        """Shapes and number types of outputs as onnxruntime makes them."""
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(
            self.proto().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(self.names, self.fed))

    def read(self, folder: Path) -> Report:
        path = folder / "one.onnx"
        path.write_bytes(self.proto().SerializeToString())
        return layerscope.analyze(str(path))

    def check(self, folder: Path, *, runs: bool = True, strict: bool = True) -> Report:
        """Shapes and types here are those of the engine."""
        report = self.read(folder)
        if strict:
            assert not report.coverage.unknown
        if runs:
            for name, array in zip(self.names, self.run(), strict=True):
                if not isinstance(array, np.ndarray):
                    continue
                made = report.tensors[name]
                assert made.shape == array.shape, name
                assert made.dtype == DTYPES[array.dtype.name], name
        return report


DTYPES = {
    "float32": "fp32", "float16": "fp16", "int64": "int64", "int32": "int32", "int8": "int8",
    "uint8": "uint8", "bool": "bool", "object": "string", "float64": "fp64", "int16": "int16",
    "uint32": "uint32",
}  # fmt: skip


def _kind(array: np.ndarray) -> int:
    if array.dtype == object:
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers between 0 and 1, the same for the same shape."""
    return np.random.default_rng(sum(shape)).random(shape).astype(dtype)


def whole(*shape: int, most: int = 8, dtype: Any = np.uint8) -> np.ndarray:
    """Whole numbers below `most`, the same for the same shape."""
    return np.random.default_rng(sum(shape)).integers(0, most, shape).astype(dtype)


def number(value: float, dtype: Any = np.float32) -> np.ndarray:
    """One number."""
    return np.array(value, dtype)
