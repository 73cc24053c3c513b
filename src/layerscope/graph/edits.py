"""Functions that return a changed graph and leave the original as it is."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from layerscope.errors import UnknownName, UsageError
from layerscope.graph.attributes import Attention, CustomCost, DeclaredOutputs, Embedding, Opaque
from layerscope.graph.dtype_names import known_dtype
from layerscope.graph.types import Graph, Node, Param, Shape, Tensor

FLOATS = ("fp64", "fp32", "fp16", "bf16")


def bind(
    graph: Graph,
    shapes: Mapping[str, Shape] | None = None,
    batch: int | None = None,
    dtype: str | None = None,
) -> Graph:
    """The same network with other input shapes, batch size or dtype.

    A shape with as many axes as declared includes the batch, one with an axis less does not;
    `batch` overrides both.
    """
    dtype = None if dtype is None else known_dtype(dtype)
    if batch is not None and batch < 1:
        raise UsageError(f"batch {batch}, expected at least 1")
    given = dict(shapes or {})
    names = [tensor.name for tensor in graph.inputs]
    if given and not names:
        raise UsageError(f"input has no effect: {graph.name} has no inputs")
    if "" in given:  # a shape without a name is that of the first input
        given[names[0]] = given.pop("")
    for name in given:
        if name not in names:
            raise UnknownName("input", name, names, f"; {graph.name} has {', '.join(names)}")
    inputs = tuple(_bound(tensor, given.get(tensor.name), batch, dtype) for tensor in graph.inputs)
    if given:
        _check_positions(graph, inputs)
    new_dtype = dtype or graph.dtype
    nodes = graph.nodes if dtype is None else tuple(_typed(node, dtype) for node in graph.nodes)
    params = graph.params if dtype is None else _cast_params(graph.params, dtype)
    unused = graph.unused if dtype is None else _cast_params(graph.unused, dtype)
    old = (graph.inputs, graph.dtype, graph.nodes, graph.params, graph.unused)
    if (inputs, new_dtype, nodes, params, unused) == old:
        return graph
    return replace(
        graph,
        inputs=inputs,
        dtype=new_dtype,
        nodes=nodes,
        params=params,
        unused=unused,
        claims=None,  # a document prints them for its own sizes
    )


def _typed(node: Node, dtype: str) -> Node:
    """The same node with its params and declared outputs in another dtype."""
    if isinstance(node.attributes, (DeclaredOutputs, CustomCost, Opaque)):
        dtypes = tuple(dtype if kind in FLOATS else kind for kind in node.attributes.dtypes)
        node = replace(node, attributes=replace(node.attributes, dtypes=dtypes))
    return replace(node, params=_cast_params(node.params, dtype)) if node.params else node


def _cast_params(params: tuple[Param, ...], dtype: str) -> tuple[Param, ...]:
    return tuple(replace(p, dtype=dtype) if p.dtype in FLOATS else p for p in params)


def _bound(tensor: Tensor, shape: Shape | None, batch: int | None, dtype: str | None) -> Tensor:
    declared = tensor.shape
    if shape is not None:
        if min(shape, default=0) < 1:
            text = "x".join(map(str, shape))
            raise UsageError(f"input {tensor.name}: {text}, expected every size to be at least 1")
        if declared == () and shape:
            text = "x".join(map(str, shape))
            raise UsageError(f"input {text} has no effect: {tensor.name} is a scalar")
        if declared is None and len(shape) == 3:  # an image, and the file declares no shape
            shape = (1, *shape)
        if declared is not None and len(shape) == len(declared) - 1:
            shape = (declared[0], *shape)
        elif declared is not None and len(shape) != len(declared):
            text = "x".join(map(str, declared))
            raise UsageError(
                f"input {tensor.name}: {len(shape)} sizes, expected {len(declared)} as in {text}, "
                f"or {len(declared) - 1} without the batch"
            )
        declared = shape
    if batch is not None and declared:
        declared = (batch, *declared[1:])
    floating = dtype is not None and tensor.dtype in FLOATS
    kind = dtype if floating and dtype else tensor.dtype
    return Tensor(tensor.name, declared, kind, tensor.source)


def token_inputs(graph: Graph) -> tuple[Tensor, ...]:
    """Inputs that are token indices: int64, N x T."""
    return tuple(t for t in graph.inputs if t.dtype == "int64" and len(t.shape or ()) == 2)


def is_cached(node: Node) -> bool:
    """Whether a node is an attention that supports a key-value cache."""
    return isinstance(node.attributes, Attention) and node.attributes.cached


def with_tokens(graph: Graph, tokens: int) -> Graph:
    """The same network on a prompt of `tokens` tokens: the prefill."""
    return bind(graph, token_shapes(graph, tokens))


def token_shapes(graph: Graph, tokens: int) -> dict[str, Shape]:
    """Shapes of the token inputs by name, for `tokens` tokens."""
    if tokens < 1:
        raise UsageError(f"{tokens} tokens, expected at least 1")
    given = token_inputs(graph)
    if not given:
        raise UsageError(f"{graph.name} takes no tokens: it has no input of int64, N x T")
    return {tensor.name: (tensor.shape[0], tokens) for tensor in given if tensor.shape}


def with_cache(graph: Graph, length: int) -> Graph:
    """One decoding step: a single token after `length` cached ones."""
    if length < 0:
        raise UsageError(f"a cache of {length} tokens, expected at least 0")
    if not any(map(is_cached, graph.nodes)):
        raise UsageError(
            f"{graph.name} has no attention with a key-value cache, which decoding needs"
        )
    _check_rows(graph, length + 1)
    graph = with_tokens(graph, 1)
    changed: dict[Attention, Attention] = {}  # equal attributes are one object, as in the Builder
    nodes = []
    for node in graph.nodes:
        if is_cached(node):
            old: Attention = node.attributes
            node = replace(node, attributes=changed.setdefault(old, replace(old, past=length)))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _check_positions(graph: Graph, inputs: tuple[Tensor, ...]) -> None:
    """Raise if an input has more tokens than there are position embeddings."""
    lengths = [shape[1] for t in inputs if t.dtype == "int64" and len(shape := t.shape or ()) == 2]
    if lengths:
        _check_rows(graph, max(lengths))


def _check_rows(graph: Graph, tokens: int) -> None:
    """Raise if a table of position embeddings has fewer rows than `tokens`."""
    positions = {name for node in graph.nodes if node.op == "positions" for name in node.outputs}
    for node in graph.nodes:
        if isinstance(node.attributes, Embedding) and positions.intersection(node.inputs):
            rows = node.attributes.rows
            if rows < tokens:
                raise UsageError(
                    f"{graph.name}: {tokens} tokens, expected at most {rows}, the positions of "
                    f"{node.name}"
                )
