"""Measured rows with their rates, bytes moved, and the roofline limit of each."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from layerscope.ops import Gemm
from layerscope.report.measurement import LayerTime, Machine, Run
from layerscope.report.types import Layer, Report


class Roof(Struct, frozen=True):
    """The limit that bounds a row, and the share of it that the row attains."""

    name: str  # compute, L2, L3, DRAM
    share: float


class TimedRow(Struct, frozen=True):
    """A row with its figures and rates: 0 if its layers have none.

    A rate is None if the time or a layer of the row is unknown.
    """

    row: LayerTime
    op: str
    main: str  # layer with most operations
    flops: int
    macs: int
    read_bytes: int
    write_bytes: int
    weight_bytes: int
    gemm: Gemm | None
    share: float | None
    cumulative: float | None
    roof: Roof | None
    bound: bool = False  # `cumulative` lacks unknown times, so it is a lower bound
    is_complete: bool = True  # False: the figures lack an unknown layer

    @property
    def lacks_roof(self) -> bool:
        """Whether a layer has a roof that is unknown: no machine, time or figures for it."""
        does_work = self.flops > 0 or self.moved_bytes > 0 or not self.is_complete
        return self.roof is None and self.row.kind == "layer" and does_work

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, without tensors inside a fused row."""
        return self.read_bytes + self.write_bytes

    @property
    def flops_s(self) -> float | None:
        """FLOPs per second."""
        return _per_second(self.flops, self.row.time_s) if self.is_complete else None

    @property
    def bytes_s(self) -> float | None:
        """Bytes per second."""
        return _per_second(self.moved_bytes, self.row.time_s) if self.is_complete else None

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.moved_bytes if self.moved_bytes else 0.0


def _per_second(amount: int, seconds: float | None) -> float | None:
    return amount / seconds if seconds is not None and seconds > 0 else None


class Moved(Struct, frozen=True):
    """Bytes that fused layers read and write; weights are part of what they read."""

    read_bytes: int
    write_bytes: int
    weight_bytes: int


def timed(
    report: Report, run: Run, machine: Machine | None, *, sort: bool = False
) -> list[TimedRow]:
    """Rows in execution order, or longest first; shares are of the end-to-end time."""
    rows = list(run.rows)
    if sort:
        rows.sort(key=longest_first)
    whole = run.timing.end_to_end_s
    readers: dict[str, list[str]] = {}
    for node in report.graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node.name)
    roofline = None
    if machine is not None:
        threads = threads_of(run, machine)
        roofline = Roofline(
            machine, threads, report.float_dtype, report.totals.param_bytes - report.unused_bytes
        )
    found = []
    elapsed, unknown = 0.0, False
    for row in rows:
        elapsed += row.time_s or 0.0
        unknown = unknown or row.time_s is None
        layers = [report.by_name[name] for name in row.layers if name in report.by_name]
        if row.kind != "layer":
            layers = []
        moved = moved_by(layers, report, readers)
        main = max(layers, key=lambda layer: layer.cost.ops.flops, default=None)
        macs = sum(layer.cost.ops.mac for layer in layers)
        is_complete = not any(layer.lacks_figures for layer in layers)
        roof = None
        if (
            roofline is not None
            and layers
            and is_complete
            and row.time_s is not None
            and row.time_s > 0
        ):
            roof = roofline.roof(macs, moved, row.time_s)
        found.append(
            TimedRow(
                row,
                main.op if main else "",
                main.name if main else row.name,
                sum(layer.ops.flops for layer in layers),
                macs,
                moved.read_bytes,
                moved.write_bytes,
                moved.weight_bytes,
                main.gemm if main else None,
                row.time_s / whole if whole and row.time_s is not None else None,
                elapsed / whole if whole and row.time_s is not None else None,
                roof,
                unknown,
                is_complete,
            )
        )
    return found


def longest_first(row: LayerTime) -> float:
    """A sort key: unknown times first, as they may be the longest."""
    return float("-inf") if row.time_s is None else -row.time_s


def threads_of(run: Run, machine: Machine) -> int:
    """Threads whose limits apply to a run: all of the machine if the run does not say."""
    return machine.cores if run.threads is None else run.threads


def moved_by(layers: Iterable[Layer], report: Report, readers: dict[str, list[str]]) -> Moved:
    """Bytes read and written by layers that run as one."""
    layers = list(layers)
    names = {layer.name for layer in layers}
    inside = {tensor.name for layer in layers for tensor in layer.outputs}
    final = set(report.graph.outputs)
    read = write = weights = 0
    for layer in layers:
        own = sum(tensor.bytes for tensor in layer.inputs if tensor.name in inside)
        read += max(layer.cost.read_bytes - own, 0)
        weights += sum(param.bytes for param in layer.cost.params)
        for tensor in layer.outputs:
            outside = any(reader not in names for reader in readers.get(tensor.name, ()))
            if (outside or tensor.name in final) and layer.cost.write_bytes:
                write += tensor.bytes
    return Moved(read, write, min(weights, read))


class Roofline(Struct, frozen=True):
    """Limits of a machine for the layers of one network."""

    machine: Machine
    threads: int
    dtype: str
    network_weight_bytes: int

    def roof(self, macs: int, moved: Moved, time_s: float) -> Roof | None:
        """The slower of two limits: products at their peak rate, or bytes from their memory level.

        Activations come from the smallest cache that they fit in. Weights come from the L3 only if
        those of the whole network fit in it, since a run reads all of them.
        """
        peak = self.machine.peak(self.dtype, self.threads)
        compute = 2 * macs / peak.flops.best if peak else 0.0
        activations = moved.read_bytes + moved.write_bytes - moved.weight_bytes
        near = self._level(activations, ("L2", "L3", "DRAM"))
        far = self._level(self.network_weight_bytes, ("L3", "DRAM"))
        memory = 0.0
        if near is not None:
            memory += activations / near[1]
        if far is not None:
            memory += moved.weight_bytes / far[1]
        if not compute and not memory:
            return None
        if compute >= memory:
            return Roof("compute", compute / time_s)
        slower = near
        if far and near and moved.weight_bytes / far[1] > activations / near[1]:
            slower = far
        return Roof((slower or ("DRAM", 0.0))[0], memory / time_s)

    def _level(self, size: int, names: tuple[str, ...]) -> tuple[str, float] | None:
        """The first level with room for `size` bytes, and its bytes per second."""
        for name in names:
            level = self.machine.level(name, self.threads)
            if level is None:
                continue
            capacity = level.size_bytes * (self.threads if name == "L2" else 1)
            if name == "DRAM" or size <= capacity:
                return name, level.rate.best
        return None
