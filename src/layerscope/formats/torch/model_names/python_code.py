"""Models of the user's own Python code: `file.py:make_model` and `package.module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from difflib import get_close_matches
from types import ModuleType
from typing import TYPE_CHECKING, Any

from layerscope.errors import FormatError, UnknownName
from layerscope.formats import near_files
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.model_names.building import build
from layerscope.formats.torch.model_names.hugging_face import TOKENS
from layerscope.formats.torch.model_names.torchvision_timm import IMAGE
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from torch.nn import Module

IDS = ("input_ids", "decoder_input_ids", "token_ids", "tokens", "ids", "idx")
PREFIXES = ("torchvision", "timm", "hf")


def python_model(spec: str) -> Module:
    """Return the module that a spec names, or the one that its function or class makes."""
    where, _, name = spec.rpartition(":")
    if not where.endswith(".py") and importlib.util.find_spec(where.partition(".")[0]) is None:
        _package(where)  # a wrong name raises this error with or without PyTorch
    torch = the_torch()
    found: Any = _file(where) if where.endswith(".py") else _package(where)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [each for each in vars(found) if not each.startswith("_")]
            listed = f"; it has {', '.join(names[:8])}" if names else ""
            raise UnknownName(f"attribute of {where}", part, names, listed)
        found = getattr(found, part)
    if isinstance(found, torch.nn.Module):
        return found.eval()
    if not callable(found):
        raise FormatError(
            f"{spec}: a {type(found).__name__}, expected a torch.nn.Module "
            "or a function that returns one"
        )

    def make() -> Module:
        model = found()
        if not isinstance(model, torch.nn.Module):
            raise FormatError(
                f"{spec}: returned a {type(model).__name__}, expected a torch.nn.Module"
            )
        return model

    return build(make)


def default_inputs(model: Module) -> dict[str, Shape]:
    """Token ids if the forward has a parameter for them, else one image."""
    names = list(inspect.signature(model.forward).parameters)
    ids = [name for name in names if name in IDS]
    return {ids[0]: TOKENS} if ids else {"": IMAGE}


def _file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise FormatError(f"{path}: no such file{near_files(path)}")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(f"_layerscope_{name}", path)
    if spec is None or spec.loader is None:
        raise FormatError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FormatError(f"{path}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return module


def _package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        near = get_close_matches(name, PREFIXES, n=1)
        meant = f"; did you mean {near[0]}:?" if near else ""
        raise FormatError(
            f"{name}: {error}; expected a module that can be imported{meant}"
        ) from None
