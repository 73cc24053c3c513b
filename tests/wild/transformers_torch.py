"""transformers: every second architecture by default configuration with two layers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import torch

from tests.wild.compare_torch import Built, NoInputs

TEXT, DECODED, SECOND = (1, 16), (1, 8), (1, 16000)
EVERY = 2
LAYERS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "num_encoder_blocks_layers", "depth",
    "encoder_n_layers", "decoder_n_layers", "num_block_layers", "num_text_layers",
)  # fmt: skip


def names() -> list[str]:
    """One of two types of models that AutoModel builds."""
    from transformers import CONFIG_MAPPING, MODEL_MAPPING

    kinds = set(MODEL_MAPPING.keys())
    return [name for name in CONFIG_MAPPING if CONFIG_MAPPING[name] in kinds][::EVERY]


@cache
def _config(name: str) -> Any:
    """The default configuration of a type, with two layers where it has more."""
    from transformers import CONFIG_MAPPING

    kind = CONFIG_MAPPING[name]
    cut = _cut(kind())
    try:
        return kind(**cut)
    except Exception:  # a list with an entry per layer: the configuration as it is
        return kind()


def _cut(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in LAYERS:
        count = getattr(config, name, None)
        if isinstance(count, int) and count > 2:
            found[name] = 2
    for name in getattr(config, "sub_configs", {}):
        inner: Any = getattr(config, name, None)
        if hasattr(inner, "to_dict"):
            found[name] = {**inner.to_dict(), **_cut(inner)}
            found[name].pop("layer_types", None)
            found[name].pop("mlp_layer_types", None)
    return found


# By name and device: the dtype and the inputs that worked.
_INPUTS: dict[tuple[str, str], tuple[Any, dict[str, Any]]] = {}


def build(name: str) -> Built:
    """A model on the first set of inputs that its forward accepts."""
    from transformers import logging

    logging.set_verbosity_error()
    device = torch.get_default_device().type
    dtype, kwargs = _INPUTS.get((name, device), (None, None))
    if kwargs is None:
        try:
            kwargs = _accepted(_made(name))
        except NoInputs as error:  # grouped products of experts are for bfloat16
            if "BF16" not in str(error):
                raise
            dtype = torch.bfloat16
            kwargs = _accepted(_made(name, dtype))
        _INPUTS[name, device] = dtype, kwargs
    model = _made(name, dtype)
    mask = {}
    taken = inspect.signature(model.forward).parameters
    main = next(iter(kwargs.values()))
    if "attention_mask" in taken and main.dim() == 2:
        mask["attention_mask"] = torch.ones(main.shape, dtype=torch.int64)
    return Built(model, (), kwargs, mask)


def _made(name: str, dtype: Any = None) -> Any:
    """A model whose weights are all alike: random ones take seconds on a real device."""
    from transformers import AutoModel
    from transformers.initialization import no_init_weights

    with no_init_weights():
        model = AutoModel.from_config(deepcopy(_config(name)), dtype=dtype).eval()
    model.tie_weights()
    for param in model.parameters():
        param.data.fill_(0.01)
    return model


def _accepted(model: Any) -> dict[str, Any]:
    errors = []
    for kwargs in _candidates(model):
        kwargs = {
            name: tensor.to(model.dtype) if tensor.is_floating_point() else tensor
            for name, tensor in kwargs.items()
        }
        try:
            with torch.no_grad():
                model(**kwargs)
            return kwargs
        except Exception as error:
            shapes = {name: tuple(tensor.shape) for name, tensor in kwargs.items()}
            errors.append(f"{shapes}: {' '.join(str(error).split())[:120]}")
    raise NoInputs(sum(p.numel() for p in model.parameters()), str(errors))


def _candidates(model: Any) -> Iterator[dict[str, Any]]:
    """Inputs that a model of this signature may take, the most likely first."""
    taken = inspect.signature(model.forward).parameters
    config = model.config
    main = model.main_input_name if isinstance(model.main_input_name, str) else "input_ids"
    decoded: dict[str, Any] = {}
    if "decoder_input_ids" in taken:
        decoded["decoder_input_ids"] = torch.zeros(DECODED, dtype=torch.int64)
    ids = {"input_ids": torch.zeros(TEXT, dtype=torch.int64)} if "input_ids" in taken else {}
    images = [{"pixel_values": torch.zeros(shape)} for shape in _images(config)]
    images = images if "pixel_values" in taken else []
    sounds = [{main: torch.zeros(shape)} for shape in _sounds(config)]
    sounds = sounds if main in ("input_features", "input_values", "audio_values") else []
    if main == "input_ids" and ids:
        yield ids
        yield {**ids, **decoded}
    for image in images:
        yield image
        yield {**ids, **image}
        yield {**ids, **image, **decoded}
    for sound in sounds:
        yield sound
        yield {**sound, **decoded}
        yield {**ids, **sound}
    if ids:
        yield {**ids, **decoded}
        boxes = {"bbox": torch.zeros((*TEXT, 4), dtype=torch.int64)}
        yield {**ids, **boxes}
        for image in images:
            yield {**ids, **boxes, **image}


def _images(config: Any) -> list[tuple[int, ...]]:
    vision = getattr(config, "vision_config", None) or getattr(config, "backbone_config", config)
    vision = vision if hasattr(vision, "to_dict") else config
    size = getattr(vision, "image_size", None) or getattr(config, "image_size", None) or 224
    size = getattr(size, "height", size)
    sides = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    frames = getattr(vision, "num_frames", None) or 8
    return [
        (1, channels, *sides), (1, frames, channels, *sides), (1, 1, channels, *sides),
        (1, 3, 224, 224), (1, 3, 256, 256), (1, 3, 512, 512),
    ]  # fmt: skip


def _sounds(config: Any) -> list[tuple[int, ...]]:
    bins = 80
    for name in ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim"):
        bins = getattr(getattr(config, "audio_config", config), name, None) or bins
    frames = 2 * (getattr(config, "max_source_positions", None) or 64)
    return [
        SECOND, (1, 1, 16000), (1, bins, frames), (1, frames, bins), (1, 128, bins),
        (1, 1024, 128), (1, 160, 160),
    ]  # fmt: skip
