"""Files that torch.save wrote: the names and shapes in them, without running what they say.

A pickle is a program. This reader knows the few words that arrays need, and refuses all others:
a whole module, saved as it is, is code.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any

from layerscope.errors import FormatError
from layerscope.formats import Options
from layerscope.formats.torch.weights import Stored, parameters_only
from layerscope.graph.types import Graph

STORAGES = {
    "DoubleStorage": "fp64", "FloatStorage": "fp32", "HalfStorage": "fp16",
    "BFloat16Storage": "bf16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "UntypedStorage": "uint8", "ComplexFloatStorage": "complex64",
}  # fmt: skip
MOST_PICKLE = 1 << 28  # bytes of the program itself; arrays stand apart from it


def recognise(head: bytes) -> bool:
    """A zip archive that begins with a pickle, as torch.save writes it."""
    return head[:4] == b"PK\x03\x04" and b"/data.pkl" in head[:256]


def read(path: str, options: Options) -> Graph:
    """The arrays of a state dict."""
    return parameters_only(path, stored_in(path))


def stored_in(path: str) -> list[Stored]:
    """Names, shapes and dtypes of the arrays in a file of torch.save."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if not names or archive.getinfo(names[0]).file_size > MOST_PICKLE:
                raise FormatError(f"{path}: no state dict in it")
            program = archive.read(names[0])
    except (OSError, zipfile.BadZipFile, RuntimeError):
        raise FormatError(
            f"{path}: not a file of today's torch.save; load it there and save its state_dict() "
            "as safetensors"
        ) from None
    try:
        made = _Reader(io.BytesIO(program), path).load()
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"{path}: {type(error).__name__}: {error}") from None
    arrays: list[Stored] = []
    _collect(made, "", arrays)
    return arrays


class _Array:
    """What is said of a tensor."""

    def __init__(self, dtype: str, shape: tuple[int, ...], storage: str) -> None:
        self.dtype, self.shape, self.storage = dtype, shape, storage


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> _Array:
    kind, key = storage
    return _Array(kind, tuple(map(int, size)), f"{key}:{offset}:{tuple(size)}")


def _parameter(data: Any, *_: Any) -> Any:
    return data


def _nothing(*_: Any) -> dict[Any, Any]:
    return {}


class _Dict(dict[Any, Any]):
    """A dict that may have attributes, as a state dict has."""


class _Reader(pickle.Unpickler):
    """Knows arrays, dicts and plain values."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file, encoding="utf-8")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if module == "collections" and name == "OrderedDict":
            return _Dict
        if module in ("torch._utils", "torch._tensor"):
            if name in ("_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_tensor"):
                return _tensor
            if name in ("_rebuild_parameter", "_rebuild_from_type_v2"):
                return _parameter
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if module == "torch" and name == "Size":
            return tuple
        if module == "torch" and name == "device":
            return _nothing
        raise FormatError(
            f"{self.path}: holds {module}.{name}, which is code and is not run; save the "
            "state_dict() of the model, or name what makes it: my_file.py:make_model"
        )

    def persistent_load(self, pid: Any) -> Any:
        kind, key = pid[1], pid[2]
        return (kind if isinstance(kind, str) else "uint8", str(key))


def _collect(made: Any, path: str, arrays: list[Stored]) -> None:
    """Arrays in nests of dicts; a checkpoint's other parts are gone through alike."""
    if isinstance(made, _Array):
        arrays.append(Stored(path or "tensor", made.shape, made.dtype, made.storage))
    elif isinstance(made, dict):
        for key, value in made.items():
            _collect(value, f"{path}.{key}" if path else str(key), arrays)
    elif isinstance(made, (list, tuple)):
        for n, value in enumerate(made):
            _collect(value, f"{path}.{n}" if path else str(n), arrays)
