"""Running an op in onnxruntime: the only file of the tests of ops that knows numpy and onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # noqa: TID251  (it is this file that is named for it)
import onnx  # noqa: TID251
import onnxruntime
from onnx import TensorProto, helper  # noqa: TID251

from layerscope.graph.types import Shape
from tests.brute.arrays import Array

OPSET = 21  # of GlobalLpPool and MaxRoiPool onnxruntime has no later version
NEWER = 23  # attention, rotary embedding, RMS norm
TYPES = {
    "fp32": TensorProto.FLOAT, "fp64": TensorProto.DOUBLE, "fp16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16,
    "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL,
}  # fmt: skip
FATAL = 4  # errors come as exceptions; warnings on stderr tell nothing a test could use


@dataclass
class Model:
    """An ONNX graph under construction, with the tensors that it is run on."""

    attributes: Any
    inputs: list[Array]
    params: dict[str, Array] = field(default_factory=dict)
    whole: frozenset[int] = frozenset()  # which inputs are int64
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    opset: int = OPSET

    @property
    def x(self) -> str:
        return self.of(0)

    @property
    def shape(self) -> Shape:
        return self.inputs[0].shape

    def of(self, n: int) -> str:
        """The name of the n-th input."""
        return f"x{n}"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.several(op, *inputs, outputs=1, **attributes)[0]

    def several(self, op: str, *inputs: str, outputs: int, **attributes: Any) -> tuple[str, ...]:
        made = tuple(f"t{len(self.nodes)}_{n}" for n in range(outputs))
        self.nodes.append(helper.make_node(op, list(inputs), list(made), **attributes))
        return made

    def ints(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def numbers(self, values: Sequence[float]) -> str:
        return self._constant(np.array(values, np.float32))

    def tensor(self, values: Sequence[float], shape: Shape) -> str:
        return self._constant(np.array(values, np.float32).reshape(shape))

    def cast(self, name: str, dtype: str) -> str:
        return self.node("Cast", name, to=TYPES[dtype])

    def _constant(self, values: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def run(self, outputs: Sequence[str]) -> list[tuple[Shape, list[float]]]:
        """Shapes and numbers of the outputs. Every param has to be used."""
        used = {name for node in self.nodes for name in node.input}
        unused = set(self.params) - used
        assert not unused, f"params that onnxruntime did not need: {unused}"
        feeds = {
            self.of(n): _numpy(x).astype(np.int64 if n in self.whole else np.float32)
            for n, x in enumerate(self.inputs)
        }
        graph = helper.make_graph(
            self.nodes,
            "op",
            [_declared(name, values) for name, values in feeds.items() if name in used],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [
                *self.constants,
                *(
                    onnx.numpy_helper.from_array(_numpy(param), name)
                    for name, param in self.params.items()
                ),
            ],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = FATAL
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        given = {name: values for name, values in feeds.items() if name in used}
        results = session.run(None, given)
        return [
            (tuple(result.shape), result.astype(np.float64).ravel().tolist()) for result in results
        ]


Writer = Callable[[Model], str | tuple[str, ...]]  # an op in ONNX: the names of its outputs


def plain(op: str, **told: object) -> Writer:
    """One ONNX operator of the first input."""
    return lambda m: m.node(op, m.x, **told)


def along_axis(m: Model, param: str, axis: int, shared: bool = False) -> str:
    """A param of one value per place of an axis, shaped to broadcast; Reshape checks its size."""
    axis %= len(m.shape)
    size = 1 if shared else m.shape[axis]
    return m.node("Reshape", param, m.ints(size, *(1 for _ in m.shape[axis + 1 :])))


def _numpy(x: Array) -> Any:
    return np.array(x.values(), np.float32).reshape(x.shape)


def _declared(name: str, values: Any) -> Any:
    kind = TensorProto.INT64 if values.dtype == np.int64 else TensorProto.FLOAT
    return helper.make_tensor_value_info(name, kind, values.shape)


def farthest(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest difference, relative to numbers above 1."""
    assert len(ours) == len(theirs)
    gaps = (abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=True))
    return max(gaps, default=0.0)
