"""Arrays without a network: what a file of weights tells, and no more."""

from __future__ import annotations

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Tensor

NOTE = "a file of weights tells no operations: parameters only"
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class Stored(Struct, frozen=True):
    """One array of a file; `storage` is what two that share their numbers have in common."""

    name: str
    shape: Shape
    dtype: str
    storage: str = ""


def parameters_only(path: str, arrays: list[Stored]) -> Graph:
    """A graph whose nodes hold the arrays of a file, one node a module; what they do is unknown."""
    if not arrays:
        raise FormatError(f"{path}: no arrays in it")
    modules: dict[str, list[Stored]] = {}
    once = {array.storage or array.name: array for array in reversed(arrays)}
    for array in reversed(once.values()):
        modules.setdefault(array.name.rpartition(".")[0], []).append(array)
    nodes = []
    for module, held in modules.items():
        name = module or "parameters"
        params = tuple(
            Param(
                array.name.rpartition(".")[2],
                array.shape,
                _role(array.name),
                array.dtype,
                array.storage or array.name,
            )
            for array in held
        )
        scope = tuple(module.split(".")[:-1])
        nodes.append(Node(name, "weights", (), (name,), None, params, scope, module, note=NOTE))
    kinds = [array.dtype for array in arrays if array.dtype.startswith(("fp", "bf"))]
    return Graph(
        name=path.replace("\\", "/").rpartition("/")[2],
        inputs=(Tensor("input", ()),),
        nodes=tuple(nodes),
        outputs=(),
        dtype=kinds[0] if kinds else "fp32",
        notes=(NOTE,),
    )


def _role(name: str) -> Role:
    own = name.rpartition(".")[2]
    if own in STATISTICS:
        return "statistic"
    return "bias" if own.endswith("bias") else "weight"
