"""ONNX Runtime's C API, as much of it as sessions with custom operators need.

The Python package only loads custom operators from compiled libraries; the C library inside it
takes them from ctypes too. The API is a table of functions whose indices never change.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from glob import escape, glob
from typing import TYPE_CHECKING, Any

from layerscope.errors import EngineError

if TYPE_CHECKING:
    from _ctypes import CFuncPtr, _CArgObject, _Pointer, _SimpleCData  # types without a public name

    from layerscope.engines import Array

    CType = type[_SimpleCData[Any]]
    CArgument = _SimpleCData[Any] | _CArgObject | _Pointer[Any] | CFuncPtr

VERSION = 14  # of the API: onnxruntime 1.14 and newer
FUNCTION_INDICES = {
    "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "CreateSessionOptions": 10,
    "EnableProfiling": 14, "SetSessionLogSeverityLevel": 22,
    "SetSessionGraphOptimizationLevel": 23, "SetIntraOpNumThreads": 24,
    "SetInterOpNumThreads": 25, "CreateCustomOpDomain": 26, "CustomOpDomain_Add": 27,
    "AddCustomOpDomain": 28, "CreateTensorWithDataAsOrtValue": 49, "CreateCpuMemoryInfo": 69,
    "ReleaseStatus": 93, "ReleaseSession": 95, "ReleaseValue": 96, "ReleaseSessionOptions": 100,
    "AddSessionConfigEntry": 130, "RunWithBinding": 133,
    "CreateIoBinding": 134, "ReleaseIoBinding": 135, "BindInput": 136, "BindOutputToDevice": 138,
}  # fmt: skip
ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
FATAL = 4  # log level
NO_OPTIMISATION = 0
ARENA, DEFAULT = 1, 0  # allocator and memory type


class CApi:
    """The function table of a library, and the environment that all sessions share."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        library.OrtGetApiBase.restype = c_void_p
        base = ctypes.cast(library.OrtGetApiBase(), ctypes.POINTER(c_void_p))
        table = ctypes.CFUNCTYPE(c_void_p, c_uint32)(base[0] or 0)(VERSION)
        if not table:
            raise EngineError(f"onnxruntime's library has no C API of version {VERSION}")
        self._library = library
        self._table = ctypes.cast(table, ctypes.POINTER(c_void_p))
        self.env = self.create("CreateEnv", c_int(FATAL), c_char_p(b"layerscope"))
        self.memory = self.create("CreateCpuMemoryInfo", c_int(ARENA), c_int(DEFAULT))

    def function(self, name: str, result: CType | None, *parameters: CType) -> Callable[..., Any]:
        """A function of the table with those result and parameter types."""
        return ctypes.CFUNCTYPE(result, *parameters)(self._table[FUNCTION_INDICES[name]] or 0)

    def call(self, name: str, *args: CArgument) -> None:
        """Call a function that returns a status; an error is raised."""
        types = [type(arg) if isinstance(arg, ctypes._SimpleCData) else c_void_p for arg in args]
        self.check(self.function(name, c_void_p, *types)(*args))

    def create(self, name: str, *args: CArgument) -> c_void_p:
        """Call a function that stores a new object in its last argument, and return that."""
        found = c_void_p()
        self.call(name, *args, ctypes.byref(found))
        return found

    def release(self, kind: str, thing: c_void_p) -> None:
        """Release an object of that kind."""
        self.function(f"Release{kind}", None, c_void_p)(thing)

    def check(self, status: int | None) -> None:
        """Raise the message of a status; success is a null status."""
        if status:
            message = self.function("GetErrorMessage", c_char_p, c_void_p)(status) or b""
            text = message.decode(errors="replace")
            self.release("Status", c_void_p(status))
            raise EngineError(text)


@cache
def c_api() -> CApi:
    """The library of the installed onnxruntime."""
    import onnxruntime

    folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    found = glob(os.path.join(escape(folder), "libonnxruntime.*"))
    if not found:
        raise EngineError("the installed onnxruntime has no C library beside it")
    try:
        return CApi(found[0])
    except (OSError, AttributeError) as error:
        raise EngineError(f"onnxruntime's C library cannot be used: {error}") from None


class Session:
    """A session without graph optimisation, with custom operators."""

    def __init__(
        self,
        path: str,
        threads: int,
        entries: Mapping[str, str],
        domain: c_void_p,
        profile: str | None = None,
    ) -> None:
        self._api = c_api()
        create, call = self._api.create, self._api.call
        options = create("CreateSessionOptions")
        self._objects: list[tuple[str, c_void_p]] = []
        try:
            call("SetSessionLogSeverityLevel", options, c_int(FATAL))
            call("SetSessionGraphOptimizationLevel", options, c_int(NO_OPTIMISATION))
            call("SetIntraOpNumThreads", options, c_int(threads))
            call("SetInterOpNumThreads", options, c_int(1))
            for key, value in entries.items():
                call("AddSessionConfigEntry", options, c_char_p(key.encode()),
                     c_char_p(value.encode()))  # fmt: skip
            call("AddCustomOpDomain", options, domain)
            if profile is not None:
                call("EnableProfiling", options, c_char_p(os.fsencode(profile)))
            c_path = c_char_p(os.fsencode(path))
            self._session = create("CreateSession", self._api.env, c_path, options)
        finally:
            self._api.release("SessionOptions", options)
        self._objects.append(("Session", self._session))
        self._run = self._api.function("RunWithBinding", c_void_p, c_void_p, c_void_p, c_void_p)

    def bind(self, inputs: Mapping[str, Array], outputs: list[str]) -> None:
        """Bind NumPy arrays as inputs; the engine allocates the outputs."""
        create, call = self._api.create, self._api.call
        self._bound = create("CreateIoBinding", self._session)
        self._objects.append(("IoBinding", self._bound))
        self._inputs = dict(inputs)  # the engine reads their memory
        for name, array in inputs.items():
            shape = (c_int64 * array.ndim)(*array.shape)
            value = create(
                "CreateTensorWithDataAsOrtValue", self._api.memory,
                c_void_p(array.ctypes.data), c_size_t(array.nbytes),
                ctypes.cast(shape, c_void_p), c_size_t(array.ndim),
                c_int(ELEMENT_TYPES[array.dtype.name]),
            )  # fmt: skip
            self._objects.append(("Value", value))
            call("BindInput", self._bound, c_char_p(name.encode()), value)
        for name in outputs:
            call("BindOutputToDevice", self._bound, c_char_p(name.encode()), self._api.memory)

    def run(self) -> None:
        """Run the model once."""
        self._api.check(self._run(self._session, None, self._bound))

    def close(self) -> None:
        """Release the session and what was bound."""
        while self._objects:
            self._api.release(*self._objects.pop())
