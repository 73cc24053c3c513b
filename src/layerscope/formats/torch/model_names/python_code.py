"""Models of the user's own Python code: `file.py:make_model` and `package.module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from layerscope.errors import FormatError, LayerscopeError, UnknownName
from layerscope.formats import near_files
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.model_names.building import build
from layerscope.formats.torch.model_names.hugging_face import TOKENS
from layerscope.formats.torch.model_names.torchvision_timm import IMAGE
from layerscope.formats.torch.model_names.user_errors import (
    Ended,
    UserCode,
    described,
    missing_arguments,
)
from layerscope.formats.torch.named_model import IDS
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from torch.nn import Module

PREFIXES = ("torchvision", "timm", "hf")


def python_model(spec: str) -> tuple[Module, UserCode]:
    """Return the module that a spec names, or the one that its function or class makes."""
    where = spec.rpartition(":")[0]
    if not where.endswith(".py") and importlib.util.find_spec(where.partition(".")[0]) is None:
        _package(where, spec)  # a wrong name raises this error with or without PyTorch
    torch = the_torch()
    with python_object(spec) as (found, code):
        if isinstance(found, torch.nn.Module):
            return found.eval(), code
        return build(partial(_make_module, found, code)), code


@contextmanager
def python_object(spec: str) -> Iterator[tuple[Any, UserCode]]:
    """The object that a spec names; within the block its own modules can be imported."""
    where, _, name = spec.rpartition(":")
    is_file = where.endswith(".py")
    found: Any = _file(where, spec) if is_file else _package(where, spec)
    code = UserCode(spec, _home_folder(where))
    with code.errors(), _on_path(code.home if is_file else ""):
        yield _attribute(found, name, where), code


def _attribute(found: Any, name: str, where: str) -> Any:
    """The object of a dotted name in a module."""
    for part in name.split("."):
        if not hasattr(found, part):
            names = [each for each in vars(found) if not each.startswith("_")]
            listed = f"; it has {', '.join(names[:8])}" if names else ""
            raise UnknownName(f"attribute of {where}", part, names, listed)
        found = getattr(found, part)
    return found


def _make_module(function: Any, code: UserCode) -> Module:
    """Call a function or class of the user's that makes a module."""
    if not callable(function):
        raise FormatError(
            f"{code.spec}: {described(function)}, expected a torch.nn.Module "
            "or a function that returns one"
        )
    name = getattr(function, "__name__", type(function).__name__)
    missing = missing_arguments(function)
    if missing:
        raise FormatError(
            f"{code.defined(function)}: {name}() needs arguments: {', '.join(missing)}; give "
            "defaults or write a function without arguments"
        )
    try:
        model = function()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # an Exception, so that `build` tries again on the CPU
        raise Ended from error
    if not isinstance(model, the_torch().nn.Module):
        raise FormatError(
            f"{code.defined(function)}: {name}() returned {described(model)}, expected a "
            "torch.nn.Module"
        )
    module: Module = model
    return module


def default_inputs(model: Module) -> dict[str, Shape]:
    """Token ids if the forward has a parameter for them, else one image."""
    names = list(inspect.signature(model.forward).parameters)
    ids = [name for name in names if name in IDS]
    return {ids[0]: TOKENS} if ids else {"": IMAGE}


def _home_folder(where: str) -> str:
    """The folder of a file, or that of a package; the file of a module without a package."""
    if where.endswith(".py"):
        return os.path.dirname(os.path.abspath(where))
    package = importlib.util.find_spec(where.partition(".")[0])
    if package is None:
        return ""
    folders = package.submodule_search_locations
    file = next(iter(folders), "") if folders else package.origin or ""
    return os.path.abspath(file) if file else ""


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """The user's modules can be imported from this folder."""
    if not folder:
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code removed it
            sys.path.remove(folder)


def _file(path: str, spec: str) -> ModuleType:
    if not os.path.isfile(path):
        raise FormatError(f"{path}: no such file{near_files(path)}")
    name = os.path.splitext(os.path.basename(path))[0]
    found = importlib.util.spec_from_file_location(f"_layerscope_{name}", path)
    if found is None or found.loader is None:
        raise FormatError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    code = UserCode(spec, _home_folder(path))
    try:
        with code.errors(), _on_path(code.home):
            found.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(found.name, None)
        raise
    return module


def _package(name: str, spec: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (LayerscopeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is None or not f"{name}.".startswith(f"{missing}."):
            raise UserCode(spec, _home_folder(name)).error(error) from error
        near = get_close_matches(name, PREFIXES, n=1)
        meant = f"; did you mean {near[0]}:?" if near else ""
        raise FormatError(
            f"{name}: {error}; expected a module that can be imported{meant}"
        ) from None
