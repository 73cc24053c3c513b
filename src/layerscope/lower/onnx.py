"""Graphs as ONNX models of opset 21, which onnxruntime runs from 1.18 on: the names are ours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.errors import CannotLower, OutputError, UnknownName
from layerscope.graph.types import Graph, Param, Tensor
from layerscope.interrupts import whole_files
from layerscope.lower.builder import Array, Draft, Op, Site
from layerscope.lower.emitters import REFUSED, WRITERS
from layerscope.lower.weights import TYPES, array, drawn, rows_of, zero
from layerscope.version import __version__

OPSET, IR = 21, 10
ROLE = "layerscope.role"  # metadata: what an array is to the network, which ONNX cannot say
INLINE_BYTES = (
    1_500_000_000  # weights beyond it go to a file beside the model: protobuf ends at 2 GiB
)
MOST_BYTES = 40_000_000_000  # weights beyond it are not written at all
ALIGNED = 4096  # where each array begins in that file, so that it can be mapped into memory

ENGINE_TYPES = ("fp32", "fp16")  # of a network: onnxruntime convolves no others on a CPU
Weights = Literal["random", "zero"]


def lower(
    graph: Graph,
    shapes: Shapes,
    costs: Mapping[str, Cost],
    *,
    weights: Weights = "random",
    seed: int = 0,
) -> Any:
    """The network as an onnx.ModelProto; zero weights are told by their shapes, not stored."""
    draft = drafted(graph, shapes, costs)
    size = _bytes(draft, weights)
    if size > INLINE_BYTES:
        raise CannotLower(
            f"{graph.name}: weights of {_told(size)} are too many for a model in memory; save it "
            "to a file, or with zero weights"
        )
    return _whole(draft, weights, seed)


def save(
    path: str,
    graph: Graph,
    shapes: Shapes,
    costs: Mapping[str, Cost],
    *,
    weights: Weights = "random",
    seed: int = 0,
) -> None:
    """Write the model to a file, whole or not at all; many weights go to `path`.data beside it."""
    draft = drafted(graph, shapes, costs)
    size = _bytes(draft, weights)
    if size > MOST_BYTES:
        raise CannotLower(
            f"{graph.name}: weights of {_told(size)}, at most {_told(MOST_BYTES)} are written; "
            "zero weights take no room (--zero-weights)"
        )
    try:
        if size > INLINE_BYTES:
            _save_apart(path, draft, seed)
        else:
            model = _whole(draft, weights, seed)
            _write(path, model.SerializeToString())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None


def drafted(graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> Draft:
    """Every node written, by the table of writers."""
    if graph.dtype not in ENGINE_TYPES:
        raise CannotLower(
            f"{graph.name}: number type {graph.dtype} has no form in ONNX that engines run; "
            f"expected {' or '.join(ENGINE_TYPES)}"
        )
    draft = Draft(graph, shapes, costs)
    for tensor in shapes.tensors.values():
        if tensor.dtype not in TYPES:
            raise CannotLower(
                f"{graph.name}: {tensor.name} is {tensor.dtype}, which is not lowered"
            )
    for tensor in graph.inputs:
        if tensor.shape is None:
            raise CannotLower(f"{graph.name}: the shape of input {tensor.name} is unknown")
    read = {name for node in graph.nodes for name in node.inputs}
    for param in graph.params:
        if param.name in read:
            stored = draft.store(param.storage or param.name, param)
            if stored != param.name:
                draft.ops.append(Op("Identity", param.name, [stored], [param.name], {}))
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if node.op not in WRITERS or call is None:
            why = REFUSED.get(node.op) or shapes.notes.get(node.name, "it has no form in ONNX")
            raise CannotLower(f"{graph.name}: {node.name} ({node.op}): {why}")
        site = Site(draft, node, call)
        site.finish(WRITERS[node.op](site))
    return draft


def _bytes(draft: Draft, weights: Weights) -> int:
    """Bytes of weights that are stored."""
    if weights not in ("random", "zero"):
        raise UnknownName("weights", weights, ("random", "zero"), "; known: random, zero")
    return 0 if weights == "zero" else sum(param.bytes for param in draft.params.values())


def _whole(draft: Draft, weights: Weights, seed: int) -> Any:
    """The model with all its weights in it."""
    if weights == "zero":
        return _model(draft, (), list(_zeros(draft)))
    return _model(
        draft, (_stored(name, v, draft.params[name].role) for name, v in _random(draft, seed))
    )


def _told(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


def _zeros(draft: Draft) -> Iterable[Op]:
    """An operator for every stored array, which makes it when the model is loaded."""
    for name, param in draft.params.items():
        sizes = draft.fresh(f"{name}/shape")
        shape = Array(param.shape, (len(param.shape),), "int64")
        yield Op("Constant", sizes, [], [sizes], {"value": shape})
        one = Array((zero(param),), (1,), param.dtype)
        yield Op("ConstantOfShape", name, [sizes], [name], {"value": one})


def _random(draft: Draft, seed: int) -> Iterable[tuple[str, Any]]:
    for name, param in draft.params.items():
        yield name, drawn(name, param, seed, rows_of(draft.graph, name))


def _stored(name: str, values: Any, role: str) -> Any:
    from onnx import numpy_helper

    tensor = numpy_helper.from_array(values, name)
    tensor.metadata_props.add(key=ROLE, value=role)
    return tensor


def _model(draft: Draft, initializers: Iterable[Any], head: list[Op] | None = None) -> Any:
    from onnx import helper

    graph, tensors = draft.graph, draft.shapes.tensors
    nodes = [_node(op, draft) for op in (*(head or ()), *draft.ops)]
    inputs = [_value(tensor) for tensor in draft.inputs]
    outputs = [_value(tensors[name]) for name in graph.outputs]
    made = helper.make_graph(nodes, graph.name or "graph", inputs, outputs, list(initializers))
    return helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="layerscope",
        producer_version=__version__,
    )


def _node(op: Op, draft: Draft) -> Any:
    from onnx import helper, numpy_helper

    told: dict[str, Any] = {}
    for key, value in op.attributes.items():
        if isinstance(value, Array):
            value = numpy_helper.from_array(array(value.values, value.shape, value.dtype))
        elif key == "to":
            value = _type(value)
        told[key] = list(value) if isinstance(value, tuple) else value
    node = helper.make_node(op.op, op.inputs, op.outputs, op.name, **told)
    if op.op in ("Constant", "ConstantOfShape"):
        param = draft.params.get(op.outputs[0])
        node.metadata_props.add(key=ROLE, value=param.role if param else "constant")
    return node


def _value(tensor: Tensor) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(tensor.name, _type(tensor.dtype), tensor.shape)


def _type(dtype: str) -> int:
    import numpy
    from onnx import helper

    kind: int = helper.np_dtype_to_tensor_dtype(numpy.dtype(TYPES[dtype]))
    return kind


def _write(path: str, data: bytes) -> None:
    """Write a file whole or not at all; a device is written to as it is."""
    if os.path.isdir(path):
        raise OutputError(f"cannot write {path}: it is a folder")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            device.write(data)
        return
    with whole_files(path) as (file,):
        file.write(data)


def _save_apart(path: str, draft: Draft, seed: int) -> None:
    """One array at a time goes to the file beside the model, which only refers to it."""
    data = f"{path}.data"
    if os.path.exists(path) and not os.path.isfile(path):
        raise OutputError(f"cannot write {path}: no file, expected one with the weights beside it")
    initializers: list[Any] = []

    with whole_files(path, data) as (model_file, file):
        for name, values in _random(draft, seed):
            file.write(bytes(-file.tell() % ALIGNED))
            start = file.tell()
            file.write(values.data if values.flags.c_contiguous else values.tobytes())
            place = (os.path.basename(data), start, file.tell() - start)
            initializers.append(_referred(name, draft.params[name], place))
        model_file.write(_model(draft, initializers).SerializeToString())


def _referred(name: str, param: Param, place: tuple[str, int, int]) -> Any:
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=_type(param.dtype), dims=param.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.metadata_props.add(key=ROLE, value=param.role)
    for key, value in zip(("location", "offset", "length"), place, strict=True):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
