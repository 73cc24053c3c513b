"""Limits of this machine (roofs of the roofline model).

Peak rates of matrix products by dtype and threads, and the bandwidth of each memory level.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from statistics import median
from threading import Barrier, BrokenBarrierError, Thread
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from layerscope.engines import Progress, quiet
from layerscope.engines.affinity import cpus, pinned, worker_affinities
from layerscope.engines.cache import forget, keep, load
from layerscope.errors import UsageError
from layerscope.extras import need
from layerscope.report.measurement import Level, Machine, Peak, Rate
from layerscope.report.quantities import count_of

if TYPE_CHECKING:
    from layerscope.engines import Array

T = TypeVar("T")
PRODUCTS = ((384, 384, 384), (768, 768, 768), (1536, 1536, 1536), (3136, 256, 2304))  # M, N, K
SECONDS = 0.4  # of each measurement
ROUNDS = 3  # of all measurements: a shared machine is slower for seconds at a time
DTYPES = ("fp32", "fp64", "int8")
MOST_THREADS = 1024
LEAST = 5  # runs of each at least
MOST_BUFFER = 1 << 30  # bytes of a buffer that must not fit into a cache


def cores() -> int:
    """CPUs this process may use."""
    return len(cpus()) or os.cpu_count() or 1


def threads_of(requested: int | None) -> int:
    """Threads to run on: as many as requested, else one per CPU."""
    if requested is not None and not 1 <= count_of(requested, "--threads") <= MOST_THREADS:
        raise UsageError(f"--threads {requested}, expected 1 to {MOST_THREADS:,}")
    return cores() if requested is None else requested


def identity() -> str:
    """Name of the processor, number of CPUs, and widest vector instructions."""
    return f"{cpu_name()}, {cores()} CPUs{_instructions()}"


def cpu_name() -> str:
    """Name and model number of the processor."""
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    model = _cpuinfo("model")
    return f"{' '.join(name.split())} model {model}" if model else " ".join(name.split())


def _instructions() -> str:
    flags = set(_cpuinfo("flags").split())
    widest = next((f for f in ("amx_tile", "avx512f", "avx2", "avx") if f in flags), "")
    return f", {widest}" if widest else ""


def _cpuinfo(key: str) -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def caches() -> dict[str, int]:
    """Bytes of each cache level by name (L1, L2, L3), as far as the system reports them."""
    found: dict[str, int] = {}
    base = "/sys/devices/system/cpu/cpu0/cache"
    with suppress(OSError):
        for entry in os.listdir(base):
            with suppress(OSError, ValueError):
                level = _read(f"{base}/{entry}/level")
                if _read(f"{base}/{entry}/type") == "Instruction":
                    continue
                size = _read(f"{base}/{entry}/size")
                unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
                found[f"L{level}"] = int(size.rstrip("KM")) * unit
    return found


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def cached_machine() -> Machine | None:
    """Limits measured earlier on this processor, None without any."""
    found = load("machine", identity(), Machine)
    if found is None:
        return None
    rates = [peak.flops.best for peak in found.peaks] + [each.rate.best for each in found.levels]
    if not rates or min(rates) <= 0:
        forget("machine", identity(), "a limit that is not above 0")
        return None
    return found


def measure_machine(progress: Progress = quiet) -> Machine:
    """Measure the limits, and cache them for this processor."""
    return _kept(_measured(sorted({1, cores()}), DTYPES, ROUNDS, progress))


def roofs_now(threads: int, dtype: str = "fp32") -> Machine:
    """Measure the limits once for that number of threads, without caching them."""
    return _measured([threads], (dtype,), 1, quiet)


def raised(machine: Machine, threads: int, dtype: str, progress: Progress = quiet) -> Machine:
    """Measure the limits for that number of threads again and keep the higher ones."""
    found = _measured([threads], (dtype,), 1, progress)
    return _kept(replace(_higher(machine, found), measured=found.measured))


def _kept(machine: Machine) -> Machine:
    keep("machine", identity(), machine)
    return machine


def _measured(
    counts: list[int], dtypes: tuple[str, ...], rounds: int, progress: Progress
) -> Machine:
    need("measuring this machine", "measure", "onnxruntime", "onnx", "numpy")
    jobs = [*_peaks(counts, dtypes), *_levels(counts)]
    machine = Machine(cpu=identity(), cores=cores(), peaks=(), levels=())
    for n in range(rounds):
        done: list[Peak | Level | None] = []
        for m, (what, job) in enumerate(jobs):
            progress(what, n * len(jobs) + m, rounds * len(jobs))
            done.append(job())
        found = replace(
            machine,
            peaks=tuple(each for each in done if isinstance(each, Peak)),
            levels=tuple(each for each in done if isinstance(each, Level)),
        )
        machine = _higher(machine, found)
    progress("done", rounds * len(jobs), rounds * len(jobs))
    return replace(machine, measured=datetime.now(UTC).isoformat(timespec="seconds"))


def _higher(first: Machine, second: Machine) -> Machine:
    """The higher of each limit: a measurement is never too fast."""
    peaks = {(each.dtype, each.threads): each for each in first.peaks}
    for peak in second.peaks:
        earlier = peaks.get((peak.dtype, peak.threads))
        if earlier is None or peak.flops.best > earlier.flops.best:
            peaks[peak.dtype, peak.threads] = peak
    levels = {(each.name, each.threads): each for each in first.levels}
    for level in second.levels:
        other = levels.get((level.name, level.threads))
        if other is None or level.rate.best > other.rate.best:
            levels[level.name, level.threads] = level
    return replace(first, peaks=tuple(peaks.values()), levels=tuple(levels.values()))


Job = tuple[str, Callable[[], Peak | Level | None]]


def _peaks(counts: list[int], dtypes: tuple[str, ...]) -> Iterator[Job]:
    for threads in counts:
        for dtype in dtypes:
            what = f"products in {dtype} on {_threads(threads)}"
            yield what, partial(_peak, dtype, threads)


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _levels(counts: list[int]) -> Iterator[Job]:
    sizes = caches()
    for threads in counts:
        for name in ("L2", "L3", "DRAM"):
            if name in sizes or name == "DRAM":
                what = f"{name} on {_threads(threads)}"
                yield what, partial(_level, name, threads, sizes)


def _peak(dtype: str, threads: int) -> Peak | None:
    """The fastest of a few matrix products in onnxruntime; None if it has none in that dtype."""
    rates: dict[tuple[int, int, int], Rate] = {}
    for size in PRODUCTS:
        try:
            run = product_of(dtype, threads, size)
        except Exception:  # no kernel for that dtype
            return None
        m, n, k = size
        with pinned(threads):
            rates[size] = _rate(run, 2 * m * n * k, SECONDS / len(PRODUCTS))
    best = max(rates.values(), key=lambda rate: rate.best)
    return Peak(dtype, threads, best, "onnxruntime")


def product_of(dtype: str, threads: int, size: tuple[int, int, int]) -> Callable[[], object]:
    """A function that multiplies an input matrix with a constant one."""
    import numpy
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    m, n, k = size
    source = numpy.random.default_rng(0)
    kinds: dict[str, tuple[int, type[numpy.generic], str]] = {
        "fp32": (TensorProto.FLOAT, numpy.float32, "MatMul"),
        "fp64": (TensorProto.DOUBLE, numpy.float64, "MatMul"),
        "int8": (TensorProto.UINT8, numpy.uint8, "MatMulInteger"),
    }
    kind, numpy_type, op = kinds[dtype]
    result = TensorProto.INT32 if dtype == "int8" else kind
    given = (source.random((m, k)) * 100).astype(numpy_type)
    stored = (source.random((k, n)) * 100).astype(numpy.int8 if dtype == "int8" else numpy_type)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", kind, [m, k])],
        [helper.make_tensor_value_info("y", result, [m, n])],
        [numpy_helper.from_array(stored, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    # Threads that wait by spinning would take the CPU from the next measurement.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    for key, value in worker_affinities(threads).items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    x = {"x": onnxruntime.OrtValue.ortvalue_from_numpy(given)}
    return lambda: session.run_with_ort_values(["y"], x)


def _level(name: str, threads: int, sizes: dict[str, int]) -> Level | None:
    """Bytes per second of copies within that memory level or of reads, whichever are higher."""
    import numpy

    if name == "DRAM":
        each = min(max(sizes.get("L3", 64 << 20), 64 << 20), MOST_BUFFER // 2)
    elif name == "L3":
        # More than the L2 of all threads, and well within the share of the L3.
        each = min(max(2 * sizes.get("L2", 1 << 20), 4 << 20), sizes["L3"] // (3 * threads))
    else:
        each = sizes["L2"] // 4
    pairs = [
        (numpy.ones(each // 4, numpy.float32), numpy.ones(each // 4, numpy.float32))
        for _ in range(threads)
    ]
    repeats = 1 if name == "DRAM" else max(1, (32 << 20) // each)

    def copy(pair: tuple[Array, Array]) -> None:
        for _ in range(repeats):
            numpy.copyto(pair[0], pair[1])

    def read(pair: tuple[Array, Array]) -> None:
        for _ in range(repeats):
            numpy.maximum.reduce(pair[0])

    moved = each * repeats * threads
    rates = (
        _rate(_in_threads(copy, pairs), 2 * moved, SECONDS / 2),
        _rate(_in_threads(read, pairs), moved, SECONDS / 2),
    )
    return Level(name, threads, sizes.get(name, 0), max(rates, key=lambda rate: rate.best))


def _in_threads(work: Callable[[T], None], parts: list[T]) -> Callable[[], float]:
    """A function that works on all parts at once, a thread each, and returns the seconds."""

    def run() -> float:
        if len(parts) == 1:
            started = time.perf_counter()
            work(parts[0])
            return time.perf_counter() - started
        gate = Barrier(len(parts) + 1)
        threads = [Thread(target=_wait_and_work, args=(gate, work, part)) for part in parts]
        try:
            for thread in threads:
                thread.start()
            gate.wait()
        except BaseException:  # Ctrl-C: the others would wait at the barrier forever
            gate.abort()
            raise
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        return time.perf_counter() - started

    return run


def _wait_and_work(gate: Barrier, work: Callable[[T], None], part: T) -> None:
    with suppress(BrokenBarrierError):
        gate.wait()
        work(part)


def _rate(run: Callable[[], object], amount: float, seconds: float) -> Rate:
    """Amount per second over as many runs as fit into the seconds.

    A run that returns a float has measured its own seconds.
    """
    run()
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while len(rates) < LEAST or time.perf_counter() < until:
        started = time.perf_counter()
        result = run()
        passed = result if isinstance(result, float) else time.perf_counter() - started
        rates.append(amount / passed)
    return Rate(max(rates), median(rates), len(rates))
