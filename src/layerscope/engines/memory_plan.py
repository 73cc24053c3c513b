"""Activation memory of an engine's own operators, by liveness: what fusing leaves of the source's.

Modelled on onnxruntime's planner: outputs of views share their input, outputs that may overwrite an
input do so where nobody reads it later, and a dead buffer is taken again for one of the same size.
The network's inputs are the caller's and not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.engines.onnx_nodes import Program

ALIASES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"})
# Which input an operator's first output may overwrite, the first that is free; () for any of them.
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


class Held(Struct, frozen=True):
    """How a tensor is held: buffers are taken again for tensors of the same shape only."""

    shape: tuple[int, ...]
    bytes: int


NOTHING = Held((), 0)


class Plan(Struct, frozen=True):
    """Bytes held while each operator runs, in order, and the most of them."""

    alive_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """The most that is held at once."""
        return max(self.alive_bytes, default=0)


def plan(program: Program, order: Sequence[int], held_as: Mapping[str, Held]) -> Plan:
    """Follow buffers through the operators in the order in which they run."""
    uses: dict[str, int] = {}
    for op in program.operators:
        for name in op.inputs:
            uses[name] = uses.get(name, 0) + 1
    for name in program.outputs:
        uses[name] = uses.get(name, 0) + 1
    held: dict[str, int] = {}  # tensor -> buffer
    left: list[int] = []  # uses of each buffer to come
    size: list[Held] = []
    born: list[int] = []
    died: list[int] = []
    free: list[int] = []  # dead buffers, the latest first
    for at, index in enumerate(order):
        op = program.operators[index]
        mine = OVERWRITES.get(op.kind, ())
        if len(mine) == 2 and any(name in program.stored for name in op.inputs):
            mine = ()  # as seen of onnxruntime: a sum with a stored array is made anew
        for position, name in enumerate(op.outputs):
            if not name:
                continue
            wanted = held_as.get(name, NOTHING)
            buffer = None
            source = op.inputs[0] if op.inputs else ""
            if position == 0 and op.kind in ALIASES and source in held:
                buffer = held[source]
            elif position == 0:
                for n in mine:
                    given = op.inputs[n] if n < len(op.inputs) else ""
                    free_now = given in held and left[held[given]] == 1
                    if free_now and size[held[given]] == wanted:
                        buffer = held[given]
                        break
            if buffer is None and name not in program.outputs:
                again = next((b for b in free if size[b] == wanted), None)
                if again is not None:
                    free.remove(again)
                    buffer = again
            if buffer is None:
                buffer = len(size)
                size.append(wanted)
                born.append(at)
                died.append(at)
                left.append(0)
            held[name] = buffer
            left[buffer] += uses.get(name, 0)
            died[buffer] = at
        for name in op.inputs:
            if name in held:
                left[held[name]] -= 1
                died[held[name]] = max(died[held[name]], at)
                if not left[held[name]] and held[name] not in free:
                    free.insert(0, held[name])
    for name in program.outputs:
        if name in held:
            died[held[name]] = len(order)
    alive = [0] * (len(order) + 1)
    for each, first, last in zip(size, born, died, strict=True):
        for at in range(first, min(last, len(order) - 1) + 1):
            alive[at] += each.bytes
    return Plan(tuple(alive[: len(order)]))
