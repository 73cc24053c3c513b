"""Graphs as ONNX models of opset 21, which onnxruntime 1.18 and newer run; names are kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.errors import CannotLower, OutputError, UnknownName
from layerscope.extras import need
from layerscope.graph.types import Graph, Param, Tensor
from layerscope.interrupts import whole_files
from layerscope.lower.builder import NodeEmitter, OnnxBuilder, OnnxConstant, Op
from layerscope.lower.emitters import EMITTERS, REFUSED
from layerscope.lower.weights import TYPES, array, random_param, rows_of, zero
from layerscope.version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

    from layerscope.lower.weights import NumpyArray

OPSET, IR = 21, 10
ROLE = "layerscope.role"  # key of metadata_props: ONNX has no field for the role of a param
INLINE_BYTES = 1_500_000_000  # more weights become external data: protobuf is limited to 2 GiB
MOST_BYTES = 40_000_000_000  # more weights are not written at all
ALIGNED = 4096  # alignment of external data, so that it can be memory-mapped

ENGINE_TYPES = ("fp32", "fp16")  # dtypes of networks: onnxruntime has no other Conv on a CPU
Weights = Literal["random", "zero"]


def lower(
    graph: Graph,
    shapes: Shapes,
    costs: Mapping[str, Cost],
    *,
    weights: Weights = "random",
    seed: int = 0,
) -> ModelProto:
    """The network as an onnx.ModelProto; zero weights are stored as their shapes only."""
    need("an ONNX model", "onnx", "onnx", "numpy")
    builder = emit(graph, shapes, costs)
    size = _bytes(builder, weights)
    if size > INLINE_BYTES:
        raise CannotLower(
            f"{graph.name}: weights of {_gigabytes(size)} are too large for a model in memory; "
            "save it to a file, or use zero weights"
        )
    return _whole(builder, weights, seed)


def save(
    path: str,
    graph: Graph,
    shapes: Shapes,
    costs: Mapping[str, Cost],
    *,
    weights: Weights = "random",
    seed: int = 0,
) -> None:
    """Write the model to a file, completely or not at all; large weights go to `path`.data."""
    need("an ONNX model", "onnx", "onnx", "numpy")
    builder = emit(graph, shapes, costs)
    size = _bytes(builder, weights)
    if size > MOST_BYTES:
        raise CannotLower(
            f"{graph.name}: weights of {_gigabytes(size)}, at most {_gigabytes(MOST_BYTES)} can be "
            "written; zero weights take no space (--zero-weights)"
        )
    try:
        if size > INLINE_BYTES:
            _save_external(path, builder, seed)
        else:
            model = _whole(builder, weights, seed)
            _write(path, model.SerializeToString())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None


def emit(graph: Graph, shapes: Shapes, costs: Mapping[str, Cost]) -> OnnxBuilder:
    """The operators of all nodes; raises CannotLower for a node without an emitter."""
    if graph.dtype not in ENGINE_TYPES:
        raise CannotLower(
            f"{graph.name}: engines do not run ONNX models of dtype {graph.dtype}; "
            f"expected {' or '.join(ENGINE_TYPES)}"
        )
    builder = OnnxBuilder(graph, shapes, costs)
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
            stored = builder.store(param.storage or param.name, param)
            if stored != param.name:
                builder.ops.append(Op("Identity", param.name, [stored], [param.name], {}))
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if node.op not in EMITTERS or call is None:
            why = REFUSED.get(node.op) or shapes.notes.get(node.name, "it has no form in ONNX")
            raise CannotLower(f"{graph.name}: {node.name} ({node.op}): {why}")
        emitter = NodeEmitter(builder, node, call)
        emitter.finish(EMITTERS[node.op](emitter))
    return builder


def _bytes(builder: OnnxBuilder, weights: Weights) -> int:
    """Bytes of stored weights."""
    if weights not in ("random", "zero"):
        raise UnknownName("weights", weights, ("random", "zero"), "; known: random, zero")
    return 0 if weights == "zero" else sum(param.bytes for param in builder.params.values())


def _whole(builder: OnnxBuilder, weights: Weights, seed: int) -> ModelProto:
    """The model with all its weights."""
    if weights == "zero":
        return _model(builder, (), list(_zeros(builder)))
    return _model(
        builder,
        (_initializer(name, v, builder.params[name].role) for name, v in _random(builder, seed)),
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


def _zeros(builder: OnnxBuilder) -> Iterable[Op]:
    """For every param, operators that compute it when the model is loaded."""
    for name, param in builder.params.items():
        sizes = builder.fresh(f"{name}/shape")
        shape = OnnxConstant(param.shape, (len(param.shape),), "int64")
        yield Op("Constant", sizes, [], [sizes], {"value": shape})
        one = OnnxConstant((zero(param),), (1,), param.dtype)
        yield Op("ConstantOfShape", name, [sizes], [name], {"value": one})


def _random(builder: OnnxBuilder, seed: int) -> Iterable[tuple[str, NumpyArray]]:
    for name, param in builder.params.items():
        yield name, random_param(name, param, seed, rows_of(builder.graph, name))


def _initializer(name: str, values: NumpyArray, role: str) -> TensorProto:
    from onnx import numpy_helper

    tensor: TensorProto = numpy_helper.from_array(values, name)
    tensor.metadata_props.add(key=ROLE, value=role)
    return tensor


def _model(
    builder: OnnxBuilder, initializers: Iterable[TensorProto], head: Sequence[Op] = ()
) -> ModelProto:
    from onnx import helper

    graph, tensors = builder.graph, builder.shapes.tensors
    nodes = [_node(op, builder) for op in (*head, *builder.ops)]
    inputs = [_value(tensor) for tensor in builder.inputs]
    outputs = [_value(tensors[name]) for name in graph.outputs]
    proto = helper.make_graph(nodes, graph.name or "graph", inputs, outputs, list(initializers))
    model: ModelProto = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="layerscope",
        producer_version=__version__,
    )
    return model


def _node(op: Op, builder: OnnxBuilder) -> NodeProto:
    from onnx import helper, numpy_helper

    attributes: dict[str, Any] = {}
    for key, value in op.attributes.items():
        converted: object = list(value) if isinstance(value, tuple) else value
        if isinstance(value, OnnxConstant):
            converted = numpy_helper.from_array(array(value.values, value.shape, value.dtype))
        elif key == "to":
            converted = _type(str(value))
        attributes[key] = converted
    node: NodeProto = helper.make_node(op.op, op.inputs, op.outputs, op.name, **attributes)
    if op.op in ("Constant", "ConstantOfShape"):
        param = builder.params.get(op.outputs[0])
        node.metadata_props.add(key=ROLE, value=param.role if param else "constant")
    return node


def _value(tensor: Tensor) -> ValueInfoProto:
    from onnx import helper

    info: ValueInfoProto = helper.make_tensor_value_info(
        tensor.name, _type(tensor.dtype), tensor.shape
    )
    return info


def _type(dtype: str) -> int:
    import numpy
    from onnx import helper

    kind: int = helper.np_dtype_to_tensor_dtype(numpy.dtype(TYPES[dtype]))
    return kind


def _write(path: str, data: bytes) -> None:
    """Write a file completely or not at all; a device is written to directly."""
    if os.path.isdir(path):
        raise OutputError(f"cannot write {path}: it is a folder")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            device.write(data)
        return
    with whole_files(path) as (file,):
        file.write(data)


def _save_external(path: str, builder: OnnxBuilder, seed: int) -> None:
    """Write params one by one to the external data file, to which the model refers."""
    data = f"{path}.data"
    if os.path.exists(path) and not os.path.isfile(path):
        raise OutputError(f"cannot write {path}: not a regular file, which external data needs")
    initializers: list[TensorProto] = []

    with whole_files(path, data) as (model_file, file):
        for name, values in _random(builder, seed):
            file.write(bytes(-file.tell() % ALIGNED))
            start = file.tell()
            file.write(values.data if values.flags.c_contiguous else values.tobytes())
            location = (os.path.basename(data), start, file.tell() - start)
            initializers.append(_external(name, builder.params[name], location))
        model_file.write(_model(builder, initializers).SerializeToString())


def _external(name: str, param: Param, location: tuple[str, int, int]) -> TensorProto:
    """A tensor in the external data file, by its location, offset and length."""
    from onnx import TensorProto

    tensor: TensorProto = TensorProto(name=name, data_type=_type(param.dtype), dims=param.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.metadata_props.add(key=ROLE, value=param.role)
    for key, value in zip(("location", "offset", "length"), location, strict=True):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
