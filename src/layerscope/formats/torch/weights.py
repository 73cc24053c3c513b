"""A file of weights as a Graph: parameters by module, without operations."""

from __future__ import annotations

from layerscope.errors import FormatError, GraphError
from layerscope.formats.torch.checkpoints.stored_array import StoredArray
from layerscope.graph.types import Graph, Node, Param, Role, Tensor

NOTE = "a file of weights tells no operations: parameters only"
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def parameters_only(path: str, arrays: list[StoredArray], note: str = NOTE) -> Graph:
    """A graph whose nodes hold the arrays of a file, one node a module; what they do is unknown."""
    if not arrays:
        raise FormatError(f"{path}: no arrays in it")
    modules: dict[str, list[Param]] = {}
    seen: set[str] = set()
    for array in arrays:
        storage = array.storage or array.name
        if storage in seen:
            continue
        seen.add(storage)
        module, _, own = array.name.rpartition(".")
        param = Param(own, array.shape, _role(own), array.dtype, storage)
        params = modules.get(module)
        if params is None:
            modules[module] = [param]
        else:
            params.append(param)
    nodes = []
    scopes: dict[str, tuple[str, ...]] = {}  # modules of one parent share a scope
    for module, params in modules.items():
        parent = module.rpartition(".")[0]
        scope = scopes.get(parent)
        if scope is None:
            scope = scopes[parent] = tuple(parent.split(".")) if parent else ()
        name = module or _unused_name("parameters", modules)
        nodes.append(
            Node(name, "weights", (), (name,), None, tuple(params), scope, module, note=note)
        )
    kinds = [array.dtype for array in arrays if array.dtype.startswith(("fp", "bf"))]
    name = path.replace("\\", "/").rpartition("/")[2]
    try:
        return Graph(
            name=name,
            inputs=(Tensor(_unused_name("input", modules), ()),),
            nodes=tuple(nodes),
            outputs=(),
            dtype=kinds[0] if kinds else "fp32",
            notes=(note,),
        )
    except GraphError as error:
        raise FormatError(f"{path}: {str(error).removeprefix(f'{name}: ')}") from None


def _unused_name(name: str, modules: dict[str, list[Param]]) -> str:
    """A name that no module has."""
    while name in modules:
        name += "_"
    return name


def _role(own: str) -> Role:
    if own in STATISTICS:
        return "statistic"
    return "bias" if own.endswith("bias") else "weight"
