"""Storages and strides of tensors as PyTorch has them: which tensors are views of which storage."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from layerscope.analysis.shapes import Tensors
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import SPECS, Call
from layerscope.ops.autograd import Fold
from layerscope.ops.linear import einsum_order
from layerscope.ops.torch_strides import (
    ShapeStride,
    channels_last,
    dense,
    elementwise,
    expanded,
    in_order,
    is_dense,
    restride,
)

# Operators whose `identity` node is a copy.
COPIES = frozenset(("clone", "pad", "cat", "pow", "copy", "constant_pad_nd", "sum", "mean"))
# Ops that treat a tensor of three axes as one of four.
ROWS_AS_IMAGES = frozenset(("avg_pool", "adaptive_avg_pool", "max_pool"))
VIEWS = frozenset(("permute", "expand", "slice", "split", "reshape", "flatten"))
# In-place operators that are converted to other nodes, or to several: the op whose output
# overwrites the target, and the index of the target among its inputs.
PUT = {"scatter": 0, "scatter_nd": 0, "where": 2}
STEPS: dict[str, dict[str, int]] = {
    "copy": {},
    "fill": {},
    "zero": {},
    "add": {"add": 0},
    "sub": {"sub": 0},
    "addcmul": {"add": 0},
    "addcdiv": {"add": 0},
    "lerp": {"add": 0},
    "addmm": {"add": 1},
    "addmv": {"add": 1},
    "baddbmm": {"add": 1},
    "masked_fill": {"where": 2},
    **dict.fromkeys(("index_put", "_index_put_impl", "index_add", "index_copy"), PUT),
    **dict.fromkeys(("scatter", "scatter_add"), PUT),
}
BY_ELEMENT = frozenset(("activation", "elementwise"))  # op families computed element by element
ALSO_BY_ELEMENT = frozenset(("cast", "where", "dropout", "scale", "bias", "prelu", "flip"))
KEEP_CHANNELS_LAST = frozenset(("convolution", "pooling", "resizing"))
ALSO_KEEP_CHANNELS_LAST = frozenset(
    ("batch_norm", "group_norm", "pad", "concat", "channel_shuffle")
)
# Pairs of operator and op whose output strides differ from those of the op.
BY_ELEMENT_TOO = frozenset((("sort", "top_k"), ("argsort", "top_k")))
DENSE = frozenset(
    (("masked_fill", "where"), ("grid_sampler", "grid_sample"), ("grid_sampler_2d", "grid_sample"))
)


class StorageView(Struct, frozen=True, gc=False):
    """The storage of a tensor, by name, and its strides; None where they are unknown."""

    storage: str
    stride: Shape | None


class Storages:
    """Views and sizes of storages, filled node by node in execution order."""

    def __init__(self, graph: Graph) -> None:
        self.views: dict[str, StorageView] = {}
        self.bytes: dict[str, int] = {}
        self.contiguous = graph.autograd.contiguous if graph.autograd is not None else frozenset()
        for tensor in graph.inputs:
            self._fresh(tensor, None if tensor.shape is None else dense(tensor.shape))
        for param in graph.params:
            self.views[param.name] = StorageView(param.name, dense(param.shape))
            self.bytes[param.name] = 0  # counted as a parameter
        self.also_read = frozenset[str]()
        self.readers: Counter[str] = Counter()
        if graph.autograd is not None:
            self.also_read = graph.autograd.also_read
            self.readers.update([name for node in graph.nodes for name in node.inputs])
        self.guessed: set[str] = set()  # views that may be copies
        self.constants = graph.autograd.constants if graph.autograd is not None else {}

    def _fresh(self, tensor: Tensor, stride: Shape | None) -> None:
        self.views[tensor.name] = StorageView(tensor.name, stride)
        self.bytes[tensor.name] = tensor.bytes

    def add(self, node: Node, call: Call | None, given: Tensors, outputs: Tensors) -> None:
        """Add the views of the outputs of a node."""
        for n, tensor in enumerate(outputs):
            constant = self.constants.get(tensor.name)
            if constant is not None:
                self.views[tensor.name] = StorageView(constant.storage, constant.stride)
                self.bytes.setdefault(constant.storage, constant.bytes)
                continue
            view = self._view(node, call, given, n) if given and tensor.shape is not None else None
            if view is not None:
                self.views[tensor.name] = view
            else:
                self._fresh(tensor, self._stride(node, call, tensor, given))
            if tensor.name in self.contiguous:
                self._copy(tensor)

    def _copy(self, tensor: Tensor) -> None:
        """Give a tensor that is read through `contiguous()` its own storage, if that copies."""
        stride = self.views[tensor.name].stride
        if tensor.shape is None or stride is None or is_dense(tensor.shape, stride):
            return
        self._fresh(tensor, dense(tensor.shape))
        if tensor.name in self.also_read and self.readers[tensor.name] > 1:
            self.guessed.add(tensor.name)

    def _view(self, node: Node, call: Call | None, given: Tensors, n: int) -> StorageView | None:
        """The view that an output is; None for an output in new storage."""
        source, shape = self.views[given[0].name], given[0].shape
        if shape is None or call is None:
            return None
        op, shape_out = node.op, call.outputs[n]
        if op in VIEWS or (op == "gather" and operator(node) == "unfold"):
            if source.stride is None:
                if op in ("reshape", "flatten") or given[0].name in self.guessed:
                    self.guessed.add(node.outputs[n])  # a view or a copy
                return StorageView(source.storage, None)
            stride = _viewed(node, shape, source.stride, shape_out)
            return None if stride is None else StorageView(source.storage, stride)
        if op == "view":
            return StorageView(source.storage, None)
        over = written(node)
        if over is not None and n == 0:
            return self.views[given[over].name]
        if op == "dropout":
            p = 0.5 if node.attributes is None else node.attributes.p
            off = p == 0 or (node.attributes is not None and node.attributes.evaluated)
            return source if off else None
        if op == "identity":
            name = operator(node)
            return None if name in COPIES or name.endswith("_copy") else source
        rule = SPECS.get(op)
        return source if rule is not None and rule.view and n == 0 else None

    def _stride(
        self, node: Node, call: Call | None, tensor: Tensor, given: Tensors
    ) -> Shape | None:
        """Strides of an output in new storage."""
        shape = tensor.shape
        if shape is None:
            return None
        rule = SPECS.get(node.op)
        family = "" if rule is None else rule.family
        op = node.op
        name = operator(node)
        if (name, op) in DENSE:
            return dense(shape)
        by_element = op in ALSO_BY_ELEMENT or family in BY_ELEMENT or op == "identity"
        if (by_element and name != "cat") or (name, op) in BY_ELEMENT_TOO:
            return self._elementwise(shape, given)
        if family in KEEP_CHANNELS_LAST or op in ALSO_KEEP_CHANNELS_LAST or op == "identity":
            return self._keeping_channels_last(op, shape, given)
        if op == "layer_norm" and name == "batch_norm":
            return self._normed_channels(shape, given)
        if op == "attention" and len(shape) == 4 and node.attributes.fused:
            return self._elementwise(shape, given[:1])
        if op in ("lstm", "gru", "rnn") and node.attributes.batch_first:
            return in_order(shape, (1, 0, 2)) if tensor.name == node.outputs[0] else dense(shape)
        if op == "einsum":
            order = einsum_order(call) if call is not None else None
            return None if order is None else in_order(shape, order)
        return dense(shape)

    def _elementwise(self, shape: Shape, given: Tensors) -> Shape | None:
        """Strides that an elementwise operator gives its output; None if those of an input are."""
        laid = self._shapes_and_strides(given)
        return None if laid is None else elementwise(shape, laid)

    def _keeping_channels_last(self, op: str, shape: Shape, given: Tensors) -> Shape:
        """Strides of an output that is in channels-last order if the inputs are."""
        laid = self._shapes_and_strides(given[:1] if op != "concat" else given)
        if laid is not None and len(shape) == 3 and op in ROWS_AS_IMAGES:
            laid = [((*x[:2], 1, x[2]), (*by[:2], x[2] * by[2], by[2])) for x, by in laid]
        last = laid is not None and all(channels_last(*each) for each in laid)
        return in_order(shape, (0, *range(2, len(shape)), 1)) if last else dense(shape)

    def _normed_channels(self, shape: Shape, given: Tensors) -> Shape | None:
        """Strides after batch norm with the statistics of its input: channels before the batch."""
        laid = self._shapes_and_strides(given)
        if laid is None:
            return None
        [(x, by)] = laid
        swap = (1, 0, *range(2, len(x)))
        last = channels_last(tuple([x[n] for n in swap]), tuple([by[n] for n in swap]))
        return in_order(shape, (1, *range(2, len(x)), 0) if last else swap)

    def features_apart(self, given: Tensors) -> bool:
        """Whether the last axis of query, key or value is strided, which fused kernels refuse."""
        strides = [self.views[tensor.name].stride for tensor in given[:3]]
        return any(stride is not None and stride[-1] != 1 for stride in strides)

    def _shapes_and_strides(self, given: Tensors) -> list[ShapeStride] | None:
        laid = []
        for tensor in given:
            stride = self.views[tensor.name].stride
            if tensor.shape is None or stride is None:
                return None
            laid.append((tensor.shape, stride))
        return laid

    def is_contiguous(self, tensor: Tensor, last: bool) -> bool:
        """Whether a tensor is contiguous, or with `last` contiguous with its channels last."""
        shape, stride = tensor.shape, self.views[tensor.name].stride
        if shape is None or stride is None:
            return True
        if last and channels_last(shape, stride):
            stride, shape = (
                (stride[0], *stride[2:], stride[1]), (shape[0], *shape[2:], shape[1])
            )  # fmt: skip
        return is_dense(shape, stride)

    def folded(self, tensor: Tensor, fold: Fold) -> tuple[bool, bool]:
        """Whether a fold of this tensor is a copy, and whether that is certain."""
        view = self.views[tensor.name]
        shape = tensor.shape
        if shape is None or fold.wide == fold.flat == shape:
            return False, True
        if view.stride is None:
            return False, False
        order = fold.order or tuple(range(len(shape)))
        turned = tuple([shape[n] for n in order]), tuple([view.stride[n] for n in order])
        return restride(fold.wide, expanded(*turned, fold.wide), fold.flat) is None, True


def operator(node: Node) -> str:
    """The ATen operator of a captured node, without namespace and the `_` of in-place ones."""
    full = node.source.op if node.source is not None else ""
    space, _, name = full.partition(".")
    if space != "aten":
        return ""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def written(node: Node) -> int | None:
    """Index of the input that a node overwrites with its output; None if it overwrites none."""
    if getattr(node.attributes, "in_place", False):
        return 0
    full = node.source.op if node.source is not None else ""
    if not full.startswith("aten.") or not full.endswith("_") or full.endswith("__"):
        return None
    name = operator(node)
    if name not in STEPS:
        return 0
    return STEPS[name].get(node.op)


def _viewed(node: Node, shape: Shape, stride: Shape, shape_out: Shape) -> Shape | None:
    """Strides of a view of shape `shape_out`; None where PyTorch must copy."""
    op, attributes = node.op, node.attributes
    if op == "permute":
        return tuple([stride[n] for n in attributes.order])
    if op == "expand":
        return expanded(shape, stride, shape_out)
    if op == "split":
        return stride
    if op == "gather":  # `Tensor.unfold`: overlapping windows along one axis
        axis = attributes.axis
        count, size = shape_out[axis : axis + 2]
        step = (shape[axis] - size) // (count - 1) if count > 1 else size
        return (*stride[:axis], step * stride[axis], stride[axis], *stride[axis + 1 :])
    if op == "slice":
        steps = list(stride)
        for axis, step in zip(
            attributes.axes, attributes.steps or (1,) * len(attributes.axes), strict=True
        ):
            steps[axis] *= abs(step)
        return tuple(steps)
    return restride(shape, stride, shape_out)
