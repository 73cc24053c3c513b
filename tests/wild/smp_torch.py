"""segmentation-models-pytorch: every decoder on encoders of every family."""

from __future__ import annotations

import torch

from tests.wild.compare_torch import Built

DECODERS = (
    "unet", "unetplusplus", "manet", "linknet", "fpn", "pspnet", "deeplabv3", "deeplabv3plus",
    "pan", "upernet", "segformer",
)  # fmt: skip
ENCODERS = (
    "resnet18", "se_resnext50_32x4d", "densenet121", "vgg11_bn", "mobilenet_v2", "xception",
    "timm-efficientnet-b0", "efficientnet-b0", "mit_b0", "mobileone_s0", "timm-skresnet18",
    "dpn68", "inceptionv4", "tu-convnext_atto", "tu-resnest14d", "tu-mobilenetv3_small_050",
)  # fmt: skip
FEW = ("resnet18", "mit_b0", "efficientnet-b0", "tu-convnext_atto", "densenet121")
REFUSED = {  # by the package
    "unetplusplus": ("mit_b0",), "linknet": ("mit_b0",), "deeplabv3": ("densenet121",),
    "deeplabv3plus": ("densenet121",), "pan": ("densenet121",),
}  # fmt: skip
TRANSFORMERS = ("tu-vit_tiny_patch16_224", "tu-deit3_small_patch16_224")


def names() -> list[str]:
    """All encoders with U-Net, some with the other decoders."""
    found = [f"unet {encoder}" for encoder in ENCODERS]
    found += [
        f"{decoder} {encoder}"
        for decoder in DECODERS[1:]
        for encoder in FEW
        if encoder not in REFUSED.get(decoder, ())
    ]
    return found + [f"dpt {encoder}" for encoder in TRANSFORMERS]


def build(name: str) -> Built:
    """A network on an image of 224, or of 256 where the size must be a power of two."""
    import segmentation_models_pytorch as smp

    decoder, encoder = name.split()
    model = smp.create_model(decoder, encoder, encoder_weights=None, classes=3)
    side = 224 if decoder == "dpt" else 256
    return Built(model, (torch.zeros(2, 3, side, side),))
