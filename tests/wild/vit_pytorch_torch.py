"""vit-pytorch: the models of its README, with their arguments smaller."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch

from tests.wild.compare_torch import Built

IMAGE, VIDEO, SERIES = (1, 3, 64, 64), (1, 3, 4, 64, 64), (1, 3, 64)
COMMON = {
    "image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 64, "depth": 2, "heads": 4,
    "mlp_dim": 96, "channels": 3, "dim_head": 16, "seq_len": 64, "frames": 4,
    "image_patch_size": 16, "frame_patch_size": 2, "spatial_depth": 2, "temporal_depth": 2,
    "num_residual_streams": 2, "freq_patch_size": 8, "cls_depth": 1,
}  # fmt: skip
# module, class, arguments beside the common ones, shape of the input
MODELS: dict[str, tuple[str, str, dict[str, Any], tuple[int, ...]]] = {
    "vit": ("vit", "ViT", {}, IMAGE),
    "vit mean": ("vit", "ViT", {"pool": "mean"}, IMAGE),
    "vit_1d": ("vit_1d", "ViT", {}, SERIES),
    "vit_3d": ("vit_3d", "ViT", {}, VIDEO),
    "vit_5": ("vit_5", "ViT", {}, IMAGE),
    "vit_detpool": ("vit_detpool", "ViTDetPool", {}, IMAGE),
    "vit_for_small_dataset": ("vit_for_small_dataset", "ViT", {}, IMAGE),
    "vit_nd": ("vit_nd", "ViTND", {"ndim": 3, "input_shape": (4, 32, 32), "patch_size": (2, 8, 8)},
               (1, 3, 4, 32, 32)),
    "vit_nd_rotary": ("vit_nd_rotary", "ViTND",
                      {"ndim": 3, "input_shape": (4, 32, 32), "patch_size": (2, 8, 8)},
                      (1, 3, 4, 32, 32)),
    "vit_nd_pope": ("vit_nd_pope", "ViTND",
                    {"ndim": 2, "input_shape": (32, 32), "patch_size": (8, 8)}, (1, 3, 32, 32)),
    "vit_with_decorr": ("vit_with_decorr", "ViT", {}, IMAGE),
    "vit_with_keel_post_ln": ("vit_with_keel_post_ln", "ViT", {}, IMAGE),
    "vit_with_patch_dropout": ("vit_with_patch_dropout", "ViT", {}, IMAGE),
    "vit_with_patch_merger": ("vit_with_patch_merger", "ViT",
                              {"patch_merge_layer": 1, "patch_merge_num_tokens": 4}, IMAGE),
    "ats_vit": ("ats_vit", "ViT", {"max_tokens_per_depth": (12, 8)}, IMAGE),
    "attn_residual_with_dca": ("attn_residual_with_dca_simple_vit", "SimpleViT", {}, IMAGE),
    "cait": ("cait", "CaiT", {}, IMAGE),
    "cct_7": ("cct", "cct_7", {"img_size": 64}, IMAGE),
    "cct_14": ("cct", "cct_14", {"img_size": 64, "n_conv_layers": 2}, IMAGE),
    "cct_3d": ("cct_3d", "cct_2", {"img_size": 64, "num_frames": 4}, VIDEO),
    "cross_vit": ("cross_vit", "CrossViT",
                  {"sm_dim": 32, "lg_dim": 64, "sm_patch_size": 8, "lg_patch_size": 16}, IMAGE),
    "crossformer": ("crossformer", "CrossFormer",
                    {"dim": (32, 64, 96, 128), "depth": (1, 1, 2, 1)}, (1, 3, 224, 224)),
    "cvt": ("cvt", "CvT", {"s3_depth": 2}, (1, 3, 224, 224)),
    "deepvit": ("deepvit", "DeepViT", {}, IMAGE),
    "jet_vit": ("jet_vit", "JetViT", {"window_size": 3}, IMAGE),
    "jumbo_vit": ("jumbo_vit", "JumboViT", {}, IMAGE),
    "levit": ("levit", "LeViT", {"image_size": 224, "stages": 3, "dim": (64, 96, 128),
              "depth": 2, "heads": (2, 3, 4), "mlp_mult": 2}, (1, 3, 224, 224)),
    "look_vit": ("look_vit", "LookViT", {"image_size": 96, "patch_size": 16,
                 "highres_patch_size": 12}, (1, 3, 96, 96)),
    "looped_vit": ("looped_vit", "LoopedViT", {"pre_loop_depth": 1, "num_looped_blocks": 2,
                   "post_loop_depth": 1, "loop_depth": 2}, IMAGE),
    "max_vit": ("max_vit", "MaxViT", {"dim": 32, "depth": (1, 1, 1, 1)}, (1, 3, 224, 224)),
    "max_vit_with_registers": ("max_vit_with_registers", "MaxViT",
                               {"dim": 32, "depth": (1, 1, 1, 1)}, (1, 3, 224, 224)),
    "mobile_vit": ("mobile_vit", "MobileViT",
                   {"image_size": (64, 64), "patch_size": (2, 2), "dims": [48, 56, 64],
                   "channels": [16, 16, 24, 24, 32, 32, 40, 40, 48, 48, 64]}, IMAGE),
    "nest": ("nest", "NesT", {"patch_size": 4, "num_hierarchies": 3, "block_repeats": (1, 1, 2)},
             IMAGE),
    "normalized_vit": ("normalized_vit", "nViT", {}, IMAGE),
    "parallel_vit": ("parallel_vit", "ViT", {}, IMAGE),
    "pit": ("pit", "PiT", {"patch_size": 14, "image_size": 224, "depth": (1, 2, 1)},
            (1, 3, 224, 224)),
    "regionvit": ("regionvit", "RegionViT",
                  {"dim": (32, 64, 96, 128), "depth": (1, 1, 2, 1)}, (1, 3, 224, 224)),
    "rvt": ("rvt", "RvT", {}, IMAGE),
    "scalable_vit": ("scalable_vit", "ScalableViT", {"dim": 32, "heads": (2, 2, 4, 4),
                     "depth": (1, 1, 2, 1), "reduction_factor": (8, 4, 2, 1),
                     "window_size": (64, 32, None, None)}, (1, 3, 256, 256)),
    "sep_vit": ("sep_vit", "SepViT", {"dim": 32, "depth": (1, 1, 1, 1), "heads": (1, 2, 4, 8)},
                (1, 3, 224, 224)),
    "simple_flash_attn_vit": ("simple_flash_attn_vit", "SimpleViT", {}, IMAGE),
    "simple_flash_attn_vit_3d": ("simple_flash_attn_vit_3d", "SimpleViT", {}, VIDEO),
    "simple_uvit": ("simple_uvit", "SimpleUViT", {}, IMAGE),
    "simple_vit": ("simple_vit", "SimpleViT", {}, IMAGE),
    "simple_vit_1d": ("simple_vit_1d", "SimpleViT", {}, SERIES),
    "simple_vit_3d": ("simple_vit_3d", "SimpleViT", {}, VIDEO),
    "simple_vit_attn_residual": ("simple_vit_attn_residual", "SimpleViTAttnResidual", {}, IMAGE),
    "simple_vit_orthog_residual": ("simple_vit_orthog_residual_update", "SimpleViT", {}, IMAGE),
    "simple_vit_with_fft": ("simple_vit_with_fft", "SimpleViT", {}, IMAGE),
    "simple_vit_with_hyper_connections": ("simple_vit_with_hyper_connections", "SimpleViT", {},
                                          IMAGE),
    "simple_vit_with_patch_dropout": ("simple_vit_with_patch_dropout", "SimpleViT", {}, IMAGE),
    "simple_vit_with_qk_norm": ("simple_vit_with_qk_norm", "SimpleViT", {}, IMAGE),
    "simple_vit_with_register_tokens": ("simple_vit_with_register_tokens", "SimpleViT", {}, IMAGE),
    "simple_vit_relative_bias": ("simple_vit_with_relative_proj_pos_bias", "SimpleViT", {}, IMAGE),
    "simple_vit_sparse_gating": ("simple_vit_with_sparse_gating", "SimpleViTWithSparseGating", {},
                                 IMAGE),
    "simple_vit_specialized_cls": ("simple_vit_with_specialized_cls", "SimpleViT", {}, IMAGE),
    "simple_vit_value_residual": ("simple_vit_with_value_residual", "SimpleViT", {}, IMAGE),
    "t2t": ("t2t", "T2TViT", {"image_size": 224}, (1, 3, 224, 224)),
    "twins_svt": ("twins_svt", "TwinsSVT", {"s3_depth": 2, "s4_depth": 1}, (1, 3, 224, 224)),
    "vivit": ("vivit", "ViViT", {}, VIDEO),
    "vivit factorized self-attention": ("vivit", "ViViT",
                                        {"variant": "factorized_self_attention"}, VIDEO),
    "vivit_with_moss": ("vivit_with_moss", "ViViT", {}, VIDEO),
    "wwt": ("wwt", "WWT", {"num_slots": 4}, IMAGE),
    "xcit": ("xcit", "XCiT", {}, IMAGE),
}  # fmt: skip


def names() -> list[str]:
    """The models, and those that wrap another."""
    return [*MODELS, "dino embedding", "na_vit", "na_vit_nested_tensor"]


def build(name: str) -> Built:
    """A small model on one input."""
    if name not in MODELS:
        return _wrapped(name)
    module, kind, more, shape = MODELS[name]
    return Built(_made(module, kind, more), (torch.zeros(shape),))


def _made(module: str, kind: str, more: dict[str, Any]) -> Any:
    make = getattr(importlib.import_module(f"vit_pytorch.{module}"), kind)
    taken = inspect.signature(make).parameters
    return make(**{**{k: v for k, v in COMMON.items() if k in taken}, **more})


def _wrapped(name: str) -> Built:
    if name.startswith("na_vit"):
        images = [torch.zeros(3, 32, 64), torch.zeros(3, 64, 48)]
        if name == "na_vit":
            return Built(_made(name, "NaViT", {}), ([images],))
        return Built(_made(name, "NaViT", {}), (images,))
    inner = _made("vit", "ViT", {})
    image = torch.zeros(IMAGE)
    from vit_pytorch import Dino

    return Built(
        Dino(inner, image_size=64, hidden_layer="to_latent"), (image,), {"return_embedding": True}
    )
