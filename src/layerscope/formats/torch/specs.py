"""Models by name on the command line: `torchvision:resnet50`, `timm:…`, `hf:…`, `file.py:make`.

They are built on the meta device, so that no weight is allocated; what cannot be built or run
there is built for real.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError, LayerscopeError, ModelError, UnknownName, UsageError
from layerscope.formats import near_files
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.decoding import capture_tokens
from layerscope.formats.torch.hugging_face import TOKENS, check_positions, hugging_face_model
from layerscope.formats.torch.vision_names import (
    IMAGE,
    RANDOM,
    build,
    missing_operator,
    timm_model,
    torchvision_model,
    torchvision_models,
)
from layerscope.graph.types import Graph, Shape

IDS = ("input_ids", "decoder_input_ids", "token_ids", "tokens", "ids", "idx")
PREFIXES = ("torchvision", "timm", "hf")


class Wanted(Struct, frozen=True):
    """What a model is to be run on; what is left out is as its configuration has it."""

    shapes: Mapping[str, Shape] = {}  # "" is the first input
    batch: int | None = None
    tokens: int | None = None  # in every input of tokens
    decode: int | None = None  # tokens in the cache before a single new one


class NamedModel(Struct, frozen=True):
    """A model that a name stands for, with the shapes of the inputs that it usually takes."""

    spec: str
    module: Any
    usual: Mapping[str, Shape]  # "" is an argument by position
    images: bool = False  # that argument is a list of images, C x H x W each
    notes: tuple[str, ...] = ()

    def graph(self, wanted: Wanted) -> Graph:
        """The graph of one forward."""
        shapes = self._shapes(wanted)
        for name, shape in shapes.items():
            if self._is_ids(name) and len(shape) == 2:
                check_positions(self.module, shape[1], self.spec)
        tensors = {name: self._tensor(name, shape) for name, shape in shapes.items()}
        args: tuple[Any, ...] = ()
        if list(tensors) == [""]:
            only = tensors.pop("")
            args = (list(only),) if self.images else (only,)
        try:
            graph = capture_tokens(self.module, args, tensors, wanted.decode, self.spec)
        except ModelError as error:
            missing = missing_operator(self.spec, error)
            if missing is not None:
                raise missing from error
            if wanted.shapes:
                raise
            listed = ", ".join(
                f"{name or 'input'} {'x'.join(map(str, shape))}" for name, shape in shapes.items()
            )
            error.text = (
                f"{error} — {listed} was a guess; give the shape with --input 1x3x224x224 or "
                "NAME=SHAPE"
            )
            raise
        batch = shapes[""][0] if self.images else 0
        return replace(graph, notes=(*graph.notes, *self.notes), batch=batch)

    def _shapes(self, wanted: Wanted) -> dict[str, Shape]:
        """Shapes of all inputs: those that are given, the usual ones for the others."""
        shapes = dict(self.usual)
        names = list(shapes)
        for name, shape in wanted.shapes.items():
            key = name or names[0]
            usual = shapes.get(key, shapes.get(""))
            if usual is not None and len(shape) == len(usual) - 1:
                shape = (usual[0], *shape)
            if key not in shapes:
                shapes.pop("", None)
            shapes[key] = tuple(shape)
        if wanted.batch is not None:
            if wanted.batch < 1:
                raise UsageError(f"batch {wanted.batch}, expected at least 1")
            shapes = {name: (wanted.batch, *shape[1:]) for name, shape in shapes.items()}
        if wanted.tokens is None:
            return shapes
        if wanted.tokens < 1:
            raise UsageError(f"{wanted.tokens} tokens, expected at least 1")
        ids = [name for name, shape in shapes.items() if self._is_ids(name) and len(shape) == 2]
        if not ids:
            raise UsageError(f"{self.spec} takes no tokens: it has no input of int64, N x T")
        return {**shapes, **{name: (shapes[name][0], wanted.tokens) for name in ids}}

    def _is_ids(self, name: str) -> bool:
        return name in IDS or name.endswith(("_ids", "_mask"))

    def _tensor(self, name: str, shape: Shape) -> Any:
        torch = the_torch()
        first = next((p.dtype for p in self.module.parameters() if p.is_floating_point()), None)
        dtype = torch.int64 if self._is_ids(name) else first or torch.float32
        return torch.empty(shape, dtype=dtype, device="meta")


def read(spec: str, shapes: Mapping[str, Shape] | None = None, batch: int | None = None) -> Graph:
    """The graph of a named model, on inputs of these shapes or on what it is usually given."""
    return find(spec).graph(Wanted(shapes or {}, batch))


def find(spec: str) -> NamedModel:
    """The model of that name."""
    try:
        return _find(spec)
    except LayerscopeError:
        raise
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelError(f"{spec}: cannot be built: {what[:400]}") from error


def _find(spec: str) -> NamedModel:
    kind, _, name = spec.partition(":")
    if kind == "torchvision":
        model, shapes, detects = torchvision_model(name)
        return NamedModel(spec, model, shapes, detects, (RANDOM,) if detects else ())
    if kind == "timm":
        return NamedModel(spec, *timm_model(name))
    if kind == "hf":
        model, shapes, notes = hugging_face_model(name)
        return NamedModel(spec, model, shapes, notes=notes)
    model = _own(spec)
    return NamedModel(spec, model, _signed(model))


def _own(spec: str) -> Any:
    """`file.py:make_model` or `package.module:attribute`: a module, or what makes one."""
    where, _, name = spec.rpartition(":")
    if not where.endswith(".py") and importlib.util.find_spec(where.partition(".")[0]) is None:
        _package(where)  # a wrong name is told as such, with PyTorch or without
    torch = the_torch()
    found: Any = _file(where) if where.endswith(".py") else _package(where)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")]
            listed = f"; it has {', '.join(known[:8])}" if known else ""
            raise UnknownName(f"attribute of {where}", part, known, listed)
        found = getattr(found, part)
    if isinstance(found, torch.nn.Module):
        return found.eval()
    if not callable(found):
        raise FormatError(f"{spec}: a {type(found).__name__}, expected a module or what makes one")

    def make() -> Any:
        model = found()
        if not isinstance(model, torch.nn.Module):
            raise FormatError(f"{spec}: made a {type(model).__name__}, expected a torch.nn.Module")
        return model

    return build(make)


def _signed(model: Any) -> dict[str, Shape]:
    """Tokens where the forward speaks of ids, an image elsewhere."""
    names = list(inspect.signature(model.forward).parameters)
    ids = [name for name in names if name in IDS]
    return {ids[0]: TOKENS} if ids else {"": IMAGE}


def _file(path: str) -> Any:
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


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        near = get_close_matches(name, PREFIXES, n=1)
        meant = f"; did you mean {near[0]}:?" if near else ""
        raise FormatError(
            f"{name}: {error}; expected a module that can be imported{meant}"
        ) from None


__all__ = ["NamedModel", "Wanted", "find", "read", "torchvision_models"]
