"""Models of transformers built from a config.json; reads no weights and runs no remote code."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.errors import FormatError, MissingExtra, UnknownName
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.model_names.building import bounded_model, build
from layerscope.formats.torch.model_names.settings import (
    generating_class,
    is_gguf,
    model_settings,
    stored_array_notes,
)
from layerscope.formats.torch.model_names.stored_weights import stored_weight_notes
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models
from layerscope.graph.types import Shape
from layerscope.limits import MODEL_LAYERS

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

MOST_PARTS = 100  # nested configurations, such as text_config
MOST_INPUT = 2**31 - 1
COPIES = ("kimi_k2",)  # types whose remote code is a copy of the class that architectures names
# Types that transformers has under another name, with the values that its class takes for granted.
RENAMED: Mapping[str, tuple[str, str, Mapping[str, object]]] = {
    "mimo": ("qwen2", "Qwen2ForCausalLM", {"attention_bias": True}),
    "minimax_m3": (
        "minimax_m3_vl_text",
        "MiniMaxM3VLForCausalLM",
        {"attention_output_gate": False, "n_shared_experts": 1, "use_qk_norm": True},
    ),
}
TOKENS: Shape = (1, 128)
TEXT_ALONE = (
    "counted is a prompt of text; images are optional, and the layers that read them do not run"
)
DECODER_TOKENS: Shape = (1, 16)  # of the decoder of an encoder-decoder


def hugging_face_model(
    path: str,
) -> tuple[PreTrainedModel, Mapping[str, Shape], tuple[str, ...]]:
    """Build the model of a config.json, of its folder or of a GGUF file.

    Also its input shapes, and notes.
    """
    folder = path if os.path.isdir(path) else ""
    path = os.path.join(path, "config.json") if folder else path
    settings = model_settings(path)
    torch = the_torch()
    if find_spec("torchvision") is not None:
        torchvision_models(torch)
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise MissingExtra("a model of transformers", "hf") from None
    kind = settings.pop("model_type")
    has_code = settings.pop("auto_map", None)
    if is_gguf(path) and (generating := generating_class(kind, transformers)) is not None:
        settings["architectures"] = [generating]
    named = next(iter(settings.get("architectures") or ()), "")
    own_kind = kind
    if kind in RENAMED and kind not in transformers.CONFIG_MAPPING:
        kind, named = _renamed(path, kind, settings)
        has_code = None
    config_class = _config_class(transformers, kind, named)
    is_built_in = kind in transformers.CONFIG_MAPPING or kind in COPIES
    if has_code and (config_class is None or not is_built_in):
        raise FormatError(f"{path}: {kind} needs remote code, which is not run")
    if config_class is None:
        raise UnknownName("model_type", kind, list(transformers.CONFIG_MAPPING.keys()))
    config = config_class(**settings)
    _check_sizes(path, config, settings)
    for part in _checked_parts(path, config, transformers.PreTrainedConfig):
        part.dtype = None  # parts are built in the dtype of the whole
    factory = _model_class(path, transformers, config, named) if named else None
    automatic = partial(transformers.AutoModel.from_config, trust_remote_code=False)
    make: Callable[[PretrainedConfig], PreTrainedModel] = factory or automatic
    model = build(partial(make, config), guard=partial(bounded_model, path))
    notes: tuple[str, ...] = ()
    if own_kind != kind:
        notes = (f"transformers has no model_type {own_kind}: counted is {named}",)
    elif named and factory is None:
        version = transformers.__version__
        used = type(model).__name__
        notes = (f"{named} is not in transformers {version}: counted is {used} of {kind}",)
    elif config.model_type != kind:
        notes = (
            f"transformers has no model_type {kind}: counted is {named}, as architectures says",
        )
    if folder:
        notes = (*notes, *stored_weight_notes(folder, model))
    if is_gguf(path):
        notes = (*notes, *stored_array_notes(path, model))
    if reads_text_alone(model):
        notes = (*notes, TEXT_ALONE)
    return model, _default_inputs(path, model, config), notes


def _renamed(path: str, kind: str, settings: Mapping[str, object]) -> tuple[str, str]:
    """The type and the class of transformers for a type that it has under another name.

    Raise for a value that would need another network than that of the class.
    """
    found, named, fixed = RENAMED[kind]
    for name, value in fixed.items():
        if settings.get(name, value) != value:
            raise FormatError(
                f"{path}: {name} {str(settings[name])[:80]}, but {named} of transformers, as which "
                f"{kind} is counted, has {value}"
            )
    return found, named


def _config_class(
    transformers: ModuleType, kind: str, named: str
) -> Callable[..., PretrainedConfig] | None:
    """The configuration of a model type, or of the class that `architectures` names."""
    if kind in transformers.CONFIG_MAPPING:
        found: Callable[..., PretrainedConfig] = transformers.CONFIG_MAPPING[kind]
        return found
    model = getattr(transformers, named, None) if named.isidentifier() else None
    if not isinstance(model, type) or not issubclass(model, transformers.PreTrainedModel):
        return None
    wanted = getattr(model, "config_class", None)
    return wanted if isinstance(wanted, type) else None


def _model_class(
    path: str, transformers: ModuleType, config: PretrainedConfig, named: str
) -> type[PreTrainedModel] | None:
    """Return the class that `architectures` names, None if transformers has no such class.

    Only a model class of transformers whose config_class fits is accepted, no other attribute.
    """
    if not named.isidentifier() or not hasattr(transformers, named):
        return None
    found: type[PreTrainedModel] = getattr(transformers, named)
    own = isinstance(found, type) and found.__module__.startswith("transformers.")
    if not own or not issubclass(found, transformers.PreTrainedModel):
        raise FormatError(
            f"{path}: architectures names {named}, which is no model class of transformers"
        )
    wanted = getattr(found, "config_class", None)
    if not isinstance(wanted, type) or not isinstance(config, wanted):
        raise FormatError(
            f"{path}: architectures names {named}, which is no model of model_type "
            f"{config.model_type}"
        )
    return found


def _checked_parts(path: str, config: PretrainedConfig, kind: type) -> list[PretrainedConfig]:
    """The nested configurations. Raise for a model of too many layers.

    Config classes map their own name for the number of layers.
    """
    parts = [config]
    for part in parts:
        layers = getattr(part, "num_hidden_layers", None)
        if isinstance(layers, int):
            MODEL_LAYERS.check(layers, f"{path}: num_hidden_layers")
        if len(parts) < MOST_PARTS:
            parts += [each for each in vars(part).values() if isinstance(each, kind)]
    return parts[1:]


def _check_sizes(path: str, config: PretrainedConfig, settings: Mapping[str, object]) -> None:
    """Raise if stated sizes are not those of the model.

    A configuration class with parts ignores sizes that are stated outside of them, and keeps the
    defaults of its parts.
    """
    parts = [settings.get(name) for name in config.sub_configs]
    if not parts or any(isinstance(part, Mapping) for part in parts):
        return
    text = config.get_text_config()
    for name in ("hidden_size", "num_hidden_layers", "vocab_size"):
        used = getattr(text, name, None)
        if settings.get(name, used) != used:
            raise FormatError(
                f"{path}: {name} {str(settings[name])[:80]} is not read: {type(config).__name__} "
                f"of transformers expects it in {' or '.join(sorted(config.sub_configs))}"
            )


def _size(path: str, name: str, value: object) -> int:
    """Return a size of the input that the configuration states."""
    if type(value) is not int or not 1 <= value <= MOST_INPUT:  # true is no size
        raise FormatError(
            f"{path}: {name} {str(value)[:80]}, expected a whole number from 1 to {MOST_INPUT:,}"
        )
    return value


def reads_text_alone(model: PreTrainedModel) -> bool:
    """Whether a model continues text, with a cache, and images are optional."""
    taken = inspect.signature(model.forward).parameters
    is_optional = "pixel_values" in taken and taken["pixel_values"].default is None
    return is_optional and "past_key_values" in taken and model.main_input_name == "input_ids"


def _default_inputs(
    path: str, model: PreTrainedModel, config: PretrainedConfig
) -> dict[str, Shape]:
    """Shapes of images, audio or tokens by the model's main input, and of decoder tokens."""
    names = list(inspect.signature(model.forward).parameters)
    main = getattr(model, "main_input_name", "input_ids")
    text = getattr(config, "text_config", config)
    vision = getattr(config, "vision_config", config)
    shapes: dict[str, Shape] = {}
    shows = main == "pixel_values" or ("pixel_values" in names and hasattr(config, "vision_config"))
    if shows and not reads_text_alone(model):
        side = getattr(vision, "image_size", None) or 224
        sides = side if isinstance(side, (list, tuple)) else (side, side)
        channels = _size(path, "num_channels", getattr(vision, "num_channels", 3))
        shapes["pixel_values"] = (1, channels, *[_size(path, "image_size", s) for s in sides])
    if main == "input_features":
        steps = _size(path, "max_source_positions", getattr(config, "max_source_positions", 1500))
        bins = _size(path, "num_mel_bins", getattr(config, "num_mel_bins", 80))
        shapes["input_features"] = (1, bins, 2 * steps)
    if main == "input_values":
        shapes["input_values"] = (1, 16000)
    if main == "input_ids":
        most = getattr(text, "max_position_embeddings", None) or TOKENS[1]
        shapes["input_ids"] = (1, min(TOKENS[1], _size(path, "max_position_embeddings", most)))
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        shapes["decoder_input_ids"] = DECODER_TOKENS
    return shapes or {"input_ids": TOKENS}
