"""PyTorch, eager: the lowered network an operator at a time, tensors freed after their last reader.

oneDNN tells of the layout changes inside its convolutions when it is asked to be verbose, in a run
apart; they are rows of their own, taken out of the layer's time in the same proportion.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

from layerscope.engines import Progress, quiet
from layerscope.engines.attribution import Parts, account
from layerscope.engines.clock import Clock, Sample
from layerscope.engines.mapping import Group, Mapped
from layerscope.engines.onnx_nodes import Operator, Program
from layerscope.engines.torch_operators import OPERATORS
from layerscope.engines.workload import KINDS, WARM_UPS, Options, Subject, feeds, first_line
from layerscope.errors import EngineError, MissingExtra
from layerscope.interrupts import acknowledge
from layerscope.report.measurement import MemoryUse, Run, Timer


def version() -> str:
    """Of the installed engine."""
    return str(_module().__version__)


def _module() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("measuring with torch", "torch") from None
    return torch


def measure(
    subject: Subject, options: Options, progress: Progress = quiet
) -> tuple[Run, dict[str, Any]]:
    """Times of all layers, and the outputs of the last run by name."""
    torch = _module()
    steps = 1 + WARM_UPS + options.runs
    progress("load", 0, steps)
    started = Clock()
    network = _Network(subject)
    timers = [Timer("load_weights", 1, started.stop().wall_s)]
    given = network.feed()
    before = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    samples: list[Sample] = []
    plain: list[Sample] = []
    times: list[list[float]] = []
    note, code = "", 0
    made: dict[str, Any] = {}
    try:
        with torch.inference_mode():
            for n in range(WARM_UPS + options.runs):
                progress("warm up" if n < WARM_UPS else "run", 1 + n, steps)
                spent: list[float] = []
                clock = Clock()
                made = network.run(given, spent)
                passed = clock.stop()
                clock = Clock()
                network.run(given)
                if n >= WARM_UPS:
                    plain.append(clock.stop())
                    samples.append(passed)
                    times.append(spent)
            reorders = network.reorders(given)
            held = network.peak(given)
    except KeyboardInterrupt:
        acknowledge()
        if not plain:
            raise
        note, code = f"interrupted after {len(plain)} of {options.runs} runs", 130
        reorders, held = {}, None
    finally:
        torch.set_num_threads(before)
    progress("done", steps, steps)
    timers.append(Timer("run", len(samples), sum(sample.wall_s for sample in samples)))
    program, mapped, columns = _accounted(network, subject, times, reorders)
    predicted = network.planned() if held is not None else None
    run = account(
        "torch",
        version(),
        options,
        Parts(mapped, program, columns, samples, plain),
        subject.report,
        memory=MemoryUse(held, predicted, subject.report.memory.peak_bytes),
        timers=tuple(timers),
        notes=((note,) if note else ()) + ("torch runs every operator apart, fusing none",),
        complete=not note,
        code=code,
    )
    outputs = {name: made[name].numpy() for name in subject.program.outputs if name in made}
    return run, outputs


class _Network:
    """A model's operators bound to PyTorch calls, and its arrays."""

    def __init__(self, subject: Subject) -> None:
        import onnx
        from onnx import numpy_helper

        torch = _module()
        self.torch, self.subject = torch, subject
        model = subject.model
        proto = onnx.load(model) if isinstance(model, str) else onnx.load_from_string(model)
        self.stored: dict[str, Any] = {
            each.name: torch.from_numpy(numpy_helper.to_array(each).copy())
            for each in proto.graph.initializer
        }
        self.steps: list[tuple[Any, dict[str, Any], list[str], list[str], list[str]]] = []
        self.places: list[int] = []  # of each step in the subject's program
        self.asked = [_Asked(each) for each in proto.graph.input if each.name not in self.stored]
        last: dict[str, int] = {}
        for n, node in enumerate(proto.graph.node):
            for name in node.input:
                last[name] = n
        kept = {each.name for each in proto.graph.output}
        moving = {each.name for each in self.asked}
        for n, node in enumerate(proto.graph.node):
            told = {each.name: _value(each) for each in node.attribute}
            names = list(node.input)
            if node.op_type in ("Constant", "ConstantOfShape") or not moving & set(names):
                self._fold(node.op_type, told, names, list(node.output))
                continue
            moving.update(node.output)
            call = self._call(node.op_type, node.name)
            done = [name for name in set(names) if last[name] == n and name not in kept]
            free = [name for name in done if name in moving]
            self.steps.append((call, told, names, list(node.output), free))
            self.places.append(n)

    def _call(self, kind: str, name: str) -> Any:
        if kind not in OPERATORS:
            raise EngineError(
                f"{self.subject.report.name}: torch refuses it: no call for {kind} of {name}"
            )
        return OPERATORS[kind]

    def _fold(self, kind: str, told: dict[str, Any], inputs: list[str], outputs: list[str]) -> None:
        """Compute what depends on no input once."""
        torch = self.torch
        if kind == "Constant":
            self.stored[outputs[0]] = torch.from_numpy(told["value"].copy())
            return
        args = [self.stored[name] for name in inputs]
        if kind == "ConstantOfShape":
            value = torch.from_numpy(told["value"].copy())
            self.stored[outputs[0]] = value.expand(args[0].tolist()).clone()
            return
        made = self._call(kind, outputs[0])(torch, told, *args)
        for name, value in zip(outputs, (made,) if torch.is_tensor(made) else made, strict=False):
            self.stored[name] = value.contiguous()

    def feed(self) -> dict[str, Any]:
        made = feeds(self.asked, self.subject.report)
        return {name: self.torch.from_numpy(array) for name, array in made.items()}

    def run(
        self, given: dict[str, Any], spent: list[float] | None = None, watch: Any = None
    ) -> dict[str, Any]:
        """Every operator in order; with `spent`, the seconds of each."""
        held = dict(given)
        stored, torch = self.stored, self.torch
        for call, told, names, outputs, free in self.steps:
            args = [
                None if not name else held[name] if name in held else stored[name] for name in names
            ]
            started = time.perf_counter()
            try:
                made = call(torch, told, *args)
            except (RuntimeError, NotImplementedError, TypeError) as error:
                where = outputs[0]
                raise EngineError(
                    f"{self.subject.report.name}: torch fails in {where}: {first_line(error)}"
                ) from None
            if spent is not None:
                spent.append(time.perf_counter() - started)
            if torch.is_tensor(made):
                held[outputs[0]] = made
            else:
                held.update(zip(outputs, made, strict=False))
            del made, args
            if watch is not None:
                watch(held)
            for name in free:
                held.pop(name, None)
        return held

    def peak(self, given: dict[str, Any]) -> int:
        """Bytes of all storages alive at once at most, inputs aside."""
        most = 0
        own = {tensor.untyped_storage().data_ptr() for tensor in given.values()}
        own |= {tensor.untyped_storage().data_ptr() for tensor in self.stored.values()}

        def watch(held: dict[str, Any]) -> None:
            nonlocal most
            alive = {}
            for tensor in held.values():
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in own:
                    alive[storage.data_ptr()] = storage.nbytes()
            most = max(most, sum(alive.values()))

        self.run(given, watch=watch)
        return most

    def planned(self) -> int | None:
        """The peak that liveness says, views sharing and nothing overwritten."""
        report = self.subject.report
        return None if report.coverage.unknown else report.memory.peak_bytes - self._inputs_held()

    def _inputs_held(self) -> int:
        """Bytes of inputs that are counted at the source's peak."""
        names = {tensor.name for tensor in self.subject.report.inputs}
        return sum(size for name, size in self.subject.report.memory.peak_alive if name in names)

    def reorders(self, given: dict[str, Any]) -> dict[int, float]:
        """Share of each step's time that oneDNN spends in reorders, told by a verbose run."""
        backends = self.torch.backends.mkldnn
        if not backends.is_available() or not hasattr(backends, "verbose"):
            return {}
        found: dict[int, float] = {}
        with _captured() as text:
            marks: list[int] = []
            spent: list[float] = []
            with backends.verbose(backends.VERBOSE_ON):
                self.run(given, spent, watch=lambda held: marks.append(text.tell_end()))
            lines = text.lines()
        for step, (begin, end) in enumerate(zip([0, *marks[:-1]], marks, strict=True)):
            seconds = sum(ms for at, ms in lines if begin <= at < end) / 1e3
            if seconds and spent[step]:
                found[step] = min(seconds / spent[step], 1.0)
        return found


class _Captured:
    """What C libraries write to the standard output meanwhile."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def tell_end(self) -> int:
        """Bytes written so far."""
        return int(os.fstat(self.file.fileno()).st_size)

    def lines(self) -> list[tuple[int, float]]:
        """Where each reorder stands, and its milliseconds."""
        self.file.seek(0)
        found, at = [], 0
        for line in self.file:
            fields = line.decode("ascii", "replace").strip().split(",")
            if "reorder" in fields and "exec" in fields:
                try:
                    found.append((at, float(fields[-1])))
                except ValueError:
                    continue
            at += len(line)
        return found


@contextmanager
def _captured() -> Iterator[_Captured]:
    sys.stdout.flush()
    kept = os.dup(1)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield _Captured(file)
        finally:
            os.dup2(kept, 1)
            os.close(kept)


class _Asked:
    """An input of an ONNX model as onnxruntime would tell of it."""

    def __init__(self, value: Any) -> None:
        from onnx import helper

        self.name = value.name
        kind = value.type.tensor_type
        self.shape = [dim.dim_value or 1 for dim in kind.shape.dim]
        kinds = {value: key for key, value in KINDS.items()}
        self.type = kinds.get(str(helper.tensor_dtype_to_np_dtype(kind.elem_type)), "")


def _value(attribute: Any) -> Any:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "data_type"):
        return numpy_helper.to_array(value)
    return value


def _accounted(
    network: _Network, subject: Subject, times: list[list[float]], reorders: dict[int, float]
) -> tuple[Program, Mapped, list[dict[int, float]]]:
    """Steps by layer, with what oneDNN reorders as layout rows."""
    operators = [subject.program.operators[n] for n in network.places]
    owners = [subject.owners[n] for n in network.places]
    groups: dict[str, list[int]] = {}
    for step, owner in enumerate(owners):
        groups.setdefault(owner, []).append(step)
    found = [Group((owner,) if owner else (), (owner,), tuple(s)) for owner, s in groups.items()]
    columns = [dict(enumerate(run)) for run in times]
    for step, share in reorders.items():
        at = len(operators)
        operators.append(Operator("Reorder", f"{owners[step]} reorders", (), ()))
        found.append(Group((owners[step],), (owners[step],), (at,), True))
        for column in columns:
            column[at] = column[step] * share
            column[step] *= 1 - share
    run = set(owners)
    removed = tuple(dict.fromkeys(owner for owner in subject.owners if owner and owner not in run))
    source = subject.program
    program = Program(tuple(operators), source.inputs, source.stored, source.outputs)
    return program, Mapped(tuple(found), removed, {}), columns
