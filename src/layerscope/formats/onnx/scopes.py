"""The tree of modules, from names of nodes or from the exporter's metadata."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from layerscope.graph.types import Node

SCOPES = "pkg.torch.onnx.name_scopes"
MOST_LEVELS = 64


def exported_scope(text: str) -> tuple[str, ...] | None:
    """Modules around a node, from the exporter's list of paths, such as ['', 'a', 'a.b', 'op']."""
    paths = _list_of_strings(text)
    if paths is None or len(paths) < 2:
        return None
    inner = [path for path in paths[:-1] if path]
    return tuple(inner[-1].split(".")[:MOST_LEVELS]) if inner else ()


def _list_of_strings(text: str) -> list[str] | None:
    """A list of strings as Python prints it; None if it is none."""
    if len(text) > 1 << 16 or not re.match(r"\s*\[", text):
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return [str(path) for path in found] if isinstance(found, list) else None


def named_scope(name: str) -> tuple[str, ...]:
    """Modules around a node, from a name such as /layer1/layer1.0/conv1/Conv."""
    parts = [part for part in name.split("/") if part]
    return tuple(parts[:-1][:MOST_LEVELS])


def without_trivial_scopes(nodes: Sequence[Node]) -> list[Node]:
    """Nodes without the scopes that contain all nodes, or only one."""
    if not any(node.scope for node in nodes):
        return [*nodes]
    common = len(nodes[0].scope)
    first = nodes[0].scope
    for node in nodes:
        while common and node.scope[:common] != first[:common]:
            common -= 1
    counts = Counter(node.scope[:end] for node in nodes for end in range(1, len(node.scope) + 1))
    results = []
    for node in nodes:
        scope = node.scope
        while len(scope) > common and counts[scope] == 1:
            scope = scope[:-1]
        scope = scope[common:]
        results.append(node if scope == node.scope else replace(node, scope=scope))
    return results
