"""Unpickle the tensors of torch.save and torch.jit.save as shapes and dtypes; no data is loaded."""

from __future__ import annotations

from math import prod

from layerscope.codecs.pickles import PickleValue
from layerscope.errors import FormatError
from layerscope.formats.torch.checkpoints.stored_array import StoredArray, array_bytes, check_sizes
from layerscope.graph.dtype_names import TORCH_NAMES
from layerscope.graph.types import DTYPE_BITS, Shape, storage_bytes
from layerscope.limits import NAME_CHARACTERS, NAME_DEPTH, plain

STORAGES = {
    "DoubleStorage": "fp64", "FloatStorage": "fp32", "HalfStorage": "fp16",
    "BFloat16Storage": "bf16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "UntypedStorage": "uint8", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "int8", "QUInt8Storage": "uint8",
    "QInt32Storage": "int32", "QUInt4x2Storage": "uint4", "QUInt2x4Storage": "uint2",
}  # fmt: skip
NUMPY = {
    "f8": "fp64", "f4": "fp32", "f2": "fp16", "i8": "int64", "i4": "int32", "i2": "int16",
    "i1": "int8", "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8", "b1": "bool",
    "c8": "complex64", "c16": "complex128",
}  # fmt: skip
TENSORS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor")
# Values of other modules: only their arguments are searched for tensors.
VALUES = {
    "builtins": ("set", "frozenset", "list", "tuple", "int", "float", "str", "bytes", "bytearray",
                 "complex", "slice", "range"),
    "collections": ("deque",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "numpy": ("dtype", "ndarray", "float64", "float32", "int64", "bool_"),
    "numpy.core.multiarray": ("scalar",),
    "pathlib": ("Path", "PosixPath", "PurePath", "PurePosixPath", "WindowsPath"),
    "torch": ("device", "Tensor", "contiguous_format", "per_tensor_affine", "strided"),
    "torch._tensor": ("Tensor",),
    "torch.nn.parameter": ("Buffer", "Parameter"),
    "torch.torch_version": ("TorchVersion",),
}  # fmt: skip
FIRSTS = (("_codecs", "encode"), ("torch", "Size"))  # calls that return their first argument
OBJECTS = {"argparse": ("Namespace",), "types": ("SimpleNamespace",)}
SCRIPT = "__torch__"  # package of TorchScript classes


class PickledName:
    """A class or function that a pickle names; `kind` says how a call of it is handled."""

    __slots__ = ("dtype", "kind", "name")

    def __init__(self, kind: str, name: str, dtype: str = "") -> None:
        self.kind, self.name, self.dtype = kind, name, dtype


class PickledTensor:
    """Dtype and shape of a tensor or a NumPy array."""

    __slots__ = ("dtype", "shape", "storage")

    def __init__(self, dtype: str, shape: Shape, storage: str) -> None:
        self.dtype, self.shape, self.storage = dtype, shape, storage


class PickledObject:
    """An object whose attributes are searched for tensors."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: PickleValue = None


class Storage:
    """Elements of one dtype that are stored outside of the pickle."""

    __slots__ = ("count", "dtype", "key")

    def __init__(self, key: str, dtype: str, count: int) -> None:
        self.key, self.dtype, self.count = key, dtype, count

    @property
    def bytes(self) -> int:
        """Size in the file."""
        return storage_bytes(self.count, self.dtype)


class TensorUnpickler:
    """Resolves the names that tensors need; every other name is code and is refused."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.storages: dict[str, Storage] = {}
        self.numpy = 0
        self.script = False  # whether TorchScript classes occur
        self._names: dict[tuple[str, str], PickledName] = {}
        self._pairs: dict[int, list[PickleValue]] = {}  # kept alive, so that ids stay unique

    def find_class(self, module: str, name: str) -> PickleValue:
        """Resolve an import; a class or function that tensors do not need is refused."""
        module = {"__builtin__": "builtins", "numpy._core.multiarray": "numpy.core.multiarray"}.get(
            module, module
        )
        found = self._names.get((module, name))
        if found is None:
            found = self._names[module, name] = self._name(module, name)
        return found

    def _name(self, module: str, name: str) -> PickledName:
        if module in ("torch", "torch.storage", "torch.cuda") and name in STORAGES:
            return PickledName("storage", name, STORAGES[name])
        if module == "torch" and name in TORCH_NAMES:
            return PickledName("dtype", name, TORCH_NAMES[name])
        if module == "torch._utils" and (name in TENSORS or name in REBUILT):
            return PickledName("tensor" if name in TENSORS else REBUILT[name], name)
        if module == "torch._tensor" and name == "_rebuild_from_type_v2":
            return PickledName("typed", name)
        if module == "torch.jit._pickle" or (module, name) in FIRSTS:
            return PickledName("first", name)
        if module == "collections" and name in ("OrderedDict", "defaultdict", "Counter"):
            return PickledName("dict", name)
        if module == "numpy" and name == "dtype":
            return PickledName("numpy dtype", name)
        if module == "numpy.core.multiarray" and name == "_reconstruct":
            return PickledName("numpy", name)
        if name in VALUES.get(module, ()):
            return PickledName("value", name)
        self.script |= module.partition(".")[0] == SCRIPT
        if module.partition(".")[0] == SCRIPT or name in OBJECTS.get(module, ()):
            return PickledName("object", name)
        raise FormatError(
            f"{self.path}: a pickled model or object: holds {module[:200]}.{name[:200]}, which is "
            "code and is not run; save the state_dict() of the model, or name what makes it: "
            "my_file.py:make_model"
        )

    def call(self, function: PickleValue, args: PickleValue) -> PickleValue:
        """Handle a call and return what represents its result."""
        if not isinstance(function, PickledName) or not isinstance(args, tuple):
            raise FormatError(f"{self.path}: a call of something that is no function")
        kind = function.kind
        if kind == "tensor":
            return self._tensor(function.name, args)
        if kind == "first":
            return args[0] if args else None
        if kind == "dict":
            return self._dict(args)
        if kind == "typed":  # function, class, arguments, state
            if len(args) < 3:
                raise FormatError(f"{self.path}: a tensor without the function that makes it")
            return self.call(args[0], args[2]) if self._makes_tensor(args[0]) else args[2]
        if kind == "meta":  # dtype, sizes, strides
            return self._meta(args)
        if kind == "numpy":
            self.numpy += 1
            return PickledTensor("", (), f"numpy {self.numpy}")
        if kind == "numpy dtype":
            text = args[0] if args and isinstance(args[0], str) else ""
            return PickledName("dtype", text[:20], NUMPY.get(text.lstrip("<>|="), ""))
        if kind == "object":
            return PickledObject()
        return [args]  # a plain value

    def _makes_tensor(self, function: PickleValue) -> bool:
        return isinstance(function, PickledName) and function.kind in ("tensor", "meta", "first")

    def build(self, target: PickleValue, state: PickleValue) -> None:
        """Set the attributes of an object, or the shape and dtype of a NumPy array."""
        if isinstance(target, PickledObject):
            target.state = state
        elif isinstance(target, PickledTensor) and not target.dtype:
            # The state of a NumPy array is version, shape, dtype, order, data.
            if not isinstance(state, tuple) or len(state) < 3 or not isinstance(state[1], tuple):
                raise FormatError(f"{self.path}: a NumPy array without its shape")
            dtype = state[2].dtype if isinstance(state[2], PickledName) else ""
            target.dtype = dtype or "object"
            target.shape = check_sizes(f"{self.path}: a NumPy array", state[1])

    def persistent_load(self, key: PickleValue) -> PickleValue:
        """Resolve a persistent id: class, key, device and element count of a storage."""
        if not isinstance(key, tuple) or len(key) < 5 or not isinstance(key[1], PickledName):
            raise FormatError(f"{self.path}: a storage without class, key and count")
        _, kind, own, _, count = key[:5]
        if not isinstance(own, (str, int)) or kind.kind != "storage":
            raise FormatError(f"{self.path}: a storage without a key or without a dtype")
        where = f"{self.path}: storage {str(own)[:80]}"
        NAME_CHARACTERS.check(len(str(own)), where)
        [count] = check_sizes(where, (count,), "count")
        found = self.storages.get(str(own))
        if found is None:
            found = self.storages[str(own)] = Storage(str(own), kind.dtype, count)
        elif (found.dtype, found.count) != (kind.dtype, count):
            if found.bytes != storage_bytes(count, kind.dtype):
                raise FormatError(f"{where}: occurs twice, with different sizes")
            return Storage(str(own), kind.dtype, count)
        return found

    def _dict(self, args: tuple[PickleValue, ...]) -> dict[PickleValue, PickleValue]:
        """A dict from a list of pairs, the form in which Python 2 pickled OrderedDict."""
        result: dict[PickleValue, PickleValue] = {}
        pairs = args[0] if args and isinstance(args[0], list) else []
        if id(pairs) in self._pairs:
            raise FormatError(f"{self.path}: two dicts of one list of pairs")
        self._pairs[id(pairs)] = pairs
        for pair in pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise FormatError(f"{self.path}: a dict item that is no pair")
            if not isinstance(pair[0], str) or pair[0] in result:
                raise FormatError(
                    f"{self.path}: a dict with a key that occurs twice, or is no string"
                )
            result[pair[0]] = pair[1]
        return result

    def _tensor(self, name: str, args: tuple[PickleValue, ...]) -> PickledTensor:
        """A tensor from storage, offset, sizes and strides; _rebuild_tensor_v3 has a dtype too."""
        if len(args) < 4 or not isinstance(args[0], Storage):
            raise FormatError(f"{self.path}: a tensor without storage, offset, size and stride")
        storage, (offset, size, stride) = args[0], args[1:4]
        where = f"{self.path}: a tensor in storage {storage.key[:80]}"
        if not isinstance(size, tuple) or not isinstance(stride, tuple):
            raise FormatError(f"{where}: expected a tuple as size and one as stride")
        shape = check_sizes(where, size)
        strides = check_sizes(where, stride, "stride")
        [begin] = check_sizes(where, (offset,), "storage offset")
        dtype, count = storage.dtype, storage.count
        if name == "_rebuild_tensor_v3":
            if len(args) < 7 or not isinstance(args[6], PickledName) or args[6].kind != "dtype":
                raise FormatError(f"{where}: no dtype")
            dtype = args[6].dtype
            count = storage.bytes * 8 // DTYPE_BITS[dtype]
        if len(strides) != len(shape):
            raise FormatError(f"{where}: {len(shape)} sizes and {len(strides)} strides")
        array_bytes(where, shape, dtype)
        if prod(shape):
            last = begin + sum([(s - 1) * step for s, step in zip(shape, strides, strict=True)])
            if last >= count:
                found = plain(last)
                raise FormatError(f"{where}: element {found} is beyond its {count:,}")
        return PickledTensor(dtype, shape, f"{storage.key}:{begin}:{shape}")

    def _meta(self, args: tuple[PickleValue, ...]) -> PickledTensor:
        kind, size = args[:2] if len(args) > 1 else (None, None)
        if not isinstance(kind, PickledName) or kind.kind != "dtype" or not isinstance(size, tuple):
            raise FormatError(f"{self.path}: a tensor without dtype and size")
        shape = check_sizes(f"{self.path}: a tensor without storage", size)
        array_bytes(self.path, shape, kind.dtype)
        self.numpy += 1
        return PickledTensor(kind.dtype, shape, f"meta {self.numpy}")


REBUILT = {
    "_rebuild_parameter": "first", "_rebuild_parameter_with_state": "first",
    "_rebuild_meta_tensor_no_storage": "meta",
}  # fmt: skip


def collect_arrays(path: str, root: PickleValue) -> list[StoredArray]:
    """Tensors in nested containers, named by their keys joined with dots.

    A container that occurs several times is visited once, under its first name. The time so stays
    linear in the number of objects; a second visit would find the same storages again.
    """
    found: list[StoredArray] = []
    seen: set[int] = set()
    keys: list[str] = []

    def visit(value: PickleValue, length: int) -> None:
        if isinstance(value, PickledTensor):
            if length > NAME_CHARACTERS.most:
                NAME_CHARACTERS.check(length, path)
            name = ".".join(keys) or "tensor"
            if value.dtype not in DTYPE_BITS:
                raise FormatError(f"{path}: {name}: a NumPy array of an unknown dtype")
            array_bytes(f"{path}: {name}", value.shape, value.dtype)
            found.append(StoredArray(name, value.shape, value.dtype, value.storage))
            return
        if isinstance(value, PickledObject):
            value = value.state
        if not isinstance(value, (dict, list, tuple)) or id(value) in seen:
            return
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        NAME_DEPTH.check(len(keys) + 1, path)
        for key, item in items:
            if isinstance(item, (PickledTensor, PickledObject, dict, list, tuple)):
                keys.append(key if isinstance(key, str) else str(key))
                visit(item, length + 1 + len(keys[-1]))
                keys.pop()

    visit(root, 0)
    return found
