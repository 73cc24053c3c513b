"""Errors of the user's own code, as one line that begins with the user's file and line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from msgspec import Struct

import layerscope
from layerscope.errors import FormatError, LayerscopeError, ModelError

LONGEST = 400  # characters of the text of an exception
INSTALLED = ("site-packages", "dist-packages")
OWN = os.path.dirname(os.path.abspath(layerscope.__file__))
REQUIRED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


class Ended(Exception):
    """The user's code raised what is no Exception, such as SystemExit; that is its cause."""


class UserCode(Struct, frozen=True):
    """The user's own code, by what names it on the command line."""

    spec: str  # file.py:make or package.module:Class
    home: str  # folder of the file or of the package, or a module without one; "": not known

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise every exception of the code as a FormatError; KeyboardInterrupt passes."""
        try:
            yield
        except (LayerscopeError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self.error(error) from error

    def error(self, error: BaseException) -> FormatError:
        """The error of the command line for an exception of the code."""
        if isinstance(error, Ended) and error.__cause__ is not None:
            error = error.__cause__
        return FormatError(f"{self.where(error) or self.spec}: {_text(error)}")

    def where(self, error: BaseException) -> str:
        """`file:line` of the innermost frame in the user's code; "" if there is none."""
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            return f"{self._shown(error.filename)}:{error.lineno}"
        found = ""
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if self._is_own(file):
                found = f"{self._shown(file)}:{trace.tb_lineno}"
            trace = trace.tb_next
        return found

    def defined(self, function: Any) -> str:
        """`file:line` of a function or class; the spec if it is defined elsewhere."""
        try:
            function = inspect.unwrap(function)
            file, line = inspect.getsourcefile(function), inspect.getsourcelines(function)[1]
        except (TypeError, OSError, ValueError):
            return self.spec
        return f"{self._shown(file)}:{line}" if file and self._is_own(file) else self.spec

    def _is_own(self, file: str) -> bool:
        path = os.path.abspath(file)
        below = path == self.home or path.startswith(os.path.join(self.home, ""))
        if not self.home or not below:
            return False
        inside = path[len(self.home) :]
        installed = any(each in inside for each in INSTALLED)
        return not installed and not path.startswith(os.path.join(OWN, ""))

    def _shown(self, file: str) -> str:
        """The path as the user wrote it, else relative to the current folder if it is below."""
        typed, path = self.spec.rpartition(":")[0], os.path.abspath(file)
        if path == os.path.abspath(typed):
            return typed
        folder = os.path.join(os.getcwd(), "")
        return path[len(folder) :] if path.startswith(folder) else path


def missing_arguments(function: Any) -> list[str]:
    """Names of the parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a built-in function
        return []
    return [p.name for p in parameters if p.kind in REQUIRED and p.default is p.empty]


def described(value: object) -> str:
    """What a function returned, for a message."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if inspect.isgenerator(value):
        return "a generator (it has yield)"
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine (it is async)"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def ended_forward(error: BaseException, code: UserCode) -> ModelError:
    """The error for what is no Exception, raised while the model runs."""
    return ModelError(f"{code.where(error) or code.spec}: {_text(error)}, in the forward pass")


def _text(error: BaseException) -> str:
    """Type and text of an exception on one line."""
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return f"sys.exit({code[:LONGEST]}) was called, expected a torch.nn.Module"
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception as failed:
        text = f"its text cannot be read ({type(failed).__name__})"
    if isinstance(error, SyntaxError):
        text = str(error.msg)
    if isinstance(error, ModuleNotFoundError) and error.name:
        text = f"no module named {error.name!r}; install it, or correct the import"
    return f"{kind}: {text[:LONGEST]}" if text else kind
