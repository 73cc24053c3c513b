"""Models of transformers from their configuration alone: no weights, no code of others."""

from __future__ import annotations

import importlib
import inspect
import json
import os
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from layerscope.errors import FormatError, MissingExtra, UnknownName, UsageError
from layerscope.formats import near_files
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.vision_names import build, torchvision_models
from layerscope.graph.types import Shape

TOKENS: Shape = (1, 128)
DECODED: Shape = (1, 16)  # tokens that an encoder-decoder is given to decode


def hugging_face_model(path: str) -> tuple[Any, Mapping[str, Shape], tuple[str, ...]]:
    """The model of a config.json, or of a folder with one; shapes of its inputs, and notes."""
    path = os.path.join(path, "config.json") if os.path.isdir(path) else path
    settings = _read(path)
    torch = the_torch()
    if find_spec("torchvision") is not None:
        torchvision_models(torch)
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise MissingExtra("a model of transformers", "hf") from None
    kind = settings.pop("model_type")
    if "auto_map" in settings and kind not in transformers.CONFIG_MAPPING:
        raise FormatError(f"{path}: {kind} brings code of its own, which is not run")
    if kind not in transformers.CONFIG_MAPPING:
        raise UnknownName("model_type", kind, list(transformers.CONFIG_MAPPING.keys()))
    config = transformers.CONFIG_MAPPING[kind](**settings)
    named = next(iter(settings.get("architectures") or ()), "")
    factory = getattr(transformers, named, None) if named else None
    model = build(partial(factory or transformers.AutoModel.from_config, config))
    notes: tuple[str, ...] = ()
    if named and factory is None:
        version = transformers.__version__
        used = type(model).__name__
        notes = (f"{named} is not in transformers {version}: counted is {used} of {kind}",)
    return model, _usual_inputs(model, config), notes


def _read(path: str) -> dict[str, Any]:
    wanted = "expected the config.json of a model; nothing is downloaded"
    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}, {wanted}{near_files(path)}") from None
    except ValueError as error:
        raise FormatError(f"{path}: {error}; {wanted}") from None
    if not isinstance(settings, dict) or "model_type" not in settings:
        raise FormatError(f"{path}: no model_type; {wanted}")
    return settings


def _usual_inputs(model: Any, config: Any) -> dict[str, Shape]:
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
        shapes["decoder_input_ids"] = DECODED
    return shapes or {"input_ids": TOKENS}


def check_positions(model: Any, tokens: int, name: str) -> None:
    """Raise where a table of learned positions has fewer rows than there are tokens.

    Tensors without numbers are looked up without a complaint, whatever the size of the table.
    """
    torch = the_torch()
    others: tuple[str, ...] = ()  # parts that read images or sound, not tokens
    for path, module in model.named_modules():
        own = path.rpartition(".")[2]
        if path and "input_ids" not in getattr(module, "main_input_name", "input_ids"):
            others = (*others, f"{path}.")
        if not isinstance(module, torch.nn.Embedding) or own not in POSITIONS:
            continue
        if path.startswith(others) or "vision" in path:
            continue
        first = getattr(module, "offset", None)
        if first is None:
            first = 0 if module.padding_idx is None else module.padding_idx + 1
        rows = module.num_embeddings - int(first)
        if rows < tokens:
            raise UsageError(
                f"{name}: {tokens} tokens, expected at most {rows}, the positions of {path}"
            )


POSITIONS = ("wpe", "position_embeddings", "embed_positions", "position_embedding")
