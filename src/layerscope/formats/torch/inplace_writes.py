"""In-place writes: new names for a tensor and for all tensors that it is a view of."""

from __future__ import annotations

from layerscope.formats.torch.lowering import PlannedNode, ValueId
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.tracking import Tracker
from layerscope.graph.attributes import Permute, Reshape, Slice
from layerscope.graph.types import Shape, elements


def write(tracker: Tracker, traced: TracedTensor, name: str) -> None:
    """A tensor has new contents under a new name, and so has each tensor it is a view of."""
    root = traced.root
    child = traced
    before = []
    while child.parent is not None:
        child = child.parent
        before.append(tracker.read(child))
    root.version += 1
    _set_contents(tracker, traced, name, root)
    child = traced
    for old in before:
        parent = child.parent
        assert parent is not None
        _set_contents(tracker, parent, _insert(tracker, parent, child, old), root)
        child = parent


def _set_contents(tracker: Tracker, traced: TracedTensor, name: str, root: TracedTensor) -> None:
    traced.name = name
    traced.version = root.version
    traced.computable = traced.is_const = False
    traced.plain = traced.parent is None
    tracker.log.append(traced)


def _insert(tracker: Tracker, parent: TracedTensor, child: TracedTensor, before: str) -> str:
    """The name of a tensor after a view of it was written; `before` is its name until then."""
    call = child.viewed_by
    nodes = call.plan.nodes
    if not nodes:
        return child.name
    shape = parent.meta.shape
    first, name = nodes[0], child.name
    whole = elements(shape) == elements(child.meta.shape)
    if len(nodes) == 1 and whole and first.op in ("reshape", "flatten"):
        return tracker.add_node("reshape", (name,), Reshape(shape))
    if len(nodes) == 1 and first.op == "permute":
        order = first.attributes.order
        inverse = tuple([order.index(n) for n in range(len(order))])
        return tracker.add_node("permute", (name,), Permute(inverse))
    cut = _slice_of(first, shape, call.plan.results[call.output])
    if cut is None or any(node.op != "reshape" for node in nodes[1:]):
        return tracker.add_node("insert", (before, name), None)  # at positions by strides
    if len(nodes) > 1:
        full = list(shape)
        full[cut.axes[0]] = len(range(cut.starts[0], cut.ends[0], cut.steps[0]))
        name = tracker.add_node("reshape", (name,), Reshape(tuple(full)))
    return tracker.add_node("insert", (before, name), cut)


def _slice_of(node: PlannedNode, shape: Shape, result: ValueId) -> Slice | None:
    """The slice of a tensor that a view is, if it was sliced or split along one axis."""
    if node.op == "slice":
        whole: Slice = node.attributes
        return whole
    if node.op != "split" or isinstance(result, int) or result[0] != 0:
        return None
    attributes, piece = node.attributes, result[1]
    axis = attributes.axis
    sizes = attributes.sizes or (shape[axis] // attributes.parts,) * attributes.parts
    start = sum(sizes[:piece])
    return Slice((axis,), (start,), (start + sizes[piece],), (1,))
