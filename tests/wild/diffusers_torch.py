"""diffusers: autoencoders, U-Nets and transformers, default configurations with two layers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from tests.wild.compare_torch import Built, NoInputs

CUT = ("num_layers", "num_single_layers", "num_refiner_layers", "n_layers", "num_blocks")
TEXT_SIZES = (
    "joint_attention_dim", "cross_attention_dim", "caption_channels", "text_embed_dim", "text_dim",
    "caption_projection_dim", "encoder_hidden_size", "encoder_hidden_dim", "cap_feat_dim",
    "text_in_dim", "text_embedding_dim", "embedding_dim", "hidden_size", "time_embed_dim",
)  # fmt: skip
MODELS = (
    "AsymmetricAutoencoderKL", "AuraFlowTransformer2DModel", "AutoencoderDC", "AutoencoderKL",
    "AutoencoderKLCogVideoX", "AutoencoderKLFlux2", "AutoencoderKLHunyuanImageRefiner",
    "AutoencoderKLHunyuanVideo", "AutoencoderKLHunyuanVideo15", "AutoencoderKLKVAE",
    "AutoencoderKLKVAEVideo", "AutoencoderKLLTX2Audio", "AutoencoderKLLTX2Video",
    "AutoencoderKLLTXVideo", "AutoencoderKLMagvit", "AutoencoderKLQwenImage",
    "AutoencoderKLQwenImage21", "AutoencoderKLWan", "AutoencoderRAE", "AutoencoderTiny",
    "BriaTransformer2DModel", "ChromaTransformer2DModel", "ChronoEditTransformer3DModel",
    "DiTTransformer2DModel", "DreamLiteUNetModel", "FluxTransformer2DModel",
    "HunyuanImageTransformer2DModel", "JoyImageEditTransformer3DModel", "Kandinsky3UNet",
    "Kandinsky6SRVAE", "LongCatAudioDiTVae", "LongCatImageTransformer2DModel",
    "MiniMaxMusic3RVQDepthDecoder", "MiniMaxMusic3Vocoder", "MotifVideoTransformer3DModel",
    "MotionAdapter", "OvisImageTransformer2DModel", "SD3Transformer2DModel",
    "SkyReelsV2Transformer3DModel", "T2IAdapter", "UNet2DConditionModel", "UNet2DModel",
    "UNet3DConditionModel", "UNetMotionModel", "VQModel", "WanTransformer3DModel",
)  # fmt: skip


def names() -> list[str]:
    """Classes of models."""
    return list(MODELS)


_INPUTS: dict[tuple[str, str], dict[str, Any]] = {}  # by name and device: those that worked


def build(name: str) -> Built:
    """A model on the first set of inputs that its forward accepts."""
    device = torch.get_default_device().type
    model = _made(name)
    kwargs = _INPUTS.get((name, device))
    if kwargs is None:
        kwargs = _INPUTS[name, device] = _accepted(model)
        model = _made(name)
    return Built(model, (), kwargs)


def _made(name: str) -> Any:
    import diffusers

    kind = getattr(diffusers, name)
    taken = inspect.signature(kind).parameters
    return kind(**{key: 2 for key in CUT if isinstance(_default(taken, key), int)}).eval()


def _default(taken: Any, name: str) -> Any:
    return taken[name].default if name in taken else None


def _accepted(model: Any) -> dict[str, Any]:
    errors = []
    for kwargs in _candidates(model):
        try:
            with torch.no_grad():
                model(**kwargs)
            return kwargs
        except Exception as error:
            errors.append(" ".join(str(error).split())[:90])
    params = sum(p.numel() for p in model.parameters())
    raise NoInputs(params, "; ".join(dict.fromkeys(errors)))


def _candidates(model: Any) -> Iterator[dict[str, Any]]:
    """Inputs of these names: images, videos, sound and token rows in turn."""
    config = model.config
    taken = inspect.signature(model.forward).parameters
    channels = getattr(config, "in_channels", None) or getattr(config, "latent_channels", None) or 3
    widths = [getattr(config, key) for key in TEXT_SIZES if _is_size(config, key)]
    pooled = getattr(config, "pooled_projection_dim", None) or 768
    main = next(iter(taken))
    shapes = [
        (1, channels, 32, 32), (1, 64, channels), (1, channels, 5, 32, 32),
        (1, 5, channels, 32, 32), (1, channels, 64, 64), (1, channels, 1, 64, 64),
        (1, channels, 4096), (1, channels),
        (1, channels, 2, 32, 32), (1, channels, 9, 64, 64),
    ]  # fmt: skip
    others = {
        "pooled_projections": torch.zeros(1, pooled),
        "img_ids": torch.zeros(64, 3),
        "txt_ids": torch.zeros(8, 3),
        "class_labels": torch.zeros(1, dtype=torch.int64),
        "encoder_attention_mask": torch.ones(1, 8),
        "encoder_mask": torch.ones(1, 8),
    }
    given = {key: value for key, value in others.items() if key in taken}
    times = [torch.zeros(1), torch.zeros(1, dtype=torch.int64)]
    steps = [key for key in ("timestep", "timesteps", "time") if key in taken]
    needed = [
        key for key, value in taken.items()
        if value.default is inspect.Parameter.empty and value.kind is not value.VAR_KEYWORD
    ]  # fmt: skip
    required = {key: value for key, value in given.items() if key in needed}
    text = "encoder_hidden_states"
    ends = (given, required)
    for width, shape, time, extra in product(
        dict.fromkeys(widths or [64]) if text in taken else [0], shapes,
        times if steps else [None], ends,
    ):  # fmt: skip
        kwargs = {main: torch.zeros(shape), **extra}
        if width:
            kwargs[text] = torch.zeros(1, 8, width)
        if steps:
            kwargs[steps[0]] = time
        yield kwargs


def _is_size(config: Any, key: str) -> bool:
    return isinstance(getattr(config, key, None), int)
