"""What is answered before the run: all that depends on shapes and constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.arrays import Array, TooLarge
from layerscope.formats.onnx.known import Entry, Known, NeedsValue
from layerscope.formats.onnx.numbers import FLOATS
from layerscope.formats.onnx.site import Site
from layerscope.formats.onnx.tensors import Stored, role_in
from layerscope.formats.onnx.values import EVALUATE, WITH_CONTEXT
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Shape, elements

FEW = 8  # numbers of a float constant that is worked with rather than learned
# Operators that this holds for. Others, such as the Relu of weights in a weighted sum, may well
# have a small array that is learned.
ARITHMETIC = frozenset((
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Sum", "Max", "Min", "Neg", "Abs", "Floor", "Ceil",
    "Round", "Sqrt", "Reciprocal", "Sign", "Exp", "Log", "Equal", "Greater", "Less", "Where",
    "GreaterOrEqual", "LessOrEqual", "Identity", "Cast", "CastLike", "Gather", "Concat", "Slice",
    "Split", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile", "Pad",
    "Range", "ScatterND", "ScatterElements", "NonZero", "CumSum", "ReduceProd", "ReduceSum",
    "ReduceMax", "ReduceMin", "ReduceMean",
))  # fmt: skip

# These leave the numbers of an array as they are, so that a weight is still one behind them.
KEEP_NUMBERS = (
    "Identity", "Cast", "CastLike", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
    "DequantizeLinear",
)  # fmt: skip


def constant(s: Site) -> None:
    """A Constant: an array of the file, whatever it is written as."""
    name = next((name for name in s.operator.outputs if name), "")
    if not name:
        return
    reader = s.reader
    for key, attribute in s.attributes.items():
        value = attribute.value
        if isinstance(value, Stored):
            known = s.env[name] = reader.store(name, value, s.scope, _role(s))
            if known.entry is not None:
                known.entry.aside = True
            return
        if key in ("value_int", "value_ints"):
            array = _literal(value, "int64")
        elif key in ("value_float", "value_floats"):
            array = _literal(value, "fp32")
        else:
            array = Array(() if isinstance(value, str) else (len(value or ()),), [], "string")
            s.env[name] = Known(reader.literal(name, array, s.scope).name, array.shape, "string")
            return
        s.env[name] = reader.literal(name, array, s.scope)
        return
    raise FormatError(f"{s.where}: a constant without a value")


def fold(s: Site) -> bool:
    """Answer before the run what depends on shapes and constants alone."""
    op, inputs, domain = s.op, s.inputs, s.operator.domain
    if domain:
        first = inputs[0] if inputs else None
        if (domain, op) != ("com.microsoft", "DequantizeLinear") or first is None:
            return False
        if first.entry is None or not all(known is None or known.constant for known in inputs):
            return False
        return _derive(s, first)
    if op in ("Shape", "Size"):
        shape = inputs[0].shape if inputs and inputs[0] is not None else None
        if shape is None:
            return False
        if op == "Size":
            array = Array((), [elements(shape)], "int64")
        else:
            cut = shape[s.whole("start") : s.told.get("end", len(shape))]
            array = Array((len(cut),), list(cut), "int64")
        give_known(s, [array])
        return True
    if not inputs or not s.constant:
        return False
    first = inputs[0]
    if op == "ConstantOfShape":
        return _filled(s)
    if op in KEEP_NUMBERS and first is not None and first.entry is not None:
        return _derive(s, first)
    evaluate = EVALUATE.get(op)
    if evaluate is None:
        return False
    few = FEW if op in ARITHMETIC else 1
    if any(_learned(s, known, few) for known in inputs):
        return False
    arrays: list[Array | None] = []
    count = 8
    for known in inputs:
        value = None
        if known is not None:
            value = known.value
            if value is None:
                return False
            count += len(value.values)
        arrays.append(value)
    told = s.told
    if op in WITH_CONTEXT:
        told = {**told, "outputs": len(s.operator.outputs), "opset": s.opset}
    s.reader.numbers -= count
    if s.reader.numbers < 0:
        return False
    try:
        made = evaluate(told, arrays)
    except TooLarge:
        return False
    del made[len(s.operator.outputs) :]
    s.reader.numbers -= sum([len(array.values) for array in made])
    for known in inputs:
        s.reader.uses(known)
    give_known(s, made)
    return True


def give_known(s: Site, arrays: Sequence[Array]) -> None:
    """Outputs whose numbers are known: the node has nothing left to do."""
    told = at.DeclaredOutputs(tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))
    for known, array in zip(s.emit("constant", (), told), arrays, strict=True):
        known._value = array


def _role(s: Site) -> str:
    spans = s.operator.metadata
    return role_in(s.reader.wire, spans) if spans else ""


def _filled(s: Site) -> bool:
    """A ConstantOfShape: an array of the file if its shape is written there."""
    sizes = s.given(0)
    shape = sizes.value
    if shape is None:
        return False
    s.reader.uses(sizes)
    value: Array | None = s.told.get("value")
    dtype = value.dtype if value is not None else "fp32"
    fill = value.values[0] if value is not None and value.values else 0.0
    made = shape.ints()
    if any(size < 0 for size in made):
        raise ShapeError(f"a shape of {made}")
    name = s.operator.outputs[0]

    def numbers() -> Array | None:
        try:
            return EVALUATE["ConstantOfShape"]({"value": value}, [shape])[0]
        except TooLarge:
            return None

    role = _role(s)
    if sizes.entry is None or (dtype not in FLOATS and not role):  # worked out, not written
        known = s.told_node("constant", (), (made,), (dtype,))[0]
        known._value = numbers
        return True
    entry = Entry(s.reader.tensor_name(name, s.scope), made, dtype, None, role)
    entry.fill = fill
    s.reader.entries.append(entry)
    s.reader.tensors[entry.name] = (made, dtype)
    s.env[name] = Known(entry.name, made, dtype, numbers, entry)
    return True


def _derive(s: Site, first: Known) -> bool:
    """An array of the file in another shape or type, which is done once."""
    try:
        shape, dtype = _derived_shape(s)
    except NeedsValue:
        return False
    known = s.told_node("constant", (), (shape,), (dtype,), params=_scales(s))[0]
    for other in s.inputs[1:]:
        s.reader.uses(other)
    known.entry = first.entry
    assert first.entry is not None
    s.reader.derived[known.name] = first.entry
    if s.op == "Identity":
        s.reader.renamed.append((known.name, first.entry))
    evaluate = EVALUATE.get(s.op)
    if evaluate is not None:
        inputs, told = s.inputs, s.told

        def value() -> Array | None:
            arrays = [None if k is None else k.value for k in inputs]
            if any(
                k is not None and array is None for k, array in zip(inputs, arrays, strict=True)
            ):
                return None
            try:
                return evaluate(told, arrays)[0]
            except TooLarge:
                return None

        known._value = value
    return True


def _derived_shape(s: Site) -> tuple[Shape, str]:
    from layerscope.formats.onnx.operators.moving import moved_shape

    if s.op == "DequantizeLinear":
        stored = s.given(0).entry
        if stored is not None:
            stored.narrow = True
        return s.shape(0), s.dtype(1)
    return moved_shape(s)


def _scales(s: Site) -> list[Param]:
    """Scales and zero points of a stored array: buffers, also where the array is another's."""
    if s.op != "DequantizeLinear":
        return []
    names = {1: "scale", 2: "zero_point"}
    return [s.param(n, name, "statistic") for n, name in names.items() if s.stored(n)]


def _literal(value: Any, dtype: str) -> Array:
    many = isinstance(value, tuple)
    values = list(value) if many else [value]
    return Array((len(values),) if many else (), values, dtype)


def _learned(s: Site, known: Known | None, few: int) -> bool:
    """Whether an array is a parameter, as the file says or because it has more than `few`."""
    if known is None or known.entry is None or known.dtype not in FLOATS:
        return False
    entry = known.entry
    return elements(entry.shape) > few or s.reader.origin.verdicts.get(entry.name) == "learned"
