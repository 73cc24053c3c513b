"""Memory of one training step: saved tensors, gradients, optimizer state."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.autograd import Kept, Status, kept
from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, storage_bytes

__all__ = ["STATES", "Kept", "Optimizer", "Training", "kept", "training"]
Optimizer = Literal[
    "sgd", "momentum", "adam", "adamw", "momentum8bit", "adam8bit", "adamw8bit"
]  # fmt: skip
# Elements of state per parameter. AdamW decays weights otherwise than Adam, with the same state.
STATES: dict[str, int] = {
    "sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "momentum8bit": 1, "adam8bit": 2,
    "adamw8bit": 2,
}  # fmt: skip
# bitsandbytes: a byte for each number and an fp32 scale for each block; small arrays are fp32.
EIGHT_BITS, BLOCK, LEAST_8BIT, F32_BYTES = "8bit", 256, 4096, 4


class Training(Struct, frozen=True):
    """Bytes of one training step, by use."""

    optimizer: str
    weights_bytes: int
    half_copy_bytes: int  # of the weights, in mixed precision
    gradient_bytes: int
    state_bytes: int
    kept_bytes: int
    working_bytes: int  # gradients of activations, of the layer with most
    checkpoints: int  # 0: all saved tensors are kept
    complete: bool
    kept_status: Status = "exact"  # of kept_bytes, compared with PyTorch's autograd on a CPU
    notes: tuple[str, ...] = ()  # why kept_bytes is an estimate, and of which layers
    zero_stage: int = 0  # bytes are those of one of `devices`
    devices: int = 1
    lora: int = 0  # rank of adapters; the rest is frozen

    @property
    def total_bytes(self) -> int:
        """Sum of all bytes."""
        return (
            self.weights_bytes
            + self.half_copy_bytes
            + self.gradient_bytes
            + self.state_bytes
            + self.kept_bytes
            + self.working_bytes
        )


def sharded(found: Training, stage: int, devices: int) -> Training:
    """The bytes of one device if state, from stage 2 on gradients, and in stage 3 weights are cut.

    Each device has its own batch. The layer whose weights are gathered in stage 3 is not counted.
    """

    def share(size: int, first: int) -> int:
        return -(-size // devices) if stage >= first else size

    return replace(
        found,
        weights_bytes=share(found.weights_bytes, 3),
        half_copy_bytes=share(found.half_copy_bytes, 3),
        gradient_bytes=share(found.gradient_bytes, 2),
        state_bytes=share(found.state_bytes, 1),
        zero_stage=stage,
        devices=devices,
    )


class TrainingSetup(Struct, frozen=True):
    """How a network is trained.

    Mixed precision keeps weights, gradients and state in fp32 beside a half-precision copy of the
    weights. The activations are those of the graph, which must then be bound to fp16 or bf16.
    """

    optimizer: str = "adam"
    mixed: bool = False
    checkpoint: bool = False


def training(
    graph: Graph, shapes: Shapes, costs: dict[str, Cost], setup: TrainingSetup
) -> Training:
    """Bytes of a training step."""
    mixed = setup.mixed
    used = [param for cost in costs.values() for param in cost.first]
    learns = _learns(graph, costs)
    params = [*used, *graph.unused]
    sizes = [storage_bytes(p.elements, "fp32") if mixed else p.bytes for p in params]
    # parameters that the forward does not use get no gradient, and so no optimizer state
    trained = [(size, p) for size, p, yes in zip(sizes, used, learns, strict=False) if yes]
    learned = sum(size for size, _ in trained)
    saved = kept(graph, shapes, costs)
    kept_bytes, checkpoints = saved.total_bytes, 0
    if setup.checkpoint:
        kept_bytes, checkpoints = _checkpointed(graph, shapes, saved)
    return Training(
        optimizer=setup.optimizer,
        weights_bytes=sum(sizes),
        half_copy_bytes=sum(p.elements * 2 for p in params if p.learnable) if mixed else 0,
        gradient_bytes=learned,
        state_bytes=sum(state_bytes(setup.optimizer, p.elements, size) for size, p in trained),
        kept_bytes=kept_bytes,
        working_bytes=_working(graph, shapes),
        checkpoints=checkpoints,
        complete=saved.complete,
        kept_status=saved.status,
        notes=saved.notes,
    )


def _learns(graph: Graph, costs: dict[str, Cost]) -> list[bool]:
    """Whether each array that the forward uses gets a gradient."""
    nodes = {node.name: node for node in graph.nodes}
    return [
        param.learnable and storage_of(nodes[name], param, nodes[name].ties) not in graph.frozen
        for name, cost in costs.items()
        for param in cost.first
    ]


def state_bytes(optimizer: str, elements: int, stored: int) -> int:
    """Bytes of the optimizer's state for one array of parameters, stored in so many bytes."""
    size = stored
    if optimizer.endswith(EIGHT_BITS):
        small = elements < LEAST_8BIT
        size = elements * F32_BYTES if small else elements + F32_BYTES * -(-elements // BLOCK)
    return STATES[optimizer] * size


def _working(graph: Graph, shapes: Shapes) -> int:
    """The largest gradients alive at once: of the outputs and inputs of one layer."""
    most = 0
    for node in graph.nodes:
        names = (*node.inputs, *node.outputs)
        most = max(most, sum(shapes.tensors[name].bytes for name in names))
    return most


def _checkpointed(graph: Graph, shapes: Shapes, saved: Kept) -> tuple[int, int]:
    """Bytes kept, and number of cuts, when only tensors between segments are kept.

    The rest is computed again. A cut is possible where a single tensor is alive. Segments are
    chosen greedily for many limits on their size, and the limit that keeps least (tensors between
    segments plus the largest segment) wins.
    """
    cut_points = _cut_points(graph, shapes)
    sizes = [saved.by_node[node.name] for node in graph.nodes]
    best = (saved.total_bytes, 0)
    limit = saved.total_bytes
    while limit > 0:
        between = largest = running = pending = cuts = 0
        candidate: tuple[int, int] | None = None  # running bytes up to it, bytes of its tensor
        for index, size in enumerate(sizes):
            if running + size > limit and candidate is not None:
                largest = max(largest, candidate[0])
                between += candidate[1]
                running -= candidate[0]
                cuts += 1
                candidate = None
            running += size
            if index in cut_points:
                candidate = (running, cut_points[index])
            pending = running
        largest = max(largest, pending)
        best = min(best, (between + largest, cuts))
        limit = min(limit * 9 // 10, largest - 1)
    return best


def _cut_points(graph: Graph, shapes: Shapes) -> dict[int, int]:
    """Indices of nodes after which one tensor is still needed -> bytes of that tensor."""
    last = {name: n for n, node in enumerate(graph.nodes) for name in node.inputs}
    alive: set[str] = {tensor.name for tensor in graph.inputs if tensor.name in last}
    found: dict[int, int] = {}
    for index, node in enumerate(graph.nodes):
        alive.update(name for name in node.outputs if last.get(name, index) > index)
        alive -= {name for name in node.inputs if last[name] <= index}
        if len(alive) == 1:
            found[index] = shapes.tensors[next(iter(alive))].bytes
    return found
