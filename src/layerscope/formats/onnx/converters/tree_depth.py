"""Depths of the trees of an ensemble."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import OnnxNode


def depths(node: OnnxNode) -> list[int]:
    """Number of comparisons to the deepest leaf, by tree."""
    return _by_roots(node) if node.op == "TreeEnsemble" else _by_ids(node)


def _by_ids(node: OnnxNode) -> list[int]:
    """TreeEnsembleClassifier, TreeEnsembleRegressor: nodes have a tree id and a node id."""
    trees, nodes = node.ints_attr("nodes_treeids"), node.ints_attr("nodes_nodeids")
    yes, no = node.ints_attr("nodes_truenodeids"), node.ints_attr("nodes_falsenodeids")
    modes = node.attrs.get("nodes_modes") or ()
    if not len(trees) == len(nodes) == len(yes) == len(no) == len(modes):
        raise ShapeError(f"{len(trees)} nodes of trees and {len(modes)} of what they do")
    index = {ids: n for n, ids in enumerate(zip(trees, nodes, strict=True))}
    below: list[tuple[int, ...]] = []
    roots = dict.fromkeys(trees)
    inner: set[int] = set()
    for n, mode in enumerate(modes):
        children: tuple[int, ...] = ()
        if mode != "LEAF":
            tree = trees[n]
            children = tuple(index[tree, child] for child in (yes[n], no[n]))
            inner.update(children)
        below.append(children)
    starts = {tree: n for n, tree in reversed(list(enumerate(trees))) if n not in inner}
    return [_deepest(below, starts.get(tree)) for tree in roots]


def _by_roots(node: OnnxNode) -> list[int]:
    """TreeEnsemble: nodes are numbered, and flags tell which children are leaves."""
    yes, no = node.ints_attr("nodes_truenodeids"), node.ints_attr("nodes_falsenodeids")
    yes_leaf, no_leaf = node.ints_attr("nodes_trueleafs"), node.ints_attr("nodes_falseleafs")
    if not len(yes) == len(no) == len(yes_leaf) == len(no_leaf):
        raise ShapeError(f"{len(yes)} and {len(no)} children of nodes of trees")
    below: list[tuple[int, ...]] = []
    for n in range(len(yes)):
        # the index after the last node stands for a leaf
        left = len(yes) if yes_leaf[n] else yes[n]
        right = len(yes) if no_leaf[n] else no[n]
        below.append((left, right))
    below.append(())
    return [_deepest(below, root) for root in node.ints_attr("tree_roots")]


def _deepest(below: list[tuple[int, ...]], root: int | None) -> int:
    """Number of inner nodes on the longest path from a root."""
    if root is None or not 0 <= root < len(below):
        raise ShapeError("a tree without a root")
    deepest, visits = 0, 0
    ahead = [(root, 0)]
    while ahead:
        node, depth = ahead.pop()
        visits += 1
        if visits > 2 * len(below) + 1:
            raise ShapeError("a tree whose branches meet again")
        deepest = max(deepest, depth)
        ahead.extend((child, depth + 1) for child in below[node])
    return deepest
