"""Writing a network in Python: one method an op, each returning the name of the tensor it makes.

>>> from layerscope import Builder
>>> b = Builder("tiny")
>>> x = b.input("data", (1, 3, 32, 32))
>>> x = b.relu(b.conv(x, 16, 3, padding=1))
>>> network = b.build(b.linear(b.flatten(x), 10))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from layerscope.errors import GraphError, ShapeError
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Node, Shape, Source, Tensor

Sizes = int | Sequence[int]
Padding = Sizes | Sequence[tuple[int, int]] | str

# Bare function calls in the frameworks: they belong to no module.
FUNCTIONS = frozenset((
    "add", "sub", "mul", "div", "pow", "max", "min", "compare",
    "concat", "split", "slice", "reshape", "flatten", "permute", "pad", "crop",
))  # fmt: skip


class Builder:
    """Collects nodes in execution order; `build` checks and freezes them."""

    def __init__(
        self,
        name: str,
        module: str = "",
        *,
        order: Sequence[str] = (),
        separator: str = ".",
    ) -> None:
        self.name = name
        self._separator = separator
        self._inputs: list[Tensor] = []
        self._nodes: list[Node] = []
        self._scope: tuple[str, ...] = ()
        self._prefix = ""
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._same: dict[Any, Any] = {}
        self._windows: dict[Any, at.Window] = {}
        self._modules: dict[str, str | None] = {"": module or name}
        self._modules.update(dict.fromkeys(order))

    # -- structure

    def input(self, name: str, shape: Shape, dtype: str = "fp32") -> str:
        """Declare an input; the batch is its first axis."""
        self._inputs.append(Tensor(name, tuple(shape), dtype))
        return name

    @contextmanager
    def scope(self, name: str, module: str = "", *, order: Sequence[str] = ()) -> Iterator[None]:
        """Name what is added inside after a module; `order` is that of its declaration."""
        outer, prefix = self._scope, self._prefix
        self._scope = (*outer, name)
        self._prefix = prefix + name + self._separator
        self._modules[self._prefix[: -len(self._separator)]] = module
        for child in order:
            self._modules.setdefault(self._prefix + child, None)
        try:
            yield
        finally:
            self._scope, self._prefix = outer, prefix

    def add_node(
        self,
        op: str,
        inputs: Sequence[str],
        attributes: Any = None,
        *,
        name: str | None = None,
        outputs: int = 1,
        module: bool = True,
        ties: Mapping[str, str] | None = None,
        source: Source | None = None,
    ) -> tuple[str, ...]:
        """Add any op, known or not, as a module or a bare call; return the names of its outputs."""
        path = self._prefix + (name if name is not None else self._fresh(op))
        full = path
        if full in self._names:
            if attributes is not None and not isinstance(attributes, (at.Activation, at.Dropout)):
                raise GraphError(f"{self.name}: two nodes are named {full!r}")
            full = self._again(path)  # a module without parameters, called once more
        self._names.add(full)
        if attributes is not None:
            attributes = self._same.setdefault(attributes, attributes)
        module = module and op not in FUNCTIONS
        if module and self._modules.get(path) is None:
            self._modules[path] = ""
        made = (full,) if outputs == 1 else tuple(f"{full}:{n}" for n in range(outputs))
        node = Node(
            name=full,
            op=op,
            inputs=tuple(inputs),
            outputs=made,
            attributes=attributes,
            scope=self._scope,
            module=path if module else "",
            ties=ties,
            source=source,
        )
        self._nodes.append(node)
        return made

    def _fresh(self, op: str) -> str:
        key = self._prefix + op
        self._counts[key] = self._counts.get(key, 0) + 1
        return f"{op}{self._counts[key]}"

    def _again(self, path: str) -> str:
        count = self._counts.get(path, 0)
        while True:
            count += 1
            if f"{path}_{count}" not in self._names:
                self._counts[path] = count
                return f"{path}_{count}"

    def build(self, *outputs: str) -> Graph:
        """Freeze the graph; without outputs named, whatever nobody reads is an output."""
        if not outputs:
            read = {tensor for node in self._nodes for tensor in node.inputs}
            made = (tensor for node in self._nodes for tensor in node.outputs)
            outputs = tuple(tensor for tensor in made if tensor not in read)
        return Graph(
            name=self.name,
            inputs=tuple(self._inputs),
            nodes=tuple(self._nodes),
            outputs=outputs,
            modules={path: kind for path, kind in self._modules.items() if kind is not None},
        )

    # -- windows

    def _rank(self) -> int:
        shape = self._inputs[0].shape if self._inputs else None
        return max(len(shape) - 2, 1) if shape is not None else 2

    def window(
        self,
        kernel: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        rounding: at.Rounding = "floor",
    ) -> at.Window:
        """A window over the spatial axes: one number stands for every axis."""
        asked = (kernel, stride, padding, dilation, rounding, self._rank())
        if not all(isinstance(part, (int, str)) for part in asked):
            return self._window(kernel, stride, padding, dilation, rounding)
        window = self._windows.get(asked)
        if window is None:
            window = self._window(kernel, stride, padding, dilation, rounding)
            self._windows[asked] = window
        return window

    def _window(
        self,
        kernel: Sizes,
        stride: Sizes,
        padding: Padding,
        dilation: Sizes,
        rounding: at.Rounding,
    ) -> at.Window:
        given = (kernel, stride, dilation, padding)
        rank = next((len(v) for v in given if not isinstance(v, (int, str))), self._rank())
        pads: Any = padding
        if padding == "same":
            pads = "same_upper"
        elif not isinstance(padding, str):
            each: Any = padding if _paired(padding) else _sizes(padding, rank)
            pads = tuple((p, p) if isinstance(p, int) else tuple(p) for p in each)
        return at.Window(
            _sizes(kernel, rank), _sizes(stride, rank), pads, _sizes(dilation, rank), rounding
        )

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> str:
        """Convolution into so many channels."""
        window = self.window(kernel, stride, padding, dilation)
        return self._one("conv", x, at.Conv(window, channels, groups, bias), name)

    def conv_transpose(
        self,
        x: str,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> str:
        """Transposed convolution into so many channels."""
        window = self.window(kernel, stride, padding, dilation)
        extra = _sizes(output_padding, window.rank)
        attributes = at.TransposedConv(window, channels, groups, bias, extra)
        return self._one("conv_transpose", x, attributes, name)

    def _pool(self, kind: str, x: str, window: at.Window, name: str | None, **more: Any) -> str:
        return self._one(kind, x, at.Pool(window, **more), name)

    def max_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        rounding: at.Rounding = "floor",
        name: str | None = None,
    ) -> str:
        """Max pooling; the stride is the kernel unless given."""
        window = self.window(
            kernel, kernel if stride is None else stride, padding, dilation, rounding
        )
        return self._pool("max_pool", x, window, name)

    def avg_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = 0,
        rounding: at.Rounding = "floor",
        count_include_pad: bool = True,
        name: str | None = None,
    ) -> str:
        """Average pooling; the stride is the kernel unless given."""
        window = self.window(kernel, kernel if stride is None else stride, padding, 1, rounding)
        return self._pool("avg_pool", x, window, name, count_include_pad=count_include_pad)

    def lp_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        p: int = 2,
        stride: Sizes | None = None,
        padding: Padding = 0,
        name: str | None = None,
    ) -> str:
        """Pooling by the p-norm; the stride is the kernel unless given."""
        window = self.window(kernel, kernel if stride is None else stride, padding)
        return self._pool("lp_pool", x, window, name, p=p)

    def global_pool(self, x: str, kind: str = "avg", *, name: str | None = None) -> str:
        """Pooling over all positions: kind is avg, max or lp."""
        return self._one(f"global_{kind}_pool", x, at.GlobalPool(), name)

    def adaptive_pool(
        self,
        x: str,
        output: int | Sequence[int | None],
        kind: str = "avg",
        *,
        name: str | None = None,
    ) -> str:
        """Pooling into so many bins per axis: kind is avg or max."""
        bins = (output,) * self._rank() if isinstance(output, int) else tuple(output)
        return self._one(f"adaptive_{kind}_pool", x, at.AdaptivePool(bins), name)

    # -- products, norms, activations

    def linear(
        self,
        x: str,
        features: int,
        *,
        bias: bool = True,
        flatten: bool = False,
        name: str | None = None,
    ) -> str:
        """A matrix applied to the last axis, or with `flatten` to all but the first."""
        return self._one("linear", x, at.Linear(features, bias, flatten), name)

    def matmul(self, a: str, b: str, *, name: str | None = None) -> str:
        """Product of two tensors over their last two axes."""
        return self.add_node("matmul", (a, b), at.MatMul(), name=name)[0]

    def batch_norm(
        self, x: str, *, affine: bool = True, eps: float = 1e-5, name: str | None = None
    ) -> str:
        """Normalisation by stored statistics per channel."""
        return self._one("batch_norm", x, at.BatchNorm(affine, eps), name)

    def layer_norm(
        self, x: str, *, axis: int = -1, affine: bool = True, name: str | None = None
    ) -> str:
        """Normalisation over the axes from `axis` on."""
        return self._one("layer_norm", x, at.LayerNorm(axis, affine), name)

    def group_norm(
        self, x: str, groups: int, *, affine: bool = True, name: str | None = None
    ) -> str:
        """Normalisation over groups of channels."""
        return self._one("group_norm", x, at.GroupNorm(groups, affine), name)

    def lrn(
        self,
        x: str,
        size: int,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        within_channel: bool = False,
        name: str | None = None,
    ) -> str:
        """Local response normalisation over `size` neighbours."""
        return self._one("lrn", x, at.LocalResponseNorm(size, alpha, beta, k, within_channel), name)

    def relu(
        self, x: str, *, in_place: bool = False, name: str | None = None, module: bool = True
    ) -> str:
        """Rectified linear unit; `module` False where it is a bare function call."""
        return self.activation("relu", x, in_place=in_place, name=name, module=module)

    def activation(
        self,
        op: str,
        x: str,
        *,
        alpha: float | None = None,
        beta: float | None = None,
        in_place: bool = False,
        name: str | None = None,
        module: bool = True,
    ) -> str:
        """Any element-wise function by its op name: relu6, sigmoid, tanh, gelu, silu …"""
        attributes = at.Activation(alpha, beta, in_place)
        return self.add_node(op, (x,), attributes, name=name, module=module)[0]

    def prelu(self, x: str, *, shared: bool = False, name: str | None = None) -> str:
        """ReLU with a learned slope, one per channel or one in all."""
        return self._one("prelu", x, at.PReLU(shared), name)

    def softmax(self, x: str, *, axis: int = 1, name: str | None = None) -> str:
        """Softmax along one axis."""
        return self._one("softmax", x, at.Softmax(axis), name)

    def softmax_loss(self, x: str, *, axis: int = 1, name: str | None = None) -> str:
        """Cross entropy of a softmax along one axis."""
        return self._one("softmax_loss", x, at.Softmax(axis), name)

    def dropout(
        self, x: str, p: float = 0.5, *, in_place: bool = False, name: str | None = None
    ) -> str:
        """Dropout: nothing at inference."""
        return self._one("dropout", x, at.Dropout(p, in_place), name)

    # -- joins and shapes

    def add(self, *xs: str, name: str | None = None) -> str:
        """Sum of tensors, broadcast."""
        return self.add_node("add", xs, None, name=name)[0]

    def mul(self, *xs: str, name: str | None = None) -> str:
        """Product of tensors, broadcast."""
        return self.add_node("mul", xs, None, name=name)[0]

    def concat(self, *xs: str, axis: int = 1, name: str | None = None) -> str:
        """Join along one axis."""
        return self.add_node("concat", xs, at.Concat(axis), name=name)[0]

    def split(
        self, x: str, sizes: Sequence[int], *, axis: int = 1, name: str | None = None
    ) -> tuple[str, ...]:
        """Cut along one axis into pieces of these sizes."""
        return self.add_node(
            "split", (x,), at.Split(axis, tuple(sizes)), name=name, outputs=len(sizes)
        )

    def flatten(self, x: str, start: int = 1, end: int = -1, *, name: str | None = None) -> str:
        """Merge axes into one."""
        return self._one("flatten", x, at.Flatten(start, end), name)

    def reshape(self, x: str, shape: Sequence[int], *, name: str | None = None) -> str:
        """Give the elements a new shape; 0 keeps an axis, -1 takes what is left."""
        return self._one("reshape", x, at.Reshape(tuple(shape)), name)

    def permute(self, x: str, order: Sequence[int], *, name: str | None = None) -> str:
        """Put the axes in a new order."""
        return self._one("permute", x, at.Permute(tuple(order)), name)

    def resize(self, x: str, factor: int, *, mode: Any = "nearest", name: str | None = None) -> str:
        """Enlarge every spatial axis by a whole factor."""
        return self._one("resize", x, at.Resize(mode, scale=((factor, 1),)), name)

    def pixel_shuffle(
        self, x: str, factor: int, *, inverse: bool = False, name: str | None = None
    ) -> str:
        """Move blocks of channels into space."""
        return self._one("pixel_shuffle", x, at.PixelShuffle(factor, inverse), name)

    def _one(self, op: str, x: str, attributes: Any, name: str | None) -> str:
        return self.add_node(op, (x,), attributes, name=name)[0]


def _sizes(value: Any, rank: int) -> tuple[int, ...]:
    sizes = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(sizes) != rank:
        raise ShapeError(f"{sizes} for a window of {rank} axes")
    return sizes


def _paired(padding: Any) -> bool:
    return not isinstance(padding, int) and any(not isinstance(p, int) for p in padding)
