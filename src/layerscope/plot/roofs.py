"""The limits of a machine that a roofline draws: peaks by dtype, and bandwidths."""

from __future__ import annotations

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.report import Layer, Report
from layerscope.report.measurement import STORED_AS, Level, Machine, Measurement, Peak
from layerscope.report.timed import threads_of

LEVELS = ("L2", "L3", "DRAM")
NO_ROOF = (
    "run `layerscope machine` once to measure this machine, or name another one with --on NAME "
    "(layerscope machine --list)"
)


class DrawnRoofs(Struct, frozen=True):
    """The limits of a machine that apply to one network."""

    machine: Machine
    peaks: dict[str, Peak]  # by dtype, that of the network first
    levels: tuple[Level, ...]
    dtype: str  # of the products of the network's own dtype

    @property
    def dram_bytes_s(self) -> float:
        """Bytes per second of DRAM."""
        found = [level.rate.best for level in self.levels if level.name == "DRAM"]
        if not found:
            raise UsageError(f"{self.machine.cpu}: no bandwidth of DRAM is known; {NO_ROOF}")
        return found[0]

    def peak(self, layer: Layer) -> Peak:
        """The highest peak of the dtypes of a layer's tensors; without any that of the network."""
        kinds = {tensor.dtype for tensor in (*layer.inputs, *layer.outputs)}
        kinds |= {param.dtype for param in layer.cost.params}
        if STORED_AS.get(self.dtype, self.dtype) in kinds:
            kinds = kinds - {STORED_AS.get(self.dtype, "")} | {self.dtype}
        found = [self.peaks[kind] for kind in sorted(kinds) if kind in self.peaks]
        return max(found, key=lambda peak: peak.flops.best, default=self.peaks[self.dtype])

    def attainable(self, layer: Layer) -> float:
        """FLOP/s of a layer at most, if its bytes come from DRAM."""
        intensity = float(layer.intensity or 0)
        return min(self.peak(layer).flops.best, intensity * self.dram_bytes_s)


def roofs_of(machine: Machine, dtype: str, threads: int) -> DrawnRoofs:
    """The limits of a machine for products in a dtype; raises if it has no peak for it."""
    kinds = tuple(dict.fromkeys(peak.dtype for peak in machine.peaks))
    if dtype not in kinds:
        raise UsageError(
            f"dtype {dtype}: {machine.cpu} has no peak for it; --dtype can be "
            f"{', '.join(kinds) or 'nothing: it has no peaks'}"
        )
    peaks = {kind: machine.peak(kind, threads) for kind in (dtype, *kinds)}
    levels = (machine.level(name, threads) for name in LEVELS)
    kept = tuple(level for level in levels if level is not None)
    return DrawnRoofs(machine, {k: p for k, p in peaks.items() if p is not None}, kept, dtype)


def roofs_of_run(report: Report, found: Measurement) -> DrawnRoofs | None:
    """The limits of the machine of a run; None if they are unknown for its dtype."""
    machine = found.machine
    if machine is None:
        return None
    threads = threads_of(found.runs[0], machine)
    if machine.peak(report.float_dtype, threads) is None:
        return None
    return roofs_of(machine, report.float_dtype, threads)


def used_dtypes(report: Report, roofs: DrawnRoofs) -> set[str]:
    """Dtypes of the products of a network."""
    return {roofs.peak(layer).dtype for layer in report.layers if layer.ops.mac} or {roofs.dtype}


def source_of(roofs: DrawnRoofs) -> str:
    """The machine, and where its limits come from."""
    machine = roofs.machine
    when = f" {machine.measured[:10]}" if machine.measured else ""
    return f"Roofs of {machine.cpu}, {machine.source}{when}"


def why_no_roofs(report: Report, found: Measurement) -> str:
    """Why a run has no roofs."""
    if found.machine is None:
        return (
            "the run has none; name a machine with --on NAME, or run `layerscope machine` and "
            "measure again"
        )
    kinds = ", ".join(dict.fromkeys(peak.dtype for peak in found.machine.peaks))
    return f"{found.machine.cpu} has no peak for {report.float_dtype}, only for {kinds or 'none'}"
