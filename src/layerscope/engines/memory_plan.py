"""Peak activation memory of the graph that an engine runs, by liveness.

Modelled on onnxruntime's memory planner: the output of a view shares its input's buffer, an
elementwise output overwrites an input that no later node reads, and a freed buffer is reused for a
tensor of the same shape. The network's inputs belong to the caller and are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.engines.onnx_nodes import EngineGraph, EngineNode

VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"})
# Inputs that an operator's first output may overwrite, in order of preference.
OVERWRITES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "Clip", "Softplus", "HardSigmoid",
         "HardSwish", "ThresholdedRelu", "Abs", "Neg", "Floor", "Ceil", "Reciprocal", "Sqrt",
         "Exp", "Log", "Cast", "BatchNormalization", "Softmax"),
        (0,),
    ),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Sum", "Max", "Min"), (0, 1)),
    "Conv": (3,), "FusedConv": (3,),
}  # fmt: skip


class TensorSize(Struct, frozen=True):
    """Shape and bytes of a tensor; a buffer is reused only for a tensor equal in both."""

    shape: tuple[int, ...]
    bytes: int


EMPTY = TensorSize((), 0)


class MemoryPlan(Struct, frozen=True):
    """Bytes allocated while each node runs, in order of execution."""

    alive_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """The most bytes allocated at once."""
        return max(self.alive_bytes, default=0)


def plan_memory(
    graph: EngineGraph, order: Sequence[int], sizes: Mapping[str, TensorSize]
) -> MemoryPlan:
    """Assign buffers to the outputs of nodes that run in that order."""
    buffers = _Buffers(graph)
    for step, index in enumerate(order):
        node = graph.nodes[index]
        for position, name in enumerate(node.outputs):
            if name:
                size = sizes.get(name, EMPTY)
                shared = buffers.shared(node, size) if position == 0 else None
                buffers.assign(name, size, shared, step)
        buffers.release(node, step)
    return buffers.plan(len(order))


class _Buffer:
    """Memory of one size, from the first step in which it is used to the last."""

    __slots__ = ("first", "last", "reads_left", "size")

    def __init__(self, size: TensorSize, step: int) -> None:
        self.size, self.first, self.last = size, step, step
        self.reads_left = 0


class _Buffers:
    """Buffers allocated so far, and the buffer of each tensor."""

    def __init__(self, graph: EngineGraph) -> None:
        self._graph = graph
        self._reads = Counter(name for node in graph.nodes for name in node.inputs)
        self._reads.update(graph.outputs)
        self._all: list[_Buffer] = []
        self._of: dict[str, _Buffer] = {}
        self._free: list[_Buffer] = []  # the latest first

    def shared(self, node: EngineNode, size: TensorSize) -> _Buffer | None:
        """The buffer of an input that the first output of a node shares or overwrites."""
        source = node.inputs[0] if node.inputs else ""
        if node.op_type in VIEWS and source in self._of:
            return self._of[source]
        candidates = OVERWRITES.get(node.op_type, ())
        initializers = self._graph.initializers
        if len(candidates) == 2 and any(name in initializers for name in node.inputs):
            return None  # onnxruntime allocates the sum of a tensor and an initializer anew
        for position in candidates:
            buffer = self._of.get(node.inputs[position] if position < len(node.inputs) else "")
            if buffer is not None and buffer.reads_left == 1 and buffer.size == size:
                return buffer
        return None

    def assign(self, name: str, size: TensorSize, shared: _Buffer | None, step: int) -> None:
        """Give a tensor the shared buffer, else a free one of its size, else a new one."""
        buffer = shared
        if buffer is None and name not in self._graph.outputs:
            buffer = next((each for each in self._free if each.size == size), None)
            if buffer is not None:
                self._free.remove(buffer)
        if buffer is None:
            buffer = _Buffer(size, step)
            self._all.append(buffer)
        self._of[name] = buffer
        buffer.reads_left += self._reads[name]
        buffer.last = step

    def release(self, node: EngineNode, step: int) -> None:
        """Free the buffers of inputs that no later node reads."""
        for name in node.inputs:
            buffer = self._of.get(name)
            if buffer is None:
                continue
            buffer.reads_left -= 1
            buffer.last = max(buffer.last, step)
            if not buffer.reads_left and buffer not in self._free:
                self._free.insert(0, buffer)

    def plan(self, steps: int) -> MemoryPlan:
        """Bytes of all buffers alive in each step; outputs stay alive to the end."""
        for name in self._graph.outputs:
            if name in self._of:
                self._of[name].last = steps
        alive = [0] * steps
        for buffer in self._all:
            for step in range(buffer.first, min(buffer.last, steps - 1) + 1):
                alive[step] += buffer.size.bytes
        return MemoryPlan(tuple(alive))
