"""Times of onnxruntime's nodes by stamps: a custom operator after each node records the time.

onnxruntime's own profiler takes 10 to 20 microseconds per node, as it records shapes and threads; a
stamp takes one or two. Stamps are added to the optimised graph, so that the same nodes run. Nothing
reads the output of a stamp. The engine orders nodes backwards from those that nothing reads, the
last of the file first: with the stamps last and in reverse, each runs right after its node.
`in_order` checks that before it is relied on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from glob import escape, glob
from itertools import pairwise
from time import perf_counter_ns
from typing import TYPE_CHECKING

from layerscope.engines.onnxruntime_c_api import VERSION, Session, c_api
from layerscope.engines.onnxruntime_profile import read_order
from layerscope.errors import EngineError
from layerscope.interrupts import defer_in, scratch_folder

if TYPE_CHECKING:
    from onnx import ModelProto

    from layerscope.engines import Array
    from layerscope.engines.onnxruntime_c_api import CType

DOMAIN, STAMP = "layerscope", "Stamp"
ANY, FLOAT = 0, 1  # element types


class _CustomOp(ctypes.Structure):
    """OrtCustomOp: functions that describe, create and run a custom operator."""

    _fields_ = (
        ("version", c_uint32), ("create", c_void_p), ("name", c_void_p), ("provider", c_void_p),
        ("input_type", c_void_p), ("inputs", c_void_p), ("output_type", c_void_p),
        ("outputs", c_void_p), ("compute", c_void_p), ("destroy", c_void_p),
        ("input_kind", c_void_p), ("output_kind", c_void_p), ("input_memory", c_void_p),
        ("least_inputs", c_void_p), ("homogeneous_inputs", c_void_p), ("least_outputs", c_void_p),
        ("homogeneous_outputs", c_void_p),
    )  # fmt: skip


class Stamps:
    """The custom operator and the times it records."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        name_buffer = ctypes.create_string_buffer(STAMP.encode())
        self._alive: list[object] = [name_buffer]
        self._operator = operator = _CustomOp(version=VERSION)
        name = ctypes.addressof(name_buffer)
        operator.create = self._function(c_void_p, lambda *_: 1, 3)
        operator.name = self._function(c_void_p, lambda *_: name, 1)
        operator.provider = self._function(c_void_p, lambda *_: None, 1)
        operator.input_type = self._constant(ANY)
        operator.output_type = self._constant(FLOAT)
        operator.inputs = self._function(c_size_t, lambda *_: 1, 1)
        operator.outputs = self._function(c_size_t, lambda *_: 1, 1)
        operator.input_kind = self._constant(0)
        operator.output_kind = self._constant(1)  # optional, and absent
        operator.input_memory = self._constant(0)
        for field in ("least_inputs", "homogeneous_inputs", "least_outputs", "homogeneous_outputs"):
            setattr(operator, field, self._function(c_int, lambda *_: 1, 1))
        # No bytecode runs in the callback: Ctrl-C would be raised there and get lost.
        note = map(self.marks.append, iter(perf_counter_ns, None)).__next__
        operator.compute = self._function(None, note, 0)
        operator.destroy = self._function(None, lambda *_: None, 1)
        self.domain = c_api().create("CreateCustomOpDomain", c_char_p(DOMAIN.encode()))
        c_api().call("CustomOpDomain_Add", self.domain, ctypes.byref(operator))

    def _function(
        self, result: CType | None, callback: Callable[..., object], parameters: int
    ) -> int | None:
        """Address of a C function that calls back; it stays alive with this object."""
        defer_in(callback)
        function = ctypes.CFUNCTYPE(result, *[c_void_p] * parameters)(callback)
        self._alive.append(function)
        return ctypes.cast(function, c_void_p).value

    def _constant(self, value: int) -> int | None:
        return self._function(c_int, lambda *_: value, 2)


@cache
def stamps() -> Stamps:
    """The stamps of all sessions: the engine keeps a reference to the operator."""
    return Stamps()


def add_stamps(model: ModelProto) -> ModelProto:
    """Add a stamp on the first input, which runs first, and one after each node."""
    import onnx

    graph = model.graph
    initializers = {each.name for each in graph.initializer}
    tensors = [next((each.name for each in graph.input if each.name not in initializers), "")]
    tensors += [next(filter(None, node.output), "") for node in graph.node]
    if not all(tensors):
        raise EngineError("a network without inputs, or a node without outputs")
    graph.node.extend(
        onnx.helper.make_node(STAMP, [name], [f"{DOMAIN}/{n}"], f"{DOMAIN}/{n}", domain=DOMAIN)
        for n, name in reversed(list(enumerate(tensors)))
    )
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model


class StampedSession:
    """A model file that is run with stamps."""

    def __init__(
        self, path: str, threads: int, entries: Mapping[str, str], inputs: Mapping[str, Array]
    ) -> None:
        import onnx

        if not in_order():
            raise EngineError("this onnxruntime does not run a stamp right after its node")
        model = add_stamps(onnx.load(path, load_external_data=False))
        beside = os.path.join(os.path.dirname(path), "stamped.onnx")
        onnx.save(model, beside)
        self._runs: list[tuple[int, ...]] = []
        self._session = Session(beside, threads, entries, stamps().domain)
        try:
            self._session.bind(inputs, [each.name for each in model.graph.output])
        except BaseException:
            self._session.close()
            raise

    def run(self) -> None:
        """Run the model once and keep its stamps, also those of a run that fails."""
        marks = stamps().marks
        marks.clear()
        try:
            self._session.run()
        finally:
            self._runs.append(tuple(marks))

    def close(self) -> list[dict[int, float]]:
        """Release the session; seconds of each run by node, from the previous stamp to its own."""
        self._session.close()
        return [
            {n: (end - start) / 1e9 for n, (start, end) in enumerate(pairwise(run))}
            for run in self._runs
        ]


def execution_order(path: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[str]:
    """Names of the nodes of a stamped model in the order the profiler reports."""
    with scratch_folder() as folder:
        session = Session(path, 1, {}, stamps().domain, os.path.join(folder, "order"))
        try:
            session.bind(inputs, list(outputs))
            session.run()
        finally:
            session.close()
        return [name for path in glob(os.path.join(escape(folder), "order*"))
                for name in read_order(path)]  # fmt: skip


@cache
def in_order() -> bool:
    """Whether this onnxruntime runs each stamp right after its node, tested on a forked graph."""
    import numpy
    import onnx
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    ends = [make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xw"]
    forked = [("Neg", "x", "y"), ("Abs", "y", "z"), ("Exp", "y", "u"), ("Sqrt", "u", "v")]
    nodes = [make_node(kind, [a], [b], name=kind) for kind, a, b in forked]
    nodes.append(make_node("Add", ["v", "z"], ["w"], name="Add"))
    graph = make_graph(nodes, "forked", ends[:1], ends[1:])
    model = add_stamps(make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8))
    expected = [f"{DOMAIN}/0"]
    for n, node in enumerate(nodes):
        expected += [node.name, f"{DOMAIN}/{n + 1}"]
    with scratch_folder() as folder:
        path = os.path.join(folder, "forked.onnx")
        onnx.save(model, path)
        found = execution_order(path, {"x": numpy.ones(1, numpy.float32)}, ["w"])
    return found == expected
