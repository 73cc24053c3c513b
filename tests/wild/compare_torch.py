"""One model in layerscope and in PyTorch's counter: figures, reasons, refusals."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch

import layerscope
from tests.wild import reference_torch as reference
from tests.wild.rules import Row, explain

MOST_PARAMS = 400_000_000  # of a model that is built on the processor


class Built(msgspec.Struct, frozen=True):
    """A model, what it is called with, and a mask that it can be called with as well."""

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    mask: Mapping[str, Any] = {}


class Result(msgspec.Struct, frozen=True):
    """What came of one model, called with a mask or without."""

    package: str
    name: str
    outcome: str  # one of OUTCOMES
    device: str = ""
    macs: int | None = None  # ours
    reference: int | None = None
    params: int | None = None
    reasons: dict[str, int] = {}  # multiply-adds by reason
    unknown: dict[str, int] = {}  # operators without figures
    operators: tuple[str, ...] = ()  # of PyTorch, those that its layers come from
    message: str = ""
    seconds: float = 0.0


OUTCOMES = ("equal", "reason", "different", "refused", "unknown", "no reference")
BUILD = Callable[[str], Built]


class TimeLimit(BaseException):
    """A model takes too long; no `except Exception` of a package stops it."""


class NoInputs(Exception):
    """A model runs on none of the inputs that were tried; it has this many parameters."""

    def __init__(self, params: int, tried: str) -> None:
        super().__init__(f"no inputs found: {tried}")
        self.params = params


def limited(seconds: int, work: Callable[[], Any]) -> Any:
    """What work returns; TimeLimit after this many seconds."""

    def stop(*_: object) -> None:
        raise TimeLimit(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return work()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def said(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def compare(package: str, name: str, build: BUILD, seconds: int) -> list[Result]:
    """The results of one model: without a mask, and with one if it takes a mask."""
    start = time.perf_counter()
    try:
        found = limited(seconds, lambda: _compare(package, name, build))
    except (TimeLimit, MemoryError, RuntimeError) as error:  # of building it: ours are caught
        found = [Result(package, name, "no reference", message=said(error))]
    spent = (time.perf_counter() - start) / len(found)
    return [msgspec.structs.replace(result, seconds=round(spent, 2)) for result in found]


def _compare(package: str, name: str, build: BUILD) -> list[Result]:
    errors = []
    params = 0
    for device in ("meta", "cpu"):
        if device == "cpu" and params > MOST_PARAMS:
            errors.append(f"cpu: {params:,} parameters, at most {MOST_PARAMS:,} are built")
            break
        try:
            built = _on(device, name, build)
        except NoInputs as error:
            params = error.params
            errors.append(f"{device}: {error}")
            continue
        except Exception as error:
            errors.append(f"{device}, built: {said(error)}")
            continue
        params = sum(p.numel() for p in built.model.parameters())
        try:
            torch.manual_seed(0)  # sizes of a sound may depend on random numbers
            counted = reference.count(built.model, built.args, built.kwargs)
        except Exception as error:
            errors.append(f"{device}: {said(error)}")
            continue
        pair = Pair(built, _on(device, name, build).model)
        results = [_judge(Result(package, name, "", device), pair, built.kwargs, counted)]
        if built.mask:
            results.append(_masked(results[0], pair, counted))
        return results
    return [Result(package, name, "no reference", message="; ".join(errors))]


def _on(device: str, name: str, build: BUILD) -> Built:
    torch.manual_seed(0)
    with torch.device(device):
        built = build(name)
    built.model.eval()
    return built


class Pair(msgspec.Struct, frozen=True):
    """A model for the reference, and one for us: a forward may leave caches behind."""

    built: Built
    fresh: Any


def _masked(plain: Result, pair: Pair, unmasked: int) -> Result:
    """The result with a mask; the reference has none where it cannot run with one."""
    built = pair.built
    kwargs = {**built.kwargs, **built.mask}
    torch.manual_seed(0)
    try:
        counted = reference.count(built.model, built.args, kwargs)
    except Exception:
        counted = unmasked
    result = Result(plain.package, f"{plain.name} + mask", "", plain.device)
    return _judge(result, pair, kwargs, counted)


def _judge(result: Result, pair: Pair, kwargs: Mapping[str, Any], counted: int) -> Result:
    """The result with its outcome and figures."""
    built = pair.built
    params = sum(p.numel() for p in pair.fresh.parameters())
    torch.manual_seed(0)
    try:
        if built.args:
            report = layerscope.summary(pair.fresh, input_data=built.args, **kwargs, verbose=0)
        else:
            report = layerscope.summary(pair.fresh, input_data=dict(kwargs), verbose=0)
    except Exception as error:
        return msgspec.structs.replace(
            result, outcome="refused", reference=counted, params=params, message=said(error)
        )
    macs = int(report.total_macs)
    sources = {node.source.op for node in report.graph.nodes if node.source is not None}
    result = msgspec.structs.replace(
        result,
        macs=macs,
        reference=counted,
        params=params,
        unknown=dict(report.coverage.unknown),
        operators=tuple(sorted(sources - {""})),
    )
    if report.total_params != params:
        message = f"{report.total_params:,} parameters, the model has {params:,}"
        return msgspec.structs.replace(result, outcome="different", message=message)
    if type(report.total_macs) is not int:
        message = f"MACs are {type(report.total_macs).__name__}, expected int"
        return msgspec.structs.replace(result, outcome="different", message=message)
    if macs == counted:
        outcome = "unknown" if result.unknown else "equal"
        return msgspec.structs.replace(result, outcome=outcome)
    rows = [
        Row(layer.op, layer.ops.mac, layer.outputs[0].elements)
        for layer in report.layers
        if layer.ops.mac
    ]
    try:
        calls = reference.calls(built.model, built.args, kwargs)
    except Exception:
        calls = reference.calls(built.model, built.args, built.kwargs)
    reasons, left = explain(macs - counted, calls, rows)
    outcome = "different" if left else "reason"
    message = f"{left:,} of {macs - counted:,} without a reason" if left else ""
    return msgspec.structs.replace(
        result,
        outcome="unknown" if result.unknown else outcome,
        reasons=reasons,
        message=message,
    )
