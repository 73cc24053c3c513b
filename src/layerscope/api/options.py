"""Checks of the options for a network: two that contradict each other, or one without an effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.graph.dtype_names import dtype_name
from layerscope.graph.edits import FLOATS
from layerscope.graph.names import shape_text
from layerscope.graph.types import Graph, Shape, Tensor

if TYPE_CHECKING:
    from layerscope.formats import Recognised
    from layerscope.formats.onnx.skim import ValueInfo

# Option of a reader -> the formats that it applies to. The readers of caffemodel, onnx and pt2
# refuse `weights` and `dims` themselves, and say why.
APPLIES_TO = {
    "phase": ("caffe", "caffemodel"),
    "proposals": ("caffe", "caffemodel", "matconvnet"),
    "weights": ("caffe", "caffemodel", "onnx"),
    "keep_going": ("caffe", "caffemodel"),
    "dims": ("onnx", "pt2"),
}
REFUSED_BY_READER = {"weights": ("caffemodel", "onnx"), "dims": ("pt2",)}
IMAGE_AXES = 3  # of an image without the batch


class Asked(Struct, frozen=True):
    """The options that set the sizes of inputs."""

    shapes: Mapping[str, Shape] = {}  # by input name; "" is the first input
    batch: int | None = None
    tokens: int | None = None
    decode: int | None = None
    dims: Mapping[str, int] = {}

    @property
    def has_several(self) -> bool:
        """Whether there are two options, which may contradict each other."""
        numbers = (self.batch, self.tokens, self.decode)
        given = [bool(self.shapes), bool(self.dims), *(each is not None for each in numbers)]
        return sum(given) > 1 or len(self.shapes) > 1


def is_given(value: object) -> bool:
    """Whether an option has a value other than "not given"."""
    return value is not None and value is not False and value not in ((), {})


def check_effect(network: str, options: Mapping[str, Any], found: Recognised | None) -> None:
    """Raise for an option of readers that does not apply to a network: one in a file, or None."""
    for name, value in options.items():
        why = (
            ""
            if name not in APPLIES_TO or not is_given(value)
            else _why_without_effect(network, name, found)
        )
        if why:
            raise UsageError(f"{name} has no effect: {why}")


def applies(network: str, name: str, found: Recognised | None) -> bool:
    """Whether an option of readers applies to a network, or its reader says why not."""
    return name not in APPLIES_TO or not _why_without_effect(network, name, found)


def formats_of(name: str) -> list[str]:
    """The formats that an option of readers applies to."""
    return [each for each in APPLIES_TO[name] if each not in REFUSED_BY_READER.get(name, ())]


def _why_without_effect(network: str, name: str, found: Recognised | None) -> str:
    """Why an option has no effect on a network; "" if it has one."""
    from layerscope.formats import INDEXED, kind_of_json, names_a_model

    listed = f"{name} applies to files of the format {' or '.join(formats_of(name))}"
    if names_a_model(network):
        return f"{network} is the name of a PyTorch model, and {listed}"
    if found is None:
        return f"{network} is a zoo network, and {listed}"
    kind = found.format or (INDEXED if kind_of_json(network) == "index" else None)
    if kind is None or kind.name in APPLIES_TO[name]:  # the reader refuses other JSON files
        return ""
    return f"{network} has the format {kind.name}, and {listed}"


def check_sizes(inputs: Sequence[Tensor], asked: Asked) -> None:
    """Raise if two options set a size of an input to different values."""
    shapes = _by_name(asked.shapes, [tensor.name for tensor in inputs])
    for tensor in inputs:
        shape = shapes.get(tensor.name)
        if shape is not None:
            axes = None if tensor.shape is None else len(tensor.shape)
            _check_batch(tensor.name, shape, axes, asked.batch)
            if axes == 2 and tensor.dtype == "int64":
                _check_length(tensor.name, shape, asked)


def check_module_sizes(sizes: object, asked: Asked) -> None:
    """Raise if the sizes of a module's inputs, which have the batch, contradict other options."""
    for name, shape in _sizes_of(sizes, ""):
        _check_batch(name, shape, len(shape), asked.batch)


def check_module_length(sizes: object, graph: Graph, asked: Asked) -> None:
    """Raise if the size of a module's only input contradicts `tokens` or `decode`."""
    given = list(_sizes_of(sizes, ""))
    tokens = [t for t in graph.inputs if t.dtype == "int64" and len(t.shape or ()) == 2]
    if len(given) == 1 and tokens:
        _check_length(*given[0], asked)


def _sizes_of(sizes: object, name: str) -> Iterator[tuple[str, Shape]]:
    """Each shape in a shape, a list or a dict of shapes, with the name of its input."""
    if isinstance(sizes, Mapping):
        for key, each in sizes.items():
            yield from _sizes_of(each, str(key) or name)
    elif isinstance(sizes, (list, tuple)) and sizes:
        if all(isinstance(size, int) for size in sizes):
            yield name, tuple(sizes)
        else:
            for each in sizes:
                yield from _sizes_of(each, name)


def _by_name(shapes: Mapping[str, Shape], names: Sequence[str]) -> dict[str, Shape]:
    """Shapes by the names of inputs; raises if the first input has two."""
    given = dict(shapes)
    if "" in given and names:
        first = given.pop("")
        if given.setdefault(names[0], first) != first:
            raise UsageError(
                f"input {shape_text(first)} cannot be combined with input "
                f"{names[0]}={shape_text(given[names[0]])}: {names[0]} is the first input"
            )
    return given


def _check_batch(name: str, shape: Shape, axes: int | None, batch: int | None) -> None:
    """Raise if a shape has another batch; `axes` is the rank of the input, None if unknown."""
    has_batch = len(shape) == axes if axes is not None else len(shape) != IMAGE_AXES
    if batch is not None and has_batch and shape and shape[0] != batch:
        rest = f", or leave the batch out: {shape_text(shape[1:])}" if len(shape) > 1 else ""
        raise UsageError(
            f"batch {batch} cannot be combined with {_input(name, shape)}, whose batch "
            f"is {shape[0]}; give one of them{rest}"
        )


def _input(name: str, shape: Shape) -> str:
    """An input as on the command line."""
    return f"input {name}={shape_text(shape)}" if name else f"input {shape_text(shape)}"


def _check_length(name: str, shape: Shape, asked: Asked) -> None:
    """Raise if the shape of an input of tokens has another length."""
    if asked.tokens is not None and shape and shape[-1] != asked.tokens:
        raise UsageError(
            f"tokens {asked.tokens} cannot be combined with {_input(name, shape)}, which "
            f"has {shape[-1]} tokens"
        )
    if asked.decode is not None and shape and shape[-1] != 1:
        raise UsageError(
            f"decode {asked.decode} cannot be combined with {_input(name, shape)}: it "
            "reads one token"
        )


def check_onnx(path: str, asked: Asked) -> None:
    """Raise if two options set a size of an input in an ONNX file to different values."""
    if not asked.has_several:
        return
    from layerscope.codecs.protobuf import mapped
    from layerscope.formats.onnx.skim import model_of

    with mapped(path) as wire:
        graph = model_of(wire).graph
        stored = {tensor.name for tensor in graph.stored}
        inputs = [value for value in graph.inputs if value.name not in stored]
    shapes = _by_name(asked.shapes, [value.name for value in inputs])
    for value in _batched(inputs):
        _check_batch_dim(value, asked)
        if value.name in shapes:
            axes = None if value.dims is None else len(value.dims)
            _check_batch(value.name, shapes[value.name], axes, asked.batch)
    for value in inputs:
        if value.name in shapes:
            _check_dims(value, shapes[value.name], asked.dims)
        if value.dtype == "int64" and value.dims is not None and len(value.dims) == 2:
            _check_length(value.name, shapes.get(value.name, ()), asked)
            _check_length_dim(value, asked)


def _batched(inputs: Sequence[ValueInfo]) -> list[ValueInfo]:
    """Inputs whose first size is the batch: those where the file leaves it open, else all."""
    from layerscope.formats.onnx.input_shapes import COUNTED

    tensors = [value for value in inputs if value.kind not in COUNTED]
    left_open = [value for value in tensors if value.dims and value.dims[0].size is None]
    return left_open or tensors


def _check_batch_dim(value: ValueInfo, asked: Asked) -> None:
    name = value.dims[0].name if value.dims else ""
    if asked.batch is not None and asked.dims.get(name, asked.batch) != asked.batch:
        raise UsageError(
            f"batch {asked.batch} cannot be combined with dim {name}={asked.dims[name]}, which is "
            f"the batch of input {value.name}"
        )


def _check_length_dim(value: ValueInfo, asked: Asked) -> None:
    name = value.dims[1].name if value.dims else ""
    for option, length in (("tokens", asked.tokens), ("decode", asked.decode)):
        read = length if option == "tokens" or length is None else 1
        if asked.dims.get(name, read) != read and read is not None:
            raise UsageError(
                f"{option} {length} cannot be combined with dim {name}={asked.dims[name]}, which "
                f"is the number of tokens of input {value.name}"
            )


def _check_dims(value: ValueInfo, shape: Shape, dims: Mapping[str, int]) -> None:
    """Raise if a shape has another size at an axis whose symbol `dims` sets."""
    axes = value.dims or ()
    axes = axes[1:] if len(shape) == len(axes) - 1 else axes
    if len(shape) != len(axes):
        return  # the reader refuses it
    for axis, size in zip(axes, shape, strict=True):
        parts = _parts(axis.name, dims)
        if parts and sum(parts.values()) != size:
            listed = " and ".join(f"dim {part}={dims[part]}" for part in parts if part in dims)
            raise UsageError(
                f"{listed} cannot be combined with input {value.name}={shape_text(shape)}, where "
                f"{axis.name} is {size}"
            )


def _parts(name: str, dims: Mapping[str, int]) -> dict[str, int]:
    """Terms of the sum that is the symbol of an axis, if `dims` has all of them; else {}."""
    from layerscope.formats.onnx.input_shapes import SUM

    if name in dims:
        return {name: dims[name]}
    found = SUM.match(name)
    terms = found.groups() if found else ()
    sizes = {term: int(term) if term.isdigit() else dims.get(term) for term in terms}
    bound = {term: size for term, size in sizes.items() if size is not None}
    return bound if len(bound) == len(set(terms)) == 2 and dims.keys() & bound else {}


def check_dtypes(dtypes: object, dtype: str | None) -> None:
    """Raise if floating-point inputs of a module are asked for in another dtype than the network.

    `dtypes` is that of `analyze` for modules: one dtype, or several in a list.
    """
    listed = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
    names = [dtype_name(each) for each in listed if each is not None]
    other = next((name for name in names if name in FLOATS and name != dtype), None)
    if dtype is not None and other is not None:
        raise UsageError(f"dtype {dtype} cannot be combined with dtypes {other}, of an input")


# Names of rules that are no operators of PyTorch's dispatcher.
OTHER_RULES = ("flex_attention.score_mod",)


def check_rules(rules: object) -> None:
    """Raise for a rule of a name that no operator has, which would be ignored.

    An operator is `space::name`, `space.name` or `name`. A model need not call it.
    """
    if not isinstance(rules, Mapping) or not rules:
        return
    from layerscope.formats.torch.capture import the_torch

    torch = the_torch()
    packets = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    packets |= {f"higher_order::{name}" for name in getattr(torch._ops, "_higher_order_ops", ())}
    bare = {name.partition("::")[2] for name in packets}
    dotted = {name.replace("::", ".") for name in packets}
    names = {*OTHER_RULES, *packets, *dotted, *bare, *(name.removesuffix("_") for name in bare)}
    for name in rules:
        if name not in names:
            space = str(name).replace("::", ".").partition(".")[0]
            inside = sorted(each for each in packets if each.startswith(f"{space}::"))[:20]
            listed = "no library with it is imported"
            if inside:
                listed = f"{space} has {', '.join(inside)}"
            raise UnknownName("operator in rules", str(name), sorted(packets | bare), f"; {listed}")


def check_bound(graph: Graph, asked: Asked) -> None:
    """Raise if a network has no input that a batch could apply to."""
    if asked.batch is not None and not any(tensor.shape for tensor in graph.inputs):
        raise UsageError(f"batch has no effect: {graph.name} has no input with a batch")


def check_unused(options: Mapping[str, Any], why: str) -> None:
    """Raise for an option that would have no effect."""
    unused = next((name for name, value in options.items() if is_given(value)), None)
    if unused is not None:
        raise UsageError(f"{unused} has no effect: {why}")
