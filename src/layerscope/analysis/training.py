"""Memory of training: what is kept for the backward pass, gradients, optimizer state."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.analysis.autograd import Kept, Status, kept
from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, storage_bytes

__all__ = ["STATES", "Kept", "Optimizer", "Training", "kept", "training"]
Optimizer = Literal["sgd", "momentum", "adam"]
STATES: dict[str, int] = {"sgd": 0, "momentum": 1, "adam": 2}  # numbers kept per parameter


class Training(Struct, frozen=True):
    """Bytes of one training step, by what holds them."""

    optimizer: str
    weights_bytes: int
    half_copy_bytes: int  # of the weights, in mixed precision
    gradient_bytes: int
    state_bytes: int
    kept_bytes: int
    working_bytes: int  # gradients of activations at the widest layer
    checkpoints: int  # 0: everything is kept
    complete: bool
    kept_status: Status = "exact"  # of the bytes kept, against PyTorch's autograd on a CPU
    notes: tuple[str, ...] = ()  # why they are an estimate, and of which layers

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return (
            self.weights_bytes
            + self.half_copy_bytes
            + self.gradient_bytes
            + self.state_bytes
            + self.kept_bytes
            + self.working_bytes
        )


def training(
    graph: Graph,
    shapes: Shapes,
    costs: dict[str, Cost],
    *,
    optimizer: str,
    mixed: bool = False,
    checkpoint: bool = False,
) -> Training:
    """Bytes of a training step.

    Mixed precision keeps weights, gradients and state in fp32 beside a half-precision copy of the
    weights; the activations are those of the graph, which is then to be bound to fp16 or bf16.
    """
    params = [param for cost in costs.values() for param in cost.first]
    held = [storage_bytes(p.elements, "fp32") if mixed else p.bytes for p in params]
    learned = sum(n for n, param in zip(held, params, strict=True) if param.learnable)
    saved = kept(graph, shapes, costs)
    kept_bytes, checkpoints = saved.total_bytes, 0
    if checkpoint:
        kept_bytes, checkpoints = _checkpointed(graph, shapes, saved)
    return Training(
        optimizer=optimizer,
        weights_bytes=sum(held),
        half_copy_bytes=sum(p.elements * 2 for p in params if p.learnable) if mixed else 0,
        gradient_bytes=learned,
        state_bytes=STATES[optimizer] * learned,
        kept_bytes=kept_bytes,
        working_bytes=_working(graph, shapes),
        checkpoints=checkpoints,
        complete=saved.complete,
        kept_status=saved.status,
        notes=saved.notes,
    )


def _working(graph: Graph, shapes: Shapes) -> int:
    """The largest gradients held at once: of a layer's outputs and of its inputs."""
    most = 0
    for node in graph.nodes:
        names = (*node.inputs, *node.outputs)
        most = max(most, sum(shapes.tensors[name].bytes for name in names))
    return most


def _checkpointed(graph: Graph, shapes: Shapes, saved: Kept) -> tuple[int, int]:
    """Kept bytes when only the tensors between segments are, the rest being computed again.

    Cuts are made where a single tensor is alive. For each of many limits on a segment's size cuts
    are as few as can be; the one that keeps least (tensors between, largest segment) is taken.
    """
    places = _narrow_places(graph, shapes)
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
            if index in places:
                candidate = (running, places[index])
            pending = running
        largest = max(largest, pending)
        best = min(best, (between + largest, cuts))
        limit = min(limit * 9 // 10, largest - 1)
    return best


def _narrow_places(graph: Graph, shapes: Shapes) -> dict[int, int]:
    """Nodes after which one tensor alone is still needed, and its bytes."""
    last = {name: n for n, node in enumerate(graph.nodes) for name in node.inputs}
    alive: set[str] = {tensor.name for tensor in graph.inputs if tensor.name in last}
    places: dict[int, int] = {}
    for index, node in enumerate(graph.nodes):
        alive.update(name for name in node.outputs if last.get(name, index) > index)
        alive -= {name for name in node.inputs if last[name] <= index}
        if len(alive) == 1:
            places[index] = shapes.tensors[next(iter(alive))].bytes
    return places
