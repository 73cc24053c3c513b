"""ONNX Runtime: a session that notes times beside one that does not, and a third for memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

from msgspec import Struct

from layerscope.engines import Progress, quiet
from layerscope.engines.affinity import pinned, worker_places
from layerscope.engines.attribution import Parts, account
from layerscope.engines.clock import Clock, Sample
from layerscope.engines.mapping import Mapped, map_operators
from layerscope.engines.memory_plan import Held, plan
from layerscope.engines.onnx_nodes import Program, program_of
from layerscope.engines.onnxruntime_c_api import native
from layerscope.engines.onnxruntime_profile import Event, located, read_profile
from layerscope.engines.onnxruntime_stamps import Stamped
from layerscope.engines.workload import WARM_UPS, Options, Subject, feeds, first_line
from layerscope.errors import EngineError, MissingExtra
from layerscope.interrupts import acknowledge, scratch_folder
from layerscope.report.measurement import MemoryUse, Run, Timer

WIDTHS = {
    "float": 4, "double": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
OPTIMISED, WEIGHTS = "optimised.onnx", "weights"  # files of the engine's own graph
ROOM = 2  # of a disk, times the weights that are written to it
QUIET = 4  # only what is fatal is logged: refusals are raised as well


class Stopped(Struct, frozen=True):
    """Why runs ended early, and the code to leave with."""

    why: str
    code: int


def version() -> str:
    """Of the installed engine."""
    return str(_module().__version__)


def _module() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("measuring with onnxruntime", "onnxruntime") from None
    return onnxruntime


def measure(
    subject: Subject, options: Options, progress: Progress = quiet
) -> tuple[Run, dict[str, Any]]:
    """Times of all layers, and the outputs of the last run by name."""
    with scratch_folder() as folder, pinned(options.threads):
        return _measure(subject, options, progress, folder)


def _measure(
    subject: Subject, options: Options, progress: Progress, folder: str
) -> tuple[Run, dict[str, Any]]:
    steps = 3 + WARM_UPS + options.runs
    progress("session_create", 0, steps)
    started = Clock()
    plain = _session(subject, options, folder) if options.paired else None
    timers = [Timer("session_create", 1, started.stop().wall_s)] if plain else []
    ready = _ready(subject, options, folder)
    started = Clock()
    bound = _bound(plain, ready.given) if plain is not None else None
    timers.append(Timer("set_inputs", 1, started.stop().wall_s))
    samples: list[Sample] = []
    unprofiled: list[Sample] = []
    stopped: Stopped | None = None
    try:
        for n in range(WARM_UPS):
            progress("warm up", 1 + n, steps)
            ready.timed.run()
            if plain is not None:
                plain.run_with_iobinding(bound)
        for n in range(options.runs):
            progress("run", 1 + WARM_UPS + n, steps)
            clock = Clock()
            ready.timed.run()
            samples.append(clock.stop())
            if plain is not None:
                clock = Clock()
                plain.run_with_iobinding(bound)
                unprofiled.append(clock.stop())
    except KeyboardInterrupt:
        acknowledge()
        stopped = Stopped(f"interrupted after {len(samples)} of {options.runs} runs", 130)
    except Exception as error:
        stopped = Stopped(first_line(error), 3)
    runs = ready.timed.close()
    started = Clock()
    outputs = _outputs(plain, bound) if unprofiled else {}
    timers.append(Timer("run", len(samples), sum(sample.wall_s for sample in samples)))
    timers.append(Timer("get_outputs", 1, started.stop().wall_s))
    del bound, plain
    last = next((run for run in reversed(runs) if run), {})
    if stopped is not None and not last:
        if stopped.code == 130:
            raise KeyboardInterrupt
        raise EngineError(f"{subject.report.name}: onnxruntime fails: {stopped.why}")
    engine = ready.program
    mapped = map_operators(subject.program, subject.owners, engine)
    if stopped is not None and stopped.code != 130:
        stopped = Stopped(
            f"fails in {_failed(stopped.why, last, engine, mapped)}: {stopped.why}", 3
        )
    times = runs[WARM_UPS:][: len(samples)] if samples else [last]
    if not samples:
        total = sum(last.values())
        samples = [Sample(total, total, 0.0)]  # no clock was stopped
    memory = _no_memory(subject)
    if options.memory and stopped is None:
        progress("memory", steps - 2, steps)
        try:
            memory = _memory(subject, options, folder, engine)
        except KeyboardInterrupt:
            acknowledge()
            stopped = Stopped("interrupted while memory was measured", 130)
    progress("done", steps, steps)
    parts = Parts(mapped, engine, times, samples, unprofiled)
    run = account(
        "onnxruntime",
        version(),
        options,
        parts,
        subject.report,
        memory=memory,
        timers=tuple(timers),
        notes=_notes(ready, options, stopped),
        complete=stopped is None,
        code=stopped.code if stopped else 0,
    )
    return run, outputs


class Timed(Protocol):
    """A model that notes how long its operators take."""

    def run(self) -> None:
        """Once through."""

    def close(self) -> list[dict[int, float]]:
        """Seconds of each run by operator, of those that fail too; and let go of it."""


class Ready(Struct, frozen=True):
    """What runs, its operators as the engine has them, and what it is fed."""

    timed: Timed
    program: Program
    given: dict[str, Any]
    without: str = ""  # why it runs without stamps


def _ready(subject: Subject, options: Options, folder: str) -> Ready:
    """With stamps where they can be had, else with the engine's own profiler."""
    try:
        native()
        if shutil.disk_usage(folder).free < ROOM * subject.report.totals.param_bytes:
            raise EngineError("no room for a second copy of the weights")
        writer = _session(subject, options, folder, keep="weights")
        given = feeds(writer.get_inputs(), subject.report)
        del writer
        path = os.path.join(folder, OPTIMISED)
        timed = Stamped(path, options.threads, _entries(options), given)
        return Ready(timed, _optimised(folder), given)
    except EngineError as error:
        without = first_line(error)
    session = _session(subject, options, folder, profile=True, keep="operators")
    given = feeds(session.get_inputs(), subject.report)
    program = _optimised(folder)
    return Ready(Profiled(session, given, program), program, given, without)


class Profiled:
    """A session with the engine's own profiler."""

    def __init__(self, session: Any, given: dict[str, Any], program: Program) -> None:
        self._session, self._program = session, program
        self._bound = _bound(session, given)

    def run(self) -> None:
        """Once through."""
        self._session.run_with_iobinding(self._bound)

    def close(self) -> list[dict[int, float]]:
        """Seconds of each run by operator; -1 for those that nobody finds."""
        return [
            _times(events, self._program)
            for events in read_profile(self._session.end_profiling()).runs
        ]


def _session(
    subject: Subject,
    options: Options,
    folder: str,
    *,
    profile: bool = False,
    keep: Literal["", "operators", "weights"] = "",
    pattern: bool = True,
) -> Any:
    """A session; with `keep` its optimised model is written to the folder, with weights or not."""
    ort = _module()
    told = ort.SessionOptions()
    told.log_severity_level = QUIET
    told.intra_op_num_threads = options.threads
    told.inter_op_num_threads = 1
    told.enable_mem_pattern = pattern
    for key, value in _entries(options).items():
        told.add_session_config_entry(key, value)
    if options.fusion == "off":
        told.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if profile:
        told.enable_profiling = True
        told.profile_file_prefix = os.path.join(folder, "profile")
    if keep:
        _keep(told, folder, keep == "weights")
    try:
        return ort.InferenceSession(subject.model, told, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EngineError(
            f"{subject.report.name}: onnxruntime refuses it: {first_line(error)}"
        ) from None


def _entries(options: Options) -> dict[str, str]:
    # Threads of one session that wait by spinning would take the CPU from the other's.
    return {"session.force_spinning_stop": "1", **worker_places(options.threads)}


def _keep(told: Any, folder: str, weights: bool) -> None:
    for name in (OPTIMISED, WEIGHTS):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    told.optimized_model_filepath = os.path.join(folder, OPTIMISED)
    entry = "session.optimized_model_external_initializers_"
    told.add_session_config_entry(f"{entry}file_name", WEIGHTS)
    told.add_session_config_entry(f"{entry}min_size_in_bytes", "256")
    if not weights:
        with suppress(OSError):
            os.symlink(os.devnull, os.path.join(folder, WEIGHTS))


def _optimised(folder: str) -> Program:
    import onnx

    return program_of(onnx.load(os.path.join(folder, OPTIMISED), load_external_data=False))


def optimised_model(model: bytes, disabled: Sequence[str] = ()) -> Any:
    """The graph that onnxruntime makes of a model on this processor, as an onnx.ModelProto.

    `disabled` are optimizers to leave out, such as NchwcTransformer.
    """
    import onnx

    ort = _module()
    with scratch_folder() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = QUIET
        options.optimized_model_filepath = os.path.join(folder, OPTIMISED)
        ort.InferenceSession(
            model, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disabled)
        )
        return onnx.load(os.path.join(folder, OPTIMISED), load_external_data=False)


def _outputs(session: Any, bound: Any) -> dict[str, Any]:
    names = [each.name for each in session.get_outputs()]
    return {name: value.numpy() for name, value in zip(names, bound.get_outputs(), strict=False)}


def _bound(session: Any, given: dict[str, Any]) -> Any:
    """Inputs in their place and outputs left where they are made: a run is the engine's alone."""
    make: Callable[..., Any] = _module().OrtValue.ortvalue_from_numpy
    binding = session.io_binding()
    for name, array in given.items():
        binding.bind_ortvalue_input(name, make(array))
    for each in session.get_outputs():
        binding.bind_output(each.name)
    return binding


def _times(events: tuple[Event, ...], engine: Program) -> dict[int, float]:
    """Seconds of one run by operator; -1 for those that nobody finds."""
    times: dict[int, float] = {}
    for at, event in zip(located(events, engine.operators), events, strict=True):
        key = -1 if at is None else at
        times[key] = times.get(key, 0.0) + event.time_s
    return times


def _failed(why: str, done: Mapping[int, float], engine: Program, mapped: Mapped) -> str:
    """The layers of the operator that is named, else of the one after the last that ran."""
    name = re.search("Name:'([^']*)'", why)
    for group in mapped.groups if name else ():
        if any(engine.operators[at].name == name[1] for at in group.operators if name):
            return " + ".join(group.shown) or (name[1] if name else "")
    for group in mapped.groups:
        if not set(group.operators) & set(done):
            return " + ".join(group.shown) or engine.operators[group.operators[0]].name
    return "its last layer"


def _no_memory(subject: Subject) -> MemoryUse:
    return MemoryUse(None, None, subject.report.memory.peak_bytes)


def _memory(subject: Subject, options: Options, folder: str, engine: Program) -> MemoryUse:
    """What is asked for at most beyond what is held between runs, every tensor allocated apart."""
    session = _session(subject, options, folder, profile=True, pattern=False)
    given = feeds(session.get_inputs(), subject.report)
    for _ in range(2):
        session.run(None, given)
    events = read_profile(session.end_profiling()).runs[-1]
    base = events[0].bytes_in_use - events[0].bytes_added if events else 0
    measured = max((event.bytes_in_use for event in events), default=base) - base
    found = located(events, engine.operators)
    if None in found or not measured:
        return MemoryUse(measured or None, None, subject.report.memory.peak_bytes)
    held: dict[str, Held] = {}
    order = [at for at in found if at is not None]
    for at, event in zip(order, events, strict=True):
        outputs = [name for name in engine.operators[at].outputs if name]
        for name, shape, kind in zip(outputs, event.shapes, event.output_types, strict=False):
            count = WIDTHS.get(kind, 4)
            for size in shape:
                count *= size
            alone = len(event.shapes) == 1 and event.output_bytes
            held[name] = Held(shape, event.output_bytes if alone else count)
    predicted = plan(engine, order, held).peak_bytes
    return MemoryUse(measured, predicted, subject.report.memory.peak_bytes)


def _notes(ready: Ready, options: Options, stopped: Stopped | None) -> tuple[str, ...]:
    notes = [stopped.why] if stopped else []
    if ready.without:
        notes.append(f"timed by onnxruntime's own profiler, which takes longer: {ready.without}")
    if any(op.domain.endswith("nchwc") for op in ready.program.operators):
        notes.append(
            "onnxruntime holds images in blocks of channels (nchwc); weights are reordered for it "
            "once, in session_create, not in a run"
        )
    if options.fusion == "off":
        notes.append("fusion off: no graph optimisation at all, blocks of channels neither")
    return tuple(notes)
