"""OpenVINO's CPU plugin.

Its counters are means over all runs since the model was compiled; the times of single runs are
computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.engines import Progress, quiet
from layerscope.engines.attribution import EngineTimes, RunInfo, attribute_times
from layerscope.engines.clock import Clock, RunSample
from layerscope.engines.mapping import map_nodes
from layerscope.engines.onnx_nodes import EngineGraph, EngineNode
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
    from openvino import CompiledModel, ConstOutput, ProfilingInfo

    from layerscope.engines import Arrays

CONSTANT = ("Const", "Constant")


def version() -> str:
    """Version of the installed engine."""
    return str(_module().__version__).partition("-")[0]


def _module() -> ModuleType:
    try:
        import openvino
    except ImportError:
        raise MissingExtra("measuring with openvino", "openvino") from None
    module: ModuleType = openvino
    return module


def measure(
    workload: Workload, options: MeasureOptions, progress: Progress = quiet
) -> tuple[Run, Arrays]:
    """Times of all layers, and the outputs of the last run by name."""
    steps = 1 + WARM_UPS + options.runs
    progress("compile", 0, steps)
    started = Clock()
    profiled = _compiled(workload, options, profile=True)
    timers = [Timer("compile", 1, started.stop().wall_s)]
    plain = _compiled(workload, options, profile=False)
    started = Clock()
    inputs = random_inputs(map(_model_input, profiled.inputs), workload.report)
    timers.append(Timer("set_inputs", 1, started.stop().wall_s))
    profiled_request, plain_request = profiled.create_infer_request(), plain.create_infer_request()
    names = [each.get_any_name() for each in profiled.outputs]
    samples: list[RunSample] = []
    unprofiled: list[RunSample] = []
    means: list[dict[str, float]] = []
    note = ""
    code = 0
    try:
        for n in range(WARM_UPS + options.runs):
            progress("warm up" if n < WARM_UPS else "run", 1 + n, steps)
            clock = Clock()
            profiled_request.infer(inputs)
            samples.append(clock.stop())
            counters = profiled_request.profiling_info
            means.append({each.node_name: _seconds(each) for each in counters})
            clock = Clock()
            plain_request.infer(inputs)
            unprofiled.append(clock.stop())
    except KeyboardInterrupt:
        acknowledge()
        if len(unprofiled) <= WARM_UPS:
            raise
        done = len(unprofiled) - WARM_UPS
        note, code = f"interrupted after {done} of {options.runs} runs", 130
    except Exception as error:
        raise EngineError(f"{workload.report.name}: openvino fails: {first_line(error)}") from None
    samples, means = samples[: len(unprofiled)], means[: len(unprofiled)]
    graph, indices = _runtime_graph(profiled, workload)
    seconds = [
        {indices[name]: time for name, time in run.items() if name in indices}
        for run in _single_runs(means)
    ]
    progress("done", steps, steps)
    outputs = {
        name: profiled_request.get_output_tensor(n).data.copy() for n, name in enumerate(names)
    }
    kept = samples[WARM_UPS:]
    timers.append(Timer("run", len(kept), sum(sample.wall_s for sample in kept)))
    mapping = map_nodes(workload.graph, workload.owners, graph)
    info = RunInfo(
        engine="openvino",
        version=version(),
        memory=MemoryUse(None, None, workload.report.memory.peak_bytes),
        timers=timers,
        notes=(note,) if note else (),
        complete=not note,
        code=code,
    )
    times = EngineTimes(mapping, graph, seconds[WARM_UPS:], kept, unprofiled[WARM_UPS:])
    return attribute_times(times, options, info), outputs


def _model_input(port: ConstOutput) -> ModelInput:
    shape = port.get_partial_shape()
    sizes = tuple(int(size.get_length()) if size.is_static else 1 for size in shape)
    dtype = str(port.get_element_type().to_dtype())
    return ModelInput(port.get_any_name(), sizes, TENSOR_TYPES[dtype])


def _compiled(workload: Workload, options: MeasureOptions, *, profile: bool) -> CompiledModel:
    core = _module().Core()
    properties = {
        "PERF_COUNT": profile,
        "INFERENCE_NUM_THREADS": options.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # else it chooses bf16 where the CPU has it
    }
    try:
        return core.compile_model(core.read_model(workload.model), "CPU", properties)
    except Exception as error:
        raise EngineError(
            f"{workload.report.name}: openvino refuses it: {first_line(error)}"
        ) from None


def _seconds(info: ProfilingInfo) -> float:
    return float(info.real_time.total_seconds()) if "EXECUTED" in str(info.status) else 0.0


def _single_runs(means: list[dict[str, float]]) -> list[dict[str, float]]:
    """Times of each run from means over all runs so far: n·mean(n) − (n−1)·mean(n−1)."""
    found: list[dict[str, float]] = []
    before: dict[str, float] = {}
    for n, now in enumerate(means, 1):
        found.append({k: max(n * v - (n - 1) * before.get(k, 0.0), 0.0) for k, v in now.items()})
        before = now
    return found


def _runtime_graph(
    compiled: CompiledModel, workload: Workload
) -> tuple[EngineGraph, dict[str, int]]:
    """Nodes that run, with indices by name; each has the output of its last source node."""
    source = workload.graph
    position = {node.name: n for n, node in enumerate(source.nodes)}
    nodes: list[EngineNode] = []
    indices: dict[str, int] = {}
    outputs_of: dict[str, tuple[str, ...]] = {}
    for op in compiled.get_runtime_model().get_ordered_ops():
        info = op.get_rt_info()
        name = op.get_friendly_name()
        op_type = _info_text(info, "layerType")
        if op_type in CONSTANT:
            continue
        if op_type in ("Input", "Parameter"):
            outputs_of[name] = (name,)
            continue
        fused = [n for n in _info_text(info, "originalLayersNames").split(",") if n in position]
        inputs = tuple(
            output
            for port in op.inputs()
            for output in outputs_of.get(
                port.get_source_output().get_node().get_friendly_name(), ()
            )
        )
        if fused and op_type != "Reorder":
            outputs = source.nodes[max(position[n] for n in fused)].outputs
        else:
            outputs = (f"openvino:{name}",)
        outputs_of[name] = outputs
        indices[name] = len(nodes)
        nodes.append(EngineNode(op_type, name, inputs, outputs))
    return EngineGraph(tuple(nodes), source.inputs, source.initializers, source.outputs), indices


def _info_text(info: Mapping[str, object], key: str) -> str:
    """An entry of a node's runtime information, which is an OVAny in some versions."""
    if key not in info:
        return ""
    value = info[key]
    return str(value.astype(str) if hasattr(value, "astype") else value)
