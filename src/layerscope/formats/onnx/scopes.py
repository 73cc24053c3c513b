"""The tree of modules, from the names of nodes or from what the exporter wrote beside them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from layerscope.graph.types import Node

SCOPES = "pkg.torch.onnx.name_scopes"
CLASSES = "pkg.torch.onnx.class_hierarchy"
MOST_LEVELS = 64


def told_scope(text: str) -> tuple[str, ...] | None:
    """Modules around a node, from the exporter's list of paths, such as ['', 'a', 'a.b', 'op']."""
    paths = words(text)
    if paths is None or len(paths) < 2:
        return None
    inner = [path for path in paths[:-1] if path]
    return tuple(inner[-1].split(".")[:MOST_LEVELS]) if inner else ()


def words(text: str) -> list[str] | None:
    """A list of words as Python writes it; None of anything else."""
    if len(text) > 1 << 16 or not re.match(r"\s*\[", text):
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return [str(word) for word in found] if isinstance(found, list) else None


def named_scope(name: str) -> tuple[str, ...]:
    """Modules around a node, from a name such as /layer1/layer1.0/conv1/Conv."""
    parts = [part for part in name.split("/") if part]
    return tuple(parts[:-1][:MOST_LEVELS])


def arranged(nodes: Sequence[Node]) -> list[Node]:
    """Nodes with scopes worth showing: not those around everything, or around a single node."""
    common = len(nodes[0].scope) if nodes else 0
    first = nodes[0].scope if nodes else ()
    for node in nodes:
        while common and node.scope[:common] != first[:common]:
            common -= 1
    held = Counter(node.scope[:end] for node in nodes for end in range(1, len(node.scope) + 1))
    made = []
    for node in nodes:
        scope = node.scope
        while len(scope) > common and held[scope] == 1:
            scope = scope[:-1]
        scope = scope[common:]
        made.append(node if scope == node.scope else replace(node, scope=scope))
    return made
