"""OpenVINO's CPU plugin: its counters are running means since it compiled, and are taken apart."""

from __future__ import annotations

from typing import Any

from layerscope.engines import Progress, quiet
from layerscope.engines.attribution import Parts, account
from layerscope.engines.clock import Clock, Sample
from layerscope.engines.mapping import map_operators
from layerscope.engines.onnx_nodes import Operator, Program
from layerscope.engines.workload import KINDS, WARM_UPS, Options, Subject, feeds, first_line
from layerscope.errors import EngineError, MissingExtra
from layerscope.interrupts import acknowledge
from layerscope.report.measurement import MemoryUse, Run, Timer

CONSTANT = ("Const", "Constant")


def version() -> str:
    """Of the installed engine."""
    return str(_module().__version__).partition("-")[0]


def _module() -> Any:
    try:
        import openvino
    except ImportError:
        raise MissingExtra("measuring with openvino", "openvino") from None
    return openvino


def measure(
    subject: Subject, options: Options, progress: Progress = quiet
) -> tuple[Run, dict[str, Any]]:
    """Times of all layers, and the outputs of the last run by name."""
    steps = 1 + WARM_UPS + options.runs
    progress("compile", 0, steps)
    started = Clock()
    profiled = _compiled(subject, options, profile=True)
    timers = [Timer("compile", 1, started.stop().wall_s)]
    plain = _compiled(subject, options, profile=False)
    asked = [_Asked(each) for each in profiled.inputs]
    started = Clock()
    given = feeds(asked, subject.report)
    timers.append(Timer("set_inputs", 1, started.stop().wall_s))
    one, other = profiled.create_infer_request(), plain.create_infer_request()
    names = [each.get_any_name() for each in profiled.outputs]
    samples: list[Sample] = []
    unprofiled: list[Sample] = []
    counted: list[dict[str, float]] = []
    note = ""
    code = 0
    try:
        for n in range(WARM_UPS + options.runs):
            progress("warm up" if n < WARM_UPS else "run", 1 + n, steps)
            clock = Clock()
            one.infer(given)
            samples.append(clock.stop())
            counted.append({each.node_name: _seconds(each) for each in one.profiling_info})
            clock = Clock()
            other.infer(given)
            unprofiled.append(clock.stop())
    except KeyboardInterrupt:
        acknowledge()
        if len(unprofiled) <= WARM_UPS:
            raise
        done = len(unprofiled) - WARM_UPS
        note, code = f"interrupted after {done} of {options.runs} runs", 130
    except Exception as error:
        raise EngineError(f"{subject.report.name}: openvino fails: {first_line(error)}") from None
    samples, counted = samples[: len(unprofiled)], counted[: len(unprofiled)]
    program, keys = _program(profiled, subject)
    times = [
        {keys[name]: time for name, time in run.items() if name in keys} for run in _apart(counted)
    ]
    progress("done", steps, steps)
    outputs = {name: one.get_output_tensor(n).data.copy() for n, name in enumerate(names)}
    kept = samples[WARM_UPS:]
    timers.append(Timer("run", len(kept), sum(sample.wall_s for sample in kept)))
    mapped = map_operators(subject.program, subject.owners, program)
    run = account(
        "openvino",
        version(),
        options,
        Parts(mapped, program, times[WARM_UPS:], kept, unprofiled[WARM_UPS:]),
        subject.report,
        memory=MemoryUse(None, None, subject.report.memory.peak_bytes),
        timers=tuple(timers),
        notes=(note,) if note else (),
        complete=not note,
        code=code,
    )
    return run, outputs


class _Asked:
    """An input of a compiled model as onnxruntime would tell of it."""

    def __init__(self, port: Any) -> None:
        self.name = port.get_any_name()
        shape = port.get_partial_shape()
        self.shape = [int(d.get_length()) if d.is_static else 1 for d in shape]
        kinds = {value: key for key, value in KINDS.items()}
        self.type = kinds[str(port.get_element_type().to_dtype())]


def _compiled(subject: Subject, options: Options, *, profile: bool) -> Any:
    openvino = _module()
    core = openvino.Core()
    told = {
        "PERF_COUNT": profile,
        "INFERENCE_NUM_THREADS": options.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # bf16, which it would take, is not what was asked
    }
    try:
        return core.compile_model(core.read_model(subject.model), "CPU", told)
    except Exception as error:
        raise EngineError(
            f"{subject.report.name}: openvino refuses it: {first_line(error)}"
        ) from None


def _seconds(info: Any) -> float:
    return float(info.real_time.total_seconds()) if "EXECUTED" in str(info.status) else 0.0


def _apart(means: list[dict[str, float]]) -> list[dict[str, float]]:
    """Times of each run from means over all runs so far: n·mean(n) − (n−1)·mean(n−1)."""
    found: list[dict[str, float]] = []
    before: dict[str, float] = {}
    for n, now in enumerate(means, 1):
        found.append({k: max(n * v - (n - 1) * before.get(k, 0.0), 0.0) for k, v in now.items()})
        before = now
    return found


def _program(compiled: Any, subject: Subject) -> tuple[Program, dict[str, int]]:
    """Operators that run, each with the output of the last source operator that went into it."""
    position = {op.name: n for n, op in enumerate(subject.program.operators)}
    operators: list[Operator] = []
    keys: dict[str, int] = {}
    made: dict[str, tuple[str, ...]] = {}
    for op in compiled.get_runtime_model().get_ordered_ops():
        told = op.get_rt_info()
        name = op.get_friendly_name()
        kind = str(_told(told, "layerType"))
        if kind in CONSTANT:
            continue
        if kind in ("Input", "Parameter"):
            made[name] = (name,)
            continue
        fused = [n for n in str(_told(told, "originalLayersNames")).split(",") if n in position]
        inputs = tuple(
            output
            for port in op.inputs()
            for output in made.get(port.get_source_output().get_node().get_friendly_name(), ())
        )
        if fused and kind != "Reorder":
            outputs = subject.program.operators[max(position[n] for n in fused)].outputs
        else:
            outputs = (f"openvino:{name}",)
        made[name] = outputs
        keys[name] = len(operators)
        operators.append(Operator(kind, name, inputs, outputs))
    source = subject.program
    return Program(tuple(operators), source.inputs, source.stored, source.outputs), keys


def _told(info: Any, key: str) -> Any:
    if key not in info:
        return ""
    value = info[key]
    return value.astype(str) if hasattr(value, "astype") else value
