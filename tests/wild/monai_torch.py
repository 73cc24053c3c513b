"""monai: networks for images and volumes, with the arguments of its tests, smaller."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from tests.wild.compare_torch import Built

FLAT, VOLUME = (1, 1, 64, 64), (1, 1, 32, 32, 32)
LEVELS = {"channels": (8, 16, 32), "strides": (2, 2), "in_channels": 1, "out_channels": 2}
CODER = {"channels": (8, 16), "strides": (2, 2), "in_channels": 1, "out_channels": 2}
INOUT = {"in_channels": 1, "out_channels": 2}
DYNAMIC = {"kernel_size": [3, 3, 3], "strides": [1, 2, 2], "upsample_kernel_size": [2, 2], **INOUT}
DIFFUSION = {**INOUT, "num_res_blocks": 1, "channels": (8, 8, 16), "norm_num_groups": 8,
             "attention_levels": (False, False, True), "num_head_channels": 8}  # fmt: skip
KL = {"in_channels": 1, "out_channels": 1, "num_res_blocks": (1, 1), "channels": (8, 16),
      "attention_levels": (False, True), "norm_num_groups": 8}  # fmt: skip
TIME, CONTEXT = ((1,), "int64"), ((1, 3, 12), "float32")
# class, arguments, shapes of the inputs: those of an image unless a pair with a dtype
MODELS: dict[str, tuple[str, dict[str, Any], tuple[Any, ...]]] = {
    "ahnet": ("AHNet", {"spatial_dims": 3, "upsample_mode": "transpose"}, ((1, 1, 128, 128, 32),)),
    "ahnet trilinear": ("AHNet", {"spatial_dims": 3, "upsample_mode": "trilinear"},
                        ((1, 1, 128, 128, 32),)),
    "attention unet 2d": ("AttentionUnet", {"spatial_dims": 2, **LEVELS}, (FLAT,)),
    "attention unet 3d": ("AttentionUnet", {"spatial_dims": 3, **LEVELS}, (VOLUME,)),
    "autoencoder 2d": ("AutoEncoder", {"spatial_dims": 2, **CODER}, (FLAT,)),
    "autoencoder residual": ("AutoEncoder", {"spatial_dims": 3, "num_res_units": 2, **CODER},
                             (VOLUME,)),
    "autoencoder kl 2d": ("AutoencoderKL", {"spatial_dims": 2, **KL}, (FLAT,)),
    "autoencoder kl 3d": ("AutoencoderKL", {"spatial_dims": 3, **KL}, (VOLUME,)),
    "basic unet 1d": ("BasicUNet", {"spatial_dims": 1}, ((1, 1, 64),)),
    "basic unet 2d": ("BasicUNet", {"spatial_dims": 2}, (FLAT,)),
    "basic unet 3d": ("BasicUNet", {"spatial_dims": 3, "upsample": "nontrainable"}, (VOLUME,)),
    "basic unet pixelshuffle": ("BasicUNet", {"spatial_dims": 2, "upsample": "pixelshuffle"},
                                (FLAT,)),
    "basic unet plus plus": ("BasicUNetPlusPlus", {"spatial_dims": 2}, (FLAT,)),
    "classifier": ("Classifier", {"in_shape": (1, 64, 64), "classes": 3, "channels": (8, 16),
                                  "strides": (2, 2)}, (FLAT,)),
    "discriminator": ("Discriminator", {"in_shape": (1, 64, 64), "channels": (8, 16),
                                        "strides": (2, 2)}, (FLAT,)),
    "critic": ("Critic", {"in_shape": (1, 64, 64), "channels": (8, 16), "strides": (2, 2)},
            (FLAT,)),
    "regressor": ("Regressor", {"in_shape": (1, 64, 64), "out_shape": (3,), "channels": (8, 16),
                                "strides": (2, 2)}, (FLAT,)),
    "generator": ("Generator", {"latent_shape": (16,), "start_shape": (8, 8, 8),
                                "channels": (8, 4), "strides": (2, 2)}, ((1, 16),)),
    "daf3d": ("DAF3D", INOUT, ((1, 1, 64, 64, 64),)),
    "densenet121": ("DenseNet121", {"spatial_dims": 2, **INOUT}, (FLAT,)),
    "densenet169 3d": ("DenseNet169", {"spatial_dims": 3, **INOUT}, (VOLUME,)),
    "densenet201": ("DenseNet201", {"spatial_dims": 2, **INOUT}, (FLAT,)),
    "diffusion unet 2d": ("DiffusionModelUNet", {"spatial_dims": 2, **DIFFUSION}, (FLAT, TIME)),
    "diffusion unet 3d": ("DiffusionModelUNet", {"spatial_dims": 3, **DIFFUSION}, (VOLUME, TIME)),
    "diffusion unet conditioned": (
        "DiffusionModelUNet", {"spatial_dims": 2, "with_conditioning": True,
                               "cross_attention_dim": 12, **DIFFUSION}, (FLAT, TIME, CONTEXT)),
    "controlnet": ("ControlNet", {"spatial_dims": 2, "in_channels": 1, "num_res_blocks": 1,
                                  "channels": (8, 8, 16), "norm_num_groups": 8,
                                  "attention_levels": (False, False, True), "num_head_channels": 8,
                                  "conditioning_embedding_in_channels": 1,
                                  "conditioning_embedding_num_channels": (16,)},
                   (FLAT, TIME, (1, 1, 64, 64))),
    "dynunet 2d": ("DynUNet", {"spatial_dims": 2, **DYNAMIC}, (FLAT,)),
    "dynunet 3d": ("DynUNet", {"spatial_dims": 3, "res_block": True, **DYNAMIC}, (VOLUME,)),
    "efficientnet b0": ("EfficientNetBN", {"model_name": "efficientnet-b0", "pretrained": False},
                        ((1, 3, 64, 64),)),
    "efficientnet b1 3d": ("EfficientNetBN", {"model_name": "efficientnet-b1", "pretrained": False,
                                              "spatial_dims": 3, "in_channels": 1}, (VOLUME,)),
    "efficientnet b4": ("EfficientNetBN", {"model_name": "efficientnet-b4", "pretrained": False},
                        ((1, 3, 64, 64),)),
    "flexible unet": ("FlexibleUNet", {"backbone": "efficientnet-b0", **INOUT}, (FLAT,)),
    "flexible unet resnet": ("FlexibleUNet", {"backbone": "resnet18", "spatial_dims": 3, **INOUT},
                             (VOLUME,)),
    "fully connected": ("FullyConnectedNet", {"hidden_channels": (8, 9), **INOUT}, ((2, 1),)),
    "variational fully connected": (
        "VarFullyConnectedNet", {"latent_size": 4, "encode_channels": (8,), "decode_channels": (9,),
                                 **INOUT}, ((2, 1),)),
    "highresnet 2d": ("HighResNet", {"spatial_dims": 2}, (FLAT,)),
    "highresnet 3d": ("HighResNet", {"spatial_dims": 3}, (VOLUME,)),
    "hovernet fast": ("HoVerNet", {"mode": "fast", "out_classes": 5}, ((1, 3, 256, 256),)),
    "hovernet original": ("HoVerNet", {"mode": "original", "out_classes": 5},
                          ((1, 3, 270, 270),)),
    "masked autoencoder": ("MaskedAutoEncoderViT", {
        "in_channels": 1, "img_size": 32, "patch_size": 16, "hidden_size": 48, "mlp_dim": 64,
        "num_layers": 2, "num_heads": 4, "decoder_hidden_size": 24, "decoder_num_layers": 1,
        "decoder_num_heads": 4}, (VOLUME,)),
    "mednext": ("MedNeXt", {"init_filters": 8, "kernel_size": 3}, (VOLUME,)),
    "mednext residual": ("MedNeXt", {"init_filters": 8, "kernel_size": 3, "spatial_dims": 2,
                                     "use_residual_connection": True, "global_resp_norm": True},
                         (FLAT,)),
    "multiple instances": ("MILModel", {"num_classes": 2, "mil_mode": "att", "pretrained": False},
                           ((1, 2, 3, 64, 64),)),
    "multiple instances transformer": (
        "MILModel", {"num_classes": 2, "mil_mode": "att_trans", "pretrained": False},
        ((1, 2, 3, 64, 64),)),
    "multiple instances pyramid": (
        "MILModel", {"num_classes": 2, "mil_mode": "att_trans_pyramid", "pretrained": False},
        ((1, 2, 3, 64, 64),)),
    "patch discriminator": ("PatchDiscriminator", {"spatial_dims": 2, "channels": 8,
                                                   "in_channels": 1, "num_layers_d": 3}, (FLAT,)),
    "quicknat": ("Quicknat", {"num_classes": 3, "se_block": "CSE"}, (FLAT,)),
    "regunet": ("RegUNet", {"spatial_dims": 2, "in_channels": 1, "num_channel_initial": 8,
                            "depth": 2}, (FLAT,)),
    "localnet": ("LocalNet", {"spatial_dims": 2, "in_channels": 1, "num_channel_initial": 8,
                              "extract_levels": [0, 1, 2]}, (FLAT,)),
    "globalnet": ("GlobalNet", {"image_size": [64, 64], "spatial_dims": 2, "in_channels": 1,
                                "num_channel_initial": 8, "depth": 2}, (FLAT,)),
    "resnet10": ("resnet10", {"spatial_dims": 3, "n_input_channels": 1, "num_classes": 3},
            (VOLUME,)),
    "resnet18": ("resnet18", {"spatial_dims": 2, "n_input_channels": 1, "num_classes": 3}, (FLAT,)),
    "resnet50": ("resnet50", {"spatial_dims": 3, "n_input_channels": 1, "num_classes": 3},
            (VOLUME,)),
    "segresnet 2d": ("SegResNet", {"spatial_dims": 2}, (FLAT,)),
    "segresnet 3d": ("SegResNet", {"spatial_dims": 3, "upsample_mode": "deconv"}, (VOLUME,)),
    "segresnet vae": ("SegResNetVAE", {"spatial_dims": 2, "input_image_size": (64, 64)}, (FLAT,)),
    "segresnet ds": ("SegResNetDS", {"spatial_dims": 3, "init_filters": 8, "dsdepth": 2},
            (VOLUME,)),
    "senet": ("SEResNet50", {"spatial_dims": 2, "in_channels": 1, "num_classes": 3}, (FLAT,)),
    "senext 3d": ("SEResNext50", {"spatial_dims": 3, "in_channels": 1, "num_classes": 3},
            (VOLUME,)),
    "spade autoencoder": ("SPADEAutoencoderKL", {"spatial_dims": 2, "label_nc": 3, **KL,
                                                 "spade_intermediate_channels": 16},
                          (FLAT, (1, 3, 64, 64))),
    "spade diffusion": ("SPADEDiffusionModelUNet", {"spatial_dims": 2, "label_nc": 3, **DIFFUSION,
                                                    "spade_intermediate_channels": 16},
                        (FLAT, TIME, (1, 3, 64, 64))),
    "spade": ("SPADENet", {"spatial_dims": 2, "in_channels": 1, "out_channels": 1, "label_nc": 3,
                           "input_shape": [64, 64], "channels": [8, 16], "z_dim": 12},
              ((1, 3, 64, 64), FLAT)),
    "swin unetr 2d": ("SwinUNETR", {"spatial_dims": 2, "feature_size": 12, **INOUT}, (FLAT,)),
    "swin unetr 3d": ("SwinUNETR", {"spatial_dims": 3, "feature_size": 12, **INOUT},
                      ((1, 1, 64, 64, 64),)),
    "swin unetr v2": ("SwinUNETR", {"spatial_dims": 3, "feature_size": 12, "use_v2": True,
                                    "downsample": "mergingv2", **INOUT}, ((1, 1, 64, 64, 64),)),
    "decoder only": ("DecoderOnlyTransformer", {
        "num_tokens": 30, "max_seq_len": 16, "attn_layers_dim": 16, "attn_layers_depth": 2,
        "attn_layers_heads": 2}, (((1, 16), "int64"),)),
    "unet 1d": ("UNet", {"spatial_dims": 1, **LEVELS}, ((1, 1, 64),)),
    "unet 2d": ("UNet", {"spatial_dims": 2, "num_res_units": 2, **LEVELS}, (FLAT,)),
    "unet 3d": ("UNet", {"spatial_dims": 3, **LEVELS}, (VOLUME,)),
    "unetr": ("UNETR", {"img_size": 32, "feature_size": 8, "hidden_size": 48, "mlp_dim": 64,
                        "num_heads": 4, **INOUT}, (VOLUME,)),
    "variational autoencoder": ("VarAutoEncoder", {
        "spatial_dims": 2, "in_shape": (1, 64, 64), "out_channels": 1, "latent_size": 4,
        "channels": (8, 16), "strides": (2, 2)}, (FLAT,)),
    "vit 2d": ("ViT", {"in_channels": 1, "img_size": 64, "patch_size": 16, "hidden_size": 48,
                       "mlp_dim": 64, "num_layers": 2, "num_heads": 4, "spatial_dims": 2,
                       "classification": True}, (FLAT,)),
    "vit 3d": ("ViT", {"in_channels": 1, "img_size": 32, "patch_size": 16, "hidden_size": 48,
                       "mlp_dim": 64, "num_layers": 2, "num_heads": 4, "proj_type": "perceptron"},
               (VOLUME,)),
    "vit autoencoder": ("ViTAutoEnc", {"in_channels": 1, "img_size": 32, "patch_size": 16,
                                       "hidden_size": 48, "mlp_dim": 64, "num_layers": 2,
                                       "num_heads": 4}, (VOLUME,)),
    "vnet": ("VNet", {"spatial_dims": 3}, (VOLUME,)),
    "vnet 2d": ("VNet", {"spatial_dims": 2, "dropout_dim": 2}, (FLAT,)),
    "voxelmorph unet": ("VoxelMorphUNet", {
        "spatial_dims": 2, "in_channels": 2, "unet_out_channels": 8, "channels": (8, 8, 8, 8),
        "final_conv_channels": (8,)}, ((1, 2, 64, 64),)),
    "voxelmorph": ("VoxelMorph", {"spatial_dims": 2}, (FLAT, FLAT)),
    "voxelmorph 3d": ("VoxelMorph", {"spatial_dims": 3}, (VOLUME, VOLUME)),
    "vqvae": ("VQVAE", {"spatial_dims": 2, "in_channels": 1, "out_channels": 1,
                        "channels": (8, 8), "num_res_channels": (8, 8), "num_res_layers": 1,
                        "downsample_parameters": ((2, 4, 1, 1),) * 2,
                        "upsample_parameters": ((2, 4, 1, 1, 0),) * 2}, (FLAT,)),
    "vista3d": ("vista3d132", {"in_channels": 1, "encoder_embed_dim": 16}, ((1, 1, 64, 64, 64),)),
}  # fmt: skip


def names() -> list[str]:
    """All of them."""
    return list(MODELS)


def build(name: str) -> Built:
    """A network on one image or volume."""
    from monai.networks import nets

    kind, options, shapes = deepcopy(MODELS[name])  # some networks change their lists
    given = [
        torch.zeros(shape[0], dtype=getattr(torch, shape[1]))
        if isinstance(shape[-1], str)
        else torch.zeros(shape)
        for shape in shapes
    ]
    if name == "vista3d":
        classes = torch.tensor([[1], [2]])
        return Built(getattr(nets, kind)(**options), tuple(given), {"class_vector": classes})
    return Built(getattr(nets, kind)(**options), tuple(given))
