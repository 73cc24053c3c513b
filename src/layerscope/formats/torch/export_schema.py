"""The JSON of a torch.export file: calls, parameters, and the sizes of tensors.

These are the parts of PyTorch's schema (torch/_export/serde/schema.py) that are read.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.formats.torch.checkpoints.stored_array import check_elements, check_sizes, short
from layerscope.graph.types import Shape
from layerscope.limits import ARRAY_RANK
from layerscope.ops.torch_strides import dense

KINDS = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
FORMS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
SYMBOL = re.compile(r"Symbol\('(\w+)'")

Arg = dict[str, Any]  # an argument; its one key is the type of the value: {"as_int": 3}


class Meta(Struct, frozen=True):
    """Dtype and sizes of a tensor."""

    dtype: int
    sizes: list[Arg]
    strides: list[Arg] = []
    requires_grad: bool = False


class Named(Struct, frozen=True):
    """An argument; `kind` is 1 for a positional and 2 for a keyword one, None in old files."""

    name: str
    arg: Arg
    kind: int | None = None


class CallMetadata(Struct, frozen=True):
    """The modules around a call, as `key,path,class` separated by semicolons."""

    nn_module_stack: str = ""


class ExportedCall(Struct, frozen=True):
    """One call of an operator."""

    target: str
    inputs: list[Named]
    outputs: list[Arg]
    metadata: CallMetadata = CallMetadata()


class ExportedGraph(Struct, frozen=True):
    """Calls in order, and the sizes of the tensors between them."""

    inputs: list[Arg]
    outputs: list[Arg]
    nodes: list[ExportedCall]
    tensor_values: dict[str, Meta]
    sym_int_values: dict[str, Arg] = {}


class Signature(Struct, frozen=True):
    """The role of each input and output of the graph: parameter, buffer, user input …"""

    input_specs: list[dict[str, dict[str, Any]]]
    output_specs: list[dict[str, dict[str, Any]]] = []


class CalledModule(Struct, frozen=True):
    """A module of the model, by its path."""

    fqn: str


class GraphModule(Struct, frozen=True):
    """The program itself."""

    graph: ExportedGraph
    signature: Signature
    module_call_graph: list[CalledModule] = []


class ExportedProgram(Struct, frozen=True):
    """The whole of the JSON."""

    graph_module: GraphModule


class Payload(Struct, frozen=True):
    """The file in the archive that has a parameter, and its layout there."""

    path_name: str
    tensor_meta: dict[str, Any] | None = None
    use_pickle: bool = False


class Payloads(Struct, frozen=True):
    """Parameters and buffers by name."""

    config: dict[str, Payload]


class ExportedTensor:
    """A tensor that the file describes, instead of a `torch.Tensor`."""

    __slots__ = ("dtype", "requires_grad", "shape", "strides")

    def __init__(self, shape: Shape, strides: Shape, dtype: str, requires_grad: bool) -> None:
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.requires_grad = requires_grad


class SizeReader:
    """Reads sizes. A symbolic one is that of the example input, if the file has it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.open: dict[str, int] = {}  # symbol -> size in the example

    def tensor(self, name: str, metas: dict[str, Meta]) -> ExportedTensor:
        """The tensor of that name; raises if the file has no sizes for it."""
        meta = metas.get(name)
        if meta is None:
            raise FormatError(f"{self.path}: {name}: no sizes for this tensor")
        kind = KINDS.get(meta.dtype)
        if kind is None:
            raise FormatError(f"{self.path}: {name}: unknown dtype {meta.dtype}")
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

    def size(self, arg: object, name: str) -> int:
        """One size of a tensor."""
        size = arg.get("as_int") if isinstance(arg, dict) else None
        if size is None and isinstance(arg, dict):
            size = self._hint(arg.get("as_expr"), name)
        return check_sizes(f"{self.path}: {short(name)}", (size,))[0]

    def number(self, arg: object, name: str) -> int | None:
        """An int that the program computes, such as `x.size(0)`."""
        if isinstance(arg, dict) and "as_expr" in arg:
            return self._hint(arg["as_expr"], name)
        return arg.get("as_int") if isinstance(arg, dict) else None

    def _hint(self, expression: object, name: str) -> int | None:
        """The example value of a symbolic expression."""
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


def stack_of(call: ExportedCall) -> list[tuple[str, str, str]]:
    """Modules around a call, outermost first: key of the module call, path, class."""
    found = []
    for each in call.metadata.nn_module_stack.split(";"):
        key, _, rest = each.partition(",")
        path, comma, kind = rest.rpartition(",")
        if comma:
            path = path.removeprefix("L['self']").removeprefix("L__self__").strip(".")
            found.append((key, path.partition("@")[0], kind))
    return found


def symbol_in(arg: Arg) -> str:
    """The name of an int that the program computes; "" for any other argument."""
    symbol = arg.get("as_sym_int")
    name = symbol.get("as_name") if isinstance(symbol, dict) else None
    return name if isinstance(name, str) else ""


def names_in(arg: Arg) -> list[str]:
    """Names of the tensors of an argument, in order."""
    found = []
    for kind in ("as_tensor", "as_tensors", "as_optional_tensors", "as_optional_tensor"):
        tensors = arg.get(kind, ())
        for each in tensors if isinstance(tensors, list) else [tensors]:
            each = each.get("as_tensor", each) if isinstance(each, dict) else {}
            name = each.get("name") if isinstance(each, dict) else None
            if isinstance(name, str):
                found.append(name)
    return found
