"""open_clip: image and text towers of every second configuration, on one pair."""

from __future__ import annotations

import torch

from tests.wild.compare_torch import Built

# Towers of transformers are built from a configuration that is downloaded.
DOWNLOADED = ("hf_model_name",)
EVERY = 2


def names() -> list[str]:
    """Configurations that need no download."""
    import open_clip

    found = [
        name
        for name in open_clip.list_models()
        if not set(DOWNLOADED) & set(open_clip.get_model_config(name)["text_cfg"])
    ]
    return found[::EVERY]


def build(name: str) -> Built:
    """Both towers on an image and a text."""
    import open_clip

    config = open_clip.get_model_config(name)
    model = open_clip.create_model(name, pretrained=None, load_weights=False)
    size = config["vision_cfg"].get("image_size", 224)
    sides = (size, size) if isinstance(size, int) else tuple(size)
    length = config["text_cfg"].get("context_length", 77)
    text = torch.zeros(1, length, dtype=torch.int64)
    return Built(model, (torch.zeros(1, 3, *sides), text))
