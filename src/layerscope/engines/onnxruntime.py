"""ONNX Runtime: a profiled session beside an unprofiled one, and a third for memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from layerscope.engines import Progress, quiet
from layerscope.engines.affinity import pin_workers, pinned
from layerscope.engines.clock import Clock, Sample
from layerscope.engines.mapping import Mapped, map_operators
from layerscope.engines.planning import Held, plan
from layerscope.engines.profile import Event, located, read_profile
from layerscope.engines.program import Program, program_of
from layerscope.engines.rows import Parts, account
from layerscope.engines.subject import WARM_UPS, Options, Subject, feeds, first_line
from layerscope.errors import EngineError, MissingExtra
from layerscope.report.measurement import MemoryUse, Run, Timer

WIDTHS = {
    "float": 4, "double": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
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
    with TemporaryDirectory(prefix="layerscope-") as folder, pinned(options.threads):
        return _measure(subject, options, progress, folder)


def _measure(
    subject: Subject, options: Options, progress: Progress, folder: str
) -> tuple[Run, dict[str, Any]]:
    steps = 3 + WARM_UPS + options.runs
    progress("session_create", 0, steps)
    started = Clock()
    profiled = _session(subject, options, folder, profile=True, keep=True)
    timers = [Timer("session_create", 1, started.stop().wall_s)]
    engine = _optimised(folder)
    plain = _session(subject, options, folder) if options.paired else None
    started = Clock()
    given = _values(feeds(profiled.get_inputs(), subject.report))
    bound = _bound(profiled, given)
    other = _bound(plain, given) if plain is not None else None
    timers.append(Timer("set_inputs", 1, started.stop().wall_s))
    names = [each.name for each in profiled.get_outputs()]
    samples: list[Sample] = []
    unprofiled: list[Sample] = []
    stopped: Stopped | None = None
    try:
        for n in range(WARM_UPS):
            progress("warm up", 1 + n, steps)
            profiled.run_with_iobinding(bound)
            if plain is not None:
                plain.run_with_iobinding(other)
        for n in range(options.runs):
            progress("run", 1 + WARM_UPS + n, steps)
            clock = Clock()
            profiled.run_with_iobinding(bound)
            samples.append(clock.stop())
            if plain is not None:
                clock = Clock()
                plain.run_with_iobinding(other)
                unprofiled.append(clock.stop())
    except KeyboardInterrupt:
        stopped = Stopped(f"interrupted after {len(samples)} of {options.runs} runs", 130)
    except Exception as error:
        stopped = Stopped(first_line(error), 3)
    runs = read_profile(profiled.end_profiling()).runs
    started = Clock()
    made = bound.get_outputs() if samples else []
    outputs = {name: value.numpy() for name, value in zip(names, made, strict=False)}
    timers.append(Timer("run", len(samples), sum(sample.wall_s for sample in samples)))
    timers.append(Timer("get_outputs", 1, started.stop().wall_s))
    del bound, other, profiled, plain
    if stopped is not None and not any(runs):
        if stopped.code == 130:
            raise KeyboardInterrupt
        raise EngineError(f"{subject.report.name}: onnxruntime fails: {stopped.why}")
    mapped = map_operators(subject.program, subject.owners, engine)
    if stopped is not None and stopped.code != 130:
        stopped = Stopped(
            f"fails in {_failed(stopped.why, runs[-1], engine, mapped)}: {stopped.why}", 3
        )
    kept = list(runs[WARM_UPS:]) if samples else [runs[-1]]
    kept = kept[: len(samples)] if samples else kept
    if not samples:
        total = sum(event.time_s for event in runs[-1])
        samples = [Sample(total, total, None)]
    memory = _no_memory(subject)
    if options.memory and stopped is None:
        progress("memory", steps - 2, steps)
        try:
            memory = _memory(subject, options, folder, engine)
        except KeyboardInterrupt:
            stopped = Stopped("interrupted while memory was measured", 130)
    progress("done", steps, steps)
    times = [_times(events, engine) for events in kept]
    parts = Parts(mapped, engine, times, samples, unprofiled)
    run = account(
        "onnxruntime",
        version(),
        options,
        parts,
        subject.report,
        memory=memory,
        timers=tuple(timers),
        notes=_notes(engine, options, stopped),
        complete=stopped is None,
        code=stopped.code if stopped else 0,
    )
    return run, outputs


def _session(
    subject: Subject,
    options: Options,
    folder: str,
    *,
    profile: bool = False,
    keep: bool = False,
    pattern: bool = True,
) -> Any:
    """A session; with `keep` its optimised operators are written to the folder, without weights."""
    ort = _module()
    told = ort.SessionOptions()
    told.log_severity_level = QUIET
    told.intra_op_num_threads = options.threads
    told.inter_op_num_threads = 1
    told.enable_mem_pattern = pattern
    # Threads of one session that wait by spinning would take the CPU from the other's.
    told.add_session_config_entry("session.force_spinning_stop", "1")
    pin_workers(told, options.threads)
    if options.fusion == "off":
        told.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if profile:
        told.enable_profiling = True
        told.profile_file_prefix = os.path.join(folder, "profile")
    if keep:
        _keep(told, folder)
    try:
        return ort.InferenceSession(subject.model, told, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EngineError(
            f"{subject.report.name}: onnxruntime refuses it: {first_line(error)}"
        ) from None


def _keep(told: Any, folder: str) -> None:
    told.optimized_model_filepath = os.path.join(folder, "optimised.onnx")
    entry = "session.optimized_model_external_initializers_"
    told.add_session_config_entry(f"{entry}file_name", "weights")
    told.add_session_config_entry(f"{entry}min_size_in_bytes", "256")
    with suppress(OSError):  # nobody needs the weights
        os.symlink(os.devnull, os.path.join(folder, "weights"))


def _optimised(folder: str) -> Program:
    import onnx

    path = os.path.join(folder, "optimised.onnx")
    return program_of(onnx.load(path, load_external_data=False))


def _values(given: dict[str, Any]) -> dict[str, Any]:
    make: Callable[..., Any] = _module().OrtValue.ortvalue_from_numpy
    return {name: make(array) for name, array in given.items()}


def _bound(session: Any, given: dict[str, Any]) -> Any:
    """Inputs in their place and outputs left where they are made: a run is the engine's alone."""
    binding = session.io_binding()
    for name, value in given.items():
        binding.bind_ortvalue_input(name, value)
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


def _failed(why: str, events: tuple[Event, ...], engine: Program, mapped: Mapped) -> str:
    """The layers of the operator that is named, else of the one after the last that ran."""
    name = re.search("Name:'([^']*)'", why)
    for group in mapped.groups if name else ():
        if any(engine.operators[at].name == name[1] for at in group.operators if name):
            return " + ".join(group.shown) or (name[1] if name else "")
    done = {at for at in located(events, engine.operators) if at is not None}
    for group in mapped.groups:
        if not set(group.operators) & done:
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


def _notes(engine: Program, options: Options, stopped: Stopped | None) -> tuple[str, ...]:
    notes = [stopped.why] if stopped else []
    if any(op.domain.endswith("nchwc") for op in engine.operators):
        notes.append(
            "onnxruntime holds images in blocks of channels (nchwc); weights are reordered for it "
            "once, in session_create, not in a run"
        )
    if options.fusion == "off":
        notes.append("fusion off: no graph optimisation at all, blocks of channels neither")
    return tuple(notes)
