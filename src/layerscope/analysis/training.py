"""Memory of one training step: saved tensors, gradients, optimizer state."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.analysis.autograd import Kept, Status, kept
from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, storage_bytes

__all__ = ["STATES", "Kept", "Optimizer", "Training", "kept", "training"]
Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
# Elements of state per parameter. AdamW decays weights otherwise than Adam, with the same state.
STATES: dict[str, int] = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}


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
    params = [*used, *graph.unused]
    sizes = [storage_bytes(p.elements, "fp32") if mixed else p.bytes for p in params]
    # parameters that the forward does not use get no gradient, and so no optimizer state
    learned = sum(size for size, param in zip(sizes, used, strict=False) if param.learnable)
    saved = kept(graph, shapes, costs)
    kept_bytes, checkpoints = saved.total_bytes, 0
    if setup.checkpoint:
        kept_bytes, checkpoints = _checkpointed(graph, shapes, saved)
    return Training(
        optimizer=setup.optimizer,
        weights_bytes=sum(sizes),
        half_copy_bytes=sum(p.elements * 2 for p in params if p.learnable) if mixed else 0,
        gradient_bytes=learned,
        state_bytes=STATES[setup.optimizer] * learned,
        kept_bytes=kept_bytes,
        working_bytes=_working(graph, shapes),
        checkpoints=checkpoints,
        complete=saved.complete,
        kept_status=saved.status,
        notes=saved.notes,
    )


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
