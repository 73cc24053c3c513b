"""A network with low-rank adapters (LoRA) beside its matrices, and everything else frozen."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.analysis.costs import Cost, storage_of
from layerscope.errors import UsageError
from layerscope.graph.attributes import Linear
from layerscope.graph.types import Graph, Node

MOST_RANK = 1 << 20


def with_adapters(graph: Graph, costs: dict[str, Cost], rank: int) -> Graph:
    """The network with x·A·B added to the result of every linear layer but the heads.

    A head is a linear layer whose result is an output of the network. All arrays of the network
    itself are frozen, so that adapters alone have gradients and optimizer state.
    """
    if not 1 <= rank <= MOST_RANK:
        raise UsageError(f"--lora {rank}, expected 1 to {MOST_RANK:,}")
    outputs = set(graph.outputs)
    nodes: list[Node] = []
    adapted = 0
    for node in graph.nodes:
        is_matrix = node.op == "linear" and isinstance(node.attributes, Linear)
        if not is_matrix or outputs.intersection(node.outputs) or node.attributes.flatten:
            nodes.append(node)
            continue
        adapted += 1
        nodes += _adapted(node, rank)
    if not adapted:
        raise UsageError(f"--lora: {graph.name} has no linear layer that is no head")
    frozen = {
        storage_of(node, param, node.ties)
        for node in graph.nodes
        for param in costs[node.name].params
    }
    frozen |= {param.storage or param.name for param in graph.params}
    return replace(graph, nodes=tuple(nodes), frozen=graph.frozen | frozen, claims=None)


def _adapted(node: Node, rank: int) -> list[Node]:
    """The layer, its two adapters, and their sum under the name of its result."""
    (result,) = node.outputs
    own, down, up = (f"{result}.{name}" for name in ("base", "lora_A", "lora_B"))
    bare = replace(node, outputs=(own,))
    first = replace(
        node, name=f"{node.name}.lora_A", inputs=node.inputs[:1], outputs=(down,),
        attributes=Linear(rank, bias=False), params=None, ties=None, module="",
    )  # fmt: skip
    second = replace(
        first, name=f"{node.name}.lora_B", inputs=(down,), outputs=(up,),
        attributes=Linear(node.attributes.out_features, bias=False),
    )  # fmt: skip
    total = replace(
        first, name=f"{node.name}.lora", op="add", inputs=(own, up), outputs=(result,),
        attributes=None,
    )  # fmt: skip
    return [bare, first, second, total]
