"""How deep the trees of an ensemble are."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.site import Site


def depths(s: Site) -> list[int]:
    """Comparisons to the deepest leaf, by tree."""
    return _by_roots(s) if s.op == "TreeEnsemble" else _by_ids(s)


def _by_ids(s: Site) -> list[int]:
    """Nodes by the number of their tree and their own; a leaf says that it is one."""
    trees, nodes = s.wholes("nodes_treeids"), s.wholes("nodes_nodeids")
    yes, no = s.wholes("nodes_truenodeids"), s.wholes("nodes_falsenodeids")
    modes = s.told.get("nodes_modes") or ()
    if not len(trees) == len(nodes) == len(yes) == len(no) == len(modes):
        raise ShapeError(f"{len(trees)} nodes of trees and {len(modes)} of what they do")
    places = {(tree, node): n for n, (tree, node) in enumerate(zip(trees, nodes, strict=True))}
    below: list[tuple[int, ...]] = []
    roots = dict.fromkeys(trees)
    inner: set[int] = set()
    for n, mode in enumerate(modes):
        children: tuple[int, ...] = ()
        if mode != "LEAF":
            tree = trees[n]
            children = tuple(places[tree, child] for child in (yes[n], no[n]))
            inner.update(children)
        below.append(children)
    starts = {tree: n for n, tree in reversed(list(enumerate(trees))) if n not in inner}
    return [_deepest(below, starts.get(tree)) for tree in roots]


def _by_roots(s: Site) -> list[int]:
    """Nodes by place; a child that is a leaf is told to be one."""
    yes, no = s.wholes("nodes_truenodeids"), s.wholes("nodes_falsenodeids")
    yes_leaf, no_leaf = s.wholes("nodes_trueleafs"), s.wholes("nodes_falseleafs")
    if not len(yes) == len(no) == len(yes_leaf) == len(no_leaf):
        raise ShapeError(f"{len(yes)} and {len(no)} children of nodes of trees")
    below: list[tuple[int, ...]] = []
    for n in range(len(yes)):
        # a place behind all nodes stands for a leaf
        left = len(yes) if yes_leaf[n] else yes[n]
        right = len(yes) if no_leaf[n] else no[n]
        below.append((left, right))
    below.append(())
    return [_deepest(below, root) for root in s.wholes("tree_roots")]


def _deepest(below: list[tuple[int, ...]], root: int | None) -> int:
    """Nodes on the longest way down that have something below them."""
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
