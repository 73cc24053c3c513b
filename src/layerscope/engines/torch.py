"""PyTorch, eager: the lowered model one operator at a time; tensors are freed after their last use.

oneDNN logs the layout changes (reorders) inside its convolutions in verbose mode. A separate run
reads that log. Reorders become rows of their own, and the layer's time is reduced in proportion.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, TYPE_CHECKING, NamedTuple

from layerscope.engines import Progress, quiet
from layerscope.engines.attribution import EngineTimes, RunInfo, attribute_times
from layerscope.engines.clock import Clock, RunSample
from layerscope.engines.mapping import Group, LayerMapping
from layerscope.engines.onnx_nodes import (
    EngineGraph,
    EngineNode,
    NodeAttributes,
    node_attributes,
)
from layerscope.engines.torch_calls import TorchCall
from layerscope.engines.torch_operators import CALLS, refusal
from layerscope.engines.workload import (
    TENSOR_TYPES,
    WARM_UPS,
    MeasureOptions,
    ModelInput,
    Workload,
    first_line,
    random_inputs,
)
from layerscope.errors import EngineError, MissingExtra
from layerscope.interrupts import acknowledge
from layerscope.report.measurement import MemoryUse, Run, Timer

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto
    from torch import Tensor

    from layerscope.engines import Arrays

    Tensors = dict[str, Tensor]


def version() -> str:
    """Version of the installed engine."""
    return str(_module().__version__)


def _module() -> ModuleType:
    try:
        import torch
    except ImportError:
        raise MissingExtra("measuring with torch", "torch") from None
    module: ModuleType = torch
    return module


def measure(
    workload: Workload, options: MeasureOptions, progress: Progress = quiet
) -> tuple[Run, Arrays]:
    """Times of all layers, and the outputs of the last run by name."""
    import onnx

    torch, report = _module(), workload.report
    steps = 1 + WARM_UPS + options.runs
    progress("load", 0, steps)
    started = Clock()
    source = workload.model
    proto = onnx.load(source) if isinstance(source, str) else onnx.load_from_string(source)
    model = TorchModel(proto, report.name)
    timers = [Timer("load_weights", 1, started.stop().wall_s)]
    arrays = random_inputs(model.inputs, report)
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    before = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    samples: list[RunSample] = []
    plain: list[RunSample] = []
    times: list[list[float]] = []
    note, code = "", 0
    tensors: Tensors = {}
    reorders: dict[int, float] = {}
    peak: int | None = None
    try:
        with torch.inference_mode():
            for n in range(WARM_UPS + options.runs):
                progress("warm up" if n < WARM_UPS else "run", 1 + n, steps)
                spent: list[float] = []
                clock = Clock()
                tensors = model.run(inputs, spent)
                passed = clock.stop()
                clock = Clock()
                model.run(inputs)
                if n >= WARM_UPS:
                    plain.append(clock.stop())
                    samples.append(passed)
                    times.append(spent)
            reorders = model.reorder_shares(inputs)
            peak = model.peak_bytes(inputs)
    except KeyboardInterrupt:
        acknowledge()
        if not plain:
            raise
        note, code = f"interrupted after {len(plain)} of {options.runs} runs", 130
        reorders, peak = {}, None
    finally:
        torch.set_num_threads(before)
    progress("done", steps, steps)
    timers.append(Timer("run", len(samples), sum(sample.wall_s for sample in samples)))
    graph, mapping, seconds = _by_layer(model, workload, times, reorders)
    predicted = _predicted_peak(workload) if peak is not None else None
    info = RunInfo(
        engine="torch",
        version=version(),
        memory=MemoryUse(peak, predicted, report.memory.peak_bytes),
        timers=timers,
        notes=((note,) if note else ()) + ("torch runs every operator apart, fusing none",),
        complete=not note,
        code=code,
    )
    run = attribute_times(EngineTimes(mapping, graph, seconds, samples, plain), options, info)
    outputs = {name: tensors[name].numpy() for name in workload.graph.outputs if name in tensors}
    return run, outputs


class _Step(NamedTuple):
    """One node that runs: its call, and the tensors that are not read after it."""

    call: TorchCall
    attrs: NodeAttributes
    inputs: list[str]
    outputs: list[str]
    free: list[str]


class TorchModel:
    """An ONNX model whose nodes are PyTorch calls; nodes that depend on no input are folded."""

    def __init__(self, proto: ModelProto, name: str) -> None:
        from onnx import numpy_helper

        self.torch, self.name = _module(), name
        self.constants: Tensors = {
            each.name: self.torch.from_numpy(numpy_helper.to_array(each).copy())
            for each in proto.graph.initializer
        }
        self.inputs = [
            _model_input(each) for each in proto.graph.input if each.name not in self.constants
        ]
        self.steps: list[_Step] = []
        self.node_indices: list[int] = []  # of each step, in the graph of the model
        last = {name: n for n, node in enumerate(proto.graph.node) for name in node.input}
        outputs = {each.name for each in proto.graph.output}
        variable = {each.name for each in self.inputs}
        for n, node in enumerate(proto.graph.node):
            if not variable & set(node.input):
                self._fold(node)
                continue
            variable.update(node.output)
            done = [name for name in set(node.input) if last[name] == n and name not in outputs]
            free = [name for name in done if name in variable]
            call, attrs = self._call(node), node_attributes(node)
            self.steps.append(_Step(call, attrs, list(node.input), list(node.output), free))
            self.node_indices.append(n)

    def _call(self, node: NodeProto) -> TorchCall:
        if node.op_type not in CALLS:
            raise EngineError(
                f"{self.name}: torch refuses {node.op_type} of {node.name}: {refusal(node.op_type)}"
            )
        return CALLS[node.op_type]

    def _fold(self, node: NodeProto) -> None:
        """Compute the outputs of a node that depends on no input, once."""
        args = [self.constants[name] if name else None for name in node.input]
        result = self._call(node)(self.torch, node_attributes(node), *args)
        results = (result,) if self.torch.is_tensor(result) else result
        for name, value in zip(node.output, results, strict=False):
            self.constants[name] = value.contiguous()

    def run(
        self,
        inputs: Tensors,
        spent: list[float] | None = None,
        watch: Callable[[Tensors], None] | None = None,
    ) -> Tensors:
        """Run every node in order and return the tensors that are left.

        `spent` receives the seconds of each node; `watch` is called with the tensors alive after
        each.
        """
        alive = dict(inputs)
        constants, torch = self.constants, self.torch
        for call, attrs, names, outputs, free in self.steps:
            args = [
                None if not name else alive[name] if name in alive else constants[name]
                for name in names
            ]
            started = time.perf_counter()
            try:
                result = call(torch, attrs, *args)
            except (RuntimeError, NotImplementedError, TypeError, IndexError) as error:
                raise EngineError(
                    f"{self.name}: torch fails in {outputs[0]}: {first_line(error)}"
                ) from None
            if spent is not None:
                spent.append(time.perf_counter() - started)
            if torch.is_tensor(result):
                alive[outputs[0]] = result
            else:
                alive.update(zip(outputs, result, strict=False))
            del result, args
            if watch is not None:
                watch(alive)
            for name in free:
                alive.pop(name, None)
        return alive

    def peak_bytes(self, inputs: Tensors) -> int:
        """Peak bytes of all storages alive at once, without those of inputs and constants."""
        most = 0
        own = {tensor.untyped_storage().data_ptr() for tensor in inputs.values()}
        own |= {tensor.untyped_storage().data_ptr() for tensor in self.constants.values()}

        def watch(tensors: Tensors) -> None:
            nonlocal most
            alive = {}
            for tensor in tensors.values():
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in own:
                    alive[storage.data_ptr()] = storage.nbytes()
            most = max(most, sum(alive.values()))

        self.run(inputs, watch=watch)
        return most

    def reorder_shares(self, inputs: Tensors) -> dict[int, float]:
        """Share of each step's time that oneDNN spends in reorders, from a verbose run."""
        backends = self.torch.backends.mkldnn
        if not backends.is_available() or not hasattr(backends, "verbose"):
            return {}
        found: dict[int, float] = {}
        with _captured_output() as log:
            ends: list[int] = []
            spent: list[float] = []
            with backends.verbose(backends.VERBOSE_ON):
                self.run(inputs, spent, watch=lambda _: ends.append(log.size()))
            reorders = log.reorders()
        for step, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            seconds = sum(ms for offset, ms in reorders if begin <= offset < end) / 1e3
            if seconds and spent[step]:
                found[step] = min(seconds / spent[step], 1.0)
        return found


def _predicted_peak(workload: Workload) -> int | None:
    """The peak by liveness without inputs: views share storage, nothing is overwritten."""
    report = workload.report
    if report.coverage.unknown:
        return None
    names = {tensor.name for tensor in report.inputs}
    inputs = sum(size for name, size in report.memory.peak_alive if name in names)
    return report.memory.peak_bytes - inputs


class _VerboseLog:
    """Standard output of C libraries while it is captured."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def size(self) -> int:
        """Bytes written so far."""
        return int(os.fstat(self.file.fileno()).st_size)

    def reorders(self) -> list[tuple[int, float]]:
        """Byte offset and milliseconds of each reorder of oneDNN."""
        self.file.seek(0)
        found, offset = [], 0
        for line in self.file:
            fields = line.decode("ascii", "replace").strip().split(",")
            if "reorder" in fields and "exec" in fields:
                try:
                    found.append((offset, float(fields[-1])))
                except ValueError:
                    continue
            offset += len(line)
        return found


@contextmanager
def _captured_output() -> Iterator[_VerboseLog]:
    sys.stdout.flush()
    original = os.dup(1)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield _VerboseLog(file)
        finally:
            os.dup2(original, 1)
            os.close(original)


def _model_input(value: ValueInfoProto) -> ModelInput:
    from onnx import helper

    tensor = value.type.tensor_type
    dtype = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    shape = tuple(dim.dim_value or 1 for dim in tensor.shape.dim)
    return ModelInput(value.name, shape, TENSOR_TYPES.get(dtype, ""))


def _by_layer(
    model: TorchModel,
    workload: Workload,
    times: Sequence[Sequence[float]],
    reorders: Mapping[int, float],
) -> tuple[EngineGraph, LayerMapping, list[dict[int, float]]]:
    """Group steps by layer, and split the reorders of oneDNN off as layout rows."""
    nodes = [workload.graph.nodes[n] for n in model.node_indices]
    owners = [workload.owners[n] for n in model.node_indices]
    steps_of: dict[str, list[int]] = {}
    for step, owner in enumerate(owners):
        steps_of.setdefault(owner, []).append(step)
    groups = [Group((owner,) if owner else (), (owner,), tuple(s)) for owner, s in steps_of.items()]
    seconds = [dict(enumerate(run)) for run in times]
    for step, share in reorders.items():
        index = len(nodes)
        nodes.append(EngineNode("Reorder", f"{owners[step]} reorders", (), ()))
        groups.append(Group((owners[step],), (owners[step],), (index,), True))
        for run in seconds:
            run[index] = run[step] * share
            run[step] *= 1 - share
    timed = set(owners)
    removed = tuple(dict.fromkeys(each for each in workload.owners if each and each not in timed))
    source = workload.graph
    graph = EngineGraph(tuple(nodes), source.inputs, source.initializers, source.outputs)
    return graph, LayerMapping(tuple(groups), removed, {}), seconds
