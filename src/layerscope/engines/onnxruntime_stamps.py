"""Times of an engine's operators by stamps: an operator after each that only notes the time.

onnxruntime's own profiler takes 10 to 20 microseconds an operator, as it writes down shapes and
threads; a stamp takes one or two. Stamps are put into the graph that the engine made of the model,
so that the same operators run. Nothing consumes a stamp. The engine orders operators by going back
from those that nothing consumes, the last of the file first: with the stamps last and in reverse,
each runs right after its operator. That is looked at before it is relied on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from glob import escape, glob
from itertools import pairwise
from time import perf_counter_ns
from typing import Any

from layerscope.engines.onnxruntime_c_api import VERSION, Session, native
from layerscope.engines.onnxruntime_profile import read_order
from layerscope.errors import EngineError
from layerscope.interrupts import defer_in, scratch_folder

DOMAIN, STAMP = "layerscope", "Stamp"
ANY, FLOAT = 0, 1  # types of elements


class _Operator(ctypes.Structure):
    """An operator as the engine wants it: functions that describe it, make it and run it."""

    _fields_ = (
        ("version", c_uint32), ("create", c_void_p), ("name", c_void_p), ("provider", c_void_p),
        ("input_type", c_void_p), ("inputs", c_void_p), ("output_type", c_void_p),
        ("outputs", c_void_p), ("compute", c_void_p), ("destroy", c_void_p),
        ("input_kind", c_void_p), ("output_kind", c_void_p), ("input_memory", c_void_p),
        ("least_inputs", c_void_p), ("alike_inputs", c_void_p), ("least_outputs", c_void_p),
        ("alike_outputs", c_void_p),
    )  # fmt: skip


class Stamps:
    """The operator, and the times it noted."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self._kept: list[Any] = [ctypes.create_string_buffer(STAMP.encode())]
        self._operator = operator = _Operator(version=VERSION)
        name = ctypes.addressof(self._kept[0])
        operator.create = self._function(c_void_p, lambda *_: 1, 3)
        operator.name = self._function(c_void_p, lambda *_: name, 1)
        operator.provider = self._function(c_void_p, lambda *_: None, 1)
        operator.input_type = self._about(ANY)
        operator.output_type = self._about(FLOAT)
        operator.inputs = self._function(c_size_t, lambda *_: 1, 1)
        operator.outputs = self._function(c_size_t, lambda *_: 1, 1)
        operator.input_kind = self._about(0)
        operator.output_kind = self._about(1)  # it may be missing, and is
        operator.input_memory = self._about(0)
        for field in ("least_inputs", "alike_inputs", "least_outputs", "alike_outputs"):
            setattr(operator, field, self._function(c_int, lambda *_: 1, 1))
        # No bytecode: Ctrl-C would be raised in it, and lost, as nobody is there to catch it.
        note = map(self.marks.append, iter(perf_counter_ns, None)).__next__
        operator.compute = self._function(None, note, 0)
        operator.destroy = self._function(None, lambda *_: None, 1)
        self.domain = native().made("CreateCustomOpDomain", c_char_p(DOMAIN.encode()))
        native().call("CustomOpDomain_Add", self.domain, ctypes.byref(operator))

    def _function(self, result: Any, does: Any, takes: int) -> int | None:
        defer_in(does)
        made = ctypes.CFUNCTYPE(result, *[c_void_p] * takes)(does)
        self._kept.append(made)
        return ctypes.cast(made, c_void_p).value

    def _about(self, value: int) -> int | None:
        return self._function(c_int, lambda *_: value, 2)


@cache
def stamps() -> Stamps:
    """One for all sessions: the engine keeps what it was given."""
    return Stamps()


def stamped(model: Any) -> Any:
    """The same model with a stamp on its first input, which runs first, and after each operator."""
    import onnx

    graph = model.graph
    stored = {each.name for each in graph.initializer}
    noted = [next((each.name for each in graph.input if each.name not in stored), "")]
    noted += [next(filter(None, node.output), "") for node in graph.node]
    if not all(noted):
        raise EngineError("a network without inputs, or an operator without outputs")
    graph.node.extend(
        onnx.helper.make_node(STAMP, [name], [f"{DOMAIN}/{n}"], f"{DOMAIN}/{n}", domain=DOMAIN)
        for n, name in reversed(list(enumerate(noted)))
    )
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model


class Stamped:
    """A model in a file that is run with stamps."""

    def __init__(
        self, path: str, threads: int, entries: Mapping[str, str], inputs: Mapping[str, Any]
    ) -> None:
        import onnx

        if not in_order():
            raise EngineError("this onnxruntime does not run a stamp right after its operator")
        model = stamped(onnx.load(path, load_external_data=False))
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
        """Once through; what was noted is kept, of a run that fails too."""
        marks = stamps().marks
        marks.clear()
        try:
            self._session.run()
        finally:
            self._runs.append(tuple(marks))

    def close(self) -> list[dict[int, float]]:
        """Seconds of each run by operator, from the stamp before it to its own; then let go."""
        self._session.close()
        return [
            {n: (end - start) / 1e9 for n, (start, end) in enumerate(pairwise(run))}
            for run in self._runs
        ]


def order(path: str, inputs: Mapping[str, Any], outputs: Sequence[str]) -> list[str]:
    """The names of a stamped model's operators in the order they run, as the profiler tells."""
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
    """Whether this engine runs each stamp right after its operator, seen on a forked graph."""
    import numpy
    import onnx
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    ends = [make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xw"]
    forked = [("Neg", "x", "y"), ("Abs", "y", "z"), ("Exp", "y", "u"), ("Sqrt", "u", "v")]
    nodes = [make_node(kind, [a], [b], name=kind) for kind, a, b in forked]
    nodes.append(make_node("Add", ["v", "z"], ["w"], name="Add"))
    graph = make_graph(nodes, "forked", ends[:1], ends[1:])
    model = stamped(make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8))
    expected = [f"{DOMAIN}/0"]
    for n, node in enumerate(nodes):
        expected += [node.name, f"{DOMAIN}/{n + 1}"]
    with scratch_folder() as folder:
        path = os.path.join(folder, "forked.onnx")
        onnx.save(model, path)
        found = order(path, {"x": numpy.ones(1, numpy.float32)}, ["w"])
    return found == expected
