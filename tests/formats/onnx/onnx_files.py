"""Small ONNX files made with onnx: graphs of any operators, their names, their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np  # noqa: TID251
from onnx import TensorProto, helper, numpy_helper  # noqa: TID251

INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
Sizes = Sequence[int | str | None] | None


def value(name: str, shape: Sizes = None, dtype: int = FLOAT) -> Any:
    """What a graph declares of a tensor."""
    return helper.make_tensor_value_info(name, dtype, shape)


def values(text: str) -> list[Any]:
    """Inputs or outputs such as `x 1x3xheightx? int64, y`."""
    made = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, *more = part.split()
        kind = getattr(TensorProto, more[1].upper()) if len(more) > 1 else FLOAT
        sizes: Sizes = None
        if more and more[0] != "?":
            sizes = [_size(word) for word in more[0].split("x")] if more[0] != "()" else []
        made.append(value(name, sizes, kind))
    return made


def _size(word: str) -> int | str | None:
    if word.lstrip("-").isdigit():
        return int(word)
    return None if word == "?" else word


def array(name: str, numbers: Any, dtype: Any = np.int64) -> Any:
    """An initializer of given numbers."""
    return numpy_helper.from_array(np.array(numbers, dtype), name)


def zeros(name: str, *shape: int, dtype: Any = np.float32) -> Any:
    """An initializer full of zeros."""
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def node(text: str, name: str = "", domain: str = "", **attributes: Any) -> Any:
    """A node written `y = Conv x w`; `_` is an input that is left out."""
    outputs, _, call = text.partition("=")
    op, *inputs = call.split()
    given = ["" if word == "_" else word for word in inputs]
    return helper.make_node(op, given, outputs.split(), name=name, domain=domain, **attributes)


def graph(
    nodes: Sequence[Any], inputs: str, outputs: str, stored: Sequence[Any] = (), name: str = "g"
) -> Any:
    """A graph or the body of a control operator."""
    return helper.make_graph(list(nodes), name, values(inputs), values(outputs), list(stored))


def model(
    nodes: Sequence[Any],
    inputs: str = "x 1x3x8x8",
    outputs: str = "y",
    stored: Sequence[Any] = (),
    *,
    opset: int = 20,
    domains: Sequence[str] = (),
    functions: Sequence[Any] = (),
    ir: int = 10,
) -> Any:
    """A whole model."""
    imports = [helper.make_opsetid("", opset)] if opset else []
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    made = helper.make_model(
        graph(nodes, inputs, outputs, stored), opset_imports=imports, functions=list(functions)
    )
    made.ir_version = ir
    return made


def conv(n: str = "1", source: str = "x", into: str = "y") -> Any:
    """A convolution by the array `w{n}`."""
    return node(f"{into} = Conv {source} w{n}", f"conv{n}", pads=[1, 1, 1, 1])
