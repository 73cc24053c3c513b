"""ONNX Runtime: one session that records times, one without, and a third for memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from layerscope.engines import Progress, quiet
from layerscope.engines.affinity import pinned
from layerscope.engines.attribution import EngineTimes, RunInfo, attribute_times
from layerscope.engines.clock import Clock, RunSample
from layerscope.engines.mapping import LayerMapping, map_nodes
from layerscope.engines.memory_plan import TensorSize, plan_memory
from layerscope.engines.onnx_nodes import EngineGraph
from layerscope.engines.onnxruntime_c_api import c_api
from layerscope.engines.onnxruntime_profile import Event, node_indices, read_profile
from layerscope.engines.onnxruntime_sessions import (
    OPTIMISED,
    SessionSettings,
    bind,
    config_entries,
    create_session,
    onnxruntime_module,
    optimised_graph,
)
from layerscope.engines.onnxruntime_stamps import StampedSession
from layerscope.engines.workload import (
    WARM_UPS,
    MeasureOptions,
    Workload,
    first_line,
    random_inputs,
)
from layerscope.errors import EngineError
from layerscope.interrupts import acknowledge, scratch_folder
from layerscope.report.measurement import MemoryUse, Run, Timer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

    from layerscope.engines import Arrays

ELEMENT_BYTES = {
    "float": 4, "double": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
DISK_FACTOR = 2  # free disk space needed, as a multiple of the weights written to it


class Stopped(Struct, frozen=True):
    """Why runs ended early, and the exit code of the command."""

    why: str
    code: int


class TimedSession(Protocol):
    """A model that records how long its nodes take."""

    def run(self) -> None:
        """Run the model once."""

    def close(self) -> list[dict[int, float]]:
        """Release the session; seconds of each run by node, of runs that failed too."""


class PreparedSession(Struct, frozen=True):
    """A timed session, the optimised graph that it runs, and its inputs."""

    session: TimedSession
    graph: EngineGraph
    inputs: Arrays
    without_stamps: str = ""  # why it has no stamps


def version() -> str:
    """Version of the installed engine."""
    return str(onnxruntime_module().__version__)


def measure(
    workload: Workload, options: MeasureOptions, progress: Progress = quiet
) -> tuple[Run, Arrays]:
    """Times of all layers, and the outputs of the last run by name."""
    with scratch_folder() as folder, pinned(options.threads):
        return _measure(workload, options, progress, folder)


def _measure(
    workload: Workload, options: MeasureOptions, progress: Progress, folder: str
) -> tuple[Run, Arrays]:
    steps = 3 + WARM_UPS + options.runs
    progress("session_create", 0, steps)
    started = Clock()
    plain = create_session(workload, options, folder) if options.paired else None
    timers = [Timer("session_create", 1, started.stop().wall_s)] if plain else []
    prepared = _prepare(workload, options, folder)
    started = Clock()
    bound = bind(plain, prepared.inputs) if plain is not None else None
    timers.append(Timer("set_inputs", 1, started.stop().wall_s))

    def run_plain() -> None:
        if plain is not None:
            plain.run_with_iobinding(bound)

    done = _run_pairs(prepared.session, run_plain if options.paired else None, options, progress)
    stopped, samples = done.stopped, done.samples
    runs = prepared.session.close()
    started = Clock()
    outputs = _outputs(plain, bound) if plain is not None and done.unprofiled else {}
    timers.append(Timer("run", len(samples), sum(sample.wall_s for sample in samples)))
    timers.append(Timer("get_outputs", 1, started.stop().wall_s))
    plain = bound = None  # frees their memory
    last = next((run for run in reversed(runs) if run), {})
    if stopped is not None and not last:
        if stopped.code == 130:
            raise KeyboardInterrupt
        raise EngineError(f"{workload.report.name}: onnxruntime fails: {stopped.why}")
    graph = prepared.graph
    mapping = map_nodes(workload.graph, workload.owners, graph)
    if stopped is not None and stopped.code != 130:
        where = _failed_layers(stopped.why, last, graph, mapping)
        stopped = Stopped(f"fails in {where}: {stopped.why}", 3)
    seconds = runs[WARM_UPS:][: len(samples)] if samples else [last]
    if not samples:
        total = sum(last.values())
        samples = [RunSample(total, total, 0.0)]  # no clock was stopped
    memory = MemoryUse(None, None, workload.report.memory.peak_bytes)
    if options.memory and stopped is None:
        progress("memory", steps - 2, steps)
        try:
            memory = _memory(workload, options, folder, graph)
        except KeyboardInterrupt:
            acknowledge()
            stopped = Stopped("interrupted while memory was measured", 130)
    progress("done", steps, steps)
    info = RunInfo(
        engine="onnxruntime",
        version=version(),
        memory=memory,
        timers=timers,
        notes=_notes(prepared, options, stopped),
        complete=stopped is None,
        code=stopped.code if stopped else 0,
    )
    times = EngineTimes(mapping, graph, seconds, samples, done.unprofiled)
    return attribute_times(times, options, info), outputs


class CompletedRuns(Struct, frozen=True):
    """Samples of the runs after warming up, and why they ended early."""

    samples: list[RunSample]
    unprofiled: list[RunSample]
    stopped: Stopped | None = None


def _run_pairs(
    session: TimedSession,
    run_plain: Callable[[], None] | None,
    options: MeasureOptions,
    progress: Progress,
) -> CompletedRuns:
    """Run the timed session and the plain one in turns, after a few warm-ups."""
    steps = 3 + WARM_UPS + options.runs
    samples: list[RunSample] = []
    unprofiled: list[RunSample] = []
    try:
        for n in range(WARM_UPS):
            progress("warm up", 1 + n, steps)
            session.run()
            if run_plain is not None:
                run_plain()
        for n in range(options.runs):
            progress("run", 1 + WARM_UPS + n, steps)
            clock = Clock()
            session.run()
            samples.append(clock.stop())
            if run_plain is not None:
                clock = Clock()
                run_plain()
                unprofiled.append(clock.stop())
    except KeyboardInterrupt:
        acknowledge()
        why = f"interrupted after {len(samples)} of {options.runs} runs"
        return CompletedRuns(samples, unprofiled, Stopped(why, 130))
    except Exception as error:
        return CompletedRuns(samples, unprofiled, Stopped(first_line(error), 3))
    return CompletedRuns(samples, unprofiled)


def _prepare(workload: Workload, options: MeasureOptions, folder: str) -> PreparedSession:
    """A session with stamps where they are possible, else with onnxruntime's own profiler."""
    report = workload.report
    try:
        c_api()
        if shutil.disk_usage(folder).free < DISK_FACTOR * report.totals.param_bytes:
            raise EngineError("no disk space for a second copy of the weights")
        writer = create_session(workload, options, folder, SessionSettings(keep="weights"))
        inputs = random_inputs(writer.get_inputs(), report)
        del writer
        path = os.path.join(folder, OPTIMISED)
        stamped = StampedSession(path, options.threads, config_entries(options), inputs)
        return PreparedSession(stamped, optimised_graph(folder), inputs)
    except EngineError as error:
        without_stamps = first_line(error)
    settings = SessionSettings(profile=True, keep="operators")
    session = create_session(workload, options, folder, settings)
    inputs = random_inputs(session.get_inputs(), report)
    graph = optimised_graph(folder)
    return PreparedSession(ProfiledSession(session, inputs, graph), graph, inputs, without_stamps)


class ProfiledSession:
    """A session with onnxruntime's own profiler."""

    def __init__(self, session: InferenceSession, inputs: Arrays, graph: EngineGraph) -> None:
        self._session, self._graph = session, graph
        self._bound = bind(session, inputs)

    def run(self) -> None:
        """Run the model once."""
        self._session.run_with_iobinding(self._bound)

    def close(self) -> list[dict[int, float]]:
        """Seconds of each run by node; -1 for nodes that are not in the graph."""
        return [
            _node_seconds(events, self._graph)
            for events in read_profile(self._session.end_profiling()).runs
        ]


def _outputs(session: InferenceSession, bound: IOBinding) -> Arrays:
    names = [each.name for each in session.get_outputs()]
    return {name: value.numpy() for name, value in zip(names, bound.get_outputs(), strict=False)}


def _node_seconds(events: tuple[Event, ...], graph: EngineGraph) -> dict[int, float]:
    """Seconds of one run by index of the node; -1 for nodes that are not in the graph."""
    seconds: dict[int, float] = {}
    for index, event in zip(node_indices(events, graph.nodes), events, strict=True):
        key = -1 if index is None else index
        seconds[key] = seconds.get(key, 0.0) + event.time_s
    return seconds


def _failed_layers(
    why: str, done: Mapping[int, float], graph: EngineGraph, mapping: LayerMapping
) -> str:
    """Layers of the node that the error names, else of the node after the last that ran."""
    name = re.search("Name:'([^']*)'", why)
    for group in mapping.groups if name else ():
        if any(graph.nodes[index].name == name[1] for index in group.nodes if name):
            return " + ".join(group.shown) or (name[1] if name else "")
    for group in mapping.groups:
        if not set(group.nodes) & set(done):
            return " + ".join(group.shown) or graph.nodes[group.nodes[0]].name
    return "its last layer"


def _memory(
    workload: Workload, options: MeasureOptions, folder: str, graph: EngineGraph
) -> MemoryUse:
    """Peak of allocations during a run, with every tensor allocated separately."""
    source_peak = workload.report.memory.peak_bytes
    session = create_session(
        workload, options, folder, SessionSettings(profile=True, memory_pattern=False)
    )
    inputs = random_inputs(session.get_inputs(), workload.report)
    for _ in range(2):
        session.run(None, inputs)
    events = read_profile(session.end_profiling()).runs[-1]
    base = events[0].bytes_in_use - events[0].bytes_added if events else 0
    measured = max((event.bytes_in_use for event in events), default=base) - base
    found = node_indices(events, graph.nodes)
    if None in found or not measured:
        return MemoryUse(measured or None, None, source_peak)
    order = [index for index in found if index is not None]
    predicted = plan_memory(graph, order, _tensor_sizes(events, order, graph)).peak_bytes
    return MemoryUse(measured, predicted, source_peak)


def _tensor_sizes(
    events: Sequence[Event], order: Sequence[int], graph: EngineGraph
) -> dict[str, TensorSize]:
    """Shapes and bytes of the outputs that a profile reports."""
    sizes: dict[str, TensorSize] = {}
    for index, event in zip(order, events, strict=True):
        outputs = [name for name in graph.nodes[index].outputs if name]
        for name, shape, dtype in zip(outputs, event.shapes, event.output_types, strict=False):
            count = ELEMENT_BYTES.get(dtype, 4)
            for size in shape:
                count *= size
            only = len(event.shapes) == 1 and event.output_bytes
            sizes[name] = TensorSize(shape, event.output_bytes if only else count)
    return sizes


def _notes(
    prepared: PreparedSession, options: MeasureOptions, stopped: Stopped | None
) -> tuple[str, ...]:
    notes = [stopped.why] if stopped else []
    if prepared.without_stamps:
        notes.append(
            f"timed by onnxruntime's own profiler, which takes longer: {prepared.without_stamps}"
        )
    if any(op.domain.endswith("nchwc") for op in prepared.graph.nodes):
        notes.append(
            "onnxruntime holds images in blocks of channels (nchwc); weights are reordered for it "
            "once, in session_create, not in a run"
        )
    if options.fusion == "off":
        notes.append("fusion off: no graph optimisation at all, blocks of channels neither")
    return tuple(notes)
