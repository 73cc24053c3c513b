"""ONNX Runtime's C interface, as much of it as a run with stamps needs.

The Python package takes operators from compiled libraries alone; the C library that comes with it
takes them from anybody. Functions are found by their place in a table, which never changes once a
version is out.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from glob import escape, glob
from typing import Any

from layerscope.errors import EngineError

VERSION = 14  # of the interface: onnxruntime 1.14 and newer
PLACES = {
    "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "CreateSessionOptions": 10,
    "EnableProfiling": 14, "SetSessionLogSeverityLevel": 22,
    "SetSessionGraphOptimizationLevel": 23, "SetIntraOpNumThreads": 24,
    "SetInterOpNumThreads": 25, "CreateCustomOpDomain": 26, "CustomOpDomain_Add": 27,
    "AddCustomOpDomain": 28, "CreateTensorWithDataAsOrtValue": 49, "CreateCpuMemoryInfo": 69,
    "ReleaseStatus": 93, "ReleaseSession": 95, "ReleaseValue": 96, "ReleaseSessionOptions": 100,
    "AddSessionConfigEntry": 130, "RunWithBinding": 133,
    "CreateIoBinding": 134, "ReleaseIoBinding": 135, "BindInput": 136, "BindOutputToDevice": 138,
}  # fmt: skip
ELEMENTS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
FATAL = 4  # what is logged
AS_GIVEN = 0  # no graph optimisation
ARENA, DEFAULT = 1, 0  # of memory


class Native:
    """The table of a library, and what all sessions share."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        library.OrtGetApiBase.restype = c_void_p
        base = ctypes.cast(library.OrtGetApiBase(), ctypes.POINTER(c_void_p))
        table = ctypes.CFUNCTYPE(c_void_p, c_uint32)(base[0] or 0)(VERSION)
        if not table:
            raise EngineError(f"onnxruntime's library has no interface of version {VERSION}")
        self._library = library
        self._table = ctypes.cast(table, ctypes.POINTER(c_void_p))
        self.env = self.made("CreateEnv", c_int(FATAL), c_char_p(b"layerscope"))
        self.memory = self.made("CreateCpuMemoryInfo", c_int(ARENA), c_int(DEFAULT))

    def function(self, name: str, result: Any, *takes: Any) -> Any:
        """A function of the table, to be called with values of those types."""
        return ctypes.CFUNCTYPE(result, *takes)(self._table[PLACES[name]] or 0)

    def call(self, name: str, *given: Any) -> None:
        """Call one that returns a status; what it complains of is raised."""
        takes = [type(value) if isinstance(value, ctypes._SimpleCData) else c_void_p
                 for value in given]  # fmt: skip
        self.check(self.function(name, c_void_p, *takes)(*given))

    def made(self, name: str, *given: Any) -> c_void_p:
        """What one that creates something leaves at its last argument."""
        found = c_void_p()
        self.call(name, *given, ctypes.byref(found))
        return found

    def release(self, kind: str, thing: c_void_p) -> None:
        """Let go of something that was made."""
        self.function(f"Release{kind}", None, c_void_p)(thing)

    def check(self, status: int | None) -> None:
        """Raise what a status says; there is none when all went well."""
        if status:
            said = self.function("GetErrorMessage", c_char_p, c_void_p)(status) or b""
            text = said.decode(errors="replace")
            self.release("Status", c_void_p(status))
            raise EngineError(text)


@cache
def native() -> Native:
    """The library of the installed onnxruntime."""
    import onnxruntime

    folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    found = glob(os.path.join(escape(folder), "libonnxruntime.*"))
    if not found:
        raise EngineError("the installed onnxruntime has no C library beside it")
    try:
        return Native(found[0])
    except (OSError, AttributeError) as error:
        raise EngineError(f"onnxruntime's C library cannot be used: {error}") from None


class Session:
    """A model that is run as its file says, with operators of ours."""

    def __init__(
        self,
        path: str,
        threads: int,
        entries: Mapping[str, str],
        domain: c_void_p,
        profile: str | None = None,
    ) -> None:
        self._native = native()
        make, call = self._native.made, self._native.call
        options = make("CreateSessionOptions")
        self._held: list[tuple[str, c_void_p]] = []
        try:
            call("SetSessionLogSeverityLevel", options, c_int(FATAL))
            call("SetSessionGraphOptimizationLevel", options, c_int(AS_GIVEN))
            call("SetIntraOpNumThreads", options, c_int(threads))
            call("SetInterOpNumThreads", options, c_int(1))
            for key, value in entries.items():
                call("AddSessionConfigEntry", options, c_char_p(key.encode()),
                     c_char_p(value.encode()))  # fmt: skip
            call("AddCustomOpDomain", options, domain)
            if profile is not None:
                call("EnableProfiling", options, c_char_p(os.fsencode(profile)))
            named = c_char_p(os.fsencode(path))
            self._session = make("CreateSession", self._native.env, named, options)
        finally:
            self._native.release("SessionOptions", options)
        self._held.append(("Session", self._session))
        self._run = self._native.function("RunWithBinding", c_void_p, c_void_p, c_void_p, c_void_p)

    def bind(self, inputs: Mapping[str, Any], outputs: list[str]) -> None:
        """Inputs in their place, numpy arrays that the caller keeps; outputs left where made."""
        make, call = self._native.made, self._native.call
        self._bound = make("CreateIoBinding", self._session)
        self._held.append(("IoBinding", self._bound))
        self._inputs = dict(inputs)
        for name, array in inputs.items():
            shape = (c_int64 * array.ndim)(*array.shape)
            value = make(
                "CreateTensorWithDataAsOrtValue", self._native.memory,
                c_void_p(array.ctypes.data), c_size_t(array.nbytes),
                ctypes.cast(shape, c_void_p), c_size_t(array.ndim),
                c_int(ELEMENTS[array.dtype.name]),
            )  # fmt: skip
            self._held.append(("Value", value))
            call("BindInput", self._bound, c_char_p(name.encode()), value)
        for name in outputs:
            call("BindOutputToDevice", self._bound, c_char_p(name.encode()), self._native.memory)

    def run(self) -> None:
        """Once through."""
        self._native.check(self._run(self._session, None, self._bound))

    def close(self) -> None:
        """Let go of it, and of what was bound."""
        while self._held:
            self._native.release(*self._held.pop())
