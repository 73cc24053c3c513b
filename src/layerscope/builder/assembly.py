"""Putting a graph together: names, scopes, modules, windows. The Builder adds the ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from layerscope.builder.bounds import check_attributes, check_shape
from layerscope.errors import GraphError, ShapeError
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Source, Tensor
from layerscope.ops import SPECS

Sizes = int | Sequence[int]
Padding = Sizes | Sequence[tuple[int, int]] | str

# Bare function calls in the frameworks: they belong to no module.
FUNCTIONS = frozenset((
    "add", "sub", "mul", "div", "pow", "max", "min", "compare",
    "concat", "split", "slice", "reshape", "flatten", "permute", "pad", "crop",
))  # fmt: skip


class Assembly:
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
        self._params: list[Param] = []
        self._nodes: list[Node] = []
        self._scope: tuple[str, ...] = ()
        self._prefix = ""
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._same: dict[Any, Any] = {}
        self._windows: dict[Any, at.Window] = {}
        self._modules: dict[str, str | None] = {"": module or name}
        self._modules.update(dict.fromkeys(order))

    def input(self, name: str, shape: Shape, dtype: str = "fp32") -> str:
        """Declare an input; the batch is its first axis."""
        shape = check_shape(f"{self.name}: input {name}", shape)
        self._inputs.append(Tensor(name, shape, dtype))
        return name

    def stored(self, name: str, shape: Shape, role: Role, dtype: str = "fp32") -> str:
        """Declare an array that nodes take as an input; one of role `statistic` is a buffer."""
        shape = check_shape(f"{self.name}: {self._prefix}{name}", shape)
        self._params.append(Param(self._prefix + name, shape, role, dtype))
        return self._params[-1].name

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
        attributes: Struct | None = None,
        *,
        name: str | None = None,
        outputs: int = 1,
        module: bool = True,
        ties: Mapping[str, str] | None = None,
        source: Source | None = None,
    ) -> tuple[str, ...]:
        """Add a node of any op, as a module or a bare call; return the names of its outputs."""
        path = self._prefix + (name if name is not None else self._fresh(op))
        full = path
        if full in self._names:
            rule = SPECS.get(op)
            if rule is None or rule.has_params:  # shared arrays must be stated (`ties`)
                raise GraphError(f"{self.name}: two nodes are named {full!r}")
            full = self._again(path)  # a module without parameters, called once more
        self._names.add(full)
        if attributes is not None:
            same = self._same.get(attributes)
            if same is None:
                if isinstance(attributes, Struct):
                    check_attributes(f"{self.name}: {full}", attributes)
                same = self._same[attributes] = attributes
            attributes = same
        module = module and op not in FUNCTIONS
        if module and self._modules.get(path) is None:
            self._modules[path] = ""
        names = (full,) if outputs == 1 else tuple(f"{full}:{n}" for n in range(outputs))
        node = Node(
            name=full,
            op=op,
            inputs=tuple(inputs),
            outputs=names,
            attributes=attributes,
            scope=self._scope,
            module=path if module else "",
            ties=ties,
            source=source,
        )
        self._nodes.append(node)
        return names

    @property
    def last_node(self) -> Node:
        """The node that was added last."""
        return self._nodes[-1]

    def _fresh(self, op: str) -> str:
        key = self._prefix + op
        count = self._counts.get(key, 0) + 1
        while f"{key}{count}" in self._names:
            count += 1
        self._counts[key] = count
        return f"{op}{count}"

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
            produced = (tensor for node in self._nodes for tensor in node.outputs)
            outputs = tuple(tensor for tensor in produced if tensor not in read)
        return Graph(
            name=self.name,
            inputs=tuple(self._inputs),
            nodes=tuple(self._nodes),
            outputs=outputs,
            params=tuple(self._params),
            modules={path: kind for path, kind in self._modules.items() if kind is not None},
        )

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
        for value in given:
            if not isinstance(value, (int, str, Sequence)):
                raise ShapeError(f"{self.name}: {value!r:.80} in a window, expected whole numbers")
        rank = next((len(v) for v in given if not isinstance(v, (int, str))), self._rank())
        pads: Any = padding
        if padding == "same":
            pads = "same_upper"
        elif not isinstance(padding, str):
            each: Any = padding if _paired(padding) else sizes(padding, rank)
            pads = tuple((p, p) if isinstance(p, int) else tuple(p) for p in each)
        return at.Window(
            sizes(kernel, rank), sizes(stride, rank), pads, sizes(dilation, rank), rounding
        )


def sizes(value: Any, rank: int) -> tuple[int, ...]:
    if isinstance(value, str):
        raise ShapeError(f"{value!r:.80} as sizes of a window, expected whole numbers")
    sizes = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(sizes) != rank:
        raise ShapeError(f"{sizes} for a window of {rank} axes")
    return sizes


def _paired(padding: Padding) -> bool:
    return not isinstance(padding, int) and any(not isinstance(p, int) for p in padding)
