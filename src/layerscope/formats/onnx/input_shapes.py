"""Shapes of graph inputs: declared by the file, given by the user, else assumed and noted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.formats.onnx.skim import Dim, ValueInfo
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from layerscope.formats import ReadOptions

TOKENS = 128
# Height and width of an image, and steps of a sequence, that are tried in this order until the
# shapes of the network agree.
GUESSES = (
    ((224, 224), 512),
    ((48, 320), 16000),
    ((32, 320), 1024),
    ((640, 640), 128),
    ((256, 256), 64),
    ((64, 64), 4096),
)
SUM = re.compile(r"^\s*(\w[\w.]*)\s*\+\s*(\w[\w.]*)\s*$")


class Binding:
    """Binds every open size of the inputs, and records which were assumed."""

    def __init__(
        self, inputs: Sequence[ValueInfo], options: ReadOptions, file: str, guess: int = 0
    ) -> None:
        self.inputs, self.batch, self.file = inputs, options.batch, file
        self.image, self.steps = GUESSES[guess]
        self.dims = dict(options.dims)
        self.assumed: dict[str, tuple[Shape | None, list[str]]] = {}  # input -> shape, sizes
        self.shapes = self._given(options.inputs)
        self._check_dims(options.dims)
        for value in inputs:
            self._learn(value)
        if self.batch is not None and self.batch < 1:
            raise UsageError(f"batch {self.batch}, expected at least 1")
        # If any input has an open first size, `batch` sets only those; else it sets all.
        self.open = any(_open(value) for value in inputs)

    def _given(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        given = dict(shapes)
        names = [value.name for value in self.inputs]
        if "" in given and names:
            given[names[0]] = given.pop("")
        for name, shape in given.items():
            if name not in names:
                listed = ", ".join(names)
                raise UnknownName("input", name, names, f"; {self.file} has {listed}")
            if min(shape, default=1) < 0:
                raise UsageError(f"input {name}: {shape}, expected no size below 0")
        return given

    def _check_dims(self, dims: Mapping[str, int]) -> None:
        names = {dim.name for value in self.inputs for dim in value.dims or () if dim.name}
        counted = {value.name for value in self.inputs if value.kind in COUNTED}
        names |= counted
        parts = names | {part for name in names for part in re.findall(r"\w[\w.]*", name)}
        for name, size in dims.items():
            if name not in parts:
                listed = ", ".join(sorted(names)) or "none with a name"
                raise UnknownName("dim", name, parts, f"; {self.file} leaves open {listed}")
            if size < (0 if name in counted else 1):
                raise UsageError(f"dim {name}={size}, expected at least 1")

    def _learn(self, value: ValueInfo) -> None:
        """Take sizes of named dims from a given shape, for other inputs with the same names."""
        shape = self.shapes.get(value.name)
        if shape is None or value.dims is None:
            return
        if len(shape) == len(value.dims) - 1 and value.dims:
            lead = value.dims[0]
            first = self.batch if self.batch is not None else self.dims.get(lead.name, lead.size)
            shape = self.shapes[value.name] = (first if first is not None else 1, *shape)
        if len(shape) != len(value.dims):
            dims = "x".join(str(dim.size or dim.name or "?") for dim in value.dims)
            raise UsageError(
                f"input {value.name}: {len(shape)} sizes, expected {len(value.dims)} as in {dims}, "
                f"or {len(value.dims) - 1} without the batch"
            )
        for n, (dim, size) in enumerate(zip(value.dims, shape, strict=True)):
            if dim.size is not None and dim.size != size and n:
                continue  # the user overrides the declared size; nodes that read it check it
            if dim.name:
                self.dims.setdefault(dim.name, size)

    def shape(self, value: ValueInfo) -> Shape | None:
        """The shape of an input; None if not even its rank is declared."""
        if value.name in self.shapes:
            shape = self.shapes[value.name]
            if self.batch is not None and shape and self._batched(value):
                shape = (self.batch, *shape[1:])
            return shape
        if value.dims is None:
            return None
        sizes: list[int] = []
        open_: list[str] = []
        for axis, dim in enumerate(value.dims):
            if axis == 0 and self.batch is not None and self._batched(value):
                sizes.append(self.batch)
                continue
            size = self._size(dim)
            if size is None:
                size = self._default(value, axis)
                open_.append(f"{dim.name or ('axis ' + str(axis) if axis else 'batch')} {size}")
                if dim.name:
                    self.dims[dim.name] = size
            sizes.append(size)
        shape = tuple(sizes)
        if open_:
            self.assumed[value.name] = (shape, open_)
        return shape

    def items(self, value: ValueInfo) -> int:
        """Number of tensors in a sequence or an optional: that of --dim, else one."""
        count = self.dims.get(value.name)
        if count is None:
            self.assumed[value.name] = (None, ["holds 1"])
            return 1
        most = 1 if value.kind == "optional" else MOST_ITEMS
        if count > most:
            raise UsageError(f"dim {value.name}={count}, expected at most {most} in a {value.kind}")
        return count

    def _batched(self, value: ValueInfo) -> bool:
        return value.kind not in COUNTED and (_open(value) or not self.open)

    def _size(self, dim: Dim) -> int | None:
        """A size that is declared or given, or a sum of two such."""
        if dim.name in self.dims and dim.name:
            return self.dims[dim.name]
        if dim.size is not None:
            return dim.size
        sum_ = SUM.match(dim.name)
        if sum_:
            parts = [int(w) if w.isdigit() else self.dims.get(w) for w in sum_.groups()]
            if parts[0] is not None and parts[1] is not None:
                return parts[0] + parts[1]
        return None

    def _default(self, value: ValueInfo, axis: int) -> int:
        """The assumed size: 1 for a batch, else of an image, or a number of tokens or steps."""
        dims = value.dims or ()
        if axis == 0:
            return 1
        if axis == 1 and len(dims) == 3 and dims[0].size is not None and dims[2].size is not None:
            return 1  # the batch of a recurrent layer's state
        if len(dims) == 4:
            return self.image[axis % 2]
        if value.dtype.startswith(("int", "uint", "bool")):
            return TOKENS
        return self.steps

    def declared(self, value: ValueInfo) -> Shape | None:
        """The declared shape of an intermediate tensor, if all its sizes are bound."""
        sizes = [self._size(dim) for dim in value.dims or ()]
        if value.dims is None or any(size is None for size in sizes):
            return None
        return tuple(size for size in sizes if size is not None)

    def note(self) -> str:
        """A note on assumed sizes; "" if there are none."""
        if not self.assumed:
            return ""
        listed = ", ".join(
            f"{name} {_times(shape) if shape is not None else ''} ({', '.join(sizes)})".replace(
                "  ", " "
            )
            for name, (shape, sizes) in self.assumed.items()
        )
        return f"assumed, as the file leaves it open: {listed}; --input or --dim tells others"


def _open(value: ValueInfo) -> bool:
    return (
        value.kind not in COUNTED
        and bool(value.dims)
        and value.dims is not None
        and value.dims[0].size is None
    )


def _times(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"


READ = (
    "tensor", "sparse tensor", "sequence", "sequence map", "optional", "optional sequence", "map",
)  # fmt: skip
COUNTED = ("sequence", "optional", "optional sequence")  # --dim NAME=N sets their length
MOST_ITEMS = 4096  # of a sequence that is an input


def check_kinds(inputs: Sequence[ValueInfo], file: str) -> None:
    """Raise for an input of a type that cannot be read."""
    for value in inputs:
        if value.kind not in READ:
            raise FormatError(
                f"{file}: input {value.name!r} is a {value.kind}, expected a tensor, sequence, "
                "optional or map"
            )
