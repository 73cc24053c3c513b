"""What a file of torch.export says of a program: its calls, its arrays, the sizes of its tensors.

Of the schema of PyTorch (torch/_export/serde/schema.py) these are the parts that are looked at.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.formats.torch.checkpoints.stored_array import check_elements, check_sizes, short
from layerscope.formats.torch.values import dense
from layerscope.graph.types import Shape
from layerscope.limits import ARRAY_RANK

KINDS = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
FORMS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
SYMBOL = re.compile(r"Symbol\('(\w+)'")

Arg = dict[str, Any]  # one key, which says what the value is: {"as_int": 3}


class Meta(Struct, frozen=True):
    """Of a tensor: number type and sizes."""

    dtype: int
    sizes: list[Arg]
    strides: list[Arg] = []
    requires_grad: bool = False


class Named(Struct, frozen=True):
    """An argument; `kind` is 1 by place and 2 by name, None in old files."""

    name: str
    arg: Arg
    kind: int | None = None


class About(Struct, frozen=True):
    """Where a call stands: `key,path,class` of each module around it, apart by semicolons."""

    nn_module_stack: str = ""


class Call(Struct, frozen=True):
    """One call of an operator."""

    target: str
    inputs: list[Named]
    outputs: list[Arg]
    metadata: About = About()


class Flow(Struct, frozen=True):
    """Calls in order, and what is known of the tensors between them."""

    inputs: list[Arg]
    outputs: list[Arg]
    nodes: list[Call]
    tensor_values: dict[str, Meta]
    sym_int_values: dict[str, Arg] = {}


class Signature(Struct, frozen=True):
    """What the inputs and outputs of the flow are to the model."""

    input_specs: list[dict[str, dict[str, Any]]]
    output_specs: list[dict[str, dict[str, Any]]] = []


class Called(Struct, frozen=True):
    """A module of the model."""

    fqn: str


class Module(Struct, frozen=True):
    """The program itself."""

    graph: Flow
    signature: Signature
    module_call_graph: list[Called] = []


class Program(Struct, frozen=True):
    """The whole of the JSON."""

    graph_module: Module


class Payload(Struct, frozen=True):
    """Where an array of the model is stored, and how it lies there."""

    path_name: str
    tensor_meta: dict[str, Any] | None = None
    use_pickle: bool = False


class Payloads(Struct, frozen=True):
    """Arrays of the model by name."""

    config: dict[str, Payload]


class ExportedTensor:
    """A tensor that the file describes; stands for one of PyTorch's."""

    __slots__ = ("dtype", "requires_grad", "shape", "strides")

    def __init__(self, shape: Shape, strides: Shape, dtype: str, requires_grad: bool) -> None:
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.requires_grad = requires_grad


class Sizes:
    """Reads sizes; those that are open are the example's, where the file keeps it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.open: dict[str, int] = {}  # symbol -> size in the example

    def tensor(self, name: str, metas: dict[str, Meta]) -> ExportedTensor:
        """What the file says of a tensor."""
        meta = metas.get(name)
        if meta is None:
            raise FormatError(f"{self.path}: {name}: no sizes are told of this tensor")
        kind = KINDS.get(meta.dtype)
        if kind is None:
            raise FormatError(f"{self.path}: {name}: unknown number type {meta.dtype}")
        if len(meta.sizes) > ARRAY_RANK.most:
            ARRAY_RANK.check(len(meta.sizes), f"{self.path}: {short(name)}")
        shape = tuple([self.size(size, name) for size in meta.sizes])
        check_elements(f"{self.path}: {short(name)}", shape)
        try:
            strides = tuple([self.size(each, name) for each in meta.strides])
        except FormatError:
            strides = ()
        if len(strides) != len(shape):
            strides = dense(shape)
        return ExportedTensor(shape, strides, f"torch.{kind}", meta.requires_grad)

    def size(self, told: Any, name: str) -> int:
        """One size of a tensor."""
        size = told.get("as_int") if isinstance(told, dict) else None
        if size is None and isinstance(told, dict):
            size = self._hint(told.get("as_expr"), name)
        return check_sizes(f"{self.path}: {short(name)}", (size,))[0]

    def number(self, told: Any, name: str) -> Any:
        """A whole number that the program works out, such as a size that it asks for."""
        if isinstance(told, dict) and "as_expr" in told:
            return self._hint(told["as_expr"], name)
        return told.get("as_int") if isinstance(told, dict) else None

    def _hint(self, expression: Any, name: str) -> Any:
        if not isinstance(expression, dict):
            return None
        text = str(expression.get("expr_str", "?"))
        found = SYMBOL.fullmatch(text.partition(",")[0])
        hint = expression.get("hint")
        size = hint.get("as_int") if isinstance(hint, dict) else None
        if type(size) is not int:
            short = found[1] if found else text[:60]
            raise FormatError(
                f"{self.path}: {name}: size {short} is open and the file keeps no example of it; "
                "export the model with sizes that are fixed"
            )
        if found or text.isidentifier():
            self.open[found[1] if found else text] = size
        return size


def stack_of(call: Call) -> list[tuple[str, str, str]]:
    """Modules around a call, outermost first: what tells the call of it, path, class."""
    found = []
    for each in call.metadata.nn_module_stack.split(";"):
        key, _, rest = each.partition(",")
        path, comma, kind = rest.rpartition(",")
        if comma:
            path = path.removeprefix("L['self']").removeprefix("L__self__").strip(".")
            found.append((key, path.partition("@")[0], kind))
    return found


def symbol_in(arg: Any) -> str:
    """Name of a whole number that the program works out, "" for all else."""
    told = arg.get("as_sym_int")
    name = told.get("as_name") if isinstance(told, dict) else None
    return name if isinstance(name, str) else ""


def names_in(arg: Any) -> list[str]:
    """Names of the tensors of an argument, in order."""
    found = []
    for kind in ("as_tensor", "as_tensors", "as_optional_tensors", "as_optional_tensor"):
        told = arg.get(kind, ())
        for each in told if isinstance(told, list) else [told]:
            each = each.get("as_tensor", each) if isinstance(each, dict) else {}
            name = each.get("name") if isinstance(each, dict) else None
            if isinstance(name, str):
                found.append(name)
    return found
