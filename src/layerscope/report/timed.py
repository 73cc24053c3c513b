"""A measured run beside the report: rates, what a fused row moves, and the roof it is under."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from layerscope.ops import Gemm
from layerscope.report.measurement import LayerTime, Machine, Run
from layerscope.report.types import Layer, Report


class Roof(Struct, frozen=True):
    """The limit that a row is under, and how much of it the row reaches."""

    name: str  # compute, L2, L3, DRAM
    share: float


class Timed(Struct, frozen=True):
    """A row with its rates; figures are 0 where its layers have none."""

    row: LayerTime
    op: str
    main: str  # its layer with most operations
    flops: int
    macs: int
    read_bytes: int
    write_bytes: int
    weight_bytes: int
    gemm: Gemm | None
    share: float
    cumulative: float
    roof: Roof | None

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written; what stays inside a fused row is not."""
        return self.read_bytes + self.write_bytes

    @property
    def flops_s(self) -> float:
        """FLOPs a second."""
        return self.flops / self.row.time_s if self.row.time_s > 0 else 0.0

    @property
    def bytes_s(self) -> float:
        """Bytes a second."""
        return self.moved_bytes / self.row.time_s if self.row.time_s > 0 else 0.0

    @property
    def intensity(self) -> float:
        """FLOPs a byte."""
        return self.flops / self.moved_bytes if self.moved_bytes else 0.0


class Moved(Struct, frozen=True):
    """What layers run as one read and write, and the arrays among it."""

    read_bytes: int
    write_bytes: int
    weight_bytes: int


def timed(report: Report, run: Run, machine: Machine | None, *, sort: bool = False) -> list[Timed]:
    """Rows in order of execution, or longest first; shares are of the end-to-end time."""
    rows = list(run.rows)
    if sort:
        rows.sort(key=lambda row: -row.time_s)
    whole = run.timing.end_to_end_s
    readers: dict[str, list[str]] = {}
    for node in report.graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node.name)
    weights = report.totals.param_bytes
    made = []
    passed = 0.0
    for row in rows:
        passed += row.time_s
        layers = [report.by_name[name] for name in row.layers if name in report.by_name]
        if row.kind != "layer":
            layers = []
        moved = moved_by(layers, report, readers)
        main = max(layers, key=lambda layer: layer.cost.ops.flops, default=None)
        macs = sum(layer.cost.ops.mac for layer in layers)
        roof = None
        if machine is not None and layers and row.time_s > 0:
            dtype = report.float_dtype
            roof = roof_of(macs, moved, weights, machine, run.threads, dtype, row.time_s)
        made.append(
            Timed(
                row,
                main.op if main else "",
                main.name if main else row.name,
                sum(layer.ops.flops for layer in layers),
                macs,
                moved.read_bytes,
                moved.write_bytes,
                moved.weight_bytes,
                main.gemm if main else None,
                row.time_s / whole if whole else 0.0,
                passed / whole if whole else 0.0,
                roof,
            )
        )
    return made


def moved_by(layers: Iterable[Layer], report: Report, readers: dict[str, list[str]]) -> Moved:
    """Bytes that go in and out of layers that run as one."""
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


def roof_of(
    macs: int,
    moved: Moved,
    all_weights: int,
    machine: Machine,
    threads: int,
    dtype: str,
    time_s: float,
) -> Roof | None:
    """The limit that would take longest: products at their peak, or bytes from where they lie.

    Activations come from the smallest cache that holds them; weights from the L3 only if those of
    the whole network fit in it, since a run goes through all of them.
    """
    peak = machine.peak(dtype, threads)
    compute = 2 * macs / peak.flops.best if peak else 0.0
    acts = moved.read_bytes + moved.write_bytes - moved.weight_bytes
    near = _level(machine, threads, acts, ("L2", "L3", "DRAM"))
    far = _level(machine, threads, all_weights, ("L3", "DRAM"))
    memory = 0.0
    if near is not None:
        memory += acts / near[1]
    if far is not None:
        memory += moved.weight_bytes / far[1]
    if not compute and not memory:
        return None
    if compute >= memory:
        return Roof("compute", compute / time_s)
    heavier = far if far and near and moved.weight_bytes / far[1] > acts / near[1] else near
    return Roof((heavier or ("DRAM", 0.0))[0], memory / time_s)


def _level(
    machine: Machine, threads: int, size: int, names: tuple[str, ...]
) -> tuple[str, float] | None:
    """The first level that holds so many bytes, and its bytes a second."""
    for name in names:
        level = machine.level(name, threads)
        if level is None:
            continue
        holds = level.size_bytes * (threads if name == "L2" else 1)
        if name == "DRAM" or size <= holds:
            return name, level.rate.best
    return None
