"""pytorchcv: classification, segmentation, pose, detection, speech; every fourth model."""

from __future__ import annotations

import torch

from tests.wild.compare_torch import Built

EVERY = 4


def names() -> list[str]:
    """One model of four, so that all families are there."""
    from pytorchcv import model_provider

    return list(model_provider._models)[::EVERY]


def build(name: str) -> Built:
    """A model on one input of the size it was published for."""
    from pytorchcv.model_provider import get_model

    model = get_model(name, pretrained=False)
    channels = getattr(model, "in_channels", 3)
    size = getattr(model, "in_size", (224, 224))
    if isinstance(size, int):  # speech: a spectrum of 2 seconds, and its length
        return Built(model, (torch.zeros(1, channels, 200), torch.full((1,), 200)))
    return Built(model, (torch.zeros(1, channels, *size),))
