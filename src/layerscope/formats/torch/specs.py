"""Models by name on the command line: `torchvision:resnet50`, `timm:…`, `hf:…`, `file.py:make`.

They are built on the meta device, so that no weight is allocated; what cannot be built there is
built for real.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from layerscope.errors import FormatError, LayerscopeError, MissingExtra, ModelError, UnknownName
from layerscope.formats.torch.capture import capture, the_torch
from layerscope.graph.types import Graph, Shape

Shapes = Mapping[str, Shape] | None
IMAGE: Shape = (1, 3, 224, 224)
TOKENS: Shape = (1, 128)
IDS = ("input_ids", "decoder_input_ids", "token_ids", "tokens", "ids", "idx")


def read(spec: str, shapes: Shapes = None, batch: int | None = None) -> Graph:
    """The graph of a named model, on inputs of these shapes or on what it is usually given."""
    kind, _, name = spec.partition(":")
    model: Any
    guess: Any
    if kind == "torchvision":
        model, guess = _torchvision(name)
    elif kind == "timm":
        model, guess = _timm(name)
    elif kind == "hf":
        model, guess = _hugging_face(name)
    else:
        model, guess = _own(spec)
    given, guessed = _inputs(model, guess, shapes, batch)
    try:
        return (
            capture(model, (), given, name=spec)
            if isinstance(given, dict)
            else capture(model, given, name=spec)
        )
    except ModelError as error:
        if not guessed:
            raise
        told = ", ".join(f"{key} {'x'.join(map(str, value.shape))}" for key, value in _named(given))
        error.text = (
            f"{error} — {told} was a guess; give the shape with --input 1x3x224x224 or NAME=SHAPE"
        )
        raise


def _named(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, dict):
        return list(given.items())
    return [(f"input {n}" if n else "input", tensor) for n, tensor in enumerate(given)]


def _inputs(
    model: Any, guess: dict[str, Any] | Shape, shapes: Shapes, batch: int | None
) -> tuple[Any, bool]:
    """Tensors for the forward, and whether their shapes are a guess."""
    torch = the_torch()
    floats = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)

    def tensor(name: str, shape: Shape) -> Any:
        ids = name in IDS or name.endswith(("_ids", "_mask"))
        return torch.empty(shape, dtype=torch.int64 if ids else floats, device="meta")

    wanted: dict[str, Shape] = dict(guess) if isinstance(guess, dict) else {"": guess}
    names = list(wanted)
    for name, shape in (shapes or {}).items():
        key = name or names[0]
        usual = wanted.get(key) if key in wanted else wanted.get("")
        if usual is not None and len(shape) == len(usual) - 1:
            shape = (usual[0], *shape)
        if key not in wanted and "" in wanted and not isinstance(guess, dict):
            wanted.pop("")
        wanted[key] = tuple(shape)
    if batch is not None:
        wanted = {name: (batch, *shape[1:]) for name, shape in wanted.items()}
    if list(wanted) == [""]:
        return (tensor("", wanted[""]),), not shapes
    return {name: tensor(name, shape) for name, shape in wanted.items()}, not shapes


def _built(make: Callable[[], Any]) -> Any:
    """A model on the meta device if it can be built there, in eval mode."""
    torch = the_torch()
    try:
        with torch.device("meta"):
            model = make()
    except LayerscopeError:
        raise
    except Exception:
        model = make()
    return model.eval()


def _torchvision(name: str) -> tuple[Any, Shape]:
    torch = the_torch()
    models = torchvision_models(torch)
    known = models.list_models()
    if name not in known:
        raise UnknownName("torchvision model", name, known)
    build = models.get_model_builder(name)
    told: dict[str, Any] = {"weights": None}
    if "weights_backbone" in inspect.signature(build).parameters:
        told["weights_backbone"] = None
    if name in INITIALISED:
        told["init_weights"] = False
    if name == "googlenet":
        told["aux_logits"] = False
    model = _built(lambda: build(**told))
    return model, _usual_image(models, name)


INITIALISED = ("googlenet", "inception_v3")


def _usual_image(models: Any, name: str) -> Shape:
    """The size its published weights are evaluated at."""
    try:
        weights = models.get_model_weights(name).DEFAULT
    except (ValueError, AttributeError):
        return IMAGE
    made = weights.transforms()
    size = getattr(made, "crop_size", None) or getattr(made, "resize_size", None) or [224]
    sizes = [size] if isinstance(size, int) else list(size)
    sides = (sizes * 2)[:2] if len(sizes) == 1 else sizes[:2]
    module = type(made).__name__
    return (1, 3, 16, *sides) if module == "VideoClassification" else (1, 3, *sides)


def torchvision_models(torch: Any) -> Any:
    """Models of torchvision; a build without its own operators is given their names first."""
    try:
        torch.ops.torchvision.nms  # noqa: B018
    except (AttributeError, RuntimeError):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)
    try:
        return importlib.import_module("torchvision.models")
    except ImportError:
        raise MissingExtra("a torchvision model", "torchvision") from None


_KEPT: list[Any] = []  # names of operators live as long as what declared them


def _timm(name: str) -> tuple[Any, Shape]:
    torchvision_models(the_torch())
    try:
        timm = importlib.import_module("timm")
    except ImportError:
        raise MissingExtra("a timm model", "timm") from None
    known = timm.list_models()
    if name.partition(".")[0] not in known:
        raise UnknownName("timm model", name, known)
    model = _built(lambda: timm.create_model(name, pretrained=False))
    sizes = (getattr(model, "default_cfg", None) or {}).get("input_size", IMAGE[1:])
    return model, (1, *sizes)


def _hugging_face(path: str) -> tuple[Any, dict[str, Any]]:
    """From its configuration alone: no weights, and no code but that of transformers."""
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
    except OSError as error:
        raise FormatError(
            f"{path}: {error.strerror}; expected the config.json of a model"
        ) from None
    except ValueError as error:
        raise FormatError(f"{path}: {error}; expected the config.json of a model") from None
    if not isinstance(told, dict) or "model_type" not in told:
        raise FormatError(f"{path}: no model_type, expected the config.json of a model")
    torch = the_torch()
    if importlib.util.find_spec("torchvision") is not None:
        torchvision_models(torch)
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise MissingExtra("a model of transformers", "hf") from None
    kind = told.pop("model_type")
    if "auto_map" in told and kind not in transformers.CONFIG_MAPPING:
        raise FormatError(f"{path}: {kind} brings code of its own, which is not run")
    if kind not in transformers.CONFIG_MAPPING:
        raise UnknownName("model_type", kind, list(transformers.CONFIG_MAPPING.keys()))
    config = transformers.CONFIG_MAPPING[kind](**told)
    named = next(iter(told.get("architectures") or ()), "")
    factory = getattr(transformers, named, None)
    if factory is None:
        factory = partial(transformers.AutoModel.from_config, trust_remote_code=False)
    model = _built(partial(factory, config))
    return model, _usual_tokens(model, config)


def _usual_tokens(model: Any, config: Any) -> dict[str, Any]:
    """What its forward asks for first: images, sound or tokens, and tokens to decode."""
    names = list(inspect.signature(model.forward).parameters)
    main = getattr(model, "main_input_name", "input_ids")
    text = getattr(config, "text_config", config)
    vision = getattr(config, "vision_config", config)
    side = getattr(vision, "image_size", None) or 224
    sides = (side, side) if isinstance(side, int) else tuple(side)
    shapes: dict[str, Shape] = {}
    if main == "pixel_values" or ("pixel_values" in names and hasattr(config, "vision_config")):
        shapes["pixel_values"] = (1, getattr(vision, "num_channels", 3), *sides)
    if main == "input_features":
        steps = 2 * int(getattr(config, "max_source_positions", 1500))
        shapes["input_features"] = (1, getattr(config, "num_mel_bins", 80), steps)
    if main == "input_values":
        shapes["input_values"] = (1, 16000)
    if main == "input_ids":
        most = getattr(text, "max_position_embeddings", None) or TOKENS[1]
        shapes["input_ids"] = (1, min(TOKENS[1], most))
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        shapes["decoder_input_ids"] = (1, 16)
    return shapes or {"input_ids": TOKENS}


def _own(spec: str) -> tuple[Any, Any]:
    """`file.py:make_model` or `package.module:attribute`: a module, or what makes one."""
    torch = the_torch()
    where, _, name = spec.rpartition(":")
    found: Any = _file(where) if where.endswith(".py") else _package(where)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")]
            raise UnknownName(f"attribute of {where}", part, known)
        found = getattr(found, part)
    if isinstance(found, torch.nn.Module):
        return found.eval(), _signed(found)
    if not callable(found):
        raise FormatError(f"{spec}: a {type(found).__name__}, expected a module or what makes one")
    model = _built(found)
    if not isinstance(model, torch.nn.Module):
        raise FormatError(f"{spec}: made a {type(model).__name__}, expected a torch.nn.Module")
    return model, _signed(model)


def _signed(model: Any) -> Any:
    """Tokens where the forward speaks of ids, an image elsewhere."""
    names = list(inspect.signature(model.forward).parameters)
    ids = [name for name in names if name in IDS]
    return dict.fromkeys(ids[:1], TOKENS) if ids else IMAGE


def _file(path: str) -> Any:
    if not os.path.isfile(path):
        raise FormatError(f"{path}: no such file")
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
        raise FormatError(f"{name}: {error}; expected a module that can be imported") from None
