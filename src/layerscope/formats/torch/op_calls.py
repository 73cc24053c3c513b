"""One call of an operator: what its schema says, its arguments, and a key to look it up by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.formats.torch.aten import CONSTANTS, QUANTIZED_ONLY, RANDOM, converter_of
from layerscope.formats.torch.caches import OPERATORS
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.lowering import Converter
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Arg, Args, Key, Kwargs
from layerscope.graph.types import Source

if TYPE_CHECKING:
    from torch import FunctionSchema
    from torch._ops import OpOverload

IN_PLACE_OPERATORS = frozenset(
    ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")
)  # of Python
READS = frozenset(("_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"))
# TransformerEncoder asks it whether to drop padded tokens from its input.
LEFT_ALIGNED = "_nested_tensor_from_mask_left_aligned"
# Overloads that take a tensor as a number: they are decomposed, and PyTorch's own steps read it. So
# are overloads named "data", of recurrent networks on packed sequences.
DECOMPOSED = frozenset((("narrow", "Tensor"), ("tensor_split", "tensor_indices_or_sections")))
# Operators of PyTorch's decompositions (prims::mul) with the arguments of the ATen operator of that
# name; forward-mode differentiation calls them.
PRIMS = frozenset((
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "cos", "cosh", "digamma", "div", "eq",
    "erf", "erfc", "exp", "exp2", "expm1", "floor", "fmax", "fmin", "fmod", "ge", "gt", "isfinite",
    "le", "lgamma", "log", "log10", "log1p", "log2", "lt", "maximum", "minimum", "mul", "ne", "neg",
    "pow", "reciprocal", "remainder", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt",
    "sub", "tan", "tanh", "trunc", "where",
))  # fmt: skip
INTS = frozenset((int,))  # types in a list of sizes or axes


class OpInfo(Struct, frozen=True, eq=False):
    """What the schema of an operator says, the same for all its calls."""

    func: OpOverload  # a reference, so that no other object gets its id
    name: str  # in the table of converters: without overload and without a trailing underscore
    full: str  # with its namespace: aten.add_
    source: Source
    convert: Converter | None  # makes nodes of a call; None: unsupported
    kind: str  # compute | view | write | constant | random | read | left_aligned | …
    in_place: bool
    quantized: bool = False  # works on quantized tensors, which the meta device has not
    others: int = 0  # results beside the first
    outs: tuple[str, ...] = ()  # named arguments that it writes into: `out=`


class OpCall(Struct, gc=False, eq=False):
    """One call of an operator."""

    info: OpInfo
    func: OpOverload
    args: Args
    kwargs: Kwargs
    given: list[TracedTensor]  # its tensors, in order
    key: Key  # operator and arguments, with a `TensorMeta` for each tensor


def op_info(func: OpOverload) -> OpInfo:
    """The `OpInfo` of an operator, cached."""
    info = OPERATORS.get(id(func))
    if info is None:
        info = OPERATORS.setdefault(id(func), _read_schema(func))
    return info


def _read_schema(func: OpOverload) -> OpInfo:
    schema = getattr(func, "_schema", None)
    if schema is None:  # torch.cond and others that take functions
        full = f"higher_order.{func.name()}"
        return OpInfo(func, func.name(), full, Source(op=full), None, "higher_order", False)
    full = schema.name.replace("::", ".")
    space, _, packet = full.partition(".")
    writes = schema.is_mutable
    in_place = packet.endswith("_") and not packet.endswith("__") and writes
    name = packet[:-1] if in_place else packet
    if writes and packet in IN_PLACE_OPERATORS:
        in_place, name = True, packet.replace("__i", "__")
    kind = _kind(schema, space, name)
    has_converter = space in ("aten", "torchvision") or (space == "prims" and name in PRIMS)
    convert = converter_of(name) if has_converter and kind != "read" else None
    if (name, func._overloadname) in DECOMPOSED or func._overloadname == "data":
        convert = None
    quantized = space == "quantized" or (space == "aten" and name in QUANTIZED_ONLY)
    if quantized:
        from layerscope.formats.torch.aten.quantized_operators import QUANTIZED

        convert = QUANTIZED.get(name)
    others = len(schema.returns) - 1
    outs = tuple([
        arg.name for arg in (schema.arguments if writes else ())
        if arg.alias_info is not None and arg.alias_info.is_write
    ])  # fmt: skip
    source = Source(op=full)
    return OpInfo(func, name, full, source, convert, kind, in_place, quantized, others, outs)


def _kind(schema: FunctionSchema, space: str, name: str) -> str:
    """Which handler takes the calls of an operator."""
    if schema.is_mutable:
        return "write"
    if space == "aten":
        if name in CONSTANTS:
            return "constant"
        if name in RANDOM:
            return "random"
        if name in READS:
            return "read"
        if name == LEFT_ALIGNED:
            return "left_aligned"
    return "view" if any(ret.alias_info is not None for ret in schema.returns) else "compute"


# Keys


def cache_key(run: Capture, args: Iterable[Arg], given: list[TracedTensor]) -> Key:
    """Arguments as a hashable key; their tensors are appended to `given`."""
    parts: list[object] = []
    tensor_types, plain_types, traced_by_id = run.tensor_types, run.plain_types, run.tracker.traced
    for arg in args:
        kind = type(arg)
        if kind in tensor_types:
            traced = traced_by_id.get(id(arg)) or run.tracker.lookup(arg)
            given.append(traced)
            parts.append(traced.meta)
        elif kind in plain_types:
            parts.append(arg)
        elif kind is float or kind is bool:
            parts.append((kind, arg))  # 1, 1.0 and True are equal, but make other dtypes
        elif kind is list or kind is tuple:
            parts.append(_list_key(run, arg, given))
        elif isinstance(arg, run.torch.Tensor):  # of a subclass
            given.append(run.tracker.lookup(arg))
            parts.append(given[-1].meta)
        elif isinstance(arg, (list, tuple)):
            parts.append(_list_key(run, arg, given))
        elif kind is run.torch.ScriptObject:
            parts.append(_packed_key(run, arg, given))
        else:
            try:
                hash(arg)
                parts.append(arg)
            except TypeError:
                parts.append(object())
    return tuple(parts)


def named_key(run: Capture, kwargs: Kwargs, given: list[TracedTensor]) -> Key:
    """As `cache_key`, of named arguments."""
    return (tuple(kwargs), cache_key(run, kwargs.values(), given))


def _list_key(run: Capture, items: Sequence[Arg], given: list[TracedTensor]) -> Key:
    types = {*map(type, items)}
    if types <= INTS:
        return tuple(items)
    if not types <= run.tensor_types:
        return cache_key(run, items, given)
    traced_by_id, lookup = run.tracker.traced, run.tracker.lookup
    tensors = [traced_by_id.get(id(item)) or lookup(item) for item in items]
    given += tensors
    return tuple([traced.meta for traced in tensors])


def _packed_key(run: Capture, packed: Arg, given: list[TracedTensor]) -> object:
    """The key of a packed object of a quantized module: its arrays are tensors of the call."""
    pack = run.packs.of(packed)
    if pack is None:
        return object()
    arrays = [run.tracker.lookup(array) for array in pack.arrays.values()]
    given += arrays
    return (pack.conv_args, *pack.arrays, *[traced.meta for traced in arrays])
